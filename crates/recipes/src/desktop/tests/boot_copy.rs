//! The script that keeps two boot partitions alike, run with directories in their places.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::process::Output;

use super::*;

const FIRST: &str = "1f3c5a77-01";
const KERNEL_IS_NEW: &[(&str, &str)] = &[("kernel8.img", "new"), ("initramfs8", "new")];

/// Stands in for a program: what it does with its arguments. `$home` is the directory of the test.
const STUBS: &[(&str, &str)] = &[
    (
        "mount",
        r#"for to; do from=$last; last=$to; done; echo "mount $from" >>"$home/done"; rmdir "$to"; exec ln -s "$from.fs" "$to""#,
    ),
    ("umount", r#"rm "$1"; exec mkdir "$1""#),
    ("mountpoint", r#"[ -L "$2" ]"#),
    ("fsck.vfat", r#"echo "fsck $2" >>"$home/done"; exit "$(cat "$home/repair")""#),
    (
        "findmnt",
        r#"for point; do :; done
        case $* in *SOURCE*) readlink "$point" | sed 's/\.fs$//' ;; *) cat "$home/options" ;; esac"#,
    ),
    (
        "find",
        r#"find "$@"; status=$?
        case $(pwd -P) in "$(cat "$home/damaged")") exit 1 ;; esac; exit $status"#,
    ),
];

/// Programs that write. Before the one that `$home/left` counts down to, the power is cut; a copy is half made then. One that is
/// to copy the file that `$home/unreadable` names fails.
const WRITES: &str = r#"n=$(cat "$home/left")
if [ "$n" -eq 0 ]; then
  [ PROGRAM != cp ] || head -c 1 "$1" >"$2"
  kill -9 "$(cat "$home/pid")"
  exit 1
fi
echo $((n - 1)) >"$home/left"
case "PROGRAM $1" in "cp "*"/$(cat "$home/unreadable")") echo half >"$2"; exit 1 ;; esac
PATH=/usr/bin:/bin exec PROGRAM "$@""#;

/// A board after the switch: both boot partitions with the same files, the old disk's mounted.
struct Board {
    home: tempfile::TempDir,
    script: String,
    copy: String,
}

#[allow(clippy::disallowed_methods)] // Only a shell can tell what a script for one does.
impl Board {
    fn new() -> Board {
        Board::after(&usual_plan())
    }

    fn after(plan: &Plan) -> Board {
        let home = tempfile::tempdir().expect("a directory");
        let place = home.path().display().to_string();
        let mut script = written(plan, "postinst.d/zz-rubus-boot-copy");
        let value = |name: &str| {
            let line = script.lines().find_map(|line| line.strip_prefix(&format!("{name}='")));
            line.expect("such a line").trim_end_matches('\'').to_string()
        };
        let copy = value("copy").rsplit('/').next().expect("a name").to_string();
        let root = value("root");
        for path in ["/dev/disk/", "/run/", "/proc/cmdline", "/lib/modules", "'/boot/firmware"] {
            let (quote, path) = path.split_at(path.find('/').expect("a path"));
            script = script.replace(&format!("{quote}{path}"), &format!("{quote}{place}{path}"));
        }
        let board = Board { home, script: format!("echo $$ >\"$home/pid\"\n{script}"), copy };
        for name in
            ["dev/disk/by-partuuid", "run", "proc", "boot/firmware", "bin", "lib/modules/6.12.47"]
        {
            std::fs::create_dir_all(board.home.path().join(name)).expect("a directory");
        }
        let writes = ["mv", "cp", "rm", "sync"].map(|name| (name, WRITES.replace("PROGRAM", name)));
        let others =
            STUBS.iter().map(|(name, text)| (*name, format!("PATH=/usr/bin:/bin\n{text}")));
        for (name, text) in others.chain(writes) {
            board.put(&format!("bin/{name}"), &format!("#!/bin/sh\n{text}\n"));
            board.run_program("chmod", &["755", &format!("bin/{name}")]);
        }
        board.put("options", "rw,relatime rw");
        // It found something and repaired it.
        board.put("repair", "1");
        for name in ["damaged", "unreadable", "done"] {
            board.put(name, "");
        }
        board.put("proc/cmdline", &format!("quiet {root} rootwait\n"));
        for side in [FIRST, &board.copy] {
            board.put(&format!("dev/disk/by-partuuid/{side}"), "");
            for (name, text) in [
                ("config.txt", "[cm4]\nkernel=none.img\n[all]\nauto_initramfs=1\n"),
                ("cmdline.txt", &format!("console=tty1 {root} rootwait\n")),
                ("kernel8.img", "old"),
                ("initramfs8", "old"),
                ("overlays/of a fan.dtbo", "old"),
            ] {
                board.set(side, name, text);
            }
        }
        board.point(Some(FIRST));
        board
    }

    fn put(&self, name: &str, text: &str) {
        std::fs::write(self.home.path().join(name), text).expect(name);
    }

    fn run_program(&self, program: &str, arguments: &[&str]) {
        let mut command = std::process::Command::new(program);
        let status = command.args(arguments).current_dir(self.home.path()).status();
        assert!(status.expect(program).success(), "{program} {arguments:?}");
    }

    fn side(&self, side: &str) -> std::path::PathBuf {
        self.home.path().join(format!("dev/disk/by-partuuid/{side}.fs"))
    }

    fn set(&self, side: &str, name: &str, text: &str) {
        let path = self.side(side).join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(path, text).expect(name);
    }

    fn install(&self, side: &str, files: &[(&str, &str)]) {
        for (name, text) in files {
            self.set(side, name, text);
        }
    }

    fn remove(&self, side: &str, name: &str) {
        std::fs::remove_file(self.side(side).join(name)).expect(name);
    }

    /// Mounts a boot partition at its usual place, or none.
    fn point(&self, side: Option<&str>) {
        self.run_program("rm", &["-rf", "boot/firmware", "run/rubus-boot-copy"]);
        match side {
            Some(side) => {
                let target = self.side(side).display().to_string();
                self.run_program("ln", &["-s", &target, "boot/firmware"]);
            }
            None => self.run_program("mkdir", &["boot/firmware"]),
        }
    }

    /// Runs the script until the power is cut before that many programs that write.
    fn run_until(&self, left: usize, argument: &str) -> Output {
        self.put("left", &left.to_string());
        let bin = self.home.path().join("bin");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &self.script, "rubus-boot-copy", argument]);
        shell.env("home", self.home.path());
        shell.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        shell.output().expect("a shell")
    }

    /// What it says to a kernel's update (its release) or to a start (`start`).
    fn run(&self, argument: &str) -> String {
        let done = self.run_until(9999, argument);
        assert!(done.status.success(), "{done:?}");
        assert_eq!(String::from_utf8_lossy(&done.stdout), "");
        assert!(!self.home.path().join("run/rubus-boot-copy.lists").exists());
        String::from_utf8_lossy(&done.stderr).into_owned()
    }

    fn update(&self) -> String {
        self.run("6.12.47")
    }

    /// All files of one, and what is in them.
    fn files(&self, side: &str) -> BTreeMap<String, String> {
        let top = self.side(side);
        let mut found = BTreeMap::new();
        let mut open = vec![top.clone()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let name = path.strip_prefix(&top).expect("below it").display().to_string();
                    found.insert(name, std::fs::read_to_string(&path).expect("a text"));
                }
            }
        }
        found
    }

    fn copy(&self) -> BTreeMap<String, String> {
        self.files(&self.copy)
    }

    fn done(&self) -> String {
        std::fs::read_to_string(self.home.path().join("done")).expect("it is there")
    }
}

fn usual_plan() -> Plan {
    let machine = machine();
    plan_of(&machine, &facts(&machine), &[("boot-copy", "yes"), ("direct-boot", "yes")])
}

#[test]
#[allow(clippy::disallowed_methods)] // As above.
fn an_update_reaches_the_other_boot_partition() {
    let board = Board::new();
    board.install(FIRST, KERNEL_IS_NEW);
    board.install(
        FIRST,
        &[("new overlays/of  two\\ .dtbo", "new"), ("overlays/of a fan.dtbo", "new")],
    );
    let latin_1 = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    std::fs::write(board.side(FIRST).join(latin_1), "new").expect("a file");
    assert_eq!(board.update(), "");
    assert_eq!(board.copy(), board.files(FIRST));
    assert!(board.side(&board.copy).join(latin_1).exists());
    assert_eq!(board.copy()["rubus-boot-copy"], "1\n");
    // Nothing else checks a partition that is in no table of mounts.
    let copy = format!("{}/dev/disk/by-partuuid/{}", board.home.path().display(), board.copy);
    assert_eq!(board.done(), format!("mount {copy}\nfsck {copy}\nmount {copy}\n"));
    assert_eq!(board.run("start"), "");
    assert_eq!(board.copy()["rubus-boot-copy"], "1\n");
}

#[test]
fn only_kernels_that_were_brought_and_have_no_modules_any_more_are_removed() {
    let board = Board::new();
    let names = ["vmlinuz-6.12.1", "initrd.img-6.12.1", "vmlinuz-6.12.47"];
    for name in names {
        board.set(FIRST, name, "1");
    }
    board.set(&board.copy, "vmlinuz-6.6.0", "its owner's");
    board.set(&board.copy, "notes.txt", "its owner's");
    assert_eq!(board.update(), "");
    for name in names {
        board.remove(FIRST, name);
    }
    board.remove(FIRST, "overlays/of a fan.dtbo");
    board.set(FIRST, "overlays/other.dtbo", "1");
    assert_eq!(board.update(), "");
    let left: Vec<String> = board.copy().into_keys().collect();
    assert_eq!(
        left,
        [
            "cmdline.txt",
            "config.txt",
            "initramfs8",
            "kernel8.img",
            "notes.txt",
            "overlays/of a fan.dtbo",
            "overlays/other.dtbo",
            "rubus-boot-copy",
            "vmlinuz-6.12.47",
            "vmlinuz-6.6.0",
        ]
    );
}

/// What of a boot partition that was just written to can be damaged, and what is said of it.
#[test]
fn a_damaged_boot_partition_takes_nothing_from_the_other_one() {
    type Damage = fn(&Board);
    let damages: [(&str, Damage, &str); 13] = [
        (
            "a directory",
            |board| board.put("damaged", &board.side(FIRST).display().to_string()),
            "cannot be read",
        ),
        (
            "a directory of the other one",
            |board| board.put("damaged", &board.side(&board.copy).display().to_string()),
            "cannot be read",
        ),
        ("a file", |board| board.put("unreadable", "overlays/of a fan.dtbo"), ""),
        (
            "all of it",
            |board| {
                for name in board.files(FIRST).keys() {
                    board.remove(FIRST, name);
                }
            },
            "config.txt is missing or empty",
        ),
        (
            "the settings",
            |board| board.set(FIRST, "config.txt", ""),
            "config.txt is missing or empty",
        ),
        ("the command line", |board| board.set(FIRST, "cmdline.txt", ""), "does not name the root"),
        ("the kernel", |board| board.remove(FIRST, "kernel8.img"), "none of the files"),
        (
            "what is in the kernel",
            |board| board.set(FIRST, "kernel8.img", ""),
            "kernel8.img is empty",
        ),
        (
            "the overlays",
            |board| board.remove(FIRST, "overlays/of a fan.dtbo"),
            "none of the files",
        ),
        (
            "a kernel that the settings name",
            |board| board.set(FIRST, "config.txt", "kernel=vmlinuz-6.12.47\n"),
            "names vmlinuz-6.12.47",
        ),
        (
            "one of several initial RAM filesystems that they name",
            |board| board.set(FIRST, "config.txt", "initramfs initramfs8,mine.gz followkernel\r\n"),
            "names mine.gz",
        ),
        (
            "the kernel found it",
            |board| board.put("options", "rw,relatime ro,errors=remount-ro"),
            "read-only by the kernel",
        ),
        ("the other one, beyond repair", |board| board.put("repair", "4"), ""),
    ];
    for (name, damage, says) in damages {
        let board = Board::new();
        board.set(FIRST, "kernel8.img", "new");
        board.set(FIRST, "overlays/of a fan.dtbo", "new");
        damage(&board);
        let before = board.copy();
        let said = board.update();
        assert!(said.contains(says), "{name}: {said}");
        assert!(said.contains("was not brought up to date"), "{name}: {said}");
        assert_eq!(board.copy(), before, "{name}");
        // The next start tries again.
        let said = board.run("start");
        assert!(said.contains("was not brought up to date"), "{name}: {said}");
        assert_eq!(board.copy(), before, "{name}");
    }
}

#[test]
fn a_system_that_does_not_start_from_them_leaves_both_as_they_are() {
    let old = "console=tty1 root=PARTUUID=1f3c5a77-02 rootwait\n";
    // It was left behind, by a switch to another root or by undoing: it was started by hand.
    let board = Board::new();
    board.install(FIRST, KERNEL_IS_NEW);
    board.put("proc/cmdline", old);
    let before = (board.files(FIRST), board.copy());
    assert_eq!((board.update(), board.run("start")), (String::new(), String::new()));
    assert_eq!((board.files(FIRST), board.copy()), before);
    assert_eq!(board.done(), "");

    // Undone, and not restarted; or on trial. An update is counted, for the time when it is kept.
    for sides in [[true, true], [true, false], [false, true]] {
        let board = Board::new();
        let new = board.copy()["cmdline.txt"].clone();
        for (side, is_old) in [FIRST, &board.copy].into_iter().zip(sides) {
            if is_old {
                board.set(side, "cmdline.txt", &format!("root=none {old}"));
            }
        }
        board.install(FIRST, KERNEL_IS_NEW);
        board.install(
            FIRST,
            &[("tryboot.txt", "x"), ("cmdline-rubus.txt", "x"), ("Autoboot.txt", "x")],
        );
        let before = board.copy();
        let said = board.update();
        assert!(said.contains("does not name the root of this system"), "{said}");
        assert_eq!(board.copy(), before);
        assert_eq!(board.files(FIRST)["rubus-boot-copy"], "1\n");
        board.set(FIRST, "cmdline.txt", &new);
        board.set(&board.copy, "cmdline.txt", &new);
        assert_eq!(board.run("start"), "");
        let mut wanted = board.files(FIRST);
        wanted.retain(|name, _| {
            !["tryboot.txt", "cmdline-rubus.txt", "Autoboot.txt"].contains(&name.as_str())
        });
        assert_eq!(board.copy(), wanted);
    }
}

#[test]
#[allow(clippy::disallowed_methods)] // As above.
fn without_the_old_disk_the_copy_is_updated_and_the_old_disk_follows_once_it_is_back() {
    let board = Board::new();
    board.set(FIRST, "initrd.img-6.6.0", "its owner's");
    let node = board.home.path().join("dev/disk/by-partuuid").join(FIRST);
    std::fs::remove_file(&node).expect("it is there");
    board.point(None);
    assert_eq!(board.run("start"), "");
    board.install(&board.copy, KERNEL_IS_NEW);
    assert_eq!(board.update(), "");
    assert_eq!(board.copy()["rubus-boot-copy"], "1\n");
    assert_eq!(board.files(FIRST)["kernel8.img"], "old");

    std::fs::write(&node, "").expect("a node");
    board.point(Some(FIRST));
    assert_eq!(board.run("start"), "");
    let mut wanted = board.copy();
    wanted.insert("initrd.img-6.6.0".into(), "its owner's".into());
    assert_eq!(board.files(FIRST), wanted);
    // It is its owner's wish that it is not mounted.
    board.point(None);
    board.set(FIRST, "kernel8.img", "newer");
    assert_eq!((board.update(), board.copy()["kernel8.img"].as_str()), (String::new(), "new"));
}

/// An older one would take the place of a newer one.
#[test]
fn a_mark_that_a_power_cut_damaged_is_not_taken_for_a_low_number() {
    for text in ["", "x\n", "08\n", "99999999999999999999\n"] {
        for is_first in [true, false] {
            let board = Board::new();
            board.install(FIRST, KERNEL_IS_NEW);
            assert_eq!(board.update(), "");
            let damaged = if is_first { FIRST.to_string() } else { board.copy.clone() };
            board.set(&damaged, "rubus-boot-copy", text);
            board.set(&board.copy, "kernel8.img", "older");
            let before = (board.files(FIRST), board.copy());
            assert!(board.run("start").contains("a mark is damaged"), "{text:?}");
            assert_eq!((board.files(FIRST), board.copy()), before, "{text:?}");
            assert_eq!(board.update(), "", "{text:?}");
            assert_eq!(board.copy()["kernel8.img"], "new");
            assert_eq!(board.copy()["rubus-boot-copy"], board.files(FIRST)["rubus-boot-copy"]);
        }
    }
}

#[test]
fn a_power_cut_leaves_each_file_old_or_new_and_the_next_start_brings_the_rest() {
    let config = "[cm4]\nkernel=none.img\n[all]\nkernel=vmlinuz-6.12.47\n";
    let mut cuts = 0;
    loop {
        let board = Board::new();
        board.set(FIRST, "vmlinuz-6.12.1", "1");
        assert_eq!(board.update(), "");
        board.remove(FIRST, "vmlinuz-6.12.1");
        let old = board.copy();
        board.install(FIRST, KERNEL_IS_NEW);
        board.install(FIRST, &[("config.txt", config), ("vmlinuz-6.12.47", "new")]);
        let done = board.run_until(cuts, "6.12.47");
        if done.status.success() {
            assert!(cuts > 15, "{cuts}");
            break;
        }
        let new = board.files(FIRST);
        let now = board.copy();
        for (name, text) in old.iter().filter(|(name, _)| *name != "rubus-boot-copy") {
            let is_removed = name == "vmlinuz-6.12.1";
            match now.get(name) {
                Some(now) => {
                    assert!(now == text || Some(now) == new.get(name), "{cuts}: {name}: {now}")
                }
                None => assert!(is_removed, "{cuts}: {name}"),
            }
        }
        if now["config.txt"] == config {
            assert_eq!(now["vmlinuz-6.12.47"], "new", "{cuts}");
        }
        let counted = new["rubus-boot-copy"].starts_with('2');
        board.point(Some(FIRST));
        assert_eq!(board.run("start"), "", "{cuts}");
        if counted {
            let mut wanted = new.clone();
            wanted.insert("rubus-boot-copy".into(), "2\n./vmlinuz-6.12.47\n".into());
            wanted.retain(|name, _| !name.ends_with(".rubus-new"));
            assert_eq!(board.copy(), wanted, "{cuts}");
        }
        cuts += 1;
    }
}

#[test]
#[allow(clippy::disallowed_methods)] // As above.
fn an_initramfs_that_a_kernels_package_builds_waits_for_its_kernel() {
    let hook = written(&usual_plan(), "post-update.d/zz-rubus-boot-copy");
    let hook = hook.replace("exec /etc/kernel/postinst.d/zz-rubus-boot-copy", "echo brought");
    for (package, said) in [
        ("linux-image-6.12.47+rpt-rpi-v8", ""),
        ("initramfs-tools", "brought 6.12.47\n"),
        ("", "brought 6.12.47\n"),
    ] {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &hook, "hook", "6.12.47"]).env("DPKG_MAINTSCRIPT_PACKAGE", package);
        let done = shell.output().expect("a shell");
        assert_eq!(String::from_utf8_lossy(&done.stdout), said, "{package}");
    }
}

/// Undoing leaves the new root as it is; the script there sees that it was left behind.
#[test]
fn nothing_of_it_is_on_the_root_that_undoing_returns_to() {
    let plan = usual_plan();
    let mut steps = 0;
    for step in plan.steps.iter().filter(|step| step.id.starts_with("boot-copy")) {
        let Action::On(On { volume, is_undone, .. }) = &step.action else {
            panic!("{} is on the running root", step.id);
        };
        let is_new_root = volume.title.starts_with("the new root");
        assert!(is_new_root || *is_undone, "{}: {}", step.id, volume.title);
        steps += usize::from(is_new_root);
    }
    assert!(steps > 4, "{steps}");
}
