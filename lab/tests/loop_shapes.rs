//! Jobs of more than one kind of operation, size or pace, on devices whose truth is known.
//!
//! A throttled loop device says how fast it can be at most; a limited job must keep its own rate
//! below that, a mix its shares, and an uneven distribution must not make the device any faster. A block that
//! is changed between a job that writes and one that checks must be found with its place.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use crate::common::program::{Answer, Home, binary};
use crate::common::run::{self, JobResult};
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{Limits, LoopDevice, ThrottledLoop};
use serde_json::Value;

const MIB: u64 = 1 << 20;
/// Operations per second that the throttled device lets through, of reads and of writes.
const IOPS: f64 = 1000.0;

const JOBS: &str = "
[global]
filename=DEVICE
direct=1
bs=4k
ramp_time=1
time_based
[limited]
rw=randread
rate_iops=200
runtime=7
[limited deep]
stonewall
rw=randread
iodepth=8
ioengine=io_uring
rate_iops=200
runtime=7
[mix]
stonewall
rw=randrw
rwmixread=70
iodepth=8
ioengine=io_uring
runtime=8
[zipf]
stonewall
rw=randread
random_distribution=zipf:1.2
iodepth=4
ioengine=io_uring
runtime=6
";

#[test]
fn rates_mixes_and_distributions_are_as_they_were_asked_for() {
    let _turn = take_turns();
    let needs = [Need::Root, Need::Loop, Need::BlockThrottle];
    if !can_run("shapes", &needs) {
        return;
    }
    let limits = Limits {
        read_bytes_per_second: None,
        write_bytes_per_second: None,
        read_iops: Some(IOPS as u64),
        write_iops: Some(IOPS as u64),
    };
    let device = ThrottledLoop::new(128 * MIB, limits).expect("a throttled device");
    let is_good = |run: &Value| troubles(run).is_empty();
    let run = run::measure_undisturbed(&["cpu_starved", "cpu_stolen"], is_good, || {
        let answer = run_jobs(device.command(binary()), JOBS, device.path());
        assert_eq!(answer.status, Some(0), "{answer}");
        answer.json()
    });
    for result in run::results(&run) {
        report(&format!(
            "{:13} {:5} {:7.1} /s",
            result.name(),
            result.direction(),
            result.estimate("iops").0
        ));
    }
    assert_eq!(troubles(&run), Vec::<String>::new());
}

/// What is not as it should be, in words.
fn troubles(run: &Value) -> Vec<String> {
    let mut troubles = Vec::new();
    let mut expect = |what: &str, value: f64, truth: f64, share: f64| {
        if (value / truth - 1.0).abs() > share {
            troubles.push(format!("{what}: {value} instead of {truth}"));
        }
    };
    let results = run::results(run);
    let of = |job: &str, direction: &str| -> JobResult<'_> {
        let mut found = results.iter().filter(|result| result.name() == job);
        *found
            .find(|result| result.direction() == direction)
            .unwrap_or_else(|| panic!("no {direction} of '{job}'"))
    };
    for job in ["limited", "limited deep"] {
        expect(job, of(job, "read").estimate("iops").0, 200.0, 0.02);
    }
    let reads = of("mix", "read").number("operations");
    let writes = of("mix", "write").number("operations");
    let all = reads + writes;
    // Four deviations of a binomial share.
    let deviation = (0.7 * 0.3 / all).sqrt();
    expect("share of reads", reads / all, 0.7, 4.0 * deviation / 0.7);
    // The reads are held back, and the writes between them with them.
    let together = of("mix", "read").estimate("iops").0 + of("mix", "write").estimate("iops").0;
    expect("the mix", together, IOPS / 0.7, 0.05);
    expect("zipf", of("zipf", "read").estimate("iops").0, IOPS, 0.03);
    troubles
}

/// Writes blocks that can be checked, and does not check them.
const WRITE: &str = "
[write]
filename=DEVICE
direct=1
rw=randwrite
bs=4k
size=16m
iodepth=8
ioengine=io_uring
verify=crc32c
do_verify=0
";

/// Reads the same blocks and verifies their checksums.
const CHECK: &str = "
[check]
filename=DEVICE
direct=1
rw=read
bs=64k
size=16m
verify=crc32c
";

#[test]
fn a_changed_block_is_found_and_an_unchanged_device_passes() {
    let _turn = take_turns();
    if !can_run("checks", &[Need::Root, Need::Loop]) {
        return;
    }
    let device = LoopDevice::new(32 * MIB).expect("a device");
    let run = |jobs: &str| run_jobs(Command::new(binary()), jobs, device.path());
    let written = run(WRITE);
    assert_eq!(written.status, Some(0), "{written}");
    let checked = run(CHECK);
    assert_eq!(checked.status, Some(0), "{checked}");
    let moved = run::results(&checked.json())[0].number("operations");
    assert_eq!(moved, 256.0, "all of it was looked at");

    let place = 9 * MIB + 3 * 4096;
    let file = device.file().expect("it has a file of our own");
    let file = File::options().read(true).write(true).open(file).expect("the file behind it");
    // Whatever is there: one byte in 256 would be any that was chosen here.
    let mut byte = [0];
    file.read_exact_at(&mut byte, place + 1234).expect("it is read");
    file.write_all_at(&[!byte[0]], place + 1234).expect("one byte is changed");
    file.sync_all().expect("for good");
    let found = run(CHECK);
    assert_ne!(found.status, Some(0), "{found}");
    let named = format!("at byte {place} ");
    assert!(found.stderr.contains(&named), "{found}");
    report(found.stderr.trim());

    // A job that writes finds it by itself, since everything is read back; here it is all right.
    let again = run(&WRITE.replace("do_verify=0", ""));
    assert_eq!(again.status, Some(0), "{again}");
    let directions: Vec<String> =
        run::results(&again.json()).iter().map(|result| result.direction().to_string()).collect();
    assert_eq!(directions, ["write", "read"]);
}

/// Runs a job file on a device that may be lost.
fn run_jobs(mut command: Command, jobs: &str, device: &Path) -> Answer {
    let home = Home::new();
    home.adopt(&mut command);
    let path = device.display().to_string();
    let file = home.path().join("jobs.fio");
    std::fs::write(&file, jobs.replace("DEVICE", &path)).expect("the job file");
    let output = command
        .arg("bench")
        .arg("--fio-job")
        .arg(&file)
        .arg(format!("--i-will-lose-everything-on={path}"))
        .args(["--json", "-", "--no-html", "--no-history", "--quiet"])
        .output();
    Answer::of(output.expect("the program starts"))
}
