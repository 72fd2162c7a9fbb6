//! The contents of one file: shared where the filesystem can, else copied piece by piece with its holes.

use std::sync::atomic::{AtomicBool, Ordering};

use rubus_host::files::copy_io::{File, Meta, Reason};

use super::trouble::Trouble;

/// Read and written at once.
pub(super) const BUFFER_BYTES: usize = 256 << 10;
/// How far the kernel is asked to read ahead in a large file.
const AHEAD_BYTES: u64 = 4 << 20;
/// After so much of a large file, the page cache is told to forget it.
const FORGET_BYTES: u64 = 8 << 20;

/// The shorter ways, as long as nothing has shown that the filesystems do not have them.
#[derive(Debug)]
pub(super) struct Ways {
    can_share: AtomicBool,
    can_copy_inside: AtomicBool,
}

impl Ways {
    /// Between two filesystems neither is tried.
    pub(super) fn new(is_one_filesystem: bool) -> Self {
        Ways {
            can_share: AtomicBool::new(is_one_filesystem),
            can_copy_inside: AtomicBool::new(is_one_filesystem),
        }
    }
}

/// What became of the contents of a file, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Poured {
    pub(super) copied: u64,
    pub(super) shared: u64,
    pub(super) holes: u64,
}

/// Brings the contents of one file into another, which is empty.
pub(super) fn pour(
    source: &File,
    target: &File,
    meta: &Meta,
    ways: &Ways,
    buffer: &mut [u8],
) -> Result<Poured, Trouble> {
    let size = meta.size_bytes;
    if size == 0 {
        return Ok(Poured::default());
    }
    if ways.can_share.load(Ordering::Relaxed) {
        match target.share(source) {
            Ok(()) => {
                return Ok(Poured { shared: size, ..Poured::default() });
            }
            Err(failure) if failure.reason() == Reason::Full => {
                return Err(Trouble::Target(failure));
            }
            Err(_) => ways.can_share.store(false, Ordering::Relaxed),
        }
    }
    let has_holes = meta.allocated_bytes < size;
    let mut pouring = Pouring { source, target, ways, buffer, asked: 0, forgotten: 0, copied: 0 };
    let mut end_of_data = 0;
    let mut at = 0;
    while at < size {
        let piece = if has_holes {
            match source.next_data(at) {
                Ok(piece) => piece,
                Err(failure) if failure.reason() == Reason::Unsupported => Some((at, size)),
                Err(failure) => return Err(Trouble::Source(failure)),
            }
        } else {
            Some((at, size))
        };
        let Some((start, end)) = piece else { break };
        let end = end.min(size);
        if start >= end {
            break;
        }
        end_of_data = pouring.piece(start, end)?;
        at = end;
        if end_of_data < end {
            // It became shorter meanwhile.
            break;
        }
    }
    let copied = pouring.copied;
    pouring.forget(size);
    let became_shorter = end_of_data < at;
    if end_of_data < size && !became_shorter {
        target.set_length(size).map_err(Trouble::Target)?;
    }
    Ok(Poured { copied, shared: 0, holes: size.saturating_sub(copied) })
}

/// Brings contents that were read already into a file, which is empty: parts and their offsets, the rest holes.
pub(super) fn pour_parts(
    parts: &[(u64, &[u8])],
    target: &File,
    size: u64,
) -> Result<Poured, Trouble> {
    let (mut copied, mut end) = (0, 0);
    for (offset, bytes) in parts {
        target.write_at(bytes, *offset).map_err(Trouble::Target)?;
        copied += bytes.len() as u64;
        end = end.max(offset + bytes.len() as u64);
    }
    if end < size {
        target.set_length(size).map_err(Trouble::Target)?;
    }
    Ok(Poured { copied, shared: 0, holes: size.saturating_sub(copied) })
}

struct Pouring<'a> {
    source: &'a File,
    target: &'a File,
    ways: &'a Ways,
    buffer: &'a mut [u8],
    /// Up to here the kernel was asked to read.
    asked: u64,
    /// Up to here it was told to forget.
    forgotten: u64,
    copied: u64,
}

impl Pouring<'_> {
    /// Copies the piece from `start` to `end`; gives where the data really ended.
    fn piece(&mut self, start: u64, end: u64) -> Result<u64, Trouble> {
        let mut at = start;
        while at < end {
            self.ask_ahead(at, end);
            let want = (end - at).min(self.buffer.len() as u64);
            let done = match self.inside_the_kernel(at, want) {
                Some(done) => done,
                None => self.by_hand(at, want)?,
            };
            if done == 0 {
                break;
            }
            at += done;
            self.copied += done;
            if at - self.forgotten >= FORGET_BYTES {
                self.forget(at);
            }
        }
        Ok(at)
    }

    fn inside_the_kernel(&self, at: u64, bytes: u64) -> Option<u64> {
        if !self.ways.can_copy_inside.load(Ordering::Relaxed) {
            return None;
        }
        match self.target.copy_from(self.source, at, bytes) {
            Ok(0) => None,
            Ok(copied) => Some(copied),
            Err(failure) => {
                // Which side failed is not known; the way by hand finds out. A piece that cannot be read does not mean
                // that the next one must go by hand.
                if failure.reason() != Reason::Device {
                    self.ways.can_copy_inside.store(false, Ordering::Relaxed);
                }
                None
            }
        }
    }

    fn by_hand(&mut self, at: u64, bytes: u64) -> Result<u64, Trouble> {
        let buffer = &mut self.buffer[..bytes as usize];
        let read = self.source.read_at(buffer, at).map_err(Trouble::Source)?;
        self.target.write_at(&buffer[..read], at).map_err(Trouble::Target)?;
        Ok(read as u64)
    }

    /// Keeps the device busy: asks for the next megabytes before they are waited for.
    fn ask_ahead(&mut self, at: u64, end: u64) {
        if end - at.min(end) <= self.buffer.len() as u64 {
            return;
        }
        let from = self.asked.max(at);
        let to = end.min(at + AHEAD_BYTES);
        if to > from && (to - from >= AHEAD_BYTES / 2 || to == end) {
            self.source.will_need(from, to - from);
            self.asked = to;
        }
    }

    /// Takes what was copied out of the page cache, in the target after it is written.
    fn forget(&mut self, to: u64) {
        let from = self.forgotten;
        if to > from {
            self.source.not_needed(from, to - from);
            if to >= FORGET_BYTES {
                // Once to begin writing, and once more for what was written since the last time.
                let before = from.saturating_sub(FORGET_BYTES);
                self.target.not_needed(before, to - before);
            }
            self.forgotten = to;
        }
    }
}
