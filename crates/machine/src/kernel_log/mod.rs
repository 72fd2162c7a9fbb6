//! The kernel's log, as far as it is about storage: which trouble it tells of, and what that comes to.
//!
//! A log is taken as people have it: `dmesg` with any of its clocks, `journalctl -k`, `/var/log/kern.log`, `/dev/kmsg`. Lines that are
//! not the kernel's, and messages that no pattern knows, are passed over.

mod judge;
mod line;
mod on_machine;
mod patterns;
mod suspects;
mod usb_disks;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use rubus_vocabulary::kernel_log::{KernelTrouble, TroubleKind};

pub use judge::{Cause, Health, judge};
use line::Line;
pub use on_machine::{of_log, of_machine};
pub use suspects::{Suspect, suspects};
use usb_disks::UsbDisks;
pub use words::{Advice, BETTER_SUPPLY};

/// The trouble that a log tells of, by kind and part. USB ports that carry a disk have the disk's name, where the log tells it.
pub fn troubles(log: &str) -> Vec<KernelTrouble> {
    let lines: Vec<Told<'_>> = log.lines().filter_map(Line::of_kernel).map(Told::of).collect();
    let disks = UsbDisks::of(&lines);
    let radios: BTreeSet<String> =
        lines.iter().filter_map(|told| sdio_host(told.line.message)).collect();
    let mut found: BTreeMap<(TroubleKind, String), KernelTrouble> = BTreeMap::new();
    for Told { line, trouble } in lines {
        let Some((kind, part)) = disks.port(line.message).or(trouble) else {
            continue;
        };
        if radios.contains(&part) {
            continue;
        }
        let part = disks.disk_at(&part).map_or(part, str::to_string);
        let trouble = found.entry((kind, part.clone())).or_insert(KernelTrouble {
            kind,
            part,
            times: 0,
            first_s: line.seconds,
            last_s: line.seconds,
        });
        trouble.times = trouble.times.saturating_add(1);
        trouble.last_s = line.seconds.or(trouble.last_s);
    }
    found.into_values().collect()
}

/// The host that carries a radio instead of a card: `mmc1: new high speed SDIO card at address 0001`, `brcmfmac mmc1:0001:1: …`.
fn sdio_host(message: &str) -> Option<String> {
    let rest = if message.contains(" SDIO card at address ") {
        message
    } else {
        message.strip_prefix("brcmfmac ")?
    };
    let host = rest.split(':').next()?;
    host.starts_with("mmc").then(|| host.to_string())
}

/// A line, and what it tells of.
struct Told<'a> {
    line: Line<'a>,
    trouble: Option<(TroubleKind, String)>,
}

impl<'a> Told<'a> {
    fn of(line: Line<'a>) -> Self {
        let trouble = patterns::trouble(line.message);
        Told { line, trouble }
    }
}

/// Whether a text is a kernel's log at all.
pub fn has_messages(text: &str) -> bool {
    text.lines()
        .filter_map(Line::of_kernel)
        .any(|line| line.is_stamped() || patterns::trouble(line.message).is_some())
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod tests;
