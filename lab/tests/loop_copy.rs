//! `rubus copy` from ext4 to compressed btrfs: what arrives is judged by tools that are not ours, also after kills, on a
//! full target and from a source that fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::nasty_tree::{self, NEEDS, differences, noise, shell};
use crate::common::program::{Answer, Home};
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{FailingDevice, FilesystemKind, LoopDevice, SmallFilesystem, programs};

const MIB: u64 = 1 << 20;

/// A source with a tree, and an empty target.
struct Fixture {
    home: Home,
    source: SmallFilesystem,
    target: SmallFilesystem,
}

impl Fixture {
    fn new(target: FilesystemKind, target_bytes: u64) -> Self {
        let fixture = Fixture {
            home: Home::new(),
            source: SmallFilesystem::new(FilesystemKind::Ext4, 1024 * MIB).unwrap(),
            target: SmallFilesystem::new(target, target_bytes).unwrap(),
        };
        fs::create_dir(fixture.from()).unwrap();
        fixture
    }

    fn from(&self) -> PathBuf {
        self.source.path().join("from")
    }

    fn to(&self) -> PathBuf {
        self.target.path().join("to")
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let (from, to) = (self.from(), self.to());
        let mut arguments =
            vec!["copy".to_string(), from.display().to_string(), to.display().to_string()];
        arguments.extend(more.iter().map(|text| text.to_string()));
        arguments
    }

    fn copy(&self, more: &[&str]) -> Answer {
        let arguments = self.arguments(more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.home.run(&arguments)
    }

    fn must_be_same(&self) {
        let found = differences(&self.from(), &self.to());
        assert!(found.is_empty(), "{found}");
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // Flags that would keep temporary files from being removed are gone with the filesystems.
        let _ = programs::run("sync", &[]);
    }
}

#[test]
fn a_nasty_tree_arrives_whole() {
    let _turn = take_turns();
    if !can_run("a nasty tree", &NEEDS) {
        return;
    }
    let fixture = Fixture::new(FilesystemKind::BtrfsCompressed, 1024 * MIB);
    nasty_tree::grow(&fixture.from());
    // What was touched in the last seconds is not read from the disk below the filesystem.
    std::thread::sleep(Duration::from_secs(11));
    let answer = fixture.copy(&["--json", "--verify", "all"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    let receipt = answer.json();
    let gathered = receipt["copy"]["gathered"].as_u64().unwrap();
    assert!(gathered > 1000, "{answer}");
    assert_eq!(receipt["copy"]["hard_links"], 100, "{answer}");
    assert_eq!(receipt["comparison"]["differences"]["count"], 0, "{answer}");
    // The flags that only ext4 knows are named, and nothing else is left out.
    let skipped = receipt["copy"]["skipped"]["examples"].to_string();
    assert!(skipped.contains("top"), "{skipped}");
    assert_eq!(receipt["copy"]["skipped"]["count"], 1, "{skipped}");
    fixture.must_be_same();

    // What was not touched is not copied again, and what was is.
    let again = fixture.copy(&["--json", "--again"]);
    assert_eq!(again.status, Some(0), "{again}");
    assert_eq!(again.json()["copy"]["copied_bytes"], 0, "{again}");
    touch_some(&fixture.from());
    let again = fixture.copy(&["--json", "--again", "--last", "--verify", "all"]);
    assert_eq!(again.status, Some(0), "{again}");
    let copied = again.json()["copy"]["copied_bytes"].as_u64().unwrap();
    assert!(copied > 0 && copied < 4 * MIB, "{again}");
    assert!(!fixture.to().join(".rubus-copy").exists());
    fixture.must_be_same();
}

/// Changes of every sort, between two passes.
fn touch_some(root: &Path) {
    shell(
        root,
        "chattr -i immutable immutable-directory; chattr -a append
         echo more >> append; rm immutable; echo new > immutable; chattr +i immutable
         rm -r immutable-directory; echo now a file > immutable-directory
         rm link fifo; mkdir link; echo x > link/inside; rm links/7; cp links/8 links/7
         rm -r tree/5 deep; mv tree/6 tree/moved; chmod 0711 tree/7; chown 9:9 text; touch -r x text
         setfattr -x user.one x; setfacl -b listed; setfacl -k default; setcap -r capable
         printf y | dd of=many/77 conv=notrunc bs=1 status=none; touch -d '2020-01-01' many/77
         chattr +a append",
    );
}

#[test]
fn files_that_change_and_vanish_are_told_and_mended_by_the_next_pass() {
    let _turn = take_turns();
    if !can_run("a tree in use", &NEEDS) {
        return;
    }
    let fixture = Fixture::new(FilesystemKind::BtrfsCompressed, 1024 * MIB);
    let from = fixture.from();
    for directory in 0..20 {
        fs::create_dir(from.join(format!("d{directory}"))).unwrap();
        for file in 0..300 {
            fs::write(from.join(format!("d{directory}/{file}")), noise(8000, file + 1)).unwrap();
        }
    }
    fs::write(from.join("zz-growing"), "").unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    let mut child = fixture.home.command();
    let mut child = child
        .args(fixture.arguments(&["--json", "--workers", "2"]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut round = 0_u64;
    while child.try_wait().unwrap().is_none() && Instant::now() < end {
        let at = |n: u64| from.join(format!("d{}/{}", n % 20, n * 7 % 300));
        let _ = fs::remove_file(at(round));
        let _ = fs::write(at(round + 3), noise(9000, round + 1));
        let _ = fs::rename(at(round + 5), from.join(format!("d{}/moved-{round}", round % 20)));
        let log = fs::OpenOptions::new().append(true).open(from.join("zz-growing"));
        std::io::Write::write_all(&mut log.unwrap(), &noise(3000, round + 1)).unwrap();
        round += 1;
        std::thread::sleep(Duration::from_micros(300));
    }
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert!(round > 10, "the copy was too fast to be disturbed: {round}");
    // Changes are told of; whether there were any that it met is chance.
    let receipt = answer.json();
    let told = receipt["copy"]["changed"]["count"].as_u64().unwrap();
    assert_eq!(answer.status, Some(i32::from(told > 0)), "{answer}");
    assert_eq!(receipt["copy"]["lost"]["count"], 0, "{answer}");
    let again = fixture.copy(&["--json", "--again", "--verify", "all"]);
    assert_eq!(again.status, Some(0), "{again}");
    fixture.must_be_same();
}

#[test]
fn a_killed_copy_is_resumed() {
    let _turn = take_turns();
    if !can_run("a killed copy", &NEEDS) {
        return;
    }
    let fixture = Fixture::new(FilesystemKind::BtrfsCompressed, 1024 * MIB);
    nasty_tree::grow(&fixture.from());
    fs::create_dir(fixture.from().join("more")).unwrap();
    for file in 0..6000 {
        let path = fixture.from().join(format!("more/{file}"));
        fs::write(path, noise(6000, file + 1)).unwrap();
    }
    let begin = || {
        let mut command = fixture.home.command();
        command.args(fixture.arguments(&["--workers", "1"]));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let mut killed = 0;
    for wait_ms in [30, 70, 130, 210, 310] {
        let mut child = begin();
        std::thread::sleep(Duration::from_millis(wait_ms));
        killed += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(killed >= 3, "only {killed} kills came in time");
    // Ctrl-C leaves a checkpoint: what was done until then is not done again.
    let mut child = begin();
    std::thread::sleep(Duration::from_millis(400));
    let process = rustix::process::Pid::from_child(&child);
    let was_running = child.try_wait().unwrap().is_none();
    let _ = rustix::process::kill_process(process, rustix::process::Signal::INT);
    let interrupted = child.wait().unwrap();
    let more: &[&str] = match (was_running, interrupted.code()) {
        (true, Some(2)) => &[],
        // It was finished before the signal came.
        _ => &["--again"],
    };
    let answer = fixture.copy(&[more, &["--verify", "all", "--json"]].concat());
    assert_eq!(answer.status, Some(0), "{answer}");
    let receipt = answer.json();
    report(&format!(
        "copy: killed {killed} times, then interrupted, then gone on with; {} entries were there",
        receipt["copy"]["unchanged"]
    ));
    assert!(receipt["copy"]["unchanged"].as_u64().unwrap() > 0, "{answer}");
    fixture.must_be_same();

    // A second pass is killed as well.
    touch_some(&fixture.from());
    for wait_ms in [10, 40] {
        let mut command = fixture.home.command();
        let child = command.args(fixture.arguments(&["--again"])).stdout(Stdio::null());
        let mut child = child.stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait_ms));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let answer = fixture.copy(&["--again", "--last"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    fixture.must_be_same();
}

#[test]
fn a_full_target_ends_the_copy_with_a_clear_word() {
    let _turn = take_turns();
    if !can_run("a full target", &NEEDS) {
        return;
    }
    let fixture = Fixture::new(FilesystemKind::Ext4, 64 * MIB);
    for file in 0..100 {
        fs::write(fixture.from().join(format!("{file}")), noise(1 << 20, file + 1)).unwrap();
    }
    let neighbour = fixture.target.path().join("neighbour");
    fs::write(&neighbour, "mine").unwrap();
    let answer = fixture.copy(&[]);
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stderr.contains("No space left on device"), "{answer}");
    assert!(answer.stderr.contains("make room"), "{answer}");
    assert_eq!(fs::read_to_string(&neighbour).unwrap(), "mine");
    // With room made in the source, the same command ends well.
    for file in 30..100 {
        fs::remove_file(fixture.from().join(format!("{file}"))).unwrap();
    }
    let answer = fixture.copy(&["--verify", "all"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    fixture.must_be_same();
}

/// Unmounts when it is dropped.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(device: &Path, options: &str) -> Self {
        let point = tempfile::TempDir::with_prefix("rubus-lab-").unwrap();
        let (device, at) = (device.display().to_string(), point.path().display().to_string());
        programs::run("mount", &["-o", options, &device, &at]).unwrap();
        Mounted(point)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let at = self.0.path().display().to_string();
        let _ = programs::run("umount", &["--lazy", &at]);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_rest_arrives() {
    let _turn = take_turns();
    let needs = [&NEEDS[..], &[Need::NbdFile]].concat();
    if !can_run("a failing source", &needs) {
        return;
    }
    let home = Home::new();
    let failing = FailingDevice::new(64 * MIB).unwrap();
    let device = LoopDevice::over(&failing.path()).unwrap();
    let node = device.path().display().to_string();
    programs::run("mkfs.ext4", &["-q", "-F", &node]).unwrap();
    {
        let source = Mounted::new(device.path(), "rw");
        for file in 0..50 {
            fs::write(source.0.path().join(format!("{file}")), noise(30_000, file + 1)).unwrap();
        }
        shell(source.0.path(), "sync -f .");
    }
    let source = Mounted::new(device.path(), "ro,noload");
    let target = SmallFilesystem::new(FilesystemKind::BtrfsCompressed, 256 * MIB).unwrap();
    let (from, to) = (source.0.path(), target.path().join("to"));
    // Everything is in memory but the contents of one file; then the device fails.
    shell(
        from,
        "for f in $(ls | grep -v '^17$'); do cat $f; done > /dev/null; ls -lR . > /dev/null; getfacl -R . > /dev/null",
    );
    failing.begin_to_fail().unwrap();
    let (from_text, to_text) = (from.display().to_string(), to.display().to_string());
    let answer = home.run(&["copy", &from_text, &to_text, "--json", "--exclude", "/lost+found"]);
    assert_eq!(answer.status, Some(1), "{answer}");
    let lost = answer.json()["copy"]["lost"]["examples"].clone();
    let lost = lost.as_array().unwrap();
    // The kernel may have dropped another file from memory by now, but it keeps most.
    assert!((1..10).contains(&lost.len()), "{answer}");
    assert_eq!(answer.json()["copy"]["lost"]["count"], lost.len(), "{answer}");
    let names = lost.iter().filter_map(|one| one["path"].as_str());
    let numbers: Vec<u64> = names.map(|name| name.parse().unwrap()).collect();
    let is_lost = |file: u64| numbers.contains(&file);
    assert!(is_lost(17), "{answer}");
    for one in lost {
        // The C libraries have different words for it.
        let what = one["what"].to_string();
        let words = ["Input/output error", "I/O error"];
        assert!(words.iter().any(|error| what.contains(error)), "{what}");
    }
    for file in 0..50 {
        let copy = to.join(file.to_string());
        if is_lost(file) {
            assert!(!copy.exists(), "half of {file} is left");
        } else {
            assert_eq!(fs::read(copy).unwrap(), noise(30_000, file + 1), "{file}");
        }
    }
    let files = &answer.json()["copy"]["entries"]["files"];
    assert_eq!(*files, 50 - lost.len(), "{answer}");
}

#[test]
fn a_target_that_fails_ends_the_copy() {
    let _turn = take_turns();
    let needs = [&NEEDS[..], &[Need::NbdFile]].concat();
    if !can_run("a failing target", &needs) {
        return;
    }
    let home = Home::new();
    let failing = FailingDevice::new(256 * MIB).unwrap();
    let device = LoopDevice::over(&failing.path()).unwrap();
    let node = device.path().display().to_string();
    programs::run("mkfs.ext4", &["-q", "-F", &node]).unwrap();
    let target = Mounted::new(device.path(), "rw");
    let source = SmallFilesystem::new(FilesystemKind::Ext4, 256 * MIB).unwrap();
    for file in 0..60 {
        fs::write(source.path().join(format!("{file}")), noise(1 << 20, file + 1)).unwrap();
    }
    failing.begin_to_fail().unwrap();
    let (from, to) = (source.path().display().to_string(), target.0.path().display().to_string());
    let answer = home.run(&["copy", &from, &to, "--exclude", "/lost+found"]);
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stderr.contains("the target"), "{answer}");
    assert!(answer.stderr.contains("kernel log"), "{answer}");
}

#[test]
fn nested_subvolumes_arrive_with_what_is_in_them() {
    let _turn = take_turns();
    let needs = [
        Need::Root,
        Need::Loop,
        Need::Program("rsync", "rsync"),
        Need::Program("btrfs", "btrfs-progs"),
    ];
    if !can_run("nested subvolumes", &needs) {
        return;
    }
    let home = Home::new();
    let source = SmallFilesystem::new(FilesystemKind::BtrfsCompressed, 512 * MIB).unwrap();
    let target = SmallFilesystem::new(FilesystemKind::Ext4, 512 * MIB).unwrap();
    // Each subvolume numbers its files from the same number on: hard links of one must not meet those of the other.
    shell(
        source.path(),
        "btrfs subvolume create from; cd from; btrfs subvolume create var; btrfs subvolume create var/deep; mkdir plain; \
         for d in . var var/deep plain; do echo \"content of $d\" > $d/file; ln $d/file $d/link; done; \
         btrfs subvolume snapshot -r var kept; sync",
    );
    let (from, to) = (source.path().join("from"), target.path().join("to"));
    let arguments = |more: &[&'static str]| {
        let paths = ["copy".into(), from.display().to_string(), to.display().to_string()];
        let more = more.iter().map(|text| text.to_string());
        paths.into_iter().chain(more).collect::<Vec<String>>()
    };
    for more in [&["--json", "--verify", "all"][..], &["--json", "--again", "--verify", "all"]] {
        let arguments = arguments(more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let answer = home.run(&arguments);
        assert_eq!(answer.status, Some(0), "{answer}");
        let receipt = answer.json();
        assert_eq!(receipt["copy"]["skipped"]["count"], 0, "{answer}");
        assert_eq!(receipt["comparison"]["differences"]["count"], 0, "{answer}");
        let compare = "rsync -aHn --checksum --delete --itemize-changes --exclude /.rubus-copy";
        let found = shell(&from, &format!("{compare} ./ {}/", to.display()));
        // A snapshot has an empty directory in the place of a subvolume, whose times btrfs makes up.
        let placeholder = ".d..t...... kept/deep/";
        let others: Vec<&str> = found.lines().filter(|line| *line != placeholder).collect();
        assert!(others.is_empty(), "{others:#?}");
        for place in ["file", "var/link", "var/deep/link", "plain/link", "kept/link"] {
            let text = fs::read_to_string(to.join(place)).unwrap();
            assert_eq!(text, fs::read_to_string(from.join(place)).unwrap(), "{place}");
        }
    }
    // Within the source it would copy itself.
    let inside = from.join("var/deep/new").display().to_string();
    let answer = home.run(&["copy", &from.display().to_string(), &inside]);
    assert!(answer.stderr.contains("lies within the source"), "{answer}");
    assert!(!Path::new(&inside).exists());
}

#[test]
fn a_copy_does_not_copy_itself_through_a_second_mount() {
    let _turn = take_turns();
    if !can_run("a second mount", &[Need::Root, Need::Loop]) {
        return;
    }
    let home = Home::new();
    let fixture = SmallFilesystem::new(FilesystemKind::Ext4, 256 * MIB).unwrap();
    shell(
        fixture.path(),
        "mkdir -p src/in out; echo 1 > src/a; echo 2 > src/in/b; mount --bind src/in out",
    );
    let (from, to) = (fixture.path().join("src"), fixture.path().join("out/dest"));
    let (from, to) = (from.display().to_string(), to.display().to_string());
    let answer = home.run(&["copy", &from, &to, "--json", "--verify", "all"]);
    let held = shell(fixture.path(), "find out/dest -name .rubus-copy -prune -o -print | sort");
    shell(fixture.path(), "umount out");
    assert_eq!(answer.status, Some(0), "{answer}");
    assert_eq!(held, "out/dest\nout/dest/a\nout/dest/in\nout/dest/in/b\n");
    let skipped = answer.json()["copy"]["skipped"].clone();
    assert_eq!(skipped["count"], 1, "{skipped}");
    assert!(skipped.to_string().contains("is the target of this copy"), "{skipped}");
}

#[test]
fn memory_does_not_grow_with_the_tree() {
    let _turn = take_turns();
    if !can_run("memory of a copy", &NEEDS) {
        return;
    }
    let fixture = Fixture::new(FilesystemKind::Tmpfs, 2048 * MIB);
    // In one directory, which is the hardest case, and hard links of which no end is in sight.
    shell(
        &fixture.from(),
        "mkdir one; cd one; seq -f 'a-name-of-usual-length-%.0f' 60000 | xargs touch; cd ..; mkdir two; cp -l one/*9 two",
    );
    let mut command = fixture.home.command();
    let mut child =
        command.args(fixture.arguments(&["--workers", "4"])).stdout(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        // Its own memory: how much of the program's file is mapped at once is the page cache's doing.
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
        peak_kib = peak_kib.max(kib.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    };
    assert!(ended.success());
    report(&format!("copy: {} MiB at most for 66 000 entries", peak_kib / 1024));
    assert!(peak_kib > 1024, "the memory was not seen");
    assert!(peak_kib < 34 << 10, "{peak_kib} KiB");
}
