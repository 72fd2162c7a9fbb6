//! The server's side after the handshake: reads requests, judges them, and writes replies.
//!
//! Nothing here waits, knows a socket or takes memory for a request. [`Rules::parse`] looks at the
//! front of what a client has sent. Whatever it says, the client and the server stay in step, or the
//! connection is of no more use ([`Parsed::Fatal`]). [`Replies`] has the answers in the style that the
//! client has asked for.

mod replies;

pub use self::replies::Replies;
use super::disk::{Abilities, Zeroing};
use crate::wire::{
    BlockSizes, Command, CommandFlags, ErrorCode, ExtendedRequest, Malformed,
    Request as CompactRequest, StatusFilter, TransmissionFlags,
};

/// Payloads that are too large are skipped up to this length, so that the client gets an error;
/// beyond it, it is disconnected.
pub const MAX_SKIPPED_BYTES: u64 = 128 << 20;

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
    /// Send these bytes.
    Read {
        /// First byte, as an offset on the export.
        offset: u64,
        /// Number of bytes.
        length: u32,
        /// In one piece.
        whole: bool,
    },
    /// Take the bytes that follow the request.
    Write {
        /// First byte, as an offset on the export.
        offset: u64,
        /// Number of bytes.
        length: u32,
        /// On stable storage before it is answered.
        durable: bool,
    },
    /// Everything that has been answered is to be on stable storage.
    Flush,
    /// Forget these bytes.
    Trim {
        /// First byte, as an offset on the export.
        offset: u64,
        /// Number of bytes.
        length: u64,
        /// As for a write.
        durable: bool,
    },
    /// Make these bytes zeros.
    Zero {
        /// First byte, as an offset on the export.
        offset: u64,
        /// Number of bytes.
        length: u64,
        how: Zeroing,
        /// As for a write.
        durable: bool,
    },
    /// Read these bytes ahead.
    Prefetch {
        /// First byte, as an offset on the export.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// Say which of these bytes take space.
    Extents {
        /// First byte, as an offset on the export.
        offset: u64,
        /// Number of bytes.
        length: u64,
        /// Only the first extent.
        only_one: bool,
        /// Number of the context for the reply.
        context: u32,
    },
    /// Just say that it is done.
    Nothing,
}

impl Work {
    /// The same work, on stable storage before it is answered if it changes the disk.
    #[must_use]
    pub fn made_durable(mut self) -> Work {
        match &mut self {
            Work::Write { durable, .. }
            | Work::Trim { durable, .. }
            | Work::Zero { durable, .. } => {
                *durable = true;
            }
            Work::Read { .. }
            | Work::Flush
            | Work::Prefetch { .. }
            | Work::Extents { .. }
            | Work::Nothing => {}
        }
        self
    }
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
    /// Incomplete: at least this many bytes are needed.
    Need(usize),
    /// A request. What is to be written follows the header and is not looked at here.
    Request {
        request: Request,
        /// Length of the request's header.
        header_bytes: usize,
    },
    /// A request that is to be answered with an error.
    Refuse {
        /// The error to send.
        refusal: Refusal,
        /// Length of the request's header.
        header_bytes: usize,
        /// Number of bytes from the client to skip before the next request.
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
        if payload > MAX_SKIPPED_BYTES {
            return Parsed::Fatal(Malformed::TooLong {
                what: "what follows a request",
                bytes: payload,
            });
        }
        let is_filter = header.command == Command::BlockStatus && payload > 0;
        let judged = if is_filter {
            match self.filter(&header, payload, &bytes[header.bytes..]) {
                Filter::Need(more) => return Parsed::Need(header.bytes + more),
                Filter::Work(work) => {
                    return Parsed::Request {
                        request: Request { ticket: header.ticket, work },
                        header_bytes: header.bytes + payload as usize,
                    };
                }
                Filter::Wrong(why) => Err(why),
            }
        } else {
            self.judge(&header)
        };
        match judged {
            Ok(work) => Parsed::Request {
                request: Request { ticket: header.ticket, work },
                header_bytes: header.bytes,
            },
            Err((error, words)) => Parsed::Refuse {
                refusal: Refusal { ticket: header.ticket, error, words },
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
                    ticket: Ticket { cookie: request.cookie, offset: request.offset },
                    length: u64::from(request.length),
                    bytes: CompactRequest::BYTES,
                }
            }
            Replies::Extended => {
                let request = ExtendedRequest::decode(head)?;
                Header {
                    flags: request.flags,
                    command: request.command,
                    ticket: Ticket { cookie: request.cookie, offset: request.offset },
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
        if header.command == Command::Write || is_marked { header.length } else { 0 }
    }

    #[inline]
    fn judge(&self, header: &Header) -> Judged {
        let (command, flags) = (header.command, header.flags);
        self.judge_flags(command, flags)?;
        let (offset, length) = (header.ticket.offset, header.length);
        let changes = matches!(command, Command::Write | Command::Trim | Command::WriteZeroes);
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
            Command::Write => Work::Write { offset, length: self.judge_size(length)?, durable },
            Command::Trim => Work::Trim { offset, length, durable },
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
            Command::Trim => (has(TransmissionFlags::SEND_TRIM) || read_only, CommandFlags::NONE),
            Command::WriteZeroes => (
                has(TransmissionFlags::SEND_WRITE_ZEROES) || read_only,
                if has(TransmissionFlags::SEND_FAST_ZERO) {
                    CommandFlags::NO_HOLE.with(CommandFlags::FAST_ZERO)
                } else {
                    CommandFlags::NO_HOLE
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
        if allowed.has(flags) {
            Ok(())
        } else {
            Err(invalid("the command does not have these flags"))
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
        let least = u64::from(self.block_sizes.min_bytes.max(1));
        if offset % least != 0 || length % least != 0 {
            return Err(invalid("the request is no multiple of the block size"));
        }
        Ok(())
    }

    /// The length of a read or a write, of which memory is needed.
    #[inline]
    fn judge_size(&self, length: u64) -> Result<u32, (ErrorCode, &'static str)> {
        match u32::try_from(length) {
            Ok(length) if length <= self.block_sizes.max_bytes => Ok(length),
            _ => Err(invalid("the request is larger than the export allows")),
        }
    }

    /// A BLOCK_STATUS that names the contexts that it is about.
    fn filter(&self, header: &Header, payload: u64, rest: &[u8]) -> Filter {
        const MAX_BYTES: u64 = StatusFilter::MIN_BYTES as u64 + 4;
        let wrong = |words| Filter::Wrong(invalid(words));
        if !self.flags.has(TransmissionFlags::BLOCK_STATUS_PAYLOAD) {
            return wrong("no context has been agreed on");
        }
        // With one context there is no more to name; a context twice is an error.
        if payload > MAX_BYTES {
            return wrong("the request names more contexts than were agreed on");
        }
        let Some(bytes) = rest.get(..payload as usize) else {
            return Filter::Need(payload as usize);
        };
        let Ok(filter) = StatusFilter::decode(bytes) else {
            return wrong("the list of contexts has the wrong length");
        };
        if filter.contexts.iter().any(|id| Some(*id) != self.allocation) {
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
        (writes && abilities.can_zero_fast, TransmissionFlags::SEND_FAST_ZERO),
        (abilities.is_shared, TransmissionFlags::CAN_MULTI_CONN),
        (abilities.is_rotational, TransmissionFlags::ROTATIONAL),
    ]
    .into_iter()
    .filter(|(is_so, _)| *is_so)
    .fold(always, |flags, (_, flag)| flags.with(flag))
}

#[cfg(test)]
mod tests;
