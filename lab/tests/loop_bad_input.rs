//! Whatever is wrong with what the program is given, or goes wrong in the middle: it says so
//! clearly, ends with the right status, leaves no file behind and loses no history.

use std::fs::{File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::program::{Answer, Home, binary};
use crate::common::run;
use crate::common::{can_run, leftovers, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{FailingDevice, FilesystemKind, LoopDevice, SmallFilesystem, programs};
use rustix::process::Signal;

const MIB: u64 = 1 << 20;

// --- Targets that cannot be used ------------------------------------------------------------

#[test]
fn a_target_that_does_not_exist_is_named_and_not_created() {
    let _turn = take_turns();
    let home = home_with_a_run();
    let dangling = home.path().join("dangling");
    symlink("/nonexistent/file", &dangling).unwrap();
    let dangling = dangling.display().to_string();
    for target in ["/nonexistent/directory", "/dev/nonexistent-disk", &dangling] {
        for verb in ["bench", "checkup"] {
            let answer = home.run(&[verb, target]);
            check_refusal(&answer, 2, &[target, "there is no such file, directory or disk"]);
        }
        let allowed = format!("--i-will-lose-everything-on={target}");
        check_refusal(&home.run(&["bench", target, &allowed]), 2, &[target]);
        assert!(!Path::new(target).exists(), "{target} was created");
    }
    assert_eq!(home.runs(), 1);
}

#[test]
fn what_is_neither_file_nor_directory_nor_disk_is_refused() {
    let _turn = take_turns();
    let home = home_with_a_run();
    for target in ["/dev/null", "/dev/tty"] {
        let answer = home.run(&["bench", target]);
        check_refusal(&answer, 2, &[target]);
    }
    let file = home.path().join("empty");
    File::create(&file).unwrap();
    let file = file.display().to_string();
    check_refusal(&home.run(&["bench", &file]), 2, &[&file]);
    assert_eq!(home.runs(), 1);
}

#[test]
fn a_directory_without_permission_says_so() {
    let _turn = take_turns();
    if !can_run("no permission", &[Need::Root, Need::Program("setpriv", "util-linux")]) {
        return;
    }
    let home = home_with_a_run();
    // The program may lie where other users cannot read it.
    let program = home.path().join("program");
    std::fs::copy(binary(), &program).unwrap();
    let target = home.path().join("forbidden");
    std::fs::create_dir(&target).unwrap();
    for mode in [0o700, 0o555] {
        std::fs::set_permissions(&target, Permissions::from_mode(mode)).unwrap();
        let before = leftovers::entries(&target);
        for verb in ["bench", "checkup"] {
            let mut command = programs::command("setpriv");
            home.adopt(&mut command);
            command
                .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
                .arg(&program)
                .arg(verb)
                .arg(&target);
            let answer = Answer::of(command.output().unwrap());
            let path = target.display().to_string();
            check_refusal(&answer, 2, &[&path, "ermission denied"]);
        }
        assert_eq!(leftovers::entries(&target), before);
    }
    assert_eq!(home.runs(), 1);
}

#[test]
fn a_full_filesystem_is_not_made_fuller() {
    let _turn = take_turns();
    if !can_run("full filesystem", &FILESYSTEM) {
        return;
    }
    let home = home_with_a_run();
    let filesystem = SmallFilesystem::new(FilesystemKind::Ext4, 64 * MIB).unwrap();
    filesystem.fill(256 * 1024).unwrap();
    let before = (leftovers::entries(filesystem.path()), filesystem.free_bytes().unwrap());
    let path = filesystem.path().display().to_string();
    for verb in ["bench", "checkup"] {
        check_refusal(&home.run(&[verb, &path]), 2, &[&path, "free space"]);
    }
    let after = (leftovers::entries(filesystem.path()), filesystem.free_bytes().unwrap());
    assert_eq!(before, after);
    assert_eq!(home.runs(), 1);
}

#[test]
fn a_filesystem_that_fills_up_in_the_middle_does_no_harm() {
    let _turn = take_turns();
    if !can_run("filling filesystem", &FILESYSTEM) {
        return;
    }
    let home = home_with_a_run();
    let filesystem = SmallFilesystem::new(FilesystemKind::Ext4, 512 * MIB).unwrap();
    let running = Running::start(&home, filesystem.path(), &["--json", "-"]);
    running.wait_until_it_writes(filesystem.path());
    filesystem.fill(0).unwrap();
    let answer = running.finish(PATIENCE);
    // What the test needs may all have been there already; else it says what was missing.
    match answer.status {
        Some(0) => {}
        Some(1) => assert!(answer.stderr.contains("No space left"), "{answer}"),
        _ => panic!("{answer}"),
    }
    assert!(!answer.stderr.contains("panicked"), "{answer}");
    answer.json();
    assert_eq!(leftovers::entries(filesystem.path()).len(), 2, "lost+found and the filling");
    assert!(home.runs() >= 1);
}

#[test]
fn a_read_only_filesystem_says_so() {
    let _turn = take_turns();
    if !can_run("read-only filesystem", &FILESYSTEM) {
        return;
    }
    let home = home_with_a_run();
    let filesystem = SmallFilesystem::new(FilesystemKind::Ext4, 256 * MIB).unwrap();
    filesystem.make_read_only().unwrap();
    let path = filesystem.path().display().to_string();
    for verb in ["bench", "checkup"] {
        check_refusal(&home.run(&[verb, &path]), 2, &[&path, "ead-only"]);
    }
    assert_eq!(home.runs(), 1);
}

#[test]
fn a_device_smaller_than_the_test_is_refused_or_the_test_made_smaller() {
    let _turn = take_turns();
    if !can_run("small device", &[Need::Root, Need::Loop]) {
        return;
    }
    let home = home_with_a_run();
    for kib in [4, 1024] {
        let device = LoopDevice::new(kib * 1024).unwrap();
        let path = device.path().display().to_string();
        let allowed = format!("--i-will-lose-everything-on={path}");
        check_refusal(&home.run(&["bench", &path, "--read-only"]), 2, &[&path, "iB"]);
        check_refusal(&home.run(&["bench", &path, &allowed]), 2, &[&path, "iB"]);
        check_refusal(&home.run(&["bench", &path, "--size", "1GiB", &allowed]), 2, &[&path]);
    }
    assert_eq!(home.runs(), 1);
    let device = LoopDevice::new(16 * MIB).unwrap();
    let path = device.path().display().to_string();
    let answer = home.run(&["bench", &path, "--read-only", "--size", "1GiB", "--json", "-"]);
    match answer.status {
        Some(0) => {
            let run = answer.json();
            assert!(run["target"]["region_bytes"].as_u64().unwrap() <= 16 * MIB);
            let doubts = run::all_doubts(&run);
            assert!(doubts.iter().any(|doubt| doubt == "small_region"), "{doubts:?}");
        }
        _ => check_refusal(&answer, 2, &[&path, "16.0 MiB"]),
    }
}

#[test]
fn a_device_in_use_is_refused_and_keeps_its_contents() {
    let _turn = take_turns();
    if !can_run("device in use", &FILESYSTEM) {
        return;
    }
    let home = home_with_a_run();
    let filesystem = SmallFilesystem::new(FilesystemKind::Ext4, 64 * MIB).unwrap();
    std::fs::write(filesystem.path().join("precious"), "precious").unwrap();
    let device = filesystem.device().unwrap();
    // Mounted all the same, but nothing is written by the filesystem itself.
    filesystem.make_read_only().unwrap();
    let before = std::fs::read(device.file().unwrap()).unwrap();
    let path = device.path().display().to_string();
    let link = home.path().join("link");
    symlink(device.path(), &link).unwrap();
    let link = link.display().to_string();
    for target in [&path, &link] {
        let allowed = format!("--i-will-lose-everything-on={target}");
        check_refusal(&home.run(&["bench", target]), 3, &["refused", target]);
        check_refusal(&home.run(&["bench", target, &allowed]), 3, &["refused", "mounted"]);
    }
    assert!(before == std::fs::read(device.file().unwrap()).unwrap(), "the device was changed");
    assert_eq!(home.runs(), 1);
}

// --- Targets that fail in the middle --------------------------------------------------------

#[test]
fn a_device_that_begins_to_fail_ends_the_run_with_what_there_is() {
    let _turn = take_turns();
    if !can_run("failing device", &[Need::Root, Need::NbdFile]) {
        return;
    }
    let home = home_with_a_run();
    let device = FailingDevice::new(64 * MIB).unwrap();
    let running = Running::start(&home, &device.path(), &["--read-only", "--json", "-"]);
    std::thread::sleep(MIDDLE);
    device.begin_to_fail().unwrap();
    check_failure(&running.finish(PATIENCE), "(os error 5)");
    assert!(home.runs() >= 1);
}

#[test]
fn a_device_that_vanishes_ends_the_run_with_what_there_is() {
    let _turn = take_turns();
    if !can_run("vanishing device", &[Need::Root, Need::NbdFile]) {
        return;
    }
    let home = home_with_a_run();
    let mut device = FailingDevice::new(64 * MIB).unwrap();
    let running = Running::start(&home, &device.path(), &["--read-only", "--json", "-"]);
    std::thread::sleep(MIDDLE);
    device.vanish();
    check_failure(&running.finish(PATIENCE), "");
    assert!(home.runs() >= 1);
}

#[test]
fn a_file_cut_under_its_loop_device_ends_the_run_with_what_there_is() {
    let _turn = take_turns();
    if !can_run("truncated loop", &[Need::Root, Need::DirectLoop]) {
        return;
    }
    let home = home_with_a_run();
    let device = LoopDevice::on_disk(64 * MIB).unwrap();
    let running = Running::start(&home, device.path(), &["--read-only", "--json", "-"]);
    std::thread::sleep(MIDDLE);
    device.truncate_file(MIB).unwrap();
    check_failure(&running.finish(PATIENCE), "(os error 5)");
    assert!(home.runs() >= 1);
}

// --- Words that are not understood ----------------------------------------------------------

#[test]
fn an_unknown_suite_suggests_the_nearest() {
    let _turn = take_turns();
    let home = home_with_a_run();
    let answer = home.run(&["bench", "/tmp", "--suite", "quik"]);
    check_refusal(&answer, 2, &["quik", "quick"]);
    assert_eq!(home.runs(), 1);
}

#[test]
fn a_broken_capture_is_named() {
    let _turn = take_turns();
    let home = Home::new();
    let good = home.path().join("good.tar");
    let good_name = good.display().to_string();
    let saved = home.run(&["survey", "--save", &good_name]);
    assert_eq!(saved.status, Some(0), "{saved}");
    let contents = std::fs::read(&good).unwrap();
    let broken: [(&str, Vec<u8>); 4] = [
        ("empty", Vec::new()),
        ("noise", (0..5000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()),
        ("cut", contents[..contents.len() / 2 + 100].to_vec()),
        ("text", b"This is no capture.\n".repeat(100)),
    ];
    for (name, bytes) in broken {
        let file = home.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let file = file.display().to_string();
        check_refusal(&home.run(&["--machine", &file, "survey"]), 2, &[&file]);
    }
    check_refusal(&home.run(&["--machine", "/nonexistent", "survey"]), 2, &["/nonexistent"]);
    let directory = home.path().join("directory");
    std::fs::create_dir(&directory).unwrap();
    let directory = directory.display().to_string();
    check_refusal(&home.run(&["--machine", &directory, "survey"]), 2, &[&directory]);
    let again = home.run(&["--machine", &good_name, "survey"]);
    assert_eq!(again.status, Some(0), "the good one: {again}");
}

// --- Histories that cannot be used ----------------------------------------------------------

#[test]
fn an_unusable_history_is_kept_as_it_is_and_costs_no_result() {
    let _turn = take_turns();
    if !can_run("unusable history", &[Need::Root]) {
        return;
    }
    let home = home_with_a_run();
    let good = std::fs::read(home.database()).unwrap();
    // The version that a program gives its database stands at bytes 60 to 63 of the file.
    let mut newer = good.clone();
    newer[60..64].copy_from_slice(&999_999_u32.to_be_bytes());
    let mut torn = good.clone();
    torn.truncate(good.len() / 2);
    for byte in &mut torn[100..] {
        *byte = !*byte;
    }
    let target = SmallFilesystem::new(FilesystemKind::Tmpfs, 512 * MIB).unwrap();
    let target_path = target.path().display().to_string();
    let database = home.database().display().to_string();
    let second = "[reads]\nrw=randread\nbs=4k\nsize=16m\ntime_based\nruntime=1\n";
    std::fs::write(home.path().join("second.fio"), second).unwrap();
    let noise = b"not a database at all, and long enough to look like something".repeat(100);
    for (name, bytes) in [("noise", noise), ("torn", torn), ("newer", newer)] {
        for companion in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{database}{companion}"));
        }
        std::fs::write(home.database(), &bytes).unwrap();
        check_refusal(&home.run(&["history"]), 2, &[&database]);
        let answer = home.run(&["bench", "--fio-job", "second.fio", &target_path, "--json", "-"]);
        assert_eq!(answer.status, Some(0), "{name}: {answer}");
        assert!(answer.stderr.contains(&database), "{name}: {answer}");
        assert!(!run::results(&answer.json()).is_empty(), "{name}: {answer}");
        let unchanged = std::fs::read(home.database()).unwrap() == bytes;
        assert!(unchanged, "{name}: the file was changed");
    }
    std::fs::write(home.database(), &good).unwrap();
    assert_eq!(home.runs(), 1);
}

// --- Ends in the middle ---------------------------------------------------------------------

#[test]
fn control_c_prints_what_there_is_and_leaves_nothing() {
    let _turn = take_turns();
    if !can_run("interrupt", &FILESYSTEM) {
        return;
    }
    let home = home_with_a_run();
    let filesystem = SmallFilesystem::new(FilesystemKind::Ext4, 1024 * MIB).unwrap();
    let before = leftovers::entries(filesystem.path());
    let used = leftovers::used_bytes(filesystem.path());
    let running = Running::start(&home, filesystem.path(), &["--json", "-"]);
    running.wait_until_it_writes(filesystem.path());
    // Long enough for the first job to end, too short for all of them.
    std::thread::sleep(MIDDLE * 3);
    running.signal(Signal::INT);
    let answer = running.finish(PATIENCE);
    assert_eq!(answer.status, Some(1), "{answer}");
    let run = answer.json();
    assert!(!run::results(&run).is_empty(), "{answer}");
    let doubts = run::all_doubts(&run);
    assert!(doubts.iter().any(|doubt| doubt == "interrupted"), "{doubts:?}");
    assert!(answer.stderr.contains("stopped"), "{answer}");
    assert_eq!(leftovers::entries(filesystem.path()), before);
    check_used(filesystem.path(), used);
    assert!(home.runs() >= 1);
}

#[test]
fn a_killed_program_leaves_nothing() {
    let _turn = take_turns();
    if !can_run("kill", &FILESYSTEM) {
        return;
    }
    let home = home_with_a_run();
    let filesystem = SmallFilesystem::new(FilesystemKind::Ext4, 1024 * MIB).unwrap();
    let before = leftovers::entries(filesystem.path());
    let used = leftovers::used_bytes(filesystem.path());
    let running = Running::start(&home, filesystem.path(), &[]);
    running.wait_until_it_writes(filesystem.path());
    running.signal(Signal::KILL);
    let answer = running.finish(PATIENCE);
    assert_eq!(answer.status, None, "{answer}");
    assert_eq!(leftovers::entries(filesystem.path()), before);
    check_used(filesystem.path(), used);
    assert_eq!(home.runs(), 1);
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let _turn = take_turns();
    if !can_run("closed pipe", &[Need::Root]) {
        return;
    }
    let home = home_with_a_run();
    let target = SmallFilesystem::new(FilesystemKind::Tmpfs, 512 * MIB).unwrap();
    let path = target.path().display().to_string();
    let commands: [&[&str]; 5] = [
        &["history", "--json"],
        &["history", "show", "1"],
        &["survey", "--json"],
        &["--help"],
        &["bench", &path, "--read-only", "--json", "-"],
    ];
    for arguments in commands {
        let mut child = home
            .command()
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The reader is gone.
        drop(child.stdout.take());
        let answer = Answer::of(child.wait_with_output().unwrap());
        for word in ["panicked", "Broken pipe"] {
            assert!(!answer.stderr.contains(word), "{arguments:?}: {answer}");
        }
    }
    assert_eq!(leftovers::used_bytes(target.path()), 0);
    assert!(home.runs() >= 1);
}

// --- Helpers --------------------------------------------------------------------------------

const FILESYSTEM: [Need; 4] =
    [Need::Root, Need::Loop, Need::Program("mkfs.ext4", "e2fsprogs"), Need::Filesystem("ext4")];
/// After this long a run is in the middle of its first jobs.
const MIDDLE: Duration = Duration::from_secs(3);
/// No run that was disturbed takes longer to end.
const PATIENCE: Duration = Duration::from_secs(300);

/// A home whose history has one run, of another machine.
fn home_with_a_run() -> Home {
    const RUNS: &str = include_str!("../../crates/runs/src/store/data/export-0.2.0.jsonl");
    let home = Home::new();
    let run = home.path().join("run.jsonl");
    std::fs::write(&run, RUNS.lines().next().expect("a run")).expect("room");
    let imported = home.run(&["history", "import", &run.display().to_string()]);
    assert_eq!(imported.status, Some(0), "{imported}");
    assert_eq!(home.runs(), 1);
    std::fs::remove_file(run).expect("it is there");
    // Some tests run the program as another user.
    let directory = home.database().parent().map(Path::to_path_buf);
    let directory = directory.expect("a directory");
    std::fs::set_permissions(&directory, Permissions::from_mode(0o777)).expect("permissions");
    std::fs::set_permissions(home.database(), Permissions::from_mode(0o666)).expect("permissions");
    home
}

/// It ended with this status, said all these words, and did not crash.
fn check_refusal(answer: &Answer, status: i32, words: &[&str]) {
    assert_eq!(answer.status, Some(status), "{answer}");
    for word in words {
        assert!(answer.stderr.contains(word), "no '{word}' in: {answer}");
    }
    assert!(!answer.stderr.contains("panicked"), "{answer}");
    assert!(answer.stdout.is_empty(), "{answer}");
}

/// It said what failed, gave what it had as JSON with the doubt, and ended with status 1.
fn check_failure(answer: &Answer, error: &str) {
    assert_eq!(answer.status, Some(1), "{answer}");
    assert!(answer.stderr.contains("the target failed"), "{answer}");
    assert!(answer.stderr.contains(error), "no '{error}' in: {answer}");
    assert!(!answer.stderr.contains("panicked"), "{answer}");
    let doubts = run::all_doubts(&answer.json());
    assert!(doubts.iter().any(|doubt| doubt == "target_failed"), "{doubts:?}");
}

/// What a killed program had in use is free again, soon.
fn check_used(directory: &Path, before: u64) {
    let give_up = Instant::now() + PATIENCE;
    // ext4 keeps a few blocks of metadata for itself.
    while leftovers::used_bytes(directory) > before + MIB / 2 {
        let used = leftovers::used_bytes(directory);
        assert!(Instant::now() < give_up, "{used} bytes in use, {before} before");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A bench that runs in the background; killed if the test ends before it.
struct Running {
    child: Option<Child>,
    used_before: u64,
}

impl Running {
    fn start(home: &Home, target: &Path, arguments: &[&str]) -> Self {
        let used_before = leftovers::used_bytes(target);
        let mut command: Command = home.command();
        command.arg("bench").arg(target).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { child: Some(command.spawn().expect("the program starts")), used_before }
    }

    /// Waits until the program has something on the filesystem of its target.
    fn wait_until_it_writes(&self, directory: &Path) {
        let give_up = Instant::now() + PATIENCE;
        while leftovers::used_bytes(directory) < self.used_before + 4 * MIB {
            assert!(Instant::now() < give_up, "it writes nothing");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("still running");
        let process = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(process, signal).expect("a signal can be sent");
    }

    /// Waits for its end, which must come in time.
    fn finish(mut self, patience: Duration) -> Answer {
        let child = self.child.take().expect("still running");
        let process = rustix::process::Pid::from_child(&child);
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        let Ok(output) = receiver.recv_timeout(patience) else {
            let _ = rustix::process::kill_process(process, Signal::KILL);
            panic!("it did not end within {patience:?}");
        };
        Answer::of(output.expect("its output"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
