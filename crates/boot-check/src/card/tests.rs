//! The readers on filesystems that real tools made, whole and damaged.

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use proptest::prelude::*;
use rubus_boot::chain::{Outcome, Stage, StartChain};

use super::*;
use crate::start::{CardParts, of_card};

const CARD: &[u8] = include_bytes!("fixtures/card.img.gz");
const FAT32: &[u8] = include_bytes!("fixtures/fat32-first-mib.gz");
const EXT2: &[u8] = include_bytes!("fixtures/ext2.img.gz");
const BTRFS: &[u8] = include_bytes!("fixtures/btrfs.img.gz");
const BTRFS_LZO: &[u8] = include_bytes!("fixtures/btrfs-lzo.img.gz");
const MIB: usize = 1 << 20;

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).expect("a fixture");
    bytes
}

fn numbers() -> String {
    (1..=4000).map(|number| format!("{number}\n")).collect()
}

fn text(files: &dyn Files, path: &str) -> String {
    let bytes = files.read_prefix(Path::new(path), MIB).expect("a file");
    String::from_utf8(bytes).expect("a text")
}

fn chain(image: &dyn Bytes, board: &str) -> Result<StartChain, String> {
    let card = Card::open(image)?;
    Ok(of_card(&CardParts::of("card.img", &card)?, Some(board)).chain)
}

#[test]
fn the_card_starts_in_the_boards_that_it_is_for_and_is_not_written() {
    let image = unpacked(CARD);
    let before = image.clone();
    for board in ["pi3", "pi4"] {
        let chain = chain(&image, board).expect("it is one");
        assert_eq!(chain.outcome(), Outcome::Starts, "{board}: {:?}", chain.deciding());
    }
    let chain = chain(&image, "pi5").expect("it is one");
    assert_eq!(chain.outcome(), Outcome::StopsAt(Stage::Kernel));
    assert!(image == before, "the bytes of the image are as they were");
}

#[test]
fn fat_is_read_by_long_and_short_names_of_any_case() {
    let image = unpacked(CARD);
    let card = Card::open(&image).expect("it opens");
    let mut fat32 = unpacked(FAT32);
    fat32.resize(40 * MIB, 0);
    let fat32 = Fat::open(Span::new(&fat32, 0, u64::MAX)).map(|fat| {
        check_boot_files(&CardFiles(fat), 11);
    });
    assert_eq!(fat32, Ok(()));
    check_boot_files(&*card.files(&card.partitions[0]).expect("FAT16"), 12);
}

fn check_boot_files(files: &dyn Files, count: usize) {
    let names = files.list(Path::new("/")).expect("a directory");
    assert!(names.contains(&"bcm2711-rpi-4-b.dtb".to_string()), "{names:?}");
    assert!(names.contains(&"initramfs8".to_string()) && names.len() == count, "{names:?}");
    assert_eq!(text(files, "/CONFIG.TXT"), "arm_64bit=1\nauto_initramfs=1\n");
    let overlay = text(files, "/overlays/A-long-name-of-an-overlay.dtbo");
    assert_eq!(overlay, "overlays/a-long-name-of-an-overlay.dtbo\n");
    let kernel = files.read_prefix(Path::new("/kernel8.img"), MIB).expect("a file");
    assert_eq!(kernel.len(), 6055);
    assert_eq!(files.read_prefix(Path::new("/kernel8.img"), 7).map(|bytes| bytes.len()), Ok(7));
    assert_eq!(files.read_prefix(Path::new("/none"), 7), Err(ReadError::Absent));
}

#[test]
fn ext4_and_ext2_are_read_through_extents_blocks_and_links() {
    let image = unpacked(CARD);
    let card = Card::open(&image).expect("it opens");
    check_root(&*card.files(&card.partitions[1]).expect("ext4"));
    let ext2 = unpacked(EXT2);
    check_root(&CardFiles(Ext4::open(Span::new(&ext2, 0, u64::MAX)).expect("ext2")));
}

fn check_root(files: &dyn Files) {
    assert_eq!(text(files, "/etc/numbers"), numbers());
    assert_eq!(text(files, "/table"), text(files, "/etc/fstab"));
    assert!(text(files, "/sbin/init").starts_with("\u{7f}ELF"));
    assert!(files.exists(Path::new("/sbin/../lib/systemd")));
    assert!(!files.exists(Path::new("/a")), "a link to nothing");
    assert_eq!(files.mode(Path::new("/a")), Ok(0o777));
    assert_eq!(files.mode(Path::new("/etc")), Ok(0o755));
    assert_eq!(files.mode(Path::new("/none")), Err(ReadError::Absent));
    let modules = files.list(Path::new("/lib/modules"));
    assert_eq!(modules, Ok(vec!["6.12.47+rpt-rpi-v8".to_string()]));
}

#[test]
fn the_subvolumes_of_a_btrfs_and_their_files_are_read() {
    let image = unpacked(BTRFS);
    let btrfs = Btrfs::open(Span::new(&image, 0, u64::MAX)).expect("btrfs");
    let all = btrfs.subvolumes().expect("subvolumes");
    let paths: Vec<&str> = all.by_path.keys().map(String::as_str).collect();
    assert_eq!(paths, ["@", "@home", "snapshots/old/@1"]);
    assert_eq!(all.path_of(all.default), Some("@"));
    let root = btrfs.files(all.default).expect("files");
    assert_eq!(text(&*root, "/etc/numbers"), numbers());
    assert_eq!(text(&*root, "/etc/zlib"), numbers());
    assert!(text(&*root, "/etc/small").ends_with("\n199\n200\n"));
    assert_eq!(root.read_prefix(Path::new("/etc/numbers"), 5), Ok(b"1\n2\n3".to_vec()));
    assert!(text(&*root, "/sbin/init").starts_with("\u{7f}ELF"));
    assert_eq!(root.read_prefix(Path::new("/none"), 5), Err(ReadError::Absent));
    let top = btrfs.files(5).expect("the top");
    assert!(text(&*top, "/topfile").ends_with("9000\n"));
    assert_eq!(text(&*top, "/@/etc/zlib"), numbers());
    assert_eq!(top.list(Path::new("/@home")), Ok(Vec::new()));
    assert!(btrfs.files(999).is_err());
}

/// Bytes that no method makes smaller.
fn noise() -> Vec<u8> {
    let next = |last: &u32| Some(last.wrapping_mul(1_103_515_245).wrapping_add(12_345));
    let numbers = std::iter::successors(Some(1), next).skip(1);
    numbers.take(9000).map(|number| number.to_be_bytes()[1]).collect()
}

#[test]
fn files_that_are_compressed_with_lzo_are_read() {
    let image = unpacked(BTRFS_LZO);
    let btrfs = Btrfs::open(Span::new(&image, 0, u64::MAX)).expect("btrfs");
    let top = btrfs.files(5).expect("the top");
    assert_eq!(text(&*top, "/numbers"), numbers());
    assert!(text(&*top, "/small").ends_with("\n199\n200\n"));
    let few: String = (1..=3000).map(|number| format!("{number}\n")).collect();
    let mixed =
        [few.as_bytes(), &noise(), &[0; 20_000], few.as_bytes(), &b"abcabcabd".repeat(6000)];
    assert_eq!(top.read_prefix(Path::new("/mixed"), MIB), Ok(mixed.concat()));
    assert_eq!(top.read_prefix(Path::new("/mixed"), 15_000), Ok(mixed.concat()[..15_000].to_vec()));
}

#[test]
fn a_btrfs_of_several_devices_says_how_many() {
    let mut image = unpacked(BTRFS);
    image[(64 << 10) + 136] = 2;
    let found = Btrfs::open(Span::new(&image, 0, u64::MAX));
    let why = found.err().expect("it is not read").to_string();
    assert_eq!(why, "this btrfs lies on 2 devices, and only one was given");
}

#[test]
fn an_image_that_is_cut_or_none_says_so() {
    let image = unpacked(CARD);
    let why = chain(&image[..5 * MIB].to_vec(), "pi4").expect_err("it is cut");
    assert!(why.contains("ends before its partition 2 does"), "{why}");
    let why = chain(&vec![0; MIB], "pi4").expect_err("it is none");
    assert!(why.contains("no partition table"), "{why}");
    assert!(chain(&Vec::new(), "pi4").is_err());
    assert!(chain(&image[..100].to_vec(), "pi4").is_err());
}

/// A disk with blocks of 4 KiB.
struct LargeBlocks(Vec<u8>);

impl Bytes for LargeBlocks {
    fn size_bytes(&self) -> u64 {
        self.0.size_bytes()
    }

    fn block_bytes(&self) -> u32 {
        4096
    }

    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, String> {
        self.0.read(offset, length)
    }
}

#[test]
fn a_table_counts_in_the_blocks_of_its_disk() {
    let copied = unpacked(CARD);
    let mut made_there = copied.clone();
    for at in [446 + 8, 446 + 12, 462 + 8, 462 + 12] {
        let number = le32(&copied, at) / 8;
        made_there[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    let found = chain(&LargeBlocks(made_there.clone()), "pi4").expect("it is one");
    assert_eq!(found.outcome(), Outcome::Starts, "{:?}", found.deciding());
    let why = chain(&LargeBlocks(copied), "pi4").expect_err("the table is another's");
    assert!(why.contains("has blocks of 4096 bytes, and its partition table counts in"), "{why}");
    let why = chain(&made_there, "pi4").expect_err("it is an image of another disk");
    assert!(why.contains("counts its partitions in blocks of 4096 bytes"), "{why}");
}

#[test]
fn clusters_that_lead_in_a_circle_end_in_an_error() {
    let mut image = unpacked(CARD);
    // The first table of the FAT16 filesystem: each cluster but the first two leads to itself.
    let reserved = usize::from(le16(&image, MIB + 14)) * 512;
    for cluster in 2..4096_usize {
        let at = MIB + reserved + 2 * cluster;
        image[at..at + 2].copy_from_slice(&(cluster as u16).to_le_bytes());
    }
    let card = Card::open(&image).expect("it opens");
    let files = card.files(&card.partitions[0]).expect("FAT16");
    let error = files.read_prefix(Path::new("/kernel8.img"), MIB).expect_err("a circle");
    assert!(error.to_string().contains("circle"), "{error}");
    assert!(chain(&image, "pi4").is_ok());
}

#[test]
fn logical_partitions_are_found() {
    let mut image = vec![0; 4 * MIB];
    let entry =
        |image: &mut Vec<u8>, sector: usize, slot: usize, kind: u8, first: u32, count: u32| {
            let at = sector * 512 + 446 + 16 * slot;
            image[at + 4] = kind;
            image[at + 8..at + 12].copy_from_slice(&first.to_le_bytes());
            image[at + 12..at + 16].copy_from_slice(&count.to_le_bytes());
            image[sector * 512 + 510..sector * 512 + 512].copy_from_slice(&[0x55, 0xaa]);
        };
    image[440..444].copy_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
    entry(&mut image, 0, 0, 0x0c, 64, 64);
    entry(&mut image, 0, 1, 0x05, 1024, 4096);
    entry(&mut image, 1024, 0, 0x83, 32, 64);
    entry(&mut image, 1024, 1, 0x05, 256, 512);
    entry(&mut image, 1280, 0, 0x83, 32, 128);
    let card = Card::open(&image).expect("it opens");
    let found: Vec<(u32, u64, Option<&str>)> = card
        .partitions
        .iter()
        .map(|part| {
            (part.entry.number, part.entry.start_bytes / 512, part.entry.partuuid.as_deref())
        })
        .collect();
    assert_eq!(
        found,
        [
            (1, 64, Some("1a2b3c4d-01")),
            (5, 1056, Some("1a2b3c4d-05")),
            (6, 1312, Some("1a2b3c4d-06")),
        ]
    );
    // A chain that leads back to its begin ends.
    entry(&mut image, 1280, 1, 0x05, 0, 512);
    image[1280 * 512 + 470] = 0;
    entry(&mut image, 1024, 1, 0x05, 0x0100, 512);
    assert!(Card::open(&image).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damage_anywhere_is_no_panic_and_ends(
        spots in prop::collection::vec((0..7 * MIB, any::<u8>()), 1..60),
        // The tables of both filesystems, where damage matters most.
        tables in prop::collection::vec((0..24_000_usize, any::<bool>(), any::<u8>()), 1..60),
    ) {
        let mut image = unpacked(CARD);
        for (at, byte) in spots {
            image[at] = byte;
        }
        for (at, is_root, byte) in tables {
            image[if is_root { 5 * MIB } else { MIB } + at] = byte;
        }
        let _ = chain(&image, "pi4");
    }

    #[test]
    fn a_damaged_btrfs_is_no_panic_and_ends(
        spots in prop::collection::vec((0..16 * MIB, any::<u8>()), 1..60),
        nodes in prop::collection::vec((0..400_000_usize, any::<u8>()), 1..200),
    ) {
        let (mut image, mut lzo) = (unpacked(BTRFS), unpacked(BTRFS_LZO));
        for (at, byte) in spots.into_iter().chain(nodes.into_iter().map(|(at, byte)| (at + 65_536, byte))) {
            image[at] = byte;
            lzo[at] = byte;
        }
        if let Ok(files) = Btrfs::open(Span::new(&lzo, 0, u64::MAX)).and_then(|it| it.files(5)) {
            let _ = files.read_prefix(Path::new("/mixed"), MIB);
        }
        let Ok(btrfs) = Btrfs::open(Span::new(&image, 0, u64::MAX)) else { return Ok(()) };
        let _ = btrfs.subvolumes();
        if let Ok(files) = btrfs.files(256) {
            for path in ["/etc/numbers", "/etc/zlib", "/sbin/init"] {
                let _ = files.read_prefix(Path::new(path), MIB);
            }
        }
    }
}
