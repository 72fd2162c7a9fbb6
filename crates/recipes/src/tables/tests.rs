//! Lines about a disk, by every way to name it.

use super::super::{Facts, PathState, PlanBuilder, Seen, Wishes};
use super::*;
use rubus_change::plan::TextFile;
use rubus_fixtures as fixture;
use rubus_vocabulary::fact::Fact;

/// The check's words for a table of mounts and one of ciphers, where the disk is to be erased.
fn found(machine: &Machine, fstab: &str, crypttab: &str) -> String {
    let text = |text: &str| PathState::Text(TextFile::public(text));
    let seen = Seen::from([(FSTAB.into(), text(fstab)), (CRYPTTAB.into(), text(crypttab))]);
    let facts = Facts { seen, ..Facts::default() };
    let options = Wishes::new();
    let situation = PlanInput { machine, facts: &facts, options: &options };
    let mut draft = PlanBuilder::default();
    check("sda", &|_| false, &situation, &mut draft);
    draft.checks.remove(0).found
}

fn machine(content: &str) -> Machine {
    let mut machine = fixture::pi3_with_usb_ssd();
    for device in &mut machine.block_devices {
        match device.name.as_str() {
            "sda" => device.serial = Fact::known("1951E2 000000".into(), "test"),
            "sda1" => {
                device.content = Fact::known(content.into(), "test");
                device.identity.uuid = Some("7c8f-1".into());
                device.identity.partuuid = Some("4f1c-01".into());
                device.identity.label = Some("data".into());
                device.identity.partlabel = Some("primary".into());
                device.identity.links = vec!["/dev/disk/by-path/usb-0:1-part1".into()];
            }
            _ => {}
        }
    }
    machine
}

const NONE: &str = "no line is about it";

#[test]
fn every_name_of_the_disk_is_understood() {
    let machine = machine("ext4");
    for source in [
        "UUID=7C8F-1",
        "PARTUUID=4f1c-01",
        "LABEL=data",
        "PARTLABEL=primary",
        "/dev/sda1",
        "/dev/disk/by-uuid/7c8f-1",
        "/dev/disk/by-partuuid/4f1c-01",
        "/dev/disk/by-path/usb-0:1-part1",
        "/dev/disk/by-id/ata-CT240BX500SSD1_1951E2_000000-part1",
    ] {
        let line = format!("{source} /srv/x ext4 defaults,nofail 0 2\n");
        assert_eq!(found(&machine, &line, ""), format!("{source} at /srv/x"));
        let line = format!("secret {source} none luks\n");
        assert!(found(&machine, "", &line).contains(source), "{source}");
    }
    for source in [
        "UUID=7c8f-2",
        "LABEL=Data",
        "/dev/mmcblk0p1",
        "/dev/disk/by-id/ata-other-part1",
        "/dev/mapper/other",
        "tmpfs",
        "nas:/export",
    ] {
        let line = format!("{source} /srv/x ext4 defaults 0 2\n");
        assert_eq!(found(&machine, &line, ""), NONE, "{source}");
    }
}

#[test]
fn what_is_opened_from_the_disk_is_about_it() {
    let machine = machine("crypto_LUKS");
    let words = found(
        &machine,
        "/dev/mapper/secret /srv/x ext4 defaults 0 2\n",
        "secret UUID=7c8f-1 none luks\nother UUID=9 none luks\n",
    );
    assert_eq!(
        words,
        "/dev/mapper/secret at /srv/x, UUID=7c8f-1 as /dev/mapper/secret in /etc/crypttab (each start waits 90 s for it)"
    );
}

#[test]
fn volumes_that_are_not_there_may_stand_on_what_the_disk_holds() {
    for (content, source) in [
        ("LVM2_member", "/dev/vgdata/media"),
        ("LVM2_member", "/dev/mapper/vgdata-media"),
        ("linux_raid_member", "/dev/md0"),
        ("linux_raid_member", "/dev/md/store"),
    ] {
        let line = format!("{source} /srv/x ext4 defaults 0 2\n");
        assert_eq!(found(&machine(content), &line, ""), format!("{source} at /srv/x"));
        assert_eq!(found(&machine("ext4"), &line, ""), NONE, "{source}");
    }
}

/// A clone of the card: its lines mean the card again once the clone is erased.
#[test]
fn a_name_that_another_disk_has_too_is_not_about_it() {
    let mut machine = machine("ext4");
    for device in machine.block_devices.iter_mut().filter(|device| device.name == "mmcblk0p2") {
        device.identity.partuuid = Some("4f1c-01".into());
    }
    assert_eq!(found(&machine, "PARTUUID=4f1c-01 / ext4 defaults 0 1\n", ""), NONE);
}

#[test]
fn a_btrfs_needs_each_of_its_members() {
    let mut machine = machine("btrfs");
    for device in machine.block_devices.iter_mut().filter(|device| device.name == "mmcblk0p2") {
        device.identity.uuid = Some("7c8f-1".into());
        device.content = Fact::known("btrfs".into(), "test");
    }
    let words = found(&machine, "UUID=7c8f-1 /srv/pool btrfs defaults 0 0\n", "");
    assert_eq!(words, "UUID=7c8f-1 at /srv/pool");
}
