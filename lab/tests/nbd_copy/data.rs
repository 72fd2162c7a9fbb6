//! A sparse image with data at its ends and in the middle, and whether a file is a copy of it.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::MIB;

pub(super) const SIZE: u64 = 32 * MIB;

/// Data at the beginning, alone in the middle, and at the very end; the rest are holes.
pub(super) const DATA: [(u64, usize); 3] =
    [(0, 9 << 20), (20 * MIB + 4096, 5000), (SIZE - 700, 700)];

/// Bytes that are no zeros, the same every time.
pub(super) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8 | 1
    };
    (0..length).map(|_| next()).collect()
}

pub(super) fn write_data(path: &Path) {
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("an image");
    for (at, length) in DATA {
        file.write_all_at(&noise(at, length), at).expect("room");
    }
}

pub(super) fn sparse(path: &Path) {
    std::fs::File::create(path).and_then(|file| file.set_len(SIZE)).expect("an image");
    write_data(path);
}

pub(super) fn expected() -> Vec<u8> {
    let mut all = vec![0; SIZE as usize];
    for (at, length) in DATA {
        all[at as usize..][..length].copy_from_slice(&noise(at, length));
    }
    all
}

pub(super) fn taken(path: &Path) -> u64 {
    std::fs::metadata(path).expect("a file").blocks() * 512
}

/// The copy must be the same and not take more than a few blocks more than the data.
pub(super) fn is_the_copy(path: &Path) {
    assert!(std::fs::read(path).expect("the copy") == expected(), "other bytes");
    let data: usize = DATA.iter().map(|(_, length)| length).sum();
    let most = data as u64 + 3 * 64 * 1024;
    assert!(taken(path) <= most, "{} bytes are taken", taken(path));
}
