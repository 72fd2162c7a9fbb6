//! What trouble in the kernel's log comes to: which disk it is about, what the likely cause is, and how bad it is.
//!
//! A single error that the kernel mended by trying again is no news: links and cards have them. What counts is a fact that does not go
//! away by itself (data that could not be read or written, a medium that says that it is bad) and what keeps coming back.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

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
/// Times that a card did not come up. The kernel tries four clock rates in turn, and a card may need the slowest.
const MANY_STARTS: u64 = 5;

/// Spells of low voltage or too much current that make a supply suspect at any time.
const MANY_DIPS: u64 = 3;
/// How far from a disk's trouble such a spell may be to be its cause, in seconds.
const NEAR_S: f64 = 600.0;

/// The likely cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The disk or card itself.
    Disk,
    /// The disk, its cable or the power saving of its link: it did not answer, and the log does not say why.
    NoAnswer,
    /// The command queue that the kernel keeps in a card.
    CommandQueue,
    /// The power supply, or what a port may give.
    Supply,
    /// UAS on this USB bridge.
    Uas,
    /// A cable, adapter, contact or port.
    Connection,
    /// The USB controller that the disk is behind.
    Controller,
    /// It went away and nothing says why: unplugged, without contact, or fell off the bus.
    WentAway,
    /// The filesystem; what is below it has no errors.
    Filesystem,
}

/// What the log says of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The disk, or what the kernel named: `sda`, `mmcblk0`, `ata3`, `1-1.4`; empty for the board.
    pub part: String,
    /// The likely cause.
    pub cause: Cause,
    /// Whether data was lost or unreadable.
    pub is_failing: bool,
    /// The kinds of trouble that say so, with how often, the weightiest first.
    pub evidence: Vec<(TroubleKind, u64)>,
}

/// What the trouble comes to, by part.
pub fn judge(troubles: &[KernelTrouble]) -> Vec<Health> {
    let troubles = &with_sata_port_of_the_only_disk(with_ports_of_the_only_disk(troubles));
    let counts = Counts { troubles };
    let disks: BTreeSet<String> =
        troubles.iter().filter_map(|trouble| disk_of(&trouble.part)).collect();
    let each = disks.iter().map(|name| Disk { name, counts: &counts });
    let mut found: Vec<Health> = each.filter_map(|disk| of_disk(&disk)).collect();
    if !found.iter().any(|health| health.is_failing) {
        found.extend(of_filesystems_on_others(troubles));
    }
    without_blame_for_many_checksums(&mut found);
    without_blame_for_many_failures(&mut found);
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
    // Of a command that failed, UAS names the disk or its port.
    let is_of_port = |kind| is_of_usb(kind) || kind == UasAbort;
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
    let is_known = |trouble: &KernelTrouble| {
        (is_of_usb(trouble.kind) || trouble.kind == UsbDisk) && trouble.part == *disk
    };
    if troubles.iter().any(is_known) || has_sata_trouble(troubles) {
        return troubles.to_vec();
    }
    // A port whose disk has a name is told by that name: then no port without one is the failing disk's.
    let known: BTreeSet<&str> = troubles
        .iter()
        .filter(|trouble| trouble.kind == UsbDisk)
        .map(|trouble| trouble.part.as_str())
        .collect();
    let mut all = troubles.to_vec();
    for trouble in &mut all {
        let is_free = known.is_empty() || known.contains(trouble.part.as_str());
        if is_of_port(trouble.kind) && is_port(&trouble.part) && is_free {
            trouble.part = disk.clone();
        }
    }
    all
}

fn is_sata_port(part: &str) -> bool {
    let number = part.strip_prefix("ata");
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Disks on SATA do not drop off USB.
fn has_sata_trouble(troubles: &[KernelTrouble]) -> bool {
    troubles.iter().any(|trouble| is_sata_port(&trouble.part))
}

/// The SATA port of a disk is in no message that names the disk. Where one port has trouble and one disk fails, they are one.
fn with_sata_port_of_the_only_disk(mut troubles: Vec<KernelTrouble>) -> Vec<KernelTrouble> {
    let ports: BTreeSet<String> = troubles
        .iter()
        .filter(|trouble| is_sata_port(&trouble.part))
        .map(|trouble| trouble.part.clone())
        .collect();
    let failing: BTreeSet<String> = troubles
        .iter()
        .filter(|trouble| matches!(trouble.kind, Io | Medium | Hardware | ArrayMember))
        .filter_map(|trouble| disk_of(&trouble.part).filter(|disk| disk.starts_with("sd")))
        .collect();
    let is_on_usb = troubles.iter().any(|trouble| {
        matches!(trouble.kind, UsbDisk | UsbReset | UasAbort) && failing.contains(&trouble.part)
    });
    if let (1, Some(disk), 1, false) = (ports.len(), failing.first(), failing.len(), is_on_usb) {
        for trouble in &mut troubles {
            if is_sata_port(&trouble.part) {
                trouble.part = disk.clone();
            }
        }
    }
    troubles
}

struct Counts<'a> {
    troubles: &'a [KernelTrouble],
}

impl Counts<'_> {
    fn sum(&self, is_meant: impl Fn(&KernelTrouble) -> bool) -> u64 {
        let meant = self.troubles.iter().filter(|trouble| is_meant(trouble));
        meant.map(|trouble| trouble.times).fold(0, u64::saturating_add)
    }

    fn on_board(&self, kind: TroubleKind) -> u64 {
        self.sum(|trouble| trouble.kind == kind)
    }

    /// Whether low voltage or too much current may be the cause of a disk's trouble: it was near it in time, or came again and again,
    /// or the times are not known.
    fn has_near(&self, kind: TroubleKind, is_its: impl Fn(&KernelTrouble) -> bool) -> bool {
        self.troubles.iter().filter(|trouble| trouble.kind == kind).any(|short| {
            short.times >= MANY_DIPS
                || self.troubles.iter().any(|trouble| is_its(trouble) && is_near(short, trouble))
        })
    }
}

/// Whether two kinds of trouble came at about the same time, or the times are not known.
fn is_near(one: &KernelTrouble, other: &KernelTrouble) -> bool {
    let span = |trouble: &KernelTrouble| Some((trouble.first_s?, trouble.last_s?));
    match (span(one), span(other)) {
        (Some((from, to)), Some((first, last))) => first <= to + NEAR_S && from <= last + NEAR_S,
        _ => true,
    }
}

/// A disk and what the log has of it.
struct Disk<'a> {
    name: &'a str,
    counts: &'a Counts<'a>,
}

impl Disk<'_> {
    fn of(&self, kind: TroubleKind) -> u64 {
        let is_its = |trouble: &KernelTrouble| disk_of(&trouble.part).as_deref() == Some(self.name);
        self.counts.sum(|trouble| trouble.kind == kind && is_its(trouble))
    }

    fn has(&self, kind: TroubleKind) -> bool {
        self.of(kind) > 0
    }

    fn has_lost(&self) -> bool {
        self.has(Io) || self.has(Filesystem) || self.has(FilesystemReadOnly)
    }

    /// Whether it failed when a USB controller stopped, in a log that does not say where the disk is.
    fn fell_with_controller(&self) -> bool {
        let troubles = self.counts.troubles;
        let is_loss = |trouble: &KernelTrouble| {
            matches!(trouble.kind, Io | Filesystem | FilesystemReadOnly)
                && disk_of(&trouble.part).as_deref() == Some(self.name)
        };
        let is_near_stop = |loss: &KernelTrouble| {
            troubles.iter().any(|stop| stop.kind == UsbController && is_near(stop, loss))
        };
        self.name.starts_with("sd")
            && !has_sata_trouble(troubles)
            && troubles.iter().any(|trouble| is_loss(trouble) && is_near_stop(trouble))
    }

    fn is_short_of_power(&self) -> bool {
        self.has_near(Undervoltage)
    }

    fn has_near(&self, kind: TroubleKind) -> bool {
        self.counts.has_near(kind, |trouble| {
            !matches!(trouble.kind, UsbDisk | UsbConnect | OverCurrent)
                && disk_of(&trouble.part).as_deref() == Some(self.name)
        })
    }

    /// The supply where that was short, else what is given.
    fn supply_or(&self, cause: Cause) -> Cause {
        if self.is_short_of_power() { Cause::Supply } else { cause }
    }

    fn health(&self, cause: Cause, is_failing: bool, kinds: &[TroubleKind]) -> Option<Health> {
        let times = |kind: TroubleKind| match kind {
            Undervoltage | OverCurrent if !self.has_near(kind) => 0,
            Undervoltage | OverCurrent | UsbController => self.counts.on_board(kind),
            _ => self.of(kind),
        };
        let evidence = kinds.iter().map(|kind| (*kind, times(*kind)));
        let evidence = evidence.filter(|(_, times)| *times > 0).collect();
        Some(Health { part: self.name.to_string(), cause, is_failing, evidence })
    }
}

/// What has its data on other disks.
pub(super) const IS_ON_OTHERS: [&str; 2] = ["dm-", "bcache"];

/// The whole disk of a partition, the card of a host, the namespace's controller; a USB port and the like as they are.
pub(super) fn disk_of(part: &str) -> Option<String> {
    // What is on other disks is told of those; a network disk is its server's matter.
    let is_on_others = IS_ON_OTHERS.iter().any(|name| part.starts_with(name));
    if part.is_empty() || is_on_others || part.starts_with("nbd") {
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

fn of_disk(disk: &Disk<'_>) -> Option<Health> {
    if disk.has(Medium) || disk.has(Hardware) {
        let kinds = [Medium, Hardware, Io, Filesystem, PcieUncorrected, PcieCorrected];
        return disk.health(Cause::Disk, true, &kinds);
    }
    if disk.has(NvmeFatal) {
        let kinds = [NvmeFatal, NvmeTimeout, Io, Filesystem, PcieUncorrected, PcieCorrected];
        return disk.health(Cause::Disk, true, &kinds);
    }
    if disk.name.starts_with("mmcblk") {
        return of_card(disk);
    }
    if let Some(found) = of_usb(disk) {
        return Some(found);
    }
    // A write that failed beside one damaged transfer, of a disk that answers, failed on its way.
    let lost_on_the_way = disk.has(AtaLink) && disk.has(Io) && !disk.has(AtaTimeout);
    if disk.of(AtaLink) > 1 || lost_on_the_way {
        let kinds = [AtaLink, AtaTimeout, Io, Filesystem];
        return disk.health(Cause::Connection, disk.has_lost(), &kinds);
    }
    if disk.has(NvmeGone)
        || disk.of(NvmeTimeout) > 1
        || (disk.has(NvmeTimeout) && disk.has(Io))
        || disk.has(PcieUncorrected)
        || disk.of(PcieCorrected) >= MANY_CORRECTED
    {
        return disk.health(
            disk.supply_or(Cause::Connection),
            disk.has_lost() || disk.has(NvmeGone),
            &[Undervoltage, NvmeGone, NvmeTimeout, PcieUncorrected, PcieCorrected, Io, Filesystem],
        );
    }
    if disk.of(AtaTimeout) > 1 || disk.has(Io) || disk.has(ArrayMember) {
        // An array puts a disk out for its silence, too.
        let cause = if disk.has(AtaTimeout) { Cause::NoAnswer } else { Cause::Disk };
        return disk.health(
            disk.supply_or(cause),
            disk.has_lost() || disk.has(ArrayMember),
            &[Undervoltage, AtaTimeout, Io, ArrayMember, Filesystem],
        );
    }
    if disk.has(Checksum) {
        return disk.health(Cause::Disk, true, &[Checksum, Filesystem]);
    }
    if disk.has(Filesystem) || disk.has(FilesystemReadOnly) {
        let kinds = [Filesystem, FilesystemReadOnly];
        return disk.health(Cause::Filesystem, disk.has(FilesystemReadOnly), &kinds);
    }
    None
}

fn of_card(disk: &Disk<'_>) -> Option<Health> {
    const KINDS: &[TroubleKind] = &[
        Undervoltage,
        CardReadOnly,
        CardGone,
        CardStart,
        CardQueue,
        CardTransfer,
        Io,
        FilesystemReadOnly,
        Filesystem,
        Checksum,
    ];
    if disk.has(CardReadOnly) {
        return disk.health(Cause::Disk, true, KINDS);
    }
    // What remains of its going away is one without errors before it.
    if disk.has(CardGone) && disk.has_lost() {
        return disk.health(disk.supply_or(Cause::WentAway), true, KINDS);
    }
    let (transfers, queue) = (disk.of(CardTransfer), disk.of(CardQueue));
    let is_failing = disk.has_lost() || disk.has(Checksum);
    let is_weak = transfers.saturating_add(queue) >= MANY_TRANSFERS
        || disk.of(CardStart) >= MANY_STARTS
        || (queue > 0 && is_failing);
    if disk.has(Io) || is_weak {
        let cause = if queue > transfers { Cause::CommandQueue } else { Cause::Disk };
        return disk.health(disk.supply_or(cause), is_failing, KINDS);
    }
    if disk.has(Checksum) {
        return disk.health(Cause::Disk, true, KINDS);
    }
    if disk.has(Filesystem) || disk.has(FilesystemReadOnly) {
        let cause = disk.supply_or(Cause::Filesystem);
        return disk.health(cause, disk.has(FilesystemReadOnly), KINDS);
    }
    None
}

fn of_usb(disk: &Disk<'_>) -> Option<Health> {
    const KINDS: &[TroubleKind] = &[
        Undervoltage,
        OverCurrent,
        UsbController,
        UasAbort,
        UsbDisconnect,
        UsbEnumeration,
        UsbReset,
        Io,
        ArrayMember,
        FilesystemReadOnly,
        Filesystem,
    ];
    let is_disk = disk.name.starts_with("sd") || disk.has(UsbDisk);
    if !is_disk {
        return None;
    }
    let has_lost = disk.has_lost();
    // A disk that was unplugged in peace went away as often as it came, and nothing failed.
    let left_an_array = disk.has(UsbDisconnect) && disk.has(ArrayMember);
    let fell_off = disk.has(UsbDisconnect) && has_lost || left_an_array;
    let lost_controller = disk.counts.on_board(UsbController) > 0
        && disk.has(UsbDisk)
        && (disk.has(UsbDisconnect) || has_lost)
        || disk.fell_with_controller();
    let comes_back = disk.of(UsbDisconnect) > 1 && disk.of(UsbConnect) > 1;
    let is_unsteady = fell_off
        || lost_controller
        || comes_back
        || disk.has(UasAbort)
        || disk.of(UsbReset) >= MANY_RESETS
        || disk.of(UsbEnumeration) >= MANY_ENUMERATIONS
        || (disk.has(UsbReset) && has_lost);
    if !is_unsteady {
        return None;
    }
    let cause = if disk.is_short_of_power() || disk.has_near(OverCurrent) {
        Cause::Supply
    } else if disk.counts.on_board(UsbController) > 0 {
        Cause::Controller
    } else if disk.has(UasAbort) {
        Cause::Uas
    } else if disk.has(UsbEnumeration) || disk.has(UsbReset) || comes_back {
        Cause::Connection
    } else {
        Cause::WentAway
    };
    disk.health(cause, has_lost || left_an_array || lost_controller, KINDS)
}

/// A filesystem on LUKS, LVM or bcache is in danger whatever is below it; where a disk below is told, that is enough.
fn of_filesystems_on_others(troubles: &[KernelTrouble]) -> Vec<Health> {
    let is_told = |trouble: &&KernelTrouble| {
        matches!(trouble.kind, Filesystem | FilesystemReadOnly | Checksum)
            && IS_ON_OTHERS.iter().any(|name| trouble.part.starts_with(name))
    };
    let mut by_part: BTreeMap<&str, Vec<(TroubleKind, u64)>> = BTreeMap::new();
    for trouble in troubles.iter().filter(is_told) {
        by_part.entry(&trouble.part).or_default().push((trouble.kind, trouble.times));
    }
    let told = by_part.into_iter().map(|(part, evidence)| Health {
        part: part.to_string(),
        cause: Cause::Filesystem,
        is_failing: evidence.iter().any(|(kind, _)| *kind != Filesystem),
        evidence,
    });
    told.collect()
}

/// Disks that fail without a word of their own before what they share is to blame: power, backplane, controller.
const MANY_DISKS: usize = 3;

fn without_blame_for_many_failures(found: &mut [Health]) {
    let is_bare = |health: &Health| {
        matches!(health.cause, Cause::Disk | Cause::NoAnswer)
            && health.part.starts_with("sd")
            && health
                .evidence
                .iter()
                .all(|(kind, _)| matches!(kind, Io | AtaTimeout | ArrayMember | Filesystem))
            && health.evidence.iter().any(|(kind, _)| *kind == Io)
    };
    if found.iter().filter(|health| is_bare(health)).count() >= MANY_DISKS {
        for health in found.iter_mut().filter(|health| is_bare(health)) {
            health.cause = Cause::Connection;
        }
    }
}

/// Several disks do not go bad at once: what they share (memory, controller) damages their data.
fn without_blame_for_many_checksums(found: &mut [Health]) {
    let is_by_checksum = |health: &Health| {
        health.cause == Cause::Disk
            && health.evidence.iter().all(|(kind, _)| matches!(kind, Checksum | Filesystem))
            && health.evidence.iter().any(|(kind, _)| *kind == Checksum)
    };
    if found.iter().filter(|health| is_by_checksum(health)).count() > 1 {
        for health in found.iter_mut().filter(|health| is_by_checksum(health)) {
            health.cause = Cause::Filesystem;
        }
    }
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
