//! The devices of known truth themselves, checked with fio and with plain reads: before they judge
//! the program, somebody has to judge them.

mod common;

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use common::fio::{self, FioJob, FioResult};
use common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{
    FailingDevice, FilesystemKind, Limits, LoopDevice, PausingDevice, SmallFilesystem,
    ThrottledLoop, programs,
};

const MIB: u64 = 1 << 20;

#[test]
fn a_throttled_loop_is_as_fast_as_its_limits_say() {
    let _turn = take_turns();
    let needs = [
        Need::Root,
        Need::Loop,
        Need::BlockThrottle,
        Need::Program("fio", "fio"),
    ];
    if !can_run("throttled loop", &needs) {
        return;
    }
    let limits = Limits {
        read_bytes_per_second: Some(30 * MIB),
        write_iops: Some(700),
        ..Limits::default()
    };
    let device = ThrottledLoop::new(128 * MIB, limits).unwrap();
    let job = |pattern, block_bytes, depth| FioJob {
        pattern,
        block_bytes,
        depth,
        region_bytes: 128 * MIB,
        seconds: 4,
    };
    let (rate, count) = ((30 * MIB) as f64, 700.0);
    let command = || device.command("fio");
    let measure = |job, truth, figure: fn(&FioResult) -> f64| {
        fio::run_undisturbed(command, device.path(), job, (truth, 0.03), figure)
    };
    let read = measure(job("read", MIB, 1), rate, |fio| fio.bytes_per_second);
    let write = measure(job("randwrite", 4096, 32), count, |fio| fio.iops);
    report(&format!(
        "fio: {:.2} MiB/s of 30, {:.1} IOPS of 700",
        read.bytes_per_second / MIB as f64,
        write.iops
    ));
    // A slice of the throttle is a fortieth of the time.
    assert!(
        (read.bytes_per_second / rate - 1.0).abs() < 0.03,
        "{read:?}"
    );
    assert!((write.iops / count - 1.0).abs() < 0.03, "{write:?}");
}

#[test]
fn a_pause_holds_a_read_back_until_it_ends() {
    let _turn = take_turns();
    if !can_run("pausing device", &[Need::Root, Need::NbdFile]) {
        return;
    }
    let mut device = PausingDevice::new(MIB).unwrap();
    let file = File::open(device.path()).unwrap();
    // What is read ahead is not held back.
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
    let reader = std::thread::spawn(move || {
        // Over the whole file: what was read once may come from memory.
        let mut longest = Duration::ZERO;
        let mut block = [0; 4096];
        for number in 0..MIB / 4096 {
            let began = Instant::now();
            file.read_exact_at(&mut block, number * 4096).unwrap();
            longest = longest.max(began.elapsed());
            std::thread::sleep(Duration::from_millis(3));
        }
        longest
    });
    std::thread::sleep(Duration::from_millis(50));
    let span = device.pause(Duration::from_millis(400)).unwrap();
    let longest = reader.join().unwrap();
    assert!(span.length() >= Duration::from_millis(400));
    assert!(
        longest >= Duration::from_millis(350),
        "longest read {longest:?}, paused {:?}",
        span.length()
    );
}

#[test]
fn a_failing_device_works_until_it_is_told_to_fail() {
    let _turn = take_turns();
    if !can_run("failing device", &[Need::Root, Need::NbdFile]) {
        return;
    }
    let mut device = FailingDevice::new(16 * MIB).unwrap();
    let file = File::options()
        .read(true)
        .write(true)
        .open(device.path())
        .unwrap();
    let mut block = [0; 4096];
    file.read_exact_at(&mut block, 0).unwrap();
    device.begin_to_fail().unwrap();
    let error = file.read_exact_at(&mut block, 8 * MIB).unwrap_err();
    assert_eq!(
        error.raw_os_error(),
        Some(rustix::io::Errno::IO.raw_os_error()),
        "{error}"
    );
    device.vanish();
    let error = file.read_exact_at(&mut block, 12 * MIB).unwrap_err();
    assert_ne!(error.kind(), ErrorKind::UnexpectedEof, "{error}");
}

#[test]
fn a_truncated_loop_fails_beyond_its_end() {
    let _turn = take_turns();
    if !can_run("truncated loop", &[Need::Root, Need::DirectLoop]) {
        return;
    }
    let device = LoopDevice::on_disk(16 * MIB).unwrap();
    let file = File::open(device.path()).unwrap();
    let mut block = [0; 4096];
    file.read_exact_at(&mut block, 12 * MIB).unwrap();
    device.truncate_file(4 * MIB).unwrap();
    file.read_exact_at(&mut block, MIB).unwrap();
    let error = file.read_exact_at(&mut block, 14 * MIB).unwrap_err();
    assert_eq!(
        error.raw_os_error(),
        Some(rustix::io::Errno::IO.raw_os_error()),
        "{error}"
    );
}

#[test]
fn what_a_guard_made_is_gone_after_a_panic() {
    let _turn = take_turns();
    let needs = [
        Need::Root,
        Need::Loop,
        Need::Filesystem("ext4"),
        Need::NbdFile,
    ];
    if !can_run("guards", &needs) {
        return;
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    let panicked = std::thread::spawn(move || {
        let filesystem = SmallFilesystem::new(FilesystemKind::Ext4, 64 * MIB).unwrap();
        let pausing = PausingDevice::new(MIB).unwrap();
        let node = filesystem
            .device()
            .map(|device| device.path().to_path_buf());
        let _open = File::create(filesystem.path().join("open")).unwrap();
        sender
            .send((filesystem.path().to_path_buf(), node, pausing.path()))
            .unwrap();
        panic!("on purpose");
    })
    .join();
    assert!(panicked.is_err());
    let (point, node, file) = receiver.recv().unwrap();
    assert!(!point.exists(), "{} is still there", point.display());
    assert!(!file.exists(), "{} is still there", file.display());
    let attached = programs::run(
        "losetup",
        &["--list", "--noheadings", "--output", "NAME,BACK-FILE"],
    )
    .unwrap();
    let node = node.unwrap().display().to_string();
    let ours = attached
        .lines()
        .find(|line| line.starts_with(&node) && line.contains("rubus-lab-"));
    assert_eq!(ours, None);
}
