//! The program measures devices whose truth is known.
//!
//! A loop device in memory is throttled by the block control group: the program must find the
//! limit within 3 %, and fio on the same device must agree within 5 %. A file pauses at known
//! times: every pause must be found and timed. A processor is taken away, and the device must not be
//! blamed. What else reads and writes must be noticed. Files on tmpfs, ext4 and btrfs must be labelled
//! with what direct I/O means there.
//!
//! The tests take turns, since what runs beside a measurement is measured too; run the file alone, with
//! `--nocapture` for the tables. A run that the program itself calls disturbed is repeated up
//! to two times; the bounds stay.

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::fio::{self, FioJob, FioResult};
use common::program::{Answer, Home, binary};
use common::run::{self, JobResult, Stall, measure_undisturbed};
use common::{can_run, leftovers, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{
    FilesystemKind, Limits, PausingDevice, SmallFilesystem, Span, ThrottledLoop, occupy_processor,
};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// What disturbs a throttled device: others' use of the processors or of the device.
const DISTURBANCES: [&str; 3] = ["cpu_starved", "cpu_stolen", "other_traffic"];

// --- Rates ----------------------------------------------------------------------------------

/// How far a measured rate may be from the limit of the device.
const FROM_THE_TRUTH: f64 = 0.03;
/// How far it may be from what fio measures.
const FROM_FIO: f64 = 0.05;

#[test]
fn measured_rates_are_the_limits_of_the_device_and_agree_with_fio() {
    let _turn = take_turns();
    let needs = [
        Need::Root,
        Need::Loop,
        Need::BlockThrottle,
        Need::Program("fio", "fio"),
    ];
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
    let rows: Vec<Row> = std::thread::scope(|scope| {
        let runs = [slow, faster].map(|limits| scope.spawn(move || compare_with_truth(limits)));
        runs.into_iter()
            .flat_map(|run| run.join().expect("a measurement"))
            .collect()
    });
    report(&table(&rows));
    let wrong: Vec<String> = rows.iter().filter_map(Row::complaint).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Each kind of job with each of the two limits, or something was left out.
    assert!(rows.len() >= 18, "only {} rows", rows.len());
}

/// One job: what is true, what the program says, what fio says.
struct Row {
    job: String,
    block_bytes: f64,
    truth: f64,
    ours: (f64, f64, f64),
    fio: Option<FioResult>,
}

impl Row {
    /// Holds for bytes and for operations alike: a block has a fixed size.
    fn complaint(&self) -> Option<String> {
        let from_truth = self.ours.0 / self.truth - 1.0;
        if from_truth.abs() > FROM_THE_TRUTH {
            return Some(format!(
                "{}: {:+.1} % from the truth",
                self.job,
                from_truth * 100.0
            ));
        }
        let from_fio = self.ours.0 / self.fio?.bytes_per_second - 1.0;
        (from_fio.abs() > FROM_FIO)
            .then(|| format!("{}: {:+.1} % from fio", self.job, from_fio * 100.0))
    }

    fn holds_truth(&self) -> bool {
        (self.ours.1..=self.ours.2).contains(&self.truth)
    }
}

fn compare_with_truth(limits: Limits) -> Vec<Row> {
    let device = ThrottledLoop::new(64 * MIB, limits).expect("a throttled device");
    let path = device.path().display().to_string();
    let lose = format!("--i-will-lose-everything-on={path}");
    let home = Home::new();
    let run = measure_undisturbed(&DISTURBANCES, || {
        let mut command = device.command(binary());
        home.adopt(&mut command);
        let arguments = [
            "bench",
            &path,
            &lose,
            "--json",
            "-",
            "--no-html",
            "--no-history",
        ];
        finished(&mut command, &arguments).json()
    });
    let measured = run::results(&run)
        .into_iter()
        .filter(|result| !result.is_commit());
    measured
        .map(|result| compare_job(&device, limits, result))
        .collect()
}

fn compare_job(device: &ThrottledLoop, limits: Limits, result: JobResult) -> Row {
    let block_bytes = result.number("block_bytes");
    let (rate, operations) = match result.direction() {
        "read" => (limits.read_bytes_per_second, limits.read_iops),
        _ => (limits.write_bytes_per_second, limits.write_iops),
    };
    let by_rate = rate.map_or(f64::INFINITY, |rate| rate as f64);
    let by_operations = operations.map_or(f64::INFINITY, |count| count as f64 * block_bytes);
    // Two jobs that ran at once cannot be repeated with one job of fio.
    let is_alone = !result.name().starts_with("bystander");
    let fio = is_alone.then(|| {
        let job = FioJob {
            pattern: result.fio_pattern(),
            block_bytes: block_bytes as u64,
            depth: result.number("queue_depth") as u64,
            region_bytes: 64 * MIB,
            seconds: 4,
        };
        fio::run(device.command("fio"), device.path(), job)
    });
    Row {
        job: result.name().to_string(),
        block_bytes,
        truth: by_rate.min(by_operations),
        ours: result.estimate("bytes_per_second"),
        fio,
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<18} {:>6} {:>12} {:>9} {:>19} {:>9} {:>8} {:>8}  interval holds the truth\n",
        "job", "unit", "truth", "rubus", "95 % interval", "fio", "/ truth", "/ fio"
    );
    for row in rows {
        // Large blocks are limited by bytes, small ones by operations.
        let (unit, name) = if row.block_bytes >= 1e6 {
            (MIB as f64, "MiB/s")
        } else {
            (row.block_bytes, "IOPS")
        };
        let fio = row.fio.map(|fio| fio.bytes_per_second);
        let optional = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        text.push_str(&format!(
            "{:<18} {:>6} {:>12.1} {:>9.2} {:>19} {:>9} {:>8.3} {:>8}  {}\n",
            row.job,
            name,
            row.truth / unit,
            row.ours.0 / unit,
            format!("{:.2} to {:.2}", row.ours.1 / unit, row.ours.2 / unit),
            optional(fio.map(|fio| format!("{:.2}", fio / unit))),
            row.ours.0 / row.truth,
            optional(fio.map(|fio| format!("{:.3}", row.ours.0 / fio))),
            if row.holds_truth() { "yes" } else { "NO" },
        ));
    }
    let holding = rows.iter().filter(|row| row.holds_truth()).count();
    text.push_str(&format!(
        "{holding} of {} intervals hold the truth",
        rows.len()
    ));
    text
}

// --- Stalls ---------------------------------------------------------------------------------

/// How far the start of a stall may be from the truth, in seconds.
const START_S: f64 = 0.15;
/// How far its length may be from the truth: a share, and seconds for short ones.
const LENGTH: (f64, f64) = (0.10, 0.05);
/// The program may leave out this much at the start of a job as warm-up, in seconds.
const WARM_UP_AT_MOST_S: f64 = 2.1;
/// And leaves out at least this much.
const WARM_UP_AT_LEAST_S: f64 = 0.5;

#[test]
fn every_pause_of_a_device_is_found_and_timed() {
    let _turn = take_turns();
    if !can_run("known pauses", &[Need::Root, Need::NbdFile]) {
        return;
    }
    let mut pauses = Vec::new();
    let run = measure_undisturbed(&["cpu_starved", "cpu_stolen"], || {
        let mut device = PausingDevice::new(64 * MIB).expect("a pausing device");
        let path = device.path().display().to_string();
        let home = Home::new();
        let mut command = home.command();
        command.args([
            "bench",
            &path,
            "--read-only",
            "--json",
            "-",
            "--no-html",
            "--no-history",
        ]);
        pauses.clear();
        let answer = while_running(&mut command, |number| {
            let length = [400, 700, 250, 1000, 550][number % 5];
            pauses.push(
                device
                    .pause(Duration::from_millis(length))
                    .expect("a pause"),
            );
            std::thread::sleep(Duration::from_millis([900, 1300, 700, 1100][number % 4]));
        });
        assert_eq!(answer.status, Some(0), "{answer}");
        answer.json()
    });
    check_stalls(&run, &pauses, "device");
}

#[test]
fn a_processor_taken_away_is_not_blamed_on_the_device() {
    let _turn = take_turns();
    let needs = [
        Need::Root,
        Need::Processors(2),
        Need::RealTime,
        Need::Program("taskset", "util-linux"),
    ];
    if !can_run("processor taken away", &needs) {
        return;
    }
    // Memory never waits: whatever stalls here is the processor's fault.
    let filesystem = SmallFilesystem::new(FilesystemKind::Tmpfs, 1024 * MIB).expect("a tmpfs");
    let path = filesystem.path().display().to_string();
    let home = Home::new();
    let mut command = Command::new("taskset");
    home.adopt(&mut command);
    command.args(["--cpu-list", "0"]).arg(binary());
    command.args([
        "bench",
        &path,
        "--read-only",
        "--json",
        "-",
        "--no-html",
        "--no-history",
    ]);
    let mut gone = Vec::new();
    let answer = while_running(&mut command, |number| {
        let length = [350, 600, 450][number % 3];
        gone.push(occupy_processor(0, Duration::from_millis(length)).expect("a busy processor"));
        std::thread::sleep(Duration::from_millis([1100, 1400][number % 2]));
    });
    assert_eq!(answer.status, Some(0), "{answer}");
    let run = answer.json();
    check_stalls(&run, &gone, "cpu_starvation");
    let doubts = run::all_doubts(&run);
    assert!(
        doubts.iter().any(|doubt| doubt == "cpu_starved"),
        "{doubts:?}"
    );
}

#[test]
fn a_quiet_device_has_no_stalls() {
    let _turn = take_turns();
    let needs = [Need::Root, Need::Loop, Need::BlockThrottle];
    if !can_run("quiet device", &needs) {
        return;
    }
    // Slow but steady: 20 operations of 1 MiB per second, one as long as the other.
    let limits = Limits {
        read_bytes_per_second: Some(20 * MIB),
        ..Limits::default()
    };
    let steady = ThrottledLoop::new(64 * MIB, limits).expect("a throttled device");
    let memory = SmallFilesystem::new(FilesystemKind::Tmpfs, 1024 * MIB).expect("a tmpfs");
    let home = Home::new();
    let measure = |mut command: Command, path: &str| {
        home.adopt(&mut command);
        let arguments = [
            "bench",
            path,
            "--read-only",
            "--json",
            "-",
            "--no-html",
            "--no-history",
        ];
        finished(&mut command, &arguments).json()
    };
    let steady_run = measure(
        steady.command(binary()),
        &steady.path().display().to_string(),
    );
    let memory_run = measure(home.command(), &memory.path().display().to_string());
    let sequential = run::results(&steady_run)
        .into_iter()
        .filter(|r| r.fio_pattern() == "read");
    for result in sequential.chain(run::results(&memory_run)) {
        let stalls = result.stalls();
        let false_ones: Vec<&Stall> = stalls.iter().filter(|s| s.cause == "device").collect();
        assert!(false_ones.is_empty(), "{}: {false_ones:?}", result.name());
    }
}

/// Every span that lies surely within the measured part of a job is a stall with the right start, length
/// and cause, and no stall is anything but one of the spans.
fn check_stalls(run: &Value, spans: &[Span], cause: &str) {
    let origin_s = run::started_unix_s(run);
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for result in run::results(run) {
        let job_s = origin_s + result.number("started_s");
        let stalls = result.stalls();
        for span in spans {
            let start_s = span.began.unix_s() - job_s;
            let length_s = span.length().as_secs_f64();
            let measured_to_s = result.number("elapsed_s") + WARM_UP_AT_LEAST_S;
            if start_s < WARM_UP_AT_MOST_S || start_s + length_s > measured_to_s {
                continue;
            }
            checked += 1;
            let name = result.name();
            match find(&stalls, start_s, length_s) {
                None => wrong.push(format!("{name}: none at {start_s:.3} s ({length_s:.3} s)")),
                Some(stall) => {
                    report(&format!(
                        "{name:<18} true {start_s:>7.3} s {length_s:.3} s, found {:>7.3} s {:.3} s {}",
                        stall.start_s, stall.length_s, stall.cause
                    ));
                    if stall.cause != cause {
                        wrong.push(format!("{name}: blamed on {}, not {cause}", stall.cause));
                    }
                }
            }
        }
        for stall in &stalls {
            let overlaps = |span: &Span| {
                let start_s = span.began.unix_s() - job_s;
                stall.start_s < start_s + span.length().as_secs_f64() + START_S
                    && start_s < stall.start_s + stall.length_s + START_S
            };
            if !spans.iter().any(overlaps) {
                wrong.push(format!("{}: there was no {stall:?}", result.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        checked >= 6,
        "only {checked} pauses lay within a measurement"
    );
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
    let needs = [
        Need::Root,
        Need::Loop,
        Need::BlockThrottle,
        Need::Program("fio", "fio"),
    ];
    if !can_run("other traffic", &needs) {
        return;
    }
    const OURS: u64 = 20;
    const THEIRS: u64 = 10;
    let limits = Limits {
        read_bytes_per_second: Some(OURS * MIB),
        ..Limits::default()
    };
    let device = ThrottledLoop::new(64 * MIB, limits).expect("a throttled device");
    let path = device.path().display().to_string();
    let mut other = Command::new("fio");
    other
        .args([
            "--name=other",
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
    let mut command = device.command(binary());
    home.adopt(&mut command);
    let arguments = [
        "bench",
        &path,
        "--read-only",
        "--json",
        "-",
        "--no-html",
        "--no-history",
    ];
    let run = finished(&mut command, &arguments).json();
    let truth = THEIRS as f64 / (OURS + THEIRS) as f64;
    for result in run::results(&run) {
        let doubts = result.0["doubts"].as_array().expect("doubts");
        let doubt = doubts.iter().find(|doubt| doubt["kind"] == "other_traffic");
        let doubt = doubt.unwrap_or_else(|| panic!("{}: not noticed: {doubts:?}", result.name()));
        let share = doubt["share"].as_f64().expect("a share");
        report(&format!(
            "{:<18} others' share {share:.3}, true {truth:.3}",
            result.name()
        ));
        assert!(
            (share - truth).abs() < 0.05,
            "{}: {share} instead of {truth}",
            result.name()
        );
    }
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
    let before = (
        leftovers::entries(filesystem.path()),
        settled_bytes(&filesystem),
    );
    let path = filesystem.path().display().to_string();
    let home = Home::new();
    let answer = finished(
        &mut home.command(),
        &["bench", &path, "--json", "-", "--no-html"],
    );
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
        assert!(
            value > 0.0 && low <= value && value <= high,
            "{name}: {}",
            job.0
        );
    }
    assert_eq!(leftovers::entries(filesystem.path()), before.0, "{name}");
    let grown = settled_bytes(&filesystem).saturating_sub(before.1);
    assert!(grown <= 2 * MIB, "{name}: {grown} bytes more are in use");
    assert_eq!(home.runs(), 1, "{name}");
    report(&format!(
        "{name:<6} access {}, doubts {doubts:?}",
        run["target"]["access"]
    ));
}

/// Used bytes after the filesystem has finished what it put off.
fn settled_bytes(filesystem: &SmallFilesystem) -> u64 {
    let mut used = u64::MAX;
    // btrfs gives deleted extents back in its own time.
    for _ in 0..50 {
        let synced = Command::new("sync")
            .arg("--file-system")
            .arg(filesystem.path())
            .status();
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

/// Runs a command, which must succeed.
fn finished(command: &mut Command, arguments: &[&str]) -> Answer {
    let output = command
        .args(arguments)
        .output()
        .expect("the program starts");
    let answer = Answer::of(output);
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
    Answer::of(
        waiter
            .join()
            .expect("a waiting thread")
            .expect("the output of the program"),
    )
}

/// A process that ends with its guard.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
