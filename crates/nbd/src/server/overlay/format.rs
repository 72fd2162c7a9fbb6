//! How a clone's file is laid out; `docs/internals/clone-file.md` says why, and why no crash can hurt it.
//!
//! ```text
//! 0         header, slot 0; its second half notes, when the clone is closed, which pages of the map there are
//! 4096      header, slot 1
//! 8192      map, page 0 slot 0 │ page 0 slot 1 │ page 1 slot 0 │ …        (none when the contents are shared)
//! data_at   the disk, byte for byte, with holes; data_at is a multiple of 1 MiB
//! ```
//! Integers are little-endian. A slot is written whole, never both of a pair without making the first durable.

use rubus_vocabulary::checksum::crc32c;

use crate::identity::Uuid;

/// What the map counts in, and what is copied from the golden image at least.
pub const BLOCK_BYTES: u64 = 4096;
/// Length of a slot of the header or of the map.
pub const SLOT_BYTES: usize = 4096;
/// The version that is written. No other can be read.
pub const VERSION: u32 = 1;

const HEADER_MARK: &[u8; 16] = b"rubus clone file";
const PAGE_MARK: &[u8; 4] = b"rcmp";
const PAGE_HEAD_BYTES: usize = 32;
/// Words of 64 blocks in a page of the map.
pub const PAGE_WORDS: usize = (SLOT_BYTES - PAGE_HEAD_BYTES) / 8;
/// Blocks in a page of the map.
pub const PAGE_BLOCKS: u64 = PAGE_WORDS as u64 * 64;
const MAP_AT: u64 = 2 * SLOT_BYTES as u64;
const DATA_ALIGNMENT: u64 = 1 << 20;
/// Where in the header the golden image's path begins.
const PATH_AT: usize = 156;
/// The longest path of a golden image that is kept.
pub const MAX_PATH_BYTES: usize = NOTE_AT - PATH_AT;
/// Where in the header the note about the map is; earlier servers had no note, and more of the path there.
const NOTE_AT: usize = 2040;
const NOTE_MARK: &[u8; 4] = b"mapn";
const NOTE_MARK_AT: usize = SLOT_BYTES - 4;
const NOTE_PAGES_AT: usize = NOTE_AT + 4;
const NOTE_BITS: usize = (NOTE_MARK_AT - NOTE_PAGES_AT) * 8;
/// No disk is larger: offsets are signed, and something comes before the disk.
pub const MAX_DISK_BYTES: u64 = 1 << 60;

/// How a clone holds what the golden image holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Blocks that were written, and a map that says which; all others are read from the golden image.
    Map,
    /// All of it: the filesystem shares it with the golden image until it is written.
    Shared,
}

/// By what a golden image is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoldenId {
    pub size_bytes: u64,
    /// When it was last changed, nanoseconds since 1970; a block device has none.
    pub changed_ns: Option<i128>,
    /// SHA-256 of parts of it.
    pub fingerprint: [u8; 32],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which clone; it never changes.
    pub clone: Uuid,
    /// How many times it was reset.
    pub generation: u64,
    /// Changes whenever acknowledged writes may have been lost.
    pub epoch: Uuid,
    /// How it holds the disk.
    pub kind: Kind,
    /// A server may be writing it: not all that was written need be in the map.
    pub in_use: bool,
    /// What it is a clone of.
    pub golden: GoldenId,
    /// Where that was; bytes, since a path need not be text.
    pub golden_path: Vec<u8>,
    /// What there was of the map when the clone was closed; nothing in files of earlier servers.
    pub note: Option<MapNote>,
}

/// What there is of a map, so that what is missing from it is noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapNote {
    /// Sum over the places and numbers of all pages.
    sum: u32,
    /// A bit for each page that is there, or for several in a row where there are more pages than bits.
    pages: Box<[u8]>,
}

impl MapNote {
    /// The note about these pages, each with its place and number where it is there.
    pub fn of(pages: &[Option<(usize, u64)>]) -> MapNote {
        let mut bits = vec![0; NOTE_BITS / 8];
        let mut summed = Vec::new();
        for (number, page) in pages.iter().enumerate() {
            let Some((place, sequence)) = page else {
                continue;
            };
            let bit = number / pages_of_a_bit(pages.len());
            bits[bit / 8] |= 1 << (bit % 8);
            summed.extend_from_slice(&(number as u64).to_le_bytes());
            summed.extend_from_slice(&(*place as u64).to_le_bytes());
            summed.extend_from_slice(&sequence.to_le_bytes());
        }
        MapNote { sum: crc32c(&summed), pages: bits.into() }
    }

    /// Whether nothing of what was noted is missing from a map. Pages may have come since then, unless `is_closed`.
    pub fn fits(&self, pages: &[Option<(usize, u64)>], is_closed: bool) -> bool {
        let now = MapNote::of(pages);
        let mut both = self.pages.iter().zip(now.pages.iter());
        both.all(|(noted, there)| noted & !there == 0) && (!is_closed || *self == now)
    }
}

fn pages_of_a_bit(pages: usize) -> usize {
    pages.div_ceil(NOTE_BITS).max(1)
}

/// What a slot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot<T> {
    /// Nothing was ever written.
    Empty,
    /// What was written, and its number: the higher is the later.
    Valid(u64, T),
    /// Not all of what was written.
    Torn,
    /// Another version of the format.
    Version(u32),
}

impl Header {
    /// Where things are.
    pub fn layout(&self) -> Layout {
        Layout::of(self.golden.size_bytes, self.kind)
    }

    /// The slot's bytes.
    pub fn encode(&self, sequence: u64) -> Box<[u8; SLOT_BYTES]> {
        let mut slot = Box::new([0; SLOT_BYTES]);
        let path = &self.golden_path[..self.golden_path.len().min(SLOT_BYTES - PATH_AT)];
        let note = self.note.as_ref().filter(|_| path.len() <= MAX_PATH_BYTES);
        let mut put = |at: usize, bytes: &[u8]| slot[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, HEADER_MARK);
        put(16, &VERSION.to_le_bytes());
        put(24, &sequence.to_le_bytes());
        put(32, &self.clone.0.to_be_bytes());
        put(48, &self.generation.to_le_bytes());
        put(56, &self.epoch.0.to_be_bytes());
        put(72, &u32::from(self.kind == Kind::Shared).to_le_bytes());
        put(76, &u32::from(self.in_use).to_le_bytes());
        put(80, &self.golden.size_bytes.to_le_bytes());
        put(88, &(BLOCK_BYTES as u32).to_le_bytes());
        put(92, &u32::from(self.golden.changed_ns.is_some()).to_le_bytes());
        put(96, &self.golden.changed_ns.unwrap_or(0).to_le_bytes());
        put(112, &self.golden.fingerprint);
        put(144, &self.layout().data_at.to_le_bytes());
        put(152, &(path.len() as u32).to_le_bytes());
        put(PATH_AT, path);
        if let Some(note) = note {
            put(NOTE_AT, &note.sum.to_le_bytes());
            put(NOTE_PAGES_AT, &note.pages);
            put(NOTE_MARK_AT, NOTE_MARK);
        }
        let sum = crc32c(&slot[..]);
        slot[20..24].copy_from_slice(&sum.to_le_bytes());
        slot
    }

    /// Reads a slot.
    pub fn decode(slot: &[u8; SLOT_BYTES]) -> Slot<Header> {
        if slot.iter().all(|&byte| byte == 0) {
            return Slot::Empty;
        }
        let version = u32::from_le_bytes(part(slot, 16));
        if slot[..16] == HEADER_MARK[..] && version != VERSION {
            return Slot::Version(version);
        }
        let mut plain = *slot;
        plain[20..24].fill(0);
        let is_whole = slot[..16] == HEADER_MARK[..]
            && crc32c(&plain) == u32::from_le_bytes(part(slot, 20))
            && u32::from_le_bytes(part(slot, 88)) == BLOCK_BYTES as u32;
        let flag = |at: usize| u32::from_le_bytes(part(slot, at));
        let path_bytes = flag(152) as usize;
        let size_bytes = u64::from_le_bytes(part(slot, 80));
        if !is_whole || path_bytes > SLOT_BYTES - PATH_AT || size_bytes > MAX_DISK_BYTES {
            return Slot::Torn;
        }
        let has_note = path_bytes <= MAX_PATH_BYTES && slot[NOTE_MARK_AT..] == NOTE_MARK[..];
        let header = Header {
            clone: Uuid(u128::from_be_bytes(part(slot, 32))),
            generation: u64::from_le_bytes(part(slot, 48)),
            epoch: Uuid(u128::from_be_bytes(part(slot, 56))),
            kind: match flag(72) {
                0 => Kind::Map,
                _ => Kind::Shared,
            },
            in_use: flag(76) != 0,
            golden: GoldenId {
                size_bytes,
                changed_ns: (flag(92) != 0).then(|| i128::from_le_bytes(part(slot, 96))),
                fingerprint: part(slot, 112),
            },
            golden_path: slot[PATH_AT..PATH_AT + path_bytes].to_vec(),
            note: has_note.then(|| MapNote {
                sum: u32::from_le_bytes(part(slot, NOTE_AT)),
                pages: slot[NOTE_PAGES_AT..NOTE_MARK_AT].into(),
            }),
        };
        if u64::from_le_bytes(part(slot, 144)) != header.layout().data_at {
            return Slot::Torn;
        }
        Slot::Valid(u64::from_le_bytes(part(slot, 24)), header)
    }

    /// Where a slot of the header is.
    pub fn slot_at(slot: usize) -> u64 {
        (slot * SLOT_BYTES) as u64
    }
}

fn part<const N: usize>(slot: &[u8; SLOT_BYTES], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&slot[at..at + N]);
    part
}

/// Where things are in a clone's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// How many blocks the disk has; the last may be cut short.
    pub blocks: u64,
    /// How many pages the map has.
    pub pages: usize,
    /// Where the disk begins.
    pub data_at: u64,
    /// Length of the file.
    pub file_bytes: u64,
}

impl Layout {
    /// The layout for a disk of this size.
    pub fn of(size_bytes: u64, kind: Kind) -> Layout {
        let blocks = size_bytes.div_ceil(BLOCK_BYTES);
        let pages = match kind {
            Kind::Map => blocks.div_ceil(PAGE_BLOCKS),
            Kind::Shared => 0,
        };
        let data_at = (MAP_AT + 2 * pages * SLOT_BYTES as u64).next_multiple_of(DATA_ALIGNMENT);
        Layout {
            blocks,
            pages: pages as usize,
            data_at,
            file_bytes: data_at + blocks * BLOCK_BYTES,
        }
    }

    /// The map's place in the file: offset and length.
    pub fn map(&self) -> (u64, u64) {
        (MAP_AT, 2 * (self.pages * SLOT_BYTES) as u64)
    }

    /// Where a slot of a page of the map is.
    pub fn page_at(&self, page: usize, slot: usize) -> u64 {
        MAP_AT + ((2 * page + slot) * SLOT_BYTES) as u64
    }
}

/// A page of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its number, from 0.
    pub number: u32,
    /// One bit for each block that the clone has: bit 0 of word 0 is the first.
    pub words: Box<[u64; PAGE_WORDS]>,
}

impl Page {
    /// The slot's bytes, of one generation of one clone.
    pub fn encode(&self, clone: Uuid, generation: u64, sequence: u64) -> Box<[u8; SLOT_BYTES]> {
        let mut slot = Box::new([0; SLOT_BYTES]);
        slot[..4].copy_from_slice(PAGE_MARK);
        slot[8..16].copy_from_slice(&sequence.to_le_bytes());
        slot[16..20].copy_from_slice(&self.number.to_le_bytes());
        slot[24..32].copy_from_slice(&generation.to_le_bytes());
        let bits = slot[PAGE_HEAD_BYTES..].chunks_exact_mut(8);
        for (bytes, word) in bits.zip(self.words.iter()) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let sum = page_sum(&slot, clone);
        slot[4..8].copy_from_slice(&sum.to_le_bytes());
        slot
    }

    /// Reads a slot that should hold page `number` of one generation of one clone.
    pub fn decode(
        slot: &[u8; SLOT_BYTES],
        clone: Uuid,
        generation: u64,
        number: u32,
    ) -> Slot<Page> {
        if slot.iter().all(|&byte| byte == 0) {
            return Slot::Empty;
        }
        let is_whole = slot[..4] == PAGE_MARK[..]
            && page_sum(slot, clone) == u32::from_le_bytes(part(slot, 4))
            && u32::from_le_bytes(part(slot, 16)) == number
            && u64::from_le_bytes(part(slot, 24)) == generation;
        if !is_whole {
            return Slot::Torn;
        }
        let mut words = Box::new([0; PAGE_WORDS]);
        let bits = slot[PAGE_HEAD_BYTES..].chunks_exact(8);
        for (word, bytes) in words.iter_mut().zip(bits) {
            let mut eight = [0; 8];
            eight.copy_from_slice(bytes);
            *word = u64::from_le_bytes(eight);
        }
        Slot::Valid(u64::from_le_bytes(part(slot, 8)), Page { number, words })
    }
}

/// The sum of a page covers the clone that it belongs to, so that no other's page is ever taken for it.
fn page_sum(slot: &[u8; SLOT_BYTES], clone: Uuid) -> u32 {
    let mut summed = [0; SLOT_BYTES + 16];
    summed[..16].copy_from_slice(&clone.0.to_be_bytes());
    summed[16..].copy_from_slice(slot);
    summed[16 + 4..16 + 8].fill(0);
    crc32c(&summed)
}

/// The later of two slots and its place, 0 or 1.
pub fn later<T>(slots: [Slot<T>; 2]) -> Option<(usize, u64, T)> {
    let mut found: Option<(usize, u64, T)> = None;
    for (place, slot) in slots.into_iter().enumerate() {
        if let Slot::Valid(sequence, value) = slot {
            if found.as_ref().is_none_or(|(_, known, _)| *known < sequence) {
                found = Some((place, sequence, value));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> Header {
        Header {
            clone: Uuid(7),
            generation: 3,
            epoch: Uuid(9),
            kind: Kind::Map,
            in_use: true,
            golden: GoldenId { size_bytes: 32 << 30, changed_ns: Some(-5), fingerprint: [6; 32] },
            golden_path: b"/srv/golden.img".to_vec(),
            note: None,
        }
    }

    #[test]
    fn a_note_comes_back_and_knows_what_is_missing() {
        let pages = [Some((0, 1)), None, Some((1, 4))];
        let noted = Header { note: Some(MapNote::of(&pages)), ..header() };
        assert_eq!(Header::decode(&noted.encode(5)), Slot::Valid(5, noted.clone()));
        let note = noted.note.unwrap();
        assert!(note.fits(&pages, true) && note.fits(&pages, false));
        let missing = [None, None, Some((1, 4))];
        assert!(!note.fits(&missing, true) && !note.fits(&missing, false));
        // Written since: right after a crash, and wrong in a file that was closed.
        for more in [[Some((0, 1)), Some((0, 1)), Some((1, 4))], [Some((1, 2)), None, Some((1, 4))]]
        {
            assert!(note.fits(&more, false) && !note.fits(&more, true));
        }
        // More pages than bits.
        let mut many = vec![Some((0, 1)); 3 * NOTE_BITS + 5];
        let note = MapNote::of(&many);
        assert!(note.fits(&many, true));
        let last = many.len() - 1;
        many[last] = None;
        assert!(!note.fits(&many, true));
    }

    /// The layout that version 1 has on every disk; a change of it is another version.
    #[test]
    fn the_layout_is_that_of_version_1() {
        let slot = header().encode(0x0102);
        assert_eq!(&slot[..16], b"rubus clone file");
        assert_eq!(slot[16..20], [1, 0, 0, 0]);
        assert_eq!(slot[24..26], [2, 1]);
        assert_eq!(slot[47], 7);
        assert_eq!(slot[48], 3);
        assert_eq!(slot[71], 9);
        assert_eq!(slot[72..80], [0, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(slot[80..88], (32_u64 << 30).to_le_bytes());
        assert_eq!(slot[96..112], (-5_i128).to_le_bytes());
        assert_eq!(slot[144..152], (3_u64 << 20).to_le_bytes());
        assert_eq!(&slot[156..171], b"/srv/golden.img");
        assert_eq!(slot[20..24], 0xf639_953d_u32.to_le_bytes());

        let layout = Layout::of(32 << 30, Kind::Map);
        assert_eq!(layout.pages, 259);
        assert_eq!(layout.page_at(1, 1), 8192 + 3 * 4096);
        assert_eq!(layout.file_bytes, (3 << 20) + (32 << 30));
        let odd = Layout::of(4097, Kind::Map);
        assert_eq!((odd.blocks, odd.file_bytes), (2, (1 << 20) + 8192));
        let shared = Layout::of(32 << 30, Kind::Shared);
        assert_eq!((shared.pages, shared.data_at), (0, 1 << 20));
    }

    #[test]
    fn every_changed_bit_of_a_slot_is_noticed() {
        let slot = header().encode(5);
        assert_eq!(Header::decode(&slot), Slot::Valid(5, header()));
        let page = Page { number: 4, words: Box::new([0x8000_0000_0000_0001; PAGE_WORDS]) };
        let page_slot = page.encode(Uuid(7), 3, 8);
        assert_eq!(Page::decode(&page_slot, Uuid(7), 3, 4), Slot::Valid(8, page.clone()));
        for bit in 0..SLOT_BYTES * 8 {
            let mut bad = *slot;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(Header::decode(&bad), Slot::Valid(..)), "{bit}");
            let mut bad = *page_slot;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Page::decode(&bad, Uuid(7), 3, 4), Slot::Torn, "{bit}");
        }
        // Of another clone, of another generation, at another place.
        for (clone, generation, number) in [(8, 3, 4), (7, 4, 4), (7, 3, 5)] {
            let other = Page::decode(&page_slot, Uuid(clone), generation, number);
            assert_eq!(other, Slot::Torn);
        }
    }

    #[test]
    fn another_version_is_not_taken_for_damage() {
        let mut slot = header().encode(5);
        slot[16] = 2;
        assert_eq!(Header::decode(&slot), Slot::Version(2));
        assert_eq!(Header::decode(&[0; SLOT_BYTES]), Slot::Empty);
        assert_eq!(Header::decode(&[1; SLOT_BYTES]), Slot::Torn);
    }

    #[test]
    fn the_later_slot_holds() {
        assert_eq!(later([Slot::Valid(4, 'a'), Slot::Valid(5, 'b')]), Some((1, 5, 'b')));
        assert_eq!(later([Slot::Valid(6, 'a'), Slot::Torn]), Some((0, 6, 'a')));
        assert_eq!(later::<char>([Slot::Torn, Slot::Empty]), None);
    }

    proptest! {
        #[test]
        fn any_slot_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), SLOT_BYTES), whole: bool) {
            let mut slot = [0; SLOT_BYTES];
            slot.copy_from_slice(&bytes);
            if whole {
                // With a sum that fits, every field is looked at.
                slot[..16].copy_from_slice(HEADER_MARK);
                slot[16..24].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
                let sum = crc32c(&slot);
                slot[20..24].copy_from_slice(&sum.to_le_bytes());
            }
            let _ = Header::decode(&slot);
            let _ = Page::decode(&slot, Uuid(1), 1, 1);
        }
    }
}
