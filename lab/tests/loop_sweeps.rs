//! What the program finds in sweeps and long writes on devices whose truth is known.
//!
//! A device with a limit of operations per second must have that ceiling, and nothing to gain from a deeper queue. A
//! device whose rate falls after a known number of bytes must have its cliff there. Both hardly need a processor, so
//! they are measured at the same time. A run that the program itself calls disturbed is repeated; the bounds stay.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::program::{Home, binary};
use crate::common::run::measure_undisturbed;
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{Limits, LoopDevice, ThrottledLoop};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// What disturbs a throttled device: others' use of the processors or of the device.
const DISTURBANCES: [&str; 3] = ["cpu_starved", "cpu_stolen", "other_traffic"];

#[test]
fn ceilings_and_cliffs_are_where_the_device_has_them() {
    let _turn = take_turns();
    let needs = [Need::Root, Need::Loop, Need::BlockThrottle];
    if !can_run("known ceilings and cliffs", &needs) {
        return;
    }
    // The binary is built before they begin.
    binary();
    std::thread::scope(|scope| {
        let all = [
            scope.spawn(|| a_ceiling_is_the_limit_of_the_device(&[])),
            scope.spawn(|| a_ceiling_is_the_limit_of_the_device(&["--lanes", "auto"])),
            scope.spawn(a_cliff_is_where_the_rate_falls),
        ];
        for one in all {
            if let Err(panic) = one.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

// --- The ceiling ----------------------------------------------------------------------------

/// Reads per second that the device lets through.
const CEILING: f64 = 500.0;
/// How far the ceiling may be from that.
const FROM_CEILING: f64 = 0.03;

/// However many lanes share the queue: each has its part of the depth, and the device lets all of them
/// together through.
fn a_ceiling_is_the_limit_of_the_device(lanes: &[&str]) {
    let limits = Limits { read_iops: Some(CEILING as u64), ..Limits::default() };
    let device = ThrottledLoop::new(64 * MIB, limits).expect("a throttled device");
    let home = Home::new();
    let is_good = |run: &Value| is_near(ceiling(run).0, CEILING, FROM_CEILING);
    let run = measure_undisturbed(&DISTURBANCES, is_good, || {
        let mut command = bench(&device, &home, "queue-depth", Path::new("-"));
        let output = command.arg("--read-only").args(lanes).output();
        let output = output.expect("the program starts");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("the run is JSON")
    });
    let (value, low, high) = ceiling(&run);
    let knee = &finding(&run, "knee");
    report(&format!(
        "ceiling {lanes:?}: {value:.1} ({low:.1} to {high:.1}) per second, truth {CEILING}; knee {}, gain {}",
        knee["depth"], knee["gain"]
    ));
    assert!(is_near(value, CEILING, FROM_CEILING), "{knee}");
    assert!(low <= CEILING * 1.01 && CEILING * 0.99 <= high, "{knee}");
    assert_eq!(knee["is_one_at_a_time"], true, "{knee}");
    assert_eq!(knee["jobs"].as_array().map(Vec::len), Some(9), "{knee}");
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if !lanes.is_empty() && cpus > 1 {
        let results = run["results"].as_array().expect("it has results");
        let deepest = results.last().expect("it has results");
        assert_eq!(deepest["lanes"], cpus, "{deepest}");
    }
}

/// A loop device completes by the work of a kernel's thread; nothing can poll for that.
#[test]
fn a_device_without_poll_queues_is_refused_for_polling() {
    let _turn = take_turns();
    if !can_run("no poll queues", &[Need::Root, Need::Loop]) {
        return;
    }
    let device = LoopDevice::new(8 * MIB).expect("a loop device");
    let home = Home::new();
    let mut command = home.command();
    command.arg("bench").arg(device.path()).arg("--hipri");
    let output = command.output().expect("the program starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    let name = device.path().file_name().expect("a name").to_string_lossy();
    let expected = format!("{name} has no poll queues");
    assert!(message.contains(&expected), "{message}");
}

fn ceiling(run: &Value) -> (f64, f64, f64) {
    estimate(&finding(run, "knee")["ceiling_iops"])
}

// --- The cliff ------------------------------------------------------------------------------

/// Bytes that go fast.
const BURST: u64 = 320 * MIB;
/// Bytes per second before and after.
const FAST: u64 = 48 * MIB;
const SLOW: u64 = 12 * MIB;
/// How far the burst and the rates may be from that.
const FROM_BURST: f64 = 0.10;
const FROM_RATES: f64 = 0.05;

fn a_cliff_is_where_the_rate_falls() {
    let is_good = |run: &Value| complaints(run).is_empty();
    let run = measure_undisturbed(&DISTURBANCES, is_good, measure_a_cliff);
    let found = finding(&run, "cliff");
    report(&format!(
        "cliff: {} after {} of {BURST} bytes, then {}",
        found["burst_bytes_per_second"], found["burst_bytes"], found["sustained_bytes_per_second"]
    ));
    assert_eq!(complaints(&run), Vec::<String>::new());
}

/// What is wrong with the cliff that was found.
fn complaints(run: &Value) -> Vec<String> {
    let cliff = finding(run, "cliff");
    let figures = [
        ("burst_bytes", BURST, FROM_BURST),
        ("burst_bytes_per_second", FAST, FROM_RATES),
        ("sustained_bytes_per_second", SLOW, FROM_RATES),
    ];
    let wrong = figures.into_iter().filter_map(|(field, truth, share)| {
        if cliff[field].is_null() {
            return Some(format!("no {field}"));
        }
        let (value, low, high) = estimate(&cliff[field]);
        (!is_near(value, truth as f64, share))
            .then(|| format!("{field}: {value:.0} ({low:.0} to {high:.0}), truth {truth}"))
    });
    wrong.collect()
}

/// Lets the program write until it has seen the cliff, and stops it in the rest that follows.
fn measure_a_cliff() -> Value {
    let fast = Limits { write_bytes_per_second: Some(FAST), ..Limits::default() };
    // Smaller than the burst: the program goes round it.
    let device = ThrottledLoop::new(128 * MIB, fast).expect("a throttled device");
    let home = Home::new();
    let file = home.path().join("run.json");
    let mut command = bench(&device, &home, "sustained", &file);
    let lose = format!("--i-will-lose-everything-on={}", device.path().display());
    command.arg(lose).args(["--budget", "4GiB"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut program = Running(child.expect("the program starts"));
    let before = written(&device);
    until("the burst is written", || written(&device) - before >= BURST);
    let slow = Limits { write_bytes_per_second: Some(SLOW), ..Limits::default() };
    device.limit(slow).expect("another limit");
    let mut last = (written(&device), Instant::now());
    until("it has seen enough and rests", || {
        let now = written(&device);
        if now != last.0 {
            last = (now, Instant::now());
        }
        last.1.elapsed() > Duration::from_secs(3)
    });
    program.interrupt();
    let text = std::fs::read_to_string(&file).expect("what was measured is kept");
    serde_json::from_str(&text).expect("the run is JSON")
}

/// Bytes written to the device since it was made, as the kernel counts them.
fn written(device: &ThrottledLoop) -> u64 {
    let name = device.path().file_name().expect("a node has a name");
    let path = Path::new("/sys/block").join(name).join("stat");
    let text = std::fs::read_to_string(path).expect("a block device has statistics");
    let sectors = text.split_whitespace().nth(6);
    512 * sectors
        .and_then(|field| field.parse::<u64>().ok())
        .expect("the seventh field counts written sectors")
}

fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(90);
    while !is_true() {
        assert!(Instant::now() < give_up, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The program while it runs; it does not outlive the test.
struct Running(Child);

impl Running {
    /// Stops it as Ctrl-C does, and waits until it has kept its results.
    fn interrupt(&mut self) {
        let id = i32::try_from(self.0.id()).expect("a process number");
        let id = rustix::process::Pid::from_raw(id).expect("a process number");
        rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it still runs");
        let status = self.0.wait().expect("it ends");
        assert_eq!(status.code(), Some(1), "an interrupted run is no success");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// --- Both -----------------------------------------------------------------------------------

/// A command that measures a device with a suite, first among ordinary programs.
fn bench(device: &ThrottledLoop, home: &Home, suite: &str, json: &Path) -> Command {
    let mut command = device.command("nice");
    home.adopt(&mut command);
    command.args(["-n", "-20"]).arg(binary()).arg("bench");
    command.arg(device.path()).args(["--suite", suite]);
    command.arg("--json").arg(json);
    command.args(["--no-html", "--no-history", "--quiet"]);
    command.stdin(Stdio::null());
    command
}

/// The first finding of a kind.
fn finding(run: &Value, kind: &str) -> Value {
    let found = run["findings"]
        .as_array()
        .and_then(|findings| findings.iter().find(|finding| finding["kind"] == kind).cloned());
    found.unwrap_or_else(|| panic!("no {kind} in {}", run["findings"]))
}

/// Value, lower and upper end.
fn estimate(value: &Value) -> (f64, f64, f64) {
    let number = |key: &str| value[key].as_f64();
    (
        number("value").unwrap_or_else(|| panic!("no value in {value}")),
        number("low").unwrap_or_else(|| panic!("no lower end in {value}")),
        number("high").unwrap_or(f64::INFINITY),
    )
}

fn is_near(value: f64, truth: f64, share: f64) -> bool {
    (value / truth - 1.0).abs() <= share
}
