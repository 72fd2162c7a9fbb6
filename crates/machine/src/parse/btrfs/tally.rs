//! What files take on the disk, added up.
//!
//! The way of counting is that of the tool compsize: every extent on the disk once however many files share it, what
//! lies in the tree itself with the bytes of its item, holes not at all, and preallocated space apart. One thing
//! differs: a file with several names (hard links) is one file.

use std::fmt;

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use super::items::{Extent, METHODS};
use rubus_vocabulary::units::{bytes_si, percent};

/// No filesystem has extents that begin between multiples of this.
const SECTOR_SHIFT: u32 = 12;

/// What some extents take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// Bytes on the disk.
    pub stored_bytes: u64,
    /// Bytes when expanded, each extent once and whole.
    pub original_bytes: u64,
    /// Bytes that files have of them: more where files share extents, less where a part of an extent has been
    /// overwritten and still takes its place.
    pub referenced_bytes: u64,
}

impl Share {
    /// Bytes on the disk by bytes when expanded; 1 of nothing.
    pub fn ratio(&self) -> f64 {
        match self.original_bytes {
            0 => 1.0,
            original => self.stored_bytes as f64 / original as f64,
        }
    }

    /// Bytes that an extent takes, which is counted once.
    fn place(&mut self, stored_bytes: u64, original_bytes: u64) {
        self.stored_bytes = self.stored_bytes.saturating_add(stored_bytes);
        self.original_bytes = self.original_bytes.saturating_add(original_bytes);
    }

    /// Bytes that a file has of one.
    fn refer(&mut self, bytes: u64) {
        self.referenced_bytes = self.referenced_bytes.saturating_add(bytes);
    }

    fn add(&mut self, other: &Share) {
        self.place(other.stored_bytes, other.original_bytes);
        self.refer(other.referenced_bytes);
    }
}

/// What one method has to do with files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MethodShare {
    /// "none", "zlib", "lzo", "zstd".
    pub method: String,
    /// What it takes.
    #[serde(flatten)]
    pub share: Share,
}

/// How many there are of what was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Regular files, one with several names once.
    pub files: u64,
    /// Extents on the disk.
    pub extents: u64,
    /// Pieces of files that are in extents on the disk.
    pub references: u64,
    /// Pieces of files that are in the tree itself.
    pub inline: u64,
    /// Pieces of files that do not begin on the disk where the one before ends.
    pub fragments: u64,
    /// Pieces of files that are not understood: damaged, or of a method newer than this program.
    pub unknown: u64,
}

/// How files are compressed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compression {
    /// Each method that occurs.
    pub methods: Vec<MethodShare>,
    /// Space of files that is set aside and holds nothing yet.
    pub preallocated: Share,
    /// How many there are of what was counted.
    pub counts: Counts,
    /// True when everything was looked through.
    pub is_whole: bool,
}

impl Compression {
    /// All methods together, without what is set aside.
    pub fn files(&self) -> Share {
        let mut all = Share::default();
        for method in &self.methods {
            all.add(&method.share);
        }
        all
    }

    /// All methods together and what is set aside.
    pub fn total(&self) -> Share {
        let mut all = self.files();
        all.add(&self.preallocated);
        all
    }

    /// Bytes on the disk by bytes when expanded; 1 where there are no files.
    pub fn share(&self) -> f64 {
        self.files().ratio()
    }

    /// The share of all bytes of the files that are compressed in some way, 0 to 1.
    pub fn compressed_share(&self) -> f64 {
        let methods = self.methods.iter();
        let compressed = methods.filter(|method| method.method != METHODS[0]);
        let compressed: u64 = compressed.map(|method| method.share.original_bytes).sum();
        compressed as f64 / self.files().original_bytes.max(1) as f64
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.files();
        let original = files.original_bytes;
        if original == 0 {
            return write!(f, "there are no files yet");
        }
        let part = if self.is_whole { "" } else { "of the part that was looked through, " };
        write!(
            f,
            "{part}{} of files take {} ({})",
            bytes_si(original),
            bytes_si(files.stored_bytes),
            percent(files.ratio())
        )?;
        for (i, method) in self.methods.iter().enumerate() {
            let of_all = method.share.original_bytes as f64 / original as f64;
            write!(f, "{}", if i == 0 { ": " } else { ", " })?;
            if method.method == METHODS[0] {
                write!(f, "{} of the bytes as they are", percent(of_all))?
            } else {
                write!(
                    f,
                    "{} of the bytes with {} at {}",
                    percent(of_all),
                    method.method,
                    percent(method.share.ratio())
                )?
            }
        }
        Ok(())
    }
}

/// Adds the pieces of files up, file by file. It remembers where extents are in at most a bit for each 4 KiB of the
/// disk that extents begin in, so its memory is bounded by the disk and small for most.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    seen: RoaringTreemap,
    methods: [Share; METHODS.len()],
    preallocated: Share,
    counts: Counts,
    /// Where on the disk the piece before ends; nothing at the beginning of a file.
    end: Option<u64>,
}

impl Tally {
    /// An empty tally.
    pub fn new() -> Self {
        Tally::default()
    }

    /// The pieces that follow are of another file.
    pub fn file(&mut self) {
        self.counts.files += 1;
        self.end = None;
    }

    /// Takes one piece of the file; nothing: one that is not understood.
    pub fn take(&mut self, extent: Option<Extent>) {
        match extent {
            Some(Extent::Inline { method, stored_bytes, original_bytes }) => {
                let share = &mut self.methods[usize::from(method)];
                share.place(stored_bytes, original_bytes);
                share.refer(original_bytes);
                self.counts.inline += 1;
                self.counts.fragments += 1;
                self.end = None;
            }
            Some(Extent::Stored { method, at, stored_bytes, original_bytes, used_bytes }) => {
                let is_new = self.piece(at, stored_bytes);
                let share = &mut self.methods[usize::from(method)];
                share.refer(used_bytes);
                if is_new {
                    share.place(stored_bytes, original_bytes);
                }
            }
            Some(Extent::Preallocated { at, stored_bytes, original_bytes, used_bytes }) => {
                let is_new = self.piece(at, stored_bytes);
                self.preallocated.refer(used_bytes);
                if is_new {
                    self.preallocated.place(stored_bytes, original_bytes);
                }
            }
            Some(Extent::Hole) => {}
            None => self.counts.unknown += 1,
        }
    }

    /// Counts a piece that is on the disk; true when its extent is seen for the first time.
    fn piece(&mut self, at: u64, stored_bytes: u64) -> bool {
        self.counts.references += 1;
        if self.end != Some(at) {
            self.counts.fragments += 1;
        }
        self.end = at.checked_add(stored_bytes);
        let is_new = self.seen.insert(at >> SECTOR_SHIFT);
        self.counts.extents += u64::from(is_new);
        is_new
    }

    /// What was seen so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What was seen. `is_whole`: nothing was left out for want of time.
    pub fn finish(self, is_whole: bool) -> Compression {
        let methods = METHODS.iter().zip(self.methods);
        let methods = methods
            .filter(|(_, share)| share.original_bytes > 0)
            .map(|(name, share)| MethodShare { method: (*name).into(), share })
            .collect();
        Compression { methods, preallocated: self.preallocated, counts: self.counts, is_whole }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::extent;
    use super::*;

    fn stored_item(method: u8, at: u64, stored: u64, original: u64) -> Vec<u8> {
        let mut bytes = vec![0; 53];
        bytes[8..16].copy_from_slice(&original.to_le_bytes());
        bytes[16] = method;
        bytes[20] = 1;
        bytes[21..29].copy_from_slice(&at.to_le_bytes());
        bytes[29..37].copy_from_slice(&stored.to_le_bytes());
        bytes[45..53].copy_from_slice(&original.to_le_bytes());
        bytes
    }

    fn tally(files: &[&[Vec<u8>]]) -> Compression {
        let mut tally = Tally::new();
        for items in files {
            tally.file();
            for item in *items {
                tally.take(extent(item));
            }
        }
        tally.finish(true)
    }

    #[test]
    fn shared_extents_count_once_and_holes_not_at_all() {
        let mut inline = vec![0; 21 + 40];
        inline[8] = 100;
        inline[16] = 3;
        let mut preallocated = stored_item(0, 77 << 20, 1 << 20, 1 << 20);
        preallocated[20] = 2;
        let found = tally(&[
            &[
                stored_item(3, 4096, 40_960, 131_072),
                stored_item(0, 45_056, 8192, 8192),
                stored_item(0, 0, 0, 1 << 30),
            ],
            &[stored_item(3, 4096, 40_960, 131_072), preallocated],
            &[inline],
        ]);
        assert_eq!(found.methods.len(), 2);
        let share = |stored_bytes, original_bytes, referenced_bytes| Share {
            stored_bytes,
            original_bytes,
            referenced_bytes,
        };
        assert_eq!(found.methods[0].share, share(8192, 8192, 8192));
        let zstd = share(40_960 + 40, 131_072 + 100, 2 * 131_072 + 100);
        assert_eq!(found.methods[1].share, zstd);
        assert_eq!(found.preallocated, share(1 << 20, 1 << 20, 1 << 20));
        assert_eq!(found.total().stored_bytes, 8192 + 40_960 + 40 + (1 << 20));
        let counts = Counts {
            files: 3,
            extents: 3,
            references: 4,
            inline: 1,
            // The second piece of the first file begins where the first one ends.
            fragments: 4,
            unknown: 0,
        };
        assert_eq!(found.counts, counts);
        let text = "139 kB of files take 49.2 kB (35 %): 5.9 % of the bytes as they are, \
                    94 % of the bytes with zstd at 31 %";
        assert_eq!(found.to_string(), text);
    }

    #[test]
    fn a_method_that_is_not_known_is_not_taken_for_a_hole() {
        let found = tally(&[&[stored_item(9, 4096, 4096, 4096)]]);
        assert_eq!(found.counts.unknown, 1);
        assert_eq!(found.total(), Share::default());
        assert_eq!(found.to_string(), "there are no files yet");
    }

    #[test]
    fn many_extents_are_counted_exactly_in_little_memory() {
        let mut tally = Tally::new();
        for i in 1..=100_000_u64 {
            let item = stored_item(3, i * 4096, 4096, 12_288);
            tally.take(extent(&item));
            tally.take(extent(&item));
        }
        // A bit for each of them and little more.
        assert!(tally.seen.serialized_size() < 100_000 / 8 + 8192);
        let found = tally.finish(true);
        assert_eq!(found.files().stored_bytes, 100_000 * 4096);
        assert_eq!(found.counts.references, 200_000);
        assert!((found.share() - 1.0 / 3.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn no_item_makes_it_panic(items in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..6)) {
            let found = tally(&[&items]);
            let _ = (found.to_string(), found.total(), found.compressed_share());
        }
    }
}
