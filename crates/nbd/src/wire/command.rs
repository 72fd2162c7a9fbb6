//! Messages after the handshake: requests, and their replies simple and structured.

use super::{ChunkFlags, CommandFlags, MAX_STRING_BYTES, Malformed, Reader, cut_to};

const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(super) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
pub(super) const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read from the export.
    Read,
    /// Take the bytes that follow.
    Write,
    /// The client goes; there is no reply.
    Disconnect,
    /// Make everything durable that has been answered.
    Flush,
    /// These bytes are needed no more.
    Trim,
    /// These bytes will be read soon.
    Cache,
    /// Make these bytes zeros.
    WriteZeroes,
    /// Which of these bytes are allocated.
    BlockStatus,
    /// A number without a meaning here.
    Other(u16),
}

impl Command {
    /// The protocol's number.
    pub fn number(self) -> u16 {
        match self {
            Command::Read => 0,
            Command::Write => 1,
            Command::Disconnect => 2,
            Command::Flush => 3,
            Command::Trim => 4,
            Command::Cache => 5,
            Command::WriteZeroes => 6,
            Command::BlockStatus => 7,
            Command::Other(number) => number,
        }
    }

    /// From the protocol's number.
    pub fn of(number: u16) -> Command {
        match number {
            0 => Command::Read,
            1 => Command::Write,
            2 => Command::Disconnect,
            3 => Command::Flush,
            4 => Command::Trim,
            5 => Command::Cache,
            6 => Command::WriteZeroes,
            7 => Command::BlockStatus,
            number => Command::Other(number),
        }
    }

    /// The name, for messages ("read").
    pub fn name(self) -> &'static str {
        match self {
            Command::Read => "read",
            Command::Write => "write",
            Command::Disconnect => "disconnect",
            Command::Flush => "flush",
            Command::Trim => "trim",
            Command::Cache => "prefetch",
            Command::WriteZeroes => "write of zeros",
            Command::BlockStatus => "block status",
            Command::Other(_) => "unknown command",
        }
    }
}

/// A request. A write's data follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Modifiers of the command.
    pub flags: CommandFlags,
    /// What to do.
    pub command: Command,
    /// The client's own mark, which the reply repeats.
    pub cookie: u64,
    /// Where, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub length: u32,
}

impl Request {
    /// Length of the message.
    pub const BYTES: usize = 28;

    /// Encodes the message.
    pub fn to_bytes(&self) -> [u8; Request::BYTES] {
        let mut out = [0; Request::BYTES];
        out[0..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        out[4..6].copy_from_slice(&self.flags.0.to_be_bytes());
        out[6..8].copy_from_slice(&self.command.number().to_be_bytes());
        out[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        out[16..24].copy_from_slice(&self.offset.to_be_bytes());
        out[24..28].copy_from_slice(&self.length.to_be_bytes());
        out
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }

    /// Reads the message.
    ///
    /// # Errors
    /// When it is not exactly one request.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("a request", bytes);
        reader.magic32(REQUEST_MAGIC)?;
        let request = Request {
            flags: CommandFlags(reader.u16()?),
            command: Command::of(reader.u16()?),
            cookie: reader.u64()?,
            offset: reader.u64()?,
            length: reader.u32()?,
        };
        reader.end()?;
        Ok(request)
    }
}

/// A simple reply. The data of a read that went well follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimpleReply {
    /// What went wrong, if anything did.
    pub error: ErrorCode,
    /// The request's mark.
    pub cookie: u64,
}

impl SimpleReply {
    /// Length of the message.
    pub const BYTES: usize = 16;

    /// Encodes the message.
    #[inline]
    pub fn to_bytes(&self) -> [u8; SimpleReply::BYTES] {
        let mut out = [0; SimpleReply::BYTES];
        out[0..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        out[4..8].copy_from_slice(&self.error.0.to_be_bytes());
        out[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        out
    }

    /// Appends the message.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }
}

/// What a chunk of a structured reply brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// No payload: the request is done.
    None,
    /// An offset and data from there.
    Data,
    /// An offset and a length of zeros.
    Hole,
    /// Extents with lengths and flags of 32 bits.
    BlockStatus,
    /// Extents with lengths and flags of 64 bits.
    LongBlockStatus,
    /// An error of the whole request.
    Error,
    /// An error at an offset.
    ErrorAt,
    /// A number without a meaning here.
    Other(u16),
}

impl ChunkKind {
    /// The protocol's number.
    pub fn number(self) -> u16 {
        match self {
            ChunkKind::None => 0,
            ChunkKind::Data => 1,
            ChunkKind::Hole => 2,
            ChunkKind::BlockStatus => 5,
            ChunkKind::LongBlockStatus => 6,
            ChunkKind::Error => 0x8001,
            ChunkKind::ErrorAt => 0x8002,
            ChunkKind::Other(number) => number,
        }
    }

    /// From the protocol's number.
    pub fn of(number: u16) -> ChunkKind {
        match number {
            0 => ChunkKind::None,
            1 => ChunkKind::Data,
            2 => ChunkKind::Hole,
            5 => ChunkKind::BlockStatus,
            6 => ChunkKind::LongBlockStatus,
            0x8001 => ChunkKind::Error,
            0x8002 => ChunkKind::ErrorAt,
            number => ChunkKind::Other(number),
        }
    }

    /// Whether it says that the request failed; the protocol has a bit for that.
    pub fn is_error(self) -> bool {
        self.number() & 0x8000 != 0
    }
}

/// The header of a chunk of a structured reply; `length` bytes of body follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Whether it is the last.
    pub flags: ChunkFlags,
    /// What it brings.
    pub kind: ChunkKind,
    /// The request's mark.
    pub cookie: u64,
    /// Length of the body.
    pub length: u32,
}

impl Chunk {
    /// Length of the header.
    pub const BYTES: usize = 20;

    /// Encodes the header.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Chunk::BYTES] {
        let mut out = [0; Chunk::BYTES];
        out[0..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
        out[4..6].copy_from_slice(&self.flags.0.to_be_bytes());
        out[6..8].copy_from_slice(&self.kind.number().to_be_bytes());
        out[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        out[16..20].copy_from_slice(&self.length.to_be_bytes());
        out
    }

    /// Appends the header.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }
}

/// Appends the body of a [`ChunkKind::Hole`].
pub fn write_hole_body(offset: u64, length: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&offset.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
}

/// Reads the body of a [`ChunkKind::Hole`]: offset and length.
///
/// # Errors
/// When it is not exactly that.
pub fn read_hole_body(bytes: &[u8]) -> Result<(u64, u32), Malformed> {
    let mut reader = Reader::new("a hole", bytes);
    let hole = (reader.u64()?, reader.u32()?);
    reader.end()?;
    Ok(hole)
}

/// Appends the body of a [`ChunkKind::Error`], or of a [`ChunkKind::ErrorAt`] when there is an
/// offset. A text beyond the protocol's limit is cut.
pub fn write_error_body(error: ErrorCode, text: &str, offset: Option<u64>, out: &mut Vec<u8>) {
    let text = cut_to(text, MAX_STRING_BYTES);
    out.extend_from_slice(&error.0.to_be_bytes());
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
    if let Some(offset) = offset {
        out.extend_from_slice(&offset.to_be_bytes());
    }
}

/// Reads the body of a chunk of errors: the code and the server's words. A text that is not UTF-8 is
/// shown as well as possible; an error without a code is "invalid".
///
/// # Errors
/// When its lengths do not fit one another.
pub fn read_error_body(kind: ChunkKind, bytes: &[u8]) -> Result<(ErrorCode, String), Malformed> {
    let mut reader = Reader::new("an error", bytes);
    let code = match reader.u32()? {
        0 => ErrorCode::INVALID,
        code => ErrorCode(code),
    };
    let length = usize::from(reader.u16()?);
    let rest = reader.rest();
    let (text, tail) =
        rest.split_at_checked(length).ok_or(Malformed::Length { what: "an error" })?;
    let tail_bytes = match kind {
        ChunkKind::Error => 0,
        ChunkKind::ErrorAt => 8,
        // Of an unknown kind of error only the beginning is known.
        _ => tail.len(),
    };
    if tail.len() != tail_bytes || length > MAX_STRING_BYTES {
        return Err(Malformed::Length { what: "an error" });
    }
    Ok((code, String::from_utf8_lossy(text).into_owned()))
}

/// The protocol's error numbers, which are those of Linux on x86.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// The request succeeded.
    pub const NONE: ErrorCode = ErrorCode(0);
    /// Operation not permitted (EPERM).
    pub const PERMISSION: ErrorCode = ErrorCode(1);
    /// Input or output failed.
    pub const IO: ErrorCode = ErrorCode(5);
    pub const NO_MEMORY: ErrorCode = ErrorCode(12);
    /// The request makes no sense.
    pub const INVALID: ErrorCode = ErrorCode(22);
    pub const NO_SPACE: ErrorCode = ErrorCode(28);
    /// Value too large (EOVERFLOW).
    pub const OVERFLOW: ErrorCode = ErrorCode(75);
    /// Operation not supported (ENOTSUP).
    pub const UNSUPPORTED: ErrorCode = ErrorCode(95);
    /// The server is going.
    pub const SHUTDOWN: ErrorCode = ErrorCode(108);
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = match *self {
            ErrorCode::NONE => "no error",
            ErrorCode::PERMISSION => "not permitted",
            ErrorCode::IO => "input/output error",
            ErrorCode::NO_MEMORY => "out of memory",
            ErrorCode::INVALID => "invalid request",
            ErrorCode::NO_SPACE => "no space left",
            ErrorCode::OVERFLOW => "value too large",
            ErrorCode::UNSUPPORTED => "not supported",
            ErrorCode::SHUTDOWN => "the server is shutting down",
            ErrorCode(number) => return write!(f, "error {number}"),
        };
        f.write_str(words)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::ReplyHeader;

    #[test]
    fn a_request_has_the_layout_of_the_protocol() {
        let request = Request {
            flags: CommandFlags::FUA,
            command: Command::Write,
            cookie: 0x0102_0304_0506_0708,
            offset: 0x1000,
            length: 0x200,
        };
        let hex: String = request.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "25609513\
             0001\
             0001\
             0102030405060708\
             0000000000001000\
             00000200"
        );
    }

    #[test]
    fn a_reply_that_is_not_yet_whole_is_waited_for() {
        let mut bytes = Vec::new();
        let chunk = Chunk { flags: ChunkFlags::DONE, kind: ChunkKind::Hole, cookie: 7, length: 12 };
        chunk.encode(&mut bytes);
        for end in 0..bytes.len() {
            assert_eq!(ReplyHeader::decode(&bytes[..end]), Ok(None));
        }
        assert_eq!(ReplyHeader::decode(&bytes), Ok(Some((ReplyHeader::Chunk(chunk), 20))));
        assert!(ReplyHeader::decode(b"HTTP/1.1 400").is_err());
    }

    #[test]
    fn an_error_says_what_the_server_said() {
        let mut body = Vec::new();
        write_error_body(ErrorCode::IO, "bad sector", Some(512), &mut body);
        assert_eq!(
            read_error_body(ChunkKind::ErrorAt, &body),
            Ok((ErrorCode::IO, "bad sector".into()))
        );
        // The offset is missing, or should not be there.
        assert!(read_error_body(ChunkKind::ErrorAt, &body[..body.len() - 8]).is_err());
        assert!(read_error_body(ChunkKind::Error, &body).is_err());
        assert_eq!(
            read_error_body(ChunkKind::Error, &[0, 0, 0, 0, 0, 0]),
            Ok((ErrorCode::INVALID, String::new()))
        );
        for lie in [[0, 1], [0xff, 0xff]] {
            let body = [0, 0, 0, 5, lie[0], lie[1]];
            assert!(read_error_body(ChunkKind::Error, &body).is_err());
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut body = Vec::new();
        write_error_body(ErrorCode::IO, &"ä".repeat(4000), None, &mut body);
        let (_, text) = read_error_body(ChunkKind::Error, &body).expect("it is well-formed");
        assert_eq!(text, "ä".repeat(2048));
    }

    proptest! {
        #[test]
        fn requests_survive_the_wire(flags: u16, number: u16, cookie: u64, offset: u64, length: u32) {
            let request = Request {
                flags: CommandFlags(flags),
                command: Command::of(number),
                cookie,
                offset,
                length,
            };
            let mut bytes = Vec::new();
            request.encode(&mut bytes);
            prop_assert_eq!(Request::decode(&bytes), Ok(request));
            prop_assert!(Request::decode(&bytes[..27]).is_err());
        }

        #[test]
        fn replies_survive_the_wire(error: u32, flags: u16, number: u16, cookie: u64, length: u32) {
            let simple = SimpleReply { error: ErrorCode(error), cookie };
            let chunk = Chunk {
                flags: ChunkFlags(flags),
                kind: ChunkKind::of(number),
                cookie,
                length,
            };
            let mut bytes = Vec::new();
            simple.encode(&mut bytes);
            chunk.encode(&mut bytes);
            prop_assert_eq!(
                ReplyHeader::decode(&bytes),
                Ok(Some((ReplyHeader::Simple(simple), 16)))
            );
            prop_assert_eq!(
                ReplyHeader::decode(&bytes[16..]),
                Ok(Some((ReplyHeader::Chunk(chunk), 20)))
            );
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Request::decode(&bytes);
            let _ = ReplyHeader::decode(&bytes);
            let _ = read_hole_body(&bytes);
            let _ = read_error_body(ChunkKind::Error, &bytes);
            let _ = read_error_body(ChunkKind::ErrorAt, &bytes);
        }
    }
}
