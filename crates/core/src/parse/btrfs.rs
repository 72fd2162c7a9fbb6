//! How the files of a btrfs filesystem are compressed, from its own file extent items.
//!
//! Formats: "On-disk Format" of the btrfs documentation (`btrfs_file_extent_item`, all little-endian) and
//! `btrfs_ioctl_search_header` of `linux/btrfs.h` (this machine's byte order). The way of counting is that of the
//! tool compsize: every extent on the disk once however many files share it, what lies in the tree itself with the
//! bytes of its item, holes not at all, and preallocated space apart.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::{bytes_si, percent};

/// Type of the items that say where a file's bytes are (`BTRFS_EXTENT_DATA_KEY`).
pub const EXTENT_DATA: u32 = 108;
/// Bytes before each item that a tree search returns.
const HEADER_BYTES: usize = 32;
/// Bytes of an extent item before the part that depends on its kind.
const FIXED_BYTES: usize = 21;
/// Extents that are remembered at once; of more, a part is taken that is drawn by chance and is as large as fits.
const MOST_REMEMBERED: usize = 1 << 17;

/// Place of an item in a tree; the order is that of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// For files the inode.
    pub object: u64,
    /// What kind of item.
    pub kind: u32,
    /// For extents the position in the file.
    pub offset: u64,
}

impl Key {
    /// The place after this one; nothing after the last.
    pub fn next(self) -> Option<Key> {
        if let Some(offset) = self.offset.checked_add(1) {
            return Some(Key { offset, ..self });
        }
        let kind = self.kind.checked_add(1).filter(|kind| *kind <= 255);
        if let Some(kind) = kind {
            return Some(Key {
                kind,
                offset: 0,
                ..self
            });
        }
        let object = self.object.checked_add(1)?;
        Some(Key {
            object,
            kind: 0,
            offset: 0,
        })
    }
}

/// An item that a tree search returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Where it was.
    pub key: Key,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// The items in the buffer of a tree search; what does not fit into the buffer is not there.
pub fn items(buffer: &[u8], count: usize) -> impl Iterator<Item = Item<'_>> {
    let mut rest = buffer;
    std::iter::from_fn(move || {
        let (header, after) = rest.split_at_checked(HEADER_BYTES)?;
        let number = |at: usize| Some(u64::from_ne_bytes(header.get(at..at + 8)?.try_into().ok()?));
        let small = |at: usize| Some(u32::from_ne_bytes(header.get(at..at + 4)?.try_into().ok()?));
        let key = Key {
            object: number(8)?,
            offset: number(16)?,
            kind: small(24)?,
        };
        let (bytes, after) = after.split_at_checked(usize::try_from(small(28)?).ok()?)?;
        rest = after;
        Some(Item { key, bytes })
    })
    .take(count)
}

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Its bytes are in the tree itself.
    Inline {
        /// Number of the method, see [`METHODS`].
        method: u8,
        /// Bytes in the tree.
        stored_bytes: u64,
        /// Bytes of the file.
        original_bytes: u64,
    },
    /// Its bytes are on the disk.
    Stored {
        /// Number of the method.
        method: u8,
        /// Where on the disk; the same for all who share it.
        at: u64,
        /// Bytes on the disk.
        stored_bytes: u64,
        /// Bytes when expanded.
        original_bytes: u64,
        /// Bytes of it that this piece of the file uses.
        used_bytes: u64,
    },
    /// Space that is set aside and holds nothing yet.
    Preallocated {
        /// Bytes that this piece of the file has.
        used_bytes: u64,
    },
    /// Nothing: zeros without a place.
    Hole,
}

/// Reads an extent item; nothing where it is not one, or of a kind that is not known.
pub fn extent(bytes: &[u8]) -> Option<Extent> {
    let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let original_bytes = number(8)?;
    let (method, kind) = (*bytes.get(16)?, *bytes.get(20)?);
    if usize::from(method) >= METHODS.len() {
        return None;
    }
    Some(match kind {
        0 => Extent::Inline {
            method,
            stored_bytes: (bytes.len() - FIXED_BYTES) as u64,
            original_bytes,
        },
        1 if number(21)? == 0 => Extent::Hole,
        1 => Extent::Stored {
            method,
            at: number(21)?,
            stored_bytes: number(29)?,
            original_bytes,
            used_bytes: number(45)?,
        },
        2 => Extent::Preallocated {
            used_bytes: number(45)?,
        },
        _ => return None,
    })
}

/// The methods by their number in the items.
pub const METHODS: [&str; 4] = ["none", "zlib", "lzo", "zstd"];

/// What one method has to do with a filesystem.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MethodShare {
    /// "none", "zlib", "lzo", "zstd".
    pub method: String,
    /// Bytes on the disk.
    pub stored_bytes: u64,
    /// Bytes when expanded.
    pub original_bytes: u64,
}

/// How the files of a filesystem are compressed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compression {
    /// Each method that occurs.
    pub methods: Vec<MethodShare>,
    /// Bytes of files that are set aside and hold nothing yet.
    pub preallocated_bytes: u64,
    /// True when there were more extents than are remembered, so that the bytes are an estimate from a part
    /// drawn by chance.
    pub is_sampled: bool,
    /// True when everything was looked through.
    pub is_whole: bool,
}

impl Compression {
    /// Bytes on the disk.
    pub fn stored_bytes(&self) -> u64 {
        self.methods.iter().map(|method| method.stored_bytes).sum()
    }

    /// Bytes when expanded.
    pub fn original_bytes(&self) -> u64 {
        let methods = self.methods.iter();
        methods.map(|method| method.original_bytes).sum()
    }

    /// Bytes on the disk by bytes when expanded; 1 where there are no files.
    pub fn share(&self) -> f64 {
        match self.original_bytes() {
            0 => 1.0,
            original => self.stored_bytes() as f64 / original as f64,
        }
    }

    /// The share of all bytes of the files that are compressed in some way, 0 to 1.
    pub fn compressed_share(&self) -> f64 {
        let methods = self.methods.iter();
        let compressed = methods.filter(|method| method.method != METHODS[0]);
        let compressed: u64 = compressed.map(|method| method.original_bytes).sum();
        compressed as f64 / self.original_bytes().max(1) as f64
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let original = self.original_bytes();
        if original == 0 {
            return write!(f, "there are no files yet");
        }
        let about = match (self.is_sampled, self.is_whole) {
            (_, false) => "of the part that was looked through, ",
            (true, true) => "about ",
            (false, true) => "",
        };
        write!(
            f,
            "{about}{} of files take {} ({})",
            bytes_si(original),
            bytes_si(self.stored_bytes()),
            percent(self.share())
        )?;
        for (i, method) in self.methods.iter().enumerate() {
            let of_all = method.original_bytes as f64 / original as f64;
            let to = method.stored_bytes as f64 / method.original_bytes.max(1) as f64;
            write!(f, "{}", if i == 0 { ": " } else { ", " })?;
            match method.method == METHODS[0] {
                true => write!(f, "{} of the bytes as they are", percent(of_all))?,
                false => write!(
                    f,
                    "{} of the bytes with {} at {}",
                    percent(of_all),
                    method.method,
                    percent(to)
                )?,
            }
        }
        Ok(())
    }
}

/// Adds extents up, in memory that does not grow with the filesystem.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Bytes on the disk, bytes when expanded, method, by where they are.
    seen: HashMap<u64, (u64, u64, u8)>,
    /// One in 2 to this of all extents is remembered.
    halvings: u32,
    /// Bytes in the tree itself, as they are and when expanded, by method.
    inline: [(u64, u64); METHODS.len()],
    preallocated_bytes: u64,
    most: Option<usize>,
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Self {
        Tally::default()
    }

    /// Takes one piece of a file.
    pub fn take(&mut self, extent: Extent) {
        match extent {
            Extent::Inline {
                method,
                stored_bytes,
                original_bytes,
            } => {
                let (stored, original) = &mut self.inline[usize::from(method)];
                *stored = stored.saturating_add(stored_bytes);
                *original = original.saturating_add(original_bytes);
            }
            Extent::Stored {
                method,
                at,
                stored_bytes,
                original_bytes,
                ..
            } => self.remember(at, (stored_bytes, original_bytes, method)),
            Extent::Preallocated { used_bytes } => {
                self.preallocated_bytes = self.preallocated_bytes.saturating_add(used_bytes);
            }
            Extent::Hole => {}
        }
    }

    fn remember(&mut self, at: u64, extent: (u64, u64, u8)) {
        if !is_drawn(at, self.halvings) {
            return;
        }
        self.seen.insert(at, extent);
        while self.seen.len() > self.most.unwrap_or(MOST_REMEMBERED) {
            self.halvings += 1;
            let halvings = self.halvings;
            self.seen.retain(|at, _| is_drawn(*at, halvings));
        }
    }

    /// What was seen. `is_whole`: nothing was left out for want of time.
    pub fn finish(self, is_whole: bool) -> Compression {
        let mut sums = [(0_u128, 0_u128); METHODS.len()];
        for (stored, original, method) in self.seen.values() {
            let sum = &mut sums[usize::from(*method)];
            sum.0 += u128::from(*stored) << self.halvings;
            sum.1 += u128::from(*original) << self.halvings;
        }
        let clip = |bytes: u128| u64::try_from(bytes).unwrap_or(u64::MAX);
        let methods = METHODS.iter().zip(sums).zip(self.inline);
        let methods = methods
            .map(|((name, sum), inline)| MethodShare {
                method: (*name).into(),
                stored_bytes: clip(sum.0 + u128::from(inline.0)),
                original_bytes: clip(sum.1 + u128::from(inline.1)),
            })
            .filter(|method| method.original_bytes > 0)
            .collect();
        Compression {
            methods,
            preallocated_bytes: self.preallocated_bytes,
            is_sampled: self.halvings > 0,
            is_whole,
        }
    }
}

/// Whether an extent is among the one in 2 to the `halvings` that are remembered; whoever shares it, the same answer.
fn is_drawn(at: u64, halvings: u32) -> bool {
    // Finaliser of SplitMix64: every bit of the place decides about every bit of the result.
    let mut mixed = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    mixed.trailing_zeros() >= halvings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    fn tally(items: &[Vec<u8>]) -> Compression {
        let mut tally = Tally::new();
        for item in items {
            tally.take(extent(item).expect("it is an extent"));
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
            stored_item(3, 4096, 40_960, 131_072),
            stored_item(3, 4096, 40_960, 131_072),
            stored_item(0, 1 << 20, 8192, 8192),
            stored_item(0, 0, 0, 1 << 30),
            inline,
            preallocated,
        ]);
        assert_eq!(found.methods.len(), 2);
        assert_eq!(found.methods[0].stored_bytes, 8192);
        assert_eq!(found.methods[1].stored_bytes, 40_960 + 40);
        assert_eq!(found.methods[1].original_bytes, 131_072 + 100);
        assert_eq!(found.preallocated_bytes, 1 << 20);
        let text = "139 kB of files take 49.2 kB (35 %): 5.9 % of the bytes as they are, \
                    94 % of the bytes with zstd at 31 %";
        assert_eq!(found.to_string(), text);
    }

    #[test]
    fn more_extents_than_are_remembered_give_an_estimate() {
        let mut tally = Tally {
            most: Some(2_000),
            ..Tally::new()
        };
        for i in 1..=100_000_u64 {
            let item = stored_item(3, i * 4096, 4096, 12_288);
            // Twice: sharing must not count under a draw either.
            tally.take(extent(&item).unwrap());
            tally.take(extent(&item).unwrap());
        }
        assert!(tally.seen.len() <= 2_000);
        let found = tally.finish(true);
        assert!(found.is_sampled);
        let exact = 100_000.0 * 4096.0;
        let off = (found.stored_bytes() as f64 - exact).abs() / exact;
        assert!(off < 0.1, "{off}");
        assert!((found.share() - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn keys_follow_one_another_as_in_the_tree() {
        let key = |object, kind, offset| Key {
            object,
            kind,
            offset,
        };
        assert_eq!(key(1, 2, 3).next(), Some(key(1, 2, 4)));
        assert_eq!(key(1, 2, u64::MAX).next(), Some(key(1, 3, 0)));
        assert_eq!(key(1, 255, u64::MAX).next(), Some(key(2, 0, 0)));
        assert_eq!(key(u64::MAX, 255, u64::MAX).next(), None);
    }

    fn search_result(items: &[(Key, Vec<u8>)]) -> Vec<u8> {
        let mut buffer = Vec::new();
        for (key, bytes) in items {
            buffer.extend(7_u64.to_ne_bytes());
            buffer.extend(key.object.to_ne_bytes());
            buffer.extend(key.offset.to_ne_bytes());
            buffer.extend(key.kind.to_ne_bytes());
            buffer.extend((bytes.len() as u32).to_ne_bytes());
            buffer.extend(bytes);
        }
        buffer
    }

    proptest! {
        /// What is written into a search buffer is read from it, and a torn end says nothing.
        #[test]
        fn items_are_read_as_they_were_written(
            wanted in prop::collection::vec(
                ((any::<u64>(), 0_u32..256, any::<u64>()), prop::collection::vec(any::<u8>(), 0..80)), 0..8),
            cut in 0_usize..40,
        ) {
            let wanted: Vec<(Key, Vec<u8>)> = wanted
                .into_iter()
                .map(|((object, kind, offset), bytes)| (Key { object, kind, offset }, bytes))
                .collect();
            let buffer = search_result(&wanted);
            let found: Vec<_> = items(&buffer, wanted.len())
                .map(|item| (item.key, item.bytes.to_vec()))
                .collect();
            prop_assert_eq!(&found, &wanted);
            let torn = &buffer[..buffer.len().saturating_sub(cut)];
            let left = items(torn, wanted.len()).count();
            prop_assert!(left <= wanted.len() && (cut == 0 || wanted.is_empty() || left < wanted.len()));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            if let Some(extent) = extent(&bytes) {
                let mut tally = Tally::new();
                tally.take(extent);
                let _ = tally.finish(false).to_string();
            }
            let _ = items(&bytes, 5).count();
        }
    }
}
