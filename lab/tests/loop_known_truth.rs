//! The program measures devices whose truth is known.
//!
//! A loop device in memory is throttled by the block control group: the program must find the limit within 3 %, and fio
//! on the same device must agree within 5 %. A file pauses at known times: every pause must be found and timed. Another
//! program occupies the processor, and the device must not be blamed. Other reads and writes must be noticed. Files on
//! tmpfs, ext4 and btrfs must be labelled with what direct I/O means there.
//!
//! The program runs with the highest priority of an ordinary program. The tests take turns, since what runs beside a measurement is measured too; run the file alone, with
//! `--nocapture` for the tables. A run that the program itself calls disturbed is repeated up
//! to two times; the bounds stay.

use std::cell::RefCell;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::fio::{self, FioJob, FioResult};
use crate::common::pressure::Pressure;
use crate::common::program::{Answer, Home, binary};
use crate::common::run::{self, JobResult, Stall, measure_undisturbed};
use crate::common::{can_run, leftovers, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{
    FilesystemKind, Limits, PausingDevice, SmallFilesystem, Span, ThrottledLoop, occupy_processor,
};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// What disturbs a throttled device: others' use of the processors or of the device.
const DISTURBANCES: [&str; 3] = ["cpu_starved", "cpu_stolen", "other_traffic"];

/// Arguments of `nice` for the highest priority of an ordinary program.
const FIRST: [&str; 2] = ["-n", "-20"];

// --- Rates ----------------------------------------------------------------------------------

/// How far a measured rate may be from the limit of the device.
const FROM_THE_TRUTH: f64 = 0.03;
/// How far it may be from what fio measures.
const FROM_FIO: f64 = 0.05;

#[test]
fn measured_rates_are_the_limits_of_the_device_and_agree_with_fio() {
    let _turn = take_turns();
    let needs = [Need::Root, Need::Loop, Need::BlockThrottle, Need::Program("fio", "fio")];
    if !can_run("known rates", &needs) {
        return;
    }
    let slow = Limits {
        read_bytes_per_second: Some(20 * MIB),
        write_bytes_per_second: Some(12 * MIB),
        read_iops: Some(500),
        write_iops: Some(300),
    };
    let faster = Limits {
        read_bytes_per_second: Some(60 * MIB),
        write_bytes_per_second: Some(45 * MIB),
        read_iops: Some(3000),
        write_iops: Some(2000),
    };
    // Each device has its own limits and hardly needs a processor, so both can be measured at once.
    // Both are made first: `losetup` looks at every loop device while it searches for a free one.
    let devices = [slow, faster]
        .map(|limits| (ThrottledLoop::new(64 * MIB, limits).expect("a throttled device"), limits));
    let rows: Vec<Row> = std::thread::scope(|scope| {
        let runs = devices
            .each_ref()
            .map(|(device, limits)| scope.spawn(move || compare_with_truth(device, *limits)));
        runs.into_iter().flat_map(|run| run.join().expect("a measurement")).collect()
    });
    report(&table(&rows));
    let wrong: Vec<String> = rows.iter().filter_map(Row::complaint).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Each kind of job with each of the two limits, or something was left out.
    assert!(rows.len() >= 14, "only {} rows", rows.len());
}

/// One job: what is true, what the program says, what fio says.
struct Row {
    job: String,
    block_bytes: f64,
    truth: f64,
    ours: (f64, f64, f64),
    fio: FioResult,
}

impl Row {
    /// Holds for bytes and for operations alike: a block has a fixed size.
    fn complaint(&self) -> Option<String> {
        let from_truth = self.ours.0 / self.truth - 1.0;
        if is_far(self.ours.0, self.truth, FROM_THE_TRUTH) {
            return Some(format!("{}: {:+.1} % from the truth", self.job, from_truth * 100.0));
        }
        let from_fio = self.ours.0 / self.fio.bytes_per_second - 1.0;
        (from_fio.abs() > FROM_FIO)
            .then(|| format!("{}: {:+.1} % from fio", self.job, from_fio * 100.0))
    }

    fn holds_truth(&self) -> bool {
        (self.ours.1..=self.ours.2).contains(&self.truth)
    }
}

fn compare_with_truth(device: &ThrottledLoop, limits: Limits) -> Vec<Row> {
    let lose = format!("--i-will-lose-everything-on={}", device.path().display());
    let home = Home::new();
    let is_good = |run: &Value| {
        let mut jobs = known_jobs(run);
        jobs.all(|job| !is_far(ours(&job).0, truth(limits, &job), FROM_THE_TRUTH))
    };
    let run = measure_undisturbed(&DISTURBANCES, is_good, || {
        let mut command = bench(device.command("nice"), &home, device.path());
        command.arg(&lose);
        finished(&mut command).json()
    });
    let row = |job: JobResult| {
        let truth = truth(limits, &job);
        Row {
            job: job.name().to_string(),
            block_bytes: job.number("block_bytes"),
            truth,
            ours: ours(&job),
            fio: reference(device, &job, truth),
        }
    };
    known_jobs(&run).map(row).collect()
}

/// The jobs whose truth is known. How two concurrent jobs share the throttle is unpredictable, and commits do not
/// belong on a bare device.
fn known_jobs(run: &Value) -> impl Iterator<Item = JobResult<'_>> {
    let known = |job: &JobResult| !job.is_commit() && !job.name().starts_with("bystander");
    run::results(run).into_iter().filter(known)
}

fn ours(job: &JobResult) -> (f64, f64, f64) {
    job.estimate("bytes_per_second")
}

/// Bytes per second, by the narrower of the two limits.
fn truth(limits: Limits, job: &JobResult) -> f64 {
    let (bytes, operations) = match job.direction() {
        "read" => (limits.read_bytes_per_second, limits.read_iops),
        _ => (limits.write_bytes_per_second, limits.write_iops),
    };
    let by_bytes = bytes.map_or(f64::INFINITY, |bytes| bytes as f64);
    let block_bytes = job.number("block_bytes");
    by_bytes.min(operations.map_or(f64::INFINITY, |count| count as f64 * block_bytes))
}

fn is_far(value: f64, from: f64, share: f64) -> bool {
    (value / from - 1.0).abs() > share
}

/// What fio measures.
fn reference(device: &ThrottledLoop, result: &JobResult, truth: f64) -> FioResult {
    let job = FioJob {
        pattern: result.fio_pattern(),
        block_bytes: result.number("block_bytes") as u64,
        depth: result.number("queue_depth") as u64,
        region_bytes: 64 * MIB,
        seconds: 4,
    };
    let command = || {
        let mut command = device.command("nice");
        command.args(FIRST).arg("fio");
        command
    };
    let bound = (truth, FROM_THE_TRUTH);
    fio::run_undisturbed(command, device.path(), job, bound, |fio| fio.bytes_per_second)
}

fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<18} {:>6} {:>12} {:>9} {:>19} {:>9} {:>8} {:>8}  interval holds the truth\n",
        "job", "unit", "truth", "rubus", "95 % interval", "fio", "/ truth", "/ fio"
    );
    for row in rows {
        // Large blocks are limited by bytes, small ones by operations.
        let (unit, name) =
            if row.block_bytes >= 1e6 { (MIB as f64, "MiB/s") } else { (row.block_bytes, "IOPS") };
        let fio = row.fio.bytes_per_second;
        text.push_str(&format!(
            "{:<18} {:>6} {:>12.1} {:>9.2} {:>19} {:>9} {:>8.3} {:>8}  {}\n",
            row.job,
            name,
            row.truth / unit,
            row.ours.0 / unit,
            format!("{:.2} to {:.2}", row.ours.1 / unit, row.ours.2 / unit),
            format!("{:.2}", fio / unit),
            row.ours.0 / row.truth,
            format!("{:.3}", row.ours.0 / fio),
            if row.holds_truth() { "yes" } else { "NO" },
        ));
    }
    let holding = rows.iter().filter(|row| row.holds_truth()).count();
    text.push_str(&format!("{holding} of {} intervals hold the truth", rows.len()));
    text
}

// --- Stalls ---------------------------------------------------------------------------------

/// How far the start of a stall may be from the truth, in seconds.
const START_S: f64 = 0.15;
/// How far its length may be from the truth: a share, and seconds for short ones.
const LENGTH: (f64, f64) = (0.10, 0.05);
/// A stall of the device at least this long must be one of ours, in seconds. Behind a file of nbdkit
/// there are programs too, and a shorter one may be their waiting for a processor.
const FALSE_S: f64 = 0.1;
/// The program may leave out this much at the start of a job as warm-up, in seconds.
const MAX_WARM_UP_S: f64 = 2.1;
/// And leaves out at least this much.
const MIN_WARM_UP_S: f64 = 0.5;

#[test]
fn every_pause_of_a_device_is_found_and_timed() {
    let _turn = take_turns();
    if !can_run("known pauses", &[Need::Root, Need::NbdFile]) {
        return;
    }
    let pauses = RefCell::new(Vec::new());
    let is_good = |run: &Value| complaints(run, &pauses.borrow(), "device").is_empty();
    let run = measure_undisturbed(&["cpu_starved", "cpu_stolen"], is_good, || {
        let mut device = PausingDevice::new(64 * MIB).expect("a pausing device");
        let home = Home::new();
        let mut command = bench(Command::new("nice"), &home, &device.path());
        command.arg("--read-only");
        pauses.borrow_mut().clear();
        let answer = while_running(&mut command, |number| {
            let length = [400, 700, 250, 1000, 550][number % 5];
            let pause = device.pause(Duration::from_millis(length));
            pauses.borrow_mut().push(pause.expect("a pause"));
            std::thread::sleep(Duration::from_millis([900, 1300, 700, 1100][number % 4]));
        });
        assert_eq!(answer.status, Some(0), "{answer}");
        answer.json()
    });
    check_stalls(&run, &pauses.borrow(), "device");
}

#[test]
fn an_occupied_processor_is_not_blamed_on_the_device() {
    let _turn = take_turns();
    let needs =
        [Need::Root, Need::Processors(2), Need::RealTime, Need::Program("taskset", "util-linux")];
    if !can_run("processor taken away", &needs) {
        return;
    }
    // Memory never waits: whatever stalls here is the processor's fault.
    let filesystem = SmallFilesystem::new(FilesystemKind::Tmpfs, 1024 * MIB).expect("a tmpfs");
    let (run, gone) = measure_while_a_processor_goes(filesystem.path());
    check_stalls(&run, &gone, "cpu_starvation");
    let doubts = run::all_doubts(&run);
    assert!(doubts.iter().any(|doubt| doubt == "cpu_starved"), "{doubts:?}");
}

/// A run of memory, pinned to the first processor, and the spans in which another program held that processor. It is
/// repeated up to two times when the spans themselves cannot be trusted: the wall clock was set, or something else ran
/// on the processor.
fn measure_while_a_processor_goes(memory: &Path) -> (Value, Vec<Span>) {
    let mut attempts = 1;
    loop {
        let since = Pressure::now();
        let mut untrue = None;
        let mut pinned = Command::new("taskset");
        pinned.args(["--cpu-list", "0", "nice"]);
        let home = Home::new();
        let mut command = bench(pinned, &home, memory);
        command.arg("--read-only");
        let mut gone = Vec::new();
        let answer = while_running(&mut command, |number| {
            let length = [350, 550, 250][number % 3];
            match occupy_processor(0, Duration::from_millis(length)) {
                Ok(span) => gone.push(span),
                Err(error) => untrue = Some(format!("{error:#}")),
            }
            std::thread::sleep(Duration::from_millis([650, 900][number % 2]));
        });
        assert_eq!(answer.status, Some(0), "{answer}");
        match since.clock_trouble().or(untrue) {
            None => return (answer.json(), gone),
            Some(reason) if attempts == 3 => panic!("no truth to compare with: {reason}"),
            Some(reason) => report(&format!("{reason}; measuring again")),
        }
        attempts += 1;
    }
}

#[test]
fn a_quiet_device_has_no_stalls() {
    let _turn = take_turns();
    if !can_run("quiet device", &[Need::Root, Need::NbdFile]) {
        return;
    }
    // The same kind of device as the one that pauses, but without pauses; and memory, which never waits.
    let device = PausingDevice::new(64 * MIB).expect("a pausing device");
    let memory = SmallFilesystem::new(FilesystemKind::Tmpfs, 1024 * MIB).expect("a tmpfs");
    for (target, shortest_s) in [(device.path().as_path(), FALSE_S), (memory.path(), 0.0)] {
        let home = Home::new();
        let stalls = |run: &Value| -> Vec<Stall> {
            let stalls = run::results(run).into_iter().flat_map(|job| job.stalls());
            stalls.filter(|stall| stall.cause == "device" && stall.length_s >= shortest_s).collect()
        };
        let run = measure_undisturbed(
            &["cpu_starved", "cpu_stolen"],
            |run| stalls(run).is_empty(),
            || {
                let mut command = bench(Command::new("nice"), &home, target);
                finished(command.arg("--read-only")).json()
            },
        );
        let seen = stalls(&run);
        assert!(seen.is_empty(), "{}: {seen:?}", target.display());
    }
}

fn check_stalls(run: &Value, spans: &[Span], cause: &str) {
    for found in found_stalls(run, spans) {
        report(&found.to_string());
    }
    let wrong = complaints(run, spans, cause);
    let all: Vec<Vec<Stall>> = run::results(run).iter().map(JobResult::stalls).collect();
    assert!(wrong.is_empty(), "{}\nstalls that the run has: {all:?}", wrong.join("\n"));
}

/// What is wrong: every span that lies surely within the measured part of a job must be a stall with
/// the right start, length and cause, and the device must be blamed for nothing else.
fn complaints(run: &Value, spans: &[Span], cause: &str) -> Vec<String> {
    let found = found_stalls(run, spans);
    let mut wrong: Vec<String> = found
        .iter()
        .filter(|found| found.stall.as_ref().is_none_or(|stall| stall.cause != cause))
        .map(|found| format!("{found}, not blamed on {cause}"))
        .collect();
    if found.len() < 6 {
        wrong.push(format!("only {} pauses lay within a measurement", found.len()));
    }
    for result in run::results(run) {
        let job_s = run::started_unix_s(run) + result.number("started_s");
        let is_ours = |stall: &Stall| {
            spans.iter().any(|span| {
                let start_s = span.began.unix_s() - job_s;
                stall.start_s < start_s + span.length().as_secs_f64() + START_S
                    && start_s < stall.start_s + stall.length_s + START_S
            })
        };
        let of_device = |stall: &Stall| stall.cause == "device" && stall.length_s >= FALSE_S;
        for stall in result.stalls().iter().filter(|s| of_device(s) && !is_ours(s)) {
            wrong.push(format!("{}: there was no {stall:?}", result.name()));
        }
    }
    wrong
}

/// A span that must have been found, and the stall that is it.
struct Found {
    job: String,
    start_s: f64,
    length_s: f64,
    stall: Option<Stall>,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (job, start_s, length_s) = (&self.job, self.start_s, self.length_s);
        write!(f, "{job:<18} true {start_s:>7.3} s {length_s:.3} s, ")?;
        match &self.stall {
            Some(stall) => {
                let (start_s, length_s, cause) = (stall.start_s, stall.length_s, &stall.cause);
                write!(f, "found {start_s:>7.3} s {length_s:.3} s {cause}")
            }
            None => write!(f, "not found"),
        }
    }
}

fn found_stalls(run: &Value, spans: &[Span]) -> Vec<Found> {
    let mut found = Vec::new();
    for result in run::results(run) {
        let job_s = run::started_unix_s(run) + result.number("started_s");
        let measured_to_s = result.number("elapsed_s") + MIN_WARM_UP_S;
        for span in spans {
            let start_s = span.began.unix_s() - job_s;
            let length_s = span.length().as_secs_f64();
            if start_s >= MAX_WARM_UP_S && start_s + length_s <= measured_to_s {
                found.push(Found {
                    job: result.name().to_string(),
                    start_s,
                    length_s,
                    stall: find(&result.stalls(), start_s, length_s).cloned(),
                });
            }
        }
    }
    found
}

fn find(stalls: &[Stall], start_s: f64, length_s: f64) -> Option<&Stall> {
    let tolerance_s = LENGTH.1.max(length_s * LENGTH.0);
    stalls.iter().find(|stall| {
        (stall.start_s - start_s).abs() <= START_S
            && (stall.length_s - length_s).abs() <= tolerance_s
    })
}

// --- Others ---------------------------------------------------------------------------------

#[test]
fn what_others_write_meanwhile_is_noticed() {
    let _turn = take_turns();
    let needs = [Need::Root, Need::Loop, Need::BlockThrottle, Need::Program("fio", "fio")];
    if !can_run("other traffic", &needs) {
        return;
    }
    const OURS: u64 = 20;
    const THEIRS: u64 = 10;
    let limits = Limits { read_bytes_per_second: Some(OURS * MIB), ..Limits::default() };
    let device = ThrottledLoop::new(64 * MIB, limits).expect("a throttled device");
    let path = device.path().display().to_string();
    let mut other = Command::new("fio");
    other
        .args([
            "--name=other",
            // A process of its own would outlive the one that is killed.
            "--thread",
            "--rw=write",
            "--bs=256k",
            "--direct=1",
            "--ioengine=psync",
        ])
        .args(["--time_based", "--runtime=120", "--allow_file_create=0"])
        .arg(format!("--filename={path}"))
        .arg(format!("--rate={}", THEIRS * MIB))
        .stdout(Stdio::null());
    let _other = Ended(other.spawn().expect("fio starts"));
    let home = Home::new();
    // The other writer keeps its rate only while it gets a processor: on a busy machine the truth
    // itself is off, so a miss is measured again, twice at most, within the same bound.
    let mut missed = Vec::new();
    for _ in 0..3 {
        let mut command = bench(device.command("nice"), &home, device.path());
        let run = finished(command.arg("--read-only")).json();
        missed = run::results(&run)
            .into_iter()
            .filter_map(|result| {
                let doubts = result.0["doubts"].as_array().expect("doubts");
                let doubt = doubts.iter().find(|doubt| doubt["kind"] == "other_traffic");
                let doubt =
                    doubt.unwrap_or_else(|| panic!("{}: not noticed: {doubts:?}", result.name()));
                let share = doubt["share"].as_f64().expect("a share");
                let theirs = (THEIRS * MIB) as f64;
                let truth = theirs / (theirs + result.estimate("bytes_per_second").0);
                let line =
                    format!("{:<18} others' share {share:.3}, true {truth:.3}", result.name());
                report(&line);
                ((share - truth).abs() >= 0.05).then_some(line)
            })
            .collect();
        if missed.is_empty() {
            return;
        }
    }
    panic!("{missed:?}");
}

// --- Filesystems ----------------------------------------------------------------------------

#[test]
fn files_are_labelled_with_what_direct_means_there() {
    let _turn = take_turns();
    let needs = [
        Need::Root,
        Need::Loop,
        Need::Program("mkfs.ext4", "e2fsprogs"),
        Need::Program("mkfs.btrfs", "btrfs-progs"),
        Need::Filesystem("ext4"),
        Need::Filesystem("btrfs"),
    ];
    if !can_run("filesystems", &needs) {
        return;
    }
    // Only the labels are checked, so the runs may disturb one another.
    std::thread::scope(|scope| {
        scope.spawn(|| check_filesystem(FilesystemKind::Ext4, "ext4", Some("direct")));
        scope.spawn(|| check_filesystem(FilesystemKind::BtrfsCompressed, "btrfs", None));
        scope.spawn(|| check_filesystem(FilesystemKind::Tmpfs, "tmpfs", None));
    });
}

/// Runs the whole suite on a new filesystem; without a known `access` its label must say that the page cache
/// takes part.
fn check_filesystem(kind: FilesystemKind, name: &str, access: Option<&str>) {
    let filesystem = SmallFilesystem::new(kind, 1024 * MIB).expect("a filesystem");
    let before = (leftovers::entries(filesystem.path()), settled_bytes(&filesystem));
    let home = Home::new();
    let mut command = home.command();
    command.arg("bench").arg(filesystem.path()).args(["--json", "-", "--no-html"]);
    let answer = finished(&mut command);
    let run = answer.json();
    assert_eq!(run["target"]["filesystem"], name);
    assert_eq!(run["target"]["kind"], "directory");
    let doubts = run::all_doubts(&run);
    let cached = ["through_page_cache", "direct_is_buffered"];
    let says_cached = doubts.iter().any(|doubt| cached.contains(&doubt.as_str()));
    match access {
        Some(access) => {
            assert_eq!(run["target"]["access"], access, "{name}: {doubts:?}");
            assert!(!says_cached, "{name}: {doubts:?}");
        }
        None => assert!(says_cached, "{name}: {doubts:?}"),
    }
    let jobs = run::results(&run);
    assert!(jobs.len() >= 9, "{name}: only {} jobs", jobs.len());
    for job in &jobs {
        let (value, low, high) = job.estimate("bytes_per_second");
        assert!(value > 0.0 && low <= value && value <= high, "{name}: {}", job.0);
    }
    assert_eq!(leftovers::entries(filesystem.path()), before.0, "{name}");
    let grown = settled_bytes(&filesystem).saturating_sub(before.1);
    assert!(grown <= 2 * MIB, "{name}: {grown} bytes more are in use");
    assert_eq!(home.runs(), 1, "{name}");
    report(&format!("{name:<6} access {}, doubts {doubts:?}", run["target"]["access"]));
}

/// Used bytes after the filesystem has finished what it put off.
fn settled_bytes(filesystem: &SmallFilesystem) -> u64 {
    let mut used = u64::MAX;
    // btrfs gives deleted extents back in its own time.
    for _ in 0..50 {
        let synced = Command::new("sync").arg("--file-system").arg(filesystem.path()).status();
        assert!(synced.is_ok_and(|status| status.success()));
        let now = leftovers::used_bytes(filesystem.path());
        if now == used {
            break;
        }
        used = now;
        std::thread::sleep(Duration::from_millis(200));
    }
    used
}

// --- Running --------------------------------------------------------------------------------

/// A command that measures a target and keeps nothing, from one that ends with starting `nice`: with the
/// highest priority of an ordinary program, what else runs on the machine disturbs less.
fn bench(mut nice: Command, home: &Home, target: &Path) -> Command {
    home.adopt(&mut nice);
    nice.args(FIRST).arg(binary()).arg("bench").arg(target);
    nice.args(["--json", "-", "--no-html", "--no-history"]);
    nice
}

/// Runs a command, which must succeed.
fn finished(command: &mut Command) -> Answer {
    let answer = Answer::of(command.output().expect("the program starts"));
    assert_eq!(answer.status, Some(0), "{answer}");
    answer
}

/// Runs a command and, as long as it runs, does something again and again, with the number of the
/// repetition.
fn while_running(command: &mut Command, mut something: impl FnMut(usize)) -> Answer {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let waiter = std::thread::spawn(move || child.wait_with_output());
    let mut number = 0;
    while !waiter.is_finished() {
        something(number);
        number += 1;
    }
    Answer::of(waiter.join().expect("a waiting thread").expect("the output of the program"))
}

/// A process that ends with its guard.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
