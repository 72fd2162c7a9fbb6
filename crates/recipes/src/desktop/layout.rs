//! The new disk: how it is divided, what is made on each part, and identifiers that nothing else has.

use std::collections::BTreeSet;

use super::super::PlanInput;
use super::filesystem::{ROOT_SUBVOLUME, RootFilesystem};
use super::options::{Choice, SwapKind};
use rubus_boot::volume::NamedVolume;
use rubus_change::disk::guid::Guid;
use rubus_change::disk::layout::{Layout, LayoutError, Wishes, divide};
use rubus_change::plan::volume::{
    DiskIdentity, FilesystemKind, NewFilesystem, Partition, PartitionRole, Place, Volume,
    partition_path,
};
use rubus_vocabulary::machine::Machine;

const MIB: u64 = 1 << 20;
/// Flash disks erase 4 or 8 MiB at once; partitions of Raspberry Pi OS begin at 8 MiB too.
const ALIGN_BYTES: u64 = 8 * MIB;
/// As large as the boot partition of Raspberry Pi OS.
const BOOT_BYTES: u64 = 512 * MIB;
/// The subvolume of the swap file: one with an active swap file cannot be snapshotted.
pub(super) const SWAP_SUBVOLUME: &str = "@swap";
/// Where that is mounted, and the file in it. On a filesystem without subvolumes the file is in the root's own top.
pub(super) const SWAP_POINT: &str = "/swap";
pub(super) const SWAP_FILE: &str = "/swapfile";
/// How often other identifiers are tried.
const ATTEMPTS: u8 = 8;

/// The new disk, in all its parts.
#[derive(Clone, Debug)]
pub(super) struct NewDisk {
    pub(super) disk: DiskIdentity,
    pub(super) layout: Layout,
    pub(super) filesystem: RootFilesystem,
    pub(super) root: NewFilesystem,
    pub(super) swap: Option<NewFilesystem>,
    pub(super) boot: Option<NewFilesystem>,
    /// How large a swap file becomes, where there is one.
    pub(super) swap_file_bytes: Option<u64>,
    /// The root with its subvolume.
    pub(super) root_volume: Volume,
    /// The subvolume of the swap file, where the filesystem has some.
    pub(super) swap_volume: Option<Volume>,
    /// The copy of the boot partition.
    pub(super) boot_volume: Option<Volume>,
}

impl NewDisk {
    /// Where the swap file is on the new system, where there is one.
    pub(super) fn swap_file(&self) -> Option<String> {
        self.swap_file_bytes?;
        Some(match self.swap_volume {
            Some(_) => format!("{SWAP_POINT}{SWAP_FILE}"),
            None => SWAP_FILE.to_string(),
        })
    }

    /// What a start finds on it.
    pub(super) fn volumes(&self) -> Vec<NamedVolume> {
        let parts = [
            (Some(&self.layout.root), Some(&self.root)),
            (self.layout.swap.as_ref(), self.swap.as_ref()),
            (self.layout.boot.as_ref(), self.boot.as_ref()),
        ];
        let made = parts.into_iter().filter_map(|(partition, made)| partition.zip(made));
        made.map(|(partition, made)| NamedVolume {
            path: partition_path(&self.disk.path, partition.number),
            partuuid: Some(partition.partuuid.clone()),
            uuid: Some(made.uuid.clone()),
            label: Some(made.label.clone()),
            filesystem: Some(made.kind.name().into()),
            ..NamedVolume::default()
        })
        .collect()
    }

    pub(super) fn place(&self, partition: &Partition) -> Place {
        Place::Partition {
            disk: self.disk.clone(),
            number: partition.number,
            partuuid: partition.partuuid.clone(),
        }
    }
}

/// Divides the disk.
///
/// # Errors
/// [`LayoutError`] when it is too small.
pub(super) fn new_disk(
    situation: &PlanInput<'_>,
    choice: &Choice,
    disk: &DiskIdentity,
    root_min_bytes: u64,
    swap_bytes: u64,
    method: Option<&str>,
) -> Result<NewDisk, LayoutError> {
    let machine = situation.machine;
    let taken = taken(machine);
    let attempt =
        |number| draw(situation, choice, disk, root_min_bytes, swap_bytes, method, number);
    let mut made = attempt(0)?;
    for number in 1..ATTEMPTS {
        if identifiers(&made).iter().all(|one| !taken.contains(one)) {
            break;
        }
        made = attempt(number)?;
    }
    Ok(made)
}

/// Identifiers that something on this machine has.
fn taken(machine: &Machine) -> BTreeSet<String> {
    let devices = machine.block_devices.iter();
    let known = devices.flat_map(|device| {
        let identity = &device.identity;
        [identity.uuid.clone(), identity.partuuid.clone()]
    });
    known.flatten().map(|one| one.to_lowercase()).collect()
}

fn identifiers(made: &NewDisk) -> Vec<String> {
    let partitions = made.layout.table.partitions.iter();
    let mut all: Vec<String> = partitions.map(|one| one.partuuid.to_lowercase()).collect();
    let filesystems = [Some(&made.root), made.swap.as_ref(), made.boot.as_ref()];
    all.extend(filesystems.into_iter().flatten().map(|one| one.uuid.to_lowercase()));
    all
}

/// Numbers of the identifiers that follow from the random bytes; the layout takes those from 0 on.
const ROOT_ID: u64 = 100;
const SWAP_ID: u64 = 101;
const BOOT_ID: u64 = 102;

fn draw(
    situation: &PlanInput<'_>,
    choice: &Choice,
    disk: &DiskIdentity,
    root_min_bytes: u64,
    swap_bytes: u64,
    method: Option<&str>,
    attempt: u8,
) -> Result<NewDisk, LayoutError> {
    let mut random = situation.facts.random.to_vec();
    random.push(attempt);
    let name = super::current::disk_name(&disk.path);
    let device = situation.machine.device(name);
    let block_bytes = device.and_then(|device| device.logical_block_bytes.get());
    let in_partition = choice.swap == SwapKind::Partition;
    let in_file = choice.swap == SwapKind::File;
    let wishes = Wishes {
        scheme: choice.table,
        boot_bytes: choice.boot_copy.then_some(BOOT_BYTES),
        root: PartitionRole::Linux,
        root_min_bytes: root_min_bytes + if in_file { swap_bytes } else { 0 },
        swap_bytes: in_partition.then_some(swap_bytes),
        align_bytes: ALIGN_BYTES,
    };
    let layout = divide(disk.size_bytes, block_bytes.unwrap_or(512), &wishes, &random)?;
    let uuid = |number: u64| Guid::from_random(&random, number).to_string();
    let filesystem = choice.filesystem;
    let compress = method.map(|method| format!("compress={method}"));
    let root = NewFilesystem {
        kind: filesystem.kind(),
        uuid: uuid(ROOT_ID),
        label: "desktop".into(),
        subvolumes: match (filesystem.is_btrfs(), in_file) {
            (true, true) => vec![ROOT_SUBVOLUME.into(), SWAP_SUBVOLUME.into()],
            (true, false) => vec![ROOT_SUBVOLUME.into()],
            (false, _) => Vec::new(),
        },
        mount_options: compress.unwrap_or_default(),
    };
    let volume = |kind, uuid: &str, options: String, what: &str, number| Volume {
        kind,
        uuid: uuid.into(),
        mount_options: options,
        title: format!("{what} ({})", partition_path(&disk.path, number)),
    };
    let swap = layout.swap.as_ref().map(|_| NewFilesystem {
        kind: FilesystemKind::Swap,
        uuid: uuid(SWAP_ID),
        label: "swap".into(),
        subvolumes: Vec::new(),
        mount_options: String::new(),
    });
    let boot = layout.boot.as_ref().map(|_| NewFilesystem {
        kind: FilesystemKind::Vfat,
        uuid: fat_serial(&uuid(BOOT_ID)),
        label: "bootcopy".into(),
        subvolumes: Vec::new(),
        mount_options: String::new(),
    });
    let number = layout.root.number;
    let (kind, id) = (filesystem.kind(), root.uuid.as_str());
    let options = filesystem.mount_options(method);
    Ok(NewDisk {
        filesystem,
        root_volume: volume(kind, id, options, "the new root", number),
        swap_volume: (in_file && filesystem.is_btrfs()).then(|| {
            let options = format!("subvol={SWAP_SUBVOLUME},noatime");
            volume(kind, id, options, "the new disk's swap subvolume", number)
        }),
        boot_volume: layout.boot.as_ref().zip(boot.as_ref()).map(|(part, made)| {
            let what = "the copy of the boot partition";
            volume(FilesystemKind::Vfat, &made.uuid, String::new(), what, part.number)
        }),
        swap_file_bytes: in_file.then_some(swap_bytes),
        disk: disk.clone(),
        layout,
        root,
        swap,
        boot,
    })
}

/// The first eight digits as the serial number of a FAT.
fn fat_serial(uuid: &str) -> String {
    format!("{}-{}", &uuid[..4], &uuid[4..8]).to_uppercase()
}
