//! What `rubus verify` says of a real btrfs filesystem, against the tool compsize and against what was put there.

mod common;

use std::path::Path;
use std::process::Command;

use common::nasty_tree::{noise, shell};
use common::program::{Answer, Home};
use common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{FilesystemKind, SmallFilesystem, programs};
use serde_json::{Value, json};

const NEEDS: [Need; 5] = [
    Need::Root,
    Need::Loop,
    Need::Filesystem("btrfs"),
    Need::Program("mkfs.btrfs", "btrfs-progs"),
    Need::Program("compsize", "btrfs-compsize"),
];
const MIB: usize = 1 << 20;

/// Files of every kind that is counted in its own way.
fn fill(top: &Path) {
    let words = b"the narrowest pipe of a small computer ".repeat(40 * MIB / 39);
    std::fs::write(top.join("words"), &words).expect("it is written");
    std::fs::write(top.join("noise"), noise(20 * MIB, 1)).expect("it is written");
    std::fs::create_dir(top.join("small")).expect("it is made");
    for i in 0..500_usize {
        let small = words[..i * 4].to_vec();
        std::fs::write(top.join(format!("small/{i}")), small).expect("it is written");
    }
    programs::run("sync", &["-f", &top.display().to_string()]).expect("it syncs");
    // Shared by two, set aside, with a hole, partly overwritten, and below another subvolume.
    shell(top, "cp --reflink=always words shared");
    shell(top, "fallocate -l 8M set-aside");
    shell(top, "truncate -s 1G hole && printf x >> hole");
    shell(
        top,
        "cp --reflink=never words holed && dd if=/dev/urandom of=holed bs=64k count=5 seek=7 conv=notrunc status=none",
    );
    shell(
        top,
        "btrfs -q subvolume create other 2>/dev/null || btrfs subvolume create other >/dev/null; cp noise other/noise",
    );
    programs::run("sync", &["-f", &top.display().to_string()]).expect("it syncs");
}

/// Bytes on the disk and when expanded, as compsize counts them, by method.
fn compsize(top: &Path) -> Vec<(String, u64, u64)> {
    let table = programs::run("compsize", &["-b", "-x", &top.display().to_string()])
        .expect("compsize runs");
    let rows = table.lines().filter_map(|line| {
        let mut columns = line.split_whitespace();
        let name = columns.next()?.to_string();
        let (stored, original) = (columns.nth(1)?.parse().ok()?, columns.next()?.parse().ok()?);
        Some((name, stored, original))
    });
    rows.filter(|(name, ..)| ["none", "zlib", "lzo", "zstd"].contains(&name.as_str()))
        .collect()
}

fn rubus(home: &Home, arguments: &[&str]) -> Answer {
    let mut command = home.command();
    command
        .env("RUBUS_CHANGES", home.path().join("changes"))
        .args(arguments);
    Answer::of(command.output().expect("the program starts"))
}

/// Applies a plan that makes a file and promises things of the filesystem.
fn apply(home: &Home, filesystem: &SmallFilesystem) {
    let at = filesystem.path();
    let device = filesystem.device().expect("it is on a loop device");
    let uuid = Command::new("blkid")
        .args(["-p", "-o", "value", "-s", "UUID"])
        .arg(device.path())
        .env("PATH", programs::search_path())
        .output()
        .expect("blkid runs");
    let uuid = String::from_utf8_lossy(&uuid.stdout).trim().to_string();
    let promise =
        |what: &str, look: Value| json!({"what": what, "needs_boot": false, "look": look});
    let mounted = |uuid: &str, options: &[&str]| json!({"look": "mounted", "at": at, "kind": "btrfs", "uuid": uuid, "options": options});
    let disk = device
        .path()
        .file_name()
        .expect("a node has a name")
        .to_string_lossy();
    let plan = json!({
        "format": 1, "recipe": "example", "options": {}, "title": "Make a file.",
        "made": "2026-11-21T00:00:00Z", "checks": [], "notes": [],
        "steps": [{"id": "directory", "why": "It is wanted.",
                   "action": {"do": "make_directory", "path": home.path().join("made")}}],
        "promises": [
            promise("it is mounted", mounted(&uuid, &["compress-force=zstd:3"])),
            promise("it is compressed", json!({"look": "compressed", "at": at, "at_most": 0.6})),
            promise("it is quiet", json!({"look": "quiet_disk", "disk": disk, "at_most_bytes_per_second": 65_536})),
        ],
    });
    let path = home.path().join("plan.json");
    std::fs::write(&path, plan.to_string()).expect("it is written");
    let answer = rubus(home, &["apply", &path.display().to_string(), "--yes"]);
    assert_eq!(answer.status, Some(0), "{answer}");
}

#[test]
fn compression_is_counted_as_compsize_counts_it() {
    let _turn = take_turns();
    if !can_run("compression as it is", &NEEDS) {
        return;
    }
    let filesystem = SmallFilesystem::new(FilesystemKind::BtrfsCompressed, 512 * MIB as u64)
        .expect("a filesystem");
    fill(filesystem.path());
    let home = Home::new();
    apply(&home, &filesystem);

    let answer = rubus(&home, &["verify", "--json"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    let seen = &answer.json()["changes"][0]["compression"][0];
    let files = &seen["files"];
    assert_eq!(files["is_whole"], true, "{files}");
    assert_eq!(
        files["preallocated"]["referenced_bytes"],
        8 << 20,
        "{files}"
    );
    let truth = compsize(filesystem.path());
    let ours: Vec<(String, u64, u64)> = files["methods"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|method| {
            let number = |name: &str| method[name].as_u64().expect("a number");
            let name = method["method"].as_str().expect("a name").to_string();
            (name, number("stored_bytes"), number("original_bytes"))
        })
        .collect();
    let sorted = |mut rows: Vec<(String, u64, u64)>| {
        rows.sort();
        rows
    };
    report(&format!("compsize {truth:?}\nrubus    {ours:?}"));
    assert_eq!(sorted(ours), sorted(truth));

    // What cannot be compressed breaks the promise, and the mounted one is not touched by that.
    std::fs::write(filesystem.path().join("more"), noise(100 * MIB, 2)).expect("it is written");
    let answer = rubus(&home, &["verify"]);
    assert_eq!(answer.status, Some(1), "{answer}");
    assert!(answer.stdout.contains("NO    it is compressed"), "{answer}");
    assert!(answer.stdout.contains("ok    it is mounted"), "{answer}");
}

#[test]
fn a_disk_that_is_written_to_is_not_quiet() {
    let _turn = take_turns();
    if !can_run("a disk that is not quiet", &NEEDS) {
        return;
    }
    let filesystem = SmallFilesystem::new(FilesystemKind::BtrfsCompressed, 512 * MIB as u64)
        .expect("a filesystem");
    fill(filesystem.path());
    let home = Home::new();
    apply(&home, &filesystem);
    let mut writer = Command::new("sh")
        .args(["-c", "while :; do dd if=/dev/urandom of=busy bs=64k count=20 conv=fsync status=none; sleep 0.2; done"])
        .current_dir(filesystem.path())
        .spawn()
        .expect("sh starts");
    let answer = rubus(&home, &["verify"]);
    writer.kill().expect("it is killed");
    writer.wait().expect("it ends");
    assert_eq!(answer.status, Some(1), "{answer}");
    assert!(answer.stdout.contains("NO    it is quiet"), "{answer}");
    // The last command of the loop may still be at work in the filesystem.
    std::thread::sleep(std::time::Duration::from_secs(1));
}
