//! The header of a reply, of whichever style its magic number says.

use super::command::{
    Chunk, ChunkKind, ErrorCode, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, SimpleReply,
};
use super::extended::{EXTENDED_REPLY_MAGIC, ExtendedChunk};
use super::{ChunkFlags, Malformed, Reader};

/// The header of a reply of any style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyHeader {
    /// Of a simple reply.
    Simple(SimpleReply),
    /// Of one chunk of a structured reply.
    Chunk(Chunk),
    /// Of one chunk of a structured reply with lengths of 64 bits.
    Extended(ExtendedChunk),
}

impl ReplyHeader {
    /// Reads a header from the front; gives it and its length, or nothing while it is incomplete.
    ///
    /// # Errors
    /// When the bytes are not a reply.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some(magic) = bytes.first_chunk::<4>() else {
            return Ok(None);
        };
        match u32::from_be_bytes(*magic) {
            SIMPLE_REPLY_MAGIC => {
                let Some(head) = bytes.get(..SimpleReply::BYTES) else {
                    return Ok(None);
                };
                let mut reader = Reader::new("a reply", &head[4..]);
                let reply = SimpleReply { error: ErrorCode(reader.u32()?), cookie: reader.u64()? };
                Ok(Some((ReplyHeader::Simple(reply), SimpleReply::BYTES)))
            }
            STRUCTURED_REPLY_MAGIC => {
                let Some(head) = bytes.get(..Chunk::BYTES) else {
                    return Ok(None);
                };
                let mut reader = Reader::new("a structured reply", &head[4..]);
                let chunk = Chunk {
                    flags: ChunkFlags(reader.u16()?),
                    kind: ChunkKind::of(reader.u16()?),
                    cookie: reader.u64()?,
                    length: reader.u32()?,
                };
                Ok(Some((ReplyHeader::Chunk(chunk), Chunk::BYTES)))
            }
            EXTENDED_REPLY_MAGIC => {
                let Some(head) = bytes.get(..ExtendedChunk::BYTES) else {
                    return Ok(None);
                };
                let chunk = ExtendedChunk::after_magic(&head[4..])?;
                Ok(Some((ReplyHeader::Extended(chunk), ExtendedChunk::BYTES)))
            }
            found => Err(Malformed::Magic { what: "a reply", found: u64::from(found) }),
        }
    }
}
