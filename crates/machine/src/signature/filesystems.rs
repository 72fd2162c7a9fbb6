//! Superblocks of filesystems.
//!
//! Offsets are those of each filesystem's own on-disk format; the source is named at each
//! function. Labels and UUIDs are in the form that `blkid` prints, so that a person can compare.

use super::bytes::Window;
use super::{Kind, Signature};

/// Every filesystem that has its own reader here, in no special order.
const READERS: [fn(&Window<'_>) -> Option<Signature>; 15] = [
    ext, btrfs, xfs, f2fs, fat, exfat, ntfs, squashfs, iso9660, erofs, apfs, hfs_plus, hfs, nilfs2,
    jfs,
];

/// Filesystems that are only named: (name, offset, magic bytes).
const NAMED: [(&str, u64, &[u8]); 9] = [
    ("bcachefs", 4096 + 24, BCACHEFS_MAGIC),
    ("cramfs", 0, &[0x45, 0x3D, 0xCD, 0x28]),
    ("gfs2", 65_536, &[0x01, 0x16, 0x19, 0x70, 0, 0, 0, 1]),
    ("ocfs2", 8192, b"OCFSV2"),
    ("refs", 3, b"ReFS\0"),
    ("reiserfs", 65_536 + 52, b"ReIsEr"),
    ("romfs", 0, b"-rom1fs-"),
    ("ubifs", 0, &[0x31, 0x18, 0x10, 0x06]),
    ("udf", 32_769, b"BEA01"),
];

/// Source: bcachefs, libbcachefs/bcachefs_format.h. Before 2023 it used that of bcache.
const BCACHEFS_MAGIC: &[u8] = &[
    0xC6, 0x85, 0x73, 0xF6, 0x66, 0xCE, 0x90, 0xA9, 0xD9, 0x6A, 0x60, 0xCF, 0x80, 0x3D, 0xF7, 0xEF,
];

pub(super) fn sniff(window: &Window<'_>, found: &mut Vec<Signature>) {
    found.extend(READERS.iter().filter_map(|reader| reader(window)));
    for (name, offset, magic) in NAMED {
        if window.is(offset, magic) {
            found.push(Signature::new(Kind::Filesystem(name), offset));
        }
    }
}

/// Whether sector 0 is the boot sector of a filesystem rather than an MBR.
pub(super) fn is_boot_sector(window: &Window<'_>) -> bool {
    fat(window).is_some() || exfat(window).is_some() || ntfs(window).is_some()
}

/// ext2, ext3, ext4. Source: Linux, Documentation/filesystems/ext4/super.rst. Which of the three
/// it is follows from the features: a journal makes ext3, anything that ext3 did not have ext4.
fn ext(window: &Window<'_>) -> Option<Signature> {
    const SUPER: u64 = 1024;
    const HAS_JOURNAL: u32 = 0x4;
    const JOURNAL_DEVICE: u32 = 0x8;
    const SIXTY_FOUR_BIT: u32 = 0x80;
    // filetype, recover, meta_bg; sparse_super, large_file, btree_dir.
    const EXT3_INCOMPATIBLE: u32 = 0x2 | 0x4 | 0x10;
    const EXT3_READ_ONLY: u32 = 0x1 | 0x2 | 0x4;
    if !window.is(SUPER + 0x38, &[0x53, 0xEF]) {
        return None;
    }
    let compatible = window.le32(SUPER + 0x5C)?;
    let incompatible = window.le32(SUPER + 0x60)?;
    let read_only = window.le32(SUPER + 0x64)?;
    let log_block = window.le32(SUPER + 0x18)?;
    // 64 KiB is the largest block; beyond it two bytes of magic were a coincidence.
    if log_block > 6 {
        return None;
    }
    let newer = incompatible & !EXT3_INCOMPATIBLE != 0 || read_only & !EXT3_READ_ONLY != 0;
    let name = match (newer, compatible & HAS_JOURNAL != 0) {
        _ if incompatible & JOURNAL_DEVICE != 0 => "jbd",
        (true, _) => "ext4",
        (false, true) => "ext3",
        (false, false) => "ext2",
    };
    let mut blocks = u64::from(window.le32(SUPER + 0x4)?);
    if incompatible & SIXTY_FOUR_BIT != 0 {
        blocks |= u64::from(window.le32(SUPER + 0x150)?) << 32;
    }
    Some(
        Signature::new(Kind::Filesystem(name), SUPER + 0x38)
            .label(window.text(SUPER + 0x78, 16))
            .uuid(window.uuid(SUPER + 0x68))
            .size(blocks.checked_mul(1024 << log_block)),
    )
}

/// btrfs. Source: btrfs documentation, "On-disk format", superblock. The size is that of the whole
/// filesystem, which may span several devices.
fn btrfs(window: &Window<'_>) -> Option<Signature> {
    const SUPER: u64 = 64 * 1024;
    window.is(SUPER + 0x40, b"_BHRfS_M").then(|| {
        Signature::new(Kind::Filesystem("btrfs"), SUPER + 0x40)
            .label(window.text(SUPER + 0x12B, 256))
            .uuid(window.uuid(SUPER + 0x20))
            .size(window.le64(SUPER + 0x70))
    })
}

/// XFS. Source: XFS Algorithms & Data Structures, "Superblocks". Big-endian.
fn xfs(window: &Window<'_>) -> Option<Signature> {
    if !window.is(0, b"XFSB") {
        return None;
    }
    let block = window.be32(4)?;
    let size = window.be64(8)?.checked_mul(u64::from(block));
    (512..=65_536).contains(&block).then(|| {
        Signature::new(Kind::Filesystem("xfs"), 0)
            .label(window.text(108, 12))
            .uuid(window.uuid(32))
            .size(size)
    })
}

/// F2FS. Source: Linux, include/linux/f2fs_fs.h, `struct f2fs_super_block`.
fn f2fs(window: &Window<'_>) -> Option<Signature> {
    const SUPER: u64 = 1024;
    if window.le32(SUPER)? != 0xF2F5_2010 {
        return None;
    }
    let log_block = window.le32(SUPER + 16)?;
    let blocks = window.le64(SUPER + 36)?;
    Some(
        Signature::new(Kind::Filesystem("f2fs"), SUPER)
            .label(window.text_utf16(SUPER + 124, 512))
            .uuid(window.uuid(SUPER + 108))
            .size(1_u64.checked_shl(log_block).and_then(|b| b.checked_mul(blocks))),
    )
}

/// FAT12, FAT16, FAT32. Source: Microsoft FAT specification, 30 August 2005. The label in the root
/// directory counts before the one in the boot sector, when the directory is in the window.
fn fat(window: &Window<'_>) -> Option<Signature> {
    let boot = FatBoot::read(window)?;
    let (label_at, serial_at) = if boot.is_fat32 { (71, 67) } else { (43, 39) };
    let label = boot
        .root_label(window)
        .or_else(|| window.text(label_at, 11))
        .filter(|label| label != "NO NAME");
    let serial = window.le32(serial_at).filter(|serial| *serial != 0);
    Some(
        Signature::new(Kind::Filesystem("vfat"), if boot.is_fat32 { 82 } else { 54 })
            .label(label)
            .uuid(serial.map(|s| format!("{:04X}-{:04X}", s >> 16, s & 0xFFFF)))
            .size(u64::from(boot.sectors).checked_mul(boot.sector_bytes)),
    )
}

struct FatBoot {
    is_fat32: bool,
    sector_bytes: u64,
    sectors: u32,
    /// Where the root directory begins, and how long its first piece is.
    root_at: u64,
    root_bytes: u64,
}

impl FatBoot {
    fn read(window: &Window<'_>) -> Option<FatBoot> {
        let is_fat32 = window.is(82, b"FAT32   ");
        let old = [b"FAT12   ", b"FAT16   ", b"FAT     "];
        let is_old = old.iter().any(|magic| window.is(54, *magic));
        if !is_fat32 && !is_old || !window.is(510, &[0x55, 0xAA]) {
            return None;
        }
        let sector_bytes = u64::from(window.le16(11)?);
        let cluster_sectors = u64::from(window.u8(13)?);
        let reserved = u64::from(window.le16(14)?);
        let fats = u64::from(window.u8(16)?);
        let plausible = sector_bytes.is_power_of_two()
            && (512..=4096).contains(&sector_bytes)
            && cluster_sectors.is_power_of_two()
            && reserved > 0
            && fats > 0;
        if !plausible {
            return None;
        }
        let few = u32::from(window.le16(19)?);
        let sectors = if few == 0 { window.le32(32)? } else { few };
        let (fat_sectors, root_bytes) = if is_fat32 {
            (u64::from(window.le32(36)?), cluster_sectors * sector_bytes)
        } else {
            (u64::from(window.le16(22)?), 32 * u64::from(window.le16(17)?))
        };
        let mut root_at = (reserved + fats * fat_sectors) * sector_bytes;
        if is_fat32 {
            let cluster = u64::from(window.le32(44)?).checked_sub(2)?;
            root_at += cluster * cluster_sectors * sector_bytes;
        }
        Some(FatBoot { is_fat32, sector_bytes, sectors, root_at, root_bytes })
    }

    fn root_label(&self, window: &Window<'_>) -> Option<String> {
        const VOLUME: u8 = 0x08;
        const LONG_NAME: u8 = 0x0F;
        for index in 0..self.root_bytes / 32 {
            let entry = window.at(self.root_at + 32 * index, 32)?;
            match (entry[0], entry[11]) {
                (0, _) => return None,
                (0xE5, _) | (_, LONG_NAME) => {}
                (_, attributes) if attributes & VOLUME != 0 => {
                    return Some(super::bytes::text(&entry[..11]));
                }
                _ => {}
            }
        }
        None
    }
}

/// exFAT. Source: Microsoft exFAT file system specification, "Main boot sector".
fn exfat(window: &Window<'_>) -> Option<Signature> {
    if !window.is(3, b"EXFAT   ") {
        return None;
    }
    let sector_shift = u32::from(window.u8(108)?);
    let cluster_shift = sector_shift + u32::from(window.u8(109)?);
    let sector_bytes = 1_u64.checked_shl(sector_shift)?;
    let heap = u64::from(window.le32(88)?).checked_mul(sector_bytes)?;
    let root = u64::from(window.le32(96)?)
        .checked_sub(2)
        .and_then(|cluster| cluster.checked_mul(1_u64.checked_shl(cluster_shift)?))
        .and_then(|bytes| bytes.checked_add(heap));
    let serial = window.le32(100)?;
    Some(
        Signature::new(Kind::Filesystem("exfat"), 3)
            .label(root.and_then(|root| exfat_label(window, root)))
            .uuid(Some(format!("{:04X}-{:04X}", serial >> 16, serial & 0xFFFF)))
            .size(window.le64(72)?.checked_mul(sector_bytes)),
    )
}

fn exfat_label(window: &Window<'_>, root: u64) -> Option<String> {
    const LABEL_ENTRY: u8 = 0x83;
    for index in 0..256 {
        let at = root.checked_add(32 * index)?;
        match window.u8(at)? {
            0 => return None,
            LABEL_ENTRY => {
                let units = usize::from(window.u8(at + 1)?).min(11);
                return window.text_utf16(at + 2, units);
            }
            _ => {}
        }
    }
    None
}

/// NTFS. Source: the boot sector as in Linux, fs/ntfs3/ntfs.h, `struct NTFS_BOOT`. The label lives
/// in the file `$Volume` and is not read.
fn ntfs(window: &Window<'_>) -> Option<Signature> {
    if !window.is(3, b"NTFS    ") {
        return None;
    }
    let sector_bytes = u64::from(window.le16(11)?);
    let serial = window.le64(72)?;
    (sector_bytes >= 256 && sector_bytes.is_power_of_two()).then(|| {
        Signature::new(Kind::Filesystem("ntfs"), 3)
            .uuid(Some(format!("{serial:016X}")))
            .size(window.le64(40).and_then(|n| n.checked_mul(sector_bytes)))
    })
}

/// SquashFS, version 4 in either byte order and the older ones by name only. Source: Linux,
/// fs/squashfs/squashfs_fs.h.
fn squashfs(window: &Window<'_>) -> Option<Signature> {
    if !window.is(0, b"hsqs") && !window.is(0, b"sqsh") {
        return None;
    }
    let is_version_4 = window.is(0, b"hsqs") && window.le16(28) == Some(4);
    Some(
        Signature::new(Kind::Filesystem("squashfs"), 0)
            .size(window.le64(40).filter(|_| is_version_4)),
    )
}

/// ISO 9660. Source: ECMA-119, primary volume descriptor. The UUID is the date of the last change,
/// or of the creation, as `blkid` prints it.
fn iso9660(window: &Window<'_>) -> Option<Signature> {
    const DESCRIPTOR: u64 = 32_768;
    if !window.is(DESCRIPTOR + 1, b"CD001") {
        return None;
    }
    let date = |offset: u64| {
        let digits = window.at(DESCRIPTOR + offset, 16)?;
        let is_date = digits.iter().all(u8::is_ascii_digit) && digits.iter().any(|d| *d != b'0');
        let text = std::str::from_utf8(digits).ok().filter(|_| is_date)?;
        let parts = [
            &text[0..4],
            &text[4..6],
            &text[6..8],
            &text[8..10],
            &text[10..12],
            &text[12..14],
            &text[14..16],
        ];
        Some(parts.join("-"))
    };
    Some(
        Signature::new(Kind::Filesystem("iso9660"), DESCRIPTOR + 1)
            .label(window.text(DESCRIPTOR + 40, 32))
            .uuid(date(830).or_else(|| date(813)))
            .size(window.le32(DESCRIPTOR + 80).map(|blocks| u64::from(blocks) * 2048)),
    )
}

/// EROFS. Source: Linux, fs/erofs/erofs_fs.h.
fn erofs(window: &Window<'_>) -> Option<Signature> {
    const SUPER: u64 = 1024;
    if window.le32(SUPER)? != 0xE0F5_E1E2 {
        return None;
    }
    let block = 1_u64.checked_shl(u32::from(window.u8(SUPER + 12)?))?;
    Some(
        Signature::new(Kind::Filesystem("erofs"), SUPER)
            .label(window.text(SUPER + 64, 16))
            .uuid(window.uuid(SUPER + 48))
            .size(u64::from(window.le32(SUPER + 36)?).checked_mul(block)),
    )
}

/// APFS container. Source: Apple File System Reference, `nx_superblock_t`.
fn apfs(window: &Window<'_>) -> Option<Signature> {
    window.is(32, b"NXSB").then(|| {
        let size = window
            .le64(40)
            .zip(window.le32(36))
            .and_then(|(blocks, bytes)| blocks.checked_mul(u64::from(bytes)));
        Signature::new(Kind::Filesystem("apfs"), 32).uuid(window.uuid(72)).size(size)
    })
}

/// HFS+ and its case-sensitive variant. Source: Apple Technical Note TN1150, volume header.
fn hfs_plus(window: &Window<'_>) -> Option<Signature> {
    const HEADER: u64 = 1024;
    let version = window.be16(HEADER + 2)?;
    let plus = window.is(HEADER, b"H+") && version == 4;
    let sensitive = window.is(HEADER, b"HX") && version == 5;
    if !plus && !sensitive {
        return None;
    }
    let size =
        u64::from(window.be32(HEADER + 44)?).checked_mul(u64::from(window.be32(HEADER + 40)?));
    Some(Signature::new(Kind::Filesystem("hfsplus"), HEADER).size(size))
}

/// HFS, the older one. Source: Inside Macintosh: Files, "Master directory blocks". Two letters are
/// a weak mark: the size of an allocation block must fit as well.
fn hfs(window: &Window<'_>) -> Option<Signature> {
    const BLOCK: u64 = 1024;
    let block_bytes = window.be32(BLOCK + 20)?;
    let blocks = window.be16(BLOCK + 18)?;
    let is_hfs = window.is(BLOCK, b"BD") && block_bytes != 0 && block_bytes % 512 == 0;
    (is_hfs && blocks != 0).then(|| Signature::new(Kind::Filesystem("hfs"), BLOCK))
}

/// NILFS2. Source: Linux, include/uapi/linux/nilfs2_ondisk.h.
fn nilfs2(window: &Window<'_>) -> Option<Signature> {
    const SUPER: u64 = 1024;
    window.is(SUPER + 6, &[0x34, 0x34]).then_some(())?;
    // Two bytes are a weak mark: the superblock's own length must fit as well.
    let own_bytes = window.le16(SUPER + 8)?;
    (32..=1024).contains(&own_bytes).then(|| {
        Signature::new(Kind::Filesystem("nilfs2"), SUPER + 6)
            .label(window.text(SUPER + 168, 80))
            .uuid(window.uuid(SUPER + 152))
            .size(window.le64(SUPER + 32))
    })
}

/// JFS. Source: Linux, fs/jfs/jfs_superblock.h.
fn jfs(window: &Window<'_>) -> Option<Signature> {
    const SUPER: u64 = 32_768;
    window.is(SUPER, b"JFS1").then(|| {
        Signature::new(Kind::Filesystem("jfs"), SUPER)
            .label(window.text(SUPER + 152, 16))
            .uuid(window.uuid(SUPER + 136))
    })
}
