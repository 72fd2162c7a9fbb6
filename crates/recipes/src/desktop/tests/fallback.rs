//! The old system starts when the new disk does not answer.

use super::super::fallback::StartedFromOld;
use super::super::options::wait;
use super::*;
use rubus_change::steps::{BuildInitramfs, InstallInitramfs, On, PartitionDisk, WriteFile};

const SCRIPT: &str = "local-top/rubus-desktop";

/// The partition of the new root.
fn new_root(plan: &Plan) -> String {
    let found = plan.steps.iter().find_map(|step| match &step.action {
        Action::Partition(PartitionDisk { table, .. }) => {
            Some(table.partitions[0].partuuid.clone())
        }
        _ => None,
    });
    found.expect("a partition")
}

/// Each root that an initial RAM filesystem may be made on has the script, and no initial RAM filesystem is taken without it.
#[test]
fn every_initial_ram_filesystem_waits_for_the_new_disk_and_then_starts_the_card() {
    for wishes in [&[("trial", "no")][..], &[("trial", "yes")]] {
        let plan = usual(wishes);
        let mut roots: Vec<(&str, bool)> = Vec::new();
        let mut built = 0;
        for step in &plan.steps {
            match &step.action {
                Action::On(On { volume, action, is_undone }) => {
                    if let Action::WriteFile(WriteFile { path, becomes, .. }) = &**action {
                        if path.ends_with(SCRIPT) {
                            assert_eq!(becomes.mode, 0o755);
                            roots.push((&volume.title, *is_undone));
                        }
                    }
                }
                Action::BuildInitramfs(BuildInitramfs { files, .. })
                | Action::InstallInitramfs(InstallInitramfs { files, .. }) => {
                    assert_eq!(files, &[Path::new("/scripts").join(SCRIPT)]);
                    built += 1;
                }
                _ => {}
            }
        }
        assert_eq!(
            roots,
            [("the new root (/dev/sda1)", false), ("the current root (/dev/mmcblk0p2)", true)]
        );
        assert!(built > 0);
        let risk = plan.risks.iter().find(|risk| risk.contains("two devices"));
        let risk = risk.expect("it is told");
        assert!(
            risk.contains(
                "If /dev/sda does not answer within 30 s, the old system starts from the card"
            ),
            "{risk}"
        );
    }
}

#[test]
fn who_wishes_none_gets_none() {
    let plan = usual(&[("wait", "no")]);
    let json = serde_json::to_string(&plan).expect("a plan serialises");
    assert!(!json.contains("rubus-desktop\""), "{json}");
    assert!(json.contains("If either fails, it does not come up."));
}

#[test]
fn the_wait_is_no_or_5_to_600_seconds() {
    assert_eq!(wait("no"), Ok(None));
    assert_eq!(wait("5"), Ok(Some(5)));
    assert_eq!(wait("600"), Ok(Some(600)));
    for text in ["4", "601", "-5", "", "yes", "30s"] {
        assert!(wait(text).is_err(), "{text}");
    }
}

#[test]
fn a_root_without_a_name_that_lasts_is_not_fallen_back_to() {
    let mut machine = machine();
    for device in &mut machine.block_devices {
        device.identity.partuuid = None;
    }
    let mut facts = facts(&machine);
    let labelled = CMDLINE.replace("PARTUUID=1f3c5a77-02", "LABEL=rootfs");
    let path = "/boot/firmware/cmdline.txt";
    facts.seen.insert(path.into(), text(&labelled));
    let plan = plan_of(&machine, &facts, &[]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let mut notes = plan.notes.iter();
    assert!(
        notes.any(|note| note.contains("does not start by itself when the new disk")),
        "{:?}",
        plan.notes
    );
    // The name on the command line is as good, where it is one that lasts.
    facts.seen.insert(path.into(), text(CMDLINE));
    let script = written(&plan_of(&machine, &facts, &[]), SCRIPT);
    assert!(script.contains("ROOT='PARTUUID=1f3c5a77-02'\n"), "{script}");
}

/// What the script says and leaves, in a directory of its own, when it is started there with a root and with these nodes.
#[allow(clippy::disallowed_methods)] // Only a shell can tell what a script for one does.
fn run(plan: &Plan, root: &str, nodes: &[&str]) -> (String, std::path::PathBuf, tempfile::TempDir) {
    let home = tempfile::tempdir().expect("a directory");
    let place = home.path().display().to_string();
    let mut script = written(plan, SCRIPT);
    assert!(!script.contains('@') || script.contains("subvol=@"), "{script}");
    for path in ["/dev/disk/", "/dev/kmsg", "/run/", "/conf/"] {
        script = script.replace(path, &format!("{place}{path}"));
    }
    for directory in ["dev/disk/by-partuuid", "conf"] {
        std::fs::create_dir_all(home.path().join(directory)).expect("a directory");
    }
    for node in nodes {
        std::fs::write(home.path().join("dev/disk/by-partuuid").join(node), "").expect("a node");
    }
    let done = std::process::Command::new("sh")
        .args(["-c", &script, "rubus-desktop"])
        .env("ROOT", root)
        .output();
    let done = done.expect("a shell");
    assert!(done.status.success(), "{done:?}");
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    (said, home.path().join("conf/param.conf"), home)
}

#[test]
#[allow(clippy::disallowed_methods)] // As above.
fn the_script_takes_the_card_only_when_the_new_disk_is_away_and_the_card_is_there() {
    let plan = usual(&[("wait", "5")]);
    let new = new_root(&plan);
    let root = format!("PARTUUID={new}");
    let card = "1f3c5a77-02";

    // It is there; it is not what is to be started; nothing is there.
    for (root, nodes) in [
        (root.as_str(), &[new.as_str(), card][..]),
        ("PARTUUID=1f3c5a77-02", &[card]),
        ("/dev/nbd0", &[card]),
        (&root, &[]),
    ] {
        let (said, param, home) = run(&plan, root, nodes);
        assert!(!param.exists(), "{root} {nodes:?}: {said}");
        assert!(!home.path().join("run").exists(), "{root} {nodes:?}");
    }

    let (said, param, home) = run(&plan, &root, &[card]);
    assert!(said.starts_with("rubus: this start is from the card: the disk "), "{said}");
    assert_eq!(
        std::fs::read_to_string(param).expect("it says what the root is"),
        "ROOT='PARTUUID=1f3c5a77-02'\nROOTFSTYPE='ext4'\nFSTYPE='ext4'\nROOTFLAGS=''\n"
    );
    let read = |path: &str| std::fs::read_to_string(home.path().join(path)).expect(path);
    let mark = read("run/rubus/desktop-from-old-disk");
    let started = StartedFromOld::parse(&mark).expect("it can be read");
    assert!(started.is_of(&plan), "{mark}");
    assert!(!started.is_of(&usual(&[("table", "gpt")])));
    assert!(started.why.ends_with("did not answer within 5 s"), "{mark}");
    let told = read("run/motd.d/rubus");
    assert!(told.starts_with("This board started from the card, because the disk "), "{told}");
}

/// The command line has the options of the new btrfs then, which an old one would not mount with.
#[test]
fn the_old_root_is_mounted_as_it_was() {
    let mut machine = machine();
    let root = machine.mounts.iter_mut().find(|mount| mount.point == "/");
    let root = root.expect("there is a root");
    root.filesystem = "btrfs".into();
    root.root = "/@".into();
    let facts = facts(&machine);
    let script = written(&plan_of(&machine, &facts, &[]), SCRIPT);
    let wanted = "ROOTFSTYPE='btrfs'\nFSTYPE='btrfs'\nROOTFLAGS='-o subvol=/@'\"";
    assert!(script.contains(wanted), "{script}");

    let mut facts = facts.clone();
    let line = CMDLINE.replace("rootwait", "rootflags=subvol=@,compress=zstd:1 rootwait");
    let path = "/boot/firmware/cmdline.txt";
    facts.seen.insert(path.into(), text(&line));
    let script = written(&plan_of(&machine, &facts, &[]), SCRIPT);
    assert!(script.contains("ROOTFLAGS='-o subvol=@,compress=zstd:1'\""), "{script}");
}

/// A disk says of itself what it likes.
#[test]
fn the_names_of_disks_are_no_words_of_a_shell() {
    let machine = machine();
    let mut facts = facts(&machine);
    let disk = facts.disks.get_mut(Path::new("/dev/sda"));
    let disk = disk.and_then(|disk| disk.as_mut().ok()).expect("there is one");
    disk.model = Some("A'\"$(reboot)`reboot`\\ disk".into());
    disk.serial = Some("';reboot;'".into());
    disk.confirmation = "';reboot;'".into();
    let script = written(&plan_of(&machine, &facts, &[]), SCRIPT);
    let why =
        "why='the disk Arebootreboot disk (serial number reboot) did not answer within 30 s'\n";
    assert!(script.contains(why), "{script}");
}

/// The old system may lack the modules of a newer kernel, and its fstab wants the boot partition.
#[test]
fn the_boot_partition_can_be_mounted_with_a_kernel_of_the_new_root() {
    let machine = machine();
    let mut facts = facts(&machine);
    let modules = format!("/lib/modules/{RELEASE}/kernel");
    for (directory, files) in [
        ("fs/fat", &["fat.ko.xz", "vfat.ko.xz"][..]),
        ("fs/nls", &["nls_ascii.ko.xz", "nls_cp437.ko.xz"]),
    ] {
        facts.seen.insert(Path::new(&modules).join(directory), names(files));
    }
    let listed =
        |wait| written(&plan_of(&machine, &facts, &[("wait", wait)]), "initramfs-tools/modules");
    assert!(listed("30").ends_with("uas\nvfat\nnls_cp437\nnls_ascii\n"), "{}", listed("30"));
    assert!(listed("no").ends_with("uas\n"));
}
