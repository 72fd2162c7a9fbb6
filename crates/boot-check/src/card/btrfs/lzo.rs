//! LZO1X as btrfs stores it: a sector's worth of bytes in each segment.
//!
//! Format: Linux, `Documentation/staging/lzo.rst` (the stream) and `fs/btrfs/lzo.c` (the segments).

/// Before each segment and before all of them, their length in bytes.
const LENGTH_BYTES: usize = 4;
/// What the length of the longest match refers to at most.
const FAR: usize = 16_384;

/// At most `most` bytes of an extent; absent where it is damaged. The length before a segment lies in one sector.
pub(super) fn extent(packed: &[u8], sector_bytes: usize, most: usize) -> Option<Vec<u8>> {
    let packed = packed.get(..length_at(packed, 0)?)?;
    let (mut at, mut bytes) = (LENGTH_BYTES, Vec::new());
    while at < packed.len() && bytes.len() < most {
        let left = sector_bytes - at % sector_bytes;
        if left < LENGTH_BYTES {
            at += left;
            continue;
        }
        let start = at + LENGTH_BYTES;
        at = start.checked_add(length_at(packed, at)?)?;
        bytes.extend(segment(packed.get(start..at)?, sector_bytes)?);
    }
    bytes.truncate(most);
    Some(bytes)
}

fn length_at(bytes: &[u8], at: usize) -> Option<usize> {
    let length = bytes.get(at..at + LENGTH_BYTES)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(length)).ok()
}

/// A stream, to no more than `most` bytes.
fn segment(packed: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut stream = Stream { rest: packed, bytes: Vec::new(), most };
    // How many literals came before an instruction, 4 for a run of them: its meaning depends on that.
    let mut before = 0;
    if let Some(first) = packed.first().copied().filter(|first| *first > 17) {
        stream.next()?;
        let length = usize::from(first) - 17;
        stream.literals(length)?;
        before = length.min(4);
    }
    loop {
        let code = usize::from(stream.next()?);
        if code < 16 && before == 0 {
            let length = stream.length(code, 15)?;
            stream.literals(length + 3)?;
            before = 4;
            continue;
        }
        let (distance, length, literals) = match (code, before) {
            (0..16, 4) => (stream.near(code, 2)? + 2049, 3, code & 3),
            (0..16, _) => (stream.near(code, 2)? + 1, 2, code & 3),
            (16..32, _) => {
                let length = stream.length(code & 7, 7)? + 2;
                let (distance, literals) = stream.far()?;
                let high = (code & 8) << 11;
                if high + distance == 0 {
                    // The mark of the end.
                    return Some(stream.bytes);
                }
                (FAR + high + distance, length, literals)
            }
            (32..64, _) => {
                let length = stream.length(code & 31, 31)? + 2;
                let (distance, literals) = stream.far()?;
                (distance + 1, length, literals)
            }
            _ => {
                let distance = (usize::from(stream.next()?) << 3) + ((code >> 2) & 7) + 1;
                (distance, (code >> 5) + 1, code & 3)
            }
        };
        stream.copy(distance, length)?;
        stream.literals(literals)?;
        before = literals;
    }
}

/// What is left of a stream, and what came of it so far.
struct Stream<'a> {
    rest: &'a [u8],
    bytes: Vec<u8>,
    most: usize,
}

impl Stream<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// A length that does not fit into its code has zeros behind it, of 255 each.
    fn length(&mut self, coded: usize, largest: usize) -> Option<usize> {
        if coded > 0 {
            return Some(coded);
        }
        let mut length = largest;
        loop {
            match self.next()? {
                0 => length += 255,
                last => return Some(length + usize::from(last)),
            }
        }
    }

    fn literals(&mut self, length: usize) -> Option<()> {
        let (own, rest) = self.rest.split_at_checked(length)?;
        self.bytes.extend_from_slice(own);
        self.rest = rest;
        (self.bytes.len() <= self.most).then_some(())
    }

    /// A distance whose low bits are in the code.
    fn near(&mut self, code: usize, shift: usize) -> Option<usize> {
        Some((usize::from(self.next()?) << 2) + (code >> shift))
    }

    /// A distance of two bytes, and the number of literals in its low bits.
    fn far(&mut self) -> Option<(usize, usize)> {
        let low = usize::from(self.next()?);
        let both = low | usize::from(self.next()?) << 8;
        Some((both >> 2, both & 3))
    }

    /// A match may reach into what it makes.
    fn copy(&mut self, distance: usize, length: usize) -> Option<()> {
        let first = self.bytes.len().checked_sub(distance)?;
        if self.bytes.len() + length > self.most {
            return None;
        }
        for from in first..first + length {
            let byte = *self.bytes.get(from)?;
            self.bytes.push(byte);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn matches_of_each_kind_are_expanded() {
        // 4 literals; 3 bytes from 4 back (M2), then the mark of the end.
        let stream = [21, b'a', b'b', b'c', b'd', 0b0100_1100, 0, 17, 0, 0];
        assert_eq!(segment(&stream, 4096), Some(b"abcdabc".to_vec()));
        // A run of 255 + 15 + 3 + 1 literals, a match of 31 + 2 + 9 from 1 back (M3).
        let mut long = vec![0, 0, 1];
        long.extend(std::iter::repeat_n(b'x', 274));
        long.extend([32, 9, 0, 0, 17, 0, 0]);
        assert_eq!(segment(&long, 4096), Some(vec![b'x'; 274 + 42]));
        assert_eq!(segment(&long, 300), None);
        assert_eq!(segment(&long[..200], 4096), None);
        assert_eq!(segment(&[32, 9, 0, 0], 4096), None);
    }

    proptest! {
        #[test]
        fn nothing_panics_and_no_more_is_made_than_was_asked_for(
            packed in prop::collection::vec(any::<u8>(), 0..400),
            most in 0_usize..5000,
        ) {
            let made = segment(&packed, most);
            prop_assert!(made.is_none_or(|bytes| bytes.len() <= most));
            let length = u32::try_from(packed.len() + 4).unwrap_or_default().to_le_bytes();
            let whole = [&length[..], &packed[..]].concat();
            let made = extent(&whole, 4096, most);
            prop_assert!(made.is_none_or(|bytes| bytes.len() <= most));
        }

        #[test]
        fn literals_come_back(text in prop::collection::vec(any::<u8>(), 4..238)) {
            let first = u8::try_from(text.len() + 17).unwrap_or_default();
            let stream = [&[first][..], &text, &[17, 0, 0]].concat();
            prop_assert_eq!(segment(&stream, 4096), Some(text));
        }
    }
}
