//! `rubus bench memory` on swap of known truth: where the cliff is, and what is left after a kill.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::program::{Answer, Home};
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{Limits, ThrottledLoop, programs};
use serde_json::Value;

const NEEDS: [Need; 6] = [
    Need::Root,
    Need::DirectLoop,
    Need::BlockThrottle,
    Need::Zswap,
    Need::MemoryGroup,
    Need::Program("mkswap", "util-linux"),
];
const ZSWAP: &str = "/sys/module/zswap/parameters";
/// Reads per second of the disk.
const READS: u64 = 20;
/// Share of memory that zswap's pool may take, in percent. Where it can only be limited for the whole machine, in
/// whole percents of its memory, the group is as large as this share needs.
const POOL_PERCENT: &str = "50";

/// Settings of zswap, as they were before when this is dropped.
struct Settings(Vec<(PathBuf, String)>);

impl Settings {
    fn set(wanted: &[(&str, &str)]) -> Settings {
        let mut before = Vec::new();
        for (name, value) in wanted {
            let path = Path::new(ZSWAP).join(name);
            let was = std::fs::read_to_string(&path).expect("it is read");
            std::fs::write(&path, value).expect("it is set");
            before.push((path, was));
        }
        Settings(before)
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        for (path, was) in &self.0 {
            let _ = std::fs::write(path, was.trim());
        }
    }
}

/// A throttled device in use as swap before all other; off when this is dropped.
struct SwapOn(ThrottledLoop);

impl SwapOn {
    fn new(size_bytes: u64) -> SwapOn {
        let limits = Limits { read_iops: Some(READS), ..Limits::default() };
        let device = ThrottledLoop::for_swap(size_bytes, limits).expect("a device");
        let node = device.path().display().to_string();
        programs::run("mkswap", &[&node]).expect("mkswap runs");
        programs::run("swapon", &["--priority", "100", &node]).expect("it is used");
        SwapOn(device)
    }

    fn bench(&self, home: &Home, arguments: &[&str]) -> Answer {
        let mut command = self.0.command(crate::common::program::binary());
        home.adopt(&mut command);
        command.args(["bench", "memory", "pressure", "--json", "-"]);
        let output = command.args(arguments).output().expect("the program starts");
        Answer::of(output)
    }
}

impl Drop for SwapOn {
    fn drop(&mut self) {
        let _ = programs::run("swapoff", &[&self.0.path().display().to_string()]);
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// What may not be there any more when no measurement runs.
fn left_behind() -> Vec<String> {
    let mut found = Vec::new();
    let swaps = std::fs::read_to_string("/proc/swaps").expect("it is read");
    found.extend(swaps.lines().skip(1).map(str::to_string));
    let groups = programs::run("find", &["/sys/fs/cgroup", "-maxdepth", "2", "-name", "rubus-*"]);
    // Those of other tests are not the program's.
    let groups = groups.unwrap_or_default();
    let groups = groups.lines().filter(|line| !line.contains("/rubus-lab-"));
    found.extend(groups.map(str::to_string));
    let loops = programs::run("losetup", &["--list", "--noheadings", "--output", "BACK-FILE"]);
    let deleted = loops.unwrap_or_default();
    let deleted = deleted.lines().filter(|line| line.contains("/var/tmp/#"));
    found.extend(deleted.map(str::to_string));
    found
}

/// What is found when nothing more goes away, or after a minute.
fn left_behind_in_the_end() -> Vec<String> {
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        let found = left_behind();
        if found.is_empty() || Instant::now() > give_up {
            return found;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn the_cliff_is_where_pool_and_ratio_say() {
    let _turn = take_turns();
    if !can_run("the swap cliff", &NEEDS) {
        return;
    }
    let _settings = Settings::set(&[("max_pool_percent", POOL_PERCENT), ("enabled", "Y")]);
    let swap = SwapOn::new(3 << 30);
    let home = Home::new();
    let answer = swap.bench(&home, &["--seconds", "3", "--max-working-set", "2.6"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    let run = answer.json();
    let pressure = &run["memory"]["pressure"][0];
    assert_eq!(pressure["set_up"]["kind"], "zswap", "{answer}");
    let share = number(&pressure["set_up"]["pool_share"]);
    let ratio = number(&pressure["measured_ratio"]);
    let memory = number(&pressure["group"]["memory_bytes"]);
    assert!((0.45..0.56).contains(&share), "the pool may take {share}");
    // Pages that are a third random: with the compressor's and the allocator's rounding less than 3.
    assert!((2.4..3.05).contains(&ratio), "{ratio}");

    // M - P + P · r, and the kernel holds the pool between 90 and 100 % of its limit once it was full.
    let expected = |share: f64| 1.0 + share * (ratio - 1.0);
    let carries = &pressure["carries"][0];
    assert_eq!(carries["access"], "uniform");
    let (within, beyond) = (number(&carries["within"]), number(&carries["beyond"]));
    report(&format!(
        "carries {within:.3} (not {beyond:.3}); arithmetic: {:.3} to {:.3}, ratio {ratio:.3}",
        expected(0.9 * share),
        expected(share)
    ));
    assert!(carries["because"].is_null(), "touches were slow there, and nothing else: {carries}");
    assert!(beyond - within < 0.051, "{carries}");
    // One touch in a hundred must wait before it shows: up to a twentieth more memory.
    assert!(
        beyond > 0.96 * expected(0.9 * share) && within < 1.07 * expected(share),
        "{within} to {beyond}"
    );

    // Beyond the cliff the disk's read rate limits the touches per second: its rate over the share of pages that are on
    // it. A read may bring neighbours along, of which few are of use.
    let rungs = pressure["rungs"].as_array().expect("a list");
    let far = rungs
        .iter()
        .filter(|rung| !rung["phases"].as_array().expect("a list").is_empty())
        .max_by(|a, b| number(&a["overcommit"]).total_cmp(&number(&b["overcommit"])))
        .expect("a rung");
    let set = number(&far["working_set_bytes"]);
    let on_disk = set - (memory - number(&far["pool_bytes"])) - number(&far["stored_bytes"]);
    let phase = &far["phases"][0];
    let rate = number(&phase["touches"]) / number(&phase["elapsed_s"]);
    let predicted = READS as f64 / (on_disk / set);
    report(&format!(
        "at {:.2} times: {rate:.0} touches/s, arithmetic {predicted:.0}",
        number(&far["overcommit"])
    ));
    assert!(on_disk > 0.0 && (0.4..2.5).contains(&(rate / predicted)), "{far}");

    // What may be written is a promise, and here everything that does not fit must be written.
    let _off = Settings::set(&[("enabled", "N")]);
    let arguments = ["--seconds", "1", "--budget", "4MiB", "--memory", "64MiB"];
    let answer = swap.bench(&home, &arguments);
    let run = answer.json();
    let pressure = &run["memory"]["pressure"][0];
    let carries = &pressure["carries"][0];
    report(&format!("budget: {} bytes written, {carries}", pressure["written_bytes"]));
    assert_eq!(pressure["set_up"]["kind"], "disk", "{answer}");
    let written = number(&pressure["written_bytes"]);
    assert!((4 << 20..40 << 20).contains(&(written as u64)), "{pressure}");
    assert_eq!(carries["because"]["kind"], "budget", "{carries}");
    drop(swap);
    assert_eq!(left_behind_in_the_end(), Vec::<String>::new());
}

#[test]
fn a_kill_in_the_middle_leaves_nothing() {
    let _turn = take_turns();
    if !can_run("a killed measurement of memory", &NEEDS) {
        return;
    }
    if !left_behind().is_empty() {
        report(&format!("SKIPPED: this machine has swap of its own: {:?}", left_behind()));
        return;
    }
    let enabled = std::fs::read_to_string(Path::new(ZSWAP).join("enabled")).expect("it is read");
    let home = Home::new();
    let mut command = home.command();
    command.args([
        "bench",
        "memory",
        "pressure",
        "--compare",
        "--memory",
        "32MiB",
        "--seconds",
        "1",
        "--no-history",
    ]);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut first = String::new();
    BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut first).expect("it speaks");
    assert!(first.contains("takes each away again"), "{first}");
    // Until it uses swap of its own making, in a group of its own making.
    let give_up = Instant::now() + Duration::from_secs(120);
    while left_behind().len() < 3 {
        assert!(Instant::now() < give_up, "it never came so far: {:?}", left_behind());
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("it is killed");
    child.wait().expect("it ended");
    assert_eq!(left_behind_in_the_end(), Vec::<String>::new());
    let now = std::fs::read_to_string(Path::new(ZSWAP).join("enabled")).expect("it is read");
    assert_eq!(now, enabled, "zswap is as it was");
}

#[test]
fn an_ordinary_user_is_told_what_to_do() {
    let _turn = take_turns();
    if !can_run("memory as an ordinary user", &[Need::Root, Need::Program("setpriv", "util-linux")])
    {
        return;
    }
    let home = Home::new();
    let mut command = programs::command("setpriv");
    home.adopt(&mut command);
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(crate::common::program::binary());
    let output = command.args(["bench", "memory", "pressure"]).output();
    let answer = Answer::of(output.expect("it starts"));
    assert_eq!(answer.status, Some(2), "{answer}");
    for word in ["sudo", "systemd-run --user --scope"] {
        assert!(answer.stderr.contains(word), "{answer}");
    }
}
