//! Reading integers and strings from the front of a slice of bytes.

use super::{MAX_STRING_BYTES, Malformed};

/// What is left of a message, with the message's name for errors.
pub(crate) struct Reader<'a> {
    what: &'static str,
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Reader { what, left: bytes }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        match self.left.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.left = rest;
                Ok(*head)
            }
            None => Err(self.length()),
        }
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// A 64-bit mark that must be this.
    pub(crate) fn magic64(&mut self, expected: u64) -> Result<(), Malformed> {
        let (what, found) = (self.what, self.u64()?);
        (found == expected).then_some(()).ok_or(Malformed::Magic { what, found })
    }

    /// A 32-bit mark that must be this.
    #[inline]
    pub(crate) fn magic32(&mut self, expected: u32) -> Result<(), Malformed> {
        let (what, found) = (self.what, u64::from(self.u32()?));
        (found == u64::from(expected)).then_some(()).ok_or(Malformed::Magic { what, found })
    }

    /// A string of that many bytes.
    pub(crate) fn text(&mut self, bytes: usize) -> Result<String, Malformed> {
        if bytes > MAX_STRING_BYTES {
            return Err(Malformed::TooLong { what: self.what, bytes: bytes as u64 });
        }
        let Some((head, rest)) = self.left.split_at_checked(bytes) else {
            return Err(self.length());
        };
        self.left = rest;
        match std::str::from_utf8(head) {
            Ok(text) => Ok(text.to_string()),
            Err(_) => Err(Malformed::Text { what: self.what }),
        }
    }

    /// A string to the end.
    pub(crate) fn text_to_end(&mut self) -> Result<String, Malformed> {
        self.text(self.left.len())
    }

    /// Everything that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.left
    }

    /// The message must end here.
    #[inline]
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.left.is_empty() {
            return Ok(());
        }
        Err(self.length())
    }

    fn length(&self) -> Malformed {
        Malformed::Length { what: self.what }
    }
}
