//! What a server tells about an export.

use super::{Malformed, Reader, TransmissionFlags};

/// Something about an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Info {
    /// What every export has.
    Export {
        size_bytes: u64,
        /// What can be done with it.
        flags: TransmissionFlags,
    },
    /// The name that the server uses itself.
    Name(String),
    /// Words for people.
    Description(String),
    /// The sizes of requests.
    BlockSize(BlockSizes),
    /// A number without a meaning here.
    Other {
        number: u16,
        /// What came with it.
        data: Vec<u8>,
    },
}

impl Info {
    /// Number of [`Info::Name`].
    pub const NAME: u16 = 1;
    /// Number of [`Info::Description`].
    pub const DESCRIPTION: u16 = 2;
    /// Number of [`Info::BlockSize`].
    pub const BLOCK_SIZE: u16 = 3;

    pub(super) fn encode(&self, data: &mut Vec<u8>) {
        match self {
            Info::Export { size_bytes, flags } => {
                data.extend_from_slice(&0_u16.to_be_bytes());
                data.extend_from_slice(&size_bytes.to_be_bytes());
                data.extend_from_slice(&flags.0.to_be_bytes());
            }
            Info::Name(text) => {
                data.extend_from_slice(&Info::NAME.to_be_bytes());
                data.extend_from_slice(text.as_bytes());
            }
            Info::Description(text) => {
                data.extend_from_slice(&Info::DESCRIPTION.to_be_bytes());
                data.extend_from_slice(text.as_bytes());
            }
            Info::BlockSize(sizes) => {
                data.extend_from_slice(&Info::BLOCK_SIZE.to_be_bytes());
                for bytes in [sizes.min_bytes, sizes.preferred_bytes, sizes.max_bytes] {
                    data.extend_from_slice(&bytes.to_be_bytes());
                }
            }
            Info::Other { number, data: other } => {
                data.extend_from_slice(&number.to_be_bytes());
                data.extend_from_slice(other);
            }
        }
    }

    pub(super) fn decode(data: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("what the server says of the export", data);
        Ok(match reader.u16()? {
            0 => {
                let info = Info::Export {
                    size_bytes: reader.u64()?,
                    flags: TransmissionFlags(reader.u16()?),
                };
                reader.end()?;
                info
            }
            Info::NAME => Info::Name(reader.text_to_end()?),
            Info::DESCRIPTION => Info::Description(reader.text_to_end()?),
            Info::BLOCK_SIZE => {
                let sizes = BlockSizes {
                    min_bytes: reader.u32()?,
                    preferred_bytes: reader.u32()?,
                    max_bytes: reader.u32()?,
                };
                reader.end()?;
                Info::BlockSize(sizes)
            }
            number => Info::Other { number, data: reader.rest().to_vec() },
        })
    }
}

/// The sizes of requests that an export takes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths must be multiples of this, a power of two up to 64 KiB.
    pub min_bytes: u32,
    /// From this on requests are efficient.
    pub preferred_bytes: u32,
    /// A request moves at most this.
    pub max_bytes: u32,
}

impl BlockSizes {
    /// What holds where a server says nothing.
    pub const DEFAULT: BlockSizes = BlockSizes {
        min_bytes: 512,
        preferred_bytes: 4096,
        max_bytes: super::DEFAULT_MAX_BLOCK_BYTES,
    };

    /// Checks that the three fit one another, as the protocol has it.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), Malformed> {
        let wrong = |what, value: u32| Err(Malformed::Value { what, value: u64::from(value) });
        if !self.min_bytes.is_power_of_two() || self.min_bytes > 64 << 10 {
            return wrong("the least block size", self.min_bytes);
        }
        if self.preferred_bytes < self.min_bytes {
            return wrong("the preferred block size", self.preferred_bytes);
        }
        if self.max_bytes < self.min_bytes {
            return wrong("the largest block size", self.max_bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sizes_that_contradict_one_another_are_refused() {
        let sizes = |min_bytes, preferred_bytes, max_bytes| BlockSizes {
            min_bytes,
            preferred_bytes,
            max_bytes,
        };
        assert_eq!(BlockSizes::DEFAULT.check(), Ok(()));
        assert_eq!(sizes(1, 4096, u32::MAX).check(), Ok(()));
        for bad in [
            sizes(0, 4096, 1 << 20),
            sizes(3, 4096, 1 << 20),
            sizes(1 << 17, 1 << 17, 1 << 20),
            sizes(4096, 512, 1 << 20),
            sizes(4096, 4096, 512),
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
