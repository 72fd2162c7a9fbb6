//! Plans for an example machine: whole, with every obstacle, and with other wishes.

mod boot_copy;
mod boot_files;
mod disks;
mod ext4;
mod fallback;
mod foreseen;
mod image;
mod trial;

use proptest::prelude::*;

use super::super::testing::without as without_program;
use super::super::{DiskSpeed, Facts, PathState, Seen, TreeSize, surveyed_disk};
use super::*;
use rubus_boot::fstab::Fstab;
use rubus_change::plan::{Action, Plan, TextFile};
use rubus_change::steps::{CopyTree, Format, On, PartitionDisk, WriteFile};
use rubus_fixtures as fixture;
use rubus_vocabulary::compression_speed::CompressionSpeed;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{Setting, Throttling};
use rubus_vocabulary::mount_entry::Entry;

const RELEASE: &str = "6.12.47+rpt-rpi-v8";
const CMDLINE: &str = "console=serial0,115200 console=tty1 root=PARTUUID=1f3c5a77-02 rootfstype=ext4 \
                       fsck.repair=yes rootwait quiet resize\n";
const FSTAB: &str = "proc            /proc           proc    defaults          0       0\n\
                     PARTUUID=1f3c5a77-01  /boot/firmware  vfat    defaults          0       2\n\
                     PARTUUID=1f3c5a77-02  /               ext4    defaults,noatime  0       1\n\
                     # mine\n\
                     nas.local:/export  /mnt/nas  nfs  noauto,_netdev  0  0\n\
                     /var/swap  none  swap  sw  0  0\n";

/// A Raspberry Pi 3 whose SSD is free.
fn machine() -> Machine {
    let mut machine = fixture::pi3_with_usb_ssd();
    machine.mounts.retain(|mount| mount.point != "/srv/data");
    for (name, number) in [("mmcblk0p1", 1), ("mmcblk0p2", 2)] {
        let mut devices = machine.block_devices.iter_mut();
        let device = devices.find(|device| device.name == name);
        let device = device.expect("the fixture has it");
        device.identity.partuuid = Some(format!("1f3c5a77-0{number}"));
    }
    machine.swap.zswap.parameters = [
        ("compressor", "lzo"),
        ("enabled", "N"),
        ("max_pool_percent", "20"),
        ("shrinker_enabled", "N"),
    ]
    .map(|(name, value)| Setting { name: name.into(), value: Fact::known(value.into(), "test") })
    .to_vec();
    machine
}

fn names(names: &[&str]) -> PathState {
    PathState::Directory(names.iter().map(|name| name.to_string()).collect())
}

fn text(text: &str) -> PathState {
    PathState::Text(TextFile::public(text))
}

fn seen() -> Seen {
    let modules = format!("/lib/modules/{RELEASE}");
    let mut seen: Seen = Seen::from([
        (
            "/boot/firmware".into(),
            names(&["config.txt", "cmdline.txt", "kernel8.img", "initramfs8", "overlays"]),
        ),
        (
            "/boot/firmware/config.txt".into(),
            text("arm_64bit=1\nauto_initramfs=1\n[pi5]\nkernel=other.img\n"),
        ),
        ("/boot/firmware/cmdline.txt".into(), text(CMDLINE)),
        ("/etc/fstab".into(), text(FSTAB)),
        ("/lib/modules".into(), names(&[RELEASE])),
        (
            format!("{modules}/modules.builtin").into(),
            text("kernel/fs/ext4/ext4.ko\nkernel/drivers/scsi/sd_mod.ko\n"),
        ),
        (format!("{modules}/kernel/fs/btrfs").into(), names(&["btrfs.ko.xz"])),
        (
            format!("{modules}/kernel/drivers/usb/storage").into(),
            names(&["uas.ko.xz", "usb-storage.ko.xz"]),
        ),
        (format!("{modules}/kernel/crypto").into(), names(&["lz4.ko.xz", "zstd.ko.xz"])),
        ("/etc/initramfs-tools/modules".into(), text("# List of modules\n")),
        ("/etc/rpi".into(), names(&["swap.conf"])),
        ("/proc/1/comm".into(), text("systemd\n")),
    ]);
    for directory in [
        "/etc/initramfs-tools",
        "/etc/initramfs-tools/conf.d",
        "/etc/initramfs-tools/scripts",
        "/etc/initramfs-tools/scripts/local-top",
        "/etc/sysctl.d",
        "/etc/tmpfiles.d",
        "/etc/systemd/system",
    ] {
        seen.insert(directory.into(), names(&[]));
    }
    for program in ["mkfs.btrfs", "btrfs", "mkinitramfs", "mkswap", "mkfs.vfat"] {
        seen.insert(Path::new("/usr/sbin").join(program), PathState::Something);
    }
    let looked = look_at(&machine(), &Wishes::from([("boot-copy".into(), "yes".into())])).paths;
    for path in looked.into_iter().filter(|path| !path.to_string_lossy().contains('*')) {
        seen.entry(path).or_insert(PathState::Absent);
    }
    seen
}

fn facts(machine: &Machine) -> Facts {
    let sda = PathBuf::from("/dev/sda");
    let speed = |method: &str, compress: f64, expand: f64, ratio: f64| CompressionSpeed {
        method: method.into(),
        compress_bytes_per_second: compress,
        expand_bytes_per_second: expand,
        ratio,
    };
    let disk = surveyed_disk(machine, &sda);
    Facts {
        seen: seen(),
        disks: [(sda, disk)].into(),
        trees: [(PathBuf::from("/"), TreeSize { bytes: 6_400_000_000, entries: 154_000 })].into(),
        program_start_s: Some(3.5e-3),
        compression: vec![
            speed("zstd:1", 52e6, 160e6, 2.7),
            speed("zstd:3", 38e6, 160e6, 2.85),
            speed("zstd:9", 9e6, 165e6, 3.05),
            speed("lzo", 70e6, 190e6, 2.0),
        ],
        speeds: [
            (
                "mmcblk0".to_string(),
                DiskSpeed {
                    read_bytes_per_second: Some(22.6e6),
                    write_bytes_per_second: Some(19.3e6),
                    random_read_iops: Some(2130.0),
                    random_write_iops: Some(220.0),
                    source: "measured here on 2026-11-20".into(),
                },
            ),
            (
                "sda".to_string(),
                DiskSpeed {
                    read_bytes_per_second: Some(33.0e6),
                    write_bytes_per_second: Some(31.0e6),
                    random_read_iops: Some(2690.0),
                    random_write_iops: Some(2400.0),
                    source: "measured here on 2026-11-20".into(),
                },
            ),
        ]
        .into(),
        random: [7; 32],
        ..Facts::default()
    }
}

fn plan_of(machine: &Machine, facts: &Facts, wishes: &[(&str, &str)]) -> Plan {
    let mut all = Wishes::from([("device".to_string(), "/dev/sda".to_string())]);
    all.extend(wishes.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    RECIPE.plan(machine, facts, &all, "2026-11-21T01:02:03Z").expect("the wishes make sense")
}

fn usual(wishes: &[(&str, &str)]) -> Plan {
    let machine = machine();
    plan_of(&machine, &facts(&machine), wishes)
}

/// For the tests of journals that end early.
pub(crate) fn usual_plans() -> Vec<Plan> {
    let others = [&[][..], &[("boot-copy", "yes")], &[("swap", "file")]];
    let mut plans: Vec<Plan> = others.iter().map(|wishes| usual(wishes)).collect();
    let machine = machine();
    let mut facts = facts(&machine);
    with_trials(&mut facts);
    plans.push(plan_of(&machine, &facts, &[]));
    plans.iter().for_each(|plan| assert!(!plan.is_empty(), "{:?}", obstacles(plan)));
    assert!(plans[3].trial.is_some());
    plans
}

/// The example's boot partition as of a board whose firmware says that it knows trials.
fn with_trials(facts: &mut Facts) {
    let node = rubus_boot::tryboot::BOOTLOADER_NODE;
    let told = names(&["boot-mode", "partition", "tryboot"]);
    facts.seen.insert(node.into(), told);
}

fn obstacles(plan: &Plan) -> Vec<String> {
    let words = plan.obstacles().map(|check| {
        let remedy = check.remedy.as_deref().unwrap_or("-");
        format!("{}: {}\n  -> {remedy}", check.what, check.found)
    });
    words.collect()
}

/// What steps of a kind write, by path.
fn written(plan: &Plan, end: &str) -> String {
    let mut actions = plan.steps.iter().map(|step| match &step.action {
        Action::On(On { action, .. }) => action,
        action => action,
    });
    let found = actions.find_map(|action| match action {
        Action::WriteFile(WriteFile { path, becomes, .. }) if path.ends_with(end) => {
            Some(becomes.text.clone())
        }
        _ => None,
    });
    found.unwrap_or_else(|| panic!("nothing writes {end}"))
}

#[test]
fn a_whole_plan() {
    let plan = usual(&[]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let json = serde_json::to_string_pretty(&plan).expect("a plan serialises");
    insta::assert_snapshot!(json);
}

#[test]
fn a_disk_that_was_not_measured_is_promised_nothing() {
    let machine = machine();
    for (absent, words) in
        [("sda", "sda was not measured. Measure it first"), ("mmcblk0", "`rubus checkup /`")]
    {
        let mut facts = facts(&machine);
        facts.speeds.remove(absent);
        let plan = plan_of(&machine, &facts, &[]);
        let unknown = plan.gains_unknown.unwrap_or_default();
        assert!(unknown.contains(words), "{absent}: {unknown}");
        let is_random = |gain: &rubus_change::plan::Gain| gain.what.starts_with("random");
        assert!(!plan.gains.iter().any(is_random), "{:?}", plan.gains);
        assert!(absent == "mmcblk0" || plan.gains.is_empty(), "{:?}", plan.gains);
    }
    assert_eq!(usual(&[]).gains_unknown, None);
}

#[test]
fn the_steps_of_other_wishes() {
    for (name, wishes) in [
        ("swap_file", &[("swap", "file"), ("compress", "lzo")][..]),
        ("no_swap", &[("swap", "none"), ("compress", "none")]),
        ("boot_copy", &[("boot-copy", "yes"), ("table", "gpt"), ("direct-boot", "yes")]),
    ] {
        let plan = usual(wishes);
        assert_eq!(obstacles(&plan), Vec::<String>::new());
        let titles: Vec<String> = plan.steps.iter().map(|step| step.action.title()).collect();
        let shown = format!("{}\n\n{}", titles.join("\n"), written(&plan, "fstab"));
        insta::assert_snapshot!(name, shown);
    }
}

#[test]
fn a_copy_of_the_boot_partition_starts_the_old_root_until_the_card_starts_the_new_one() {
    let machine = machine();
    let mut facts = facts(&machine);
    with_trials(&mut facts);
    for trial in ["yes", "no"] {
        let wishes = [("boot-copy", "yes"), ("table", "gpt"), ("trial", trial)];
        let plan = plan_of(&machine, &facts, &wishes);
        assert_eq!(obstacles(&plan), Vec::<String>::new());
        let place = |is: &dyn Fn(&Action) -> bool| {
            let mut steps = plan.steps.iter();
            steps.position(|step| is(&step.action)).expect("such a step")
        };
        let copied = place(&|action| {
            matches!(action, Action::CopyTree(CopyTree { from, without, .. })
                if from == Path::new("/boot/firmware")
                    && !without.iter().any(|path| path.ends_with("cmdline.txt")))
        });
        let card =
            place(&|action| action.path() == Some(&PathBuf::from("/boot/firmware/cmdline.txt")));
        let copy = place(&|action| match action {
            Action::On(On { action, .. }) => {
                matches!(&**action, Action::WriteFile(WriteFile { path, was: Some(was), .. })
                    if path == Path::new("/cmdline.txt") && was.text == CMDLINE)
            }
            _ => false,
        });
        assert!(copied < card && card < copy, "{copied} {card} {copy}");
        if let Some(trial) = &plan.trial {
            assert!(trial.before_step < copy);
        }
        let undo = plan.steps[copy].action.undo_title();
        assert!(undo.contains("on the copy of the boot partition"), "{undo}");
    }
}

#[test]
fn the_last_step_alone_decides_and_keeps_every_other_word() {
    let plan = usual(&[("compress", "zstd:1")]);
    let last = plan.steps.last().expect("there are steps");
    let Action::WriteFile(WriteFile { path, becomes, .. }) = &last.action else {
        panic!("{last:?}");
    };
    assert_eq!(path, Path::new("/boot/firmware/cmdline.txt"));
    let root = plan.steps.iter().find_map(|step| match &step.action {
        Action::Partition(PartitionDisk { table, .. }) => {
            Some(table.partitions[0].partuuid.clone())
        }
        _ => None,
    });
    let root = root.expect("a partition");
    assert_eq!(
        becomes.text,
        format!(
            "console=serial0,115200 console=tty1 root=PARTUUID={root} rootfstype=btrfs fsck.repair=yes \
             rootwait quiet rootflags=subvol=@,compress=zstd:1\n"
        )
    );
    let kept = plan.steps.iter().any(|step| {
        matches!(&step.action, Action::WriteFile(WriteFile { path, becomes, .. })
            if path.ends_with("cmdline.txt.before-rubus") && becomes.text == CMDLINE)
    });
    assert!(kept);
    assert!(last.why.contains("resize"), "{}", last.why);
}

#[test]
fn files_on_fat_have_the_mode_of_their_neighbours() {
    let machine = machine();
    let mut facts = facts(&machine);
    let fat = |text: &str| PathState::Text(TextFile { text: text.into(), mode: 0o755 });
    let path = "/boot/firmware/cmdline.txt";
    facts.seen.insert(path.into(), fat(CMDLINE));
    let plan = plan_of(&machine, &facts, &[]);
    for step in &plan.steps {
        if let Action::WriteFile(WriteFile { becomes, .. }) = &step.action {
            assert_eq!(becomes.mode, 0o755, "{}", step.id);
        }
    }
}

#[test]
fn what_was_changed_for_the_new_root_is_not_copied_over() {
    let plan = usual(&[]);
    let again = plan.steps.iter().find_map(|step| match &step.action {
        Action::CopyTree(CopyTree { pass: rubus_change::plan::Pass::Again, without, .. }) => {
            Some(without)
        }
        _ => None,
    });
    let again = again.expect("a second pass");
    for step in &plan.steps {
        if let Action::On(On { action, .. }) = &step.action {
            let is_directory = matches!(**action, Action::MakeDirectory(_));
            let path = action.path().expect("a file");
            assert!(is_directory || again.contains(path), "{path:?} in {again:?}");
        }
    }
}

/// The forecast of compression and of the room rests on what is copied.
#[test]
fn the_swap_file_is_neither_copied_nor_counted() {
    let mut machine = machine();
    machine.swap.areas.push(rubus_vocabulary::machine::SwapArea {
        path: "/var/swap".into(),
        kind: "file".into(),
        size_bytes: 1_000_000_000,
        used_bytes: 0,
        priority: -2,
        device: Fact::known("mmcblk0p2".into(), "test"),
    });
    let facts = facts(&machine);
    let plan = plan_of(&machine, &facts, &[]);
    let copied = plan.steps.iter().find_map(|step| match &step.action {
        Action::CopyTree(CopyTree { without, without_contents_of, .. }) => {
            Some((without.clone(), without_contents_of.clone()))
        }
        _ => None,
    });
    let left_out = rubus_machine::not_copied::NotCopied::of(&machine);
    assert!(left_out.has(Path::new("/var/swap")));
    assert_eq!(copied, Some((left_out.paths, left_out.contents_of)));
    let fits = plan.checks.iter().find(|check| check.what == "everything fits on it");
    let fits = fits.expect("it is checked");
    assert!(fits.found.starts_with("5.03 GiB are in use"), "{}", fits.found);
}

#[test]
fn every_obstacle_says_what_to_do() {
    let mut shown = Vec::new();
    let mut meet = |name: &str, spoil: &dyn Fn(&mut Machine, &mut Facts)| {
        let mut machine = machine();
        let mut facts = facts(&machine);
        spoil(&mut machine, &mut facts);
        let plan = plan_of(&machine, &facts, &[]);
        let found = obstacles(&plan);
        assert!(!found.is_empty(), "{name}");
        shown.push(format!("{name}\n{}", found.join("\n")));
    };
    let without = |path: &'static str| {
        move |_: &mut Machine, facts: &mut Facts| {
            facts.seen.insert(path.into(), PathState::Absent);
        }
    };
    meet("overlay", &|machine, _| {
        machine.mounts[0].filesystem = "overlay".into();
        machine.mounts[0].device = None;
    });
    meet("encrypted", &|machine, _| {
        let mut root = machine.device("mmcblk0p2").expect("there is one").clone();
        root.below = vec![std::mem::replace(&mut root.name, "dm-0".into())];
        root.parent = None;
        root.kind = rubus_vocabulary::machine::BlockKind::Dm;
        root.model = Fact::known("LUKS2 cryptroot".into(), "test");
        machine.block_devices.push(root);
        machine.mounts[0].device = Some("dm-0".into());
    });
    meet("Ubuntu", &|_, facts| {
        let seen = &mut facts.seen;
        let config = "arm_64bit=1\nauto_initramfs=1\nos_prefix=current/\n";
        seen.insert("/boot/firmware/config.txt".into(), text(config));
        let Some(PathState::Directory(names)) = seen.get_mut(Path::new("/boot/firmware")) else {
            panic!("the boot partition is a directory");
        };
        names.push("current".into());
    });
    meet("boot partition not mounted", &|machine, _| {
        machine.mounts.retain(|mount| mount.filesystem != "vfat");
    });
    meet("boot partition mounted on demand", &|machine, _| {
        machine.mounts.retain(|mount| mount.filesystem != "vfat");
        let options = "noauto,x-systemd.automount";
        let line = Entry::new("LABEL=bootfs", "/boot/firmware", "vfat", options);
        machine.fstab = Fact::known(vec![line], "/etc/fstab");
    });
    meet("a directory of it is bound to /boot", &|machine, _| {
        let boot = machine.mounts.iter_mut().find(|mount| mount.filesystem == "vfat");
        boot.expect("it is mounted").root = "/boot".into();
    });
    meet("a board with U-Boot", &|machine, _| {
        machine.mounts.retain(|mount| mount.filesystem != "vfat");
        machine.board.revision = Fact::unknown("no such file", "test");
        machine.board.compatible = Fact::known(vec!["xunlong,orangepi-5".into()], "test");
    });
    meet("a root of ZFS", &|machine, _| {
        let root = &mut machine.mounts[0];
        (root.filesystem, root.source) = ("zfs".into(), "rpool/ROOT/debian".into());
        root.device = None;
    });
    meet("no config.txt", &without("/boot/firmware/config.txt"));
    meet("no cmdline.txt", &without("/boot/firmware/cmdline.txt"));
    meet("refused by the guard", &|_, facts| {
        let refused = Err("/dev/sda is read-only".to_string().into());
        facts.disks.insert("/dev/sda".into(), refused);
    });
    meet("mounted", &|machine, _| {
        *machine = fixture::pi3_with_usb_ssd();
    });
    meet("nameless", &|_, facts| {
        if let Some(Ok(disk)) = facts.disks.get_mut(Path::new("/dev/sda")) {
            disk.serial = None;
        }
    });
    meet("too small", &|_, facts| {
        if let Some(Ok(disk)) = facts.disks.get_mut(Path::new("/dev/sda")) {
            disk.size_bytes = 2 << 30;
        }
    });
    meet("no btrfs-progs", &|_, facts| {
        for program in ["btrfs", "mkfs.btrfs"] {
            without_program(program, facts);
        }
    });
    meet("apt runs", &|_, facts| {
        facts.seen.insert("/proc/77/comm".into(), text("apt-get\n"));
    });
    meet("undervoltage", &|machine, _| {
        machine.power.throttling = Fact::known(Throttling::decode(0x50005), "test");
    });
    meet("little memory", &|machine, _| {
        machine.memory.available_bytes = Fact::known(30 << 20, "test");
    });
    meet("kernel without btrfs", &|machine, facts| {
        machine.kernel_config.retain(|setting| setting.name != "BTRFS_FS");
        let path = format!("/lib/modules/{RELEASE}/kernel/fs/btrfs");
        facts.seen.insert(path.into(), PathState::Absent);
    });
    meet("kernel without zswap", &|machine, _| {
        machine.swap.zswap.parameters.clear();
    });
    meet("no modules", &without("/lib/modules"));
    meet("no room", &|machine, _| {
        let mut mounts = machine.mounts.iter_mut();
        let boot = mounts.find(|mount| mount.filesystem == "vfat");
        boot.expect("there is one").available_bytes = Fact::known(5 << 20, "test");
    });
    meet("a line about the disk", &|_, facts| {
        let line = "UUID=f3f45f35-9d6b-4b0e-9cf8-4d2f9a4a5a11 /srv/data btrfs defaults 0 0\n";
        facts.seen.insert("/etc/fstab".into(), text(&format!("{FSTAB}{line}")));
    });
    insta::assert_snapshot!(shown.join("\n\n"));
}

/// The system, its home and its swap would hang on the network; and the boot would not find it.
#[test]
fn made_once_it_is_not_made_again() {
    // After it was applied, before the boot.
    let mut machine = machine();
    let facts_before = facts(&machine);
    let plan = plan_of(&machine, &facts_before, &[]);
    let new_line = written(&plan, "cmdline.txt");
    let root = new_line.split("PARTUUID=").nth(1).and_then(|rest| rest.split(' ').next());
    let mut part = machine.device("sda1").expect("there is one").clone();
    part.identity.partuuid = root.map(str::to_string);
    part.content = Fact::known("btrfs".into(), "test");
    machine.block_devices.retain(|device| device.name != "sda1");
    machine.block_devices.push(part);
    let mut facts_after = facts_before.clone();
    facts_after.seen.insert("/boot/firmware/cmdline.txt".into(), text(&new_line));
    // Another program may have written that line: then the disk is not what this change makes of it.
    let foreign = plan_of(&machine, &facts_after, &[]);
    assert_eq!(foreign.obstacles().count(), 1, "{foreign:?}");
    let Some(PathState::Directory(names)) = facts_after.seen.get_mut(Path::new("/boot/firmware"))
    else {
        panic!("the boot partition was looked at");
    };
    names.push("cmdline.txt.before-rubus".into());
    let again = plan_of(&machine, &facts_after, &[]);
    assert!(again.is_empty(), "{again:?}");
    assert_eq!(again.obstacles().count(), 0);
    assert!(again.notes[0].contains("waits for the next boot"), "{:?}", again.notes);
    // After the boot.
    let root = &mut machine.mounts[0];
    root.device = Some("sda1".into());
    root.source = "/dev/sda1".into();
    root.filesystem = "btrfs".into();
    root.compression = Some("zstd:1".into());
    let again = plan_of(&machine, &facts_after, &[]);
    assert!(again.is_empty() && again.obstacles().count() == 0, "{again:?}");
}

#[test]
fn a_root_of_films_and_a_card_that_is_in_use_break_no_promise() {
    use rubus_change::plan::promise::Look;
    let plan = usual(&[]);
    let looks = |plan: &Plan| -> Vec<Look> {
        let promises = plan.promises.iter();
        promises.map(|promise| promise.look.clone()).collect()
    };
    let is_quiet = |look: &Look| matches!(look, Look::QuietDisk { .. });
    for look in looks(&plan) {
        match look {
            Look::Compressed { at_most, .. } => assert!(at_most >= 1.0),
            Look::NoSwapOnDisk { partuuid, .. } | Look::QuietDisk { partuuid, .. } => {
                assert_eq!(partuuid.as_deref(), Some("1f3c5a77-01"));
            }
            _ => {}
        }
    }
    assert!(looks(&plan).iter().any(is_quiet));
    // A third partition of the card holds photos.
    let mut machine = machine();
    let mut mount = machine.mounts[0].clone();
    mount.point = "/srv/photos".into();
    mount.device = Some("mmcblk0p3".into());
    let mut partition = machine.device("mmcblk0p2").expect("there is one").clone();
    partition.name = "mmcblk0p3".into();
    machine.block_devices.push(partition);
    machine.mounts.push(mount);
    let plan = plan_of(&machine, &facts(&machine), &[]);
    assert!(!looks(&plan).iter().any(is_quiet));
}

/// As Debian's raspi-firmware 1.20240424 has it.
const DEBIAN_HOOK: &str = "#!/bin/sh\ncat >/boot/firmware/cmdline.txt <<EOF\n\
                           ${pre_cmdline} root=$ROOTPART rw rootwait ${post_cmdline}\nEOF\n";

#[test]
fn identifiers_are_new() {
    let mut machine = machine();
    let facts = facts(&machine);
    let ids = |plan: &Plan| -> Vec<String> {
        let of = |action: &Action| match action {
            Action::Partition(PartitionDisk { table, .. }) => {
                table.partitions.iter().map(|part| part.partuuid.clone()).collect()
            }
            Action::Format(Format { filesystem, .. }) => vec![filesystem.uuid.clone()],
            _ => Vec::new(),
        };
        plan.steps.iter().flat_map(|step| of(&step.action)).collect()
    };
    let first = plan_of(&machine, &facts, &[]);
    assert_eq!(first, plan_of(&machine, &facts, &[]));
    let mut all = ids(&first);
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!((all.len(), count), (4, 4));
    // One of them is in use already.
    machine.block_devices[1].identity.uuid = Some(all[0].to_uppercase());
    let second = ids(&plan_of(&machine, &facts, &[]));
    assert!(second.iter().all(|id| !all.contains(id)), "{second:?}");
}

proptest! {
    #[test]
    fn lines_of_others_stay_byte_for_byte(
        lines in proptest::collection::vec("(#[ -~]{0,20}|LABEL=[a-z]{1,8}[ \t]+/mnt/[a-z]{12}[ \t]+xfs[ \t]+noauto[ \t]+0 0)", 0..6),
        end in "\n?",
    ) {
        let machine = machine();
        let mut facts = facts(&machine);
        let others = lines.join("\n");
        let boot = "PARTUUID=1f3c5a77-01 /boot/firmware vfat defaults 0 2";
        let table = format!("{boot}\nPARTUUID=1f3c5a77-02 / ext4 defaults 0 1\n{others}{end}");
        facts.seen.insert("/etc/fstab".into(), text(&table));
        let plan = plan_of(&machine, &facts, &[]);
        let new = written(&plan, "fstab");
        let rest = new.splitn(3, '\n').nth(2).unwrap_or_default();
        prop_assert!(rest.starts_with(&others), "{new:?}");
        let parsed = Fstab::parse(new.as_str());
        prop_assert_eq!(parsed.at("/").map(|entry| entry.filesystem), Some("btrfs".to_string()));
        prop_assert_eq!(parsed.swaps().len(), 1);
    }
}
