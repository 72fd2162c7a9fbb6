//! `rubus writers` on known truth: programs that write known amounts, each in its own way, are told to within 5 %.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::program::Home;
use crate::common::{can_run, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{FilesystemKind, SmallFilesystem, programs};
use serde_json::Value;

const NEEDS: [Need; 5] = [
    Need::Root,
    Need::Loop,
    Need::KernelsProcessNumbers,
    Need::Program("mkfs.ext4", "e2fsprogs"),
    Need::Program("fio", "fio"),
];
const MIB: u64 = 1 << 20;
/// What each of them writes.
const EACH_BYTES: u64 = 48 * MIB;
/// For how long something is waited for that must come.
const PATIENCE: Duration = Duration::from_secs(120);

/// A recording that is being made.
struct Recording {
    program: Child,
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Recording {
    fn begin(home: &Home) -> Recording {
        let mut command = home.command();
        command
            .args(["watch", "--interval", "1", "--record", "day.rec"])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let recording = Recording { program: command.spawn().expect("the program starts") };
        recording.await_walk(home);
        recording
    }

    /// Waits until all programs were looked at once more than now, and from the beginning of that walk on.
    fn await_walk(&self, home: &Home) {
        let walks = || {
            let text = std::fs::read_to_string(home.path().join("day.rec")).unwrap_or_default();
            text.lines().filter(|line| line.contains("\"writers\":")).count()
        };
        let (before, begin) = (walks(), Instant::now());
        // One may have been under way.
        while walks() < before + 2 {
            assert!(begin.elapsed() < PATIENCE, "no walk over all programs");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn end(mut self) {
        let pid = self.program.id().to_string();
        programs::run("kill", &["-INT", &pid]).expect("it is told to end");
        let status = self.program.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

/// fio under another name, so that what it writes is told from all else on this machine.
fn fio(at: &Path, name: &str, arguments: &[&str]) -> Child {
    fio_command(at, name, arguments).spawn().expect("fio starts")
}

fn fio_command(at: &Path, name: &str, arguments: &[&str]) -> Command {
    let fio = programs::find("fio").expect("fio is there");
    symlink(fio, at.join(name)).expect("a name");
    let mut command = Command::new(at.join(name));
    command
        .current_dir(at)
        .args(["--name=job", "--thread", "--rw=write", "--bs=64k", "--rate=6m"])
        .args(["--output=/dev/null", "--fallocate=none"])
        .arg(format!("--size={EACH_BYTES}"))
        .arg(format!("--filename={name}.data"))
        .args(arguments);
    command
}

/// fio started by a shell that gives it a log of its own, as services and scripts do.
fn fio_with_a_log(at: &Path, log: &Path, name: &str) -> Child {
    let shell = programs::find("sh").expect("a shell");
    let fio = fio_command(at, name, &["--ioengine=psync"]);
    Command::new(shell)
        .current_dir(at)
        .args(["-c", "exec 3>>\"$0\"; \"$@\"; exit $?"])
        .arg(log)
        .arg(fio.get_program())
        .args(fio.get_args())
        .spawn()
        .expect("the shell starts")
}

/// A shell that starts one short program after the other.
fn parent_of_many(at: &Path) -> Child {
    let (shell, dd) = (programs::find("sh"), programs::find("dd"));
    symlink(shell.expect("a shell"), at.join("w-parent")).expect("a name");
    symlink(dd.expect("dd"), at.join("w-child")).expect("a name");
    let script = "i=0; while [ $i -lt 48 ]; do \
                  ./w-child if=/dev/zero of=children/$i bs=64k count=16 conv=fsync status=none; \
                  sleep 0.15; i=$((i + 1)); done";
    std::fs::create_dir(at.join("children")).expect("a directory");
    Command::new(at.join("w-parent"))
        .current_dir(at)
        .args(["-c", script])
        .spawn()
        .expect("the shell starts")
}

fn written(report: &Value, program: &str) -> u64 {
    let units = report["units"].as_array().expect("units").iter();
    let programs = units.flat_map(|unit| unit["programs"].as_array().expect("programs"));
    programs
        .filter(|told| told["program"] == program)
        .map(|told| told["written_bytes"].as_u64().expect("bytes"))
        .sum()
}

#[test]
fn each_way_of_writing_is_told_to_within_5_percent() {
    if !can_run("writers", &NEEDS) {
        return;
    }
    let _turn = take_turns();
    let filesystem = SmallFilesystem::new(FilesystemKind::Ext4, 512 * MIB).expect("a filesystem");
    let at = filesystem.path();
    // fio lays a file out before it maps it; what it maps is there already.
    for name in ["w-mapped", "w-direct"] {
        let file = at.join(format!("{name}.data"));
        std::fs::write(file, vec![1; EACH_BYTES as usize]).expect("a file");
    }
    programs::run("sync", &["-f", &at.display().to_string()]).expect("it syncs");

    let home = Home::new();
    let recording = Recording::begin(&home);
    // Its place is the directory above, which would come first by its name.
    let above = at.parent().expect("a directory above");
    let log = tempfile::NamedTempFile::new_in(above).expect("a log");
    let writers = [
        fio_with_a_log(at, log.path(), "w-buffered"),
        fio(at, "w-direct", &["--ioengine=psync", "--direct=1"]),
        fio(at, "w-mapped", &["--ioengine=mmap"]),
        parent_of_many(at),
    ];
    for mut writer in writers {
        assert!(writer.wait().expect("it ends").success());
    }
    recording.await_walk(&home);
    recording.end();

    let report = |arguments: &[&str]| {
        let answer = home.run(arguments);
        assert_eq!(answer.status, Some(0), "{}", answer.stderr);
        answer.stdout
    };
    let told: Value =
        serde_json::from_str(&report(&["writers", "day.rec", "--json"])).expect("JSON");
    let ways = [
        ("w-buffered", written(&told, "w-buffered")),
        ("w-direct", written(&told, "w-direct")),
        ("w-mapped", written(&told, "w-mapped")),
        // None of them lives long enough to be looked at.
        ("w-child", written(&told, "w-child")),
    ];
    for (way, bytes) in ways {
        let ratio = bytes as f64 / EACH_BYTES as f64;
        assert!((0.95..=1.05).contains(&ratio), "{way}: {ratio}\n{told:#}");
    }
    // What passes it on to the filesystem's own disk is not a program's, and the loop device no disk. What other programs
    // delete meanwhile, of theirs, is taken from the sum.
    let units = told["units"].as_array().expect("units").iter();
    let cancelled = units.filter(|unit| unit["unit"] != "kernel");
    let cancelled = cancelled.map(|unit| unit["cancelled_bytes"].as_u64().expect("bytes"));
    let sum = told["programs_written_bytes"].as_u64().expect("bytes") + cancelled.sum::<u64>();
    assert!(sum >= 4 * EACH_BYTES * 95 / 100, "{told:#}");
    let disks = told["disks"].as_array().expect("disks");
    let is_loop = |disk: &Value| disk["name"].as_str().is_some_and(|name| name.starts_with("loop"));
    assert!(!disks.iter().any(is_loop), "{told:#}");
    let text = report(&["writers", "day.rec"]);
    let row = text.lines().find(|line| line.starts_with("w-buffered"));
    let row = row.unwrap_or_else(|| panic!("no row of it:\n{text}"));
    let place = at.display().to_string();
    let programs = told["units"].as_array().expect("units").iter();
    let mut programs = programs.flat_map(|unit| unit["programs"].as_array().expect("programs"));
    let told_of_it = programs.find(|program| program["program"] == "w-buffered");
    let told_of_it = told_of_it.expect("its figures");
    // A recording keeps of directories what every system has, and that they are as deep.
    let told_place = told_of_it["places"][0].as_str().expect("a place");
    let (kept, _) = told_place.split_once("name-").unwrap_or((told_place, ""));
    assert!(kept.len() > 1 && place.starts_with(kept), "{told_of_it:#}");
    assert_eq!(told_place.matches('/').count(), place.matches('/').count(), "{told_of_it:#}");
    assert!(row.contains(kept), "{text}");
}
