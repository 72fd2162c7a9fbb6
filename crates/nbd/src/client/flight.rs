//! Requests that are in flight, as a state machine that takes and gives bytes.
//!
//! Each request has a *slot*, in which at most one is in flight at a time, and a place in the
//! caller's memory for the data of a read. Replies may come in any order. A cookie is the slot and a
//! number that goes up, so that a reply that comes twice or too late is recognised.

use std::ops::Range;

use crate::wire::{
    Chunk, ChunkFlags, ChunkKind, Command, CommandFlags, ErrorCode, MOST_SMALL_BODY_BYTES,
    Malformed, ReplyHeader, Request, SimpleReply, read_error_body, read_hole_body,
};

/// So many requests can be in flight on one connection.
pub const MOST_SLOTS: usize = 1 << 16;

/// One request, as its owner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Number of the slot, from 0.
    pub slot: u32,
    /// What.
    pub command: Command,
    /// How.
    pub flags: CommandFlags,
    /// Where on the export, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub length: u32,
    /// Where in the caller's memory the data are or go.
    pub memory_at: usize,
}

/// A request that has been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Number of the slot, which is free again.
    pub slot: u32,
    /// What went wrong, if anything did.
    pub error: ErrorCode,
    /// How many bytes of a read came as "zeros here" and not as data.
    pub hole_bytes: u32,
}

/// Why the connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlightError {
    /// A message is none.
    #[error("the server breaks the protocol: {0}")]
    Malformed(#[from] Malformed),
    /// A reply to nothing.
    #[error("the server breaks the protocol: it answers a request that is not in flight")]
    NotInFlight,
    /// A reply that does not suit its request.
    #[error("the server breaks the protocol: its reply does not suit a {0}")]
    Unsuitable(&'static str),
    /// The data lie outside of what was asked for, or are too many or too few.
    #[error("the server breaks the protocol: a read gives other bytes than were asked for")]
    WrongBytes,
    /// The slot is in use or beyond [`MOST_SLOTS`], or the memory is too small.
    #[error("a request cannot be made: its slot or its memory is not free")]
    BadRequest,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    command: Command,
    offset: u64,
    length: u32,
    memory_at: usize,
    /// Bytes of a read that have come.
    got: u32,
    hole_bytes: u32,
    error: ErrorCode,
}

/// Data of a read that are on their way.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    slot: usize,
    at: usize,
    left: usize,
    finishes: bool,
}

/// All requests in flight on one connection.
#[derive(Debug)]
pub struct Flight {
    structured: bool,
    slots: Vec<(u32, Option<Pending>)>,
    in_flight: usize,
    incoming: Option<Incoming>,
    /// What the server said last about an error.
    words: String,
}

impl Flight {
    /// No request in flight; `structured` when reads get structured replies.
    pub fn new(structured: bool) -> Self {
        Flight {
            structured,
            slots: Vec::new(),
            in_flight: 0,
            incoming: None,
            words: String::new(),
        }
    }

    /// Requests that have not been answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// What the server said about the last error, in its own words; empty when it said nothing.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// Puts a request into flight and gives the message to be sent. A write's data have to follow it.
    /// The data of a read go to `due.memory_at` of a memory of `memory_bytes` bytes.
    ///
    /// # Errors
    /// [`FlightError::BadRequest`].
    pub fn begin(
        &mut self,
        due: &Due,
        memory_bytes: usize,
    ) -> Result<[u8; Request::BYTES], FlightError> {
        let moves_data = matches!(due.command, Command::Read | Command::Write);
        let end = due.memory_at.checked_add(due.length as usize);
        if moves_data && end.is_none_or(|end| end > memory_bytes) {
            return Err(FlightError::BadRequest);
        }
        let slot = due.slot as usize;
        if slot >= MOST_SLOTS {
            return Err(FlightError::BadRequest);
        }
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, (0, None));
        }
        let Some((number, pending @ None)) = self.slots.get_mut(slot) else {
            return Err(FlightError::BadRequest);
        };
        *number = number.wrapping_add(1);
        *pending = Some(Pending {
            command: due.command,
            offset: due.offset,
            length: due.length,
            memory_at: due.memory_at,
            got: 0,
            hole_bytes: 0,
            error: ErrorCode::NONE,
        });
        self.in_flight += 1;
        let request = Request {
            flags: due.flags,
            command: due.command,
            cookie: cookie(due.slot, *number),
            offset: due.offset,
            length: due.length,
        };
        Ok(request.to_bytes())
    }

    /// Where in the memory the next bytes of the server go, if they are data of a read: they may be
    /// put there directly, see [`Flight::filled`].
    pub fn wanted(&self) -> Option<Range<usize>> {
        self.incoming
            .as_ref()
            .map(|incoming| incoming.at..incoming.at + incoming.left)
    }

    /// So many bytes have been put where [`Flight::wanted`] said.
    pub fn filled(&mut self, bytes: usize, answers: &mut Vec<Answer>) -> Result<(), FlightError> {
        let Some(incoming) = &mut self.incoming else {
            return Ok(());
        };
        incoming.at += bytes;
        incoming.left = incoming.left.saturating_sub(bytes);
        if incoming.left > 0 {
            return Ok(());
        }
        let (slot, finishes) = (incoming.slot, incoming.finishes);
        self.incoming = None;
        if finishes {
            self.finish(slot, answers)?;
        }
        Ok(())
    }

    /// Takes what the server has sent: copies data of reads into the memory, appends what has been
    /// answered. Gives how many bytes were used; the rest is the beginning of a message and has to be
    /// given again with more behind it. A message of which the whole is needed is at most
    /// [`MOST_SMALL_BODY_BYTES`] and its header long.
    ///
    /// # Errors
    /// When the server breaks the protocol.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        memory: &mut [u8],
        answers: &mut Vec<Answer>,
    ) -> Result<usize, FlightError> {
        let mut used = 0;
        loop {
            if let Some(wanted) = self.wanted() {
                let rest = &bytes[used..];
                let now = rest.len().min(wanted.len());
                let to = memory.get_mut(wanted.start..wanted.start + now);
                to.ok_or(FlightError::BadRequest)?
                    .copy_from_slice(&rest[..now]);
                used += now;
                self.filled(now, answers)?;
                if now < wanted.len() {
                    return Ok(used);
                }
            }
            match self.message(&bytes[used..], memory, answers)? {
                0 => return Ok(used),
                length => used += length,
            }
        }
    }

    /// Takes one header with all that follows it but the data of a read; gives its length, 0 while
    /// it is not whole.
    fn message(
        &mut self,
        bytes: &[u8],
        memory: &mut [u8],
        answers: &mut Vec<Answer>,
    ) -> Result<usize, FlightError> {
        match ReplyHeader::decode(bytes)? {
            None => Ok(0),
            Some((ReplyHeader::Simple(reply), length)) => {
                self.simple(reply, answers)?;
                Ok(length)
            }
            Some((ReplyHeader::Chunk(chunk), length)) => {
                let body = self.chunk(chunk, &bytes[length..], memory, answers)?;
                Ok(body.map_or(0, |body| length + body))
            }
            Some((ReplyHeader::Extended(_), _)) => {
                Err(FlightError::Unsuitable("client that has not asked for it"))
            }
        }
    }

    fn simple(&mut self, reply: SimpleReply, answers: &mut Vec<Answer>) -> Result<(), FlightError> {
        let structured = self.structured;
        let (slot, pending) = self.pending(reply.cookie)?;
        let is_read = pending.command == Command::Read;
        if is_read && structured {
            return Err(FlightError::Unsuitable("read"));
        }
        pending.error = reply.error;
        if !is_read || reply.error != ErrorCode::NONE {
            return self.finish(slot, answers);
        }
        pending.got = pending.length;
        self.incoming = Some(Incoming {
            slot,
            at: pending.memory_at,
            left: pending.length as usize,
            finishes: true,
        });
        Ok(())
    }

    /// Gives how much of the body was used, or nothing while too little of it is there.
    fn chunk(
        &mut self,
        chunk: Chunk,
        body: &[u8],
        memory: &mut [u8],
        answers: &mut Vec<Answer>,
    ) -> Result<Option<usize>, FlightError> {
        if !self.structured {
            return Err(FlightError::Unsuitable("client that has not asked for it"));
        }
        let finishes = chunk.flags.has(ChunkFlags::DONE);
        let length = chunk.length as usize;
        if chunk.kind == ChunkKind::Data {
            return self.data(chunk, body, finishes, answers);
        }
        if length > MOST_SMALL_BODY_BYTES {
            return Err(FlightError::Malformed(Malformed::TooLong {
                what: "a chunk",
                bytes: u64::from(chunk.length),
            }));
        }
        let Some(body) = body.get(..length) else {
            // Even so the cookie can be judged.
            self.pending(chunk.cookie)?;
            return Ok(None);
        };
        let (slot, pending) = self.pending(chunk.cookie)?;
        match chunk.kind {
            ChunkKind::None if length == 0 && finishes => {}
            ChunkKind::Hole => {
                let (offset, hole_bytes) = read_hole_body(body)?;
                let at = pending.place(offset, hole_bytes)?;
                pending.hole_bytes += hole_bytes;
                let hole = memory.get_mut(at..at + hole_bytes as usize);
                hole.ok_or(FlightError::BadRequest)?.fill(0);
            }
            kind if kind.is_error() => {
                let (error, words) = read_error_body(kind, body)?;
                pending.error = error;
                self.words = words;
            }
            _ => return Err(FlightError::Unsuitable(pending.command.name())),
        }
        if finishes {
            self.finish(slot, answers)?;
        }
        Ok(Some(length))
    }

    /// Takes the offset before the data; the data are taken as they come.
    fn data(
        &mut self,
        chunk: Chunk,
        body: &[u8],
        finishes: bool,
        answers: &mut Vec<Answer>,
    ) -> Result<Option<usize>, FlightError> {
        const OFFSET_BYTES: usize = 8;
        let (slot, pending) = self.pending(chunk.cookie)?;
        let Some(data_bytes) = chunk.length.checked_sub(OFFSET_BYTES as u32) else {
            return Err(FlightError::WrongBytes);
        };
        let Some(offset) = body.first_chunk::<OFFSET_BYTES>() else {
            return Ok(None);
        };
        let at = pending.place(u64::from_be_bytes(*offset), data_bytes)?;
        if data_bytes > 0 {
            self.incoming = Some(Incoming {
                slot,
                at,
                left: data_bytes as usize,
                finishes,
            });
        } else if finishes {
            self.finish(slot, answers)?;
        }
        Ok(Some(OFFSET_BYTES))
    }

    fn pending(&mut self, cookie: u64) -> Result<(usize, &mut Pending), FlightError> {
        let slot = (cookie & u64::from(u32::MAX)) as usize;
        match self.slots.get_mut(slot) {
            Some((number, Some(pending))) if u64::from(*number) == cookie >> 32 => {
                Ok((slot, pending))
            }
            _ => Err(FlightError::NotInFlight),
        }
    }

    fn finish(&mut self, slot: usize, answers: &mut Vec<Answer>) -> Result<(), FlightError> {
        let place = self.slots.get_mut(slot).map(|(_, place)| place);
        let Some((place, pending)) = place.and_then(|place| (*place).map(|it| (place, it))) else {
            return Err(FlightError::NotInFlight);
        };
        let is_whole = pending.command != Command::Read || pending.got == pending.length;
        if pending.error == ErrorCode::NONE && !is_whole {
            return Err(FlightError::WrongBytes);
        }
        *place = None;
        self.in_flight -= 1;
        answers.push(Answer {
            slot: slot as u32,
            error: pending.error,
            hole_bytes: pending.hole_bytes,
        });
        Ok(())
    }
}

impl Pending {
    /// Where in the memory that part of the read belongs. The parts together must not be more than
    /// the whole.
    fn place(&mut self, offset: u64, bytes: u32) -> Result<usize, FlightError> {
        if self.command != Command::Read {
            return Err(FlightError::Unsuitable(self.command.name()));
        }
        let from = offset
            .checked_sub(self.offset)
            .ok_or(FlightError::WrongBytes)?;
        let left_after = u64::from(self.length)
            .checked_sub(from)
            .ok_or(FlightError::WrongBytes)?;
        let got = self.got.checked_add(bytes);
        match got {
            Some(got) if u64::from(bytes) <= left_after && got <= self.length => self.got = got,
            _ => return Err(FlightError::WrongBytes),
        }
        Ok(self.memory_at + from as usize)
    }
}

fn cookie(slot: u32, number: u32) -> u64 {
    u64::from(number) << 32 | u64::from(slot)
}
