//! Job files by chance, run by fio and by Rubus: both move the same bytes with the same operations at
//! the same places.

mod generator;
mod observed;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use serde_json::Value;

use self::generator::{Case, FILE_BYTES, FILES, INCLUDED, Section, case};
use self::observed::Access;
use crate::common::can_run;
use crate::common::program::{Home, binary};
use rubus_lab::devices::needs::Need;

const NEEDS: [Need; 2] = [Need::Program("fio", "fio"), Need::Program("strace", "strace")];

#[test]
fn two_thousand_job_files_do_what_they_do_with_fio() {
    compare(MANY);
}

#[test]
fn sixty_job_files_do_what_they_do_with_fio() {
    compare(FEW);
}

/// The numbers of the cases of each change, and of the full tier.
const FEW: RangeInclusive<u64> = 1..=60;
const MANY: RangeInclusive<u64> = 61..=2060;

/// The table of the options in the documentation, and what the cases use, are the same.
#[test]
fn every_option_that_is_listed_as_done_is_tried() {
    let page = include_str!("../../docs/how-to/fio.md");
    let table = page.split("## Every option").nth(1).expect("the table of the options");
    let rows = table.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let names: Vec<&str> = cells.next()?.split([' ', '`']).filter(|n| !n.is_empty()).collect();
        Some((names, cells.next()?))
    });
    let done: Vec<Vec<&str>> =
        rows.filter(|(_, support)| *support == "done").map(|(names, _)| names).collect();
    assert!(done.len() > 50, "{}", done.len());
    let mut tried: BTreeMap<&str, usize> = BTreeMap::new();
    for options in FEW.chain(MANY).map(|number| case(number).options) {
        options.into_iter().for_each(|option| *tried.entry(option).or_default() += 1);
    }
    let count = |names: &Vec<&str>| names.iter().filter_map(|name| tried.get(name)).sum::<usize>();
    let seldom: Vec<_> = done.iter().filter(|names| count(names) < 10).collect();
    assert!(seldom.is_empty(), "listed as done and tried in fewer than ten cases: {seldom:?}");
    let is_listed = |option: &&str| done.iter().any(|names| names.contains(option));
    let unlisted: Vec<_> = tried.keys().filter(|option| !is_listed(option)).collect();
    assert!(unlisted.is_empty(), "tried and not listed as done: {unlisted:?}");
}

/// Runs these cases with both programs, two at a time.
fn compare(numbers: RangeInclusive<u64>) {
    if !can_run("the same job files with fio", &NEEDS) {
        return;
    }
    let numbers = match std::env::var("RUBUS_FIO_CASE") {
        Ok(only) => {
            let only = only.parse().expect("RUBUS_FIO_CASE is a number");
            only..=only
        }
        Err(_) => numbers,
    };
    let total = numbers.end() - numbers.start() + 1;
    let left = Mutex::new(numbers);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(number) = { left.lock().expect("no panic").next() } {
                    let case = case(number);
                    let differences = differences(&case);
                    if !differences.is_empty() {
                        let text = format!(
                            "case {number}:\n  {}\n{} {}\n{}",
                            differences.join("\n  "),
                            case.given.join(" "),
                            case.included.as_deref().unwrap_or_default(),
                            case.text
                        );
                        wrong.lock().expect("no panic").push(text);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{} of {total} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// What one program did.
struct Done {
    /// By name of the job and number of its copy: reads and writes as operations and bytes.
    jobs: BTreeMap<(String, usize), [(u64, u64); 2]>,
    files: BTreeMap<String, Vec<Access>>,
}

impl Done {
    fn is_idle_somewhere(&self) -> bool {
        self.jobs.values().any(|[reads, writes]| reads.0 + writes.0 == 0)
    }
}

fn differences(case: &Case) -> Vec<String> {
    let (by_fio, by_rubus) = match (run(case, Program::Fio), run(case, Program::Rubus)) {
        (Err(_), Err(_)) => return Vec::new(),
        // A few of them end fio itself.
        (Err(error), Ok(_)) if error.contains("got signal=") => return Vec::new(),
        (Err(error), Ok(_)) => return vec![format!("only fio refuses it: {error}")],
        // fio does nothing then, and says that all is well.
        (Ok(fio), Err(error)) if error.contains("holds no block") && fio.is_idle_somewhere() => {
            return Vec::new();
        }
        (Ok(_), Err(error)) => return vec![format!("only Rubus refuses it: {error}")],
        (Ok(fio), Ok(rubus)) => (fio, rubus),
    };
    let mut found = Vec::new();
    if by_fio.jobs.keys().ne(by_rubus.jobs.keys()) {
        found.push(format!(
            "results of {:?} with fio, of {:?} with Rubus",
            by_fio.jobs.keys(),
            by_rubus.jobs.keys()
        ));
        return found;
    }
    for section in &case.sections {
        let of = |done: &Done| -> Vec<[(u64, u64); 2]> {
            let jobs = done.jobs.iter().filter(|((name, _), _)| *name == section.name);
            jobs.map(|(_, sides)| *sides).collect()
        };
        for (fio, rubus) in of(&by_fio).into_iter().zip(of(&by_rubus)) {
            found.extend(different_amounts(section, fio, rubus));
        }
    }
    let is_comparable = case.sections.iter().all(|s| s.is_determined && s.is_traceable);
    if is_comparable && found.is_empty() {
        found.extend(different_places(case, &by_fio.files, &by_rubus.files));
    }
    found
}

fn different_amounts(
    section: &Section,
    fio: [(u64, u64); 2],
    rubus: [(u64, u64); 2],
) -> Option<String> {
    let all = |sides: [(u64, u64); 2]| (sides[0].0 + sides[1].0, sides[0].1 + sides[1].1);
    let ((fio_operations, fio_bytes), (operations, bytes)) = (all(fio), all(rubus));
    let is_mix = section.reads && section.writes;
    let bytes_off = match section.is_even {
        true => 0,
        false => 2 * section.longest * section.copies,
    };
    let operations_off = match section.is_even {
        true => 0,
        // The mean size of a few operations varies.
        false => fio_operations / 2 + 4,
    };
    // The share of the reads is chance: five deviations of it.
    let reads_off = match is_mix {
        true => (2.5 * (fio_operations as f64).sqrt()).ceil() as u64 + operations_off,
        false => operations_off,
    };
    if section.is_loose {
        let is_any = |sides: [(u64, u64); 2]| sides.map(|(operations, _)| operations > 0);
        let differs = operations > 4 && fio_operations > 4 && is_any(fio) != is_any(rubus);
        return differs.then(|| format!("{}: fio {fio:?}, Rubus {rubus:?}", section.name));
    }
    let differs = fio_bytes.abs_diff(bytes) > bytes_off
        || fio_operations.abs_diff(operations) > operations_off
        || (!section.has_rate && fio[0].0.abs_diff(rubus[0].0) > reads_off);
    differs.then(|| {
        format!(
            "{}: operations and bytes of reads and writes: fio {fio:?}, Rubus {rubus:?}",
            section.name
        )
    })
}

/// What was touched, as sets; files without a name are compared as a set of files.
fn different_places(
    case: &Case,
    fio: &BTreeMap<String, Vec<Access>>,
    rubus: &BTreeMap<String, Vec<Access>>,
) -> Option<String> {
    let writes = case.sections.iter().any(|section| section.writes);
    let reads = case.sections.iter().any(|section| section.reads);
    let set = |accesses: &[Access]| -> BTreeSet<Access> {
        // Laying out a file for a reading job is no part of the job.
        let counts = |access: &&Access| if access.is_write { writes } else { reads };
        accesses.iter().filter(counts).copied().collect()
    };
    let named = |files: &BTreeMap<String, Vec<Access>>, name: &str| {
        files.get(name).map(|accesses| set(accesses)).unwrap_or_default()
    };
    for name in FILES {
        let (a, b) = (named(fio, name), named(rubus, name));
        if a != b {
            return Some(format!("{name}: {}", difference(&a, &b)));
        }
    }
    if reads && writes {
        // A nameless file is filled with writes that are no part of any job.
        return None;
    }
    let others = |files: &BTreeMap<String, Vec<Access>>| -> Vec<BTreeSet<Access>> {
        let others = files.iter().filter(|(name, _)| !FILES.contains(&name.as_str()));
        let mut sets: Vec<_> = others.map(|(_, accesses)| set(accesses)).collect();
        sets.retain(|set| !set.is_empty());
        sets.sort();
        sets
    };
    let (a, b) = (others(fio), others(rubus));
    (a != b).then(|| {
        let of = |sets: &[BTreeSet<Access>]| sets.iter().flatten().copied().collect();
        format!("{} and {} own files: {}", a.len(), b.len(), difference(&of(&a), &of(&b)))
    })
}

fn difference(fio: &BTreeSet<Access>, rubus: &BTreeSet<Access>) -> String {
    let mut text = format!("{} places with fio, {} with Rubus", fio.len(), rubus.len());
    for (who, only) in [("fio", fio.difference(rubus)), ("Rubus", rubus.difference(fio))] {
        let some: Vec<_> = only.take(4).collect();
        write!(text, "; only {who}: {some:?}").expect("a text grows");
    }
    text
}

#[derive(Clone, Copy, PartialEq)]
enum Program {
    Fio,
    Rubus,
}

fn run(case: &Case, program: Program) -> Result<Done, String> {
    let home = Home::new();
    let place = home.path().join("place");
    let traces = home.path().join("traces");
    for directory in [&place, &traces] {
        std::fs::create_dir(directory).expect("a directory");
    }
    for name in FILES {
        std::fs::write(place.join(name), vec![7; FILE_BYTES as usize]).expect("a file");
    }
    let job_file = home.path().join("job.fio");
    std::fs::write(&job_file, &case.text).expect("a file");
    if let Some(text) = &case.included {
        std::fs::write(home.path().join(INCLUDED), text).expect("a file");
    }
    let result = home.path().join("result.json");
    let mut command = Command::new("strace");
    command.args(["-ff", "--seccomp-bpf", "-y", "-v", "-s", "0", "-e"]);
    command.arg(format!("trace={},io_uring_setup", observed::CALLS));
    if program == Program::Rubus {
        // Without a ring, threads make calls that can be seen.
        command.args(["-e", "inject=io_uring_setup:error=ENOSYS"]);
    }
    command.arg("-o").arg(traces.join("trace"));
    match program {
        Program::Fio => {
            command.args(["fio", "--output-format=json"]);
            command.arg(format!("--output={}", result.display()));
            command.args(&case.given);
        }
        Program::Rubus => {
            command.arg(binary()).args(["bench", "--no-html", "--no-history", "--quiet"]);
            command.arg(format!("--fio-json={}", result.display()));
            for name in FILES {
                let path: PathBuf = place.join(name);
                command.arg(format!("--i-will-lose-everything-on={}", path.display()));
            }
            command.args(&case.given).arg("--fio-job");
        }
    }
    if case.is_piped {
        let input = std::fs::File::open(&job_file).expect("the file");
        command.arg("-").stdin(input);
    } else {
        command.arg(&job_file);
    }
    home.adopt(&mut command);
    let output = command.current_dir(&place).output().expect("strace starts");
    if !output.status.success() {
        return Err(said(&output));
    }
    let place = place.canonicalize().expect("the directory is there");
    Ok(Done { jobs: jobs(&result)?, files: observed::accesses(&traces, &place) })
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("strace:")).collect();
    lines.join(" | ")
}

/// By name and number of a job, the operations and bytes of each direction.
type Jobs = BTreeMap<(String, usize), [(u64, u64); 2]>;

fn jobs(result: &Path) -> Result<Jobs, String> {
    let text = std::fs::read_to_string(result).map_err(|error| error.to_string())?;
    let text = text.get(text.find("{\n").unwrap_or(0)..).unwrap_or_default();
    // Messages may follow it.
    let value = serde_json::Deserializer::from_str(text).into_iter::<Value>().next();
    let value = value.ok_or("no result")?.map_err(|error| error.to_string())?;
    let mut jobs = BTreeMap::new();
    for entry in value["jobs"].as_array().into_iter().flatten() {
        let name = entry["jobname"].as_str().unwrap_or_default().to_string();
        let side = |key: &str| {
            let number = |what: &str| entry[key][what].as_u64().unwrap_or(0);
            (number("total_ios"), number("io_bytes"))
        };
        let copy = (0..).find(|copy| !jobs.contains_key(&(name.clone(), *copy))).unwrap_or(0);
        jobs.insert((name, copy), [side("read"), side("write")]);
    }
    Ok(jobs)
}
