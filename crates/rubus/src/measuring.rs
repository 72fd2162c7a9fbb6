//! The way from a resolved target to a stored run: announce, measure, judge, keep.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use rubus_bench::{BenchError, Session, WatchPaths, suites};
use rubus_core::doubt::Doubt;
use rubus_core::machine::{Machine, Power};
use rubus_core::result::{Run, TargetFacts};
use rubus_core::spec::Suite;
use rubus_core::units::{bytes_iec, percent};
use rubus_core::verdict::{Verdict, doubt_the_impossible, verdict};
use rubus_host::clock;
use rubus_store::History;

use crate::args::Keeping;
use crate::places;
use crate::progress::LiveLine;
use crate::target::Resolved;
use crate::world::{Terminal, World};

/// A run with what it means and how it ended.
pub struct Measured {
    /// What was measured.
    pub run: Run,
    /// What it means.
    pub verdict: Verdict,
    /// Why the session ended early, if it did.
    pub ended_by: Option<BenchError>,
}

/// The suite of that name for this target.
///
/// # Errors
/// When there is no such suite (the nearest name is suggested) or too little room.
pub fn suite_for(name: &str, target: &Resolved) -> anyhow::Result<Suite> {
    let path = target.path.display().to_string();
    let own_file = target.target.is_own_file();
    match suites::by_name(name, &path, target.room_bytes, own_file) {
        Some(suite) => Ok(suite?),
        None => anyhow::bail!(
            "there is no suite '{name}'; did you mean '{}'? (there are: {})",
            nearest(name, &suites::NAMES),
            suites::NAMES.join(", ")
        ),
    }
}

/// The suite with a region of the user's size instead of its own.
///
/// # Errors
/// When the target has less room than that: all of a file or device, nine tenths of what is free
/// for a file of our own.
pub fn with_region(mut suite: Suite, size: u64, target: &Resolved) -> anyhow::Result<Suite> {
    let most = match target.target.is_own_file() {
        true => target.room_bytes / 10 * 9,
        false => target.room_bytes,
    };
    anyhow::ensure!(
        (1 << 20..=most).contains(&size),
        "--size {} does not fit {}: give something from 1 MiB to {}",
        bytes_iec(size),
        target.path.display(),
        bytes_iec(most)
    );
    for job in &mut suite.jobs {
        // The job that fills the file has its size as its least number of bytes.
        if job.stop.min_bytes == suite.region_bytes {
            job.stop.min_bytes = size;
            job.stop.max_bytes = job.stop.max_bytes.max(size);
        }
    }
    suite.region_bytes = size;
    Ok(suite)
}

/// The name with the fewest edits from what was typed.
fn nearest<'a>(typed: &str, names: &[&'a str]) -> &'a str {
    names
        .iter()
        .min_by_key(|name| edits(typed, name))
        .copied()
        .unwrap_or("")
}

/// Levenshtein distance.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

/// Says what is going to be written before anything is.
pub fn announce(suite: &Suite, target: &Resolved) -> String {
    let place = target.path.display();
    let writes = suites::plan_writes(suite, target.target.is_own_file());
    if writes == 0 {
        return format!("Measuring {place}: only reads, nothing is written.");
    }
    let at_most = bytes_iec(writes);
    if target.target.is_own_file() {
        let share = suite.region_bytes as f64 / target.room_bytes.max(1) as f64;
        return format!(
            "Measuring the disk under {place}: writes {at_most} at most, to a nameless file of {} ({} of \
             what is free) that is gone at the end.",
            bytes_iec(suite.region_bytes),
            percent(share)
        );
    }
    format!(
        "Measuring {place}: writes {at_most} at most over its first {}; WHAT IS THERE IS LOST.",
        bytes_iec(suite.region_bytes)
    )
}

/// Runs the suite and judges what came out.
///
/// # Errors
/// When the session could not begin at all.
pub fn measure(
    target: Resolved,
    suite: &Suite,
    world: &World,
    machine: Machine,
    cancel: &AtomicBool,
    may_use_ring: bool,
    terminal: Terminal,
) -> anyhow::Result<Measured> {
    let started = clock::now_rfc3339();
    let session = Session {
        watch: watch_paths(target.device.clone(), &machine.power),
        target: target.target,
        suite,
        cancel,
        may_use_ring,
    };
    let mut line = LiveLine::new(terminal);
    let outcome = rubus_bench::run(session, &mut line)?;
    drop(line);
    let mut run = Run {
        rubus_version: env!("CARGO_PKG_VERSION").into(),
        target: TargetFacts {
            named: target.named,
            path: target.path.display().to_string(),
            filesystem: target.filesystem.or(outcome.target.filesystem),
            device: target.device,
            ..outcome.target
        },
        machine,
        suite: suite.name.clone(),
        seed: suite.seed,
        started,
        elapsed_s: outcome.elapsed_s,
        bytes_written: outcome.bytes_written,
        calibration: outcome.calibration,
        results: outcome.results,
        doubts: outcome.doubts,
    };
    run.doubts
        .extend(power_doubts(&run.machine.power, &world.survey().power));
    doubt_the_impossible(&mut run);
    Ok(Measured {
        verdict: verdict(&run),
        run,
        ended_by: outcome.ended_by,
    })
}

/// Where the watcher looks: the files that the survey found to hold something.
fn watch_paths(device: Option<String>, power: &Power) -> WatchPaths {
    let file = |source: &str| Some(PathBuf::from(source)).filter(|path| path.starts_with("/sys"));
    WatchPaths {
        device,
        temperatures: power
            .temperatures
            .iter()
            .filter(|temperature| temperature.millicelsius.value().is_some())
            .filter_map(|temperature| file(temperature.millicelsius.source()))
            .collect(),
        throttled_word: power
            .throttling
            .value()
            .and_then(|_| file(power.throttling.source())),
        undervoltage_alarm: power
            .undervoltage_alarm
            .value()
            .and_then(|_| file(power.undervoltage_alarm.source())),
        throttle_counters: Vec::new(),
    }
}

/// What the firmware's sticky bits say happened between two looks, for boards on which the watcher
/// has no file to watch.
pub fn power_doubts(before: &Power, after: &Power) -> Vec<Doubt> {
    let (Some(before), Some(after)) = (before.throttling.get(), after.throttling.get()) else {
        return Vec::new();
    };
    let mut doubts = Vec::new();
    if after.undervoltage_now || (after.undervoltage_seen && !before.undervoltage_seen) {
        doubts.push(Doubt::Undervoltage);
    }
    let held_down = [
        (
            after.capped_now || (after.capped_seen && !before.capped_seen),
            "frequency capped",
        ),
        (
            after.throttled_now || (after.throttled_seen && !before.throttled_seen),
            "throttled",
        ),
        (
            after.soft_limit_now || (after.soft_limit_seen && !before.soft_limit_seen),
            "soft temperature limit",
        ),
    ];
    let what: Vec<&str> = held_down
        .iter()
        .filter(|(happened, _)| *happened)
        .map(|(_, what)| *what)
        .collect();
    if !what.is_empty() {
        doubts.push(Doubt::Throttled {
            what: what.join(", "),
        });
    }
    doubts
}

/// Where a run was kept.
#[derive(Debug, Default)]
pub struct Kept {
    /// Its number in the history.
    pub number: Option<i64>,
    /// Its page.
    pub page: Option<PathBuf>,
    /// What could not be kept, and why.
    pub troubles: Vec<String>,
}

/// Stores a run in the history and writes its page. A run that cannot be kept is still shown, so
/// troubles are told and not returned as errors.
pub fn keep(measured: &Measured, keeping: &Keeping) -> Kept {
    let mut kept = Kept::default();
    if !keeping.no_history {
        match add_to_history(measured) {
            Ok(number) => kept.number = Some(number),
            Err(error) => kept
                .troubles
                .push(format!("this run is not in the history: {error:#}")),
        }
    }
    if !keeping.no_html {
        match write_page(measured, keeping, kept.number) {
            Ok(path) => kept.page = Some(path),
            Err(error) => kept
                .troubles
                .push(format!("no page was written: {error:#}")),
        }
    }
    kept
}

fn add_to_history(measured: &Measured) -> anyhow::Result<i64> {
    let mut history = History::open(&places::history()?)?;
    Ok(history.add(&measured.run, &measured.verdict.headline)?.0)
}

fn write_page(
    measured: &Measured,
    keeping: &Keeping,
    number: Option<i64>,
) -> anyhow::Result<PathBuf> {
    let path = match &keeping.html {
        Some(path) => path.clone(),
        None => default_page(number, &measured.run.started)?,
    };
    let page = rubus_show::page::render(&measured.run, &measured.verdict);
    places::write_whole(&path, &page)?;
    Ok(std::path::absolute(&path).unwrap_or(path))
}

/// `run-12.html`, or a name from the time for a run that is not in the history.
fn default_page(number: Option<i64>, started: &str) -> anyhow::Result<PathBuf> {
    let directory = places::data_directory()?.join("pages");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let name = match number {
        Some(number) => format!("run-{number}.html"),
        None => format!("run-{}.html", started.replace(':', "")),
    };
    Ok(directory.join(Path::new(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_core::fact::Fact;
    use rubus_core::machine::Throttling;

    #[test]
    fn only_what_is_new_or_now_is_held_against_a_run() {
        let power = |word| Power {
            temperatures: Vec::new(),
            throttling: Fact::known(Throttling::decode(word), "test"),
            undervoltage_alarm: Fact::unknown("none", "test"),
        };
        assert_eq!(power_doubts(&power(0x50000), &power(0x50000)), []);
        assert_eq!(
            power_doubts(&power(0), &power(0x10000)),
            [Doubt::Undervoltage]
        );
        let throttled = Doubt::Throttled {
            what: "frequency capped, throttled".into(),
        };
        assert_eq!(power_doubts(&power(0x40000), &power(0x60004)), [throttled]);
    }

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        assert_eq!(nearest("qiuck", &["full", "quick", "commit"]), "quick");
        assert_eq!(edits("kitten", "sitting"), 3);
    }
}
