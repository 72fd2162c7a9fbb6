//! Signatures of what wraps or joins devices: swap areas, encrypted containers, RAID members,
//! volume groups, caches, storage pools.

use super::bytes::Window;
use super::{Kind, Signature};

const READERS: [fn(&Window<'_>) -> Option<Signature>; 8] =
    [md_0_90, md_1, luks, lvm, zfs, bcache, drbd, swap];

/// What is only named: (kind, offset, magic bytes).
const NAMED: [(Kind, u64, &[u8]); 5] = [
    (Kind::Encrypted("BitLocker"), 3, b"-FVE-FS-"),
    (Kind::Member("Ceph BlueStore"), 0, b"bluestore block device"),
    (Kind::Member("Stratis"), 512 + 4, STRATIS_MAGIC),
    (Kind::Member("Stratis"), 9 * 512 + 4, STRATIS_MAGIC),
    (Kind::Member("LVM1"), 0, b"HM\x01\0"),
];

/// The same, at a distance before the end: metadata of mainboard and controller RAID.
const NAMED_FROM_END: [(Kind, u64, &[u8]); 2] = [
    (Kind::Member("Intel RAID"), 1024, b"Intel Raid ISM Cfg Sig. "),
    (Kind::Member("DDF RAID"), 512, &[0xDE, 0x11, 0xDE, 0x11]),
];

const STRATIS_MAGIC: &[u8] = b"!Stra0tis\x86\xff\x02^\x41rh";

pub(super) fn sniff(window: &Window<'_>, found: &mut Vec<Signature>) {
    found.extend(READERS.iter().filter_map(|reader| reader(window)));
    for (kind, offset, magic) in NAMED {
        if window.is(offset, magic) {
            found.push(Signature::new(kind, offset));
        }
    }
    for (kind, before_end, magic) in NAMED_FROM_END {
        match window.device_bytes().checked_sub(before_end) {
            Some(offset) if window.is(offset, magic) => found.push(Signature::new(kind, offset)),
            _ => {}
        }
    }
}

const MD_MAGIC: u32 = 0xA92B_4EFC;

/// Linux software RAID, format 0.90: the last aligned 64 KiB of the device, in the byte order of
/// the machine that made it. Source: Linux, include/uapi/linux/raid/md_p.h.
fn md_0_90(window: &Window<'_>) -> Option<Signature> {
    const RESERVED: u64 = 64 * 1024;
    let at = (window.device_bytes() & !(RESERVED - 1)).checked_sub(RESERVED)?;
    let little = window.le32(at)? == MD_MAGIC;
    if !little && window.be32(at)? != MD_MAGIC {
        return None;
    }
    let word = |index: u64| {
        let value = window.le32(at + 4 * index)?;
        Some(if little { value } else { value.swap_bytes() })
    };
    // Major version 0; a 1.x superblock can lie at the same place.
    if word(1)? != 0 {
        return None;
    }
    let set = [word(5)?, word(13)?, word(14)?, word(15)?];
    let bytes: Vec<u8> = set.iter().flat_map(|word| word.to_be_bytes()).collect();
    Some(
        Signature::new(Kind::Member("md 0.90"), at)
            .uuid(Some(super::bytes::uuid_text(&bytes)))
            .size(word(8).map(|kib| u64::from(kib) * 1024)),
    )
}

/// Linux software RAID, format 1: near the end (1.0), at the start (1.1) or 4 KiB behind it (1.2).
/// Source: Linux, include/uapi/linux/raid/md_p.h, `struct mdp_superblock_1`.
fn md_1(window: &Window<'_>) -> Option<Signature> {
    // At least 8 KiB and at most 12 KiB before the end, aligned to 4 KiB.
    let near_end = (window.device_bytes() / 512).checked_sub(16).map(|sector| (sector & !7) * 512);
    let places = [("md 1.0", near_end), ("md 1.1", Some(0)), ("md 1.2", Some(4096))];
    places.into_iter().find_map(|(name, at)| {
        let at = at?;
        if window.le32(at)? != MD_MAGIC || window.le32(at + 4)? != 1 {
            return None;
        }
        let size = window.le64(at + 80).and_then(|n| n.checked_mul(512));
        Some(
            Signature::new(Kind::Member(name), at)
                .label(window.text(at + 32, 32))
                .uuid(window.uuid(at + 16))
                .size(size),
        )
    })
}

/// LUKS. Source: LUKS1 On-Disk Format Specification 1.2.3; LUKS2 On-Disk Format Specification
/// 1.1. The second header of LUKS2 is found where the first was overwritten.
fn luks(window: &Window<'_>) -> Option<Signature> {
    const FIRST: &[u8] = b"LUKS\xba\xbe";
    const SECOND: &[u8] = b"SKUL\xba\xbe";
    let second = (14..=22).map(|shift| 1_u64 << shift);
    let at = if window.is(0, FIRST) {
        0
    } else {
        second.into_iter().find(|at| window.is(*at, SECOND))?
    };
    let (name, label) = match window.be16(at + 6)? {
        1 => ("LUKS1", None),
        2 => ("LUKS2", window.text(at + 24, 48)),
        _ => ("LUKS", None),
    };
    Some(Signature::new(Kind::Encrypted(name), at).label(label).uuid(window.text(at + 168, 40)))
}

/// LVM physical volume: its label is in one of the first four sectors. Source: LVM2,
/// lib/format_text/layout.h and lib/label/label.h.
fn lvm(window: &Window<'_>) -> Option<Signature> {
    let at = (0..4)
        .map(|sector| sector * 512)
        .find(|at| window.is(*at, b"LABELONE") && window.is(at + 24, b"LVM2 001"))?;
    let header = at.checked_add(u64::from(window.le32(at + 20)?))?;
    let uuid = window.text(header, 32).filter(|text| text.is_ascii() && text.len() == 32);
    let grouped = uuid.map(|text| {
        let cuts = [0, 6, 10, 14, 18, 22, 26, 32];
        let groups: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
        groups.join("-")
    });
    Some(Signature::new(Kind::Member("LVM2"), at).uuid(grouped).size(window.le64(header + 32)))
}

/// ZFS: four labels of 256 KiB, two at each end, each with a ring of uberblocks in its second
/// half. Source: ZFS On-Disk Specification, chapter 1.
fn zfs(window: &Window<'_>) -> Option<Signature> {
    const LABEL: u64 = 256 * 1024;
    const UBERBLOCK: u64 = 0x00BA_B10C;
    let end = window.device_bytes() & !(LABEL - 1);
    let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
    labels.into_iter().flatten().find_map(|label| {
        let at = (0..128).map(|slot| label + LABEL / 2 + slot * 1024).find(|at| {
            window.le64(*at) == Some(UBERBLOCK) || window.be64(*at) == Some(UBERBLOCK)
        })?;
        Some(Signature::new(Kind::Member("zfs"), at).label(zfs_pool_name(window, label)))
    })
}

/// The pool's name from the label's list of names and values, which is in XDR: a string is its
/// length, its bytes, and zeros up to a multiple of four. Only the pair "name" of type string
/// (9) with one element is looked for.
fn zfs_pool_name(window: &Window<'_>, label: u64) -> Option<String> {
    let list = window.at(label + 16 * 1024, 112 * 1024)?;
    let pair = b"\0\0\0\x04name\0\0\0\x09\0\0\0\x01";
    let at = list.windows(pair.len()).position(|bytes| bytes == pair)? + pair.len();
    let length = list.get(at..at + 4)?;
    let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
    let name = list.get(at + 4..(at + 4).checked_add(length.min(256))?)?;
    Some(super::bytes::text(name))
}

/// bcache, backing or caching device. Source: Linux, drivers/md/bcache/bcache_ondisk.h.
fn bcache(window: &Window<'_>) -> Option<Signature> {
    const SUPER: u64 = 4096;
    const MAGIC: &[u8] = &[
        0xC6, 0x85, 0x73, 0xF6, 0x4E, 0x1A, 0x45, 0xCA, 0x82, 0x65, 0xF5, 0x7F, 0x48, 0xBA, 0x6D,
        0x81,
    ];
    window.is(SUPER + 24, MAGIC).then(|| {
        Signature::new(Kind::Member("bcache"), SUPER + 24)
            .label(window.text(SUPER + 72, 32))
            .uuid(window.uuid(SUPER + 40))
    })
}

/// DRBD with internal metadata, in the last 4 KiB. Source: DRBD, drbd-headers/linux/drbd.h.
fn drbd(window: &Window<'_>) -> Option<Signature> {
    const MAGIC_8: u32 = 0x8374_026B;
    const MAGIC_8_4: u32 = 0x8374_026C;
    const MAGIC_9: u32 = 0x8374_026D;
    let at = (window.device_bytes() & !4095).checked_sub(4096)?;
    let magic = window.be32(at + 60)?;
    [MAGIC_8, MAGIC_8_4, MAGIC_9]
        .contains(&magic)
        .then(|| Signature::new(Kind::Member("DRBD"), at + 60))
}

/// A swap area, or the image of a sleeping machine in one. The mark is at the end of the first
/// page, and the page's size depends on the machine. Source: Linux, include/linux/swap.h,
/// `union swap_header`; kernel/power/swap.c and the older suspend programs for the others.
fn swap(window: &Window<'_>) -> Option<Signature> {
    const HEADER: u64 = 1024;
    const MARKS: [&[u8]; 7] = [
        b"SWAPSPACE2",
        b"SWAP-SPACE",
        b"S1SUSPEND\0",
        b"S2SUSPEND\0",
        b"ULSUSPEND\0",
        b"LINHIB0001",
        b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c",
    ];
    for page in [4096_u64, 8192, 16_384, 32_768, 65_536] {
        let at = page - 10;
        if !MARKS.iter().any(|mark| window.is(at, mark)) {
            continue;
        }
        // Version 1 is the only one with a header worth reading, in either byte order.
        let last_page = match (window.le32(HEADER), window.be32(HEADER)) {
            (Some(1), _) => window.le32(HEADER + 4),
            (_, Some(1)) => window.be32(HEADER + 4),
            _ => None,
        };
        return Some(
            Signature::new(Kind::Swap, at)
                .label(window.text(HEADER + 28, 16).filter(|_| last_page.is_some()))
                .uuid(window.uuid(HEADER + 12).filter(|_| last_page.is_some()))
                .size(last_page.map(|last| (u64::from(last) + 1) * page)),
        );
    }
    None
}
