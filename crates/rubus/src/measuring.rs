//! The way from a resolved target to a stored run: announce, measure, judge, keep.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use rubus_host::clock;
use rubus_measure::{BenchError, Queueing, Session, SessionOutcome, Target, WatchPaths, suites};
use rubus_runs::store::History;
use rubus_verdict::verdict::{Verdict, doubt_the_impossible, verdict};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::machine::{Machine, Power};
use rubus_vocabulary::result::{Against, Figures, Run, TargetFacts};
use rubus_vocabulary::spec::{FileNeed, Job, Operation, Suite};
use rubus_vocabulary::spelling::edits;
use rubus_vocabulary::units::{bytes_iec, percent};

use crate::args::Keeping;
use crate::places;
use crate::progress::LiveLine;
use crate::rbd;
use crate::shown::shown_run;
use crate::target::{Known, Resolved};
use crate::world::{Terminal, World};

/// However fine the wanted precision, a job takes at most so many times its usual time.
const MAX_LONGER: f64 = 25.0;

/// A run with what it means and how it ended.
pub struct Measured {
    /// What was measured.
    pub run: Run,
    /// What it means.
    pub verdict: Verdict,
    /// Why the session ended early, if it did.
    pub ended_by: Option<BenchError>,
    /// Jobs that could not be run on this target, with the reason.
    pub left_out: Vec<String>,
}

impl Measured {
    /// A run that went to its end, and left nothing out that it does not say itself.
    pub fn of(run: Run) -> Measured {
        Measured { verdict: verdict(&run), run, ended_by: None, left_out: Vec::new() }
    }
}

/// What the user wants of a suite in place of its own limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct SuiteLimits {
    /// Size of the test file or region, in bytes.
    pub region_bytes: Option<u64>,
    /// Bytes that may be written in all.
    pub budget_bytes: Option<u64>,
    /// All of a device, where there is the choice.
    pub is_whole: bool,
}

/// The suite of that name for this target.
///
/// # Errors
/// When there is no such suite (the nearest name is suggested), too little room, or a wanted size
/// that does not fit.
pub fn suite_for(name: &str, target: &Resolved, wanted: SuiteLimits) -> anyhow::Result<Suite> {
    // Of memory the user has said how much is to be used, not how much there is.
    let is_free_space = target.target.is_own_file() && !target.is_memory();
    anyhow::ensure!(
        name != "ram" || target.is_memory(),
        "the suite 'ram' is for memory: name a target such as ram:256MiB instead of {}",
        target.path.display()
    );
    anyhow::ensure!(
        name != "small-files" || matches!(target.target, Target::Directory { .. }),
        "the suite 'small-files' makes files: name a directory on the disk instead of {}",
        target.path.display()
    );
    if let Some(size) = wanted.region_bytes {
        fits(size, target, is_free_space)?;
    }
    let path = target.path.display().to_string();
    let mut room = suites::Room {
        region_bytes: wanted.region_bytes,
        budget_bytes: wanted.budget_bytes,
        is_whole: wanted.is_whole,
        endurance: target.endurance,
        ..suites::Room::new(&path, target.room_bytes, is_free_space)
    };
    if let (Target::Directory { .. }, Ok(found)) =
        (&target.target, rustix::fs::statvfs(&target.path))
    {
        // Filesystems that make room for files as they come say 0.
        room.files = Some(found.f_favail).filter(|_| found.f_files > 0);
        room.cluster_bytes = found.f_frsize;
    }
    match suites::by_name(name, &room) {
        Some(suite) => Ok(for_memory(suite?, target)),
        None => anyhow::bail!(
            "there is no suite '{name}'; did you mean '{}'? (`rubus suites` lists them)",
            nearest(name, &suites::names()),
        ),
    }
}

/// Whether a wanted size fits: all of a file or device, nine tenths of what is free for a file of
/// our own.
fn fits(size: u64, target: &Resolved, is_free_space: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        !target.is_memory(),
        "--size does not go with {}, which says how much memory to use",
        target.named
    );
    let most = match is_free_space {
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
    Ok(())
}

/// The suite without commits where the target is memory, which has nothing to make durable.
fn for_memory(mut suite: Suite, target: &Resolved) -> Suite {
    if target.is_memory() {
        suite.jobs.retain(|job| !job.durability.is_each());
    }
    suite
}

/// The suite with another precision than its own: half the width of the 95 % interval as a share of
/// the value. An interval half as wide needs four times the samples, so the time that a job may take
/// grows with the square; what it may write does not, since flash does not grow back.
pub fn with_precision(mut suite: Suite, relative_half_width: f64) -> Suite {
    fn set(job: &mut Job, relative_half_width: f64) -> f64 {
        let finer = (job.stop.relative_half_width / relative_half_width).max(1.0);
        let longer = (finer * finer).min(MAX_LONGER);
        job.stop.relative_half_width = relative_half_width;
        job.stop.max_seconds *= longer;
        for beside in &mut job.beside {
            set(beside, relative_half_width);
        }
        longer
    }
    let mut longest: f64 = 1.0;
    for job in &mut suite.jobs {
        longest = longest.max(set(job, relative_half_width));
    }
    suite.max_seconds = suite.max_seconds.map(|seconds| seconds * longest);
    suite
}

/// The name with the fewest edits from what was typed.
pub fn nearest<'a>(typed: &str, names: &[&'a str]) -> &'a str {
    names.iter().min_by_key(|name| edits(typed, name)).copied().unwrap_or("")
}

/// Says what is going to be written before anything is.
pub fn announce(suite: &Suite, target: &Resolved) -> String {
    let place = target.path.display();
    if target.is_memory() {
        return format!(
            "Measuring memory: uses {} of it and touches no disk. What this gives is the speed of the kernel's \
             way to a file and of this machine's memory copies, which no disk here can exceed.",
            bytes_iec(suite.region_bytes)
        );
    }
    if suite.jobs.iter().any(|job| job.operation.is_of_file()) {
        return announce_files(suite, target);
    }
    if suite.jobs.iter().any(|job| job.operation == Operation::Stamp) {
        return announce_stamps(suite, target);
    }
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

/// The same for a tree of small files.
fn announce_files(suite: &Suite, target: &Resolved) -> String {
    let sizes = suite.jobs.iter().map(|job| u64::from(job.block_bytes));
    let file_bytes = sizes.max().unwrap_or(0).max(1);
    let files = suite.region_bytes / file_bytes;
    let free = rustix::fs::statvfs(&target.path).ok();
    let of_files = free
        .filter(|found| found.f_files > 0 && found.f_favail > 0)
        .map(|found| {
            format!(
                " ({} of the files that it can still hold)",
                percent(files as f64 / found.f_favail as f64)
            )
        })
        .unwrap_or_default();
    format!(
        "Measuring the disk under {}: makes and removes small files, at most {files} of {} at a time{of_files}, which \
         take {} ({} of what is free), and writes {} at most in all. They are in a directory .rubus-tree-… of its own, \
         which is removed at the end, or by the next run if this one is killed.",
        target.path.display(),
        bytes_iec(file_bytes),
        bytes_iec(suite.region_bytes),
        percent(suite.region_bytes as f64 / target.room_bytes.max(1) as f64),
        bytes_iec(suites::plan_writes(suite, true))
    )
}

/// The same for blocks that say where they belong.
fn announce_stamps(suite: &Suite, target: &Resolved) -> String {
    let place = target.path.display();
    let writes = suites::plan_writes(suite, false);
    if writes == 0 {
        return format!(
            "Looking on {place} for what the run with seed {} has written: only reads, nothing is written.",
            suite.seed
        );
    }
    let again = format!("seed {}", suite.seed);
    if target.target.is_own_file() {
        let left = target.room_bytes.saturating_sub(writes);
        return format!(
            "Filling the disk under {place}: writes {} ({} of what is free) to nameless files, reads them back and \
             removes them; {} stay free meanwhile. ({again})",
            bytes_iec(writes),
            percent(writes as f64 / target.room_bytes.max(1) as f64),
            bytes_iec(left)
        );
    }
    let how = match writes < suite.region_bytes {
        true => format!("writes a sample of {} all over its", bytes_iec(writes)),
        false => "writes all of its".into(),
    };
    format!(
        "Testing the capacity of {place}: {how} {} and reads it back; WHAT IS THERE IS LOST. ({again})",
        bytes_iec(suite.region_bytes)
    )
}

/// Where a suite runs: on one target, or on several files of which the first stands for the run.
pub struct Places {
    /// The target, or file number 0.
    pub target: Resolved,
    /// Files number 1, 2 and so on.
    pub more_files: Vec<Target>,
    /// What the files have to be before the first job.
    pub needs: Vec<FileNeed>,
}

impl From<Resolved> for Places {
    fn from(target: Resolved) -> Self {
        Places { target, more_files: Vec::new(), needs: Vec::new() }
    }
}

/// Runs the suite and judges what came out.
///
/// # Errors
/// When the session could not begin at all.
pub fn measure(
    places: impl Into<Places>,
    suite: &Suite,
    world: &World,
    machine: Machine,
    cancel: &AtomicBool,
    queueing: Queueing,
    terminal: Terminal,
) -> anyhow::Result<Measured> {
    let Places { target, more_files, needs } = places.into();
    let (started, began_s) = (clock::now_rfc3339(), rbd::now_s());
    let (target, known) = target.split();
    let session = Session {
        watch: watch_paths(&known, &machine.power),
        target,
        more_files,
        needs,
        suite,
        cancel,
        queueing,
    };
    let mut line = LiveLine::new(terminal);
    let outcome = rubus_measure::run(session, &mut line)?;
    let left_out = line.take_left_out();
    drop(line);
    Ok(Measured { left_out, ..judged(known, suite, world, machine, (started, began_s), outcome) })
}

/// Runs the suite on two targets in turns, the baseline first, and judges what came out. The second
/// run has the rounds of both.
///
/// # Errors
/// When the sessions could not begin at all.
pub fn measure_in_turns(
    targets: [Resolved; 2],
    suite: &Suite,
    world: &World,
    machine: &Machine,
    cancel: &AtomicBool,
    queueing: Queueing,
    terminal: Terminal,
) -> anyhow::Result<[Measured; 2]> {
    let (started, began_s) = (clock::now_rfc3339(), rbd::now_s());
    let [baseline, other] = targets.map(Resolved::split);
    let session = |target: Target, known: &Known| Session {
        watch: watch_paths(known, &machine.power),
        target,
        more_files: Vec::new(),
        needs: Vec::new(),
        suite,
        cancel,
        queueing,
    };
    let sessions = [session(baseline.0, &baseline.1), session(other.0, &other.1)];
    let mut line = LiveLine::new(terminal);
    let turned = rubus_measure::run_in_turns(sessions, &mut line)?;
    drop(line);
    let [first, second] = turned.outcomes;
    let judge = |known: Known, outcome: SessionOutcome| {
        judged(known, suite, world, machine.clone(), (started.clone(), began_s), outcome)
    };
    let baseline = judge(baseline.1, first);
    let mut other = judge(other.1, second);
    other.run.against =
        Some(Against { started, target: baseline.run.target.path.clone(), jobs: turned.jobs });
    Ok([baseline, other])
}

/// A session's outcome as a run, with what it means. It began at a moment of [`rbd::now_s`].
fn judged(
    target: Known,
    suite: &Suite,
    world: &World,
    machine: Machine,
    (started, began_s): (String, f64),
    outcome: SessionOutcome,
) -> Measured {
    let mut run = Run {
        rubus_version: env!("CARGO_PKG_VERSION").into(),
        target: TargetFacts {
            named: target.named,
            path: target.path.display().to_string(),
            filesystem: target.filesystem.or(outcome.target.filesystem),
            device: target.device,
            link: target.link,
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
        findings: outcome.findings,
        on: None,
        job_file: None,
        against: None,
        figures: Figures::Disk,
    };
    if let Some(cluster) = &target.cluster {
        cluster.tell(&mut run, began_s);
    }
    run.doubts.extend(power_doubts(&run.machine.power, &world.survey().power));
    doubt_the_impossible(&mut run);
    run.findings.extend(rubus_verdict::findings::of(&run));
    rubus_verdict::findings::add_rules(&mut run);
    Measured { ended_by: outcome.ended_by, ..Measured::of(run) }
}

/// Where the watcher looks: the files that the survey found to hold something.
fn watch_paths(target: &Known, power: &Power) -> WatchPaths {
    let file = |source: &str| Some(PathBuf::from(source)).filter(|path| path.starts_with("/sys"));
    WatchPaths {
        device: target.device.clone(),
        temperatures: power
            .temperatures
            .iter()
            .filter(|temperature| temperature.millicelsius.value().is_some())
            .filter_map(|temperature| file(temperature.millicelsius.source()))
            .collect(),
        throttled_word: power.throttling.value().and_then(|_| file(power.throttling.source())),
        undervoltage_alarm: power
            .undervoltage_alarm
            .value()
            .and_then(|_| file(power.undervoltage_alarm.source())),
        throttle_counters: Vec::new(),
        far_end: target.far_end.clone(),
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
        (after.capped_now || (after.capped_seen && !before.capped_seen), "frequency capped"),
        (after.throttled_now || (after.throttled_seen && !before.throttled_seen), "throttled"),
        (
            after.soft_limit_now || (after.soft_limit_seen && !before.soft_limit_seen),
            "soft temperature limit",
        ),
    ];
    let what: Vec<&str> =
        held_down.iter().filter(|(happened, _)| *happened).map(|(_, what)| *what).collect();
    if !what.is_empty() {
        doubts.push(Doubt::Throttled { what: what.join(", ") });
    }
    doubts
}

/// Where a run was kept.
#[derive(Debug, Default)]
pub struct Kept {
    /// Its number in the history.
    pub number: Option<i64>,
    pub page: Option<PathBuf>,
    /// What could not be kept, and why.
    pub troubles: Vec<String>,
}

/// Stores a run in the history and writes its page. A run that cannot be kept is still shown, so
/// troubles are told and not returned as errors.
pub fn keep(measured: &Measured, keeping: &Keeping) -> Kept {
    let mut kept = Kept::default();
    if !keeping.kept.no_history {
        match add_to_history(measured, keeping.kept.label.as_deref()) {
            Ok(number) => kept.number = Some(number),
            Err(error) => kept.troubles.push(format!("this run is not in the history: {error:#}")),
        }
    }
    // The page is about disks.
    let is_of_disk = measured.run.figures == Figures::Disk;
    if !keeping.no_html && is_of_disk {
        match write_page(measured, keeping, kept.number) {
            Ok(path) => kept.page = Some(path),
            Err(error) => kept.troubles.push(format!("no page was written: {error:#}")),
        }
    }
    kept
}

fn add_to_history(measured: &Measured, label: Option<&str>) -> anyhow::Result<i64> {
    let mut history = History::open(&places::history()?)?;
    // A suite with a question of its own is remembered by its answer.
    let found = match &measured.run.figures {
        Figures::Memory(memory) => Some(rubus_memory::text::headline(memory)),
        Figures::Processor(processor) => Some(rubus_processor::text::headline(processor)),
        Figures::Disk => rubus_verdict::text::findings::headline(&measured.run),
    };
    let headline = match rubus_runs::text::run::is_checkup(&measured.run) {
        false => found.as_ref().unwrap_or(&measured.verdict.headline),
        true => &measured.verdict.headline,
    };
    Ok(history.add_labelled(&measured.run, headline, label)?.0)
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
    let (run, verdict) = shown_run(&measured.run, keeping.with_serials)?;
    let page = rubus_page::render(&run, &verdict);
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
    use rubus_vocabulary::fact::Fact;
    use rubus_vocabulary::machine::Throttling;

    #[test]
    fn only_what_is_new_or_now_is_held_against_a_run() {
        let power = |word| Power {
            temperatures: Vec::new(),
            throttling: Fact::known(Throttling::decode(word), "test"),
            undervoltage_alarm: Fact::unknown("none", "test"),
        };
        assert_eq!(power_doubts(&power(0x50000), &power(0x50000)), []);
        assert_eq!(power_doubts(&power(0), &power(0x10000)), [Doubt::Undervoltage]);
        let throttled = Doubt::Throttled { what: "frequency capped, throttled".into() };
        assert_eq!(power_doubts(&power(0x40000), &power(0x60004)), [throttled]);
    }

    #[test]
    fn twice_the_precision_may_take_four_times_as_long_and_write_no_more() {
        let usual = suites::quick("here", 1 << 40, true).expect("there is room");
        let finer = with_precision(usual.clone(), 0.05);
        for (usual, finer) in usual.jobs.iter().zip(&finer.jobs) {
            assert_eq!(finer.stop.relative_half_width, 0.05);
            assert_eq!(finer.stop.max_seconds, usual.stop.max_seconds * 4.0);
            assert_eq!(finer.stop.max_bytes, usual.stop.max_bytes);
        }
        assert_eq!(finer.max_seconds, usual.max_seconds.map(|s| s * 4.0));
        let coarser = with_precision(usual.clone(), 0.20);
        assert_eq!(coarser.max_seconds, usual.max_seconds);
        let finest = with_precision(usual.clone(), 0.001);
        assert_eq!(finest.max_seconds, usual.max_seconds.map(|s| s * MAX_LONGER));
    }

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        assert_eq!(nearest("qiuck", &["full", "quick", "commit"]), "quick");
    }
}
