//! Which release a kernel's file is of.
//!
//! x86: Linux, Documentation/arch/x86/boot.rst, `kernel_version`. Everywhere else the kernel's banner ("Linux version
//! RELEASE (") is looked for in its bytes, then in what is packed in them: the firmware of a Raspberry Pi starts images
//! packed with gzip, and those for 32 bits unpack themselves (Documentation/arch/arm/booting.rst).

use std::io::{self, Read};

use super::initramfs::unpacked_at;

const BANNER: &[u8] = b"Linux version ";
const PIECE_BYTES: usize = 64 * 1024;
/// The longest release that is believed; the kernel's own limit is 64.
const MAX_RELEASE_BYTES: usize = 64;
/// Where x86 says what it is, and where its version is.
const X86_MAGIC: std::ops::Range<usize> = 0x202..0x206;
const X86_VERSION: usize = 0x20E;
/// What packed kernels begin with: gzip, xz, zstd, lz4, lzma. A file may hold one behind the program that unpacks it.
const PACKED: [&[u8]; 5] = [
    &[0x1F, 0x8B, 8],
    &[0xFD, b'7', b'z', b'X', b'Z', 0],
    &[0x28, 0xB5, 0x2F, 0xFD],
    &[0x02, 0x21, 0x4C, 0x18],
    &[0x5D, 0, 0],
];
/// Bytes that look like the begin of a packed kernel and are none; after this many the search ends.
const MAX_TRIES: usize = 64;

/// The release ("6.12.47+rpt-rpi-v8") of the kernel that a file holds; none where it does not say so, or
/// is packed in a way that is not known.
pub fn release(file: &[u8]) -> Option<String> {
    if let Some(release) = x86(file) {
        return Some(release);
    }
    // Reading from memory does not fail.
    if let Some(release) = search(file).unwrap_or(None) {
        return Some(release);
    }
    let places = (0..file.len()).filter(|at| {
        let rest = &file[*at..];
        PACKED.iter().any(|magic| rest.starts_with(magic))
    });
    for at in places.take(MAX_TRIES) {
        let mut found = None;
        // What is behind the packed kernel, or no kernel at all, ends in an error that says nothing.
        let _ = unpacked_at(&file[at..], |unpacked| {
            found = search(unpacked)?;
            Ok(())
        });
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Whether a kernel is one for 64 bits, by its header: that of arm64, plain or packed with gzip, or that of a zImage for 32
/// bits. Source: Linux, Documentation/arch/arm64/booting.rst, arch/arm/boot/compressed/head.S.
pub fn is_64_bit(file: &[u8]) -> Option<bool> {
    const GZIP: &[u8] = PACKED[0];
    if !file.starts_with(GZIP) {
        return by_header(file);
    }
    let mut found = None;
    // What is behind the packed kernel ends in an error that says nothing.
    let _ = unpacked_at(file, |mut unpacked| {
        let mut head = [0; 0x40];
        let read = fill(&mut unpacked, &mut head)?;
        found = by_header(&head[..read]);
        Ok(())
    });
    found
}

/// Whether a kernel ends before its packing does, or before its header says, as after a copy that was interrupted.
pub fn is_cut(file: &[u8]) -> bool {
    if !file.starts_with(PACKED[0]) {
        return told_bytes(file).is_some_and(|bytes| file.len() < bytes);
    }
    let read = unpacked_at(file, |unpacked| io::copy(unpacked, &mut io::sink()).map(drop));
    read.is_err_and(|why| why.kind() == io::ErrorKind::UnexpectedEof)
}

/// How long the header says that the file is: that of a zImage, or the sections of one that UEFI can start. Source: Linux,
/// arch/arm/boot/compressed/head.S; Microsoft, "PE Format". The header of arm64 counts memory that is no part of the file.
fn told_bytes(file: &[u8]) -> Option<usize> {
    if by_header(file) == Some(false) {
        return number_at(file, 0x2C)?.checked_sub(number_at(file, 0x28)?);
    }
    const SECTION_BYTES: usize = 40;
    let place = number_at(file, 0x3C).filter(|_| file.starts_with(b"MZ"))?;
    let header = file.get(place..).filter(|header| header.starts_with(b"PE\0\0"))?;
    let half = |at: usize| {
        let bytes = header.get(at..at + 2)?;
        Some(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    };
    let (sections, first) = (half(6)?, 24 + half(20)?);
    let end = |index: usize| {
        let section = first + index * SECTION_BYTES;
        number_at(header, section + 16)?.checked_add(number_at(header, section + 20)?)
    };
    let ends: Option<Vec<usize>> = (0..sections).map(end).collect();
    ends?.into_iter().max()
}

/// 32 bits, the lowest first.
fn number_at(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 4)?;
    usize::try_from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).ok()
}

fn by_header(head: &[u8]) -> Option<bool> {
    if head.get(0x38..0x3C) == Some(b"ARM\x64") {
        return Some(true);
    }
    (head.get(0x24..0x28) == Some(&0x016F_2818_u32.to_le_bytes())).then_some(false)
}

/// The program that loads a kernel in its turn, where a file named as a kernel is one ("U-Boot").
///
/// U-Boot and barebox have their names with a year in what they print first; images of UEFI firmware begin with a firmware
/// volume. Source: UEFI Platform Initialization Specification, volume 3, `EFI_FIRMWARE_VOLUME_HEADER`.
pub fn loader(file: &[u8]) -> Option<&'static str> {
    if file.get(0x28..0x2C) == Some(b"_FVH") {
        return Some("UEFI");
    }
    [("U-Boot", &b"U-Boot 20"[..]), ("barebox", b"barebox 20")]
        .into_iter()
        .find(|(_, banner)| has_year(file, banner))
        .map(|(name, _)| name)
}

/// Whether a banner is there that ends in a year and a full stop: "U-Boot 2024.01".
fn has_year(bytes: &[u8], banner: &[u8]) -> bool {
    let windows = bytes.windows(banner.len() + 3);
    let mut fitting = windows.filter(|window| window[0] == banner[0] && window.starts_with(banner));
    fitting.any(|window| {
        matches!(window[banner.len()..], [a, b, b'.'] if a.is_ascii_digit() && b.is_ascii_digit())
    })
}

fn x86(head: &[u8]) -> Option<String> {
    if head.get(X86_MAGIC)? != b"HdrS" {
        return None;
    }
    let pointer = head.get(X86_VERSION..X86_VERSION + 2)?;
    let at = usize::from(u16::from_le_bytes([pointer[0], pointer[1]])) + 0x200;
    word(head.get(at..)?)
}

/// Reads piece by piece; a banner may lie across two of them.
fn search(mut bytes: impl Read) -> io::Result<Option<String>> {
    const OVERLAP: usize = BANNER.len() + MAX_RELEASE_BYTES + 1;
    let mut piece = vec![0; PIECE_BYTES];
    let mut kept = 0;
    loop {
        let read = fill(&mut bytes, &mut piece[kept..])?;
        let there = &piece[..kept + read];
        let is_end = kept + read < PIECE_BYTES;
        for at in banners(there) {
            let rest = &there[at + BANNER.len()..];
            if rest.len() > MAX_RELEASE_BYTES || is_end {
                if let Some(release) = word(rest) {
                    return Ok(Some(release));
                }
            }
        }
        if is_end {
            return Ok(None);
        }
        piece.copy_within(PIECE_BYTES - OVERLAP.., 0);
        kept = OVERLAP;
    }
}

/// Where banners begin.
fn banners(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let windows = bytes.windows(BANNER.len()).enumerate();
    windows.filter(|(_, window)| window[0] == BANNER[0] && *window == BANNER).map(|(at, _)| at)
}

/// A release up to the blank behind it. The banner's own pattern ("%s") is none.
fn word(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == b' ')?;
    let text = std::str::from_utf8(bytes.get(..end)?).ok()?;
    let is_release = text.len() <= MAX_RELEASE_BYTES
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_graphic());
    is_release.then(|| text.to_string())
}

fn fill(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut at = 0;
    while at < buffer.len() {
        match source.read(&mut buffer[at..]) {
            Ok(0) => break,
            Ok(read) => at += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    const RELEASE: &str = "6.12.47+rpt-rpi-v8";

    fn image(at: usize) -> Vec<u8> {
        let mut bytes = vec![0xAA; 300_000];
        let pattern = b"Linux version %s (%s)";
        bytes[100..100 + pattern.len()].copy_from_slice(pattern);
        let banner = format!("Linux version {RELEASE} (builder@host) #1 SMP\n");
        bytes[at..at + banner.len()].copy_from_slice(banner.as_bytes());
        bytes
    }

    #[test]
    fn a_plain_and_a_packed_image_say_their_release() {
        for at in [5000, PIECE_BYTES - 20, 2 * PIECE_BYTES - 60, 299_000] {
            let plain = image(at);
            assert_eq!(release(&plain).as_deref(), Some(RELEASE), "{at}");
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(&plain).expect("a vector takes everything");
            let packed = packed.finish().expect("a vector takes everything");
            assert_eq!(release(&packed).as_deref(), Some(RELEASE), "{at}, packed");
            // Behind the program that unpacks it, which holds something that looks packed, and before more.
            let mut zimage = b"\x1f\x8b\x08 is no kernel".to_vec();
            zimage.resize(20_000, 0x55);
            zimage.extend(&packed);
            zimage.extend([0x77; 500]);
            assert_eq!(release(&zimage).as_deref(), Some(RELEASE), "{at}, zImage");
        }
    }

    #[test]
    fn a_packed_kernel_that_ends_too_early_is_cut() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&image(5000)).expect("a vector takes everything");
        let packed = packed.finish().expect("a vector takes everything");
        assert!(!is_cut(&packed) && !is_cut(&image(5000)) && !is_cut(&[]));
        assert!(
            !is_cut(&[packed.as_slice(), &[0; 512]].concat()),
            "what is behind it is no matter"
        );
        for bytes in [packed.len() - 1, packed.len() / 2, 12] {
            assert!(is_cut(&packed[..bytes]), "{bytes}");
        }
    }

    #[test]
    fn a_plain_kernel_that_is_shorter_than_its_header_says_is_cut() {
        let put = |bytes: &mut Vec<u8>, at: usize, number: u32| {
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        };
        let mut zimage = image(5000);
        put(&mut zimage, 0x24, 0x016F_2818);
        put(&mut zimage, 0x28, 0);
        put(&mut zimage, 0x2C, 300_000);
        // arm64 with two sections, which takes more memory than the file has bytes.
        let mut arm64 = image(5000);
        arm64[..0x100].fill(0);
        arm64[..2].copy_from_slice(b"MZ");
        put(&mut arm64, 0x10, 900_000);
        arm64[0x38..0x3C].copy_from_slice(b"ARM\x64");
        put(&mut arm64, 0x3C, 0x40);
        arm64[0x40..0x44].copy_from_slice(b"PE\0\0");
        arm64[0x46] = 2;
        arm64[0x54] = 0x10;
        for (index, (size, place)) in [(200_000, 0x1000), (200_000, 100_000)].iter().enumerate() {
            put(&mut arm64, 0x68 + index * 40 + 16, *size);
            put(&mut arm64, 0x68 + index * 40 + 20, *place);
        }
        for whole in [zimage, arm64] {
            assert!(!is_cut(&whole));
            assert!(!is_cut(&[whole.as_slice(), &[0; 100]].concat()), "a tree behind it");
            assert!(is_cut(&whole[..whole.len() - 1]) && is_cut(&whole[..0x1000]));
        }
    }

    #[test]
    fn a_pcs_image_says_it_in_its_header() {
        let mut bytes = vec![0; 20_000];
        bytes[X86_MAGIC].copy_from_slice(b"HdrS");
        bytes[X86_VERSION..X86_VERSION + 2].copy_from_slice(&0x3000_u16.to_le_bytes());
        let text = b"6.12.107+deb13-amd64 (debian-kernel@lists.debian.org) #1";
        bytes[0x3200..0x3200 + text.len()].copy_from_slice(text);
        assert_eq!(release(&bytes).as_deref(), Some("6.12.107+deb13-amd64"));
    }

    #[test]
    fn the_width_of_a_kernel_is_in_its_header() {
        let mut arm64 = image(5000);
        arm64[0x38..0x3C].copy_from_slice(b"ARM\x64");
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&arm64).expect("a vector takes everything");
        let packed = packed.finish().expect("a vector takes everything");
        let mut zimage = image(5000);
        zimage[0x24..0x28].copy_from_slice(&[0x18, 0x28, 0x6F, 0x01]);
        for (bytes, width) in [
            (arm64, Some(true)),
            (packed, Some(true)),
            (zimage, Some(false)),
            (image(5000), None),
            (Vec::new(), None),
            (b"\x1f\x8b\x08 broken".to_vec(), None),
        ] {
            assert_eq!(is_64_bit(&bytes), width);
        }
    }

    #[test]
    fn what_loads_a_kernel_in_its_turn_is_known_by_its_bytes() {
        let with = |text: &str| [&[0x55; 5000][..], text.as_bytes(), &[0; 100]].concat();
        assert_eq!(loader(&with("U-Boot 2024.01+dfsg-1 (Jan 08 2024)")), Some("U-Boot"));
        assert_eq!(loader(&with("barebox 2023.08.0 #1")), Some("barebox"));
        assert_eq!(loader(&with("Linux version 6.1.0 passed by U-Boot 20 times")), None);
        let mut uefi = vec![0; 0x1000];
        uefi[0x28..0x2C].copy_from_slice(b"_FVH");
        assert_eq!(loader(&uefi), Some("UEFI"));
        assert_eq!(loader(b"U-Boot 20"), None);
    }

    #[test]
    fn what_is_no_kernel_says_nothing() {
        assert_eq!(release(&[]), None);
        assert_eq!(release(b"Linux version "), None);
        assert_eq!(release(b"\x1f\x8b\x08 broken"), None);
        assert_eq!(release(&vec![0; 200_000]), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(head in prop::sample::select(vec![
            &b"\x1f\x8b\x08"[..], b"", b"Linux version ", b"Linux version 6.1 ", b"MZ",
        ]), tail: Vec<u8>) {
            let bytes = [head, &tail].concat();
            let _ = (release(&bytes), is_cut(&bytes));
        }
    }
}
