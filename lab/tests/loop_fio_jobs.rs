//! The same job file by fio and by the program, on the same throttled device.
//!
//! Both write fio's JSON, and both are read by the same few lines: bytes that the job file fixes must be
//! exact, rates and shares must be what the job file or the throttle says and agree with each other. A
//! pair of runs that a busy machine disturbed is repeated up to two times; the bounds stay.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::pressure::Pressure;
use crate::common::program::{Answer, Home, binary};
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{Limits, ThrottledLoop};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// Operations per second of each direction that the device lets through.
const DEVICE_IOPS: u64 = 700;

/// One job file with all that is compared. The throttle lets a burst through when it was idle, so what
/// is timed has a second before it counts. `fsync` is not in it: a loop device in memory has nothing to
/// make durable.
const JOBS: &str = "\
[global]
filename=${DEVICE}
direct=1
ioengine=libaio
size=32m
group_reporting

[paced]
rw=randread
bs=4k
rate_iops=200
ramp_time=1
runtime=3
time_based

[mix]
stonewall
rw=randrw
rwmixread=70
bs=4k
iodepth=8
ramp_time=1
runtime=4
time_based

[split]
stonewall
rw=randwrite
norandommap
bssplit=4k/50:16k/50
iodepth=4
ramp_time=1
runtime=4
time_based

[copies]
stonewall
rw=write
bs=32k
numjobs=3
offset_increment=8m
size=4m

[one]
stonewall
rw=write
bs=64k
size=6m

[other]
new_group
rw=read
bs=64k
offset=16m
size=4m

[checked]
stonewall
rw=write
bs=16k
size=4m
verify=crc32c
";

/// How far a rate may be from what the job file or the device says.
const FROM_THE_TRUTH: f64 = 0.03;
/// How far the program's rates may be from fio's.
const FROM_FIO: f64 = 0.05;
/// How far the writes of two mixes may be apart: reads are at the limit in both, and each has about 1200
/// writes by chance, whose ratio has a standard deviation of 0.041.
const FROM_FIO_BY_CHANCE: f64 = 0.13;
/// How far the share of reads in a mix may be from what was asked for: 2800 operations have a standard
/// deviation of 0.009.
const SHARE: f64 = 0.03;
/// How far the mean size of 2800 operations of 4 and 16 KiB may be from 10 KiB, as a share: its standard
/// deviation is 0.011.
const MEAN_SIZE: f64 = 0.04;

/// What one tool says of one job.
#[derive(Clone, Copy, Debug)]
struct Side {
    bytes: f64,
    operations: f64,
    iops: f64,
    bytes_per_second: f64,
}

#[test]
fn a_job_file_gives_what_it_gives_with_fio() {
    let _turn = take_turns();
    let needs = [Need::Root, Need::Loop, Need::BlockThrottle, Need::Program("fio", "fio")];
    if !can_run("fio's job files", &needs) {
        return;
    }
    let limits = Limits {
        read_bytes_per_second: None,
        write_bytes_per_second: None,
        read_iops: Some(DEVICE_IOPS),
        write_iops: Some(DEVICE_IOPS),
    };
    let device = ThrottledLoop::new(64 * MIB, limits).expect("a throttled device");
    let home = Home::new();
    let file = home.path().join("jobs.fio");
    std::fs::write(&file, JOBS).expect("the job file is written");
    for attempt in 0.. {
        let since = Pressure::now();
        let fio = with_fio(&device, &file);
        let ours = with_rubus(&device, &home, &file);
        report(&table(&ours, &fio));
        let wrong = complaints(&ours, &fio);
        match since.trouble().filter(|_| !wrong.is_empty() && attempt < 2) {
            Some(reason) => report(&format!("disturbed: {reason}; measuring again")),
            None => {
                assert!(wrong.is_empty(), "{}", wrong.join("\n"));
                return;
            }
        }
    }
}

fn with_fio(device: &ThrottledLoop, file: &Path) -> Value {
    let mut command = device.command("fio");
    // Its state of the verification goes into the current directory.
    command.current_dir(file.parent().expect("a directory"));
    command.arg("--output-format=json").arg(file);
    command.env("DEVICE", device.path());
    let answer = Answer::of(command.output().expect("fio starts"));
    assert_eq!(answer.status, Some(0), "{answer}");
    // Notes may stand before the object.
    let start = answer.stdout.find('{').unwrap_or(0);
    serde_json::from_str(&answer.stdout[start..]).expect("fio prints JSON")
}

fn with_rubus(device: &ThrottledLoop, home: &Home, file: &Path) -> Value {
    let mut command = device.command(binary());
    home.adopt(&mut command);
    command
        .args(["bench", "--fio-job"])
        .arg(file)
        .args(["--fio-json", "-", "--no-html", "--quiet"])
        .arg(format!("--i-will-lose-everything-on={}", device.path().display()))
        .env("DEVICE", device.path());
    let answer = Answer::of(command.output().expect("the program starts"));
    assert_eq!(answer.status, Some(0), "{answer}");
    answer.json()
}

/// The job of that name; there must be one.
fn side(run: &Value, job: &str, direction: &str) -> Side {
    let jobs = run["jobs"].as_array().expect("a list of jobs");
    let mut named = jobs.iter().filter(|entry| entry["jobname"] == job);
    let entry = named.next().unwrap_or_else(|| panic!("no job {job} in {run}"));
    assert!(named.next().is_none(), "{job} is there twice");
    let number = |name: &str| {
        let value = &entry[direction][name];
        value.as_f64().unwrap_or_else(|| panic!("{job}: {name} is {value}"))
    };
    Side {
        bytes: number("io_bytes"),
        operations: number("total_ios"),
        iops: number("iops"),
        bytes_per_second: number("bw_bytes"),
    }
}

fn complaints(ours: &Value, fio: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut near = |what: &str, value: f64, truth: f64, share: f64| {
        if (value / truth - 1.0).abs() > share {
            wrong.push(format!("{what}: {value} instead of {truth} ±{share}"));
        }
    };
    let both = |job: &str, direction: &str| (side(ours, job, direction), side(fio, job, direction));

    let (paced, _) = both("paced", "read");
    near("paced: IOPS", paced.iops, 200.0, FROM_THE_TRUTH);

    let limit = DEVICE_IOPS as f64;
    let (reads, fio_reads) = both("mix", "read");
    let (writes, fio_writes) = both("mix", "write");
    let share = reads.operations / (reads.operations + writes.operations);
    near("mix: reads", reads.iops, limit, FROM_THE_TRUTH);
    near("mix: reads against fio", reads.iops, fio_reads.iops, FROM_FIO);
    near("mix: writes against fio", writes.iops, fio_writes.iops, FROM_FIO_BY_CHANCE);
    near("mix: share of reads", share, 0.70, SHARE / 0.70);

    let (split, fio_split) = both("split", "write");
    let mean_bytes = split.bytes / split.operations;
    near("split: mean size", mean_bytes, 10_240.0, MEAN_SIZE);
    near("split: IOPS", split.iops, limit, FROM_THE_TRUTH);
    near("split: IOPS against fio", split.iops, fio_split.iops, FROM_FIO);
    let (rate, fio_rate) = (split.bytes_per_second, fio_split.bytes_per_second);
    near("split: rate against fio", rate, fio_rate, FROM_FIO + MEAN_SIZE);

    // What a job file fixes to the byte, by both.
    for (job, direction, bytes) in [
        ("copies", "write", 12 * MIB),
        ("one", "write", 6 * MIB),
        ("other", "read", 4 * MIB),
        ("checked", "write", 4 * MIB),
        ("checked", "read", 4 * MIB),
    ] {
        let (ours, fio) = both(job, direction);
        near(&format!("{job}: bytes by fio"), fio.bytes, bytes as f64, 0.0);
        near(&format!("{job}: bytes"), ours.bytes, bytes as f64, 0.0);
        near(&format!("{job}: operations"), ours.operations, fio.operations, 0.0);
    }
    wrong
}

fn table(ours: &Value, fio: &Value) -> String {
    let mut text = format!(
        "{:<16} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9}\n",
        "job", "bytes", "fio", "IOPS", "fio", "ops", "fio"
    );
    for (job, direction) in [
        ("paced", "read"),
        ("mix", "read"),
        ("mix", "write"),
        ("split", "write"),
        ("copies", "write"),
        ("one", "write"),
        ("other", "read"),
        ("checked", "write"),
        ("checked", "read"),
    ] {
        let (ours, fio) = (side(ours, job, direction), side(fio, job, direction));
        text.push_str(&format!(
            "{:<16} {:>10} {:>10} {:>10.1} {:>10.1} {:>9} {:>9}\n",
            format!("{job} {direction}"),
            ours.bytes,
            fio.bytes,
            ours.iops,
            fio.iops,
            ours.operations,
            fio.operations
        ));
    }
    text
}

#[test]
fn a_job_file_never_harms_what_exists() {
    let _turn = take_turns();
    if !can_run("job files and what exists", &[Need::Root, Need::Loop]) {
        return;
    }
    let home = Home::new();
    let data: Vec<u8> = (0..MIB).map(|i| i as u8).collect();
    let precious = home.path().join("precious");
    std::fs::write(&precious, &data).expect("a file");
    let file = home.path().join("jobs.fio");
    let text = "[a]\nrw=write\nfilename=precious\nsize=1m\n[b]\nrw=read\nsize=1m\n";
    std::fs::write(&file, text).expect("the job file is written");

    let refused = home.run(&["bench", "--fio-job", "jobs.fio"]);
    assert_eq!(refused.status, Some(3), "{refused}");
    assert!(refused.stderr.contains("--i-will-lose-everything-on="), "{refused}");
    assert_eq!(std::fs::read(&precious).expect("it is there"), data);

    // Elsewhere it is a nameless file, of which nothing is left.
    let elsewhere = home.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let answer = home.run(&["bench", "--fio-job", "jobs.fio", "elsewhere", "--no-html"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    assert_eq!(std::fs::read(&precious).expect("it is there"), data);
    assert_eq!(std::fs::read_dir(&elsewhere).expect("a directory").count(), 0);

    let lose = format!("--i-will-lose-everything-on={}", precious.display());
    let allowed = home.run(&["bench", "--fio-job", "jobs.fio", "--no-html", &lose]);
    assert_eq!(allowed.status, Some(0), "{allowed}");
    assert_ne!(std::fs::read(&precious).expect("it is there"), data);
}

#[test]
fn a_byte_that_changes_between_writing_and_reading_is_found() {
    let _turn = take_turns();
    let home = Home::new();
    let data = home.path().join("data");
    let text = "[global]\nfilename=data\nsize=4m\nbs=64k\nverify=crc32c\n\
                [w]\nrw=write\nend_fsync=1\ndo_verify=0\n[r]\nstonewall\nstartdelay=4\nrw=read\n";
    std::fs::write(home.path().join("jobs.fio"), text).expect("the job file is written");
    let lose = format!("--i-will-lose-everything-on={}", data.display());
    let run = |spoils: bool| {
        std::fs::write(&data, vec![0; 4 * MIB as usize]).expect("a file");
        let mut command = home.command();
        command.args(["bench", "--fio-job", "jobs.fio", "--no-html", &lose]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("the program starts");
        wait_until_written(&data);
        if spoils {
            let file = std::fs::OpenOptions::new().write(true).open(&data);
            let file = file.expect("the file can be written");
            file.write_all_at(b"spoilt", 1_100_000).expect("it is written");
        }
        Answer::of(child.wait_with_output().expect("it ends"))
    };
    let good = run(false);
    assert_eq!(good.status, Some(0), "{good}");
    let bad = run(true);
    assert_eq!(bad.status, Some(1), "{bad}");
    // 1 100 000 lies in the 4 KiB that begin here.
    assert!(bad.stderr.contains("at byte 1097728 do not hold what was written"), "{bad}");
}

/// Waits until the file of zeros has been overwritten to its end, and a little longer.
fn wait_until_written(path: &Path) {
    for _ in 0..100 {
        let data = std::fs::read(path).expect("the file can be read");
        if data[data.len() - 4096..].iter().any(|&byte| byte != 0) {
            std::thread::sleep(Duration::from_millis(500));
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("nothing was written in ten seconds");
}

#[test]
fn what_is_not_supported_is_named_and_nothing_runs() {
    let home = Home::new();
    let file = home.path().join("jobs.fio");
    let text = "[a]\nrw=write\nsize=1m\nlatency_target=5ms\n[t]\nrw=trim\n";
    std::fs::write(&file, text).expect("the job file is written");
    let mut command = Command::new(binary());
    home.adopt(&mut command);
    command.args(["bench", "--fio-job", "jobs.fio", "--no-html"]);
    let refused = Answer::of(command.output().expect("the program starts"));
    assert_eq!(refused.status, Some(2), "{refused}");
    for part in ["jobs.fio:4: [a] latency_target=5ms:", "jobs.fio:6: [t] rw=trim:"] {
        assert!(refused.stderr.contains(part), "{refused}");
    }
    command.args(["--ignore-unsupported", "--json", "-"]);
    let answer = Answer::of(command.output().expect("the program starts"));
    assert_eq!(answer.status, Some(0), "{answer}");
    let run = answer.json();
    assert_eq!(run["job_file"]["ignored"].as_array().map(Vec::len), Some(2), "{run}");
    assert_eq!(run["results"].as_array().map(Vec::len), Some(1), "{run}");
}
