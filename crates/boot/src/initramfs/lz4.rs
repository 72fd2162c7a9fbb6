//! LZ4 in its legacy frame, the only one that the kernel unpacks (`lz4 -l`).
//!
//! Format: lz4_Frame_format.md, "Legacy frame", and lz4_Block_format.md, of the LZ4 project: a magic number, then
//! blocks, each with its packed length in front and 8 MiB of contents at most, independent of each other.

use std::io::{self, Read};

use super::source::Source;
use super::wrong;

const MAGIC: u32 = 0x184C_2102;
const BLOCK_BYTES: usize = 8 << 20;
/// The most that 8 MiB can grow to when they cannot be compressed (LZ4_compressBound).
const PACKED_MAX_BYTES: u32 = (BLOCK_BYTES + BLOCK_BYTES / 255 + 16) as u32;

/// Reads the contents of one frame, and of those that follow it at once.
pub(super) struct Lz4Legacy<'a, R> {
    source: &'a mut Source<R>,
    block: Vec<u8>,
    at: usize,
}

impl<'a, R: Read> Lz4Legacy<'a, R> {
    pub(super) fn new(source: &'a mut Source<R>) -> io::Result<Self> {
        source.skip(4)?;
        Ok(Lz4Legacy { source, block: Vec::new(), at: 0 })
    }

    /// The next block; none at the end of the frame, which nothing marks: what follows is no length of a
    /// block.
    fn next_block(&mut self) -> io::Result<bool> {
        loop {
            let Ok(bytes) = <[u8; 4]>::try_from(self.source.peek(4)?) else {
                return Ok(false);
            };
            let length = u32::from_le_bytes(bytes);
            if length == MAGIC {
                self.source.skip(4)?;
                continue;
            }
            if length == 0 || length > PACKED_MAX_BYTES {
                return Ok(false);
            }
            self.source.skip(4)?;
            let packed = self.source.exactly(length.into())?;
            self.block.clear();
            unpack_block(&packed, &mut self.block)?;
            self.at = 0;
            return Ok(true);
        }
    }
}

impl<R: Read> Read for Lz4Legacy<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            if !self.next_block()? {
                return Ok(0);
            }
        }
        let rest = &self.block[self.at..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// A block is sequences: a byte with two lengths, bytes to take as they are, and how far back to copy
/// from. The last one ends after the bytes.
fn unpack_block(packed: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    const MIN_MATCH: usize = 4;
    let damaged = || wrong("an lz4 block contradicts itself");
    let mut rest = packed;
    loop {
        let (&token, tail) = rest.split_first().ok_or_else(damaged)?;
        rest = tail;
        let literals = length(usize::from(token >> 4), &mut rest).ok_or_else(damaged)?;
        if literals > rest.len() || out.len() + literals > BLOCK_BYTES {
            return Err(damaged());
        }
        let (bytes, tail) = rest.split_at(literals);
        out.extend_from_slice(bytes);
        rest = tail;
        if rest.is_empty() {
            return Ok(());
        }
        let [low, high, tail @ ..] = rest else {
            return Err(damaged());
        };
        let back = usize::from(u16::from_le_bytes([*low, *high]));
        rest = tail;
        let copied = length(usize::from(token & 15), &mut rest).ok_or_else(damaged)? + MIN_MATCH;
        let from = out.len().checked_sub(back).filter(|_| back > 0);
        let from = from.ok_or_else(damaged)?;
        if out.len() + copied > BLOCK_BYTES {
            return Err(damaged());
        }
        // The copy may overlap what it makes.
        for index in from..from + copied {
            out.push(out[index]);
        }
    }
}

/// Four bits, and where they are all set, bytes to be added up to the first that is not 255.
fn length(first: usize, rest: &mut &[u8]) -> Option<usize> {
    let mut length = first;
    if first == 15 {
        loop {
            let (&byte, tail) = rest.split_first()?;
            *rest = tail;
            length = length.checked_add(usize::from(byte))?;
            if byte != 255 {
                break;
            }
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_with_overlapping_copies_are_unpacked() {
        // Three bytes as they are, then a copy of nine from three back, then one byte.
        let packed = [0x35, b'a', b'b', b'c', 3, 0, 0x10, b'!'];
        let mut out = Vec::new();
        unpack_block(&packed, &mut out).expect("is a block");
        assert_eq!(out, b"abcabcabcabc!");
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(packed: Vec<u8>) {
            let mut out = Vec::new();
            let _ = unpack_block(&packed, &mut out);
            proptest::prop_assert!(out.len() <= BLOCK_BYTES);
        }
    }
}
