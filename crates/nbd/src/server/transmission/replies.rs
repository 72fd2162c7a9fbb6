//! The server's answers, in the style that the client has asked for.

use super::Ticket;
use crate::server::disk;
use crate::wire::{
    AllocationFlags, Chunk, ChunkFlags, ChunkKind, ErrorCode, ExtendedChunk, Extent, MAX_EXTENTS,
    SimpleReply, write_error_body, write_hole_body, write_status_body,
};

const OFFSET_BYTES: usize = 8;

const HOLE_BYTES: u64 = 12;

/// The style of replies on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// A code, and the data of a read.
    Simple,
    /// Chunks, so that a read may have holes and an error may have words.
    Structured,
    /// The same with lengths of 64 bits in requests and replies.
    Extended,
}

impl Replies {
    /// No head of data is longer.
    pub const MAX_DATA_HEAD_BYTES: usize = ExtendedChunk::BYTES + OFFSET_BYTES;

    /// Appends a reply without data or error.
    #[inline]
    pub fn done(self, ticket: Ticket, out: &mut Vec<u8>) {
        match self {
            Replies::Simple => simple(ticket, ErrorCode::NONE, out),
            _ => self.chunk(ticket, ChunkKind::None, 0, true, out),
        }
    }

    /// Appends "not done". It ends the reply.
    pub fn failed(self, ticket: Ticket, error: ErrorCode, words: &str, out: &mut Vec<u8>) {
        self.error(ticket, error, words, None, out);
    }

    /// Appends "not done because of what is at `offset`". It ends the reply.
    pub fn failed_at(
        self,
        ticket: Ticket,
        error: ErrorCode,
        words: &str,
        offset: u64,
        out: &mut Vec<u8>,
    ) {
        self.error(ticket, error, words, Some(offset), out);
    }

    /// Length of what comes before the data of a read.
    #[inline]
    pub const fn data_head_bytes(self) -> usize {
        match self {
            Replies::Simple => SimpleReply::BYTES,
            Replies::Structured => Chunk::BYTES + OFFSET_BYTES,
            Replies::Extended => ExtendedChunk::BYTES + OFFSET_BYTES,
        }
    }

    /// Writes to the front of `head` what comes before `length` bytes of data from `offset` on; gives
    /// its length. With `last` the data end the reply. Simple replies have all of the data in one
    /// piece.
    #[inline]
    pub fn data_head(
        self,
        ticket: Ticket,
        offset: u64,
        length: u32,
        last: bool,
        head: &mut [u8; Replies::MAX_DATA_HEAD_BYTES],
    ) -> usize {
        let at = match self {
            Replies::Simple => {
                let reply = SimpleReply { error: ErrorCode::NONE, cookie: ticket.cookie };
                head[..SimpleReply::BYTES].copy_from_slice(&reply.to_bytes());
                return SimpleReply::BYTES;
            }
            Replies::Structured => {
                let chunk = Chunk {
                    flags: flags(last),
                    kind: ChunkKind::Data,
                    cookie: ticket.cookie,
                    // No read is long enough for this to overflow.
                    length: length.saturating_add(OFFSET_BYTES as u32),
                };
                head[..Chunk::BYTES].copy_from_slice(&chunk.to_bytes());
                Chunk::BYTES
            }
            Replies::Extended => {
                let chunk = ExtendedChunk {
                    flags: flags(last),
                    kind: ChunkKind::Data,
                    cookie: ticket.cookie,
                    offset: ticket.offset,
                    length: u64::from(length) + OFFSET_BYTES as u64,
                };
                head[..ExtendedChunk::BYTES].copy_from_slice(&chunk.to_bytes());
                ExtendedChunk::BYTES
            }
        };
        head[at..at + OFFSET_BYTES].copy_from_slice(&offset.to_be_bytes());
        at + OFFSET_BYTES
    }

    /// Appends "zeros from `offset` on". With `last` they end the reply. Simple replies do not have
    /// this: false, and nothing is appended.
    #[must_use]
    pub fn hole(
        self,
        ticket: Ticket,
        offset: u64,
        length: u32,
        last: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        if self == Replies::Simple {
            return false;
        }
        self.chunk(ticket, ChunkKind::Hole, HOLE_BYTES, last, out);
        write_hole_body(offset, length, out);
        true
    }

    /// Appends the answer to [`Work::Extents`](super::Work::Extents): at most `length` bytes of the extents, and one if
    /// `only_one`. It ends the reply.
    pub fn extents(
        self,
        ticket: Ticket,
        context: u32,
        (length, only_one): (u64, bool),
        extents: &[disk::Extent],
        out: &mut Vec<u8>,
    ) {
        let (kind, head, each) = match self {
            Replies::Simple => {
                // Unreachable: block status needs structured replies.
                self.failed(ticket, ErrorCode::INVALID, "", out);
                return;
            }
            Replies::Structured => (ChunkKind::BlockStatus, 4, 8),
            Replies::Extended => (ChunkKind::LongBlockStatus, 8, 16),
        };
        let most = if only_one { 1 } else { MAX_EXTENTS };
        let told = allocation(extents, length, most);
        self.chunk(ticket, kind, head + each * told.len() as u64, true, out);
        let long = self == Replies::Extended;
        write_status_body(long, context, told.into_iter(), out);
    }

    fn error(
        self,
        ticket: Ticket,
        error: ErrorCode,
        words: &str,
        offset: Option<u64>,
        out: &mut Vec<u8>,
    ) {
        if self == Replies::Simple {
            return simple(ticket, error, out);
        }
        let kind = match offset {
            None => ChunkKind::Error,
            Some(_) => ChunkKind::ErrorAt,
        };
        let mut body = Vec::new();
        write_error_body(error, words, offset, &mut body);
        self.chunk(ticket, kind, body.len() as u64, true, out);
        out.extend_from_slice(&body);
    }

    #[inline]
    fn chunk(self, ticket: Ticket, kind: ChunkKind, length: u64, last: bool, out: &mut Vec<u8>) {
        let (flags, cookie) = (flags(last), ticket.cookie);
        match self {
            Replies::Extended => {
                ExtendedChunk { flags, kind, cookie, offset: ticket.offset, length }.encode(out)
            }
            _ => Chunk { flags, kind, cookie, length: length as u32 }.encode(out),
        }
    }
}

#[inline]
fn flags(last: bool) -> ChunkFlags {
    if last { ChunkFlags::DONE } else { ChunkFlags::NONE }
}

#[inline]
fn simple(ticket: Ticket, error: ErrorCode, out: &mut Vec<u8>) {
    let cookie = ticket.cookie;
    SimpleReply { error, cookie }.encode(out);
}

/// A disk's extents as a client is told: neighbours of one kind are one, there are at most `most`, and
/// none goes beyond `length`. There is at least one: a disk that says nothing has data.
pub(super) fn allocation(extents: &[disk::Extent], length: u64, most: usize) -> Vec<Extent> {
    let mut told: Vec<Extent> = Vec::with_capacity(extents.len().min(most));
    let mut left = length;
    for extent in extents {
        let now = extent.length.min(left);
        let mut flags = AllocationFlags::NONE;
        if extent.is_hole {
            flags = flags.with(AllocationFlags::HOLE);
        }
        if extent.is_zero {
            flags = flags.with(AllocationFlags::ZERO);
        }
        if now == 0 {
            continue;
        }
        let is_full = told.len() == most;
        match told.last_mut() {
            Some(last) if last.flags == flags.0 => last.length += now,
            _ if is_full => break,
            _ => told.push(Extent { length: now, flags: flags.0 }),
        }
        left -= now;
    }
    if told.is_empty() {
        told.push(Extent { length, flags: 0 });
    }
    told
}
