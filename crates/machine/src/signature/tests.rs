//! Crafted images of every format, and bytes that are nothing. The comparison with `blkid` on
//! images made by the real tools is among the tests of the guard, which may run programs.

use proptest::prelude::*;

use super::bytes::crc32;
use super::*;

const MIB: usize = 1 << 20;

fn blank() -> Vec<u8> {
    vec![0; 4 * MIB]
}

fn put(image: &mut [u8], at: usize, bytes: &[u8]) {
    image[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Looks through a window that has only the ends, as on a real device.
fn look(image: &[u8]) -> Vec<Signature> {
    sniff(&ends(image))
}

fn ends(image: &[u8]) -> Window<'_> {
    let end = END_BYTES.min(image.len());
    Window::new(image.len() as u64, &image[..end], &image[image.len() - end..])
}

fn names(image: &[u8]) -> Vec<&'static str> {
    look(image).iter().map(|found| found.kind.name()).collect()
}

fn mbr(image: &mut [u8], entries: &[(u8, u32, u32)]) {
    put(image, 440, &0xCAFE_F00D_u32.to_le_bytes());
    for (index, (type_id, first, blocks)) in entries.iter().enumerate() {
        let at = 446 + 16 * index;
        image[at + 4] = *type_id;
        put(image, at + 8, &first.to_le_bytes());
        put(image, at + 12, &blocks.to_le_bytes());
    }
    put(image, 510, &[0x55, 0xAA]);
}

/// A GPT with one partition of sixteen blocks at block 64, both headers.
fn gpt(image: &mut [u8], block: usize) {
    let blocks = image.len() / block;
    mbr(image, &[(0xEE, 1, u32::MAX)]);
    let entry_blocks = 128 * 128 / block;
    let headers = [(1, blocks - 1, 2), (blocks - 1, 1, blocks - 1 - entry_blocks)];
    for (own, other, entries) in headers {
        let table = entries * block;
        put(image, table, &[0xAF; 16]);
        put(image, table + 32, &64_u64.to_le_bytes());
        put(image, table + 40, &79_u64.to_le_bytes());
        put(image, table + 56, b"r\0o\0o\0t\0");
        let mut header = [0_u8; 92];
        put(&mut header, 0, b"EFI PART\0\0\x01\0");
        put(&mut header, 12, &92_u32.to_le_bytes());
        put(&mut header, 24, &(own as u64).to_le_bytes());
        put(&mut header, 32, &(other as u64).to_le_bytes());
        put(&mut header, 56, &[0x11; 16]);
        put(&mut header, 72, &(entries as u64).to_le_bytes());
        put(&mut header, 80, &128_u32.to_le_bytes());
        put(&mut header, 84, &128_u32.to_le_bytes());
        let sum = crc32(&[&header]);
        put(&mut header, 16, &sum.to_le_bytes());
        put(image, own * block, &header);
    }
}

#[test]
fn crc32_has_the_check_value_of_the_standard() {
    assert_eq!(crc32(&[b"1234", b"56789"]), 0xCBF4_3926);
}

#[test]
fn nothing_is_found_in_zeros_and_all_ones() {
    assert_eq!(look(&blank()), []);
    assert_eq!(look(&vec![0xFF; 4 * MIB]), []);
    assert_eq!(look(&[]), []);
    assert_eq!(look(&[0; 511]), []);
}

#[test]
fn an_mbr_is_told_with_its_entries() {
    let mut image = blank();
    mbr(&mut image, &[(0x0C, 2048, 1024), (0x83, 4096, 2048)]);
    let found = look(&image);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, Kind::PartitionTable(Table::Mbr));
    assert_eq!(found[0].uuid.as_deref(), Some("cafef00d"));
    let entries = partitions(&ends(&image));
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1].start_bytes, 4096 * 512);
    assert_eq!(entries[1].size_bytes, 2048 * 512);
    assert_eq!(entries[0].type_id, "0x0c");
    let big_blocks = partitions(&ends(&image).with_logical_block(4096));
    assert_eq!(big_blocks[0].start_bytes, 2048 * 4096);
}

#[test]
fn an_empty_mbr_is_still_one_and_wrong_boot_flags_are_none() {
    let mut image = blank();
    mbr(&mut image, &[]);
    assert_eq!(names(&image), ["MBR"]);
    image[446] = 0x33;
    assert_eq!(names(&image), Vec::<&str>::new());
}

#[test]
fn a_gpt_is_told_at_either_block_size_and_by_either_header() {
    for block in [512, 4096] {
        let mut image = blank();
        gpt(&mut image, block);
        assert_eq!(names(&image), ["GPT"], "both headers, {block}");
        let entries = partitions(&ends(&image));
        assert_eq!(entries.len(), 1, "{block}");
        assert_eq!(entries[0].start_bytes, 64 * block as u64);
        assert_eq!(entries[0].size_bytes, 16 * block as u64);
        assert_eq!(entries[0].name.as_deref(), Some("root"));
        assert_eq!(look(&image)[0].size_bytes, Some(4 * MIB as u64));

        let mut only_backup = image.clone();
        only_backup[..MIB].fill(0);
        assert_eq!(names(&only_backup), ["GPT"], "backup only, {block}");
        assert_eq!(partitions(&ends(&only_backup)), entries);

        let mut damaged = image.clone();
        damaged[block + 57] ^= 1;
        let found = look(&damaged);
        assert_eq!(found[0].offset_bytes, (4 * MIB - block) as u64, "the intact one counts");

        image[..2 * block].fill(0);
        image[3 * MIB..].fill(0);
        assert_eq!(names(&image), Vec::<&str>::new(), "entries alone are no table");
    }
}

#[test]
fn a_protective_mbr_without_its_gpt_is_told_apart() {
    let mut image = blank();
    mbr(&mut image, &[(0xEE, 1, u32::MAX)]);
    assert_eq!(names(&image), ["protective MBR"]);
}

#[test]
fn a_hybrid_mbr_hides_behind_its_gpt_only_when_it_is_protective() {
    let mut image = blank();
    gpt(&mut image, 512);
    image[446 + 4] = 0x0C;
    assert_eq!(names(&image), ["GPT", "MBR"]);
}

/// One case of the table of marks: name and what to put where.
type Mark = (&'static str, Vec<(usize, Vec<u8>)>);

fn marks() -> Vec<Mark> {
    let end = 4 * MIB;
    let md = 0xA92B_4EFC_u32;
    let bytes = |text: &[u8]| text.to_vec();
    let mut table: Vec<Mark> = vec![
        ("btrfs", vec![(65_536 + 0x40, bytes(b"_BHRfS_M"))]),
        ("xfs", vec![(0, bytes(b"XFSB\0\0\x10\0"))]),
        ("f2fs", vec![(1024, 0xF2F5_2010_u32.to_le_bytes().to_vec())]),
        ("exfat", vec![(3, bytes(b"EXFAT   ")), (108, vec![9, 3])]),
        ("ntfs", vec![(3, bytes(b"NTFS    ")), (11, vec![0, 2])]),
        ("squashfs", vec![(0, bytes(b"hsqs")), (28, vec![4, 0])]),
        ("iso9660", vec![(32_769, bytes(b"CD001"))]),
        ("udf", vec![(32_769, bytes(b"BEA01"))]),
        ("erofs", vec![(1024, 0xE0F5_E1E2_u32.to_le_bytes().to_vec()), (1036, vec![12])]),
        ("apfs", vec![(32, bytes(b"NXSB"))]),
        ("hfsplus", vec![(1024, bytes(b"H+\0\x04"))]),
        ("hfsplus", vec![(1024, bytes(b"HX\0\x05"))]),
        ("hfs", vec![(1024, bytes(b"BD")), (1042, vec![1, 0, 0, 0, 2, 0])]),
        ("nilfs2", vec![(1030, vec![0x34, 0x34, 0x00, 0x01])]),
        ("jfs", vec![(32_768, bytes(b"JFS1"))]),
        ("reiserfs", vec![(65_536 + 52, bytes(b"ReIsEr2Fs"))]),
        ("LUKS1", vec![(0, bytes(b"LUKS\xba\xbe\0\x01"))]),
        ("LUKS2", vec![(0, bytes(b"LUKS\xba\xbe\0\x02"))]),
        ("LUKS2", vec![(16_384, bytes(b"SKUL\xba\xbe\0\x02"))]),
        ("BitLocker", vec![(3, bytes(b"-FVE-FS-"))]),
        ("LVM2", vec![(512, bytes(b"LABELONE")), (536, bytes(b"LVM2 001"))]),
        ("md 0.90", vec![(end - 65_536, [md.to_le_bytes(), [0; 4]].concat())]),
        ("md 0.90", vec![(end - 65_536, [md.to_be_bytes(), [0; 4]].concat())]),
        ("md 1.0", vec![(end - 8192, [md.to_le_bytes(), [1, 0, 0, 0]].concat())]),
        ("md 1.1", vec![(0, [md.to_le_bytes(), [1, 0, 0, 0]].concat())]),
        ("md 1.2", vec![(4096, [md.to_le_bytes(), [1, 0, 0, 0]].concat())]),
        ("Intel RAID", vec![(end - 1024, bytes(b"Intel Raid ISM Cfg Sig. 1.3"))]),
        ("zfs", vec![(131_072 + 5 * 1024, 0x00BA_B10C_u64.to_le_bytes().to_vec())]),
        ("zfs", vec![(end - 262_144 + 131_072, 0x00BA_B10C_u64.to_be_bytes().to_vec())]),
        ("DRBD", vec![(end - 4096 + 60, 0x8374_026D_u32.to_be_bytes().to_vec())]),
        ("Ceph BlueStore", vec![(0, bytes(b"bluestore block device\n"))]),
        ("bcache", vec![(4120, uuid_bytes("c68573f6-4e1a-45ca-8265-f57f48ba6d81"))]),
        ("bcachefs", vec![(4120, uuid_bytes("c68573f6-66ce-90a9-d96a-60cf803df7ef"))]),
    ];
    for page in [4096, 8192, 16_384, 65_536] {
        table.push(("swap", vec![(page - 10, bytes(b"SWAPSPACE2"))]));
    }
    table.push(("swap", vec![(4086, bytes(b"S1SUSPEND\0"))]));
    let features = [
        ("ext2", [0_u32, 0x2, 0x3]),
        ("ext3", [0x4, 0x6, 0x3]),
        ("ext4", [0x4, 0x242, 0x7B]),
        ("jbd", [0, 0x8, 0]),
    ];
    for (name, words) in features {
        let words = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        table.push((name, vec![(1080, vec![0x53, 0xEF]), (1024 + 0x5C, words)]));
    }
    table
}

fn uuid_bytes(text: &str) -> Vec<u8> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn every_mark_is_found_and_only_that_one() {
    for (name, pieces) in marks() {
        let mut image = blank();
        for (at, bytes) in pieces {
            put(&mut image, at, &bytes);
        }
        assert_eq!(names(&image), [name]);
    }
}

#[test]
fn a_fat_boot_sector_is_no_mbr_and_its_root_directory_names_it() {
    let mut image = blank();
    put(&mut image, 11, &[0, 2, 4, 4, 0, 2, 0, 2, 0, 32, 0xF8, 16, 0]);
    put(&mut image, 39, &[0x78, 0x56, 0x34, 0x12]);
    put(&mut image, 43, b"NO NAME    FAT16   ");
    put(&mut image, 510, &[0x55, 0xAA]);
    let found = look(&image);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, Kind::Filesystem("vfat"));
    assert_eq!(found[0].uuid.as_deref(), Some("1234-5678"));
    assert_eq!(found[0].label, None);
    assert_eq!(found[0].size_bytes, Some(8192 * 512));
    // Reserved sectors and two tables of sixteen sectors come before the root directory.
    put(&mut image, (4 + 2 * 16) * 512, b"BOOTFS     \x08");
    assert_eq!(look(&image)[0].label.as_deref(), Some("BOOTFS"));
}

#[test]
fn labels_and_uuids_are_those_of_the_format() {
    let mut image = blank();
    put(&mut image, 4086, b"SWAPSPACE2");
    put(&mut image, 1024, &[1, 0, 0, 0, 0xFF, 1, 0, 0]);
    put(&mut image, 1036, &[0xAB; 16]);
    put(&mut image, 1052, b"my\x1bswap\0");
    let found = look(&image);
    assert_eq!(found[0].uuid.as_deref(), Some("abababab-abab-abab-abab-abababababab"));
    assert_eq!(found[0].size_bytes, Some(512 * 4096));
    assert_eq!(found[0].label.as_deref(), Some("my\u{fffd}swap"), "no escape reaches a terminal");
    assert_eq!(found[0].phrase(), "a swap area \"my\u{fffd}swap\"");
}

#[test]
fn wrapping_comes_before_what_may_be_a_remnant() {
    let mut image = blank();
    put(&mut image, 1080, &[0x53, 0xEF]);
    put(&mut image, 4096, &[0xFC, 0x4E, 0x2B, 0xA9, 1, 0, 0, 0]);
    assert_eq!(names(&image), ["md 1.2", "ext2"]);
}

#[test]
fn a_window_has_its_ends_and_nothing_between() {
    let image = blank();
    let window = ends(&image);
    assert!(window.at(MIB as u64 - 4, 4).is_some());
    assert_eq!(window.at(MIB as u64 - 3, 4), None);
    assert!(window.at(3 * MIB as u64, 4).is_some());
    assert_eq!(window.at(4 * MIB as u64 - 3, 4), None);
    assert_eq!(window.at(u64::MAX, 4), None);
    let longer_than_device = Window::new(10, &image, &image);
    assert_eq!(longer_than_device.at(8, 4), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_bytes_never_panic(
        seed in prop::collection::vec(any::<u8>(), 1..4096),
        length in 0_usize..200_000,
        device_bytes in any::<u64>(),
    ) {
        let image: Vec<u8> = seed.iter().copied().cycle().take(length).collect();
        sniff(&Window::whole(&image));
        let window = Window::new(device_bytes.max(length as u64), &image, &image);
        sniff(&window);
        partitions(&window);
    }

    /// The magic stays, everything around it is noise: the readers must survive any field value.
    #[test]
    fn noise_around_a_mark_never_panics(
        index in 0_usize..40,
        noise in prop::collection::vec((0_usize..4 * MIB, any::<[u8; 8]>()), 0..200),
        near in prop::collection::vec((0_usize..512, any::<[u8; 8]>()), 0..64),
    ) {
        let mut image = blank();
        let table = marks();
        let (_, pieces) = &table[index % table.len()];
        let start = pieces[0].0 & !511;
        for (at, bytes) in noise {
            put(&mut image, at.min(4 * MIB - 8), &bytes);
        }
        for (at, bytes) in near {
            put(&mut image, (start + at).min(4 * MIB - 8), &bytes);
        }
        for (at, bytes) in pieces {
            put(&mut image, *at, bytes);
        }
        sniff(&ends(&image));
        partitions(&ends(&image));
    }

    #[test]
    fn noise_in_a_gpt_never_panics(
        noise in prop::collection::vec((0_usize..20_000, any::<u8>()), 0..64),
        block in prop::sample::select(vec![512_usize, 4096]),
    ) {
        let mut image = blank();
        gpt(&mut image, block);
        for (at, byte) in noise {
            image[at] = byte;
        }
        sniff(&ends(&image));
        partitions(&ends(&image));
    }
}

#[test]
fn an_mbr_beside_a_gpt_is_hybrid_where_it_names_the_same_fat_partition_first() {
    const START: u64 = 2048 * 512;
    let disk = |entries: &[(u8, u32)]| {
        let mut bytes = vec![0_u8; 8192];
        bytes[512..520].copy_from_slice(b"EFI PART");
        bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        for (index, (kind, start)) in entries.iter().enumerate() {
            let at = 446 + 16 * index;
            bytes[at + 4] = *kind;
            bytes[at + 8..at + 12].copy_from_slice(&start.to_le_bytes());
            bytes[at + 12..at + 16].copy_from_slice(&1000_u32.to_le_bytes());
        }
        bytes
    };
    let is_hybrid = |entries: &[(u8, u32)]| {
        let bytes = disk(entries);
        has_hybrid_mbr(&Window::new(1 << 30, &bytes, &[]), START)
    };
    assert!(is_hybrid(&[(0x0c, 2048), (0xee, 1)]));
    assert!(!is_hybrid(&[(0xee, 1)]));
    assert!(!is_hybrid(&[(0xee, 1), (0x0c, 2048)]));
    assert!(!is_hybrid(&[(0x0c, 4096), (0xee, 1)]));
    assert!(!is_hybrid(&[(0x83, 2048), (0xee, 1)]));
}
