//! A sample of what lies below a directory: pieces of files, drawn so that every byte is as likely as every other.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rubus_machine::not_copied::NotCopied;

use super::BLOCK_BYTES;
use rubus_host::ticks as clock;

/// How much is looked at, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Most windows, of the length of a piece each, whose pieces are read.
    pub(crate) windows: usize,
    /// Most time for finding files.
    pub(crate) find: Duration,
    /// Most time for reading pieces, when there are enough.
    pub(crate) read: Duration,
    /// Number of windows that are enough.
    pub(crate) min_windows: usize,
    /// Most time for reading that number.
    pub(crate) read_min: Duration,
    /// Most files that are remembered.
    pub(crate) files: usize,
}

/// A sample, and how fast it came.
pub(crate) struct Drawn {
    /// Pieces by the window that they were drawn with, in an order drawn by chance.
    pub(crate) windows: Vec<Vec<Vec<u8>>>,
    /// Bytes that were read from the disk, not from memory.
    pub(crate) disk_bytes: u64,
    /// Time of reading them, the opening of the files included.
    pub(crate) reading: Duration,
}

/// Pieces of files below `top`, on its own filesystem and without what is left out, by the window that they were drawn with, in an order drawn by chance.
///
/// All files stand one behind the other, cut into windows as long as a piece; a window that is drawn gives every piece that
/// begins in it. So each byte is as likely as every other, and the sample has as many bytes where all files are small as
/// where they are large.
pub(crate) fn sample(
    top: &Path,
    left_out: &NotCopied,
    bounds: Bounds,
    seed: u64,
) -> Vec<Vec<Vec<u8>>> {
    draw(top, left_out, bounds, seed).windows
}

/// The same, with how fast it came.
pub(crate) fn draw(top: &Path, left_out: &NotCopied, bounds: Bounds, seed: u64) -> Drawn {
    const WINDOW: u64 = BLOCK_BYTES as u64;
    let mut dice = Dice(seed | 1);
    let files = find(top, left_out, bounds, &mut dice);
    let all_bytes: u64 = files.iter().map(|(_, size)| size).sum();
    let all = all_bytes.div_ceil(WINDOW);
    let wanted = all.min(bounds.windows as u64);
    // One in each of as many equal parts, so that no kind of file is left out by chance.
    let window_in = |part: u64| {
        let (from, to) = (part * all / wanted, (part + 1) * all / wanted);
        from + dice.below(to - from)
    };
    let windows: Vec<u64> = (0..wanted).map(window_in).collect();
    let mut places: Vec<Vec<(&Path, u64)>> = vec![Vec::new(); windows.len()];
    let (mut before, mut first) = (0_u64, 0);
    for (path, size) in &files {
        let end = before + size;
        let is_past = |window: &u64| (window + 1) * WINDOW <= before;
        first += windows[first..].iter().take_while(|window| is_past(window)).count();
        for (window, places) in windows.iter().zip(&mut places).skip(first) {
            if window * WINDOW >= end {
                break;
            }
            let number = (window * WINDOW).saturating_sub(before).div_ceil(WINDOW);
            let start = before + number * WINDOW;
            if start < end && start < (window + 1) * WINDOW {
                places.push((path, number));
            }
        }
        before = end;
    }
    dice.shuffle(&mut places);
    let (begun_ns, before) = (clock::now_ns(), clock::thread_disk_bytes());
    let windows = read(&places, bounds);
    Drawn {
        windows,
        disk_bytes: clock::thread_disk_bytes().saturating_sub(before),
        reading: Duration::from_nanos(clock::now_ns() - begun_ns),
    }
}

/// Regular files with something in them and their sizes, directory by directory in an order drawn by chance.
fn find(top: &Path, left_out: &NotCopied, bounds: Bounds, dice: &mut Dice) -> Vec<(PathBuf, u64)> {
    let begun_ns = clock::now_ns();
    // Absolute and without links, as the paths that are left out.
    let Ok(top) = top.canonicalize() else {
        return Vec::new();
    };
    let Ok(filesystem) = std::fs::metadata(&top).map(|metadata| metadata.dev()) else {
        return Vec::new();
    };
    let is_here = |metadata: &Metadata| metadata.dev() == filesystem;
    let (mut files, mut directories) = (Vec::new(), vec![top]);
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
            let path = entry.path();
            if kind.is_dir() && is_here(&metadata) && !left_out.has_contents_of(&path) {
                directories.push(path);
            } else if kind.is_file()
                && metadata.len() > 0
                && metadata.blocks() > 0
                && !left_out.has(&path)
            {
                files.push((path, metadata.len()));
            }
        }
    }
    files.truncate(bounds.files);
    files
}

fn read(places: &[Vec<(&Path, u64)>], bounds: Bounds) -> Vec<Vec<Vec<u8>>> {
    let begun_ns = clock::now_ns();
    let mut windows = Vec::new();
    for places in places {
        let most = if windows.len() < bounds.min_windows { bounds.read_min } else { bounds.read };
        if is_over(begun_ns, most) {
            break;
        }
        let pieces = places.iter().filter_map(|(path, number)| piece(path, *number));
        windows.push(pieces.collect());
    }
    windows
}

/// One piece of a file; nothing where it cannot be read, or ends before.
fn piece(path: &Path, number: u64) -> Option<Vec<u8>> {
    let mut options = File::options();
    options.read(true);
    // The owner may read without a trace in the access times; others are refused that.
    let quiet = options.clone().custom_flags(libc::O_NOATIME | libc::O_NOFOLLOW).open(path);
    let file = quiet.or_else(|_| options.custom_flags(libc::O_NOFOLLOW).open(path)).ok()?;
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
        windows: 64,
        find: Duration::from_secs(60),
        read: Duration::from_secs(60),
        min_windows: 0,
        read_min: Duration::from_secs(60),
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
        let pieces = sample(directory.path(), &NotCopied::default(), BOUNDS, 7).concat();
        assert_eq!(pieces.len(), 64);
        let large = pieces.iter().filter(|piece| piece[0] == 1).count();
        assert!((12..=20).contains(&large), "{large} of 64, 16 is a quarter");
    }

    /// Of a tree of many small files beside a large one, most pieces are small, and the sample was a few hundred KiB.
    #[test]
    fn small_files_have_their_share_of_the_bytes_and_no_more() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("large"), vec![1; 100 * BLOCK_BYTES]).unwrap();
        for i in 0..3200 {
            std::fs::write(directory.path().join(i.to_string()), vec![2; 1000]).unwrap();
        }
        let pieces = sample(directory.path(), &NotCopied::default(), BOUNDS, 3).concat();
        let bytes_of = |kind: u8| {
            let of_kind = pieces.iter().filter(|piece| piece[0] == kind);
            of_kind.map(Vec::len).sum::<usize>() as f64
        };
        let (large, small) = (bytes_of(1), bytes_of(2));
        let whole = 64.0 * BLOCK_BYTES as f64;
        assert!((large + small - whole).abs() < 0.05 * whole, "{large} + {small}");
        let share = small / (large + small);
        let truth = 3_200_000.0 / (3_200_000.0 + 100.0 * BLOCK_BYTES as f64);
        assert!((share - truth).abs() < 0.06, "{share}, in truth {truth}");
    }

    #[test]
    fn a_slow_disk_gets_the_time_for_the_least() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("large"), vec![1; 50 * BLOCK_BYTES]).unwrap();
        let bounds = Bounds { read: Duration::ZERO, min_windows: 5, ..BOUNDS };
        let windows = sample(directory.path(), &NotCopied::default(), bounds, 1);
        assert_eq!(windows.len(), 5);
    }

    #[test]
    fn a_small_tree_is_read_whole_and_no_piece_twice() {
        let directory = tempfile::tempdir().unwrap();
        for i in 0..10_u8 {
            let size = if i == 0 { 2 * BLOCK_BYTES + 5 } else { 100 };
            std::fs::write(directory.path().join(i.to_string()), vec![i; size]).unwrap();
        }
        std::fs::write(directory.path().join("empty"), b"").unwrap();
        let mut pieces = sample(directory.path(), &NotCopied::default(), BOUNDS, 1).concat();
        pieces.sort();
        let lengths: Vec<usize> = pieces.iter().map(Vec::len).collect();
        assert_eq!(pieces.len(), 12);
        assert_eq!(lengths.iter().sum::<usize>(), 2 * BLOCK_BYTES + 5 + 900);
    }

    #[test]
    fn nothing_is_no_sample() {
        let directory = tempfile::tempdir().unwrap();
        let nothing = NotCopied::default();
        assert!(sample(directory.path(), &nothing, BOUNDS, 1).is_empty());
        assert!(sample(Path::new("/no/such/place"), &nothing, BOUNDS, 1).is_empty());
    }

    /// A swap file full of zeros made a root look three times as compressible as it was.
    #[test]
    fn what_is_not_copied_is_not_sampled() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        for below in ["var", "run", "old/deep"] {
            std::fs::create_dir_all(top.join(below)).unwrap();
        }
        for i in 0..10 {
            std::fs::write(top.join(i.to_string()), vec![2; BLOCK_BYTES]).unwrap();
        }
        for spoils in ["var/swap", "run/state", "old/deep/file"] {
            std::fs::write(top.join(spoils), vec![1; 40 * BLOCK_BYTES]).unwrap();
        }
        let left_out = NotCopied {
            paths: vec![top.join("var/swap"), top.join("old")],
            contents_of: vec![top.join("run")],
        };
        let pieces = sample(&top, &left_out, BOUNDS, 7).concat();
        assert_eq!(pieces.len(), 10);
        assert!(pieces.iter().all(|piece| piece[0] == 2));
    }
}
