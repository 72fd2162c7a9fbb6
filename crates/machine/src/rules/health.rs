//! What the kernel's log says of the disks: which one fails, and whether it, its cable, its bridge or the supply is the cause.

use super::Look::Facts;
use super::{Rule, Seen, Weight};
use crate::kernel_log::{Advice, Cause, Health, of_machine};
use rubus_vocabulary::machine::Machine;

const KERNEL: &str =
    "Linux, messages of drivers/mmc, usb, ata, scsi, nvme, pci/pcie/aer.c, md, block and fs";
const FIRMWARE: &str = "Linux, drivers/hwmon/raspberrypi-hwmon.c; Raspberry Pi documentation: below 4.63 V the firmware reports it";

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "disk-fails",
        weight: Weight::Danger,
        when: "the kernel's log has errors of a disk or card for which nothing else is to blame",
        source: KERNEL,
        disproof: "Put the disk into another machine, with another cable and supply, and read all of it (`rubus \
        bench --suite capacity` on a new disk, `badblocks -sv` on a full one): no errors there, and it is the \
        connection.",
        look: Facts(|machine| of_cause(machine, Cause::Disk)),
    },
    Rule {
        name: "disk-goes-silent",
        weight: Weight::Danger,
        when: "the kernel's log has commands of a SATA or SCSI disk without an answer, and nothing that says why",
        source: KERNEL,
        disproof: "Change the cable, then the port, then end the link's power saving, under the same load: each time \
        it is silent again, and it is the disk.",
        look: Facts(|machine| of_cause(machine, Cause::NoAnswer)),
    },
    Rule {
        name: "card-queue-stalls",
        weight: Weight::Danger,
        when: "the kernel's log has stalls of the command queue of a card",
        source: "Linux, messages of drivers/mmc; Raspberry Pi, overlays/README: sd_cqe; raspberrypi/linux issues 6349 and 6561",
        disproof: "Start without the queue (`dtparam=sd_cqe=0` on a Raspberry Pi 5) and repeat the same load: errors \
        of the card again, and it is the card.",
        look: Facts(|machine| of_cause(machine, Cause::CommandQueue)),
    },
    Rule {
        name: "supply-disturbs-disks",
        weight: Weight::Danger,
        when: "the kernel's log has low voltage or too much current, alone or beside errors of a disk",
        source: FIRMWARE,
        disproof: "Use another supply and cable, or a powered hub: the same errors without a new line about the \
        voltage, and it is not the supply.",
        look: Facts(|machine| of_cause(machine, Cause::Supply)),
    },
    Rule {
        name: "uas-gives-up",
        weight: Weight::Danger,
        when: "the kernel's log has commands that UAS gave up",
        source: KERNEL,
        disproof: "Let usb-storage serve the bridge and repeat the same load: it still resets, and it is not UAS.",
        look: Facts(|machine| of_cause(machine, Cause::Uas)),
    },
    Rule {
        name: "connection-fails",
        weight: Weight::Danger,
        when: "the kernel's log has errors of the cable, adapter or port of a disk",
        source: KERNEL,
        disproof: "Change the cable, then the port: the same errors with both changed, and it is the disk or its \
        bridge.",
        look: Facts(|machine| of_cause(machine, Cause::Connection)),
    },
    Rule {
        name: "usb-controller-stops",
        weight: Weight::Danger,
        when: "the kernel's log has a USB controller that stopped, and a disk behind it that failed then",
        source: KERNEL,
        disproof: "Put the disk on a port of another controller, or into another machine, under the same load: it \
        drops off there too, and it is the disk, its cable or its supply.",
        look: Facts(|machine| of_cause(machine, Cause::Controller)),
    },
    Rule {
        name: "disk-went-away",
        weight: Weight::Danger,
        when: "the kernel's log has a USB disk or card that went away while it was in use",
        source: KERNEL,
        disproof: "Compare the time in the log with when you unplugged it: a disk or card that was pulled out is no \
        fault.",
        look: Facts(|machine| of_cause(machine, Cause::WentAway)),
    },
    Rule {
        name: "filesystem-has-errors",
        weight: Weight::Danger,
        when: "a filesystem has errors, and the disk below it none",
        source: "Linux documentation, ABI/testing/sysfs-fs-ext4: errors_count; messages of fs",
        disproof: "Check it while it is not mounted (`fsck -fn`): clean, and only the counter is left from a fault \
        that was mended.",
        look: Facts(|machine| of_cause(machine, Cause::Filesystem)),
    },
];

fn of_cause(machine: &Machine, cause: Cause) -> Vec<Seen> {
    let found = of_machine(machine).into_iter().filter(|health| health.cause == cause);
    found.map(|health| seen(machine, &health)).collect()
}

fn seen(machine: &Machine, health: &Health) -> Seen {
    let Advice { consequence, fix, command } = health.advice();
    let is_board = health.part.is_empty();
    Seen {
        about: if is_board { "the power supply".into() } else { health.part.clone() },
        evidence: format!("the kernel's log has {}", health.evidence_words().join(", ")),
        read_from: machine.kernel_log.source().into(),
        consequence: consequence.into(),
        fix,
        command,
    }
}
