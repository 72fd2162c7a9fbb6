//! How fast one core of this processor compresses, and how well, in the way of btrfs: pieces of 128 KiB, each by
//! itself, rounded up to 4 KiB, and left as it is where that saves nothing.
//!
//! It is the same code that the kernel has (zstd and DEFLATE), not the kernel's copy of it, and zlib is flushed as by btrfs. What
//! btrfs does besides (it splits ranges, and leaves out what looks incompressible) is not in the ratio: expect 5 to 13 % less
//! from the kernel.

pub(crate) mod codec;
pub(crate) mod sample;

use std::path::Path;
use std::time::Duration;

use rubus_machine::not_copied::NotCopied;
use rubus_vocabulary::compression_speed::CompressionSpeed;
use rubus_vocabulary::processor::compression::{Cut, EXTENT_BYTES, Method, on_disk};

use codec::{Codec, max_compressed};
use rubus_host::ticks as clock;
use sample::{Bounds, Drawn, draw};

/// What is compressed at once.
const BLOCK_BYTES: usize = EXTENT_BYTES;
/// Methods that are measured, as btrfs names them. Higher levels than 9 are slower than any disk here.
const METHODS: [Method; 5] =
    [Method::Zstd(1), Method::Zstd(3), Method::Zstd(6), Method::Zstd(9), Method::Zlib(3)];
/// At most 24 MiB are read.
const BOUNDS: Bounds = Bounds {
    windows: 192,
    find: Duration::from_millis(800),
    read: Duration::from_millis(1_500),
    // A disk that gives less than 1.4 MB/s is the one whose speed counts most.
    min_windows: 2 * MIN_PIECES,
    read_min: Duration::from_secs(6),
    files: 200_000,
};
/// Most processor time for compressing with one method, and for expanding again.
const MAX_NS: u64 = 300_000_000;
/// Fewer pieces say nothing.
const MIN_PIECES: usize = 8;

/// Measures on a sample of the files below a directory, on its own filesystem, without what a move leaves out. Takes 2 to
/// 5 s, from a slow disk up to 10 s, reads at most 24 MiB, writes nothing. Empty where there are too few files to say anything.
pub fn measure(top: &Path, left_out: &NotCopied) -> Measured {
    let drawn = draw(top, left_out, BOUNDS, 0x5241_5350_4245_5252);
    let disk_bytes_per_second = disk_rate(&drawn);
    Measured { speeds: measure_pieces(&drawn.windows.concat()), disk_bytes_per_second }
}

/// What was measured on a sample of files.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// One for each method.
    pub speeds: Vec<CompressionSpeed>,
    /// Bytes per second with which the sample came from the disk, the opening of its files included; absent where most
    /// of it was in memory.
    pub disk_bytes_per_second: Option<f64>,
}

/// Less than this from the disk says nothing of its speed, unless it took as long as reading may take.
const MIN_DISK_BYTES: u64 = 2 << 20;

fn disk_rate(drawn: &Drawn) -> Option<f64> {
    let bytes = drawn.windows.iter().flatten().map(Vec::len).sum::<usize>() as u64;
    let is_enough = drawn.disk_bytes >= MIN_DISK_BYTES || drawn.reading >= BOUNDS.read;
    let is_from_disk = drawn.disk_bytes > 0 && drawn.disk_bytes >= bytes / 2;
    let seconds = drawn.reading.as_secs_f64();
    (is_from_disk && is_enough && seconds > 0.0).then(|| drawn.disk_bytes as f64 / seconds)
}

fn measure_pieces(pieces: &[Vec<u8>]) -> Vec<CompressionSpeed> {
    if pieces.len() < MIN_PIECES {
        return Vec::new();
    }
    let mut all: Vec<Speed> = METHODS.iter().filter_map(|method| speed(*method, pieces)).collect();
    let sizes: Vec<&[Sizes]> = all.iter().map(|speed| &speed.sizes[..]).collect();
    let ratios = ratios(&sizes);
    for (speed, ratio) in all.iter_mut().zip(ratios) {
        speed.found.ratio = ratio;
    }
    all.into_iter().map(|speed| speed.found).collect()
}

/// A piece: its bytes, and those that it takes on the disk.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    original: u64,
    stored: u64,
}

/// What one method did.
struct Speed {
    found: CompressionSpeed,
    /// Of the pieces that it came to, in their order.
    sizes: Vec<Sizes>,
}

/// The ratio of each method on the pieces that the one with the most pieces came to. A slower method came to fewer: it is
/// compared with the first on those, so that they all speak of the same content.
fn ratios(methods: &[&[Sizes]]) -> Vec<f64> {
    let ratio = |sizes: &[Sizes]| {
        let sum = |of: fn(&Sizes) -> u64| sizes.iter().map(of).sum::<u64>() as f64;
        sum(|one| one.original) / sum(|one| one.stored).max(1.0)
    };
    let most = methods.iter().copied().max_by_key(|sizes| sizes.len());
    let most = most.unwrap_or_default();
    let linked = |sizes: &&[Sizes]| ratio(most) * ratio(sizes) / ratio(&most[..sizes.len()]);
    methods.iter().map(linked).collect()
}

/// One method, on as many of the pieces as its time allows; all methods take them in the same order, which was drawn
/// by chance.
fn speed(method: Method, pieces: &[Vec<u8>]) -> Option<Speed> {
    let mut codec = Codec::of(method, Cut::Extents)?;
    let mut out = vec![0; max_compressed(BLOCK_BYTES)];
    let mut back = vec![0; BLOCK_BYTES];
    // The first one pays for tables and pages that all others find ready.
    codec.compress(&pieces[0], &mut out)?;
    let (mut original, mut sizes) = (0_u64, Vec::new());
    let (mut expanded, mut compress_ns, mut expand_ns) = (0_u64, 0_u64, 0_u64);
    for (i, piece) in pieces.iter().enumerate() {
        if i >= MIN_PIECES && compress_ns + expand_ns > MAX_NS {
            break;
        }
        let before_ns = clock::thread_cpu_ns();
        let length = codec.compress(piece, &mut out)?;
        compress_ns += clock::thread_cpu_ns() - before_ns;
        let kept = on_disk(piece.len(), length);
        original += piece.len() as u64;
        sizes.push(Sizes { original: piece.len() as u64, stored: kept as u64 });
        if kept < piece.len() {
            let before_ns = clock::thread_cpu_ns();
            let count = codec.expand(&out[..length], &mut back)?;
            expand_ns += clock::thread_cpu_ns() - before_ns;
            // A figure for a method that does not give back what it got would be worth nothing.
            (back[..count] == piece[..]).then_some(())?;
            expanded += piece.len() as u64;
        }
    }
    let rate = |bytes: u64, ns: u64| bytes as f64 * 1e9 / ns.max(1) as f64;
    let compress_bytes_per_second = rate(original, compress_ns);
    let found = CompressionSpeed {
        method: method.to_string(),
        compress_bytes_per_second,
        expand_bytes_per_second: match expanded {
            // Nothing was worth compressing, so that reading is copying.
            0 => compress_bytes_per_second,
            bytes => rate(bytes, expand_ns),
        },
        ratio: 1.0,
    };
    Some(Speed { found, sizes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that nothing makes smaller.
    fn noise(seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let mut byte = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        (0..BLOCK_BYTES).map(|_| byte()).collect()
    }

    #[test]
    fn known_content_has_the_known_ratio() {
        let words: Vec<u8> =
            b"narrow pipe ".repeat(BLOCK_BYTES).into_iter().take(BLOCK_BYTES).collect();
        let pieces: Vec<Vec<u8>> = (0..MIN_PIECES as u64)
            .map(|i| if i % 2 == 0 { words.clone() } else { noise(i) })
            .collect();
        let speeds = measure_pieces(&pieces);
        let names: Vec<&str> = speeds.iter().map(|speed| speed.method.as_str()).collect();
        assert_eq!(names, ["zstd:1", "zstd:3", "zstd:6", "zstd:9", "zlib:3"]);
        // Half becomes one sector of 32, half stays.
        let wanted = 2.0 / (1.0 + 1.0 / 32.0);
        for speed in speeds {
            assert!((speed.ratio - wanted).abs() < 1e-9, "{speed:?}");
            assert!(speed.compress_bytes_per_second > 1e5, "{speed:?}");
            assert!(speed.expand_bytes_per_second > 1e5, "{speed:?}");
        }
    }

    /// What is in memory says nothing of the disk.
    #[test]
    fn only_a_sample_from_the_disk_says_how_fast_it_reads() {
        let drawn = |disk_bytes| Drawn {
            windows: vec![vec![noise(1); 64]],
            disk_bytes,
            reading: Duration::from_secs(2),
        };
        let most = (64 * BLOCK_BYTES) as u64;
        assert_eq!(disk_rate(&drawn(most)), Some(most as f64 / 2.0));
        assert_eq!(disk_rate(&drawn(most / 4)), None);
        assert_eq!(disk_rate(&drawn(0)), None);
    }

    /// A card of 500 kB/s had given less than 2 MiB when the time was over, and was taken for a usual one.
    #[test]
    fn a_disk_that_gives_little_in_all_the_time_is_slow() {
        let drawn = |reading| Drawn {
            windows: vec![vec![noise(1); 6]],
            disk_bytes: 6 * BLOCK_BYTES as u64,
            reading,
        };
        let slow = disk_rate(&drawn(BOUNDS.read)).unwrap();
        assert!((500e3..550e3).contains(&slow), "{slow}");
        assert_eq!(disk_rate(&drawn(BOUNDS.read / 10)), None);
    }

    /// zstd:9 looked worse than zstd:6 because it came to fewer pieces.
    #[test]
    fn ratios_rest_on_the_same_pieces() {
        let piece = |stored| Sizes { original: 128, stored };
        // The first half hardly gets smaller, the second half does; the slow method is better on all that it saw.
        let fast = [piece(120), piece(120), piece(30), piece(30)];
        let slow = [piece(108), piece(108)];
        let found = ratios(&[&fast, &slow]);
        assert!((found[0] - 512.0 / 300.0).abs() < 1e-9, "{found:?}");
        assert!((found[1] - found[0] * 120.0 / 108.0).abs() < 1e-9, "{found:?}");
        assert!(ratios(&[]).is_empty());
    }

    #[test]
    fn a_handful_of_pieces_says_nothing() {
        assert!(measure_pieces(&vec![noise(1); MIN_PIECES - 1]).is_empty());
    }

    #[test]
    fn real_files_are_measured() {
        let speeds = measure(Path::new(env!("CARGO_MANIFEST_DIR")), &NotCopied::default()).speeds;
        assert_eq!(speeds.len(), METHODS.len());
        for speed in speeds {
            // Sources of a program.
            assert!(speed.ratio > 1.2, "{speed:?}");
        }
    }
}
