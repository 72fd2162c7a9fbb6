//! A sample of what lies below a directory: pieces of files, drawn so that every byte is as likely as every other.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::BLOCK_BYTES;
use crate::clock;

/// How much is looked at, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Most pieces that are read.
    pub(crate) pieces: usize,
    /// Most time for finding files.
    pub(crate) find: Duration,
    /// Most time for reading pieces.
    pub(crate) read: Duration,
    /// Most files that are remembered.
    pub(crate) files: usize,
}

/// Pieces of files below `top`, on its own filesystem, in an order drawn by chance; as many as the bounds allow.
pub(crate) fn sample(top: &Path, bounds: Bounds, seed: u64) -> Vec<Vec<u8>> {
    let mut dice = Dice(seed | 1);
    let files = find(top, bounds, &mut dice);
    let pieces = |size: u64| size.div_ceil(BLOCK_BYTES as u64);
    let all: u64 = files.iter().map(|(_, size)| pieces(*size)).sum();
    let wanted = all.min(bounds.pieces as u64);
    // One place in each of as many equal parts of all bytes, so that no kind of file is left out by chance.
    let mut places: Vec<(&Path, u64)> = Vec::new();
    let (mut before, mut part) = (0_u64, 0_u64);
    let place_in = |part: u64, dice: &mut Dice| {
        let (from, to) = (part * all / wanted.max(1), (part + 1) * all / wanted.max(1));
        from + dice.below(to - from)
    };
    let mut next = place_in(0, &mut dice);
    for (path, size) in &files {
        while part < wanted && next < before + pieces(*size) {
            places.push((path, next - before));
            part += 1;
            if part < wanted {
                next = place_in(part, &mut dice);
            }
        }
        before += pieces(*size);
    }
    dice.shuffle(&mut places);
    read(&places, bounds)
}

/// Regular files with something in them and their sizes, directory by directory in an order drawn by chance.
fn find(top: &Path, bounds: Bounds, dice: &mut Dice) -> Vec<(PathBuf, u64)> {
    let begun_ns = clock::now_ns();
    let Ok(filesystem) = std::fs::metadata(top).map(|metadata| metadata.dev()) else {
        return Vec::new();
    };
    let is_here = |metadata: &Metadata| metadata.dev() == filesystem;
    let (mut files, mut directories) = (Vec::new(), vec![top.to_path_buf()]);
    while !directories.is_empty() && files.len() < bounds.files {
        if is_over(begun_ns, bounds.find) {
            break;
        }
        let drawn = dice.below(directories.len() as u64) as usize;
        let directory = directories.swap_remove(drawn);
        let Ok(entries) = std::fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let kind = metadata.file_type();
            if kind.is_dir() && is_here(&metadata) {
                directories.push(entry.path());
            } else if kind.is_file() && metadata.len() > 0 && metadata.blocks() > 0 {
                files.push((entry.path(), metadata.len()));
            }
        }
    }
    files.truncate(bounds.files);
    files
}

fn read(places: &[(&Path, u64)], bounds: Bounds) -> Vec<Vec<u8>> {
    let begun_ns = clock::now_ns();
    let mut pieces = Vec::new();
    for (path, number) in places {
        if is_over(begun_ns, bounds.read) {
            break;
        }
        pieces.extend(piece(path, *number));
    }
    pieces
}

/// One piece of a file; nothing where it cannot be read, or ends before.
fn piece(path: &Path, number: u64) -> Option<Vec<u8>> {
    let mut options = File::options();
    options.read(true);
    // The owner may read without a trace in the access times; others are refused that.
    let quiet = options
        .clone()
        .custom_flags(libc::O_NOATIME | libc::O_NOFOLLOW)
        .open(path);
    let file = quiet
        .or_else(|_| options.custom_flags(libc::O_NOFOLLOW).open(path))
        .ok()?;
    let mut bytes = vec![0; BLOCK_BYTES];
    let at = number * BLOCK_BYTES as u64;
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(_) => return None,
        }
    }
    bytes.truncate(filled);
    (filled > 0).then_some(bytes)
}

fn is_over(begun_ns: u64, most: Duration) -> bool {
    u128::from(clock::now_ns() - begun_ns) > most.as_nanos()
}

/// Xorshift64 (Marsaglia, "Xorshift RNGs", 2003); good enough to draw a sample.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        pieces: 64,
        find: Duration::from_secs(60),
        read: Duration::from_secs(60),
        files: 10_000,
    };

    #[test]
    fn every_byte_is_as_likely_as_every_other() {
        let directory = tempfile::tempdir().unwrap();
        // A quarter of the bytes in one large file, the rest in 75 of one piece each.
        std::fs::write(directory.path().join("large"), vec![1; 25 * BLOCK_BYTES]).unwrap();
        let small = directory.path().join("small/deep");
        std::fs::create_dir_all(&small).unwrap();
        for i in 0..75 {
            std::fs::write(small.join(i.to_string()), vec![2; BLOCK_BYTES]).unwrap();
        }
        std::os::unix::fs::symlink("large", directory.path().join("link")).unwrap();
        let pieces = sample(directory.path(), BOUNDS, 7);
        assert_eq!(pieces.len(), 64);
        let large = pieces.iter().filter(|piece| piece[0] == 1).count();
        assert!((12..=20).contains(&large), "{large} of 64, 16 is a quarter");
    }

    #[test]
    fn a_small_tree_is_read_whole_and_no_piece_twice() {
        let directory = tempfile::tempdir().unwrap();
        for i in 0..10_u8 {
            let size = if i == 0 { 2 * BLOCK_BYTES + 5 } else { 100 };
            std::fs::write(directory.path().join(i.to_string()), vec![i; size]).unwrap();
        }
        std::fs::write(directory.path().join("empty"), b"").unwrap();
        let mut pieces = sample(directory.path(), BOUNDS, 1);
        pieces.sort();
        let lengths: Vec<usize> = pieces.iter().map(Vec::len).collect();
        assert_eq!(pieces.len(), 12);
        assert_eq!(lengths.iter().sum::<usize>(), 2 * BLOCK_BYTES + 5 + 900);
    }

    #[test]
    fn nothing_is_no_sample() {
        let directory = tempfile::tempdir().unwrap();
        assert!(sample(directory.path(), BOUNDS, 1).is_empty());
        assert!(sample(Path::new("/no/such/place"), BOUNDS, 1).is_empty());
    }
}
