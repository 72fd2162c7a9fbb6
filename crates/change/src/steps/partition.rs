//! Writing a partition table: claimed, wiped, written, made known to the kernel, read back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::disk::table;
use crate::volume::{self, DiskIdentity, PartitionTable, TableKind};
use rubus_host::block::block_writing::KernelPartition;
use rubus_host::block::blockdev::ClaimedDevice;
use rubus_host::{Files, Hands, clock};
use rubus_machine::signature::{END_BYTES, Window};

use super::behaviour::lost_on;
use super::claim::claim;
use super::commands::{Command, Names};
use super::{
    Behaviour, Detail, LiveStepRunner, MachineStep, Receipt, Site, StepError, Touches, Trace,
    TraceSite, failed, left, locate, receipt,
};

/// A partition table is written to a disk: everything on it is lost. Undoing leaves the disk as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct PartitionDisk {
    /// The whole disk.
    pub disk: DiskIdentity,
    /// What is written to it.
    pub table: PartitionTable,
}

impl Behaviour for PartitionDisk {
    fn title(&self) -> String {
        let kind = match self.table.kind {
            TableKind::Mbr { .. } => "MBR",
            TableKind::Gpt { .. } => "GPT",
        };
        let count = self.table.partitions.len();
        let plural = if count == 1 { "" } else { "s" };
        format!(
            "write a new partition table to {} ({kind}, {count} partition{plural})",
            self.disk.path.display()
        )
    }

    fn proof_title(&self) -> String {
        "the table is read back, and the kernel has every partition where it should be".into()
    }

    fn undo_title(&self) -> String {
        format!("not possible: what was on {} is lost", self.disk.path.display())
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        vec![Detail::Table { disk: &self.disk.path, table: &self.table }]
    }

    fn touches(&self) -> Touches<'_> {
        Touches {
            disks_lost: vec![&self.disk],
            leaves: Some(lost_on(&[&self.disk])),
            ..Touches::default()
        }
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        vec![&mut self.disk]
    }

    fn difference(&self, _: &dyn Files) -> Option<String> {
        None
    }

    fn shows_completion(&self) -> bool {
        false
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, _: &dyn Files) -> Trace {
        Trace::Unseen
    }
}

impl MachineStep for PartitionDisk {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let PartitionDisk { disk, table } = self;
        let tried = format!("write a partition table to {}", disk.path.display());
        let cannot = |reason: String| failed(&tried, reason);
        let now = locate::disk_now(hands.files(), disk).map_err(cannot)?;
        let device = claim(&tried, disk, &now.path, site, hands)?;
        if device.size_bytes() != disk.size_bytes {
            return Err(cannot("its size changed a moment ago".into()));
        }
        write(&device, table).map_err(cannot)?;
        tell_kernel(&device, &now.path, table, hands.files()).map_err(cannot)?;
        wait_for_nodes(&now.path, table, hands.files()).map_err(cannot)?;
        let live = read_back(&device, table).map_err(cannot)?;
        drop(device);
        runner.wait_for_udev();
        wait_for_nodes(&now.path, table, hands.files()).map_err(cannot)?;
        Ok(receipt(words(table), live))
    }

    fn undo(
        &self,
        _: &mut LiveStepRunner,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        Ok(left())
    }
}

impl LiveStepRunner {
    /// When a disk that was written to is closed, udev lets the kernel read its table once more, and for that moment it
    /// has no partitions. Wait for that before using one.
    fn wait_for_udev(&mut self) {
        // A machine without udev has nothing to wait for, and the nodes are looked for afterwards in any case.
        let _ = self.run("udevadm", &["settle", "--timeout=30"]);
    }
}

fn words(table: &PartitionTable) -> String {
    let partuuids: Vec<&str> =
        table.partitions.iter().map(|partition| partition.partuuid.as_str()).collect();
    format!("partitions {}", partuuids.join(", "))
}

/// The ends of the disk and of every new partition are emptied first, so that no old filesystem is taken
/// for a new one; then comes the table.
fn write(device: &ClaimedDevice, wanted: &PartitionTable) -> Result<(), String> {
    let size = device.size_bytes();
    let extents = table::extents(wanted, size, device.logical_block_bytes())
        .map_err(|error| error.to_string())?;
    // A table of before must not come back when the power goes now: it goes first.
    let mut spans = table::remains(size);
    for partition in &wanted.partitions {
        spans.extend(ends(partition));
    }
    let zeros = vec![0_u8; END_BYTES];
    for (offset, length) in spans {
        device.write_at(offset, &zeros[..length as usize])?;
    }
    device.sync()?;
    for extent in extents {
        device.write_at(extent.offset_bytes, &extent.bytes)?;
        device.sync()?;
    }
    Ok(())
}

/// The first and the last MiB of a partition.
fn ends(partition: &volume::Partition) -> [(u64, u64); 2] {
    let end = partition.size_bytes.min(END_BYTES as u64);
    let last = partition.start_bytes + partition.size_bytes - end;
    [(partition.start_bytes, end), (last, end)]
}

/// Lets the kernel read the table; where it does not know this kind of table, it is told of each partition.
fn tell_kernel(
    device: &ClaimedDevice,
    disk: &Path,
    wanted: &PartitionTable,
    files: &dyn Files,
) -> Result<(), String> {
    let reread = device.read_partitions_again();
    if is_known(disk, wanted, files) {
        return Ok(());
    }
    for partition in known(disk, files) {
        // One that is in use stays and is found out below.
        let _ = device.forget_partition(partition.number);
    }
    for partition in &wanted.partitions {
        let partition = KernelPartition {
            number: partition.number,
            start_bytes: partition.start_bytes,
            size_bytes: partition.size_bytes,
        };
        device.add_partition(&partition).map_err(|why| {
            let first = reread.as_ref().err().map(|why| format!("{why}; "));
            format!(
                "the kernel does not take the new partitions: {}{why}; restart the machine, then run `rubus resume`",
                first.unwrap_or_default()
            )
        })?;
    }
    Ok(())
}

/// The partitions that the kernel has of a disk.
fn known(disk: &Path, files: &dyn Files) -> Vec<KernelPartition> {
    let name = disk.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let directory = Path::new("/sys/class/block").join(&name);
    let names = files.list(&directory).unwrap_or_default();
    let number = |path: PathBuf| files.text(&path).ok()?.trim().parse::<u64>().ok();
    let partitions = names.iter().filter_map(|name| {
        let at = directory.join(name);
        Some(KernelPartition {
            number: number(at.join("partition"))? as u32,
            start_bytes: number(at.join("start"))?.checked_mul(512)?,
            size_bytes: number(at.join("size"))?.checked_mul(512)?,
        })
    });
    let mut partitions: Vec<KernelPartition> = partitions.collect();
    partitions.sort_by_key(|partition| partition.number);
    partitions
}

fn is_known(disk: &Path, wanted: &PartitionTable, files: &dyn Files) -> bool {
    let wanted: Vec<KernelPartition> = wanted
        .partitions
        .iter()
        .map(|partition| KernelPartition {
            number: partition.number,
            start_bytes: partition.start_bytes,
            size_bytes: partition.size_bytes,
        })
        .collect();
    known(disk, files) == wanted
}

/// The kernel makes the nodes at once, udev may take its time to give them owner and links.
fn wait_for_nodes(disk: &Path, wanted: &PartitionTable, files: &dyn Files) -> Result<(), String> {
    const LOOKS: usize = 100;
    const BETWEEN: Duration = Duration::from_millis(100);
    for _ in 0..LOOKS {
        let all_there = wanted.partitions.iter().all(|partition| {
            let node = volume::partition_path(disk, partition.number);
            files.exists(Path::new(&node))
        });
        if all_there && is_known(disk, wanted, files) {
            return Ok(());
        }
        clock::sleep(BETWEEN);
    }
    Err(format!(
        "the nodes of the new partitions of {} do not appear; restart the machine, then run `rubus resume`",
        disk.display()
    ))
}

/// What the disk itself says, past the cache where that can be.
fn read_back(device: &ClaimedDevice, wanted: &PartitionTable) -> Result<String, String> {
    let direct = device.set_direct(true).is_ok();
    let size = device.size_bytes();
    let ends = device.read(0, END_BYTES).and_then(|first| {
        let last = device.read(size.saturating_sub(END_BYTES as u64), END_BYTES)?;
        Ok((first, last))
    });
    if direct {
        // Cannot fail: it was off before.
        let _ = device.set_direct(false);
    }
    let (first, last) = ends?;
    let window = Window::new(size, &first, &last).with_logical_block(device.logical_block_bytes());
    match table::difference(wanted, &window) {
        None => Ok(words(wanted)),
        Some(difference) => Err(format!(
            "it was written and reads back differently ({difference}); the disk may be broken or a fake"
        )),
    }
}
