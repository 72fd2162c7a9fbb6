//! What `rubus verify` and `rubus compression` say of a real btrfs filesystem, against the tool compsize and against
//! what was put there.

use std::path::Path;
use std::process::Command;

use crate::common::nasty_tree::{noise, shell};
use crate::common::program::{Answer, Home};
use crate::common::{can_run, report, take_turns};
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
    rows.filter(|(name, ..)| ["none", "zlib", "lzo", "zstd"].contains(&name.as_str())).collect()
}

fn rubus(home: &Home, arguments: &[&str]) -> Answer {
    let mut command = home.command();
    command.env("RUBUS_CHANGES", home.path().join("changes")).args(arguments);
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
    let disk = device.path().file_name().expect("a node has a name").to_string_lossy();
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
    assert_eq!(files["preallocated"]["referenced_bytes"], 8 << 20, "{files}");
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

/// Bytes on the disk, when expanded and referenced, by method, as compsize counts them; with the counts of its first
/// line: files, extents, references, pieces in the tree.
fn compsize_table(paths: &[&Path], options: &[&str]) -> (Vec<u64>, Vec<(String, [u64; 3])>) {
    let mut arguments = options.to_vec();
    arguments.push("-b");
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    arguments.extend(paths.iter().map(String::as_str));
    let table = programs::run("compsize", &arguments).expect("compsize runs");
    let first = table.lines().next().unwrap_or_default();
    let counts = first.split(|c: char| !c.is_ascii_digit());
    let counts = counts.filter_map(|word| word.parse().ok()).take(4).collect();
    let rows = table.lines().skip(2).map(|line| {
        let mut columns = line.split_whitespace();
        let name = columns.next().expect("a name").to_string();
        let number = |word: &str| word.parse().expect("a number");
        let numbers: Vec<u64> = columns.skip(1).map(number).collect();
        (name, numbers.try_into().expect("three numbers"))
    });
    (counts, rows.collect())
}

fn our_table(home: &Home, arguments: &[&str]) -> (Vec<u64>, Vec<(String, [u64; 3])>) {
    let mut all = vec!["compression", "--json"];
    all.extend(arguments);
    let answer = rubus(home, &all);
    assert_eq!(answer.status, Some(0), "{answer}");
    let json = answer.json();
    let seen = &json["compression"];
    let count = |name: &str| seen["counts"][name].as_u64().expect("a number");
    let counts = ["files", "extents", "references", "inline"].map(count);
    let share = |share: &Value| {
        ["stored_bytes", "original_bytes", "referenced_bytes"]
            .map(|name| share[name].as_u64().expect("a number"))
    };
    let mut rows = vec![("TOTAL".to_string(), share(&json["total"]))];
    for method in seen["methods"].as_array().expect("a list") {
        let name = method["method"].as_str().expect("a name").to_string();
        rows.push((name, share(method)));
    }
    let preallocated = share(&seen["preallocated"]);
    if preallocated != [0; 3] {
        rows.push(("prealloc".to_string(), preallocated));
    }
    (counts.to_vec(), rows)
}

/// On a directory, a file, a subvolume, a snapshot and all of them, with and without what is below.
#[test]
fn the_table_of_any_path_is_that_of_compsize() {
    let _turn = take_turns();
    if !can_run("the table of compression", &NEEDS) {
        return;
    }
    let filesystem = SmallFilesystem::new(FilesystemKind::BtrfsCompressed, 512 * MIB as u64)
        .expect("a filesystem");
    let top = filesystem.path();
    fill(top);
    // Every method in one place; links and what was deleted while it is open have nothing of their own.
    shell(
        top,
        "mkdir mixed && cp noise mixed/noise && ln -s ../words mixed/link \
         && for m in zlib lzo zstd; do : > mixed/$m && btrfs property set mixed/$m compression $m && cat words >> mixed/$m; done \
         && mkdir mixed/deep && cp -r small mixed/deep/small && mkfifo mixed/pipe",
    );
    // The entry of `other` is in the snapshot, too, and `other` is not below it.
    shell(top, "btrfs subvolume snapshot . snapshot >/dev/null");
    let open = std::fs::File::create(top.join("open")).expect("it is made");
    std::io::Write::write_all(&mut &open, &noise(MIB, 9)).expect("it is written");
    open.sync_all().expect("it is stored");
    std::fs::remove_file(top.join("open")).expect("it is removed");
    programs::run("sync", &["-f", &top.display().to_string()]).expect("it syncs");

    let home = Home::new();
    let below = |name: &str| top.join(name);
    let all = ["", "mixed", "small", "words", "mixed/lzo", "other", "snapshot", "mixed/deep"];
    for name in all {
        let path = below(name);
        let text = path.display().to_string();
        let truth = compsize_table(&[&path], &[]);
        let ours = our_table(&home, &[&text]);
        report(&format!("{name:?}: {truth:?}"));
        assert_eq!(ours, truth, "{name}");
    }
    let text = top.display().to_string();
    let truth = compsize_table(&[top], &["-x"]);
    assert_eq!(our_table(&home, &["-x", &text]), truth, "one filesystem");

    // What is named twice counts once, and a file with two names is one file.
    let small = below("small").display().to_string();
    let once = our_table(&home, &[&small]);
    let one = format!("{small}/7");
    let deep = format!("{small}/../small");
    assert_eq!(our_table(&home, &[&one, &small, &deep]), once);
    shell(top, "ln small/499 small/again && sync -f .");
    assert_eq!(our_table(&home, &[&small]), once);
    assert_eq!(our_table(&home, &[&text, &small]), our_table(&home, &[&text]));

    let answer = rubus(&home, &["compression", &text]);
    assert!(answer.stdout.contains("set aside") && answer.stdout.contains("lzo"), "{answer}");
    for other in ["/proc", "/dev/null", "/no/such"] {
        let answer = rubus(&home, &["compression", other]);
        assert_eq!(answer.status, Some(2), "{answer}");
        assert!(answer.stderr.contains(other), "{answer}");
    }
}
