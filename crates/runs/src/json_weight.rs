//! What JSON of others takes in memory once it is read: many times its length where its values are small.

use std::cell::Cell;
use std::io::{self, Read};

/// The limit of what one text, or one value of a stream, takes in memory. A run takes half a MiB.
pub(crate) const MAX_BYTES: u64 = 512 << 20;
/// The first field of an object makes room for eleven.
const OBJECT_BYTES: u64 = 640;
/// A value in a list, with what lists reserve for the next.
const VALUE_BYTES: u64 = 64;

/// What a text takes once it is read, at most. What is in strings counts as if it were none.
pub(crate) fn of_text(text: &str) -> u64 {
    text.bytes().map(of_byte).sum()
}

fn of_byte(byte: u8) -> u64 {
    match byte {
        b'{' => OBJECT_BYTES,
        b'[' | b',' => VALUE_BYTES,
        _ => 1,
    }
}

/// Why a text is not read.
pub(crate) fn too_heavy() -> String {
    format!(
        "it would take more than {} MiB of memory; split it into smaller files",
        MAX_BYTES >> 20
    )
}

/// A stream of values, each of which is limited.
pub(crate) struct Weighed<'s, R> {
    source: R,
    /// Since the last value; the reader of the values sets it back.
    weight: &'s Cell<u64>,
}

impl<'s, R: Read> Weighed<'s, R> {
    pub(crate) fn new(source: R, weight: &'s Cell<u64>) -> Self {
        Weighed { source, weight }
    }
}

impl<R: Read> Read for Weighed<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(into)?;
        let more: u64 = into[..length].iter().copied().map(of_byte).sum();
        let weight = self.weight.get().saturating_add(more);
        self.weight.set(weight);
        if weight > MAX_BYTES {
            Err(io::Error::new(io::ErrorKind::FileTooLarge, too_heavy()))
        } else {
            Ok(length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_limited_from_value_to_value() {
        let weight = Cell::new(0);
        let mut one = Weighed::new(&b"{\"a\":[1,2]}"[..], &weight);
        let mut text = String::new();
        one.read_to_string(&mut text).unwrap();
        assert_eq!(weight.get(), of_text(&text));
        let mut endless = Weighed::new(io::repeat(b'{'), &weight);
        let count = io::copy(&mut endless, &mut io::sink());
        assert_eq!(count.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
