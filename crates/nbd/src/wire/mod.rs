//! The messages of the protocol: numbers, layouts, limits. All integers are big-endian.
//!
//! Every message has `encode`, which appends its bytes, and `decode`, which checks every length; one
//! is the inverse of the other, and both ends use the same types.

mod command;
mod extended;
mod fence;
mod flags;
mod handshake;
mod info;
mod option;
mod reader;
mod reply;
mod status;

pub use crate::callers::NBD_PORT as DEFAULT_PORT;
pub use command::{
    Chunk, ChunkKind, Command, ErrorCode, Request, SimpleReply, read_error_body, read_hole_body,
    write_error_body, write_hole_body,
};
pub use extended::{ExtendedChunk, ExtendedRequest};
pub use fence::{Claim, FENCE};
pub use flags::{
    AllocationFlags, ChunkFlags, ClientFlags, CommandFlags, HandshakeFlags, TransmissionFlags,
};
pub use handshake::{ExportName, Greeting};
pub use info::{BlockSizes, Info};
pub(crate) use option::fits_a_string;
pub use option::{
    ContextRequest, InfoRequest, OPTION_HEADER_BYTES, OPTION_REPLY_HEADER_BYTES, OptionHeader,
    OptionReply, OptionReplyHeader, OptionRequest, Refusal,
};
pub(crate) use reader::Reader;
pub use reply::ReplyHeader;
pub use status::{Extent, StatusFilter, read_status_body, write_status_body};

/// Opens an option, and a greeting after which options follow.
const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// No string of the protocol is longer than this.
pub const MAX_STRING_BYTES: usize = 4096;
/// No option and no option's reply may be longer than this: a name, a description of the same length
/// and what goes with them fit.
pub const MAX_OPTION_BYTES: usize = 16 << 10;
/// Where a server names no limit of its own, a request moves at most this: 32 MiB, the protocol's
/// portable limit.
pub const DEFAULT_MAX_BLOCK_BYTES: u32 = 32 << 20;
/// The body of a chunk that is no data is at most this long: an error with a full string.
pub const MAX_SMALL_BODY_BYTES: usize = 4 + 2 + MAX_STRING_BYTES + 8;
/// Maximum number of extents in one reply.
pub const MAX_EXTENTS: usize = 64 << 10;
/// The context of BLOCK_STATUS that says what takes space and what reads as zeros.
pub const BASE_ALLOCATION: &str = "base:allocation";

/// The beginning of a text, in whole characters.
pub(crate) fn cut_to(text: &str, max_bytes: usize) -> &str {
    let mut end = max_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A message that breaks the rules of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A message ends too early or goes on too long.
    #[error("{what} has the wrong length")]
    Length {
        /// Name of the message.
        what: &'static str,
    },
    /// A message is longer than the protocol allows.
    #[error("{what} of {bytes} bytes is longer than the protocol allows")]
    TooLong {
        /// Name of the message.
        what: &'static str,
        /// Its length as announced.
        bytes: u64,
    },
    /// A message begins with the wrong number.
    #[error("{what} begins with {found:#x}, which is not the protocol's mark")]
    Magic {
        /// Name of the message.
        what: &'static str,
        /// The magic number found.
        found: u64,
    },
    /// A string is not UTF-8.
    #[error("{what} is not text")]
    Text {
        /// Name of the string.
        what: &'static str,
    },
    /// A number is out of its range.
    #[error("{what} cannot be {value}")]
    Value {
        /// Name of the field.
        what: &'static str,
        /// Its value.
        value: u64,
    },
}
