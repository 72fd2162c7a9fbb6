//! Lines that look like trouble and are none for what stands around them: a slot without a card, a port without a device, a machine
//! that wakes up, a stick that was taken out.

use std::collections::{BTreeMap, BTreeSet};

use rubus_vocabulary::kernel_log::TroubleKind::{self, *};

use super::Told;
use super::judge::disk_of;
use super::line::is_start;
use super::usb_disks::UsbDisks;

/// How long after the machine woke up its devices may still be reset, in seconds.
const WAKING_S: f64 = 20.0;
/// A device that comes back later than this was put in again by hand, in seconds.
const QUICK_RETURN_S: f64 = 30.0;
/// Failed resets of a SATA link while its disk spins up.
const MAX_SPIN_UP_RESETS: usize = 2;
/// Changes of a SATA link before they are more than a disk that was plugged in.
const MIN_LINK_CHANGES: usize = 3;
/// Changes that follow each other this fast are no hand's, in seconds.
const QUICK_CHANGE_S: f64 = 5.0;
/// A disk that fails this soon after its link went down was in use, in seconds; in a log without clocks, this many lines later.
const SOON_LOST_S: f64 = 60.0;
const SOON_LOST_LINES: usize = 20;
/// All that waits for a file server says so within this time of one silence, in seconds.
const ONE_SILENCE_S: f64 = 600.0;

/// The numbers of the lines that are no trouble.
pub(super) fn harmless(lines: &[Told<'_>], disks: &UsbDisks) -> BTreeSet<usize> {
    let sized = with_size(lines);
    [
        of_radios(lines),
        without_card(lines),
        locked_cards(lines),
        optical_drives(lines),
        slow_spin_ups(lines),
        plugged_links(lines),
        pulled_disks(lines),
        around_sleep(lines),
        returns_by_hand(lines),
        empty_readers(lines, &sized),
        resets_of_empty_readers(lines, disks, &sized),
        idle_ports(lines, disks),
        other_functions(lines),
        swap_of_unknown_cards(lines),
        further_silences(lines),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The lines of which something holds.
pub(super) fn matching(lines: &[Told<'_>], is_meant: impl Fn(&Told<'_>) -> bool) -> Vec<usize> {
    let numbered = lines.iter().enumerate();
    numbered.filter(|(_, told)| is_meant(told)).map(|(at, _)| at).collect()
}

/// A host that carries a radio instead of a card.
fn of_radios(lines: &[Told<'_>]) -> Vec<usize> {
    let radios: BTreeSet<String> =
        lines.iter().filter_map(|told| sdio_host(&told.line.message)).collect();
    matching(lines, |told| told.trouble.as_ref().is_some_and(|(_, part)| radios.contains(part)))
}

/// `mmc1: new high speed SDIO card at address 0001`, `brcmfmac mmc1:0001:1: …`.
fn sdio_host(message: &str) -> Option<String> {
    let rest = if message.contains(" SDIO card at address ") {
        message
    } else {
        message.strip_prefix("brcmfmac ")?
    };
    let host = rest.split(':').next()?;
    host.starts_with("mmc").then(|| host.to_string())
}

/// The host of a slot without a card asks in vain for ever: its timeouts count where the log has a card.
fn without_card(lines: &[Told<'_>]) -> Vec<usize> {
    let cards: BTreeSet<String> = lines.iter().filter_map(card_in).collect();
    matching(lines, |told| {
        is_bare_timeout(told)
            && told.trouble.as_ref().is_some_and(|(_, part)| {
                let is_any = part == "mmc" && !cards.is_empty();
                !is_any && !disk_of(part).is_some_and(|disk| cards.contains(&disk))
            })
    })
}

fn is_bare_timeout(told: &Told<'_>) -> bool {
    told.line.message.contains("imeout waiting for hardware interrupt")
}

/// The card that a line proves.
fn card_in(told: &Told<'_>) -> Option<String> {
    let message = &told.line.message;
    if let Some((_, rest)) = message.split_once("mmcblk") {
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        return Some(format!("mmcblk{}", &rest[..end]));
    }
    if message.contains(": new ") && !message.contains("SDIO") {
        let host = message.split(':').next()?;
        return host.starts_with("mmc").then(|| disk_of(host)).flatten();
    }
    match &told.trouble {
        Some((CardTransfer | CardQueue, part)) if !is_bare_timeout(told) => disk_of(part),
        Some(_) | None => None,
    }
}

/// A card that is read-only from the start may be locked; one that was writable before, or that has errors, is not.
fn locked_cards(lines: &[Told<'_>]) -> Vec<usize> {
    let has_errors = |disk: &str| {
        lines.iter().filter(|told| !is_bare_timeout(told)).any(|told| {
            told.trouble.as_ref().is_some_and(|(kind, part)| {
                matches!(
                    kind,
                    CardTransfer | CardQueue | Io | Medium | Filesystem | FilesystemReadOnly
                ) && disk_of(part).as_deref() == Some(disk)
            })
        })
    };
    let was_writable = |disk: &str, before: usize| {
        let head = format!("{disk}: mmc");
        lines[..before].iter().any(|told| {
            told.line.message.starts_with(&head) && !told.line.message.contains(" (ro)")
        })
    };
    // A journal that waits for its recovery was written on this card, in use.
    let was_in_use = |disk: &str| {
        lines.iter().any(|told| {
            told.line.message.contains("write access unavailable")
                && card_in(told).as_deref() == Some(disk)
        })
    };
    let numbered = lines.iter().enumerate();
    let locked = numbered.filter(|(at, told)| {
        told.part_of(CardReadOnly)
            .is_some_and(|disk| !has_errors(disk) && !was_writable(disk, *at) && !was_in_use(disk))
    });
    locked.map(|(at, _)| at).collect()
}

/// Drives for discs are on SATA ports as well; their commands are packets.
fn optical_drives(lines: &[Told<'_>]) -> Vec<usize> {
    let is_packet = |message: &str| {
        message.contains(": ATAPI: ") || message.contains("cmd a0/") || message.contains("cmd 0xa0")
    };
    let ports: BTreeSet<&str> = lines
        .iter()
        .filter(|told| is_packet(&told.line.message))
        .filter_map(|told| sata_port(&told.line.message))
        .collect();
    matching(lines, |told| {
        told.trouble.as_ref().is_some_and(|(_, part)| ports.contains(part.as_str()))
    })
}

/// `ata3` of `ata3.00: …`.
fn sata_port(message: &str) -> Option<&str> {
    let head = message.split([':', '.']).next()?;
    let number = head.strip_prefix("ata")?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(head)
}

/// A disk that spins up slowly does not answer the first resets of its link, and then does.
fn slow_spin_ups(lines: &[Told<'_>]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut waiting: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, told) in lines.iter().enumerate() {
        let message: &str = &told.line.message;
        let Some(port) = sata_port(message) else {
            continue;
        };
        if message.contains("COMRESET failed") || message.contains("found unknown device (class") {
            waiting.entry(port).or_default().push(at);
        } else if message.contains("limiting SATA link speed") {
            waiting.remove(port);
        } else if message.contains("SATA link up") {
            let resets = waiting.remove(port).unwrap_or_default();
            if resets.len() <= MAX_SPIN_UP_RESETS {
                found.extend(resets);
            }
        }
    }
    found
}

/// A link changes when a disk is plugged in or out; a cable makes it change again and again, or while the disk is written.
fn plugged_links(lines: &[Told<'_>]) -> Vec<usize> {
    // With commands under way (SAct) it is no plugging.
    let is_change = |told: &Told<'_>| {
        let message = &told.line.message;
        told.part_of(AtaLink).is_some()
            && message.contains(": exception Emask 0x")
            && message.contains(" SAct 0x0 ")
    };
    let mut changes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut quick: BTreeMap<&str, usize> = BTreeMap::new();
    let mut newest: BTreeMap<&str, &Told<'_>> = BTreeMap::new();
    let mut unplugged = BTreeSet::new();
    for told in lines {
        let message: &str = &told.line.message;
        if let Some(port) = told.part_of(AtaLink).filter(|_| is_change(told)) {
            *changes.entry(port).or_default() += 1;
            // A log without clocks does not say how fast they came.
            let is_quick = |before: &Told<'_>| {
                before.line.gap_s(&told.line).is_none_or(|gap| gap <= QUICK_CHANGE_S)
            };
            if newest.insert(port, told).is_some_and(is_quick) {
                *quick.entry(port).or_default() += 1;
            }
        }
        let is_end = ["SATA link down", ".00: disable", ".00: detaching"];
        if let Some(port) =
            sata_port(message).filter(|_| is_end.iter().any(|end| message.contains(end)))
        {
            unplugged.insert(port);
        }
    }
    let lost = links_lost_in_use(lines);
    matching(lines, |told| {
        told.part_of(AtaLink).filter(|_| is_change(told)).is_some_and(|port| {
            let flaps = quick.get(port).is_some_and(|n| *n >= MIN_LINK_CHANGES);
            !flaps
                && !lost.contains(port)
                && (unplugged.contains(port)
                    || changes.get(port).is_none_or(|n| *n < MIN_LINK_CHANGES))
        })
    })
}

/// The ports whose link went down just before reads or writes of its disk failed.
fn links_lost_in_use<'a>(lines: &'a [Told<'_>]) -> BTreeSet<&'a str> {
    let numbered = lines.iter().enumerate();
    let down = numbered.filter(|(_, told)| told.line.message.contains("SATA link down"));
    let in_use = down.filter_map(|(at, _)| {
        let port = sata_port(&lines[at].line.message)?;
        let disk = disk_of_sata_port(lines, port);
        let is_its = |lost: &str| {
            lost.starts_with("sd") && disk.is_none_or(|disk| disk_of(lost).as_deref() == Some(disk))
        };
        soon_after(lines, at, SOON_LOST_S)
            .any(|(_, later)| later.part_of(Io).is_some_and(is_its))
            .then_some(port)
    });
    in_use.collect()
}

/// The lines after one that belong to the same start and come soon, with their numbers.
pub(super) fn soon_after<'l, 'a>(
    lines: &'l [Told<'a>],
    at: usize,
    soon_s: f64,
) -> impl Iterator<Item = (usize, &'l Told<'a>)> {
    let from = &lines[at].line;
    let later = lines
        .iter()
        .enumerate()
        .skip(at + 1)
        .take_while(|(_, later)| !is_start(&later.line.message));
    later.filter(move |(number, later)| {
        from.gap_s(&later.line).map_or(*number - at <= SOON_LOST_LINES, |gap| gap <= soon_s)
    })
}

/// The disk at a port, where its end names it: `ata2.00: detaching (SCSI 1:0:0:0)`, `sd 1:0:0:0: [sdb] …`.
fn disk_of_sata_port<'a>(lines: &'a [Told<'_>], port: &str) -> Option<&'a str> {
    let address = lines.iter().find_map(|told| {
        let message = &told.line.message;
        let (_, rest) = message.split_once(": detaching (SCSI ")?;
        (sata_port(message) == Some(port)).then(|| rest.trim_end_matches(')'))
    })?;
    let head = format!("sd {address}: [");
    let named = lines.iter().find(|told| told.line.message.starts_with(&head))?;
    bracketed_disk(&named.line.message)
}

/// A card of the log's by its numbers is the first one only where the log has no other: a board may give them to either.
fn swap_of_unknown_cards(lines: &[Told<'_>]) -> Vec<usize> {
    let is_of_card = |told: &Told<'_>| told.line.message.contains("swap-device (179:");
    let others = lines.iter().filter(|told| !is_of_card(told));
    let cards: BTreeSet<String> = others.filter_map(card_in).collect();
    let is_clear = cards.len() == 1 && cards.contains("mmcblk0");
    matching(lines, |told| !is_clear && is_of_card(told))
}

/// Each program that waits for a file server has a report of its own: those of one silence count once.
fn further_silences(lines: &[Told<'_>]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut newest: Option<&Told<'_>> = None;
    for (at, told) in lines.iter().enumerate() {
        if is_start(&told.line.message) {
            newest = None;
        }
        if told.part_of(ServerSilent).is_none() {
            continue;
        }
        let is_of_same = |before: &Told<'_>| {
            before.line.gap_s(&told.line).is_none_or(|gap| gap <= ONE_SILENCE_S)
        };
        if newest.is_some_and(is_of_same) {
            found.push(at);
        }
        newest = Some(told);
    }
    found
}

/// A SCSI disk may answer a query for its state too late, and a reset ends commands of an NVMe disk that are tried again. A wake-up may
/// cut the link of an NVMe disk for a moment. All say why a read or write failed, and nothing where none did. A failure that is
/// `harmless` is none.
pub(super) fn silences_without_loss(
    lines: &[Told<'_>],
    disks: &UsbDisks,
    harmless: &BTreeSet<usize>,
) -> Vec<usize> {
    let numbered = lines.iter().enumerate();
    let failed: BTreeSet<String> = numbered
        .filter(|(at, _)| !harmless.contains(at))
        .filter_map(|(_, told)| told.part_of(Io).and_then(disk_of))
        .collect();
    let silent = |told: &Told<'_>| {
        let message: &str = &told.line.message;
        let scsi = told.part_of(AtaTimeout).filter(|_| message.starts_with("sd "));
        let nvme = told.part_of(NvmeTimeout).filter(|_| message.contains(" @ LBA "));
        let cut = told.part_of(PcieUncorrected).filter(|_| message.contains("frozen state "));
        let part = scsi.or(nvme).or(cut)?;
        Some(disks.name_of(part.to_string()).and_then(|name| disk_of(&name)))
    };
    matching(lines, |told| {
        silent(told).is_some_and(|disk| disk.is_none_or(|disk| !failed.contains(&disk)))
    })
}

/// The kernel disables a disk that it gives up, one that was pulled out, of which the link is down, and one that is removed on
/// purpose, which is stopped just before. Source: Linux, drivers/scsi/sd.c, `sd_shutdown`; drivers/ata/libata-core.c,
/// `ata_dev_disable`.
fn pulled_disks(lines: &[Told<'_>]) -> Vec<usize> {
    /// Lines between the stop and the end of one disk.
    const NEAR: usize = 4;
    let mut found = Vec::new();
    let mut down = BTreeSet::new();
    let mut stopped_at = None;
    for (at, told) in lines.iter().enumerate() {
        let message: &str = &told.line.message;
        if message.contains("] Stopping disk") {
            stopped_at = Some(at);
        }
        let Some(port) = sata_port(message) else {
            continue;
        };
        let is_disabled = message.contains(": disable") && told.part_of(AtaTimeout).is_some();
        let was_stopped = stopped_at.is_some_and(|stop| at - stop <= NEAR);
        if message.contains("SATA link down") {
            down.insert(port);
        } else if message.contains("SATA link up") {
            down.remove(port);
        } else if is_disabled && (down.contains(port) || was_stopped) {
            found.push(at);
        }
    }
    found
}

/// Links come up again when the machine wakes.
fn around_sleep(lines: &[Told<'_>]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_asleep = false;
    let mut woke: Option<&Told<'_>> = None;
    for (at, told) in lines.iter().enumerate() {
        let message = &told.line.message;
        if is_start(message) {
            (is_asleep, woke) = (false, None);
        }
        if is_of_power(message, &FALLS_ASLEEP) {
            is_asleep = true;
        } else if is_of_power(message, &WAKES) {
            (is_asleep, woke) = (false, Some(told));
        }
        let is_waking =
            woke.is_some_and(|woke| woke.line.gap_s(&told.line).is_some_and(|gap| gap <= WAKING_S));
        let is_of_link = told.trouble.as_ref().is_some_and(|(kind, _)| {
            matches!(
                kind,
                UsbReset
                    | UsbEnumeration
                    | UsbDisconnect
                    | UsbConnect
                    | AtaLink
                    | AtaTimeout
                    | ServerSilent
            )
        });
        if is_of_link && (is_asleep || is_waking) {
            found.push(at);
        }
    }
    found
}

/// Newer kernels say "suspend entry" and "suspend exit".
const FALLS_ASLEEP: [&str; 4] =
    ["entry", "PM: Syncing filesystems", "PM: Preparing system for", "PM: Entering "];
const WAKES: [&str; 3] = [" exit", "PM: resume of devices complete", "PM: Finishing wakeup"];

fn is_of_power(message: &str, words: &[&str]) -> bool {
    message.starts_with("PM: ") && words.iter().any(|words| message.contains(words))
}

/// A connect is a return only if it follows a disconnect within seconds, and the disk was not ejected before.
fn returns_by_hand(lines: &[Told<'_>]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut left: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    let mut was_ejected = false;
    for (at, told) in lines.iter().enumerate() {
        if is_loss_of_size(&told.line.message) {
            was_ejected = true;
        }
        if let Some(port) = told.part_of(UsbDisconnect) {
            left.insert(port, (at, was_ejected));
            was_ejected = false;
        }
        if let Some(port) = told.part_of(UsbConnect) {
            was_ejected = false;
            let is_return = left.remove(port).is_some_and(|(before, was_ejected)| {
                let gap = lines[before].line.gap_s(&told.line);
                !was_ejected && gap.is_none_or(|gap| gap <= QUICK_RETURN_S)
            });
            if !is_return {
                found.push(at);
            }
        }
    }
    found
}

/// `sda: detected capacity change from 60506112 to 0`.
pub(super) fn is_loss_of_size(message: &str) -> bool {
    message.contains(": detected capacity change from ") && message.ends_with(" to 0")
}

/// A card reader without a card: the disk has no size, and says that it has no medium.
fn empty_readers(lines: &[Told<'_>], sized: &BTreeSet<&str>) -> Vec<usize> {
    let mut empty = BTreeSet::new();
    let mut found = Vec::new();
    for (at, told) in lines.iter().enumerate() {
        let message = &told.line.message;
        if message.contains("Add. Sense: ")
            && let Some(disk) = bracketed_disk(message)
        {
            if message.contains("Medium not present") && !sized.contains(disk) {
                empty.insert(disk);
            } else {
                empty.remove(disk);
            }
        }
        let disk = told.part_of(Io).and_then(disk_of);
        if disk.is_some_and(|disk| empty.contains(disk.as_str())) {
            found.push(at);
        }
    }
    found
}

fn with_size<'a>(lines: &'a [Told<'_>]) -> BTreeSet<&'a str> {
    let has_size = |message: &str| message.contains("logical blocks") && !message.contains("] 0 ");
    lines
        .iter()
        .filter(|told| has_size(&told.line.message))
        .filter_map(|told| bracketed_disk(&told.line.message))
        .collect()
}

/// `sda` of `sd 0:0:0:0: [sda] …`.
pub(super) fn bracketed_disk(message: &str) -> Option<&str> {
    message.strip_prefix("sd ")?.split_once(": [")?.1.split(']').next()
}

/// The kernel wakes a reader by a reset each time it asks for a card. Modems and the consoles of servers have readers that come and
/// go with them.
fn resets_of_empty_readers(
    lines: &[Told<'_>],
    disks: &UsbDisks,
    sized: &BTreeSet<&str>,
) -> Vec<usize> {
    let readers: BTreeSet<&str> = lines
        .iter()
        .filter(|told| told.line.message.contains("Attached SCSI removable disk"))
        .filter_map(|told| bracketed_disk(&told.line.message))
        .filter(|disk| !sized.contains(disk) && !has_partitions(lines, disk))
        .collect();
    let failed: BTreeSet<String> =
        lines.iter().filter_map(|told| told.part_of(Io).and_then(disk_of)).collect();
    matching(lines, |told| {
        let is_of_port =
            |kind| matches!(kind, UsbReset | UsbDisconnect | UsbConnect | UsbEnumeration);
        let port = told.trouble.as_ref().filter(|(kind, _)| is_of_port(*kind));
        let disk = port.and_then(|(_, port)| disks.disk_at(port));
        disk.is_some_and(|disk| readers.contains(disk) && !failed.contains(disk))
    })
}

/// Whether the log has a partition of a disk, or its list of them.
fn has_partitions(lines: &[Told<'_>], disk: &str) -> bool {
    let (first, list) = (format!("{disk}1"), format!("{disk}:"));
    lines.iter().any(|told| {
        let message: &str = &told.line.message;
        message.contains(&first) || message.trim_start().starts_with(&list)
    })
}

/// Too much current at a port matters where a disk is at it, or where a device at it went away; ports without a device report it too.
fn idle_ports(lines: &[Told<'_>], disks: &UsbDisks) -> Vec<usize> {
    let is_disturbed =
        |kind: &TroubleKind| matches!(kind, UsbDisconnect | UsbReset | UsbEnumeration);
    let used: Vec<&str> = lines
        .iter()
        .filter_map(|told| told.trouble.as_ref())
        .filter(|(kind, _)| is_disturbed(kind) || *kind == UsbDisk)
        .map(|(_, port)| port.as_str())
        .chain(disks.ports())
        .collect();
    let disturbed_disks: Vec<&str> = lines
        .iter()
        .filter_map(|told| told.trouble.as_ref())
        .filter(|(kind, port)| is_disturbed(kind) && disks.disk_at(port).is_some())
        .map(|(_, port)| port.as_str())
        .collect();
    matching(lines, |told| {
        told.part_of(OverCurrent).is_some_and(|port| {
            let is_used = used.iter().any(|other| is_at_or_below(other, port));
            let shares_hub = disturbed_disks.iter().any(|other| hub(other) == hub(port));
            !is_used && !shares_hub
        })
    })
}

fn is_at_or_below(port: &str, of: &str) -> bool {
    port.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn hub(port: &str) -> &str {
    port.rsplit_once(['.', '-']).map_or(port, |(hub, _)| hub)
}

/// Radios and graphics cards repeat transfers by the thousand; a root port counts where a disk is behind it.
fn other_functions(lines: &[Told<'_>]) -> Vec<usize> {
    let mut storage = BTreeSet::new();
    let mut bus_of_port: BTreeMap<&str, String> = BTreeMap::new();
    for told in lines {
        let message: &str = &told.line.message;
        if let Some((port, bus)) = bridge(message) {
            bus_of_port.insert(port, bus);
        } else if let Some(function) = storage_function(message) {
            storage.extend(function.rsplit_once(':').map(|(bus, _)| bus.to_string()));
        }
    }
    matching(lines, |told| {
        let is_of_pci = |kind: &TroubleKind| matches!(kind, PcieCorrected | PcieUncorrected);
        let Some((_, function)) = told.trouble.as_ref().filter(|(kind, _)| is_of_pci(kind)) else {
            return false;
        };
        let driver = told.line.message.split(' ').next().unwrap_or_default();
        let counts = match bus_of_port.get(function.as_str()) {
            _ if STORAGE_DRIVERS.contains(&driver) => true,
            Some(bus) => driver == "pcieport" && storage.contains(bus),
            // Boards have one root port, at this place; the host bridge of a PC is there.
            None => driver == "pcieport" && function.ends_with(":00:00.0"),
        };
        !counts
    })
}

const STORAGE_DRIVERS: [&str; 3] = ["nvme", "ahci", "xhci_hcd"];

/// `pci 0000:00:1c.5: PCI bridge to [bus 02-03]`.
fn bridge(message: &str) -> Option<(&str, String)> {
    let (port, bus) = message.strip_prefix("pci ")?.split_once(": PCI bridge to [bus ")?;
    let bus = bus.get(..2)?;
    let domain = port.split(':').next()?;
    Some((port, format!("{domain}:{bus}")))
}

/// The function of a disk's controller: `nvme nvme0: pci function 0000:01:00.0`, `ahci 0000:01:00.0: …`.
fn storage_function(message: &str) -> Option<&str> {
    if let Some((_, function)) = message.split_once(": pci function ") {
        return Some(function);
    }
    let (driver, rest) = message.split_once(' ')?;
    let function = rest.split(' ').next()?.trim_end_matches(':');
    (STORAGE_DRIVERS.contains(&driver) && function.matches(':').count() == 2).then_some(function)
}
