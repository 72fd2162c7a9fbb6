//! Which device is meant: from what a plan says of a disk to the node that it has now, and back.
//!
//! Names move, so nothing is found by its name. A disk is found by all that it says of itself; a partition
//! by its number and its PARTUUID in the table on its disk; a filesystem by what its own first blocks say.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::volume::{DiskIdentity, FilesystemKind, Place, Volume};
use rubus_host::block::blockdev::OpenDevice;
use rubus_host::{Files, clock};
use rubus_machine::signature::{self, END_BYTES, Kind, Signature, Window};
use rubus_machine::superblock;
use rubus_vocabulary::machine::BlockKind;
use rubus_vocabulary::units::bytes_si;

use crate::guard::{self, Disk};
use crate::unseen::Unseen;
use rubus_boot::volume::NamedVolume;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// How often, and how far apart, a partition is looked for that must be there.
const LOOKS: usize = 50;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// The running boot.
pub fn boot_id(files: &dyn Files) -> Option<String> {
    files.text(Path::new(BOOT_ID)).ok()
}

/// What tells a disk from every other, and what is on it, as a plan keeps it. Only looks.
///
/// # Errors
/// When it is no whole disk, is in use, or cannot be looked at.
pub fn identity(files: &dyn Files, path: &Path) -> Result<DiskIdentity, Unseen> {
    let device = guard::fit(files, path).map_err(|refusal| {
        let reasons = refusal.reasons().iter();
        let sentences = reasons.map(|reason| format!("{} {}", reason.what, reason.next));
        let words = sentences.collect::<Vec<_>>().join(" ");
        if refusal.is_denied() { Unseen::Denied(words) } else { Unseen::Other(words) }
    })?;
    if let Some(disk) = &device.disk {
        return Err(
            format!("{} is a partition of /dev/{disk}; name the whole disk", device.path).into()
        );
    }
    let disks = guard::disks(files)?;
    let disk = disks.into_iter().find(|disk| disk.name == device.name);
    let disk = disk.ok_or_else(|| format!("{} went away", device.path))?;
    Ok(DiskIdentity {
        path: disk.path,
        size_bytes: disk.size_bytes,
        model: disk.model,
        serial: disk.serial,
        wwn: disk.wwn,
        diskseq: disk.diskseq,
        boot_id: boot_id(files),
        contents: device.contents.iter().map(guard::content_words).collect(),
        confirmation: guard::confirmation(&device).text,
    })
}

/// The disk that is meant, among those that are there. All that it said of itself when the plan was made
/// has to be the same, and no other disk may be like it; in the same boot it has to be the very one.
///
/// # Errors
/// A text for people: it is gone, was changed for another, or there are two alike.
pub fn find_disk(meant: &DiskIdentity, disks: &[Disk], boot: Option<&str>) -> Result<Disk, String> {
    let is_alike = |disk: &&Disk| {
        disk.size_bytes == meant.size_bytes
            && disk.model == meant.model
            && disk.serial == meant.serial
            && disk.wwn == meant.wwn
            && !matches!(disk.kind, BlockKind::Ram | BlockKind::Zram | BlockKind::MmcArea)
    };
    let alike: Vec<&Disk> = disks.iter().filter(is_alike).collect();
    let is_same_boot = boot.is_some() && boot == meant.boot_id.as_deref();
    if is_same_boot && meant.diskseq.is_some() {
        let very = alike.iter().find(|disk| disk.diskseq == meant.diskseq);
        return match (very, alike.is_empty()) {
            (Some(very), _) => Ok((*very).clone()),
            (None, true) => Err(gone(meant, disks)),
            (None, false) => Err(format!(
                "{} was taken out since the plan was made, or another of the same kind is in its place; start the \
                 machine again with it plugged in",
                describe(meant)
            )),
        };
    }
    match alike[..] {
        [] => Err(gone(meant, disks)),
        [only] => Ok(only.clone()),
        [first, second, ..] => Err(format!(
            "{} and {} look alike, and both look like {}; unplug the one that is not meant",
            first.path.display(),
            second.path.display(),
            describe(meant)
        )),
    }
}

fn gone(meant: &DiskIdentity, disks: &[Disk]) -> String {
    let now = disks.iter().find(|disk| disk.path == meant.path);
    let now = match now {
        Some(disk) if disk.size_bytes > 0 => format!(
            ", and {} is another disk now ({})",
            meant.path.display(),
            traits(&disk.model, &disk.serial, disk.size_bytes)
        ),
        _ => String::new(),
    };
    format!(
        "{} is not there{now}; plug it in again (rubus attach, if it is a network disk)",
        describe(meant)
    )
}

/// A disk for a sentence.
fn describe(disk: &DiskIdentity) -> String {
    format!(
        "the disk that was {} ({})",
        disk.path.display(),
        traits(&disk.model, &disk.serial, disk.size_bytes)
    )
}

fn traits(model: &Option<String>, serial: &Option<String>, size_bytes: u64) -> String {
    let mut words: Vec<String> = model.iter().cloned().collect();
    words.extend(serial.iter().map(|serial| format!("serial {serial}")));
    words.push(bytes_si(size_bytes));
    words.join(", ")
}

/// The disk that is meant, on this machine now.
///
/// # Errors
/// Like [`find_disk`].
pub(crate) fn disk_now(files: &dyn Files, meant: &DiskIdentity) -> Result<Disk, String> {
    let disks = guard::disks(files)?;
    find_disk(meant, &disks, boot_id(files).as_deref())
}

/// The node that a place has now.
///
/// # Errors
/// A text for people when it is not there, or not what the plan says.
pub(super) fn node_of(files: &dyn Files, place: &Place) -> Result<PathBuf, String> {
    match place {
        Place::Disk { disk } => Ok(disk_now(files, disk)?.path),
        Place::Partition { disk, number, partuuid } => {
            for _ in 0..LOOKS {
                if let Some(node) = partition_node(&disk_now(files, disk)?, *number, partuuid)? {
                    return Ok(node);
                }
                // The kernel may be reading the table at this moment; it has no partitions then.
                clock::sleep(BETWEEN_LOOKS);
            }
            Err(format!(
                "the kernel does not know partition {number} of {} as its table has it; start the machine again",
                disk.path.display()
            ))
        }
        Place::Array { members, .. } => array_node(files, members),
    }
}

/// The node of a partition: the disk's own table says where it is, the kernel what it is called. Nothing where
/// the kernel does not know it.
fn partition_node(disk: &Disk, number: u32, partuuid: &str) -> Result<Option<PathBuf>, String> {
    let shown = disk.path.display();
    let device = guard::read_only(&disk.path).map_err(|refusal| refusal.to_string())?;
    let listed = with_window(&device, signature::partitions)?;
    let entry = listed
        .into_iter()
        .find(|entry| entry.number == number)
        .ok_or_else(|| format!("the table on {shown} has no partition {number}"))?;
    if entry.partuuid.as_deref() != Some(partuuid) {
        return Err(format!(
            "partition {number} of {shown} is {} and not {partuuid}: the disk was partitioned again since",
            entry.partuuid.unwrap_or_else(|| "nameless".into())
        ));
    }
    let known = disk.partitions.iter().find(|(_, start_bytes, size_bytes)| {
        (*start_bytes, *size_bytes) == (entry.start_bytes, entry.size_bytes)
    });
    Ok(known.map(|(name, ..)| Path::new("/dev").join(name)))
}

/// The array that stands on all of these members.
fn array_node(files: &dyn Files, members: &[Place]) -> Result<PathBuf, String> {
    let mut array: Option<String> = None;
    for member in members {
        let node = node_of(files, member)?;
        let name = node.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let holders = Path::new("/sys/class/block").join(&name).join("holders");
        let holders = files.list(&holders).unwrap_or_default();
        let on_it = holders.into_iter().find(|name| name.starts_with("md"));
        let on_it = on_it.ok_or_else(|| format!("{} is in no array", node.display()))?;
        if array.as_ref().is_some_and(|array| *array != on_it) {
            return Err(format!("{} is in another array ({on_it})", node.display()));
        }
        array = Some(on_it);
    }
    let array = array.ok_or("an array without members is none")?;
    Ok(Path::new("/dev").join(array))
}

/// What a device says of itself in its first and last MiB.
///
/// # Errors
/// A text for people when it cannot be read.
pub(super) fn signatures(path: &Path) -> Result<Vec<Signature>, String> {
    let device = guard::read_only(path).map_err(|refusal| refusal.to_string())?;
    with_window(&device, signature::sniff)
}

fn with_window<T>(device: &OpenDevice, act: impl FnOnce(&Window<'_>) -> T) -> Result<T, String> {
    let size = device.size_bytes();
    let first = device.read(0, END_BYTES)?;
    let last_begins = size.saturating_sub(END_BYTES as u64);
    let last = device.read(last_begins, END_BYTES)?;
    let window = Window::new(size, &first, &last).with_logical_block(device.logical_block_bytes());
    Ok(act(&window))
}

fn is_kind(kind: FilesystemKind, found: Kind) -> bool {
    match (kind, found) {
        (FilesystemKind::Swap, Kind::Swap) => true,
        (kind, Kind::Filesystem(name)) => kind.name() == name,
        _ => false,
    }
}

/// Whether a device says that it holds this filesystem.
pub(super) fn holds(path: &Path, kind: FilesystemKind, uuid: &str) -> Result<bool, String> {
    let found = signatures(path)?;
    Ok(found.iter().any(|found| {
        let is_named = found.uuid.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(uuid));
        is_named && is_kind(kind, found.kind)
    }))
}

/// The one device on which a filesystem or swap area of that UUID is.
///
/// # Errors
/// A text for people: there is none, or more than one, which would be a copy of it.
pub(crate) fn device_of(
    files: &dyn Files,
    kind: FilesystemKind,
    uuid: &str,
) -> Result<PathBuf, String> {
    let mut found = Vec::new();
    let mut unreadable = Vec::new();
    for disk in guard::disks(files)? {
        let is_memory = matches!(disk.kind, BlockKind::Ram | BlockKind::Zram | BlockKind::Rom);
        if is_memory || disk.size_bytes == 0 {
            continue;
        }
        let partitions = disk.partitions.iter();
        let mut nodes: Vec<PathBuf> =
            partitions.map(|(name, ..)| Path::new("/dev").join(name)).collect();
        if nodes.is_empty() {
            nodes.push(disk.path);
        }
        for node in nodes {
            match holds(&node, kind, uuid) {
                Ok(true) => found.push(node),
                Ok(false) => {}
                Err(_) => unreadable.push(node.display().to_string()),
            }
        }
    }
    match &found[..] {
        [only] => Ok(only.clone()),
        [] => Err(format!(
            "no disk has {} with the UUID {uuid}{}; plug the disk in, or attach it again (rubus attach)",
            kind.name(),
            if unreadable.is_empty() {
                String::new()
            } else {
                format!(" ({} cannot be read)", unreadable.join(", "))
            }
        )),
        several => Err(format!(
            "several devices have {} with the UUID {uuid} ({}): one is a copy of the other; unplug it",
            kind.name(),
            several.iter().map(|node| node.display().to_string()).collect::<Vec<_>>().join(", ")
        )),
    }
}

/// All partitions and undivided disks, by the names that boot files may use.
///
/// # Errors
/// A text for people when the kernel's list of disks cannot be read.
pub(crate) fn volumes(files: &dyn Files) -> Result<Vec<NamedVolume>, String> {
    let mut volumes = Vec::new();
    for disk in guard::disks(files)? {
        let is_memory = matches!(disk.kind, BlockKind::Ram | BlockKind::Zram | BlockKind::Rom);
        if is_memory || disk.size_bytes == 0 {
            continue;
        }
        if disk.partitions.is_empty() {
            volumes.extend(volume_on(&disk.path));
            continue;
        }
        let table = guard::read_only(&disk.path)
            .map_err(|refusal| refusal.to_string())
            .and_then(|device| with_window(&device, signature::partitions))
            .unwrap_or_default();
        for (name, start_bytes, size_bytes) in &disk.partitions {
            let entry = table
                .iter()
                .find(|entry| (entry.start_bytes, entry.size_bytes) == (*start_bytes, *size_bytes));
            let Some(volume) = volume_on(&Path::new("/dev").join(name)) else {
                continue;
            };
            volumes.push(NamedVolume {
                partuuid: entry.and_then(|entry| entry.partuuid.clone()),
                partlabel: entry.and_then(|entry| entry.name.clone()),
                ..volume
            });
        }
    }
    Ok(volumes)
}

/// What a device holds. One that cannot be read is there all the same; members of arrays have no names of their own.
fn volume_on(node: &Path) -> Option<NamedVolume> {
    let device = guard::read_only(node).map_err(|refusal| refusal.to_string());
    let found = device.and_then(|device| with_window(&device, superblock::identify));
    let found = found.ok().flatten().filter(|found| found.is_volume);
    let path = node.to_str()?.to_string();
    Some(match found {
        Some(found) => NamedVolume {
            path,
            uuid: found.uuid,
            label: found.label,
            filesystem: Some(found.kind),
            ..NamedVolume::default()
        },
        None => NamedVolume { path, ..NamedVolume::default() },
    })
}

/// The device that a volume is on.
///
/// # Errors
/// Like [`device_of`].
pub(super) fn volume_node(files: &dyn Files, volume: &Volume) -> Result<PathBuf, String> {
    device_of(files, volume.kind, &volume.uuid).map_err(|why| format!("{}: {why}", volume.title))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(name: &str) -> Disk {
        Disk {
            name: name.into(),
            path: Path::new("/dev").join(name),
            kind: BlockKind::Disk,
            size_bytes: 64_000_000_000,
            model: Some("SanDisk Ultra".into()),
            serial: Some("4C530001".into()),
            wwn: None,
            diskseq: Some(7),
            partitions: Vec::new(),
            holders: Vec::new(),
        }
    }

    fn meant() -> DiskIdentity {
        DiskIdentity {
            path: "/dev/sda".into(),
            size_bytes: 64_000_000_000,
            model: Some("SanDisk Ultra".into()),
            serial: Some("4C530001".into()),
            wwn: None,
            diskseq: Some(7),
            boot_id: Some("one".into()),
            contents: Vec::new(),
            confirmation: "4C530001".into(),
        }
    }

    #[test]
    fn a_disk_is_found_under_another_name_after_a_boot() {
        let mut other = disk("sda");
        other.serial = Some("OTHER".into());
        let mut moved = disk("sdb");
        moved.diskseq = Some(2);
        let found = find_disk(&meant(), &[other, moved.clone()], Some("two"));
        assert_eq!(found, Ok(moved));
    }

    #[test]
    fn each_trait_counts() {
        for change in [
            |disk: &mut Disk| disk.size_bytes += 512,
            |disk: &mut Disk| disk.model = None,
            |disk: &mut Disk| disk.serial = Some("x".into()),
            |disk: &mut Disk| disk.wwn = Some("naa.5".into()),
        ] {
            let mut changed = disk("sda");
            change(&mut changed);
            let why = find_disk(&meant(), &[changed], Some("one")).unwrap_err();
            assert!(why.contains("is not there, and /dev/sda is another disk"), "{why}");
        }
    }

    #[test]
    fn in_the_same_boot_it_is_the_very_one() {
        let (mut twin, very) = (disk("sdb"), disk("sda"));
        twin.diskseq = Some(9);
        let both = [twin.clone(), very.clone()];
        assert_eq!(find_disk(&meant(), &both, Some("one")), Ok(very));
        let why = find_disk(&meant(), &[twin], Some("one")).unwrap_err();
        assert!(why.contains("was taken out since"), "{why}");
    }

    #[test]
    fn of_two_alike_none_is_taken() {
        let why = find_disk(&meant(), &[disk("sda"), disk("sdb")], Some("two")).unwrap_err();
        assert!(why.contains("/dev/sda and /dev/sdb look alike"), "{why}");
        let why = find_disk(&meant(), &[], None).unwrap_err();
        assert!(why.contains("is not there; plug it in again"), "{why}");
    }
}
