//! Requests that are in flight, as a state machine that takes and gives bytes.
//!
//! Each request has a *slot*, in which at most one is in flight at a time, and a place in the
//! caller's memory for the data of a read. Replies may come in any order. A cookie is the slot and a
//! number that goes up, so that a reply that comes twice or too late is recognised.

use std::ops::Range;

use crate::wire::{
    ChunkFlags, ChunkKind, Command, CommandFlags, ErrorCode, ExtendedRequest, Extent, MAX_EXTENTS,
    MAX_SMALL_BODY_BYTES, Malformed, ReplyHeader, Request, SimpleReply, read_error_body,
    read_hole_body,
};

/// Maximum number of requests in flight on one connection.
pub const MAX_SLOTS: usize = 1 << 16;

/// One request, as its owner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Number of the slot, from 0.
    pub slot: u32,
    /// The command.
    pub command: Command,
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

/// How a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// Simple replies alone.
    Simple,
    /// Structured replies to what has them.
    Structured,
    /// Extended headers, in both directions.
    Extended,
}

/// The header of a request, of either length.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    bytes: [u8; ExtendedRequest::BYTES],
    length: usize,
}

impl std::ops::Deref for Header {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
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
    /// The slot is in use or beyond [`MAX_SLOTS`], or the memory is too small.
    #[error("a request cannot be made: its slot or its memory is not free")]
    BadRequest,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    command: Command,
    offset: u64,
    /// Of a block status this may be more than 32 bits hold.
    length: u64,
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

/// Extents that are on their way.
#[derive(Clone, Copy, Debug)]
struct IncomingExtents {
    slot: usize,
    left: u64,
    /// With numbers of 64 bits.
    is_long: bool,
    /// Of the context that was asked for; others are passed over.
    is_ours: bool,
    finishes: bool,
}

/// A header of a chunk, of either length.
#[derive(Clone, Copy, Debug)]
struct AnyChunk {
    flags: ChunkFlags,
    kind: ChunkKind,
    cookie: u64,
    /// The request's offset, which only extended headers repeat.
    offset: Option<u64>,
    length: u64,
}

/// All requests in flight on one connection.
#[derive(Debug)]
pub struct Flight {
    replies: Replies,
    /// The context of BLOCK_STATUS that both ends have agreed on.
    context: Option<u32>,
    slots: Vec<(u32, Option<Pending>)>,
    in_flight: usize,
    incoming: Option<Incoming>,
    incoming_extents: Option<IncomingExtents>,
    /// What block statuses have told, until it is taken.
    told: Vec<(u32, Vec<Extent>)>,
    /// What the server said last about an error.
    words: String,
    /// Bytes of what was asked for that have come so far.
    asked_bytes: u64,
}

impl Flight {
    /// No request in flight. Block statuses tell about `context`, the server's number for it.
    pub fn new(replies: Replies, context: Option<u32>) -> Self {
        Flight {
            replies,
            context,
            slots: Vec::new(),
            in_flight: 0,
            incoming: None,
            incoming_extents: None,
            told: Vec::new(),
            words: String::new(),
            asked_bytes: 0,
        }
    }

    /// Bytes of what was asked for that have come so far: data, holes and extents, without headers and words.
    pub fn asked_bytes(&self) -> u64 {
        self.asked_bytes
    }

    /// What the block status told that was in flight in this slot, from its offset on. There is at
    /// least one extent; together they may be shorter than what was asked about, and longer.
    pub fn take_extents(&mut self, slot: u32) -> Vec<Extent> {
        let place = self.told.iter().position(|(of, _)| *of == slot);
        place.map_or_else(Vec::new, |place| self.told.swap_remove(place).1)
    }

    /// How the server answers.
    pub fn replies(&self) -> Replies {
        self.replies
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
    /// [`FlightError::BadRequest`] if the slot is in use or out of range, or the data do not fit into
    /// the memory.
    pub fn begin(&mut self, due: &Due, memory_bytes: usize) -> Result<Header, FlightError> {
        let moves_data = matches!(due.command, Command::Read | Command::Write);
        let end = due.memory_at.checked_add(due.length as usize);
        if moves_data && end.is_none_or(|end| end > memory_bytes) {
            return Err(FlightError::BadRequest);
        }
        self.begin_any(due, u64::from(due.length))
    }

    /// Puts a block status into flight, which asks about `length` bytes from `offset` on; see
    /// [`Flight::take_extents`]. Without extended headers the length has 32 bits.
    ///
    /// # Errors
    /// [`FlightError::BadRequest`], also when no context was agreed on.
    pub fn begin_status(
        &mut self,
        slot: u32,
        offset: u64,
        length: u64,
    ) -> Result<Header, FlightError> {
        if self.context.is_none() {
            return Err(FlightError::BadRequest);
        }
        let due = Due {
            slot,
            command: Command::BlockStatus,
            flags: CommandFlags::NONE,
            offset,
            length: 0,
            memory_at: 0,
        };
        self.begin_any(&due, length)
    }

    fn begin_any(&mut self, due: &Due, length: u64) -> Result<Header, FlightError> {
        let is_extended = self.replies == Replies::Extended;
        let short = u32::try_from(length);
        if short.is_err() && !is_extended {
            return Err(FlightError::BadRequest);
        }
        let slot = due.slot as usize;
        if slot >= MAX_SLOTS {
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
            length,
            memory_at: due.memory_at,
            got: 0,
            hole_bytes: 0,
            error: ErrorCode::NONE,
        });
        self.in_flight += 1;
        let cookie = cookie(due.slot, *number);
        let (flags, command, offset) = (due.flags, due.command, due.offset);
        let mut header = Header { bytes: [0; ExtendedRequest::BYTES], length: Request::BYTES };
        match short {
            Ok(length) if !is_extended => {
                let request = Request { flags, command, cookie, offset, length };
                header.bytes[..Request::BYTES].copy_from_slice(&request.to_bytes());
            }
            _ => {
                let carries = command == Command::Write;
                let request = ExtendedRequest {
                    flags: if carries { flags.with(CommandFlags::PAYLOAD_LEN) } else { flags },
                    command,
                    cookie,
                    offset,
                    length,
                };
                header.bytes = request.to_bytes();
                header.length = ExtendedRequest::BYTES;
            }
        }
        Ok(header)
    }

    /// Where in the memory the next bytes of the server go, if they are data of a read: they may be
    /// put there directly, see [`Flight::filled`].
    pub fn wanted(&self) -> Option<Range<usize>> {
        self.incoming.as_ref().map(|incoming| incoming.at..incoming.at + incoming.left)
    }

    /// Records that this many bytes were received into [`Flight::wanted`].
    pub fn filled(&mut self, bytes: usize, answers: &mut Vec<Answer>) -> Result<(), FlightError> {
        let Some(incoming) = &mut self.incoming else {
            return Ok(());
        };
        incoming.at += bytes;
        incoming.left = incoming.left.saturating_sub(bytes);
        self.asked_bytes += bytes as u64;
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
    /// [`MAX_SMALL_BODY_BYTES`] and its header long.
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
                to.ok_or(FlightError::BadRequest)?.copy_from_slice(&rest[..now]);
                used += now;
                self.filled(now, answers)?;
                if now < wanted.len() {
                    return Ok(used);
                }
            }
            if self.incoming_extents.is_some() {
                used += self.extents(&bytes[used..], answers)?;
                if self.incoming_extents.is_some() {
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
                self.must_be(Replies::Structured)?;
                let chunk = AnyChunk {
                    flags: chunk.flags,
                    kind: chunk.kind,
                    cookie: chunk.cookie,
                    offset: None,
                    length: u64::from(chunk.length),
                };
                let body = self.chunk(chunk, &bytes[length..], memory, answers)?;
                Ok(body.map_or(0, |body| length + body))
            }
            Some((ReplyHeader::Extended(chunk), length)) => {
                self.must_be(Replies::Extended)?;
                let chunk = AnyChunk {
                    flags: chunk.flags,
                    kind: chunk.kind,
                    cookie: chunk.cookie,
                    offset: Some(chunk.offset),
                    length: chunk.length,
                };
                let body = self.chunk(chunk, &bytes[length..], memory, answers)?;
                Ok(body.map_or(0, |body| length + body))
            }
        }
    }

    fn must_be(&self, replies: Replies) -> Result<(), FlightError> {
        if self.replies == replies {
            Ok(())
        } else {
            Err(FlightError::Unsuitable("client that has not asked for it"))
        }
    }

    fn simple(&mut self, reply: SimpleReply, answers: &mut Vec<Answer>) -> Result<(), FlightError> {
        let replies = self.replies;
        let (slot, pending) = self.pending(reply.cookie)?;
        let is_read = pending.command == Command::Read;
        let brings_more = is_read || pending.command == Command::BlockStatus;
        match replies {
            Replies::Extended => return Err(FlightError::Unsuitable(pending.command.name())),
            Replies::Structured if brings_more => {
                return Err(FlightError::Unsuitable(pending.command.name()));
            }
            Replies::Simple | Replies::Structured => {}
        }
        pending.error = reply.error;
        if !is_read || reply.error != ErrorCode::NONE {
            return self.finish(slot, answers);
        }
        // A read's length came from 32 bits.
        pending.got = pending.length as u32;
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
        chunk: AnyChunk,
        body: &[u8],
        memory: &mut [u8],
        answers: &mut Vec<Answer>,
    ) -> Result<Option<usize>, FlightError> {
        let finishes = chunk.flags.has(ChunkFlags::DONE);
        // Even of a body that is not whole the cookie can be judged.
        let (slot, pending) = self.pending(chunk.cookie)?;
        if chunk.offset.is_some_and(|offset| offset != pending.offset) {
            return Err(FlightError::Unsuitable(pending.command.name()));
        }
        match chunk.kind {
            ChunkKind::Data => return self.data(chunk, body, finishes, answers),
            ChunkKind::BlockStatus | ChunkKind::LongBlockStatus => {
                return self.status(chunk, body, finishes);
            }
            _ => {}
        }
        if chunk.length > MAX_SMALL_BODY_BYTES as u64 {
            return Err(FlightError::Malformed(Malformed::TooLong {
                what: "a chunk",
                bytes: chunk.length,
            }));
        }
        let length = chunk.length as usize;
        let Some(body) = body.get(..length) else {
            return Ok(None);
        };
        match chunk.kind {
            ChunkKind::None if length == 0 && finishes => {}
            ChunkKind::Hole => {
                let (offset, hole_bytes) = read_hole_body(body)?;
                let at = pending.place(offset, hole_bytes)?;
                pending.hole_bytes += hole_bytes;
                let hole = memory.get_mut(at..at + hole_bytes as usize);
                hole.ok_or(FlightError::BadRequest)?.fill(0);
                self.asked_bytes += u64::from(hole_bytes);
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
        chunk: AnyChunk,
        body: &[u8],
        finishes: bool,
        answers: &mut Vec<Answer>,
    ) -> Result<Option<usize>, FlightError> {
        const OFFSET_BYTES: usize = 8;
        let (slot, pending) = self.pending(chunk.cookie)?;
        let data_bytes = chunk.length.checked_sub(OFFSET_BYTES as u64);
        let Some(data_bytes) = data_bytes.and_then(|bytes| u32::try_from(bytes).ok()) else {
            return Err(FlightError::WrongBytes);
        };
        let Some(offset) = body.first_chunk::<OFFSET_BYTES>() else {
            return Ok(None);
        };
        let at = pending.place(u64::from_be_bytes(*offset), data_bytes)?;
        if data_bytes > 0 {
            self.incoming = Some(Incoming { slot, at, left: data_bytes as usize, finishes });
        } else if finishes {
            self.finish(slot, answers)?;
        }
        Ok(Some(OFFSET_BYTES))
    }

    /// Takes what stands before the extents; they are taken as they come, since a server may tell of
    /// more of them than anybody would keep.
    fn status(
        &mut self,
        chunk: AnyChunk,
        body: &[u8],
        finishes: bool,
    ) -> Result<Option<usize>, FlightError> {
        let is_long = chunk.kind == ChunkKind::LongBlockStatus;
        let head_bytes: usize = if is_long { 8 } else { 4 };
        let context = self.context;
        let is_extended = self.replies == Replies::Extended;
        let (slot, pending) = self.pending(chunk.cookie)?;
        if pending.command != Command::BlockStatus || is_long != is_extended {
            return Err(FlightError::Unsuitable(pending.command.name()));
        }
        let Some(head) = body.get(..head_bytes) else {
            return Ok(None);
        };
        let number = |at: usize| head[at..at + 4].iter().fold(0, |n, b| n << 8 | u32::from(*b));
        let is_ours = Some(number(0)) == context;
        let each = extent_bytes(is_long);
        let left = chunk.length.checked_sub(head_bytes as u64);
        let left = left.filter(|left| *left > 0 && left % each == 0);
        let fits = |left: &u64| !is_long || u64::from(number(4)) == left / each;
        let Some(left) = left.filter(fits) else {
            return Err(FlightError::Malformed(Malformed::Length { what: "a block status" }));
        };
        // The same context is told once.
        if is_ours && self.told.iter().any(|(of, _)| *of as usize == slot) {
            return Err(FlightError::Unsuitable("block status"));
        }
        if is_ours {
            self.told.push((slot as u32, Vec::new()));
        }
        self.incoming_extents = Some(IncomingExtents { slot, left, is_long, is_ours, finishes });
        Ok(Some(head_bytes))
    }

    /// Takes whole extents from the front; gives how many bytes those were.
    fn extents(&mut self, bytes: &[u8], answers: &mut Vec<Answer>) -> Result<usize, FlightError> {
        let Some(mut incoming) = self.incoming_extents else {
            return Ok(0);
        };
        let each = extent_bytes(incoming.is_long) as usize;
        let of_slot = |told: &&mut (u32, Vec<Extent>)| told.0 as usize == incoming.slot;
        let mut extents = self.told.iter_mut().find(of_slot).map(|told| &mut told.1);
        let mut used = 0;
        for piece in bytes.chunks_exact(each) {
            if incoming.left == 0 {
                break;
            }
            let number = |part: &[u8]| part.iter().fold(0, |n, b| n << 8 | u64::from(*b));
            let (length, flags) = piece.split_at(each / 2);
            let extent = Extent { length: number(length), flags: number(flags) };
            if extent.length == 0 {
                return Err(FlightError::Malformed(Malformed::Value {
                    what: "the length of an extent",
                    value: 0,
                }));
            }
            match &mut extents {
                // What is beyond can be asked for again.
                Some(extents) if incoming.is_ours && extents.len() < MAX_EXTENTS => {
                    extents.push(extent);
                    self.asked_bytes += each as u64;
                }
                _ => {}
            }
            used += each;
            incoming.left -= each as u64;
        }
        self.incoming_extents = (incoming.left > 0).then_some(incoming);
        if incoming.left == 0 && incoming.finishes {
            self.finish(incoming.slot, answers)?;
        }
        Ok(used)
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
        let told = self.told.iter().position(|(of, _)| *of as usize == slot);
        let is_whole = match pending.command {
            Command::Read => u64::from(pending.got) == pending.length,
            Command::BlockStatus => told.is_some(),
            _ => true,
        };
        match (pending.error, told) {
            (ErrorCode::NONE, _) if !is_whole => return Err(FlightError::WrongBytes),
            (ErrorCode::NONE, _) | (_, None) => {}
            // What came before an error is worth nothing.
            (_, Some(told)) => drop(self.told.swap_remove(told)),
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
        let from = offset.checked_sub(self.offset).ok_or(FlightError::WrongBytes)?;
        let left_after = self.length.checked_sub(from).ok_or(FlightError::WrongBytes)?;
        let got = self.got.checked_add(bytes);
        match got {
            Some(got) if u64::from(bytes) <= left_after && u64::from(got) <= self.length => {
                self.got = got;
            }
            _ => return Err(FlightError::WrongBytes),
        }
        Ok(self.memory_at + from as usize)
    }
}

fn cookie(slot: u32, number: u32) -> u64 {
    u64::from(number) << 32 | u64::from(slot)
}

/// Length of one extent on the wire.
fn extent_bytes(is_long: bool) -> u64 {
    if is_long { 16 } else { 8 }
}
