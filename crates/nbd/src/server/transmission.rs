//! The server's side after the handshake: reads requests, judges them, and writes replies.
//!
//! Nothing here waits, knows a socket or takes memory for a request. [`Rules::parse`] looks at the
//! front of what a client has sent. Whatever it says, the client and the server stay in step, or the
//! connection is of no more use ([`Parsed::Fatal`]). [`Replies`] has the answers in the style that the
//! client has asked for.

use super::disk::{self, Abilities, Zeroing};
use crate::wire::{
    AllocationFlags, BlockSizes, Chunk, ChunkFlags, ChunkKind, Command, CommandFlags, ErrorCode,
    ExtendedChunk, ExtendedRequest, Extent, MOST_EXTENTS, Malformed, Request as CompactRequest,
    SimpleReply, StatusFilter, TransmissionFlags, write_error_body, write_hole_body,
    write_status_body,
};

/// Payloads that are too large are thrown away up to this length, so that the client is told; beyond
/// it, it is hung up on.
pub const MOST_SKIPPED_BYTES: u64 = 128 << 20;

/// What a client may ask for on one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Size of the export.
    pub size_bytes: u64,
    /// What can be done with it, as the client was told.
    pub flags: TransmissionFlags,
    /// The sizes of requests. What is no multiple of the least is refused, and so is a read or a write
    /// of more than the most.
    pub block_sizes: BlockSizes,
    /// How requests and replies look.
    pub replies: Replies,
    /// Number of the context [`crate::wire::BASE_ALLOCATION`], if the client has asked for it.
    pub allocation: Option<u32>,
}

/// What a reply repeats of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The client's own mark.
    pub cookie: u64,
    /// The offset in the request's header.
    pub offset: u64,
}

/// A request that keeps to the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// For the reply.
    pub ticket: Ticket,
    /// What is to be done.
    pub work: Work,
}

/// What is to be done. Offsets and lengths are in bytes, not 0 and within the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Send bytes.
    Read {
        /// From here.
        offset: u64,
        /// So many.
        length: u32,
        /// In one piece.
        whole: bool,
    },
    /// Take the bytes that follow the request.
    Write {
        /// To here.
        offset: u64,
        /// So many.
        length: u32,
        /// On stable storage before it is answered.
        durable: bool,
    },
    /// Everything that has been answered is to be on stable storage.
    Flush,
    /// Forget these bytes.
    Trim {
        /// From here.
        offset: u64,
        /// So many.
        length: u64,
        /// As for a write.
        durable: bool,
    },
    /// Make these bytes zeros.
    Zero {
        /// From here.
        offset: u64,
        /// So many.
        length: u64,
        /// How.
        how: Zeroing,
        /// As for a write.
        durable: bool,
    },
    /// Read these bytes ahead.
    Prefetch {
        /// From here.
        offset: u64,
        /// So many.
        length: u64,
    },
    /// Say which of these bytes take space.
    Extents {
        /// From here.
        offset: u64,
        /// So many.
        length: u64,
        /// Only the first extent.
        only_one: bool,
        /// Number of the context for the reply.
        context: u32,
    },
    /// Just say that it is done.
    Nothing,
}

/// Why a request is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For the reply.
    pub ticket: Ticket,
    /// The protocol's number.
    pub error: ErrorCode,
    /// In words, for those clients to which words can be sent.
    pub words: &'static str,
}

/// What is at the front of the bytes of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Too little: at least so many bytes are needed.
    Need(usize),
    /// A request. What is to be written follows the header and is not looked at here.
    Request {
        /// The request.
        request: Request,
        /// So many bytes it took.
        header_bytes: usize,
    },
    /// A request that is to be answered with an error.
    Refuse {
        /// The error.
        refusal: Refusal,
        /// So many bytes the request took.
        header_bytes: usize,
        /// So many more bytes of the client are to be thrown away, before the next request.
        skip_bytes: u64,
    },
    /// The client goes, once everything before has been answered.
    Disconnect,
    /// This is not, or no more, an NBD client: hang up.
    Fatal(Malformed),
}

/// The header of a request of either kind.
struct Header {
    flags: CommandFlags,
    command: Command,
    ticket: Ticket,
    length: u64,
    bytes: usize,
}

type Judged = Result<Work, (ErrorCode, &'static str)>;

const fn invalid(words: &'static str) -> (ErrorCode, &'static str) {
    (ErrorCode::INVALID, words)
}

impl Rules {
    /// Length of a request's header.
    pub fn header_bytes(&self) -> usize {
        match self.replies {
            Replies::Simple | Replies::Structured => CompactRequest::BYTES,
            Replies::Extended => ExtendedRequest::BYTES,
        }
    }

    /// Judges what is at the front of `bytes`.
    #[inline]
    pub fn parse(&self, bytes: &[u8]) -> Parsed {
        let Some(head) = bytes.get(..self.header_bytes()) else {
            return Parsed::Need(self.header_bytes());
        };
        let header = match self.header(head) {
            Ok(header) => header,
            Err(why) => return Parsed::Fatal(why),
        };
        if header.command == Command::Disconnect {
            return Parsed::Disconnect;
        }
        let payload = self.payload_bytes(&header);
        if payload > MOST_SKIPPED_BYTES {
            return Parsed::Fatal(Malformed::TooLong {
                what: "what follows a request",
                bytes: payload,
            });
        }
        let is_filter = header.command == Command::BlockStatus && payload > 0;
        let judged = match is_filter {
            false => self.judge(&header),
            true => match self.filter(&header, payload, &bytes[header.bytes..]) {
                Filter::Need(more) => return Parsed::Need(header.bytes + more),
                Filter::Work(work) => {
                    return Parsed::Request {
                        request: Request {
                            ticket: header.ticket,
                            work,
                        },
                        header_bytes: header.bytes + payload as usize,
                    };
                }
                Filter::Wrong(why) => Err(why),
            },
        };
        match judged {
            Ok(work) => Parsed::Request {
                request: Request {
                    ticket: header.ticket,
                    work,
                },
                header_bytes: header.bytes,
            },
            Err((error, words)) => Parsed::Refuse {
                refusal: Refusal {
                    ticket: header.ticket,
                    error,
                    words,
                },
                header_bytes: header.bytes,
                skip_bytes: payload,
            },
        }
    }

    #[inline]
    fn header(&self, head: &[u8]) -> Result<Header, Malformed> {
        Ok(match self.replies {
            Replies::Simple | Replies::Structured => {
                let request = CompactRequest::decode(head)?;
                Header {
                    flags: request.flags,
                    command: request.command,
                    ticket: Ticket {
                        cookie: request.cookie,
                        offset: request.offset,
                    },
                    length: u64::from(request.length),
                    bytes: CompactRequest::BYTES,
                }
            }
            Replies::Extended => {
                let request = ExtendedRequest::decode(head)?;
                Header {
                    flags: request.flags,
                    command: request.command,
                    ticket: Ticket {
                        cookie: request.cookie,
                        offset: request.offset,
                    },
                    length: request.length,
                    bytes: ExtendedRequest::BYTES,
                }
            }
        })
    }

    /// How many bytes follow the header. With compact headers only those of a write do; with extended
    /// ones any request says whether some do. A write without that mark is one all the same.
    fn payload_bytes(&self, header: &Header) -> u64 {
        let is_marked =
            self.replies == Replies::Extended && header.flags.has(CommandFlags::PAYLOAD_LEN);
        match header.command == Command::Write || is_marked {
            true => header.length,
            false => 0,
        }
    }

    #[inline]
    fn judge(&self, header: &Header) -> Judged {
        let (command, flags) = (header.command, header.flags);
        self.judge_flags(command, flags)?;
        let (offset, length) = (header.ticket.offset, header.length);
        let changes = matches!(
            command,
            Command::Write | Command::Trim | Command::WriteZeroes
        );
        if changes && self.flags.has(TransmissionFlags::READ_ONLY) {
            return Err((ErrorCode::PERMISSION, "the export is read-only"));
        }
        if command == Command::Flush {
            return match (offset, length) {
                (0, 0) => Ok(Work::Flush),
                _ => Err(invalid("a flush has no offset and no length")),
            };
        }
        self.judge_range(command, offset, length)?;
        let durable = flags.has(CommandFlags::FUA);
        Ok(match command {
            Command::Read => Work::Read {
                offset,
                length: self.judge_size(length)?,
                whole: flags.has(CommandFlags::DF),
            },
            Command::Write => Work::Write {
                offset,
                length: self.judge_size(length)?,
                durable,
            },
            Command::Trim => Work::Trim {
                offset,
                length,
                durable,
            },
            Command::WriteZeroes => Work::Zero {
                offset,
                length,
                how: Zeroing {
                    may_punch: !flags.has(CommandFlags::NO_HOLE),
                    only_if_fast: flags.has(CommandFlags::FAST_ZERO),
                },
                durable,
            },
            Command::Cache => Work::Prefetch { offset, length },
            Command::BlockStatus => {
                let context = self.allocation;
                Work::Extents {
                    offset,
                    length,
                    only_one: flags.has(CommandFlags::REQ_ONE),
                    context: context.ok_or(invalid("no context has been agreed on"))?,
                }
            }
            Command::Flush | Command::Disconnect | Command::Other(_) => {
                return Err(invalid("the command is not known"));
            }
        })
    }

    /// Whether the export has the command, and the command the flags.
    #[inline]
    fn judge_flags(
        &self,
        command: Command,
        flags: CommandFlags,
    ) -> Result<(), (ErrorCode, &'static str)> {
        let has = |flag| self.flags.has(flag);
        let read_only = has(TransmissionFlags::READ_ONLY);
        let (is_known, mut allowed) = match command {
            Command::Read if has(TransmissionFlags::SEND_DF) => (true, CommandFlags::DF),
            Command::Read => (true, CommandFlags::NONE),
            Command::Write if self.replies == Replies::Extended => {
                (true, CommandFlags::PAYLOAD_LEN)
            }
            Command::Write => (true, CommandFlags::NONE),
            Command::Flush => (has(TransmissionFlags::SEND_FLUSH), CommandFlags::NONE),
            // On an export that is only read these are known well enough to be forbidden.
            Command::Trim => (
                has(TransmissionFlags::SEND_TRIM) || read_only,
                CommandFlags::NONE,
            ),
            Command::WriteZeroes => (
                has(TransmissionFlags::SEND_WRITE_ZEROES) || read_only,
                match has(TransmissionFlags::SEND_FAST_ZERO) {
                    true => CommandFlags::NO_HOLE.with(CommandFlags::FAST_ZERO),
                    false => CommandFlags::NO_HOLE,
                },
            ),
            Command::Cache => (has(TransmissionFlags::SEND_CACHE), CommandFlags::NONE),
            Command::BlockStatus => (self.allocation.is_some(), CommandFlags::REQ_ONE),
            Command::Disconnect | Command::Other(_) => (false, CommandFlags::NONE),
        };
        if !is_known {
            return Err(invalid("the export does not know this command"));
        }
        // Of what changes nothing, durable or not makes no difference.
        if has(TransmissionFlags::SEND_FUA) {
            allowed = allowed.with(CommandFlags::FUA);
        }
        match allowed.has(flags) {
            true => Ok(()),
            false => Err(invalid("the command does not have these flags")),
        }
    }

    #[inline]
    fn judge_range(
        &self,
        command: Command,
        offset: u64,
        length: u64,
    ) -> Result<(), (ErrorCode, &'static str)> {
        if length == 0 {
            return Err(invalid("the request has no length"));
        }
        let end = offset.checked_add(length);
        if end.is_none_or(|end| end > self.size_bytes) {
            let error = match command {
                Command::Write | Command::WriteZeroes => ErrorCode::NO_SPACE,
                _ => ErrorCode::INVALID,
            };
            return Err((error, "the request goes beyond the end of the export"));
        }
        let least = u64::from(self.block_sizes.least_bytes.max(1));
        if offset % least != 0 || length % least != 0 {
            return Err(invalid("the request is no multiple of the block size"));
        }
        Ok(())
    }

    /// The length of a read or a write, of which memory is needed.
    #[inline]
    fn judge_size(&self, length: u64) -> Result<u32, (ErrorCode, &'static str)> {
        match u32::try_from(length) {
            Ok(length) if length <= self.block_sizes.most_bytes => Ok(length),
            _ => Err(invalid("the request is larger than the export allows")),
        }
    }

    /// A BLOCK_STATUS that names the contexts that it is about.
    fn filter(&self, header: &Header, payload: u64, rest: &[u8]) -> Filter {
        const MOST_BYTES: u64 = StatusFilter::LEAST_BYTES as u64 + 4;
        let wrong = |words| Filter::Wrong(invalid(words));
        if !self.flags.has(TransmissionFlags::BLOCK_STATUS_PAYLOAD) {
            return wrong("no context has been agreed on");
        }
        // With one context there is no more to name; a context twice is an error.
        if payload > MOST_BYTES {
            return wrong("the request names more contexts than were agreed on");
        }
        let Some(bytes) = rest.get(..payload as usize) else {
            return Filter::Need(payload as usize);
        };
        let Ok(filter) = StatusFilter::decode(bytes) else {
            return wrong("the list of contexts has the wrong length");
        };
        if filter
            .contexts
            .iter()
            .any(|id| Some(*id) != self.allocation)
        {
            return wrong("the request names a context that was not agreed on");
        }
        let header = Header {
            flags: CommandFlags(header.flags.0 & !CommandFlags::PAYLOAD_LEN.0),
            length: filter.length,
            ..*header
        };
        match self.judge(&header) {
            Ok(_) if filter.contexts.is_empty() => Filter::Work(Work::Nothing),
            Ok(work) => Filter::Work(work),
            Err(why) => Filter::Wrong(why),
        }
    }
}

enum Filter {
    Need(usize),
    Work(Work),
    Wrong((ErrorCode, &'static str)),
}

/// What a client is told of a disk that can do this, before it is known what the client can do.
pub fn flags_of(abilities: Abilities) -> TransmissionFlags {
    let always = TransmissionFlags::HAS_FLAGS
        .with(TransmissionFlags::SEND_FLUSH)
        .with(TransmissionFlags::SEND_FUA)
        .with(TransmissionFlags::SEND_CACHE);
    let writes = !abilities.is_read_only;
    [
        (abilities.is_read_only, TransmissionFlags::READ_ONLY),
        (writes && abilities.can_trim, TransmissionFlags::SEND_TRIM),
        (writes, TransmissionFlags::SEND_WRITE_ZEROES),
        (
            writes && abilities.can_zero_fast,
            TransmissionFlags::SEND_FAST_ZERO,
        ),
        (abilities.is_shared, TransmissionFlags::CAN_MULTI_CONN),
        (abilities.is_rotational, TransmissionFlags::ROTATIONAL),
    ]
    .into_iter()
    .filter(|(is_so, _)| *is_so)
    .fold(always, |flags, (_, flag)| flags.with(flag))
}

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
    pub const MOST_DATA_HEAD_BYTES: usize = ExtendedChunk::BYTES + OFFSET_BYTES;

    /// Appends "done".
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
        head: &mut [u8; Replies::MOST_DATA_HEAD_BYTES],
    ) -> usize {
        let at = match self {
            Replies::Simple => {
                let reply = SimpleReply {
                    error: ErrorCode::NONE,
                    cookie: ticket.cookie,
                };
                head[..SimpleReply::BYTES].copy_from_slice(&reply.to_bytes());
                return SimpleReply::BYTES;
            }
            Replies::Structured => {
                let chunk = Chunk {
                    flags: flags(last),
                    kind: ChunkKind::Data,
                    cookie: ticket.cookie,
                    // A read is never so long that this does not fit.
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

    /// Appends the answer to [`Work::Extents`]: at most `length` bytes of the extents, and one if
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
                // Nobody can ask for it.
                self.failed(ticket, ErrorCode::INVALID, "", out);
                return;
            }
            Replies::Structured => (ChunkKind::BlockStatus, 4, 8),
            Replies::Extended => (ChunkKind::LongBlockStatus, 8, 16),
        };
        let most = if only_one { 1 } else { MOST_EXTENTS };
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
            Replies::Extended => ExtendedChunk {
                flags,
                kind,
                cookie,
                offset: ticket.offset,
                length,
            }
            .encode(out),
            _ => Chunk {
                flags,
                kind,
                cookie,
                length: length as u32,
            }
            .encode(out),
        }
    }
}

const OFFSET_BYTES: usize = 8;
const HOLE_BYTES: u64 = 12;

#[inline]
fn flags(last: bool) -> ChunkFlags {
    match last {
        true => ChunkFlags::DONE,
        false => ChunkFlags::NONE,
    }
}

#[inline]
fn simple(ticket: Ticket, error: ErrorCode, out: &mut Vec<u8>) {
    let cookie = ticket.cookie;
    SimpleReply { error, cookie }.encode(out);
}

/// A disk's extents as a client is told: neighbours of one kind are one, there are at most `most`, and
/// none goes beyond `length`. There is at least one: a disk that says nothing has data.
fn allocation(extents: &[disk::Extent], length: u64, most: usize) -> Vec<Extent> {
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
            _ => told.push(Extent {
                length: now,
                flags: flags.0,
            }),
        }
        left -= now;
    }
    if told.is_empty() {
        told.push(Extent { length, flags: 0 });
    }
    told
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::{ReplyHeader, read_error_body, read_status_body};

    const SIZE: u64 = 1 << 20;

    fn writable() -> Abilities {
        Abilities {
            can_trim: true,
            can_zero_fast: true,
            knows_extents: true,
            is_shared: true,
            ..Abilities::default()
        }
    }

    fn rules(replies: Replies) -> Rules {
        let mut flags = flags_of(writable());
        if replies != Replies::Simple {
            flags = flags.with(TransmissionFlags::SEND_DF);
        }
        if replies == Replies::Extended {
            flags = flags.with(TransmissionFlags::BLOCK_STATUS_PAYLOAD);
        }
        Rules {
            size_bytes: SIZE,
            flags,
            block_sizes: BlockSizes {
                least_bytes: 1,
                preferred_bytes: 4096,
                most_bytes: 1 << 16,
            },
            replies,
            allocation: (replies != Replies::Simple).then_some(1),
        }
    }

    fn ask(
        rules: &Rules,
        command: Command,
        flags: CommandFlags,
        offset: u64,
        length: u64,
    ) -> Parsed {
        let cookie = 0xc00c1e;
        let bytes = match rules.replies {
            Replies::Extended => ExtendedRequest {
                flags,
                command,
                cookie,
                offset,
                length,
            }
            .to_bytes()
            .to_vec(),
            _ => CompactRequest {
                flags,
                command,
                cookie,
                offset,
                length: length as u32,
            }
            .to_bytes()
            .to_vec(),
        };
        for end in 0..bytes.len() {
            assert_eq!(rules.parse(&bytes[..end]), Parsed::Need(bytes.len()));
        }
        rules.parse(&bytes)
    }

    fn refused(parsed: Parsed) -> (ErrorCode, u64) {
        match parsed {
            Parsed::Refuse {
                refusal,
                skip_bytes,
                ..
            } => (refusal.error, skip_bytes),
            other => panic!("{other:?} is no refusal"),
        }
    }

    fn work(parsed: Parsed) -> Work {
        match parsed {
            Parsed::Request { request, .. } => request.work,
            other => panic!("{other:?} is no request"),
        }
    }

    const PLAIN: CommandFlags = CommandFlags::NONE;
    const ALL: [Replies; 3] = [Replies::Simple, Replies::Structured, Replies::Extended];

    #[test]
    fn requests_within_the_rules_are_done() {
        for replies in ALL {
            let rules = rules(replies);
            let last = Work::Read {
                offset: SIZE - 512,
                length: 512,
                whole: false,
            };
            assert_eq!(
                work(ask(&rules, Command::Read, PLAIN, SIZE - 512, 512)),
                last
            );
            let durable = Work::Write {
                offset: 0,
                length: 1,
                durable: true,
            };
            let fua = CommandFlags::FUA;
            assert_eq!(work(ask(&rules, Command::Write, fua, 0, 1)), durable);
            assert_eq!(work(ask(&rules, Command::Flush, PLAIN, 0, 0)), Work::Flush);
            let zero = Work::Zero {
                offset: 0,
                length: SIZE,
                how: Zeroing {
                    may_punch: false,
                    only_if_fast: true,
                },
                durable: false,
            };
            let flags = CommandFlags::NO_HOLE.with(CommandFlags::FAST_ZERO);
            assert_eq!(
                work(ask(&rules, Command::WriteZeroes, flags, 0, SIZE)),
                zero
            );
            assert_eq!(
                ask(&rules, Command::Disconnect, PLAIN, 0, 0),
                Parsed::Disconnect
            );
        }
    }

    #[test]
    fn what_goes_beyond_the_end_has_the_error_of_its_command() {
        let cases = [
            (Command::Read, ErrorCode::INVALID),
            (Command::Trim, ErrorCode::INVALID),
            (Command::Cache, ErrorCode::INVALID),
            (Command::Write, ErrorCode::NO_SPACE),
            (Command::WriteZeroes, ErrorCode::NO_SPACE),
        ];
        for replies in ALL {
            let rules = rules(replies);
            for (command, error) in cases {
                for (offset, length) in [
                    (SIZE, 1),
                    (SIZE - 1, 2),
                    (1, SIZE),
                    (u64::MAX, 1),
                    (u64::MAX - 511, 512),
                    (1 << 63, 1 << 16),
                ] {
                    let (found, skip) = refused(ask(&rules, command, PLAIN, offset, length));
                    assert_eq!(found, error, "{command:?} {offset} {length}");
                    let payload = if command == Command::Write { length } else { 0 };
                    assert_eq!(skip, payload);
                }
            }
        }
    }

    #[test]
    fn lengths_that_overflow_are_refused_or_end_the_connection() {
        for replies in ALL {
            let rules = rules(replies);
            for length in [0, 0xffff_u64 + 2, 1 << 31, u64::from(u32::MAX)] {
                for command in [
                    Command::Read,
                    Command::Trim,
                    Command::Cache,
                    Command::WriteZeroes,
                ] {
                    if command != Command::Read && length == 0xffff + 2 {
                        continue;
                    }
                    let (_, skip) = refused(ask(&rules, command, PLAIN, 512, length));
                    assert_eq!(skip, 0);
                }
            }
            // Nobody listens to four gigabytes to say no to them.
            let endless = ask(&rules, Command::Write, PLAIN, 0, u64::from(u32::MAX));
            assert!(matches!(endless, Parsed::Fatal(Malformed::TooLong { .. })));
        }
        let rules = rules(Replies::Extended);
        for length in [1 << 32, (1 << 32) + 512, 1 << 63, u64::MAX] {
            refused(ask(&rules, Command::Read, PLAIN, 0, length));
            refused(ask(&rules, Command::Trim, PLAIN, 512, length));
        }
    }

    #[test]
    fn an_oversized_write_keeps_both_in_step() {
        for replies in ALL {
            let rules = rules(replies);
            let most = u64::from(rules.block_sizes.most_bytes);
            work(ask(&rules, Command::Write, PLAIN, 0, most));
            assert_eq!(
                refused(ask(&rules, Command::Write, PLAIN, 0, most + 1)),
                (ErrorCode::INVALID, most + 1)
            );
        }
    }

    #[test]
    fn unknown_flags_and_commands_are_invalid() {
        for replies in ALL {
            let rules = rules(replies);
            for bit in 6..16 {
                for number in 0..9 {
                    let command = Command::of(number);
                    if command != Command::Disconnect {
                        let (error, _) =
                            refused(ask(&rules, command, CommandFlags(1 << bit), 0, 512));
                        assert_eq!(error, ErrorCode::INVALID);
                    }
                }
            }
            for number in [8, 9, 0x7fff, 0xffff] {
                let (error, _) = refused(ask(&rules, Command::Other(number), PLAIN, 0, 512));
                assert_eq!(error, ErrorCode::INVALID);
            }
            // Known flags of other commands.
            for (command, flag) in [
                (Command::Read, CommandFlags::NO_HOLE),
                (Command::Write, CommandFlags::DF),
                (Command::Write, CommandFlags::FAST_ZERO),
                (Command::Trim, CommandFlags::REQ_ONE),
            ] {
                assert_eq!(
                    refused(ask(&rules, command, flag, 0, 512)).0,
                    ErrorCode::INVALID
                );
            }
        }
        let simple = rules(Replies::Simple);
        refused(ask(&simple, Command::Read, CommandFlags::DF, 0, 512));
        refused(ask(&simple, Command::BlockStatus, PLAIN, 0, 512));
    }

    #[test]
    fn an_export_that_is_only_read_is_not_changed() {
        for replies in ALL {
            let abilities = Abilities {
                is_read_only: true,
                ..writable()
            };
            let rules = Rules {
                flags: flags_of(abilities),
                ..rules(replies)
            };
            for (command, skip) in [
                (Command::Write, 512),
                (Command::Trim, 0),
                (Command::WriteZeroes, 0),
            ] {
                assert_eq!(
                    refused(ask(&rules, command, PLAIN, 0, 512)),
                    (ErrorCode::PERMISSION, skip)
                );
            }
            work(ask(&rules, Command::Read, PLAIN, 0, 512));
        }
    }

    #[test]
    fn requests_are_multiples_of_the_block_size() {
        let mut rules = rules(Replies::Simple);
        rules.block_sizes.least_bytes = 512;
        work(ask(&rules, Command::Read, PLAIN, 512, 1024));
        for (offset, length) in [(1, 512), (0, 511), (0, 513)] {
            assert_eq!(
                refused(ask(&rules, Command::Read, PLAIN, offset, length)).0,
                ErrorCode::INVALID
            );
        }
    }

    #[test]
    fn a_payload_where_none_belongs_is_thrown_away() {
        let rules = rules(Replies::Extended);
        for command in [Command::Read, Command::Flush, Command::Other(99)] {
            let flags = CommandFlags::PAYLOAD_LEN;
            assert_eq!(
                refused(ask(&rules, command, flags, 0, 4096)),
                (ErrorCode::INVALID, 4096)
            );
        }
        // Compact headers do not have the flag, so nothing follows.
        let rules = Rules {
            replies: Replies::Structured,
            ..rules
        };
        let flags = CommandFlags::PAYLOAD_LEN;
        assert_eq!(
            refused(ask(&rules, Command::Read, flags, 0, 4096)),
            (ErrorCode::INVALID, 0)
        );
    }

    fn filtered(rules: &Rules, contexts: &[u32]) -> (Parsed, usize) {
        let mut payload = Vec::new();
        StatusFilter {
            length: SIZE,
            contexts: contexts.to_vec(),
        }
        .encode(&mut payload);
        let mut bytes = Vec::new();
        ExtendedRequest {
            flags: CommandFlags::PAYLOAD_LEN,
            command: Command::BlockStatus,
            cookie: 1,
            offset: 0,
            length: payload.len() as u64,
        }
        .encode(&mut bytes);
        bytes.extend_from_slice(&payload);
        (rules.parse(&bytes), bytes.len())
    }

    #[test]
    fn a_block_status_may_name_its_contexts() {
        let rules = rules(Replies::Extended);
        let (parsed, length) = filtered(&rules, &[1]);
        let whole = Work::Extents {
            offset: 0,
            length: SIZE,
            only_one: false,
            context: 1,
        };
        assert!(
            matches!(parsed, Parsed::Request { request, header_bytes }
                if request.work == whole && header_bytes == length),
            "{parsed:?}"
        );
        assert_eq!(work(filtered(&rules, &[]).0), Work::Nothing);
        for wrong in [&[0][..], &[2], &[1, 1], &[1, 2, 3]] {
            let (error, skip) = refused(filtered(&rules, wrong).0);
            assert_eq!(error, ErrorCode::INVALID);
            assert_eq!(skip, 8 + 4 * wrong.len() as u64);
        }
    }

    #[test]
    fn the_longest_list_of_extents_is_whole() {
        let kinds = [disk::Extent::data(4096), disk::Extent::hole(4096)];
        let extents: Vec<_> = (0..MOST_EXTENTS + 7).map(|at| kinds[at % 2]).collect();
        let ticket = Ticket {
            cookie: 1,
            offset: 0,
        };
        for (replies, head) in [(Replies::Structured, 20), (Replies::Extended, 32)] {
            for length in [4096 * MOST_EXTENTS as u64, u64::MAX] {
                let mut out = Vec::new();
                replies.extents(ticket, 1, (length, false), &extents, &mut out);
                let (header, _) = ReplyHeader::decode(&out).unwrap().unwrap();
                let (kind, body) = match header {
                    ReplyHeader::Chunk(chunk) => (chunk.kind, u64::from(chunk.length)),
                    ReplyHeader::Extended(chunk) => (chunk.kind, chunk.length),
                    ReplyHeader::Simple(_) => panic!("simple"),
                };
                assert_eq!(body as usize, out.len() - head);
                let (_, told) = read_status_body(kind, &out[head..]).unwrap();
                assert_eq!(told.len(), MOST_EXTENTS);
            }
        }
    }

    #[test]
    fn extents_never_go_beyond_the_question() {
        let hole = disk::Extent::hole;
        let told = allocation(&[hole(1 << 40), hole(1 << 40)], u64::from(u32::MAX), 1);
        assert_eq!(
            told,
            [Extent {
                length: u64::from(u32::MAX),
                flags: 3
            }]
        );
        // One extent of almost 4 GiB is one extent in 32 bits, too.
        let mut out = Vec::new();
        let ticket = Ticket {
            cookie: 1,
            offset: 0,
        };
        let question = (u64::from(u32::MAX), true);
        Replies::Structured.extents(ticket, 1, question, &[hole(1 << 40)], &mut out);
        assert_eq!(out.len(), Chunk::BYTES + 4 + 8);
        let data = disk::Extent::data;
        let merged = allocation(&[data(1), data(2), hole(0), data(3), hole(9)], 10, 99);
        assert_eq!(merged.len(), 2);
        assert_eq!((merged[0].length, merged[1].length), (6, 4));
        assert_eq!(allocation(&[], 77, 1)[0].length, 77);
    }

    #[test]
    fn an_error_of_the_longest_text_is_whole() {
        let ticket = Ticket {
            cookie: 1,
            offset: 7,
        };
        for words in ["", &"ä".repeat(3000)] {
            for (replies, head) in [(Replies::Structured, 20), (Replies::Extended, 32)] {
                let mut out = Vec::new();
                replies.failed_at(ticket, ErrorCode::IO, words, 512, &mut out);
                let (header, length) = ReplyHeader::decode(&out).unwrap().unwrap();
                assert_eq!(length, head);
                let body = &out[head..];
                let announced = match header {
                    ReplyHeader::Chunk(chunk) => u64::from(chunk.length),
                    ReplyHeader::Extended(chunk) => chunk.length,
                    ReplyHeader::Simple(_) => panic!("simple"),
                };
                assert_eq!(announced as usize, body.len());
                let (error, text) = read_error_body(ChunkKind::ErrorAt, body).unwrap();
                assert_eq!(error, ErrorCode::IO);
                assert!(text.len() <= 4096 && words.starts_with(&text));
            }
        }
    }

    #[test]
    fn heads_of_data_are_as_long_as_they_say() {
        let ticket = Ticket {
            cookie: 5,
            offset: 4096,
        };
        for replies in ALL {
            let mut head = [0; Replies::MOST_DATA_HEAD_BYTES];
            let length = replies.data_head(ticket, 4096, 512, true, &mut head);
            assert_eq!(length, replies.data_head_bytes());
            let (header, _) = ReplyHeader::decode(&head).unwrap().unwrap();
            match header {
                ReplyHeader::Simple(reply) => assert_eq!(reply.cookie, 5),
                ReplyHeader::Chunk(chunk) => assert_eq!((chunk.cookie, chunk.length), (5, 520)),
                ReplyHeader::Extended(chunk) => {
                    assert_eq!((chunk.cookie, chunk.offset, chunk.length), (5, 4096, 520));
                }
            }
        }
    }

    proptest! {
        /// Whatever is asked, what is done lies within the export and the limits, and what is not
        /// done is answered to its cookie.
        #[test]
        fn no_request_escapes_the_rules(
            kind in 0_usize..3,
            read_only: bool,
            flags in prop_oneof![any::<u16>(), 0_u16..64, Just(0)],
            number in prop_oneof![any::<u16>(), 0_u16..9],
            cookie: u64,
            offset in prop_oneof![any::<u64>(), 0..SIZE + 2, Just(u64::MAX)],
            length in prop_oneof![any::<u64>(), 0..SIZE + 2, Just(1 << 31), Just(u64::from(u32::MAX))],
            tail in proptest::collection::vec(any::<u8>(), 0..24),
        ) {
            let replies = ALL[kind];
            let mut rules = rules(replies);
            if read_only {
                rules.flags = rules.flags.with(TransmissionFlags::READ_ONLY);
            }
            let (flags, command) = (CommandFlags(flags), Command::of(number));
            let mut bytes = match replies {
                Replies::Extended => ExtendedRequest { flags, command, cookie, offset, length }
                    .to_bytes()
                    .to_vec(),
                _ => CompactRequest { flags, command, cookie, offset, length: length as u32 }
                    .to_bytes()
                    .to_vec(),
            };
            bytes.extend_from_slice(&tail);
            match rules.parse(&bytes) {
                Parsed::Need(more) => prop_assert!(more > bytes.len() && more <= 32 + 12),
                Parsed::Disconnect => prop_assert_eq!(command, Command::Disconnect),
                Parsed::Fatal(_) => prop_assert!(length > MOST_SKIPPED_BYTES),
                Parsed::Refuse { refusal, skip_bytes, .. } => {
                    prop_assert_eq!(refusal.ticket.cookie, cookie);
                    prop_assert!(refusal.error != ErrorCode::NONE && !refusal.words.is_empty());
                    prop_assert!(skip_bytes <= MOST_SKIPPED_BYTES);
                }
                Parsed::Request { request, header_bytes } => {
                    prop_assert_eq!(request.ticket.cookie, cookie);
                    prop_assert!(header_bytes <= bytes.len());
                    let (offset, length) = match request.work {
                        Work::Read { offset, length, .. } | Work::Write { offset, length, .. } => {
                            prop_assert!(length <= rules.block_sizes.most_bytes);
                            (offset, u64::from(length))
                        }
                        Work::Trim { offset, length, .. }
                        | Work::Zero { offset, length, .. }
                        | Work::Prefetch { offset, length }
                        | Work::Extents { offset, length, .. } => (offset, length),
                        Work::Flush | Work::Nothing => (0, 1),
                    };
                    prop_assert!(length > 0 && offset <= SIZE && length <= SIZE - offset);
                    if read_only {
                        let changes = matches!(
                            request.work,
                            Work::Write { .. } | Work::Trim { .. } | Work::Zero { .. }
                        );
                        prop_assert!(!changes);
                    }
                }
            }
        }
    }
}
