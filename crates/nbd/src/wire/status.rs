//! What BLOCK_STATUS asks and answers: extents, in contexts that both ends have agreed on.

use super::command::ChunkKind;
use super::{Malformed, Reader};

/// A piece of an export that is the same all over in one context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// How long, in bytes; never 0.
    pub length: u64,
    /// What it is like; in [`super::BASE_ALLOCATION`] these are [`super::AllocationFlags`].
    pub flags: u64,
}

/// Appends the body of a [`ChunkKind::LongBlockStatus`] if `long`, else of a
/// [`ChunkKind::BlockStatus`], into which no number beyond 32 bits fits: longer extents are split,
/// and flags of the upper half are left out.
pub fn write_status_body(
    long: bool,
    context: u32,
    extents: impl Iterator<Item = Extent> + Clone,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&context.to_be_bytes());
    if long {
        let count = extents.clone().count() as u32;
        out.extend_from_slice(&count.to_be_bytes());
        for extent in extents {
            out.extend_from_slice(&extent.length.to_be_bytes());
            out.extend_from_slice(&extent.flags.to_be_bytes());
        }
        return;
    }
    for extent in extents {
        let mut left = extent.length;
        while left > 0 {
            // A piece that is not the last is a multiple of every block size there is.
            let now = match u32::try_from(left) {
                Ok(_) => left,
                Err(_) => 1 << 31,
            };
            out.extend_from_slice(&(now as u32).to_be_bytes());
            out.extend_from_slice(&(extent.flags as u32).to_be_bytes());
            left -= now;
        }
    }
}

/// Reads the body of a chunk of extents: the context and the extents, of which there is at least one.
///
/// # Errors
/// When it is not what the kind says, or an extent has no length.
pub fn read_status_body(kind: ChunkKind, bytes: &[u8]) -> Result<(u32, Vec<Extent>), Malformed> {
    const WHAT: &str = "a block status";
    let mut reader = Reader::new(WHAT, bytes);
    let context = reader.u32()?;
    let long = kind == ChunkKind::LongBlockStatus;
    let announced = if long { Some(reader.u32()?) } else { None };
    let rest = reader.rest();
    let each = if long { 16 } else { 8 };
    let count = rest.len() / each;
    let fits = announced.is_none_or(|announced| announced as usize == count);
    if !fits || count == 0 || rest.len() % each != 0 {
        return Err(Malformed::Length { what: WHAT });
    }
    let mut extents = Vec::with_capacity(count);
    for piece in rest.chunks_exact(each) {
        let mut reader = Reader::new(WHAT, piece);
        let extent = if long {
            Extent { length: reader.u64()?, flags: reader.u64()? }
        } else {
            Extent { length: u64::from(reader.u32()?), flags: u64::from(reader.u32()?) }
        };
        if extent.length == 0 {
            return Err(Malformed::Value { what: "the length of an extent", value: 0 });
        }
        extents.push(extent);
    }
    Ok((context, extents))
}

/// The payload of a BLOCK_STATUS that wants to know about some of the agreed contexts only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusFilter {
    /// Number of bytes of the export asked about.
    pub length: u64,
    /// In these contexts.
    pub contexts: Vec<u32>,
}

impl StatusFilter {
    /// Length of the payload without contexts.
    pub const MIN_BYTES: usize = 8;

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.length.to_be_bytes());
        for context in &self.contexts {
            out.extend_from_slice(&context.to_be_bytes());
        }
    }

    /// Reads the payload.
    ///
    /// # Errors
    /// If the payload has the wrong length.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("the payload of a block status", bytes);
        let length = reader.u64()?;
        let count = (bytes.len() - StatusFilter::MIN_BYTES) / 4;
        let mut contexts = Vec::with_capacity(count);
        for _ in 0..count {
            contexts.push(reader.u32()?);
        }
        reader.end()?;
        Ok(StatusFilter { length, contexts })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind(long: bool) -> ChunkKind {
        if long { ChunkKind::LongBlockStatus } else { ChunkKind::BlockStatus }
    }

    #[test]
    fn an_extent_beyond_32_bits_is_split() {
        let extent = Extent { length: (1 << 33) - 512, flags: 3 };
        let mut body = Vec::new();
        write_status_body(false, 7, [extent].into_iter(), &mut body);
        let (context, extents) = read_status_body(ChunkKind::BlockStatus, &body).unwrap();
        assert_eq!(context, 7);
        let lengths: Vec<u64> = extents.iter().map(|extent| extent.length).collect();
        assert_eq!(lengths, [1 << 31, 1 << 31, (1 << 32) - 512]);
    }

    #[test]
    fn extents_that_are_none_are_refused() {
        let zero = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(read_status_body(ChunkKind::BlockStatus, &zero).is_err());
        assert!(read_status_body(ChunkKind::BlockStatus, &zero[..4]).is_err());
        assert!(read_status_body(ChunkKind::BlockStatus, &zero[..11]).is_err());
        // More are announced than there are.
        let mut body = Vec::new();
        let one = Extent { length: 1, flags: 0 };
        write_status_body(true, 1, [one].into_iter(), &mut body);
        for count in [0_u32, 2, 0xffff, 1 << 31, u32::MAX] {
            body[4..8].copy_from_slice(&count.to_be_bytes());
            assert!(read_status_body(ChunkKind::LongBlockStatus, &body).is_err());
        }
    }

    proptest! {
        #[test]
        fn extents_survive_the_wire(
            context: u32,
            long: bool,
            pairs in proptest::collection::vec((1_u64..1 << 32, any::<u32>()), 1..20),
        ) {
            let extents: Vec<Extent> = pairs
                .iter()
                .map(|&(length, flags)| Extent { length, flags: u64::from(flags) })
                .collect();
            let mut body = Vec::new();
            write_status_body(long, context, extents.iter().copied(), &mut body);
            prop_assert_eq!(read_status_body(kind(long), &body), Ok((context, extents)));
        }

        #[test]
        fn filters_survive_the_wire(length: u64, contexts in proptest::collection::vec(any::<u32>(), 0..9)) {
            let filter = StatusFilter { length, contexts };
            let mut bytes = Vec::new();
            filter.encode(&mut bytes);
            prop_assert_eq!(StatusFilter::decode(&bytes), Ok(filter));
            bytes.push(0);
            prop_assert!(StatusFilter::decode(&bytes).is_err());
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), long: bool) {
            let _ = read_status_body(kind(long), &bytes);
            let _ = StatusFilter::decode(&bytes);
        }
    }
}
