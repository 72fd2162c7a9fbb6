//! From what the board starts, and what its next update reaches.

use super::Look::Facts;
use super::{Rule, Seen, Weight};
use rubus_boot::medium::{
    Certainty, kernels_are_elsewhere, line_of, mounted_on_demand, other_partition_mounted,
    start_medium,
};
use rubus_vocabulary::machine::{BlockDevice, Bootloader, Machine};

const BOOT_POINTS: [&str; 2] = ["/boot/firmware", "/boot"];

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "other-boot-partition-mounted",
        weight: Weight::Danger,
        when: "the firmware read another partition than the one that is mounted at /boot/firmware or /boot",
        source: "raspberrypi/linux, issue 6212: an upgrade wrote to another partition than the firmware reads",
        disproof: "`rubus boot --verbose` says which partition the firmware read: the mounted one, and the finding \
        is wrong.",
        look: Facts(other_mounted),
    },
    Rule {
        name: "boot-partition-not-mounted",
        weight: Weight::Danger,
        when: "the partition that the firmware read is not mounted",
        source: "raspberrypi/linux, issue 6212: an upgrade wrote to another partition than the firmware reads",
        disproof: "`findmnt /boot/firmware /boot`: one of them has the partition that `rubus boot` names, and the \
        finding is wrong.",
        look: Facts(not_mounted),
    },
    Rule {
        name: "disks-with-one-identifier",
        weight: Weight::Danger,
        when: "partitions of two disks have one PARTUUID, or filesystems on them one UUID",
        source: "Linux, block/early-lookup.c: of several partitions with a PARTUUID the first that appears is taken",
        disproof: "`lsblk -o NAME,UUID,PARTUUID`: no identifier twice, and the finding is wrong.",
        look: Facts(one_identifier),
    },
];

fn other_mounted(machine: &Machine) -> Vec<Seen> {
    let Some((read, mounted, why)) = other_partition_mounted(machine) else { return Vec::new() };
    vec![Seen {
        about: read.clone(),
        evidence: format!("the firmware reads {read} ({why}), and {mounted} is mounted in its place"),
        read_from: format!("{}, /proc/self/mountinfo", Bootloader::SOURCE),
        consequence: "Updates do not reach what the firmware reads: one day an old kernel starts without its modules.".into(),
        fix: format!("Mount /dev/{read} at /boot/firmware in /etc/fstab."),
        command: Some("rubus boot".into()),
    }]
}

fn not_mounted(machine: &Machine) -> Vec<Seen> {
    let medium = start_medium(machine);
    let Some(read) = medium.partition.filter(|_| medium.certainty == Certainty::Certain) else {
        return Vec::new();
    };
    let mut mounts = machine.mounts.iter();
    let is_known = mounts.any(|mount| {
        mount.device.as_deref() == Some(&read) || BOOT_POINTS.contains(&mount.point.as_str())
    });
    let is_meant = mounted_on_demand(machine, &read).is_some() || kernels_are_elsewhere(machine);
    if is_known || is_meant {
        return Vec::new();
    }
    let fix = match line_of(machine, &read) {
        Some(line) => format!("Mount it before an update: sudo mount {}", line.target),
        None => format!("Mount /dev/{read} at /boot/firmware in /etc/fstab."),
    };
    vec![Seen {
        about: read.clone(),
        evidence: format!("the firmware reads {read} ({}), which is not mounted", medium.why),
        read_from: format!("{}, /proc/self/mountinfo", Bootloader::SOURCE),
        consequence: "Updates do not reach what the firmware reads: one day an old kernel starts without its modules.".into(),
        fix,
        command: Some("rubus boot".into()),
    }]
}

fn one_identifier(machine: &Machine) -> Vec<Seen> {
    let parts: Vec<&BlockDevice> =
        machine.block_devices.iter().filter(|device| device.parent.is_some()).collect();
    let mut found: Vec<Seen> = Vec::new();
    for (at, one) in parts.iter().enumerate() {
        for other in parts.iter().skip(at + 1).filter(|other| other.parent != one.parent) {
            let Some(shared) = shared(one, other) else { continue };
            let disks = [one, other].map(|part| part.parent.clone().unwrap_or_default());
            let about = disks.join(", ");
            if found.iter().any(|seen| seen.about == about) {
                continue;
            }
            found.push(Seen {
                about,
                evidence: format!("{} and {} both have {shared}", one.name, other.name),
                read_from: "/run/udev/data".into(),
                consequence: "Which of the two is mounted is chance: a start may come up from the other disk.".into(),
                fix: format!(
                    "Take one of them off, or give {} new identifiers: sfdisk --disk-id, tune2fs -U random; then correct \
                     cmdline.txt and fstab there.",
                    disks[1]
                ),
                command: None,
            });
        }
    }
    found
}

/// What two partitions are both called. Disks of one btrfs or array share a UUID by design.
fn shared(one: &BlockDevice, other: &BlockDevice) -> Option<String> {
    let same = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
    let (own, theirs) = (&one.identity, &other.identity);
    if same(&own.partuuid, &theirs.partuuid) {
        return own.partuuid.as_ref().map(|id| format!("PARTUUID={id}"));
    }
    let shares_by_design = [one, other].iter().any(|part| {
        part.content
            .text()
            .is_none_or(|kind| matches!(kind, "btrfs" | "bcachefs") || kind.ends_with("_member"))
    });
    if !shares_by_design && same(&own.uuid, &theirs.uuid) {
        return own.uuid.as_ref().map(|id| format!("UUID={id}"));
    }
    None
}
