//! The fence: an option of our own, with which a client that has lost a connection has the server end
//! what the old one left behind, before the new one begins.
//!
//! The kernel sends requests that were not answered again over the new connection. A server that
//! still had them in the queue of the old one would do them twice, and the second time over newer
//! writes. Servers that do not know the option refuse it, as the protocol wants.

use super::{Malformed, Reader};

/// The option's number: "rfen". The protocol's own are small.
pub const FENCE: u32 = u32::from_be_bytes(*b"rfen");

/// Which connection of which attachment one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// A secret random number that all connections of one attached device share.
    pub attachment: u128,
    /// Higher with every connection that is made.
    pub generation: u64,
    /// Which of the attachment's connections it is, or replaces.
    pub lane: u32,
    /// Bit N is set where lane N has ended, too, and waits to be replaced.
    pub ended: u64,
}

impl Claim {
    /// Whether a connection of this lane is over when this claim is made.
    pub fn ends(&self, lane: u32) -> bool {
        lane == self.lane || (lane < u64::BITS && self.ended >> lane & 1 == 1)
    }

    pub(super) fn encode(&self, data: &mut Vec<u8>) {
        data.extend_from_slice(&self.attachment.to_be_bytes());
        data.extend_from_slice(&self.generation.to_be_bytes());
        data.extend_from_slice(&self.lane.to_be_bytes());
        data.extend_from_slice(&self.ended.to_be_bytes());
    }

    pub(super) fn decode(data: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("a fence", data);
        let high = reader.u64()?;
        let low = reader.u64()?;
        let claim = Claim {
            attachment: u128::from(high) << 64 | u128::from(low),
            generation: reader.u64()?,
            lane: reader.u32()?,
            ended: reader.u64()?,
        };
        reader.end()?;
        Ok(claim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_read_as_it_was_written() {
        let claim = Claim {
            attachment: 0x0123_4567_89ab_cdef_1122_3344_5566_7788,
            generation: 7,
            lane: 2,
            ended: 0b1100,
        };
        let mut data = Vec::new();
        claim.encode(&mut data);
        assert_eq!(data.len(), 36);
        assert_eq!(Claim::decode(&data), Ok(claim));
        assert!(Claim::decode(&data[1..]).is_err());
        data.push(0);
        assert!(Claim::decode(&data).is_err());
    }

    #[test]
    fn a_claim_ends_its_own_lane_and_those_it_names() {
        let claim = Claim { attachment: 1, generation: 1, lane: 70, ended: 0b101 };
        assert!(claim.ends(0) && claim.ends(2) && claim.ends(70));
        assert!(!claim.ends(1) && !claim.ends(63) && !claim.ends(71) && !claim.ends(64));
    }
}
