//! How a disk is partitioned for a new root: an optional copy of the boot partition, the root, swap at the end.

use super::guid::Guid;
use super::table::{self, TableError, mbr_partuuid};
use crate::volume::{Partition, PartitionRole, PartitionTable, TableKind};
use rubus_vocabulary::units::bytes_iec;

const MIB: u64 = 1 << 20;

/// What a disk shall hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// Which kind of table.
    pub scheme: Scheme,
    /// A FAT partition for a copy of the boot files, in front, this large.
    pub boot_bytes: Option<u64>,
    /// What the root is for: a filesystem, or a member of an array.
    pub root: PartitionRole,
    /// Less than this is not enough for the root.
    pub root_min_bytes: u64,
    /// A swap partition at the end, this large.
    pub swap_bytes: Option<u64>,
    /// Every partition begins at a multiple of this: 1 MiB, or a flash disk's erase block (4 or 8 MiB). A multiple of
    /// 1 MiB.
    pub align_bytes: u64,
}

impl Default for Wishes {
    /// Root alone on the whole disk, aligned to 4 MiB.
    fn default() -> Self {
        Wishes {
            scheme: Scheme::Fitting,
            boot_bytes: None,
            root: PartitionRole::Linux,
            root_min_bytes: 0,
            swap_bytes: None,
            align_bytes: 4 * MIB,
        }
    }
}

/// Which kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// An MBR, which every board's firmware reads; a GPT only where the disk is too large for an MBR.
    Fitting,
    Mbr,
    Gpt,
}

/// A disk divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The table, to be written.
    pub table: PartitionTable,
    /// The copy of the boot files.
    pub boot: Option<Partition>,
    pub root: Partition,
    pub swap: Option<Partition>,
}

/// Why a disk cannot be divided so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error("the disk has {}, which is not enough: {} are needed", bytes_iec(*.have_bytes), bytes_iec(*.need_bytes))]
    TooSmall {
        /// Size of the disk in bytes.
        have_bytes: u64,
        /// What it would need.
        need_bytes: u64,
    },
    /// The alignment is no multiple of 1 MiB.
    #[error("partitions cannot be aligned to {0} bytes: a multiple of 1 MiB is needed")]
    BadAlignment(u64),
    /// The table cannot be on the disk.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Divides a disk. `random` makes its identifiers; the same bytes make the same ones.
///
/// # Errors
/// [`LayoutError`] when it is too small or the wishes do not go together.
pub fn divide(
    device_bytes: u64,
    logical_block_bytes: u32,
    wishes: &Wishes,
    random: &[u8],
) -> Result<Layout, LayoutError> {
    let align = wishes.align_bytes;
    if align == 0 || align % MIB != 0 || align % u64::from(logical_block_bytes.max(1)) != 0 {
        return Err(LayoutError::BadAlignment(align));
    }
    let kind = kind(device_bytes, logical_block_bytes, wishes.scheme, random);
    // A GPT has its backup in the last blocks, so the last whole piece is not ours.
    let end = match kind {
        TableKind::Mbr { .. } => device_bytes / align * align,
        TableKind::Gpt { .. } => device_bytes.saturating_sub(MIB) / align * align,
    };
    let whole = |bytes: u64| bytes.checked_next_multiple_of(align).unwrap_or(u64::MAX);
    let boot_bytes = wishes.boot_bytes.map(whole);
    let swap_bytes = wishes.swap_bytes.map(whole);
    let others =
        align.saturating_add(boot_bytes.unwrap_or(0)).saturating_add(swap_bytes.unwrap_or(0));
    let root_min = whole(wishes.root_min_bytes).max(align);
    let need_bytes =
        others.saturating_add(root_min).saturating_add(device_bytes.saturating_sub(end).min(align));
    let root_bytes = end
        .checked_sub(others)
        .filter(|bytes| *bytes >= root_min)
        .ok_or(LayoutError::TooSmall { have_bytes: device_bytes, need_bytes })?;
    let mut row = Row::new(kind, align, random);
    let boot = boot_bytes.map(|bytes| row.add(PartitionRole::Boot, bytes));
    let root = row.add(wishes.root, root_bytes);
    let swap = swap_bytes.map(|bytes| row.add(PartitionRole::Swap, bytes));
    table::check(&row.table, device_bytes, logical_block_bytes)?;
    Ok(Layout { table: row.table, boot, root, swap })
}

fn kind(device_bytes: u64, block_bytes: u32, scheme: Scheme, random: &[u8]) -> TableKind {
    let guid = Guid::from_random(random, 0);
    let is_large = device_bytes / u64::from(block_bytes.max(1)) > u64::from(u32::MAX);
    match scheme {
        Scheme::Mbr => mbr(guid),
        Scheme::Fitting if !is_large => mbr(guid),
        Scheme::Fitting | Scheme::Gpt => TableKind::Gpt { disk_guid: guid.to_string() },
    }
}

fn mbr(guid: Guid) -> TableKind {
    let [a, b, c, d, ..] = guid.efi_bytes();
    // Zero would mean "no identifier".
    TableKind::Mbr { disk_id: u32::from_be_bytes([a, b, c, d]).max(1) }
}

/// Partitions one after the other.
struct Row<'a> {
    table: PartitionTable,
    next_bytes: u64,
    random: &'a [u8],
}

impl<'a> Row<'a> {
    fn new(kind: TableKind, first_bytes: u64, random: &'a [u8]) -> Self {
        Row {
            table: PartitionTable { kind, partitions: Vec::new() },
            next_bytes: first_bytes,
            random,
        }
    }

    fn add(&mut self, role: PartitionRole, size_bytes: u64) -> Partition {
        let number = self.table.partitions.len() as u32 + 1;
        let partition = Partition {
            number,
            start_bytes: self.next_bytes,
            size_bytes,
            role,
            partuuid: match &self.table.kind {
                TableKind::Mbr { disk_id } => mbr_partuuid(*disk_id, number),
                TableKind::Gpt { .. } => {
                    Guid::from_random(self.random, u64::from(number)).to_string()
                }
            },
        };
        self.next_bytes = self.next_bytes.saturating_add(size_bytes);
        self.table.partitions.push(partition.clone());
        partition
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_disk_of_a_desktop_has_boot_root_and_swap() {
        let wishes = Wishes {
            boot_bytes: Some(512 * MIB),
            swap_bytes: Some(2 * GIB),
            align_bytes: 8 * MIB,
            ..Wishes::default()
        };
        let layout = divide(30_752_636_928, 512, &wishes, &[9; 32]).expect("fits");
        let rows: Vec<(u32, u64, u64)> = layout
            .table
            .partitions
            .iter()
            .map(|p| (p.number, p.start_bytes / MIB, p.size_bytes / MIB))
            .collect();
        assert_eq!(rows, [(1, 8, 512), (2, 520, 26_760), (3, 27_280, 2048)]);
        assert!(matches!(layout.table.kind, TableKind::Mbr { .. }));
        assert!(layout.root.partuuid.ends_with("-02"), "{layout:?}");
    }

    #[test]
    fn large_disks_get_a_gpt_and_an_mbr_is_refused_there() {
        let wishes = Wishes::default();
        let layout = divide(4 << 40, 512, &wishes, &[1; 32]).expect("fits");
        assert!(matches!(layout.table.kind, TableKind::Gpt { .. }));
        assert_eq!(layout.root.partuuid.len(), 36);
        // With larger blocks an MBR reaches further.
        let layout = divide(4 << 40, 4096, &wishes, &[1; 32]).expect("fits");
        assert!(matches!(layout.table.kind, TableKind::Mbr { .. }));
    }

    #[test]
    fn too_small_a_disk_says_what_it_needs() {
        let wishes = Wishes { root_min_bytes: 8 * GIB, swap_bytes: Some(GIB), ..Wishes::default() };
        let error = divide(8 * GIB, 512, &wishes, &[1; 32]).expect_err("too small");
        let LayoutError::TooSmall { need_bytes, .. } = error else {
            panic!("{error}");
        };
        divide(need_bytes, 512, &wishes, &[1; 32]).expect("what it needs is enough");
        let odd = Wishes { align_bytes: 4096, ..wishes };
        assert_eq!(divide(64 * GIB, 512, &odd, &[1; 32]), Err(LayoutError::BadAlignment(4096)));
    }

    proptest! {
        #[test]
        fn every_layout_is_whole_and_can_be_written(
            device_bytes in 0_u64..(4 << 40),
            block in prop::sample::select(vec![512_u32, 4096]),
            scheme in prop::sample::select(vec![Scheme::Fitting, Scheme::Mbr, Scheme::Gpt]),
            boot_bytes in prop::option::of(0_u64..(2 << 30)),
            swap_bytes in prop::option::of(0_u64..(16 << 30)),
            align_mib in 1_u64..9,
            random: [u8; 32],
        ) {
            let wishes = Wishes {
                scheme,
                boot_bytes,
                swap_bytes,
                align_bytes: align_mib * MIB,
                ..Wishes::default()
            };
            if let Ok(layout) = divide(device_bytes, block, &wishes, &random) {
                for partition in &layout.table.partitions {
                    prop_assert_eq!(partition.start_bytes % wishes.align_bytes, 0);
                }
                // An MBR that cannot say the place of the last partition refuses instead.
                prop_assert!(
                    table::extents(&layout.table, device_bytes, block).is_ok()
                        || scheme == Scheme::Mbr
                );
            }
        }
    }
}
