//! Which disk a board starts from, with the firmware's word and without.

use rubus_fixtures::pi3_with_usb_ssd;
use rubus_vocabulary::fact::Fact;

use super::*;

/// The card has a boot partition and an old root; the running root is on the USB disk.
fn root_on_usb() -> Machine {
    let mut machine = pi3_with_usb_ssd();
    for mount in &mut machine.mounts {
        if mount.point == "/" {
            mount.device = Some("sda1".into());
        }
    }
    machine
}

fn told(machine: &mut Machine, boot_mode: u32, partition: u32) {
    let bootloader = Bootloader {
        boot_mode: Some(boot_mode),
        partition: Some(partition),
        ..Bootloader::default()
    };
    machine.board.bootloader = Fact::known(bootloader, Bootloader::SOURCE);
}

fn unmount_boot(machine: &mut Machine) {
    machine.mounts.retain(|mount| !BOOT_POINTS.contains(&mount.point.as_str()));
}

#[test]
fn the_firmware_names_a_card_that_is_not_mounted() {
    let mut machine = root_on_usb();
    unmount_boot(&mut machine);
    told(&mut machine, 1, 1);
    let medium = start_medium(&machine);
    assert_eq!(medium.disks, ["mmcblk0"]);
    assert_eq!(medium.partition.as_deref(), Some("mmcblk0p1"));
    assert_eq!(medium.certainty, Certainty::Certain);
    assert_eq!(
        starts_from(&machine, "mmcblk0").as_deref(),
        Some(
            "the board starts from it (/proc/device-tree/chosen/bootloader/boot-mode is 1: the SD card or eMMC)"
        )
    );
    assert_eq!(starts_from(&machine, "sda"), None);
}

#[test]
fn partition_zero_is_the_first_with_fat() {
    let mut machine = root_on_usb();
    told(&mut machine, 1, 0);
    assert_eq!(start_medium(&machine).partition.as_deref(), Some("mmcblk0p1"));
}

#[test]
fn another_mounted_partition_is_told_from_the_one_that_is_read() {
    let mut machine = root_on_usb();
    told(&mut machine, 1, 1);
    assert_eq!(other_partition_mounted(&machine), None);
    for mount in &mut machine.mounts {
        if BOOT_POINTS.contains(&mount.point.as_str()) {
            mount.device = Some("sda1".into());
        }
    }
    let (read, mounted, _) = other_partition_mounted(&machine).expect("they differ");
    assert_eq!((read.as_str(), mounted.as_str()), ("mmcblk0p1", "sda1"));
}

#[test]
fn a_start_from_a_second_system_is_told_from_the_first() {
    let mut machine = root_on_usb();
    assert_eq!(not_the_first_partition(&machine), None);
    told(&mut machine, 1, 2);
    let differ = not_the_first_partition(&machine);
    assert_eq!(differ, Some(("mmcblk0p2".into(), "mmcblk0p1".into())));
}

#[test]
fn a_board_that_says_nothing_starts_from_what_is_mounted_or_from_its_card() {
    let mut machine = root_on_usb();
    let medium = start_medium(&machine);
    assert_eq!((medium.disks, medium.certainty), (vec!["mmcblk0".into()], Certainty::Likely));
    unmount_boot(&mut machine);
    assert_eq!(start_medium(&machine).certainty, Certainty::NotKnown);
    assert!(starts_from(&machine, "mmcblk0").is_some());
}

#[test]
fn a_medium_that_was_taken_out_protects_no_other_disk() {
    let mut machine = root_on_usb();
    unmount_boot(&mut machine);
    told(&mut machine, 6, 1);
    let medium = start_medium(&machine);
    assert_eq!(medium.certainty, Certainty::NotKnown);
    assert_eq!(other_partition_mounted(&machine), None);
}

#[test]
fn a_start_over_the_network_needs_no_disk() {
    let mut machine = root_on_usb();
    told(&mut machine, 2, 0);
    let medium = start_medium(&machine);
    assert!(medium.disks.is_empty());
    assert_eq!(starts_from(&machine, "mmcblk0"), None);
}

#[test]
fn boards_with_u_boot_may_need_any_card() {
    let mut machine = root_on_usb();
    unmount_boot(&mut machine);
    machine.board.revision = Fact::unknown("not a Raspberry Pi", "");
    machine.board.compatible =
        Fact::known(vec!["pine64,rock64".into(), "rockchip,rk3328".into()], "");
    assert!(starts_from(&machine, "mmcblk0").is_some_and(|why| why.contains("U-Boot")));
    // A PC has no device tree: its firmware is on its own chip.
    machine.board.compatible = Fact::unknown("no such file", "");
    assert_eq!(starts_from(&machine, "mmcblk0"), None);
}

#[test]
fn without_the_firmwares_word_the_disk_of_the_root_may_have_started_it_as_well() {
    let mut machine = root_on_usb();
    unmount_boot(&mut machine);
    let card = machine.block_devices.iter().find(|device| device.name == "mmcblk0p1");
    let mut boot = card.expect("the fixture has it").clone();
    boot.name = "sda2".into();
    boot.parent = Some("sda".into());
    machine.block_devices.push(boot);
    let medium = start_medium(&machine);
    assert_eq!((medium.disks.len(), medium.certainty), (2, Certainty::NotKnown));
    assert!(starts_from(&machine, "sda").is_some_and(|why| why.contains("may start from it")));
    assert!(starts_from(&machine, "mmcblk0").is_some());
}

#[test]
fn a_disk_whose_way_is_not_known_may_be_the_one_that_the_firmware_names() {
    let mut machine = root_on_usb();
    for mount in &mut machine.mounts {
        if BOOT_POINTS.contains(&mount.point.as_str()) {
            mount.device = Some("sda1".into());
        }
    }
    for device in &mut machine.block_devices {
        device.path.clear();
        if device.name == "sda1" {
            device.content = Fact::known("vfat".into(), "");
        }
    }
    told(&mut machine, 4, 1);
    let medium = start_medium(&machine);
    assert_eq!((medium.disks, medium.certainty), (vec!["sda".into()], Certainty::Likely));
    assert_eq!(medium.partition.as_deref(), Some("sda1"));
    assert_eq!(starts_from(&machine, "mmcblk0"), None);
    assert!(starts_from(&machine, "sda").is_some_and(|why| why.contains("may start from it")));
}

#[test]
fn of_several_partitions_that_may_be_the_first_bootable_one_the_first_is_not_certain() {
    let mut machine = root_on_usb();
    told(&mut machine, 1, 0);
    for device in &mut machine.block_devices {
        if device.name == "mmcblk0p2" {
            device.content = Fact::known("vfat".into(), "");
        }
    }
    assert_eq!(start_medium(&machine).certainty, Certainty::Certain);
    for mount in &mut machine.mounts {
        if BOOT_POINTS.contains(&mount.point.as_str()) {
            mount.device = Some("mmcblk0p2".into());
        }
    }
    let medium = start_medium(&machine);
    assert_eq!((medium.partition, medium.certainty), (None, Certainty::Likely));
    assert_eq!(other_partition_mounted(&machine), None);
}

#[test]
fn a_boot_partition_that_is_mounted_on_demand_is_known_by_its_line() {
    let mut machine = root_on_usb();
    let mut with = |target: &str, options: &str| {
        let line = Entry::new("/dev/mmcblk0p1", target, "vfat", options);
        machine.fstab = Fact::known(vec![line], "/etc/fstab");
        (mounted_on_demand(&machine, "mmcblk0p1"), line_of(&machine, "mmcblk0p1").is_some())
    };
    assert_eq!(
        with("/boot/firmware", "noauto,x-systemd.automount"),
        (Some("/boot/firmware"), true)
    );
    assert_eq!(with("/boot/firmware", "defaults"), (None, true));
    assert_eq!(with("/mnt/card", "x-systemd.automount"), (None, true));
    assert_eq!(mounted_on_demand(&machine, "sda1"), None);
}

#[test]
fn a_boot_partition_that_is_mounted_on_demand_is_idle_until_something_looks_into_it() {
    let mut machine = root_on_usb();
    machine.mounts.retain(|mount| !BOOT_POINTS.contains(&mount.point.as_str()));
    assert_eq!(idle_boot_point(&machine), None);
    let line = Entry::new("/dev/mmcblk0p1", "/boot/firmware", "vfat", "x-systemd.automount");
    machine.fstab = Fact::known(vec![line], "/etc/fstab");
    let mut mount = machine.mounts[0].clone();
    (mount.point, mount.filesystem) = ("/boot/firmware".into(), "autofs".into());
    machine.mounts.push(mount.clone());
    assert_eq!(idle_boot_point(&machine), Some("/boot/firmware"));
    mount.filesystem = "vfat".into();
    machine.mounts.push(mount);
    assert_eq!(idle_boot_point(&machine), None);
}

#[test]
fn a_card_beside_the_mounted_boot_partition_of_another_disk_may_start_a_board_that_does_not_say() {
    let mut machine = root_on_usb();
    for mount in &mut machine.mounts {
        if BOOT_POINTS.contains(&mount.point.as_str()) {
            mount.device = Some("sda1".into());
        }
    }
    assert!(starts_from(&machine, "mmcblk0").is_some_and(|why| why.contains("may start from it")));
    told(&mut machine, 4, 1);
    assert_eq!(starts_from(&machine, "mmcblk0"), None);
    machine.board.bootloader = Fact::unknown("not read", "");
    for device in &mut machine.block_devices {
        if device.parent.as_deref() == Some("mmcblk0") {
            device.content = Fact::known("ext4".into(), "");
        }
    }
    assert_eq!(starts_from(&machine, "mmcblk0"), None);
}
