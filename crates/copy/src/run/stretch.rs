//! Stretches of the disk: the contents of many small files that lie side by side, read at once.
//!
//! A request for each small file is what makes a copy from a card slow: a card answers some 1500 requests a second, of
//! 4 KiB as well as of 12. Where the filesystem tells the places of files' contents, those that lie close together are
//! read with one request, the gaps between them included.
//!
//! What lies on the disk is what the file holds when nothing is still to be written (the filesystem is told to do
//! that first) and nothing changes meanwhile. So a file is read this way only if it was not touched for a while, it is
//! held open so that its blocks are not given to another, and afterwards its places and its time of change are looked at
//! again; a later change is found when it is copied, as with every file.

use rubus_host::files::copy_io::{DISK_ALIGNMENT, Disk, Extent, File, Flags, Kind, Meta, Place};

use super::window::SMALL_BYTES;

/// A gap up to this length is read through, rather than starting a new request: what a slow card
/// reads in the time of a request.
const MAX_GAP_BYTES: u64 = 16 << 10;
/// What is held at once.
const BUFFER_BYTES: usize = 4 << 20;
/// Files that were touched in the last seconds are read through the filesystem: a second change within the step of its
/// clock (a second on ext3) would not be seen in their times.
const REST_S: i64 = 10;
/// The flag of a file whose contents go through the journal.
const JOURNALLED: Flags = Flags(0x4000);

/// A file that may be read from the disk.
#[derive(Debug)]
pub(super) struct Candidate {
    /// Which of the batch.
    pub(super) slot: usize,
    meta: Meta,
    extents: Vec<Extent>,
}

/// Looks whether a file may be read from the disk.
pub(super) fn candidate(slot: usize, file: &File, now_s: i64) -> Option<Candidate> {
    let meta = file.look().ok()?;
    let rests = meta.changed.seconds < now_s - REST_S && meta.modified.seconds < now_s - REST_S;
    if meta.kind != Kind::File || !(1..=SMALL_BYTES).contains(&meta.size_bytes) || !rests {
        return None;
    }
    let flags = Place::File(file).flags().ok()?;
    if !flags.and(JOURNALLED).is_empty() {
        return None;
    }
    let extents = file.extents()?;
    Some(Candidate { slot, meta, extents })
}

impl Candidate {
    /// Whether the file still is what and where it was.
    fn is_still(&self, file: &File) -> bool {
        let same = file.look().is_ok_and(|now| {
            (now.size_bytes, now.modified, now.changed)
                == (self.meta.size_bytes, self.meta.modified, self.meta.changed)
        });
        same && file.extents().as_ref() == Some(&self.extents)
    }
}

/// A stretch of the disk, and how many parts of files are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    start: u64,
    end: u64,
    parts: usize,
}

/// Joins the parts that lie close together.
fn join(extents: impl Iterator<Item = Extent>) -> Vec<Stretch> {
    let written = extents.filter(|extent| !extent.is_unwritten);
    let mut places: Vec<(u64, u64)> =
        written.map(|extent| (extent.place, extent.place + extent.bytes)).collect();
    places.sort_unstable();
    let mut stretches: Vec<Stretch> = Vec::new();
    for (start, end) in places {
        match stretches.last_mut() {
            Some(last) if start <= last.end + MAX_GAP_BYTES => {
                last.end = last.end.max(end);
                last.parts += 1;
            }
            _ => stretches.push(Stretch { start, end, parts: 1 }),
        }
    }
    stretches
}

/// Parts of a file with their offsets; what is between them is holes.
pub(super) type Parts<'a> = Vec<(u64, &'a [u8])>;

/// What was read from the disk for a batch.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    buffer: Vec<u8>,
    /// Stretches, and where in the buffer they begin.
    stretches: Vec<(Stretch, usize)>,
    files: Vec<Candidate>,
}

impl Loaded {
    /// Reads what is worth it. `file` gives the open file of a slot.
    pub(super) fn load<'f>(
        &mut self,
        disk: &Disk,
        candidates: Vec<Candidate>,
        file: impl Fn(usize) -> Option<&'f File>,
    ) {
        self.stretches.clear();
        self.files.clear();
        if self.buffer.is_empty() {
            self.buffer = vec![0; BUFFER_BYTES + DISK_ALIGNMENT];
        }
        let mut at = self.buffer.as_ptr().align_offset(DISK_ALIGNMENT);
        let all = candidates.iter().flat_map(|one| one.extents.iter().copied());
        for stretch in join(all) {
            let length = (stretch.end - stretch.start) as usize;
            // One part alone is read as well through the filesystem, which may have it in memory.
            if stretch.parts < 2 || at + length > self.buffer.len() {
                continue;
            }
            let room = &mut self.buffer[at..at + length];
            // A part that cannot be read is found by reading its file.
            if disk.read_at(room, stretch.start).is_ok() {
                self.stretches.push((stretch, at));
                at += length;
            }
        }
        for one in candidates {
            let is_whole =
                one.extents.iter().all(|extent| extent.is_unwritten || self.find(extent).is_some());
            if is_whole && file(one.slot).is_some_and(|file| one.is_still(file)) {
                self.files.push(one);
            }
        }
    }

    /// Forgets what was read before.
    pub(super) fn clear(&mut self) {
        self.stretches.clear();
        self.files.clear();
    }

    /// The contents of a file of the batch, if they were read: its length, and the parts that are no holes.
    pub(super) fn contents(&self, slot: usize) -> Option<(&Meta, Parts<'_>)> {
        let one = self.files.iter().find(|one| one.slot == slot)?;
        let mut parts = Vec::new();
        for extent in one.extents.iter().filter(|extent| !extent.is_unwritten) {
            let bytes = self.find(extent)?;
            // The last block goes beyond the end of the file.
            let length = one.meta.size_bytes.saturating_sub(extent.offset);
            let length = length.min(extent.bytes) as usize;
            if length > 0 {
                parts.push((extent.offset, &bytes[..length]));
            }
        }
        Some((&one.meta, parts))
    }

    fn find(&self, extent: &Extent) -> Option<&[u8]> {
        let (stretch, at) = self.stretches.iter().find(|(stretch, _)| {
            stretch.start <= extent.place && extent.place + extent.bytes <= stretch.end
        })?;
        let start = at + (extent.place - stretch.start) as usize;
        self.buffer.get(start..start + extent.bytes as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(place: u64, bytes: u64) -> Extent {
        Extent { offset: 0, place, bytes, is_unwritten: false }
    }

    #[test]
    fn what_lies_close_together_is_one_stretch() {
        let extents = [
            extent(1 << 20, 4096),
            extent(4096, 4096),
            extent(8192 + MAX_GAP_BYTES, 4096),
            extent((1 << 20) + 4096 + MAX_GAP_BYTES + 4096, 4096),
        ];
        let found = join(extents.into_iter());
        let expected = [
            (4096, 12_288 + MAX_GAP_BYTES, 2),
            (1 << 20, (1 << 20) + 4096, 1),
            ((1 << 20) + 8192 + MAX_GAP_BYTES, (1 << 20) + 12_288 + MAX_GAP_BYTES, 1),
        ];
        let expected = expected.map(|(start, end, parts)| Stretch { start, end, parts });
        assert_eq!(found, expected);
    }

    #[test]
    fn what_was_never_written_is_not_read() {
        let unwritten = Extent { is_unwritten: true, ..extent(4096, 4096) };
        assert_eq!(join([unwritten].into_iter()), []);
    }
}
