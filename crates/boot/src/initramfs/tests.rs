//! Images made here: what is inside is listed, what the kernel would not unpack is an error, and nothing panics.
//! Images of the real tools are in `tests/initramfs_images.rs`.

use std::io::Write;

use flate2::Compression as Level;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

const RELEASE: &str = "6.12.47+rpt-rpi-v8";

fn member(path: &str, mode: u32, content: &[u8]) -> Vec<u8> {
    let mut fields = [0_u32; 13];
    fields[1] = mode;
    fields[4] = 1;
    fields[6] = content.len() as u32;
    fields[11] = path.len() as u32 + 1;
    let mut bytes = b"070701".to_vec();
    for field in fields {
        bytes.extend(format!("{field:08X}").bytes());
    }
    bytes.extend(path.bytes());
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn archive(members: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (path, mode, content) in members {
        bytes.extend(member(path, *mode, content));
    }
    bytes.extend(member("TRAILER!!!", 0, &[]));
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
    encoder.write_all(bytes).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

/// As Debian writes it: a plain archive in front, zeros, then the rest compressed.
fn image() -> Vec<u8> {
    let early = archive(&[("kernel/x86/microcode/x.bin", 0o100_644, &[7; 1000])]);
    let modules = format!("usr/lib/modules/{RELEASE}");
    let btrfs = format!("{modules}/kernel/fs/btrfs/btrfs.ko.xz");
    let empty = format!("{modules}/kernel/fs/xfs/xfs.ko");
    let dep = format!("{modules}/modules.dep");
    let main = archive(&[
        (".", 0o040_755, &[]),
        ("./init", 0o100_755, b"#!/bin/sh\n"),
        ("lib", 0o120_777, b"usr/lib"),
        (&btrfs, 0o100_644, &[1; 5000]),
        (&empty, 0o100_644, &[]),
        (&dep, 0o100_644, b"kernel/fs/btrfs/btrfs.ko.xz:\n"),
        ("conf/modules", 0o100_644, b"btrfs\n"),
    ]);
    let mut bytes = early;
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes.extend(gzip(&main));
    bytes
}

#[test]
fn the_maker_is_told_by_its_own_scripts() {
    let maker = |path: &str| {
        let member = Member { path: path.into(), mode: 0o100_644, size_bytes: 0 };
        Listing { members: vec![member], ..Listing::default() }.maker()
    };
    assert_eq!(maker("scripts/local"), Some(Maker::InitramfsTools));
    assert_eq!(maker("usr/lib/dracut/build-parameter.txt"), Some(Maker::Dracut));
    assert_eq!(maker("lib/dracut"), Some(Maker::Dracut));
    assert_eq!(maker("init_functions"), Some(Maker::Mkinitcpio));
    assert_eq!(maker("scripts/localhost"), None);
    assert_eq!(maker("init"), None);
}

#[test]
fn plain_and_compressed_pieces_are_listed() {
    let bytes = image();
    let listing = list(&bytes[..]).expect("is whole");
    let compressions: Vec<&str> = listing.parts.iter().map(|part| part.compression).collect();
    assert_eq!(compressions, ["none", "gzip"]);
    assert!(listing.has("init") && listing.has("kernel/x86/microcode/x.bin"));
    assert_eq!(listing.releases().into_iter().collect::<Vec<_>>(), [RELEASE]);
    let path = listing.module(RELEASE, "btrfs").expect("is inside");
    assert!(path.ends_with("btrfs.ko.xz"));
    assert_eq!(listing.module("6.6.0", "btrfs"), None);
    assert_eq!(listing.module(RELEASE, "xfs"), None, "an empty file is no module");
    assert_eq!(listing.texts["conf/modules"], "btrfs\n");
    assert_eq!(listing.texts.len(), 2);
}

#[test]
fn every_cut_is_noticed() {
    let bytes = image();
    let piece = list(&bytes[..]).expect("is whole").parts[1].offset_bytes as usize;
    for end in (1..bytes.len()).step_by(7) {
        let result = list(&bytes[..end]);
        // Between the pieces there is nothing to miss.
        let trailer = archive(&[("kernel/x86/microcode/x.bin", 0o100_644, &[7; 1000])]).len();
        let is_between = (trailer..=piece).contains(&end);
        assert_eq!(result.is_ok(), is_between, "cut at {end}: {result:?}");
    }
}

#[test]
fn a_flipped_bit_in_the_packed_contents_is_noticed() {
    let mut bytes = image();
    let at = bytes.len() - 100;
    bytes[at] ^= 4;
    let error = list(&bytes[..]).expect_err("is damaged").to_string();
    assert!(error.contains("damaged"), "{error}");
}

#[test]
fn what_cannot_be_read_says_why() {
    for (bytes, words) in [
        (&[][..], "empty"),
        (&[0; 5000], "empty"),
        (b"MZ is a kernel", "byte 0 is neither"),
        (b"\0\0\0\0BZh91AY", "bzip2"),
        (b"\x04\x22\x4d\x18xxxx", "no kernel reads"),
    ] {
        let error = list(bytes).expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    }
}

proptest! {
    #[test]
    fn nothing_panics(head in prop::sample::select(vec![
        &b"070701"[..], b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"\x02\x21\x4c\x18", b"\x5d\0\0\x80",
        b"",
    ]), tail: Vec<u8>) {
        let bytes = [head, &tail].concat();
        let _ = list(&bytes[..]);
    }

    #[test]
    fn nothing_panics_on_images_with_a_changed_byte(at in 0_usize..4000, byte: u8) {
        let mut bytes = image();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = list(&bytes[..]);
    }
}
