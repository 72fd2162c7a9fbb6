//! How well and how fast a processor compresses, in the ways of btrfs and of compressed swap.
//!
//! Both work on small pieces, each by itself, and keep a piece as it was (or refuse it) where compressing gains too little. What a
//! piece then takes is decided here; so is how sure a ratio is that was seen on a sample.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::doubt::Doubt;
use rubus_stats::estimate::Estimate;
use rubus_stats::quantile::student_t_95;

/// btrfs compresses at most so much at once (`BTRFS_MAX_UNCOMPRESSED`).
pub const EXTENT_BYTES: usize = 128 << 10;
/// What a piece on a btrfs takes is a multiple of.
pub const SECTOR_BYTES: usize = 4096;

/// A way to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub enum Method {
    /// LZ4, as fast as it goes.
    Lz4,
    /// Zstandard with a level: negative ones are faster.
    Zstd(i32),
    /// DEFLATE with a level from 1 to 9, as zlib does it.
    Zlib(u32),
}

impl Method {
    /// Whether btrfs can compress files in this way.
    pub fn is_of_btrfs(self) -> bool {
        !matches!(self, Method::Lz4)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::Lz4 => f.pad("lz4"),
            Method::Zstd(level) => f.pad(&format!("zstd:{level}")),
            Method::Zlib(level) => f.pad(&format!("zlib:{level}")),
        }
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Method, String> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let number = |usual: i32| match level {
            None => Ok(usual),
            Some(level) => {
                level.parse::<i32>().map_err(|_| format!("\"{level}\" in \"{text}\" is no level"))
            }
        };
        match name {
            "lz4" if level.is_none() => Ok(Method::Lz4),
            "lz4" => Err(format!("lz4 has no levels, so \"{text}\" means nothing")),
            "zstd" => match number(3)? {
                level @ (-15..=-1 | 1..=15) => Ok(Method::Zstd(level)),
                level => Err(format!("zstd has levels -15 to -1 and 1 to 15 here, as btrfs has; not {level}")),
            },
            "zlib" | "deflate" => match u32::try_from(number(3)?) {
                Ok(level @ 1..=9) => Ok(Method::Zlib(level)),
                _ => Err(format!("zlib has levels 1 to 9, so \"{text}\" means nothing")),
            },
            "lzo" | "lzo-rle" => Err(
                "lzo is not measured: there is no maintained library of it with a permissive licence; lz4 is its nearest relative".into(),
            ),
            _ => Err(format!("\"{text}\" is none of lz4, zstd:LEVEL and zlib:LEVEL")),
        }
    }
}

impl TryFrom<String> for Method {
    type Error = String;

    fn try_from(text: String) -> Result<Method, String> {
        text.parse()
    }
}

impl From<Method> for String {
    fn from(method: Method) -> String {
        method.to_string()
    }
}

/// Into what pieces data is cut, and what becomes of a piece that does not shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// Files on btrfs: 128 KiB at most, in whole sectors of 4 KiB, as they are where that saves no sector.
    Extents,
    /// Swap in memory: single pages, packed by the kernel's zsmalloc; a page that does not shrink is refused.
    Pages {
        /// Bytes of a page of the running kernel.
        bytes: u32,
    },
}

impl Cut {
    /// Bytes of a piece, at most.
    pub fn piece_bytes(self) -> usize {
        match self {
            Cut::Extents => EXTENT_BYTES,
            Cut::Pages { bytes } => bytes as usize,
        }
    }

    /// What is measured where nothing else was asked for.
    pub fn usual_methods(self) -> Vec<Method> {
        use Method::{Lz4, Zlib, Zstd};
        match self {
            Cut::Extents => vec![
                Zstd(-5),
                Zstd(-1),
                Zstd(1),
                Zstd(3),
                Zstd(6),
                Zstd(9),
                Zlib(1),
                Zlib(3),
                Zlib(6),
                Zlib(9),
                Lz4,
            ],
            Cut::Pages { .. } => vec![Lz4, Zstd(1), Zstd(3), Zlib(6)],
        }
    }

    /// Every level that makes sense.
    pub fn all_methods(self) -> Vec<Method> {
        let zstd =
            |levels: &[i32]| levels.iter().map(|level| Method::Zstd(*level)).collect::<Vec<_>>();
        match self {
            Cut::Extents => {
                let mut methods = zstd(&[-5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
                methods.extend((1..=9).map(Method::Zlib));
                methods.push(Method::Lz4);
                methods
            }
            Cut::Pages { .. } => {
                let mut methods = vec![Method::Lz4];
                methods.extend(zstd(&[-5, -1, 1, 3, 6, 9]));
                methods.extend([1, 6].map(Method::Zlib));
                methods
            }
        }
    }

    /// Bytes that a piece of `original` bytes takes when it compresses to `compressed`, and whether it is kept compressed.
    pub fn kept(self, original: usize, compressed: usize) -> Kept {
        match self {
            Cut::Extents => {
                let stored = on_disk(original, compressed);
                Kept { bytes: stored as f64, is_compressed: stored < original }
            }
            Cut::Pages { bytes } => match zsmalloc_bytes(compressed, bytes as usize) {
                Some(stored) => Kept { bytes: stored, is_compressed: true },
                None => Kept { bytes: original as f64, is_compressed: false },
            },
        }
    }
}

/// What becomes of a piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kept {
    /// Bytes that it takes; of a page, its share of the pages that it is packed into.
    pub bytes: f64,
    /// It is compressed; else it stays as it is.
    pub is_compressed: bool,
}

/// Bytes that a piece takes on a btrfs: compressed in whole sectors where that saves at least one, else as it is.
pub fn on_disk(original: usize, compressed: usize) -> usize {
    let compressed = compressed.next_multiple_of(SECTOR_BYTES);
    if compressed + SECTOR_BYTES <= original {
        compressed
    } else {
        // The end of a small file lies in the tree itself and is not rounded.
        original
    }
}

/// Bytes of memory that an object takes in zsmalloc, its share of pages that are full of objects like it. Nothing where it
/// is as large as a page: zswap refuses such ones, and the disk behind it gets the page.
///
/// Sizes of classes are 1/256 of a page apart. A class is a chain of up to 8 pages (`CONFIG_ZSMALLOC_CHAIN_SIZE`, as
/// Debian's and Raspberry Pi's kernels have it), as long as wastes least; classes of which as many fit in as long a chain are one
/// (`mm/zsmalloc.c`, `calculate_zspage_chain_size` and `can_merge`).
pub fn zsmalloc_bytes(compressed: usize, page_bytes: usize) -> Option<f64> {
    const CHAIN: usize = 8;
    /// Where the kernel keeps who the object is of.
    const HANDLE: usize = 8;
    const MIN: usize = 32;
    if compressed >= page_bytes {
        return None;
    }
    let step = page_bytes >> 8;
    let above = (compressed + HANDLE).max(MIN) - MIN;
    let size = (MIN + above.div_ceil(step) * step).min(page_bytes);
    if size.is_power_of_two() {
        // Such classes are of one page, and nothing is left over.
        return Some(size as f64);
    }
    // The chain that wastes least; of equal ones the shortest, as the kernel takes it.
    let chain = (1..=CHAIN).min_by_key(|pages| (pages * page_bytes % size, *pages))?;
    Some((chain * page_bytes) as f64 / (chain * page_bytes / size) as f64)
}

/// How sure the ratio of a sample is: all original bytes over all kept ones, with the 95 % interval of the ratio of two sums over
/// pieces that were drawn by chance (linearised; Cochran, *Sampling Techniques*, 3rd edition, section 6.3).
///
/// Pieces are given by their original and their kept bytes. Nothing where nothing was kept.
pub fn ratio(pieces: &[(f64, f64)]) -> Option<Estimate> {
    let (original, kept) = sums(pieces);
    if kept <= 0.0 {
        return None;
    }
    let ratio = original / kept;
    let n = pieces.len() as f64;
    if pieces.len() < 2 {
        return Some(Estimate::new(ratio, 0.0, f64::INFINITY));
    }
    let squares: f64 =
        pieces.iter().map(|(original, kept)| (original - ratio * kept).powi(2)).sum();
    let error = (n / (n - 1.0) * squares).sqrt() / kept;
    // On the logarithm, since a ratio is never below 0 and its upper tail is the longer one.
    let factor = (student_t_95(n - 1.0) * error / ratio).exp();
    Some(Estimate::new(ratio, ratio / factor, ratio * factor))
}

/// The ratio of data that is all there is of it.
pub fn exact_ratio(pieces: &[(f64, f64)]) -> Option<Estimate> {
    let (original, kept) = sums(pieces);
    (kept > 0.0).then(|| Estimate::exact(original / kept))
}

fn sums(pieces: &[(f64, f64)]) -> (f64, f64) {
    let add = |sums: (f64, f64), piece: &(f64, f64)| (sums.0 + piece.0, sums.1 + piece.1);
    pieces.iter().fold((0.0, 0.0), add)
}

/// What was measured of compression.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compression {
    /// One entry for each data that was compressed.
    pub samples: Vec<Sample>,
}

/// What was compressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// Pieces of files, drawn so that every byte was as likely as every other.
    Files {
        /// The directory below which they lie.
        directory: String,
    },
    /// Made by rubus, the same in every version on every machine: text, records, a log, instructions, noise.
    Corpus,
}

/// Data and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// Where it is from.
    pub source: Source,
    /// How much of it was used.
    pub bytes: u64,
    /// In how many pieces of at most 128 KiB.
    pub pieces: u32,
    /// What was measured on it: one entry for each method on each kind of pieces.
    pub rows: Vec<Row>,
}

/// One method on one kind of pieces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// The method.
    pub method: Method,
    /// Pieces as on btrfs, or pages as in compressed swap.
    pub cut: Cut,
    /// Original bytes over those that it takes, what stays as it is included.
    pub ratio: Estimate,
    /// Share of the pieces that stay as they are, or are refused.
    pub left_share: f64,
    /// On one core.
    pub one: Speed,
    /// On all cores at once; absent where there is one.
    pub all: Option<Speed>,
    /// Pieces that did not come back as they went in: none on a machine that computes right.
    pub wrong: u64,
}

/// Original bytes per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Speed {
    /// Threads at once.
    pub threads: u32,
    /// Compressing, that what does not shrink included.
    pub compress_bytes_per_second: Estimate,
    /// Expanding what was kept compressed; absent where nothing was.
    pub expand_bytes_per_second: Option<Estimate>,
    /// What disturbed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_stats::Rng;

    #[test]
    fn names_are_read_back_and_nonsense_is_not() {
        for cut in [Cut::Extents, Cut::Pages { bytes: 4096 }] {
            for method in cut.all_methods() {
                assert_eq!(method.to_string().parse(), Ok(method));
            }
        }
        assert_eq!("zstd".parse(), Ok(Method::Zstd(3)));
        assert_eq!("deflate:6".parse(), Ok(Method::Zlib(6)));
        for wrong in [
            "zstd:0", "zstd:16", "zstd:x", "zlib:0", "zlib:10", "zlib:-1", "lz4:1", "lzo", "gzip",
            "",
        ] {
            assert!(wrong.parse::<Method>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sectors_are_whole_and_what_saves_none_is_left() {
        for (original, compressed, kept) in [
            (EXTENT_BYTES, 1, 4096),
            (EXTENT_BYTES, 4097, 8192),
            (EXTENT_BYTES, EXTENT_BYTES - 4096, EXTENT_BYTES - 4096),
            (EXTENT_BYTES, EXTENT_BYTES - 4095, EXTENT_BYTES),
            (EXTENT_BYTES, EXTENT_BYTES + 12, EXTENT_BYTES),
            (3000, 10, 3000),
            (8192, 4096, 4096),
        ] {
            assert_eq!(on_disk(original, compressed), kept, "{original} {compressed}");
        }
    }

    #[test]
    fn pages_are_packed_as_zsmalloc_does_and_large_ones_refused() {
        // 1350 + 8 needs the class of 1360: 3 of them in a page, with 16 bytes left.
        assert_eq!(zsmalloc_bytes(1350, 4096), Some(4096.0 / 3.0));
        assert_eq!(zsmalloc_bytes(1, 4096), Some(32.0));
        assert_eq!(zsmalloc_bytes(2040, 4096), Some(2048.0));
        // 3072 fits 4 times into 3 pages.
        assert_eq!(zsmalloc_bytes(3060, 4096), Some(3072.0));
        // So large that each takes a page of its own: kept, but nothing is gained.
        assert_eq!(zsmalloc_bytes(3900, 4096), Some(4096.0));
        assert_eq!(zsmalloc_bytes(4095, 4096), Some(4096.0));
        assert_eq!(zsmalloc_bytes(4096, 4096), None);
        for bytes in 1..4096 {
            let stored = zsmalloc_bytes(bytes, 4096).expect("less than a page");
            assert!(
                stored >= (bytes + 8).min(4096) as f64 && stored <= 4096.0,
                "{bytes}: {stored}"
            );
        }
        let refused = Cut::Pages { bytes: 4096 }.kept(4096, 4100);
        assert_eq!((refused.bytes, refused.is_compressed), (4096.0, false));
    }

    #[test]
    fn the_interval_of_a_ratio_holds_the_truth_as_often_as_it_says() {
        let mut rng = Rng::from_seed(11);
        // Pieces take 20 to 100 % of themselves, evenly: 1 / 0.6 over all.
        let truth = 1.0 / 0.6;
        let mut held = 0;
        for _ in 0..1000 {
            let pieces: Vec<(f64, f64)> =
                (0..64).map(|_| (100.0, 20.0 + 80.0 * rng.unit())).collect();
            let ratio = ratio(&pieces).expect("pieces");
            held += u32::from(ratio.low <= truth && truth <= ratio.high);
        }
        assert!((930..=970).contains(&held), "{held} of 1000");
        assert_eq!(ratio(&[]), None);
        assert_eq!(ratio(&[(4.0, 2.0)]).map(|one| one.high), Some(f64::INFINITY));
        assert_eq!(exact_ratio(&[(4.0, 2.0), (4.0, 4.0)]), Some(Estimate::exact(8.0 / 6.0)));
    }
}
