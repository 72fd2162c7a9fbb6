//! What `rubus zswap` says while zswap works: a program that takes more memory than its group has, with swap on a loop
//! device.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::program::{Answer, Home};
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{LoopDevice, programs};

const NEEDS: [Need; 5] = [
    Need::Root,
    Need::DirectLoop,
    Need::Zswap,
    Need::MemoryGroup,
    Need::Program("python3", "python3"),
];
const PARAMETERS: &str = "/sys/module/zswap/parameters";
const COUNTERS: &str = "/sys/kernel/debug/zswap";

/// Takes 160 MiB, three in four pages of which compress well, reads all of it twice, says so, and waits for its end.
const HUNGRY: &str = "
import os, sys
size = 160 << 20
memory = bytearray(size)
words = b'the narrowest pipe of a small computer ' * 106
for at in range(0, size, 4096):
    page = os.urandom(4096) if at >> 12 & 3 == 0 else (b'%08d' % at + words)[:4096]
    memory[at:at + 4096] = page
for _ in range(2):
    sum(memory[at] for at in range(0, size, 4096))
print('done', flush=True)
sys.stdin.read()
";

/// zswap on, and as it was before when this is dropped.
struct Zswap {
    enabled: String,
}

impl Zswap {
    fn on() -> Zswap {
        if !Path::new("/sys/kernel/debug/tracing").exists() {
            // It may have been mounted meanwhile.
            let _ = programs::run("mount", &["-t", "debugfs", "none", "/sys/kernel/debug"]);
        }
        let path = format!("{PARAMETERS}/enabled");
        let enabled = std::fs::read_to_string(&path).expect("the kernel has zswap");
        std::fs::write(&path, "1").expect("it is turned on");
        Zswap { enabled }
    }
}

impl Drop for Zswap {
    fn drop(&mut self) {
        let _ = std::fs::write(format!("{PARAMETERS}/enabled"), self.enabled.trim());
    }
}

/// Swap on a loop device, preferred to all other; off when this is dropped.
struct SwapOn(LoopDevice);

impl SwapOn {
    fn new(size_bytes: u64) -> SwapOn {
        let device = LoopDevice::for_swap(size_bytes).expect("a loop device");
        let node = device.path().display().to_string();
        programs::run("mkswap", &[&node]).expect("mkswap runs");
        programs::run("swapon", &["--priority", "100", &node]).expect("it is used");
        SwapOn(device)
    }
}

impl Drop for SwapOn {
    fn drop(&mut self) {
        let _ = programs::run("swapoff", &[&self.0.path().display().to_string()]);
    }
}

/// A group of processes with little memory, and one process in it.
struct Hungry {
    group: PathBuf,
    child: Child,
}

impl Hungry {
    fn new(limit_bytes: u64) -> Hungry {
        let group = rubus_lab::devices::memory_group(limit_bytes).expect("a control group");
        let child = Command::new("sh")
            .args(["-c", r#"echo $$ > "$0/cgroup.procs" && exec python3 -c "$1""#])
            .arg(&group)
            .arg(HUNGRY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        Hungry { group, child }
    }

    fn wait_until_fed(&mut self) {
        use std::io::BufRead;
        let out = self.child.stdout.as_mut().expect("a pipe");
        let mut line = String::new();
        std::io::BufReader::new(out).read_line(&mut line).expect("it speaks");
        assert_eq!(line.trim(), "done");
    }
}

impl Drop for Hungry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let give_up = Instant::now() + Duration::from_secs(10);
        while std::fs::remove_dir(&self.group).is_err() && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// How many times as much this test has to have swapped out as everything before it, for the verdict to be about this test.
const HARDLY: u64 = 20;

/// Pages that went out since the machine was started, past zswap or into it.
fn swapped_pages() -> u64 {
    line_of("/proc/vmstat", "pswpout ") + line_of("/proc/vmstat", "zswpout ")
}

fn line_of(path: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(path).expect("it is read");
    let mut lines = text.lines();
    let value = lines.find_map(|line| {
        line.strip_prefix(name)?.split_whitespace().find_map(|word| word.parse().ok())
    });
    value.unwrap_or_else(|| panic!("{path} has no line {name}"))
}

#[test]
fn zswap_under_pressure_is_what_the_kernel_s_files_say() {
    let _turn = take_turns();
    if !can_run("zswap under pressure", &NEEDS) {
        return;
    }
    let before = swapped_pages();
    let _zswap = Zswap::on();
    let swap = SwapOn::new(512 << 20);
    let mut hungry = Hungry::new(48 << 20);
    hungry.wait_until_fed();

    let home = Home::new();
    let run = |arguments: &[&str]| {
        let mut command = home.command();
        Answer::of(command.args(arguments).output().expect("the program starts"))
    };
    let answer = run(&["zswap", "--json"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    let json = answer.json();
    let report_of = &json["report"];
    report(report_of["verdict"].as_str().expect("a verdict"));
    // The hungry one sleeps, so nothing moves.
    assert_eq!(report_of["pool_bytes"], line_of("/proc/meminfo", "Zswap:") * 1024);
    assert_eq!(report_of["stored_bytes"], line_of("/proc/meminfo", "Zswapped:") * 1024);
    assert_eq!(json["reading"]["stored_pages"]["value"], line_of("/proc/vmstat", "zswpout "));
    let stored = report_of["stored_bytes"].as_u64().expect("a number");
    assert!(stored > 64 << 20, "{stored} bytes of 160 MiB are in zswap");
    let counters = report_of["counters"].as_array().expect("a list");
    assert!(!counters.is_empty());
    for counter in counters {
        let name = counter["name"].as_str().expect("a name");
        let truth = std::fs::read_to_string(format!("{COUNTERS}/{name}")).expect("it is read");
        assert_eq!(counter["value"], truth.trim(), "{name}");
        let meaning = counter["meaning"].as_str().expect("a meaning");
        assert!(!meaning.contains("not known"), "{name} of this kernel is not explained");
    }
    let mut names: Vec<_> = std::fs::read_dir(COUNTERS)
        .expect("the counters")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    let shown: Vec<_> =
        counters.iter().map(|counter| counter["name"].as_str().expect("a name")).collect();
    assert_eq!(shown, names);
    let text = run(&["zswap"]);
    assert!(text.stdout.contains(": it holds "), "{text}");
    assert!(text.stdout.contains("stored_pages"), "{text}");
    // The verdict is about everything since the machine was started. What that was before this test is not known, so the verdict
    // is known only where it hardly counts.
    if before * HARDLY <= swapped_pages() {
        assert_eq!(report_of["standing"], "helps", "{answer}");
        assert!(text.stdout.starts_with("It helps: "), "{text}");
    }
    drop(hungry);
    drop(swap);
    let without = run(&["zswap", "--json"]);
    let areas = without.json()["reading"]["areas"].as_array().map_or(0, Vec::len);
    if areas == 0 {
        assert_eq!(without.json()["report"]["standing"], "without_swap", "{without}");
    }
}
