//! A partition table as bytes at their places, and why one cannot be on a disk.

/// Bytes that belong at a place of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where, a multiple of the logical block.
    pub offset_bytes: u64,
    /// What, a multiple of the logical block long.
    pub bytes: Vec<u8>,
}

/// Why a table cannot be on a disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// There is nothing in it.
    #[error("the partition table has no partition")]
    Empty,
    /// A number that the kind of table does not have, or one twice, or not in ascending order.
    #[error(
        "partition number {number} cannot follow; this table has 1 to {most}, each once, in order"
    )]
    BadNumber {
        number: u32,
        /// The largest one.
        most: u32,
    },
    /// Start or size are no multiple of the logical block, or the size is zero.
    #[error("partition {number} is not made of whole blocks of {block_bytes} bytes")]
    Uneven {
        /// The partition's number.
        number: u32,
        /// The disk's logical block.
        block_bytes: u32,
    },
    /// It covers the one before, the table itself, or what is beyond the disk.
    #[error(
        "partition {number} from byte {start_bytes} to {end_bytes} does not lie between {first_bytes} and {last_bytes}"
    )]
    OutOfPlace {
        /// The partition's number.
        number: u32,
        /// Where it begins.
        start_bytes: u64,
        /// Where it ends.
        end_bytes: u64,
        /// Where it may begin.
        first_bytes: u64,
        /// Where it must end.
        last_bytes: u64,
    },
    /// An MBR counts blocks in 32 bits.
    #[error(
        "partition {number} is beyond what an MBR can say (2 TiB with blocks of 512 bytes): use a GPT"
    )]
    BeyondMbr {
        /// The partition's number.
        number: u32,
    },
    /// An identifier has not the form that this table needs.
    #[error("{what} cannot be '{text}'")]
    BadIdentifier {
        /// The identifier in words: "the PARTUUID of partition 2".
        what: String,
        /// What was asked for.
        text: String,
    },
    /// Not a logical block.
    #[error("a disk cannot have logical blocks of {0} bytes")]
    BadBlock(u32),
}
