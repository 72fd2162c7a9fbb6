//! Extended headers: requests and chunks of replies with lengths of 64 bits.

use super::command::{ChunkKind, Command};
use super::{ChunkFlags, CommandFlags, Malformed, Reader};

const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
pub(super) const EXTENDED_REPLY_MAGIC: u32 = 0x6e8a_278c;

/// A request with an extended header. What is to be written follows it, and so does any other payload
/// that [`CommandFlags::PAYLOAD_LEN`] announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedRequest {
    /// Modifiers of the command.
    pub flags: CommandFlags,
    /// What to do.
    pub command: Command,
    /// The client's own mark, which the reply repeats.
    pub cookie: u64,
    /// Where, in bytes; the reply repeats this, too.
    pub offset: u64,
    /// How many bytes: of the export, or of the payload.
    pub length: u64,
}

impl ExtendedRequest {
    /// Length of the message.
    pub const BYTES: usize = 32;

    /// Encodes the message.
    pub fn to_bytes(&self) -> [u8; ExtendedRequest::BYTES] {
        let mut out = [0; ExtendedRequest::BYTES];
        out[0..4].copy_from_slice(&EXTENDED_REQUEST_MAGIC.to_be_bytes());
        out[4..6].copy_from_slice(&self.flags.0.to_be_bytes());
        out[6..8].copy_from_slice(&self.command.number().to_be_bytes());
        out[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        out[16..24].copy_from_slice(&self.offset.to_be_bytes());
        out[24..32].copy_from_slice(&self.length.to_be_bytes());
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
        let mut reader = Reader::new("an extended request", bytes);
        reader.magic32(EXTENDED_REQUEST_MAGIC)?;
        let request = ExtendedRequest {
            flags: CommandFlags(reader.u16()?),
            command: Command::of(reader.u16()?),
            cookie: reader.u64()?,
            offset: reader.u64()?,
            length: reader.u64()?,
        };
        reader.end()?;
        Ok(request)
    }
}

/// The extended header of a chunk of a reply; `length` bytes of body follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedChunk {
    /// Whether it is the last.
    pub flags: ChunkFlags,
    /// What it brings.
    pub kind: ChunkKind,
    /// The request's mark.
    pub cookie: u64,
    /// The request's offset.
    pub offset: u64,
    /// Length of the body.
    pub length: u64,
}

impl ExtendedChunk {
    /// Length of the header.
    pub const BYTES: usize = 32;

    /// Encodes the header.
    pub fn to_bytes(&self) -> [u8; ExtendedChunk::BYTES] {
        let mut out = [0; ExtendedChunk::BYTES];
        out[0..4].copy_from_slice(&EXTENDED_REPLY_MAGIC.to_be_bytes());
        out[4..6].copy_from_slice(&self.flags.0.to_be_bytes());
        out[6..8].copy_from_slice(&self.kind.number().to_be_bytes());
        out[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        out[16..24].copy_from_slice(&self.offset.to_be_bytes());
        out[24..32].copy_from_slice(&self.length.to_be_bytes());
        out
    }

    /// Appends the header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }

    /// Reads what follows the mark.
    pub(super) fn after_magic(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an extended reply", bytes);
        let chunk = ExtendedChunk {
            flags: ChunkFlags(reader.u16()?),
            kind: ChunkKind::of(reader.u16()?),
            cookie: reader.u64()?,
            offset: reader.u64()?,
            length: reader.u64()?,
        };
        reader.end()?;
        Ok(chunk)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::ReplyHeader;

    #[test]
    fn an_extended_request_has_the_layout_of_the_protocol() {
        let request = ExtendedRequest {
            flags: CommandFlags::PAYLOAD_LEN,
            command: Command::Write,
            cookie: 0x0102_0304_0506_0708,
            offset: 0x1000,
            length: 0x200,
        };
        let bytes = request.to_bytes();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "21e41c71\
             0020\
             0001\
             0102030405060708\
             0000000000001000\
             0000000000000200"
        );
    }

    proptest! {
        #[test]
        fn extended_messages_survive_the_wire(flags: u16, number: u16, cookie: u64, offset: u64, length: u64) {
            let request = ExtendedRequest {
                flags: CommandFlags(flags),
                command: Command::of(number),
                cookie,
                offset,
                length,
            };
            let mut bytes = Vec::new();
            request.encode(&mut bytes);
            prop_assert_eq!(ExtendedRequest::decode(&bytes), Ok(request));
            prop_assert!(ExtendedRequest::decode(&bytes[..31]).is_err());
            let chunk = ExtendedChunk {
                flags: ChunkFlags(flags),
                kind: ChunkKind::of(number),
                cookie,
                offset,
                length,
            };
            let mut bytes = Vec::new();
            chunk.encode(&mut bytes);
            for end in 0..bytes.len() {
                prop_assert_eq!(ReplyHeader::decode(&bytes[..end]), Ok(None));
            }
            prop_assert_eq!(
                ReplyHeader::decode(&bytes),
                Ok(Some((ReplyHeader::Extended(chunk), 32)))
            );
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = ExtendedRequest::decode(&bytes);
            let marked = [&EXTENDED_REPLY_MAGIC.to_be_bytes()[..], &bytes].concat();
            let _ = ReplyHeader::decode(&marked);
        }
    }
}
