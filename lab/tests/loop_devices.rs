//! The devices of known truth themselves, checked with fio and with plain reads before they judge the program.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::common::fio::{self, FioJob, FioResult};
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{
    FailingDevice, FilesystemKind, LimitForAll, Limits, LoopDevice, PausingDevice, SmallFilesystem,
    ThrottledLoop, left, mark, programs,
};

const MIB: u64 = 1 << 20;

#[test]
fn a_throttled_loop_is_as_fast_as_its_limits_say() {
    let _turn = take_turns();
    let needs = [Need::Root, Need::Loop, Need::BlockThrottle, Need::Program("fio", "fio")];
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
    assert!((read.bytes_per_second / rate - 1.0).abs() < 0.03, "{read:?}");
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
    let file = File::options().read(true).write(true).open(device.path()).unwrap();
    let mut block = [0; 4096];
    file.read_exact_at(&mut block, 0).unwrap();
    device.begin_to_fail().unwrap();
    let error = file.read_exact_at(&mut block, 8 * MIB).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()), "{error}");
    device.vanish();
    let error = file.read_exact_at(&mut block, 12 * MIB).unwrap_err();
    assert_ne!(error.kind(), ErrorKind::UnexpectedEof, "{error}");
}

#[test]
fn a_device_has_its_write_cache_whatever_its_number_was_before() {
    let _turn = take_turns();
    if !can_run("write cache of a loop", &[Need::Root, Need::Loop]) {
        return;
    }
    let cache = |device: &LoopDevice| {
        let name = device.path().file_name().unwrap().to_string_lossy();
        let file = format!("/sys/block/{name}/queue/write_cache");
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    };
    let without = LoopDevice::on_disk(MIB).unwrap();
    without.without_write_cache().unwrap();
    assert_eq!(cache(&without), "write through");
    let number = without.path().to_owned();
    drop(without);
    // The kernel gives the lowest number that is free.
    let next: Vec<LoopDevice> = (0..4).map(|_| LoopDevice::on_disk(MIB).unwrap()).collect();
    assert!(next.iter().any(|device| device.path() == number));
    for device in &next {
        assert_eq!(cache(device), "write back", "{}", device.path().display());
    }
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
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()), "{error}");
}

#[test]
fn what_a_guard_made_is_gone_after_a_panic() {
    let _turn = take_turns();
    let needs = [Need::Root, Need::Loop, Need::Filesystem("ext4"), Need::NbdFile];
    if !can_run("guards", &needs) {
        return;
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    let panicked = std::thread::spawn(move || {
        let filesystem = SmallFilesystem::new(FilesystemKind::Ext4, 64 * MIB).unwrap();
        let pausing = PausingDevice::new(MIB).unwrap();
        let node = filesystem.device().map(|device| device.path().to_path_buf());
        let _open = File::create(filesystem.path().join("open")).unwrap();
        sender.send((filesystem.path().to_path_buf(), node, pausing.path())).unwrap();
        // As a panic would, but nothing is printed that a reader of the log would take for a failure.
        std::panic::resume_unwind(Box::new("on purpose"));
    })
    .join();
    assert!(panicked.is_err());
    let (point, node, file) = receiver.recv().unwrap();
    assert!(!point.exists(), "{} is still there", point.display());
    assert!(!file.exists(), "{} is still there", file.display());
    let attached =
        programs::run("losetup", &["--list", "--noheadings", "--output", "NAME,BACK-FILE"])
            .unwrap();
    let node = node.unwrap().display().to_string();
    let ours = attached.lines().find(|line| line.starts_with(&node) && line.contains("rubus-lab-"));
    assert_eq!(ours, None);
}

#[test]
fn what_a_killed_process_left_is_removed_and_what_a_living_one_uses_is_kept() {
    let _turn = take_turns();
    let needs = [Need::Root, Need::Loop, Need::Program("mkfs.ext4", "e2fsprogs")];
    if !can_run("what was left", &needs) {
        return;
    }
    let living = LoopDevice::new(4 * MIB).unwrap();
    let directory = mark::directory().unwrap();
    // As a process would have left it that was killed; none has a number this high.
    let dead = "rubus-lab-4999999999-";
    let image = format!("/var/tmp/{dead}abc.img");
    File::create(&image).unwrap().set_len(32 * MIB).unwrap();
    let device = programs::run("losetup", &["--find", "--show", &image]).unwrap();
    let part = ["--find", "--show", "--sizelimit", "1048576", &device];
    let part = programs::run("losetup", &part).unwrap();
    programs::run("mkfs.ext4", &["-q", "-F", &device]).unwrap();
    let point = std::env::temp_dir().join(format!("{dead}point"));
    let at = point.display().to_string();
    std::fs::create_dir(&point).unwrap();
    programs::run("mount", &[&device, &at]).unwrap();
    std::fs::write(point.join("file"), "kept with the disk").unwrap();
    let record = format!("/run/{dead}0001.settings");
    let setting = "/proc/sys/vm/page-cluster";
    let before = std::fs::read_to_string(setting).unwrap();
    std::fs::write(&record, format!("{setting}\t7\n")).unwrap();
    let name = device.trim_start_matches("/dev/").to_string();
    let limited = limited_at_the_root(&name);

    let told = left::remove();
    let now = std::fs::read_to_string(setting).unwrap();
    std::fs::write(setting, before.trim()).unwrap();
    report(&told.join("\n"));
    assert!(told.iter().all(|line| !line.contains("could not")), "{told:?}");
    assert_eq!(now.trim(), "7");
    let backing = |device: &str| {
        let name = device.trim_start_matches("/dev/");
        std::path::Path::new(&format!("/sys/block/{name}/loop/backing_file")).exists()
    };
    assert!(!backing(&device) && !backing(&part), "{told:?}");
    for path in [&image, &at, &record] {
        assert!(!std::path::Path::new(path).exists(), "{path} is there");
    }
    assert!(limited.is_none_or(|is_limited| !is_limited()), "{told:?}");
    assert!(backing(&living.path().display().to_string()));
    assert!(directory.path().is_dir());
    assert!(left::remove().is_empty(), "nothing is left");
}

/// Limits a device at the root group, as a killed process leaves it, and returns a check of whether the limit still
/// stands. None where there are no such limits.
fn limited_at_the_root(name: &str) -> Option<impl Fn() -> bool> {
    if LimitForAll::missing().is_some() {
        return None;
    }
    let text = std::fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
    let (major, minor) = text.trim().split_once(':').unwrap();
    let limits = Limits { read_iops: Some(100_000), ..Limits::default() };
    let limit = LimitForAll::new((major.parse().unwrap(), minor.parse().unwrap()), limits).unwrap();
    let file = limit.file_of_reads();
    std::mem::forget(limit);
    let line = format!("{} ", text.trim());
    let is_limited = move || {
        let text = std::fs::read_to_string(&file).unwrap();
        text.lines().any(|of| of.starts_with(&line))
    };
    assert!(is_limited());
    Some(is_limited)
}
