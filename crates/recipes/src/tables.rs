//! The tables of a system that name disks: which of their lines are about one whose content will be lost.

use std::path::Path;

use super::mounting::FSTAB;
use super::{PlanBuilder, PlanInput};
use rubus_boot::crypttab::Crypttab;
use rubus_boot::fstab::{Entry, Fstab};
use rubus_boot::volume::{Name, NamedVolume};
use rubus_vocabulary::machine::{BlockDevice, Machine};

pub(super) const CRYPTTAB: &str = "/etc/crypttab";
/// Contents of a partition that other volumes stand on.
const CONTAINERS: [&str; 4] = ["LVM2_member", "linux_raid_member", "crypto_LUKS", "bcache"];
/// A serial number that is shorter may be a part of another name.
const MIN_SERIAL_BYTES: usize = 6;

/// What to look at.
pub(super) fn paths() -> [&'static str; 2] {
    [FSTAB, CRYPTTAB]
}

/// Checks that no table names a device or a part of it whose content will be lost: a start waits for what is gone.
/// Lines that the plan replaces are none of them.
pub(super) fn check(
    device: &str,
    is_replaced: &dyn Fn(&Entry) -> bool,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) {
    let about = About::new(device, situation);
    let mounts = about.mounts();
    let mounts = mounts.iter().filter(|entry| !is_replaced(entry));
    let mut words: Vec<String> =
        mounts.map(|entry| format!("{} at {}", entry.source, entry.target)).collect();
    words.extend(about.ciphers());
    draft.check(
        &format!("{FSTAB} and {CRYPTTAB} do not mention what is on /dev/{device}"),
        words.is_empty(),
        if words.is_empty() { "no line is about it".into() } else { words.join(", ") },
        "take these lines out: what they name will be gone, and each start would wait for it, or end in the emergency \
         shell",
    );
}

/// The lines about a device.
pub(super) struct About<'a> {
    situation: &'a PlanInput<'a>,
    device: &'a str,
    volumes: Vec<NamedVolume>,
}

impl<'a> About<'a> {
    /// Of a disk or a partition, by the kernel's name.
    pub(super) fn new(device: &'a str, situation: &'a PlanInput<'a>) -> Self {
        About { situation, device, volumes: NamedVolume::all_of(situation.machine) }
    }

    /// Lines of fstab.
    pub(super) fn mounts(&self) -> Vec<Entry> {
        let mut entries = Fstab::parse(self.situation.text(Path::new(FSTAB))).entries();
        entries.retain(|entry| self.is_about(entry));
        entries
    }

    /// Lines of crypttab, in words.
    fn ciphers(&self) -> Vec<String> {
        let table = Crypttab::parse(self.situation.text(Path::new(CRYPTTAB)));
        let entries = table.entries().into_iter();
        let about = entries.filter(|entry| self.names_it(&entry.volume()));
        about
            .map(|entry| {
                let waits =
                    if entry.is_waited_for() { " (each start waits 90 s for it)" } else { "" };
                format!("{} as {} in {CRYPTTAB}{waits}", entry.source, entry.path())
            })
            .collect()
    }

    /// Whether a line of fstab is about it.
    pub(super) fn is_about(&self, entry: &Entry) -> bool {
        let name = Name::of(entry);
        self.names_it(&name) || self.is_opened_from_it(&name) || self.may_stand_on_it(&name)
    }

    /// Whether all that has this name is on the device. What is elsewhere too is found there afterwards.
    fn names_it(&self, name: &Name) -> bool {
        let found = name.resolve(&self.volumes);
        let is_on = |volume: &&NamedVolume| {
            let own = volume.path.strip_prefix("/dev/").unwrap_or_default();
            stands_on(self.situation.machine, own, self.device)
        };
        if found.is_empty() {
            return self.has_serial(name);
        }
        // Members of one btrfs have one identifier, and it needs them all.
        let is_btrfs = found.iter().all(|volume| volume.filesystem.as_deref() == Some("btrfs"));
        if is_btrfs { found.iter().any(is_on) } else { found.iter().all(is_on) }
    }

    /// Whether it is a link of udev with the disk's serial number in its name.
    fn has_serial(&self, name: &Name) -> bool {
        let Name::Path(path) = name else { return false };
        let machine = self.situation.machine;
        let device = machine.device(self.device);
        let disk = device.and_then(|device| device.parent.as_deref()).unwrap_or(self.device);
        let serial = machine.device(disk).and_then(|disk| disk.serial.text());
        let Some(serial) = serial.filter(|serial| serial.len() >= MIN_SERIAL_BYTES) else {
            return false;
        };
        // udev writes an underscore for what is no plain character.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "#+-.:=@_".contains(c);
        let serial: String = serial.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let Some(link) = path.strip_prefix("/dev/disk/by-id/") else { return false };
        let part = match device.and_then(|device| device.parent.as_ref()) {
            None => String::new(),
            Some(_) => {
                let number = self.device.trim_start_matches(|c: char| !c.is_ascii_digit());
                format!("-part{}", number.rsplit('p').next().unwrap_or_default())
            }
        };
        link.contains(&serial) && link.ends_with(&part)
    }

    /// Whether crypttab opens it from the device.
    fn is_opened_from_it(&self, name: &Name) -> bool {
        let Name::Path(path) = name else { return false };
        let table = Crypttab::parse(self.situation.text(Path::new(CRYPTTAB)));
        let mut entries = table.entries().into_iter();
        entries.any(|entry| entry.path() == *path && self.names_it(&entry.volume()))
    }

    /// Whether it is a volume of LVM, an array or a cipher that is not there now, while the device holds a part of one.
    fn may_stand_on_it(&self, name: &Name) -> bool {
        let Name::Path(path) = name else { return false };
        let own = path.strip_prefix("/dev/").unwrap_or_default();
        let is_stacked = own.contains('/') && !own.starts_with("disk/") || own.starts_with("md");
        let is_container = |device: &&BlockDevice| {
            let content = device.content.text().unwrap_or_default();
            CONTAINERS.contains(&content)
                && stands_on(self.situation.machine, &device.name, self.device)
        };
        is_stacked
            && name.resolve(&self.volumes).is_empty()
            && self.situation.machine.block_devices.iter().any(|device| is_container(&device))
    }
}

/// Whether a device is another one, or a part of it, or stands on it.
fn stands_on(machine: &Machine, device: &str, other: &str) -> bool {
    let Some(found) = machine.device(device).filter(|_| device != other) else {
        return device == other;
    };
    let parent = found.parent.iter();
    // No chain of devices is longer, and a damaged capture may have a circle.
    const MAX_DEPTH: usize = 8;
    let mut under: Vec<&String> = parent.chain(&found.below).collect();
    for _ in 0..MAX_DEPTH {
        if under.iter().any(|name| *name == other) {
            return true;
        }
        let devices = under.iter().filter_map(|name| machine.device(name));
        under = devices.flat_map(|device| device.parent.iter().chain(&device.below)).collect();
    }
    false
}

#[cfg(test)]
mod tests;
