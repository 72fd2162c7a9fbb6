//! The kernel's log, as far as it is about storage: which trouble it tells of, and what that comes to.
//!
//! A log is taken as people have it: `dmesg` with any of its clocks, `journalctl -k`, `/var/log/kern.log`, `/dev/kmsg`. Lines that are
//! not the kernel's, and messages that no pattern knows, are passed over.

mod beneath;
mod beside;
mod full;
mod harmless;
mod judge;
mod line;
mod on_machine;
mod paste;
mod patterns;
mod slots;
mod suspects;
mod usb_disks;
mod words;

use std::collections::BTreeMap;

use rubus_vocabulary::kernel_log::{KernelTrouble, TroubleKind};

use beside::beside;
use harmless::{harmless, silences_without_loss};
pub use judge::{Cause, Health, judge};
use line::{Line, is_start};
pub use on_machine::{link_errors, of_log, of_machine};
pub use paste::text;
pub use suspects::{Suspect, suspects};
use usb_disks::UsbDisks;
pub use words::{Advice, BETTER_SUPPLY};

/// The trouble that a log tells of, by kind and part. USB ports that carry a disk have the disk's name, where the log tells it.
pub fn troubles(log: &str) -> Vec<KernelTrouble> {
    let pasted = paste::lines(log);
    let lines: Vec<Told<'_>> = messages(&pasted).into_iter().map(Told::of).collect();
    let disks = UsbDisks::of(&lines);
    let controllers = nvme_controllers(&lines);
    let lost_disks = slots::lost_disks(&lines);
    let disks_beneath = beneath::lost_disks(&lines, &disks);
    let mut harmless = harmless(&lines, &disks);
    harmless.extend(beside(&lines, &disks));
    let silences = silences_without_loss(&lines, &disks, &harmless);
    harmless.extend(silences);
    let mut found: BTreeMap<(TroubleKind, String), KernelTrouble> = BTreeMap::new();
    let mut since_start: BTreeMap<(TroubleKind, String), u64> = BTreeMap::new();
    for (at, Told { line, trouble }) in lines.into_iter().enumerate() {
        if is_start(&line.message) {
            since_start.clear();
        }
        let of_slot = || lost_disks.get(&at).map(|disk| (TroubleKind::NvmeGone, disk.clone()));
        let Some((kind, part)) = disks.port(&line.message).or(trouble).or_else(of_slot) else {
            continue;
        };
        let Some(part) = disks.name_of(part).filter(|_| !harmless.contains(&at)) else {
            continue;
        };
        let part = disks_beneath.get(&at).cloned().unwrap_or(part);
        let part = controllers.get(&part).cloned().unwrap_or(part);
        let trouble = found.entry((kind, part.clone())).or_insert(KernelTrouble {
            kind,
            part,
            times: 0,
            first_s: line.seconds,
            last_s: line.seconds,
        });
        let times = since_start.entry((kind, trouble.part.clone())).or_default();
        *times = times.saturating_add(1);
        trouble.times = if is_common_at_start(kind) {
            trouble.times.max(*times)
        } else {
            trouble.times.saturating_add(1)
        };
        trouble.last_s = line.seconds.or(trouble.last_s);
    }
    found.into_values().collect()
}

/// The NVMe controllers by their functions on PCI Express: `nvme nvme0: pci function 0000:01:00.0`.
fn nvme_controllers(lines: &[Told<'_>]) -> BTreeMap<String, String> {
    let each = lines.iter().filter_map(|told| {
        let (_, named) = told.line.message.split_once("nvme ")?;
        let (name, function) = named.split_once(": pci function ")?;
        Some((function.trim().to_string(), name.to_string()))
    });
    each.collect()
}

/// Whether each start of a machine may have a little of it, so that a log over many starts has much: what counts is the worst start.
fn is_common_at_start(kind: TroubleKind) -> bool {
    matches!(
        kind,
        TroubleKind::CardTransfer
            | TroubleKind::CardStart
            | TroubleKind::CardQueue
            | TroubleKind::AtaLink
            | TroubleKind::AtaTimeout
            | TroubleKind::UsbReset
            | TroubleKind::UsbEnumeration
            | TroubleKind::UsbDisconnect
            | TroubleKind::UsbConnect
            | TroubleKind::NvmeTimeout
            | TroubleKind::PcieCorrected
    )
}

/// The shortest line that a mailer wraps, in bytes.
const MIN_WRAPPED: usize = 32;

/// The messages of a log, each whole: mailers wrap long lines, Linux 3.11 to 3.19 put what a SCSI disk said on lines of their own, and
/// libata the result of a command.
fn messages(pasted: &[String]) -> Vec<Line<'_>> {
    let lines: Vec<Line<'_>> = pasted.iter().filter_map(|line| Line::of_kernel(line)).collect();
    let stamped = lines.iter().filter(|line| line.is_stamped()).count();
    let is_wrapped = stamped < lines.len() && stamped * 3 >= lines.len();
    let mut whole: Vec<Line<'_>> = Vec::new();
    let (mut disk, mut port) = (None, None);
    for mut line in lines {
        if let Some(plain) = without_slot(&line.message) {
            line.message = plain.into();
        }
        let is_rest =
            is_wrapped && !line.is_stamped() && patterns::trouble(&line.message).is_none();
        if let Some(before) = whole.last_mut()
            && is_rest
            && before.is_stamped()
            && before.message.len() >= MIN_WRAPPED
        {
            before.message = format!("{} {}", before.message, line.message).into();
            continue;
        }
        if let Some((head, _)) = line.message.split_once(']')
            && head.contains(": [")
            && SCSI.iter().any(|start| head.starts_with(start))
        {
            disk = Some(format!("{head}] "));
        } else if SENSE.iter().any(|start| line.message.starts_with(start)) {
            let head = disk.as_deref().unwrap_or_default();
            line.message = format!("{head}{}", line.message).into();
        } else if let Some(head) = port_of_command(&line.message) {
            port = Some(head);
        } else if line.message.starts_with("res ")
            && let Some(head) = &port
        {
            line.message = format!("{head}: {}", line.message).into();
        }
        whole.push(line);
    }
    whole
}

/// `ata8.00` of `ata8.00: failed command: …`: the result of the command stands on a line of its own that does not name the port.
fn port_of_command(message: &str) -> Option<String> {
    let (port, rest) = message.split_once(": ")?;
    let is_command = rest.starts_with("cmd ") || rest.starts_with("failed command: ");
    (port.starts_with("ata") && is_command).then(|| port.to_string())
}

/// `ata2.00 (slot 4): …` as Synology's kernels name a port, without the slot.
fn without_slot(message: &str) -> Option<String> {
    let (port, rest) = message.split_once(" (slot ")?;
    let (_, rest) = rest.split_once(')')?;
    let is_port = port.starts_with("ata") && !port.contains(' ');
    is_port.then(|| format!("{port}{rest}"))
}

/// Disks, optical drives and tapes: what they say is of the device that was named last.
const SCSI: [&str; 3] = ["sd ", "sr ", "st "];
const SENSE: [&str; 3] = ["Sense Key", "Add. Sense", "Result: "];

/// A line, and what it tells of.
struct Told<'a> {
    line: Line<'a>,
    trouble: Option<(TroubleKind, String)>,
}

impl<'a> Told<'a> {
    fn of(line: Line<'a>) -> Self {
        let trouble = patterns::trouble(&line.message);
        Told { line, trouble }
    }

    /// The part, if it tells of trouble of this kind.
    fn part_of(&self, kind: TroubleKind) -> Option<&str> {
        let (told, part) = self.trouble.as_ref()?;
        (*told == kind).then_some(part)
    }
}

/// Whether a text is a kernel's log at all.
pub fn has_messages(text: &str) -> bool {
    let pasted = paste::lines(text);
    messages(&pasted).iter().any(|line| {
        line.is_stamped() || is_kernels(&line.message) || patterns::trouble(&line.message).is_some()
    })
}

/// Whether a message begins as the kernel's of storage do: `ata1.00: `, `sd 0:0:0:0: `, `EXT4-fs (`.
fn is_kernels(message: &str) -> bool {
    const STARTS: &[&str] = &[
        "ata",
        "mmc",
        "mmcblk",
        "usb ",
        "hub ",
        "sd ",
        "scsi host",
        "nvme",
        "md: ",
        "md/raid",
        "EXT4-fs ",
        "XFS (",
        "F2FS-fs (",
        "BTRFS ",
        "FAT-fs (",
        "pcieport ",
        "xhci_hcd ",
    ];
    let begins = |start: &&str| message.strip_prefix(*start);
    STARTS.iter().filter_map(begins).any(|rest| {
        let word = rest.split(' ').next().unwrap_or_default();
        word.contains(|letter: char| letter.is_ascii_digit()) && rest.contains(':')
            || word.starts_with('(')
    })
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod foreign_cases;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod fresh_cases;
#[cfg(test)]
mod further_cases;
#[cfg(test)]
mod reported_cases;
#[cfg(test)]
mod searched_cases;
#[cfg(test)]
mod tests;
