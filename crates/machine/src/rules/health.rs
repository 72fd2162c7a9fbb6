//! What the kernel's log says of the disks: which one fails, and whether it, its cable, its bridge or the supply is the cause.

use super::Look::Facts;
use super::power::BETTER_SUPPLY;
use super::{Rule, Seen, Weight};
use crate::kernel_log::{Cause, Health, judge};
use rubus_vocabulary::kernel_log::TroubleKind;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::units::counted;

const KERNEL: &str =
    "Linux, messages of drivers/mmc, usb, ata, scsi, nvme, pci/pcie/aer.c, md, block and fs";
const FIRMWARE: &str = "Linux, drivers/hwmon/raspberrypi-hwmon.c; Raspberry Pi documentation: below 4.63 V the firmware reports it";

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "disk-fails",
        weight: Weight::Danger,
        when: "the kernel's log has errors of a disk or card for which nothing else is to blame",
        source: KERNEL,
        look: Facts(|machine| of_cause(machine, Cause::Disk)),
    },
    Rule {
        name: "supply-disturbs-disks",
        weight: Weight::Danger,
        when: "the kernel's log has low voltage or too much current, alone or beside errors of a disk",
        source: FIRMWARE,
        look: Facts(|machine| of_cause(machine, Cause::Supply)),
    },
    Rule {
        name: "uas-gives-up",
        weight: Weight::Danger,
        when: "the kernel's log has commands that UAS gave up",
        source: KERNEL,
        look: Facts(|machine| of_cause(machine, Cause::Uas)),
    },
    Rule {
        name: "connection-fails",
        weight: Weight::Danger,
        when: "the kernel's log has errors of the cable, adapter or port of a disk",
        source: KERNEL,
        look: Facts(|machine| of_cause(machine, Cause::Connection)),
    },
    Rule {
        name: "disk-went-away",
        weight: Weight::Danger,
        when: "the kernel's log has a USB disk that went away while it was in use",
        source: KERNEL,
        look: Facts(|machine| of_cause(machine, Cause::WentAway)),
    },
    Rule {
        name: "filesystem-has-errors",
        weight: Weight::Danger,
        when: "a filesystem has errors, and the disk below it none",
        source: "Linux documentation, ABI/testing/sysfs-fs-ext4: errors_count; messages of fs",
        look: Facts(|machine| of_cause(machine, Cause::Filesystem)),
    },
];

fn of_cause(machine: &Machine, cause: Cause) -> Vec<Seen> {
    let troubles = machine.kernel_log.value().map(Vec::as_slice).unwrap_or_default();
    let found = judge(troubles).into_iter().filter(|health| health.cause == cause);
    found.map(|health| seen(machine, &health)).collect()
}

fn seen(machine: &Machine, health: &Health) -> Seen {
    let disk = name(machine, &health.part);
    let (consequence, fix, command) = advice(health, &disk);
    Seen {
        about: if disk.is_empty() { "the power supply".into() } else { disk },
        evidence: evidence(health),
        read_from: machine.kernel_log.source().into(),
        consequence: consequence.into(),
        fix,
        command,
    }
}

/// The disk's name where the log has its port or controller alone.
fn name(machine: &Machine, part: &str) -> String {
    let is_of = |id: &str| {
        id == part
            || (part.starts_with("nvme")
                && id.strip_prefix(part).is_some_and(|rest| rest.starts_with('n')))
    };
    let disk = super::disks(machine)
        .find(|disk| is_of(&disk.name) || disk.path.iter().rev().take(2).any(|hop| hop.id == part));
    disk.map_or_else(|| part.to_string(), |disk| disk.name.clone())
}

fn evidence(health: &Health) -> String {
    let parts: Vec<String> =
        health.evidence.iter().map(|(kind, times)| words(*kind, *times)).collect();
    format!("the kernel's log has {}", parts.join(", "))
}

fn words(kind: TroubleKind, times: u64) -> String {
    let (one, several) = match kind {
        TroubleKind::CardTransfer => {
            ("failed transfer of the card", "failed transfers of the card")
        }
        TroubleKind::CardStart => ("failed start of the card", "failed starts of the card"),
        TroubleKind::CardReadOnly => return "that the card is read-only".into(),
        TroubleKind::Io => ("failed read or write", "failed reads or writes"),
        TroubleKind::Medium => (
            "place that cannot be read or written",
            "reports of places that cannot be read or written",
        ),
        TroubleKind::Hardware => {
            ("report that the disk is broken", "reports that the disk is broken")
        }
        TroubleKind::AtaLink => {
            ("transfer damaged on the SATA cable", "transfers damaged on the SATA cable")
        }
        TroubleKind::AtaTimeout => {
            ("SATA command without an answer", "SATA commands without an answer")
        }
        TroubleKind::UasAbort => ("command that UAS gave up", "commands that UAS gave up"),
        TroubleKind::UsbReset => ("reset of the USB device", "resets of the USB device"),
        TroubleKind::UsbEnumeration => (
            "address that the USB device did not take",
            "addresses that the USB device did not take",
        ),
        TroubleKind::UsbDisconnect => ("disconnect from USB", "disconnects from USB"),
        TroubleKind::UsbConnect => ("connect to USB", "connects to USB"),
        TroubleKind::UsbDisk => ("disk found on USB", "disks found on USB"),
        TroubleKind::OverCurrent => {
            ("port with too much current", "reports of ports with too much current")
        }
        TroubleKind::Undervoltage => ("spell of low voltage", "spells of low voltage"),
        TroubleKind::NvmeTimeout => {
            ("NVMe command without an answer", "NVMe commands without an answer")
        }
        TroubleKind::NvmeGone => ("loss of the NVMe controller", "losses of the NVMe controller"),
        TroubleKind::PcieCorrected => {
            ("repeated transfer on PCI Express", "repeated transfers on PCI Express")
        }
        TroubleKind::PcieUncorrected => {
            ("lost transfer on PCI Express", "lost transfers on PCI Express")
        }
        TroubleKind::Filesystem => ("filesystem error", "filesystem errors"),
        TroubleKind::FilesystemReadOnly => {
            ("filesystem that became read-only", "filesystems that became read-only")
        }
        TroubleKind::Checksum => ("wrong checksum", "wrong checksums"),
        TroubleKind::ArrayMember => ("lost member of the array", "lost members of the array"),
    };
    counted(times, one, several)
}

fn advice(health: &Health, disk: &str) -> (&'static str, String, Option<String>) {
    let is_card = disk.starts_with("mmcblk");
    match health.cause {
        Cause::Disk if is_card => (
            "Cards that begin to fail lose files or become read-only, often within days.",
            "Copy your data now, then replace the card. Wipe its contacts first, if it is new.".into(),
            None,
        ),
        Cause::Disk => (
            "What was at these places is lost, and more may follow.",
            format!("Copy your data now; then ask the disk what it knows of itself (`smartctl -a /dev/{disk}`), and replace it."),
            None,
        ),
        Cause::Supply => (
            "The supply sags under load, just when a disk is written: USB disks drop off the bus, cards lose writes, filesystems are damaged.",
            BETTER_SUPPLY.into(),
            None,
        ),
        Cause::Uas => (
            "Each time, the disk stands still for half a minute; writes may fail.",
            "Let the older driver usb-storage serve the bridge, which is slower: one command at a time. If that does not end it, it is the cable or the supply.".into(),
            disk.starts_with("sd").then(|| format!("rubus plan usb-quirk device=/dev/{disk}")),
        ),
        Cause::Connection => (
            "Transfers are repeated, which is slow, until one fails for good.",
            "Seat the disk's cable or adapter again, try another cable and another port, and do without extensions. On PCI Express stay with the generation that the board is made for.".into(),
            None,
        ),
        Cause::WentAway => (
            "What was being written is lost; the filesystem may be damaged.",
            "If it was not pulled out: a disk that drops off without a word mostly lacks power. Give it a supply of its own (a powered hub), then try another cable.".into(),
            None,
        ),
        Cause::Filesystem => (
            "Files may be damaged, mostly by a power cut. Errors spread as long as it is written to.",
            "Copy what matters, then have it checked while it is not mounted (`fsck -f`; of the root at the next start with `fsck.mode=force` on the kernel's command line).".into(),
            None,
        ),
    }
}
