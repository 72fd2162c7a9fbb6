//! What is on a device, told from its bytes: partition tables, filesystems, swap areas, RAID
//! members, encrypted containers.
//!
//! Sniffing needs the first and the last MiB only ([`Window`]); what lies between is not looked
//! at. A signature is a claim of the bytes, not a proof that the rest is intact: the guard asks
//! before anything is overwritten, so a false alarm costs a question and a miss could cost data.
//! Formats are described where they are read: `tables` (MBR, GPT), `filesystems`, `members`
//! (everything that is a part or a wrapping of something else). Nothing here reads a device.

mod bytes;
mod filesystems;
mod members;
mod tables;

pub use bytes::{Window, all_zero};
pub use bytes::{crc32, uuid_text};
pub use tables::{FoundTable, PartitionEntry, has_hybrid_mbr, partition_table, partitions};

/// How many bytes of each end a [`Window`] should have: every format here has a mark within them.
pub const END_BYTES: usize = 1 << 20;

/// What a signature says that the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A table that divides a disk.
    PartitionTable(Table),
    /// A filesystem, by the name under which it is mounted ("ext4", "vfat", "btrfs").
    Filesystem(&'static str),
    /// A swap area, or a sleeping machine's memory in one.
    Swap,
    /// An encrypted container ("LUKS1", "LUKS2", "BitLocker").
    Encrypted(&'static str),
    /// A member of an array, a volume group or a cache ("md 1.2", "LVM2", "bcache", "zfs").
    Member(&'static str),
}

/// Which partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// The table of the IBM PC, four primary entries.
    Mbr,
    /// An MBR that only says that there is a GPT, which is then missing or damaged.
    ProtectiveMbr,
    /// The GUID partition table, its first or its backup header.
    Gpt,
}

impl Kind {
    /// The name of the format, as short as people say it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::PartitionTable(Table::Mbr) => "MBR",
            Kind::PartitionTable(Table::ProtectiveMbr) => "protective MBR",
            Kind::PartitionTable(Table::Gpt) => "GPT",
            Kind::Filesystem(name) | Kind::Encrypted(name) | Kind::Member(name) => name,
            Kind::Swap => "swap",
        }
    }

    /// What it is, for a sentence: "an ext4 filesystem", "a GPT partition table".
    pub fn phrase(self) -> String {
        match self {
            Kind::PartitionTable(Table::Mbr) => "an MBR partition table".into(),
            Kind::PartitionTable(Table::ProtectiveMbr) => "a protective MBR without its GPT".into(),
            Kind::PartitionTable(Table::Gpt) => "a GPT partition table".into(),
            Kind::Filesystem(name) => format!("{} {name} filesystem", article(name)),
            Kind::Swap => "a swap area".into(),
            Kind::Encrypted(name) => format!("{} {name} encrypted container", article(name)),
            Kind::Member(name) => format!("{} {name} member", article(name)),
        }
    }
}

fn article(name: &str) -> &'static str {
    // By sound, not by spelling: an XFS and an md member, but a UDF.
    const AN: [&str; 13] = [
        "LVM", "apfs", "erofs", "exfat", "ext", "f2fs", "hfs", "iso", "md ", "nilfs", "ntfs",
        "xfs", "ocfs",
    ];
    if AN.iter().any(|start| name.starts_with(start)) { "an" } else { "a" }
}

/// One recognised mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// What it is.
    pub kind: Kind,
    /// Where its magic number begins, in bytes from the start of the device.
    pub offset_bytes: u64,
    /// Its label or name, where it has one and it is not empty.
    pub label: Option<String>,
    /// Its UUID, serial number or GUID in the form that `blkid` prints.
    pub uuid: Option<String>,
    /// The size that it claims for itself, in bytes.
    pub size_bytes: Option<u64>,
}

impl Signature {
    fn new(kind: Kind, offset_bytes: u64) -> Self {
        Signature { kind, offset_bytes, label: None, uuid: None, size_bytes: None }
    }

    fn label(mut self, label: Option<String>) -> Self {
        self.label = label.filter(|text| !text.is_empty());
        self
    }

    fn uuid(mut self, uuid: Option<String>) -> Self {
        self.uuid = uuid.filter(|text| !text.is_empty());
        self
    }

    fn size(mut self, bytes: Option<u64>) -> Self {
        self.size_bytes = bytes.filter(|bytes| *bytes > 0);
        self
    }

    /// For a sentence: `an ext4 filesystem "rootfs"`.
    pub fn phrase(&self) -> String {
        match &self.label {
            Some(label) => format!("{} \"{label}\"", self.kind.phrase()),
            None => self.kind.phrase(),
        }
    }
}

/// Every signature in the window, the most telling first: what wraps or divides the device comes
/// before what could be a remnant inside (a RAID member before the filesystem at the same place,
/// a GPT before its protective MBR).
pub fn sniff(window: &Window<'_>) -> Vec<Signature> {
    let mut found = Vec::new();
    members::sniff(window, &mut found);
    tables::sniff(window, &mut found);
    filesystems::sniff(window, &mut found);
    let mut unique: Vec<Signature> = Vec::new();
    for signature in found {
        if !unique.iter().any(|seen| seen.kind == signature.kind) {
            unique.push(signature);
        }
    }
    unique
}

#[cfg(test)]
mod tests;
