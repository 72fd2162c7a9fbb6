//! What trouble in the kernel's log comes to: which disk it is about, what the likely cause is, and how bad it is.
//!
//! A single error that the kernel mended by trying again is no news: links and cards have them. What counts is a fact that does not go
//! away by itself (data that could not be read or written, a medium that says that it is bad) and what keeps coming back.

use std::collections::BTreeSet;

use rubus_vocabulary::kernel_log::TroubleKind::*;
use rubus_vocabulary::kernel_log::{KernelTrouble, TroubleKind};

/// Transfers that a card repeated before this is more than a bad moment.
const MANY_TRANSFERS: u64 = 5;
/// Resets of a USB disk; one at the start is common.
const MANY_RESETS: u64 = 3;
/// Failed attempts to address a USB device.
const MANY_ENUMERATIONS: u64 = 2;
/// Repeated transfers of PCI Express; a few at the start of the link are common.
const MANY_CORRECTED: u64 = 20;
/// Times that a card did not come up. One or two are mended by a slower clock.
const MANY_STARTS: u64 = 3;

/// The likely cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The disk or card itself.
    Disk,
    /// The power supply, or what a port may give.
    Supply,
    /// UAS on this USB bridge.
    Uas,
    /// A cable, adapter, contact or port.
    Connection,
    /// It went away and nothing says why: unplugged, or fell off the bus.
    WentAway,
    /// The filesystem; what is below it has no errors.
    Filesystem,
}

/// What the log says of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The disk, or what the kernel named: `sda`, `mmcblk0`, `ata3`, `1-1.4`; empty for the board.
    pub part: String,
    /// Why.
    pub cause: Cause,
    /// Whether data was lost or could not be had.
    pub is_failing: bool,
    /// The kinds of trouble that say so, with how often, the weightiest first.
    pub evidence: Vec<(TroubleKind, u64)>,
}

/// What the trouble comes to, by part.
pub fn judge(troubles: &[KernelTrouble]) -> Vec<Health> {
    let troubles = &with_ports_of_the_only_disk(troubles);
    let counts = Counts { troubles };
    let disks: BTreeSet<String> =
        troubles.iter().filter_map(|trouble| disk_of(&trouble.part)).collect();
    let mut found: Vec<Health> = disks.iter().filter_map(|disk| of_disk(disk, &counts)).collect();
    let blames_supply = found.iter().any(|health| health.cause == Cause::Supply);
    if !blames_supply {
        found.extend(of_board(&counts));
    }
    found
}

/// A log that begins after the start does not say which port a disk is at. Where one disk has errors, and USB ports without a
/// known disk have trouble, it is theirs.
fn with_ports_of_the_only_disk(troubles: &[KernelTrouble]) -> Vec<KernelTrouble> {
    let is_of_usb = |kind| matches!(kind, UsbDisconnect | UsbReset | UsbEnumeration | UsbConnect);
    let is_port = |part: &str| part.contains('-');
    let failing: BTreeSet<String> = troubles
        .iter()
        .filter(|trouble| matches!(trouble.kind, Io | UasAbort | Filesystem | FilesystemReadOnly))
        .filter_map(|trouble| disk_of(&trouble.part).filter(|disk| disk.starts_with("sd")))
        .collect();
    let mut only = failing.iter();
    let (Some(disk), None) = (only.next(), only.next()) else {
        return troubles.to_vec();
    };
    let is_known = |trouble: &KernelTrouble| is_of_usb(trouble.kind) && trouble.part == *disk;
    if troubles.iter().any(is_known) {
        return troubles.to_vec();
    }
    let known: BTreeSet<&str> = troubles
        .iter()
        .filter(|trouble| trouble.kind == UsbDisk && is_port(&trouble.part))
        .map(|trouble| trouble.part.as_str())
        .collect();
    let mut all = troubles.to_vec();
    for trouble in &mut all {
        let is_free = known.is_empty() || known.contains(trouble.part.as_str());
        if is_of_usb(trouble.kind) && is_port(&trouble.part) && is_free {
            trouble.part = disk.clone();
        }
    }
    all
}

struct Counts<'a> {
    troubles: &'a [KernelTrouble],
}

impl Counts<'_> {
    fn of(&self, disk: &str, kind: TroubleKind) -> u64 {
        let all = self.troubles.iter().filter(|trouble| trouble.kind == kind);
        all.filter(|trouble| disk_of(&trouble.part).as_deref() == Some(disk))
            .map(|trouble| trouble.times)
            .fold(0, u64::saturating_add)
    }

    fn on_board(&self, kind: TroubleKind) -> u64 {
        self.troubles
            .iter()
            .filter(|trouble| trouble.kind == kind)
            .map(|trouble| trouble.times)
            .fold(0, u64::saturating_add)
    }
}

/// The whole disk of a partition, the card of a host, the namespace's controller; a USB port and the like as they are.
fn disk_of(part: &str) -> Option<String> {
    // What is on other disks is told of those; a network disk is its server's matter.
    let is_on_others = ["dm-", "nbd", "bcache"].iter().any(|name| part.starts_with(name));
    if part.is_empty() || is_on_others {
        return None;
    }
    let is_digit = |letter: char| letter.is_ascii_digit();
    if part == "mmc" {
        return Some("mmcblk0".to_string());
    }
    if let Some(number) = part.strip_prefix("mmcblk").or_else(|| part.strip_prefix("mmc")) {
        return Some(format!("mmcblk{}", number.split('p').next().unwrap_or_default()));
    }
    if let Some(rest) = part.strip_prefix("nvme") {
        let end = rest.find(|letter| !is_digit(letter)).unwrap_or(rest.len());
        return Some(format!("nvme{}", &rest[..end]));
    }
    if part.starts_with("sd") || part.starts_with("vd") || part.starts_with("hd") {
        return Some(part.trim_end_matches(is_digit).to_string());
    }
    Some(part.to_string())
}

fn of_disk(disk: &str, counts: &Counts<'_>) -> Option<Health> {
    let of = |kind| counts.of(disk, kind);
    let [medium, hardware, io] = [Medium, Hardware, Io].map(of);
    let health = |cause, is_failing, kinds: &[TroubleKind]| {
        let evidence = kinds.iter().map(|kind| {
            let times = if *kind == Undervoltage || *kind == OverCurrent {
                counts.on_board(*kind)
            } else {
                of(*kind)
            };
            (*kind, times)
        });
        let evidence = evidence.filter(|(_, times)| *times > 0).collect();
        Some(Health { part: disk.to_string(), cause, is_failing, evidence })
    };
    let has_lost = io > 0 || of(Filesystem) > 0 || of(FilesystemReadOnly) > 0;
    if medium > 0 || hardware > 0 {
        return health(Cause::Disk, true, &[Medium, Hardware, Io, Filesystem]);
    }
    let is_short_of_power = counts.on_board(Undervoltage) > 0;
    if disk.starts_with("mmcblk") {
        return of_card(disk, counts, is_short_of_power, has_lost, health);
    }
    if let Some(found) = of_usb(disk, counts, is_short_of_power, has_lost, health) {
        return Some(found);
    }
    if of(AtaLink) > 1 {
        return health(Cause::Connection, has_lost, &[AtaLink, AtaTimeout, Io, Filesystem]);
    }
    if of(NvmeGone) > 0
        || of(NvmeTimeout) > 1
        || of(PcieUncorrected) > 0
        || of(PcieCorrected) >= MANY_CORRECTED
    {
        let cause = if is_short_of_power { Cause::Supply } else { Cause::Connection };
        return health(
            cause,
            has_lost || of(NvmeGone) > 0,
            &[Undervoltage, NvmeGone, NvmeTimeout, PcieUncorrected, PcieCorrected, Io, Filesystem],
        );
    }
    if of(AtaTimeout) > 1 || io > 0 || of(ArrayMember) > 0 {
        let cause = if is_short_of_power { Cause::Supply } else { Cause::Disk };
        return health(
            cause,
            has_lost || of(ArrayMember) > 0,
            &[Undervoltage, AtaTimeout, Io, ArrayMember, Filesystem],
        );
    }
    if of(Checksum) > 0 {
        return health(Cause::Disk, true, &[Checksum, Filesystem]);
    }
    if of(Filesystem) > 0 || of(FilesystemReadOnly) > 0 {
        return health(
            Cause::Filesystem,
            of(FilesystemReadOnly) > 0,
            &[Filesystem, FilesystemReadOnly],
        );
    }
    None
}

fn of_card(
    disk: &str,
    counts: &Counts<'_>,
    is_short_of_power: bool,
    has_lost: bool,
    health: impl Fn(Cause, bool, &[TroubleKind]) -> Option<Health>,
) -> Option<Health> {
    let of = |kind| counts.of(disk, kind);
    const KINDS: &[TroubleKind] = &[
        Undervoltage,
        CardReadOnly,
        CardStart,
        CardTransfer,
        Io,
        FilesystemReadOnly,
        Filesystem,
        Checksum,
    ];
    if of(CardReadOnly) > 0 {
        return health(Cause::Disk, true, KINDS);
    }
    let is_weak = of(CardTransfer) >= MANY_TRANSFERS || of(CardStart) >= MANY_STARTS;
    let has_failed = of(Io) > 0;
    if has_failed || is_weak {
        let cause = if is_short_of_power { Cause::Supply } else { Cause::Disk };
        return health(cause, has_lost, KINDS);
    }
    if of(Checksum) > 0 {
        return health(Cause::Disk, true, KINDS);
    }
    if of(Filesystem) > 0 || of(FilesystemReadOnly) > 0 {
        let cause = if is_short_of_power { Cause::Supply } else { Cause::Filesystem };
        return health(cause, of(FilesystemReadOnly) > 0, KINDS);
    }
    None
}

fn of_usb(
    disk: &str,
    counts: &Counts<'_>,
    is_short_of_power: bool,
    has_lost: bool,
    health: impl Fn(Cause, bool, &[TroubleKind]) -> Option<Health>,
) -> Option<Health> {
    const KINDS: &[TroubleKind] = &[
        Undervoltage,
        OverCurrent,
        UasAbort,
        UsbDisconnect,
        UsbEnumeration,
        UsbReset,
        Io,
        FilesystemReadOnly,
        Filesystem,
    ];
    let of = |kind| counts.of(disk, kind);
    let is_disk = disk.starts_with("sd") || of(UsbDisk) > 0;
    if !is_disk {
        return None;
    }
    // A disk that was unplugged in peace went away as often as it came, and nothing failed.
    let fell_off = of(UsbDisconnect) > 0 && has_lost;
    let comes_back = of(UsbDisconnect) > 1 && of(UsbConnect) > 1;
    let is_unsteady = fell_off
        || comes_back
        || of(UasAbort) > 0
        || of(UsbReset) >= MANY_RESETS
        || of(UsbEnumeration) >= MANY_ENUMERATIONS
        || (of(UsbReset) > 0 && has_lost);
    if !is_unsteady {
        return None;
    }
    let cause = if is_short_of_power || counts.on_board(OverCurrent) > 0 {
        Cause::Supply
    } else if of(UasAbort) > 0 {
        Cause::Uas
    } else if of(UsbEnumeration) > 0 || of(UsbReset) > 0 || comes_back {
        Cause::Connection
    } else {
        Cause::WentAway
    };
    health(cause, has_lost, KINDS)
}

fn of_board(counts: &Counts<'_>) -> Option<Health> {
    let kinds = [Undervoltage, OverCurrent].map(|kind| (kind, counts.on_board(kind)));
    let evidence: Vec<_> = kinds.into_iter().filter(|(_, times)| *times > 0).collect();
    (!evidence.is_empty()).then(|| Health {
        part: String::new(),
        cause: Cause::Supply,
        is_failing: false,
        evidence,
    })
}
