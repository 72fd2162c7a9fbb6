//! Lines about what is no disk's fault: commands that a bridge refused, media that were pulled out or are locked, slots and ports
//! that never had a disk, other devices on USB.

use std::collections::{BTreeMap, BTreeSet};

use rubus_vocabulary::kernel_log::TroubleKind::{self, *};

use super::Told;
use super::full::{full_filesystems, full_pools};
use super::harmless::{bracketed_disk, is_loss_of_size, matching};
use super::judge::disk_of;
use super::line::is_start;
use super::usb_disks::UsbDisks;

/// How far behind a sense line the command that it answers may be logged, in lines.
const MAX_TO_COMMAND: usize = 8;
/// Places that an array mended before its member is more than used to it.
const MANY_MENDED: usize = 3;

/// Writes that a SATA disk refused before it is broken.
const MANY_REFUSED: usize = 3;
/// Reports of too much current at ports without a disk before the supply is suspect.
const MANY_CURRENTS: usize = 3;
/// Failed tries to address a USB disk while it spins up.
const MAX_SLOW_TRIES: usize = 3;

/// The numbers of the lines that are no disk's fault.
pub(super) fn beside(lines: &[Told<'_>], disks: &UsbDisks) -> BTreeSet<usize> {
    [
        refused_commands(lines),
        removed_cards(lines),
        explained_removals(lines),
        replaced_cards(lines),
        slow_cards(lines),
        empty_sockets(lines),
        ports_without_a_disk(lines),
        pulled_media(lines),
        pulled_sticks(lines, disks),
        locked_media(lines),
        health_queries(lines),
        network_disks(lines),
        ended_with_the_disk(lines),
        before_the_scan(lines),
        full_filesystems(lines),
        full_pools(lines),
        shut_down_on_purpose(lines),
        mended_by_arrays(lines),
        other_usb_devices(lines, disks),
        currents_of_others(lines, disks),
        refused_queries(lines),
        slow_usb_disks(lines, disks),
        other_members(lines),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `sd 5:0:0:0:` of `sd 5:0:0:0: [sdb] …`.
fn scsi_address(message: &str) -> Option<&str> {
    let end = message.strip_prefix("sd ")?.find(": ")?;
    message.get(..end + 4)
}

/// A bridge that does not know a command for the disk's own report (`hdparm`, SMART) may answer with a hardware error that says
/// nothing more.
fn refused_commands(lines: &[Told<'_>]) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, told) in lines.iter().enumerate() {
        let Some(address) = scsi_address(&told.line.message) else {
            continue;
        };
        if told.part_of(Hardware).is_none() {
            continue;
        }
        let next = lines.iter().skip(at + 1).take(MAX_TO_COMMAND);
        let its = next
            .filter(|next| scsi_address(&next.line.message) == Some(address))
            .take_while(|next| !next.line.message.contains("Sense Key"));
        let mut says_more = false;
        for next in its {
            let message: &str = &next.line.message;
            says_more |= has_reason(message);
            if message.contains("CDB: ") {
                if is_pass_through(message) && !says_more {
                    found.push(at);
                }
                break;
            }
        }
    }
    found
}

/// Whether a sense line has an additional code.
fn has_reason(message: &str) -> bool {
    if let Some((_, words)) = message.split_once("Add. Sense: ") {
        return !words.starts_with("No additional sense");
    }
    message.contains("ASC=0x") && !message.contains("ASC=0x0 ")
}

/// `CDB: ATA command pass through(16) 85 …`, `CDB: opcode=0x85 85 …`.
fn is_pass_through(message: &str) -> bool {
    const FORMS: [&str; 5] =
        ["CDB: ATA command pass through", "opcode=0x85", "opcode=0xa1", "CDB: 85 ", "CDB: a1 "];
    FORMS.iter().any(|form| message.contains(form))
}

/// The disk of a host of cards that has lost its card or found one: `mmc1: card 0002 removed`, `mmc1: new … card at address 0002`.
fn card_change(message: &str) -> Option<(String, bool)> {
    let (host, rest) = message.split_once(": ")?;
    let is_host = host.strip_prefix("mmc")?.bytes().all(|byte| byte.is_ascii_digit());
    let is_removed = rest.starts_with("card ") && rest.ends_with(" removed");
    let is_new = rest.starts_with("new ") && rest.contains(" card at address ");
    let disk = disk_of(host).filter(|_| is_host && (is_removed || is_new))?;
    Some((disk, is_new))
}

/// Reads that fail on a card that was pulled out are not the card's. One that lost writes was in use, and one that is back in the log
/// was not pulled by hand.
fn removed_cards(lines: &[Told<'_>]) -> Vec<usize> {
    let mut removed: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, told) in lines.iter().enumerate() {
        if let Some((disk, is_new)) = card_change(&told.line.message) {
            removed.remove(&disk);
            if !is_new {
                removed.insert(disk, Vec::new());
            }
        } else if let Some((_, part)) = &told.trouble
            && let Some(failed) = disk_of(part).and_then(|disk| removed.get_mut(&disk))
        {
            failed.push(at);
        }
    }
    let is_peaceful = |failed: &Vec<usize>| !failed.iter().any(|at| is_loss(&lines[*at]));
    removed.into_values().filter(is_peaceful).flatten().collect()
}

/// Whether a line is about data that were to be written.
fn is_loss(told: &Told<'_>) -> bool {
    told.part_of(Filesystem).is_some()
        || told.part_of(FilesystemReadOnly).is_some()
        || ["(WRITE)", "lost "].iter().any(|words| told.line.message.contains(words))
}

/// A card lost contact where it had no errors before it was gone, and lost writes after. Else it was pulled out in peace, or the
/// kernel gave it up.
fn explained_removals(lines: &[Told<'_>]) -> Vec<usize> {
    let removals = matching(lines, |told| told.part_of(CardGone).is_some());
    let is_explained = |at: &usize| {
        let disk = lines[*at].part_of(CardGone).and_then(disk_of);
        let is_its =
            |told: &Told<'_>| told.trouble.as_ref().is_some_and(|(_, part)| disk_of(part) == disk);
        let is_error = |told: &Told<'_>| {
            told.trouble.as_ref().is_some_and(|(kind, _)| {
                matches!(kind, CardTransfer | CardQueue | CardReadOnly | Medium | Io)
            })
        };
        let goes_on = |told: &&Told<'_>| !is_start(&told.line.message);
        let mut before = lines[..*at].iter().rev().take_while(goes_on);
        let mut after = lines[*at + 1..].iter().take_while(goes_on);
        before.any(|told| is_its(told) && is_error(told))
            || !after.any(|told| is_its(told) && is_loss(told))
    };
    removals.into_iter().filter(is_explained).collect()
}

/// `mmcblk0`, `SL16G 14.8 GiB` of `mmcblk0: mmc0:aaaa SL16G 14.8 GiB`.
fn card_identity(message: &str) -> Option<(&str, &str)> {
    let (disk, rest) = message.split_once(": mmc")?;
    disk.strip_prefix("mmcblk")?.parse::<u32>().ok()?;
    let (_, card) = rest.split_once(' ')?;
    card.ends_with('B').then_some((disk, card))
}

/// A log over several starts may have the errors of a card that was replaced since.
fn replaced_cards(lines: &[Told<'_>]) -> Vec<usize> {
    let Some(start) = lines.iter().rposition(|told| is_start(&told.line.message)) else {
        return Vec::new();
    };
    let cards = |lines: &[Told<'_>]| -> BTreeMap<String, String> {
        let told = lines.iter().filter_map(|told| card_identity(&told.line.message));
        told.map(|(disk, card)| (disk.to_string(), card.to_string())).collect()
    };
    let (before, now) = (cards(&lines[..start]), cards(&lines[start..]));
    let is_replaced = |disk: &str| {
        before.get(disk).is_some_and(|old| {
            now.get(disk).is_some_and(|new| new != old) && now.values().all(|card| card != old)
        })
    };
    matching(&lines[..start], |told| {
        let disk = told.trouble.as_ref().and_then(|(_, part)| disk_of(part));
        disk.is_some_and(|disk| is_replaced(&disk))
    })
}

/// A card that came up after some tries is up: the tries before count for nothing.
fn slow_cards(lines: &[Told<'_>]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut was_up = BTreeSet::new();
    let mut tries: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, told) in lines.iter().enumerate() {
        if is_start(&told.line.message) {
            was_up.clear();
            tries.clear();
        } else if let Some((disk, true)) = card_change(&told.line.message) {
            found.extend(tries.remove(&disk).unwrap_or_default());
            was_up.insert(disk);
        } else if let Some(disk) = told.part_of(CardStart).and_then(disk_of)
            && !was_up.contains(&disk)
        {
            tries.entry(disk).or_default().push(at);
        }
    }
    found
}

/// A socket for an eMMC module is asked again and again, and times out while there is none.
fn empty_sockets(lines: &[Told<'_>]) -> Vec<usize> {
    let is_asked =
        |told: &Told<'_>| told.line.message.contains("error -110 whilst initialising MMC card");
    let answers = |told: &Told<'_>| -> Option<String> {
        let message: &str = &told.line.message;
        if message.contains("mmcblk") {
            return card_identity(message).map(|(disk, _)| disk.to_string());
        }
        card_change(message).map(|(disk, _)| disk).or_else(|| {
            let (_, part) = told.trouble.as_ref().filter(|_| !is_asked(told))?;
            disk_of(part)
        })
    };
    let cards: BTreeSet<String> = lines.iter().filter_map(answers).collect();
    matching(lines, |told| {
        let disk = told.part_of(CardStart).and_then(disk_of);
        is_asked(told) && disk.is_some_and(|disk| !cards.contains(&disk))
    })
}

/// A SATA port, or one behind a port multiplier, whose link never came up has no disk.
fn ports_without_a_disk(lines: &[Told<'_>]) -> Vec<usize> {
    let mut down = BTreeSet::new();
    let mut used = BTreeSet::new();
    let is_of_start = |message: &str| {
        ["COMRESET failed", "limiting SATA link speed", "found unknown device (class"]
            .iter()
            .any(|words| message.contains(words))
    };
    for told in lines {
        let message: &str = &told.line.message;
        let Some(port) = message.split(':').next().filter(|port| port.starts_with("ata")) else {
            continue;
        };
        let is_disk = told.trouble.is_some() && !is_of_start(message)
            || [": ATA-", "SATA link up", "configured for", "failed command", "disable"]
                .iter()
                .any(|words| message.contains(words));
        if is_disk {
            used.insert(port.trim_end_matches(".00"));
        } else if message.contains("SATA link down") {
            down.insert(port);
        }
    }
    matching(lines, |told| {
        let message: &str = &told.line.message;
        let port = message.split(':').next().unwrap_or_default();
        told.part_of(AtaLink).is_some()
            && is_of_start(message)
            && down.contains(port)
            && !used.contains(port)
    })
}

fn removable_disks<'a>(lines: &'a [Told<'_>]) -> BTreeSet<&'a str> {
    let attached =
        lines.iter().filter(|told| told.line.message.contains("Attached SCSI removable disk"));
    attached.filter_map(|told| bracketed_disk(&told.line.message)).collect()
}

/// A card that was pulled out of a reader: the disk has no medium any more, and then no size.
fn pulled_media(lines: &[Told<'_>]) -> Vec<usize> {
    let removable = removable_disks(lines);
    let lost_size = |told: &Told<'_>, disk: &str| {
        let message: &str = &told.line.message;
        is_loss_of_size(message)
            && (message.starts_with(disk) || bracketed_disk(message) == Some(disk))
    };
    let mut found = Vec::new();
    let mut empty: BTreeSet<&str> = BTreeSet::new();
    for (at, told) in lines.iter().enumerate() {
        let message: &str = &told.line.message;
        if let Some(disk) = bracketed_disk(message) {
            if message.contains("Add. Sense: Medium not present")
                && removable.contains(disk)
                && lines[at..].iter().any(|later| lost_size(later, disk))
            {
                empty.insert(disk);
            } else if message.contains("logical blocks") {
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

/// A stick with FAT that was pulled out without being ejected: what fails is the mark that it was mounted, or what was still to be
/// written to a device that is gone. Neither tells of a fault.
fn pulled_sticks(lines: &[Told<'_>], disks: &UsbDisks) -> Vec<usize> {
    let removable = removable_disks(lines);
    let mut found = Vec::new();
    for (left, told) in lines.iter().enumerate() {
        let Some(disk) = told.part_of(UsbDisconnect).and_then(|port| disks.disk_at(port)) else {
            continue;
        };
        let failed_before = lines[..left].iter().any(|told| {
            told.trouble.as_ref().is_some_and(|(kind, part)| {
                !matches!(kind, UsbConnect | UsbDisk | UsbDisconnect)
                    && (disk_of(part).as_deref() == Some(disk) || disks.disk_at(part) == Some(disk))
            })
        });
        let is_its_mark = |told: &Told<'_>| {
            let message: &str = &told.line.message;
            message.contains("unable to read boot sector to mark fs as dirty")
                && message.contains(disk)
        };
        let returned = lines[left + 1..].iter().any(|told| told.part_of(UsbConnect).is_some());
        if !removable.contains(disk)
            || failed_before
            || returned
            || !lines[left..].iter().any(is_its_mark)
        {
            continue;
        }
        found.extend(
            (left + 1..lines.len())
                .filter(|at| lines[*at].part_of(Io).and_then(disk_of).as_deref() == Some(disk)),
        );
    }
    found
}

/// What a disk answers that is locked with a password.
const NEEDS_A_PASSWORD: [&str; 2] =
    ["Add. Sense: Logical unit access not authorized", "ASC=0x74 ASCQ=0x71"];

/// What a disk that has several paths answers on the ones that wait.
const IS_PASSIVE: &str = "Logical unit not ready, manual intervention required";
/// What the kernel says where disks have several paths.
const OF_PATHS: [&str; 4] = [": rdac: ", ": alua: ", ": emc: ", "device-mapper: multipath"];

/// A medium whose lock was on when it was found refuses writes, one with a password all, and a path that waits all.
fn locked_media(lines: &[Told<'_>]) -> Vec<usize> {
    let has_paths =
        lines.iter().any(|told| OF_PATHS.iter().any(|words| told.line.message.contains(words)));
    let mut found = Vec::new();
    let mut locked: BTreeSet<&str> = BTreeSet::new();
    let mut refused: BTreeSet<&str> = BTreeSet::new();
    for (at, told) in lines.iter().enumerate() {
        let message: &str = &told.line.message;
        if let Some(disk) = bracketed_disk(message) {
            if message.ends_with("Write Protect is on") {
                locked.insert(disk);
            } else if message.ends_with("Write Protect is off") {
                locked.remove(disk);
            } else if message.contains("Sense Key") {
                refused.remove(disk);
                if message.contains("Data Protect") && locked.contains(disk) {
                    refused.insert(disk);
                }
            } else if NEEDS_A_PASSWORD.iter().any(|words| message.contains(words))
                || (has_paths && message.contains(IS_PASSIVE))
            {
                refused.insert(disk);
            }
        }
        let disk = told.part_of(Io).and_then(disk_of);
        if disk.is_some_and(|disk| refused.contains(disk.as_str())) {
            found.push(at);
        }
    }
    found
}

/// Commands without data: a disk that sleeps may answer them too late.
const WITHOUT_DATA: [&str; 8] = [
    "SMART",
    "CHECK POWER MODE",
    "STANDBY IMMEDIATE",
    "STANDBY",
    "IDLE IMMEDIATE",
    "IDLE",
    "SLEEP",
    "IDENTIFY DEVICE",
];

/// A disk that sleeps may answer a question for its health too late; no data is in it.
fn health_queries(lines: &[Told<'_>]) -> Vec<usize> {
    let port = |message: &str| message.split([':', '.']).next().map(str::to_string);
    let is_query = |at: usize| {
        let mut next = lines.iter().skip(at + 1).take(MAX_TO_COMMAND);
        let own = port(&lines[at].line.message);
        let command = next.find(|next| {
            next.line.message.contains("failed command: ") && port(&next.line.message) == own
        });
        let name = command
            .and_then(|told| told.line.message.split_once("failed command: "))
            .map(|(_, name)| name.trim());
        name.is_some_and(|name| WITHOUT_DATA.contains(&name))
    };
    let failed =
        matching(lines, |told| told.part_of(AtaTimeout).is_some() || is_broken_protocol(told));
    failed.into_iter().filter(|at| is_query(*at)).collect()
}

/// What libata calls an HSM violation: old disks answer questions for their health so.
fn is_broken_protocol(told: &Told<'_>) -> bool {
    let has = |words: &str| told.line.message.contains(words);
    told.part_of(AtaLink).is_some() && (has("exception Emask 0x2 ") || has("exception Emask 0x3 "))
}

/// How messages of a host begin whose iSCSI session ended, and its disk: the kernel then rejects what waits for it.
/// Source: Linux, drivers/scsi/scsi_transport_iscsi.c, `session_recovery_timedout`.
fn ended_sessions(lines: &[Told<'_>]) -> Vec<(String, String)> {
    let ended = lines.windows(3).filter_map(|next| {
        let [ended, rejected, failed] = next else {
            return None;
        };
        let (host, reason) = rejected.line.message.split_once(':')?;
        let is_end = ended.line.message.contains(": session recovery timed out after ")
            && host.starts_with("sd ")
            && reason.ends_with("rejecting I/O to offline device");
        let disk = failed.part_of(Io).and_then(disk_of).filter(|_| is_end)?;
        Some((format!("{host}:"), disk))
    });
    ended.collect()
}

/// Reads of a disk on iSCSI or on NVMe over a network fail with its server or the network.
fn network_disks(lines: &[Told<'_>]) -> Vec<usize> {
    let host = |message: &str| {
        let (host, driver) = message.strip_prefix("scsi")?.split_once(':')?;
        let host = host.trim_start_matches(" host").trim();
        driver.contains("iSCSI Initiator").then(|| format!("sd {host}:"))
    };
    let ended = ended_sessions(lines);
    let mut hosts: BTreeSet<String> =
        lines.iter().filter_map(|told| host(&told.line.message)).collect();
    hosts.extend(ended.iter().map(|(host, _)| host.clone()));
    let is_theirs = |message: &&str| hosts.iter().any(|host| message.starts_with(host));
    let messages = lines.iter().map(|told| &*told.line.message);
    // `nvme nvme1: new ctrl: NQN "nqn.2014-08.org.example:a", addr 192.0.2.1:4420`.
    let controller = |told: &Told<'_>| -> Option<String> {
        let (name, _) = told.line.message.strip_prefix("nvme ")?.split_once(": new ctrl: ")?;
        told.line.message.contains(", addr ").then(|| name.to_string())
    };
    let controllers: Vec<String> = lines.iter().filter_map(controller).collect();
    let mut disks: BTreeSet<&str> = messages.filter(is_theirs).filter_map(bracketed_disk).collect();
    disks.extend(controllers.iter().map(String::as_str));
    disks.extend(ended.iter().map(|(_, disk)| disk.as_str()));
    // A name that a disk of this machine had too excuses nothing.
    let others = lines.iter().map(|told| &*told.line.message).filter(|message| !is_theirs(message));
    let own: BTreeSet<&str> = others.filter_map(bracketed_disk).collect();
    disks.retain(|disk| !own.contains(disk));
    matching(lines, |told| {
        let is_meant = |kind: &TroubleKind| matches!(kind, Io | NvmeTimeout | NvmeGone);
        let trouble = told.trouble.as_ref().filter(|(kind, _)| is_meant(kind));
        let disk = trouble.and_then(|(_, part)| disk_of(part));
        disk.is_some_and(|disk| disks.contains(disk.as_str()))
    })
}

/// What UAS had not ended when the disk was unplugged is no command that it gave up.
fn ended_with_the_disk(lines: &[Told<'_>]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_reset = false;
    for (at, told) in lines.iter().enumerate() {
        let message: &str = &told.line.message;
        if message.contains("uas_eh_device_reset_handler start") {
            is_reset = true;
        } else if told.part_of(UsbDisconnect).is_some() {
            is_reset = false;
        } else if message.contains("uas_zap_pending") && !is_reset {
            found.push(at);
        }
    }
    found
}

/// `BTRFS error (device sdb): failed to read the system array: -2`: a filesystem on several disks that was mounted before all of them
/// were found, and then again.
fn before_the_scan(lines: &[Told<'_>]) -> Vec<usize> {
    let lacks = |told: &Told<'_>, part: &str| {
        let message: &str = &told.line.message;
        message.contains("devid ") && message.ends_with(" is missing") && message.contains(part)
    };
    let is_early = |at: &usize| {
        let part = lines[*at].part_of(Filesystem).unwrap_or_default();
        let mounted = format!("BTRFS info (device {part}");
        let (before, after) = (&lines[..*at], &lines[at + 1..]);
        lines[*at].line.message.contains("failed to read")
            && before.iter().rev().take(MAX_TO_COMMAND).any(|told| lacks(told, part))
            && after.iter().any(|told| told.line.message.starts_with(&mounted))
            && !after.iter().any(|told| lacks(told, part))
    };
    let errors = matching(lines, |told| told.part_of(Filesystem).is_some());
    errors.into_iter().filter(is_early).collect()
}

/// A disk refuses commands that it does not know; one that refuses to write again and again is broken.
fn refused_queries(lines: &[Told<'_>]) -> Vec<usize> {
    let refusals = matching(lines, |told| {
        told.part_of(Hardware).is_some() && told.line.message.ends_with("error: { ABRT }")
    });
    let is_write = |at: &usize| {
        let part = lines[*at].part_of(Hardware).unwrap_or_default();
        let head = format!("{part}.");
        let before = lines[..*at].iter().rev().take(MAX_TO_COMMAND);
        let mut its = before.map(|told| &told.line.message).filter(|line| line.starts_with(&head));
        its.find(|message| message.contains("failed command: "))
            .is_some_and(|message| message.contains("failed command: WRITE"))
    };
    let mut writes: BTreeMap<&str, usize> = BTreeMap::new();
    for at in refusals.iter().filter(|at| is_write(at)) {
        *writes.entry(lines[*at].part_of(Hardware).unwrap_or_default()).or_default() += 1;
    }
    let is_many = |at: &usize| {
        let part = lines[*at].part_of(Hardware).unwrap_or_default();
        writes.get(part).is_some_and(|times| *times >= MANY_REFUSED)
    };
    refusals.into_iter().filter(|at| !is_write(at) || !is_many(at)).collect()
}

/// A disk that spins up does not take its address at once, and then does.
fn slow_usb_disks(lines: &[Told<'_>], disks: &UsbDisks) -> Vec<usize> {
    let mut found = Vec::new();
    let mut was_found = BTreeSet::new();
    let mut tries: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, told) in lines.iter().enumerate() {
        let its_port = told.part_of(UsbDisk).map(str::to_string);
        let its_port = its_port.or_else(|| disks.port(&told.line.message).map(|(_, port)| port));
        if is_start(&told.line.message) {
            was_found.clear();
            tries.clear();
        } else if let Some(port) = its_port {
            let before = tries.remove(&port).unwrap_or_default();
            if before.len() <= MAX_SLOW_TRIES && was_found.insert(port) {
                found.extend(before);
            }
        } else if let Some(port) = told.part_of(UsbEnumeration) {
            tries.entry(port.to_string()).or_default().push(at);
        }
    }
    found
}

/// `BTRFS error (device sda1): error writing primary super block to device 2`: another member than the named one, where the log
/// names it.
fn other_members(lines: &[Told<'_>]) -> Vec<usize> {
    let is_named = |told: &Told<'_>| {
        let message: &str = &told.line.message;
        message.starts_with("BTRFS") && message.contains(": bdev /dev/")
    };
    let has_names = lines.iter().any(is_named);
    matching(lines, |told| {
        let message: &str = &told.line.message;
        let number = message.split_once("super block to device ").map(|(_, rest)| rest);
        has_names && number.is_some_and(|rest| !rest.starts_with('1'))
    })
}

/// `(sda1)` of `XFS (sda1): …`.
fn xfs_part(message: &str) -> Option<&str> {
    message.strip_prefix("XFS ")?.split(':').next()
}

/// What XFS cannot write after a user shut it down is no damage, until it is mounted again.
fn shut_down_on_purpose(lines: &[Told<'_>]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_down = BTreeSet::new();
    for (at, told) in lines.iter().enumerate() {
        let message: &str = &told.line.message;
        let Some(part) = xfs_part(message) else {
            continue;
        };
        if message.contains("User initiated shutdown") {
            is_down.insert(part);
        } else if message.contains(": Mounting ") {
            is_down.remove(part);
        } else if told.trouble.is_some() && is_down.contains(part) {
            found.push(at);
        }
    }
    found
}

/// An array writes a place again that it could not read; a few of them are common.
fn mended_by_arrays(lines: &[Told<'_>]) -> Vec<usize> {
    let is_mended = |told: &Told<'_>| told.line.message.contains(": read error corrected (");
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for told in lines {
        if let Some(part) = told.part_of(Medium) {
            *times.entry(part).or_default() += if is_mended(told) { 1 } else { MANY_MENDED };
        }
    }
    matching(lines, |told| {
        let part = told.part_of(Medium).filter(|_| is_mended(told));
        part.is_some_and(|part| times.get(part).is_none_or(|times| *times < MANY_MENDED))
    })
}

/// The ports with a disk.
fn ports_with_disk<'a>(lines: &'a [Told<'_>], disks: &'a UsbDisks) -> BTreeSet<&'a str> {
    lines.iter().filter_map(|told| told.part_of(UsbDisk)).chain(disks.ports()).collect()
}

/// The ports of keyboards, radios and serial adapters.
fn ports_of_others(lines: &[Told<'_>], with_disk: &BTreeSet<&str>) -> BTreeSet<String> {
    lines
        .iter()
        .filter_map(|told| other_device(&told.line.message))
        .filter(|port| !with_disk.contains(port.as_str()))
        .collect()
}

/// A mouse or a radio that takes too much current at its port once, as a spark makes it, is no matter of the disks.
fn currents_of_others(lines: &[Told<'_>], disks: &UsbDisks) -> Vec<usize> {
    let others = ports_of_others(lines, &ports_with_disk(lines, disks));
    let its =
        matching(lines, |told| told.part_of(OverCurrent).is_some_and(|port| others.contains(port)));
    if its.len() < MANY_CURRENTS { its } else { Vec::new() }
}

/// Keyboards, radios and serial adapters come and go on ports of their own.
fn other_usb_devices(lines: &[Told<'_>], disks: &UsbDisks) -> Vec<usize> {
    let with_disk = ports_with_disk(lines, disks);
    let others = ports_of_others(lines, &with_disk);
    // Where the log has how each failing disk was found, and none is on USB, no port of USB is theirs.
    let failing: BTreeSet<String> = lines
        .iter()
        .filter_map(|told| told.trouble.as_ref())
        .filter(|(kind, _)| matches!(kind, Io | Filesystem | FilesystemReadOnly))
        .filter_map(|(_, part)| disk_of(part).filter(|disk| disk.starts_with("sd")))
        .collect();
    let are_elsewhere = !failing.is_empty() && failing.iter().all(|disk| disks.is_elsewhere(disk));
    matching(lines, |told| {
        told.trouble.as_ref().is_some_and(|(kind, port)| match kind {
            UsbReset | UsbEnumeration | UsbDisconnect | UsbConnect => {
                !with_disk.contains(port.as_str()) && (are_elsewhere || others.contains(port))
            }
            UsbController => with_disk.is_empty() && are_elsewhere,
            _ => false,
        })
    })
}

/// The port of a device that is no disk: too slow for one, or with a driver of another kind.
fn other_device(message: &str) -> Option<String> {
    const OF_DISKS: [&str; 3] = ["usb-storage", "uas", "hub"];
    if message.starts_with("usb ") {
        let has = |words: &[&str]| words.iter().any(|words| message.contains(words));
        // An old controller is slow for disks too.
        let is_slow = has(&["low-speed", "low speed"])
            || has(&["full-speed", "full speed"]) && !has(&["uhci_hcd", "ohci"]);
        return is_slow.then(|| message.split(' ').nth(1))?.map(|port| port.replace(':', ""));
    }
    let (driver, rest) = message.split_once(' ')?;
    let (port, interface) = rest.split_once(':')?;
    let is_port = port.contains('-')
        && port.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'.');
    let is_interface = interface.starts_with(|first: char| first.is_ascii_digit());
    (is_port && is_interface && !OF_DISKS.contains(&driver)).then(|| port.to_string())
}
