//! Job files by chance, run by fio and by Rubus: both move the same bytes with the same operations at
//! the same places.

mod generator;
mod observed;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::generator::{Case, FILE_BYTES, FILES, INCLUDED, LAST_OF_FIRST, Section, case};
use self::observed::Access;
use crate::common::program::{Home, binary};
use crate::common::{can_run, report};
use rubus_lab::devices::needs::Need;

const NEEDS: [Need; 2] = [Need::Program("fio", "fio"), Need::Program("strace", "strace")];

#[test]
fn job_files_61_to_560_do_what_they_do_with_fio() {
    compare(MANY[0].clone());
}

#[test]
fn job_files_561_to_1060_do_what_they_do_with_fio() {
    compare(MANY[1].clone());
}

#[test]
fn job_files_1061_to_1560_do_what_they_do_with_fio() {
    compare(MANY[2].clone());
}

#[test]
fn job_files_1561_to_2060_do_what_they_do_with_fio() {
    compare(MANY[3].clone());
}

#[test]
fn sixty_job_files_do_what_they_do_with_fio() {
    compare(FEW);
}

/// The numbers of the cases of each change.
const FEW: RangeInclusive<u64> = 1..=60;
/// Those of the full tier, in parts that can run one by one.
const MANY: [RangeInclusive<u64>; 4] = [61..=560, 561..=1060, 1061..=1560, 1561..=2060];

/// Cases that differ, each by what `docs/how-to/fio.md` says under "Differences from fio".
const KNOWN: [(u64, &str); 3] = [
    (1528, "a share of io_size, and bytes left out"),
    (1596, "number_ios with verify and loops"),
    (1766, "a share of io_size that holds no block"),
];

/// A case takes two seconds on an idle machine. fio has no end at all in a few of them.
const MAX_TIME: Duration = Duration::from_secs(20);
/// One that has not ended by then runs again when all others have, alone, and has this time.
const MAX_TIME_ALONE: Duration = Duration::from_secs(120);
/// Of a mix with a tenth of one kind, fewer operations may have none of it: above, one in ten million.
const MIN_MIXED: u64 = 150;
/// What Rubus says of a job whose region, or each of whose files, is smaller than a block.
const NO_BLOCK: [&str; 2] = ["holds no block", "hold no block"];
/// What fio says of a job of its own that crashed.
const CRASHED: &str = "got signal=";
/// As many of a hundred cases may be left out because fio does not end or crashes.
const MAX_LEFT_OUT_PERCENT: u64 = 2;

/// The table of the options in the documentation, and what the cases use, are the same.
#[test]
fn every_option_that_is_listed_as_done_is_tried() {
    let table = include_str!("../../docs/data/fio-options.tsv");
    let rows = table.lines().skip(1).filter_map(|line| {
        let mut cells = line.split('\t');
        let names: Vec<&str> = cells.next()?.split(' ').collect();
        Some((names, cells.next()?))
    });
    let done: Vec<Vec<&str>> =
        rows.filter(|(_, support)| *support == "done").map(|(names, _)| names).collect();
    assert!(done.len() > 50, "{}", done.len());
    let mut tried: BTreeMap<&str, usize> = BTreeMap::new();
    for options in FEW.chain(MANY.into_iter().flatten()).map(|number| case(number).options) {
        options.into_iter().for_each(|option| *tried.entry(option).or_default() += 1);
    }
    let count = |names: &Vec<&str>| names.iter().filter_map(|name| tried.get(name)).sum::<usize>();
    let seldom: Vec<_> = done.iter().filter(|names| count(names) < 10).collect();
    assert!(seldom.is_empty(), "listed as done and tried in fewer than ten cases: {seldom:?}");
    let is_listed = |option: &&str| done.iter().any(|names| names.contains(option));
    let unlisted: Vec<_> = tried.keys().filter(|option| !is_listed(option)).collect();
    assert!(unlisted.is_empty(), "tried and not listed as done: {unlisted:?}");
}

/// What was added to the generator is drawn, and changes no case that was there before.
#[test]
fn only_later_cases_have_later_spellings() {
    let later =
        ["4ki\n", "=8Ki\n", "4kib\n", "16KiB\n", "=512KiB\n", "4k/30:8k/20\n", "4k/10:8k/\n"];
    let has = |numbers: RangeInclusive<u64>, spelling: &str| {
        numbers.map(|number| case(number).text).any(|text| text.contains(spelling))
    };
    for spelling in later {
        assert!(has(LAST_OF_FIRST + 1..=LAST_OF_FIRST + 1000, spelling), "{spelling}");
        assert!(!has(1..=LAST_OF_FIRST, spelling), "{spelling}");
    }
}

/// Runs these cases with both programs, two at a time, and prints each difference when it is found.
/// `RUBUS_FIO_CASE=NUMBER` or `FIRST-LAST` runs others instead.
fn compare(numbers: RangeInclusive<u64>) {
    if !can_run("the same job files with fio", &NEEDS) {
        return;
    }
    let numbers = match std::env::var("RUBUS_FIO_CASE") {
        Ok(only) => {
            let (first, last) = only.split_once('-').unwrap_or((&only, &only));
            let number = |text: &str| text.parse().expect("RUBUS_FIO_CASE has numbers");
            number(first)..=number(last)
        }
        Err(_) => numbers,
    };
    let total = numbers.end() - numbers.start() + 1;
    let left = Mutex::new(numbers);
    let found = Found { is_only_one: total == 1, ..Found::default() };
    let unfinished = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(number) = { left.lock().expect("no panic").next() } {
                    let case = case(number);
                    match differences(&case, MAX_TIME) {
                        Err(Unfinished(_)) => unfinished.lock().expect("no panic").push(number),
                        Ok(compared) => found.take(number, &case, compared),
                    }
                }
            });
        }
    });
    for number in unfinished.into_inner().expect("no panic") {
        let case = case(number);
        let compared = differences(&case, MAX_TIME_ALONE).unwrap_or_else(|Unfinished(program)| {
            let why = format!("{program} did not end in {MAX_TIME_ALONE:?}");
            match program {
                Program::Fio => Compared::LeftOut(why),
                Program::Rubus => Compared::Different(vec![why]),
            }
        });
        found.take(number, &case, compared);
    }
    let wrong = found.wrong.into_inner().expect("no panic");
    let left_out = found.left_out.into_inner().expect("no panic");
    let mut without = format!("fio hangs or crashes in {} of {total}", left_out.len());
    for (number, why) in &left_out {
        write!(without, "\n  {number}: {why}").expect("a text grows");
    }
    report(&without);
    assert!(wrong.is_empty(), "{} of {total} differ: {wrong:?}", wrong.len());
    let max_left_out = (total * MAX_LEFT_OUT_PERCENT).div_ceil(100);
    assert!(left_out.len() as u64 <= max_left_out, "{without}");
}

/// What came of the cases so far.
#[derive(Default)]
struct Found {
    is_only_one: bool,
    wrong: Mutex<Vec<u64>>,
    left_out: Mutex<Vec<(u64, String)>>,
}

impl Found {
    fn take(&self, number: u64, case: &Case, compared: Compared) {
        match compared {
            Compared::Same => {}
            Compared::LeftOut(why) => {
                if self.is_only_one {
                    report(&told(number, case, std::slice::from_ref(&why)));
                }
                self.left_out.lock().expect("no panic").push((number, why));
            }
            Compared::Different(differences) => {
                if let Some((_, why)) = KNOWN.iter().find(|(known, _)| *known == number) {
                    report(&format!("case {number} differs as is known: {why}"));
                    return;
                }
                report(&told(number, case, &differences));
                self.wrong.lock().expect("no panic").push(number);
            }
        }
    }
}

/// All that is needed to repeat a case.
fn told(number: u64, case: &Case, differences: &[String]) -> String {
    let mut text = format!("case {number} (RUBUS_FIO_CASE={number}):\n");
    for difference in differences {
        writeln!(text, "  {difference}").expect("a text grows");
    }
    if !case.given.is_empty() {
        writeln!(text, "with {}", case.given.join(" ")).expect("a text grows");
    }
    if let Some(included) = &case.included {
        writeln!(text, "{INCLUDED}:\n{included}").expect("a text grows");
    }
    text + &case.text
}

/// The program that was stopped since its time was over.
struct Unfinished(Program);

/// What a program said that has no result.
struct Refused(String);

impl Refused {
    /// Whether fio has crashed, which says nothing about the job file.
    fn is_of_fio_itself(&self) -> bool {
        self.0.contains(CRASHED) || self.0.contains("Assertion `")
    }
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

/// What came of a case.
enum Compared {
    Same,
    /// fio does not end or fails within itself, so that there is nothing to compare with.
    LeftOut(String),
    Different(Vec<String>),
}

/// Each program has at most this time.
fn differences(case: &Case, max_time: Duration) -> Result<Compared, Unfinished> {
    let by_fio = match run(case, Program::Fio, max_time)? {
        Err(error) if error.is_of_fio_itself() => return Ok(Compared::LeftOut(error.0)),
        by_fio => by_fio,
    };
    let differences = match (by_fio, run(case, Program::Rubus, max_time)?) {
        (Err(_), Err(_)) => Vec::new(),
        (Err(Refused(error)), Ok(_)) => vec![format!("only fio refuses it: {error}")],
        // fio does nothing then, and says that all is well.
        (Ok(fio), Err(Refused(error)))
            if NO_BLOCK.iter().any(|words| error.contains(words)) && fio.is_idle_somewhere() =>
        {
            Vec::new()
        }
        (Ok(_), Err(Refused(error))) => vec![format!("only Rubus refuses it: {error}")],
        (Ok(fio), Ok(rubus)) => different_results(case, &fio, &rubus),
    };
    Ok(if differences.is_empty() { Compared::Same } else { Compared::Different(differences) })
}

fn different_results(case: &Case, by_fio: &Done, by_rubus: &Done) -> Vec<String> {
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
        for (fio, rubus) in of(by_fio).into_iter().zip(of(by_rubus)) {
            found.extend(different_amounts(section, fio, rubus));
        }
    }
    let is_comparable =
        case.sections.iter().all(|s| s.is_determined && s.is_traceable && !s.is_loose);
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
    let compared =
        |sides: [(u64, u64); 2]| if section.reads_back_some { [(0, 0), sides[1]] } else { sides };
    let (fio, rubus) = (compared(fio), compared(rubus));
    let all = |sides: [(u64, u64); 2]| (sides[0].0 + sides[1].0, sides[0].1 + sides[1].1);
    let ((fio_operations, fio_bytes), (operations, bytes)) = (all(fio), all(rubus));
    let is_mix = section.reads && section.writes;
    let (operations_off, bytes_off) = if section.is_even && section.has_rest_of_align {
        (section.copies, section.copies * section.longest)
    } else if section.is_even {
        (0, 0)
    } else if section.ends_by_operations {
        // Each has a number of operations, and sizes of its own.
        (fio_operations / 2 + 4, u64::MAX)
    } else {
        // The mean size of a few operations varies.
        (fio_operations / 2 + 4, 2 * section.longest * section.copies)
    };
    let flushes = section.counted_flushes();
    let (operations_off, bytes_off) =
        (operations_off + flushes, bytes_off.saturating_add(flushes * section.longest));
    // The share of the reads is chance in both: five deviations of the difference, at an even share.
    let reads_off = if is_mix {
        (3.6 * (fio_operations as f64).sqrt()).ceil() as u64 + operations_off
    } else {
        operations_off
    };
    if section.is_loose {
        let is_any = |sides: [(u64, u64); 2]| sides.map(|(operations, _)| operations > 0);
        let enough = if is_mix { MIN_MIXED } else { 4 };
        let is_significant = operations > enough && fio_operations > enough;
        let differs = is_significant && is_any(fio) != is_any(rubus);
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

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Program::Fio => "fio",
            Program::Rubus => "Rubus",
        })
    }
}

fn run(
    case: &Case,
    program: Program,
    max_time: Duration,
) -> Result<Result<Done, Refused>, Unfinished> {
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
    let words = home.path().join("words");
    let file = std::fs::File::create(&words).expect("a file");
    command.current_dir(&place).stdout(Stdio::null()).stderr(file);
    let is_well = ends_well(&mut command, max_time).ok_or(Unfinished(program))?;
    let said = said(&words);
    // fio tells of a job that crashed, and that all is well.
    if !is_well || said.contains(CRASHED) {
        return Ok(Err(Refused(said)));
    }
    let place = place.canonicalize().expect("the directory is there");
    let done = jobs(&result).map(|jobs| Done { jobs, files: observed::accesses(&traces, &place) });
    Ok(done.map_err(Refused))
}

/// Runs it to its end and says whether it was content; nothing if it was stopped after this time.
fn ends_well(strace: &mut Command, max_time: Duration) -> Option<bool> {
    let mut child = strace.spawn().expect("strace starts");
    let end = Instant::now() + max_time;
    loop {
        if let Some(status) = child.try_wait().expect("strace is ours") {
            return Some(status.success());
        }
        if Instant::now() >= end {
            // What strace has started does not outlive it.
            child.kill().expect("strace is ours");
            child.wait().expect("strace is ours");
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn said(words: &Path) -> String {
    let text = std::fs::read(words).expect("a file");
    let text = String::from_utf8_lossy(&text);
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
