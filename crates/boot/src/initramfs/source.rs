//! Bytes in order, with a look ahead and the place.

use std::io::{self, BufRead, Read};

const BUFFER_BYTES: usize = 64 * 1024;

/// A reader of which a few bytes can be looked at before they are taken.
pub(super) struct Source<R> {
    inner: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    taken_bytes: u64,
}

impl<R: Read> Source<R> {
    pub(super) fn new(inner: R) -> Self {
        Source { inner, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, taken_bytes: 0 }
    }

    /// The next bytes, fewer at the end. At most a few: `count` is far below the buffer's size.
    pub(super) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        if self.start + count > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        while self.end - self.start < count {
            match self.inner.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let end = self.end.min(self.start + count);
        Ok(&self.buffer[self.start..end])
    }

    /// Passes zeros. The place of what follows.
    pub(super) fn skip_zeros(&mut self) -> io::Result<u64> {
        loop {
            let bytes = self.fill_buf()?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let is_all = zeros == bytes.len() && zeros > 0;
            self.consume(zeros);
            if !is_all {
                return Ok(self.taken_bytes);
            }
        }
    }

    /// Exactly the next bytes. They are few, or their number was checked.
    pub(super) fn exactly(&mut self, count: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = Read::take(&mut *self, count).read_to_end(&mut bytes)?;
        if read as u64 == count { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Passes bytes, which must be there.
    pub(super) fn skip(&mut self, mut count: u64) -> io::Result<()> {
        while count > 0 {
            let there = self.fill_buf()?.len() as u64;
            if there == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let passed = there.min(count);
            self.consume(passed as usize);
            count -= passed;
        }
        Ok(())
    }
}

impl<R: Read> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.peek(1)?;
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        self.taken_bytes += count as u64;
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}
