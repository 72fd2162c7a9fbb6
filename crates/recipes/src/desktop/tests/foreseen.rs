//! What the final proof would refuse is refused by the plan, and what is right is taken.

use super::*;

const BOOT: &str = "PARTUUID=1f3c5a77-01 /boot/firmware vfat defaults 0 2\n";
const ROOT: &str = "PARTUUID=1f3c5a77-02 / ext4 defaults,noatime 0 1\n";

/// The plan with these texts.
fn planned(cmdline: &str, fstab: &str) -> Plan {
    let machine = machine();
    let mut facts = facts(&machine);
    facts.seen.insert("/boot/firmware/cmdline.txt".into(), text(cmdline));
    facts.seen.insert("/etc/fstab".into(), text(fstab));
    plan_of(&machine, &facts, &[])
}

#[test]
fn texts_that_fail_at_the_end_fail_at_the_start() {
    let whole = format!("{BOOT}{ROOT}");
    for (cmdline, fstab, words) in [
        (format!("{CMDLINE}more words\n"), whole.clone(), "text behind the first line"),
        (format!("\n{CMDLINE}"), whole.clone(), "text behind the first line"),
        (format!("# old: root=/dev/sdb2\n{CMDLINE}"), whole.clone(), "text behind the first"),
        (CMDLINE.into(), format!("{whole}UUID=3d34 /media/x ext4 defaults 0 2\n"), "on no volume"),
        (CMDLINE.into(), format!("{whole}/dev/mapper/x /x ext4 defaults 0 2\n"), "on no volume"),
        (CMDLINE.into(), format!("{whole}UUID=3d34 / ext4 defaults 0 1\n"), "by two lines"),
        (
            CMDLINE.into(),
            format!("{whole}tmpfs /t tmpfs defaults\ntmpfs /t tmpfs size=1M\n/a /t none bind\n"),
            "/t is mounted by two lines",
        ),
        (CMDLINE.into(), ROOT.into(), "mounts nothing at /boot/firmware"),
        (
            CMDLINE.into(),
            format!("PARTUUID=1f3c5a77-02 /boot/firmware vfat defaults 0 2\n{ROOT}"),
            "holds ext4",
        ),
    ] {
        let plan = planned(&cmdline, &fstab);
        let said = obstacles(&plan).join("\n");
        assert!(said.contains(words), "{words}: {said}");
        assert!(plan.steps.is_empty());
    }
}

#[test]
fn what_a_start_goes_on_without_is_taken() {
    let whole = format!("{BOOT}{ROOT}");
    for line in [
        "UUID=3d34 /media/x ext4 defaults,nofail 0 2\n",
        "UUID=3d34 /media/x ext4 noauto 0 2\n",
        "UUID=3d34 none swap sw 0 0\n",
        "/dev/zram0 none swap sw 0 0\n",
        "/storage/log /var/log none bind\n",
    ] {
        let plan = planned(CMDLINE, &format!("{whole}{line}"));
        assert_eq!(obstacles(&plan), [""; 0], "{line}");
    }
    let plan = planned(CMDLINE, &format!("{whole}UUID=3d34 none swap sw 0 0\n"));
    let found: Vec<&str> = plan.checks.iter().map(|check| check.found.as_str()).collect();
    assert!(
        found.contains(&"swap that is not there costs each start 90 s: UUID=3d34"),
        "{found:?}"
    );
}

/// A clone of the card beside it.
#[test]
fn a_name_of_two_volumes_is_refused_unless_one_is_overwritten() {
    let mut machine = machine();
    let mut clone = machine.device("mmcblk0p1").expect("the fixture has it").clone();
    clone.name = "sdb1".into();
    clone.parent = None;
    machine.block_devices.push(clone);
    let said = obstacles(&plan_of(&machine, &facts(&machine), &[])).join("\n");
    assert!(said.contains("may be any of /dev/mmcblk0p1, /dev/sdb1"), "{said}");
    let last = machine.block_devices.last_mut().expect("the clone");
    (last.name, last.parent) = ("sda2".into(), Some("sda".into()));
    assert_eq!(obstacles(&plan_of(&machine, &facts(&machine), &[])), [""; 0]);
}

#[test]
fn a_boot_partition_that_cannot_be_written_to_is_refused() {
    let mut machine = machine();
    for mount in machine.mounts.iter_mut().filter(|mount| mount.point == "/boot/firmware") {
        mount.options = vec!["ro".into()];
    }
    let said = obstacles(&plan_of(&machine, &facts(&machine), &[])).join("\n");
    assert!(said.contains("sudo mount -o remount,rw /boot/firmware"), "{said}");
}

#[test]
fn a_boot_partition_in_a_file_is_refused() {
    let machine = machine();
    let mut facts = facts(&machine);
    let files = ["config.txt", "cmdline.txt", "kernel8.img", "initramfs8", "boot.img"];
    facts.seen.insert("/boot/firmware".into(), names(&files));
    facts.seen.insert("/boot/firmware/config.txt".into(), text("boot_ramdisk=1\n"));
    let said = obstacles(&plan_of(&machine, &facts, &[])).join("\n");
    assert!(said.contains("boot_ramdisk=1"), "{said}");
}

#[test]
fn names_that_the_kernel_counts_become_lasting_ones() {
    let fstab =
        "/dev/mmcblk0p1 /boot/firmware vfat defaults 0 2\n/dev/mmcblk0p2 / ext4 defaults 0 1\n";
    let plan = planned(CMDLINE, fstab);
    assert_eq!(obstacles(&plan), [""; 0]);
    let table = written(&plan, "fstab");
    assert!(table.starts_with("PARTUUID=1f3c5a77-01 /boot/firmware vfat"), "{table}");
    assert!(!table.contains("/dev/mmcblk0"), "{table}");
    let whys: Vec<&str> = plan.steps.iter().map(|step| step.why.as_str()).collect();
    let words = "/dev/mmcblk0p1 becomes PARTUUID=1f3c5a77-01";
    assert!(whys.iter().any(|why| why.contains(words)), "{whys:?}");
}

#[test]
fn swap_files_of_other_disks_stay_and_those_of_the_root_are_left_out() {
    let lines = "/srv/nas/swapfile none swap sw 0 0\n/swap/file none swap sw 0 0\n\
                 UUID=3d34 /srv/nas ext4 nofail 0 2\n";
    let plan = planned(CMDLINE, &format!("{BOOT}{ROOT}{lines}"));
    let table = written(&plan, "fstab");
    assert!(
        table.contains("/srv/nas/swapfile none swap") && !table.contains("/swap/file"),
        "{table}"
    );
    for step in &plan.steps {
        if let Action::CopyTree(copy) = &step.action {
            assert!(copy.without.contains(&PathBuf::from("/swap/file")), "{:?}", copy.without);
            assert!(
                !copy.without.contains(&PathBuf::from("/srv/nas/swapfile")),
                "{:?}",
                copy.without
            );
        }
    }
}

#[test]
fn what_stays_on_the_old_disk_and_in_memory_is_said() {
    let mut machine = machine();
    let mut home = current::root(&machine).expect("a root").clone();
    home.point = "/home".into();
    machine.mounts.push(home);
    machine.swap.managers.clear();
    machine.swap.areas[0].path = "/dev/zram0".into();
    machine.swap.areas[0].priority = 100;
    let plan = plan_of(&machine, &facts(&machine), &[]);
    let notes = plan.notes.join("\n");
    assert!(notes.contains("/home stays on mmcblk0"), "{notes}");
    assert!(notes.contains("/dev/zram0 (priority 100)") && notes.contains("before the new swap"));
    let without = plan_of(&machine, &facts(&machine), &[("swap", "none")]);
    assert!(!without.notes.join("\n").contains("/dev/zram0 (priority"));
    assert!(!without.title.contains("swap"), "{}", without.title);
}

#[test]
fn a_system_that_puts_its_root_together_by_words_of_its_own_is_not_told_to_switch_an_overlay_off() {
    let remedy = |line: &str| {
        let mut machine = machine();
        machine.mounts[0].filesystem = "overlay".into();
        machine.mounts[0].device = None;
        machine.system.command_line = Fact::known(line.into(), "test");
        let plan = plan_of(&machine, &facts(&machine), &[]);
        let failed = plan.checks.iter().find(|check| check.what.contains("disk of its own"));
        failed.and_then(|check| check.remedy.clone()).expect("it fails")
    };
    assert!(remedy("overlayroot=tmpfs root=PARTUUID=1f3c5a77-02").contains("switch that off"));
    assert!(remedy("imgpart=UUID=1 bootpart=UUID=2").contains("install it afresh"));
}

#[test]
fn an_efi_system_partition_is_not_taken_for_a_boot_partition_without_its_files() {
    let remedy = |is_raspberry_pi: bool| {
        let mut machine = machine();
        if !is_raspberry_pi {
            machine.board.revision = Fact::unknown("no such file", "test");
            machine.board.compatible = Fact::unknown("no such file", "test");
        }
        let mut facts = facts(&machine);
        facts.seen.insert("/boot/firmware/config.txt".into(), PathState::Absent);
        let plan = plan_of(&machine, &facts, &[]);
        let failed = plan.checks.iter().find(|check| check.what == "how the board starts is known");
        failed.and_then(|check| check.remedy.clone()).expect("it fails")
    };
    assert!(remedy(true).starts_with("mount the boot partition"), "{}", remedy(true));
    assert!(remedy(false).starts_with("this board does not start from config.txt"));
}

#[test]
fn programs_on_a_filesystem_of_their_own_are_no_part_of_the_copy() {
    for (point, is_taken) in [
        ("/usr", false),
        ("/var", false),
        ("/home", true),
        ("/var/log", true),
        ("/usr/local", true),
    ] {
        let mut machine = machine();
        let mut other = current::root(&machine).expect("a root").clone();
        other.point = point.into();
        machine.mounts.push(other);
        let plan = plan_of(&machine, &facts(&machine), &[]);
        let mut unmet = plan.checks.iter().filter(|check| !check.is_met);
        assert_eq!(!unmet.any(|check| check.found.contains(point)), is_taken, "{point}");
    }
}
