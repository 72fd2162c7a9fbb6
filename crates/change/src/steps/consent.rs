//! Whether the consent to lose a disk's contents still holds when its overwriting is resumed.
//!
//! Between a confirmation and the step that overwrites, the power may be cut, the machine started again and a cable
//! changed. Two sticks of one model look alike, enclosures of one make often say the same serial number, and a disk that was
//! blank may have been put to use. What counts is proof: a disk that has not left the machine, or a partition table or
//! filesystem that this change made. Equal contents are none after a restart: new disks of one model are equal to the byte.

use std::path::Path;

use crate::disk::table;
use crate::volume::{DiskIdentity, Partition, PartitionTable};
use rubus_host::Files;
use rubus_host::block::blockdev::OpenDevice;
use rubus_host::files::digest;
use rubus_machine::signature::{self, END_BYTES, Kind, Signature, Window, all_zero};
use rubus_vocabulary::machine::BlockKind;

use crate::guard::{self, Disk};

use super::{Action, GivenAway, Step, locate};

/// No table that a person made has more.
const MAX_PARTITIONS: usize = 128;
/// The smallest piece that a disk writes whole.
const SECTOR_BYTES: usize = 512;

/// What is known of a disk that is about to be overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    /// Whether it is surely the disk of the plan, and not another one of its model.
    pub is_same_disk: bool,
    /// The running boot.
    pub boot: Option<String>,
    /// Its fingerprint now.
    pub ends: String,
    /// Whether everything on it was made by this change.
    pub is_own: bool,
}

/// Whether the user has given away what is on a disk of a plan now, or it is of the plan's own making.
///
/// # Errors
/// A text for people when the disk is not there or cannot be read.
pub fn is_given_away(
    steps: &[Step],
    consents: &[GivenAway],
    disk: &DiskIdentity,
    files: &dyn Files,
) -> Result<bool, String> {
    let now = locate::disk_now(files, disk)?;
    let boot = locate::boot_id(files);
    let evidence = evidence(steps, disk, &now, boot.as_deref())?;
    let given = consents.iter().rfind(|given| given.disk == disk.path);
    Ok(covers(given, disk, &evidence))
}

/// Whether what is on a disk may be lost without asking again. `given` is what the user confirmed.
pub(super) fn covers(given: Option<&GivenAway>, disk: &DiskIdentity, evidence: &Evidence) -> bool {
    let given = given.filter(|given| given.words == disk.confirmation);
    let is_unchanged = |given: &GivenAway| {
        let is_same_boot = given.boot.is_some() && given.boot == evidence.boot;
        is_same_boot && given.ends.as_deref() == Some(&evidence.ends)
    };
    evidence.is_own || given.is_some_and(|given| evidence.is_same_disk || is_unchanged(given))
}

/// Whether a disk that looks like the one of a plan is surely that one: it is a network disk with the same address, or has
/// not left the machine since the plan was made. A serial number is no proof: the other disk that says it too may not have been
/// plugged in when the plan was made.
pub(super) fn is_same_disk(meant: &DiskIdentity, now: &Disk, boot: Option<&str>) -> bool {
    let has_address = now.kind == BlockKind::Nbd && meant.model.is_some();
    let has_stayed = boot.is_some()
        && boot == meant.boot_id.as_deref()
        && meant.diskseq.is_some()
        && meant.diskseq == now.diskseq;
    has_address || has_stayed
}

/// What tells whether the contents of a disk are still the same: a sum of its size, its ends, and the ends of
/// its partitions.
///
/// # Errors
/// A text for people when it cannot be read.
pub fn fingerprint(path: &Path) -> Result<String, String> {
    let device = guard::read_only(path).map_err(|refusal| refusal.to_string())?;
    fingerprint_of(&device)
}

fn fingerprint_of(device: &OpenDevice) -> Result<String, String> {
    let size = device.size_bytes();
    let (first, last) = ends(device, 0, size)?;
    let window = Window::new(size, &first, &last).with_logical_block(device.logical_block_bytes());
    let mut told = size.to_le_bytes().to_vec();
    for entry in signature::partitions(&window).iter().take(MAX_PARTITIONS) {
        // An entry may point beyond the disk; the table itself is in the sum.
        if let Ok((first, last)) = ends(device, entry.start_bytes, entry.size_bytes) {
            told.extend(digest::sha256_of(&first));
            told.extend(digest::sha256_of(&last));
        }
    }
    told.extend(digest::sha256_of(&first));
    told.extend(digest::sha256_of(&last));
    let sum = digest::sha256_of(&told);
    Ok(sum.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The first and the last MiB of a part of a device.
fn ends(device: &OpenDevice, start: u64, size: u64) -> Result<(Vec<u8>, Vec<u8>), String> {
    let length = size.min(END_BYTES as u64);
    let last = start.checked_add(size - length);
    let last = last.ok_or("it lies beyond any device")?;
    Ok((device.read(start, length as usize)?, device.read(last, length as usize)?))
}

/// What there is to know of a disk now.
///
/// # Errors
/// A text for people when it cannot be read.
pub(super) fn evidence(
    steps: &[Step],
    meant: &DiskIdentity,
    now: &Disk,
    boot: Option<&str>,
) -> Result<Evidence, String> {
    let device = guard::read_only(&now.path).map_err(|refusal| refusal.to_string())?;
    let size = device.size_bytes();
    let (first, last) = ends(&device, 0, size)?;
    let window = Window::new(size, &first, &last).with_logical_block(device.logical_block_bytes());
    let on_partition = |partition: &Partition| -> Option<Vec<Signature>> {
        let (first, last) = ends(&device, partition.start_bytes, partition.size_bytes).ok()?;
        let window = Window::new(partition.size_bytes, &first, &last)
            .with_logical_block(device.logical_block_bytes());
        Some(signature::sniff(&window))
    };
    Ok(Evidence {
        is_same_disk: is_same_disk(meant, now, boot),
        boot: boot.map(str::to_string),
        ends: fingerprint_of(&device)?,
        is_own: is_own(steps, meant, &window, &on_partition),
    })
}

/// Whether everything that a disk says of itself was made by this plan. With a partition table: the disk has it, whole or
/// as far as a power cut let it be written, and nothing foreign is on its partitions. Without one: the disk has
/// the filesystem, and nothing else.
fn is_own(
    steps: &[Step],
    disk: &DiskIdentity,
    window: &Window<'_>,
    on_partition: &dyn Fn(&Partition) -> Option<Vec<Signature>>,
) -> bool {
    let made = identifiers(steps);
    let is_made = |found: &Signature| {
        let uuid = found.uuid.as_deref().map(plain);
        uuid.is_some_and(|uuid| made.contains(&uuid))
    };
    let Some(table) = table_of(steps, disk) else {
        let found = signature::sniff(window);
        return !found.is_empty() && found.iter().all(is_made);
    };
    if table::difference(table, window).is_some() {
        return is_half_written(table, window);
    }
    table.partitions.iter().all(|partition| {
        // An unfinished filesystem says nothing of itself yet. A FAT's first sector may pass for a table.
        let is_harmless = |found: &Signature| {
            is_made(found) || matches!(found.kind, Kind::PartitionTable(_)) && found.uuid.is_none()
        };
        on_partition(partition).is_some_and(|found| found.iter().all(is_harmless))
    })
}

/// The table that a plan writes to a disk.
fn table_of<'a>(steps: &'a [Step], meant: &DiskIdentity) -> Option<&'a PartitionTable> {
    steps.iter().find_map(|step| match &step.action {
        Action::Partition(step) if step.disk.path == meant.path => Some(&step.table),
        _ => None,
    })
}

/// The identifiers of all filesystems, swap areas and arrays that a plan makes.
fn identifiers(steps: &[Step]) -> Vec<String> {
    let made = steps.iter().filter_map(|step| match &step.action {
        Action::Format(step) => Some(plain(&step.filesystem.uuid)),
        Action::MakeArray(step) => Some(plain(&step.uuid)),
        _ => None,
    });
    made.collect()
}

/// An identifier without what programs write differently.
fn plain(uuid: &str) -> String {
    let digits = uuid.chars().filter(char::is_ascii_alphanumeric);
    digits.map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether a power cut while the table was written explains the ends of a disk: each sector is empty, or as it
/// is going to be. Ends that are all empty prove nothing, and need no consent either.
fn is_half_written(table: &PartitionTable, window: &Window<'_>) -> bool {
    let size = window.device_bytes();
    let Ok(extents) = table::extents(table, size, window.logical_block_bytes()) else {
        return false;
    };
    let mut is_begun = false;
    for (offset, length) in table::remains(size) {
        // A small disk is one piece, and a window has it in two.
        for start in (offset..offset + length).step_by(SECTOR_BYTES) {
            let Some(live) = window.at(start, SECTOR_BYTES) else {
                return false;
            };
            if all_zero(live) {
                continue;
            }
            is_begun = true;
            let is_planned = extents.iter().any(|extent| {
                let at = start.checked_sub(extent.offset_bytes);
                let planned =
                    at.and_then(|at| extent.bytes.get(at as usize..)?.get(..SECTOR_BYTES));
                planned == Some(live)
            });
            if !is_planned {
                return false;
            }
        }
    }
    is_begun
}

#[cfg(test)]
mod tests;
