//! What another program on the same machine makes of the same algorithm, and why that may differ.

use serde::{Deserialize, Serialize};

use super::algorithm::Algorithm;
use super::implementation::Uses;
use rubus_stats::estimate::Estimate;

/// One figure of another program, and ours from right before and after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Peer {
    /// Which program ("OpenSSL 3.0.22").
    pub tool: String,
    /// What it computed.
    pub algorithm: Algorithm,
    /// Bytes of one message.
    pub block_bytes: u32,
    /// Bytes per second that it tells, on one core; it tells no interval.
    pub bytes_per_second: f64,
    /// The instructions that it uses on such a processor.
    pub uses: Uses,
    /// What this program made of the same messages meanwhile, on one core.
    pub ours: Option<Estimate>,
    /// The instructions that this program uses.
    pub our_uses: Uses,
}

/// What can be asked for, and as what.
pub const ASKED: [(Algorithm, &str, u32); 4] = [
    (Algorithm::AesXts512, "aes-256-xts", 64 << 10),
    (Algorithm::Aes256Gcm, "aes-256-gcm", 16 << 10),
    (Algorithm::ChaCha20Poly1305, "chacha20-poly1305", 16 << 10),
    (Algorithm::Sha256, "sha256", 16 << 10),
];

/// Both programs within so much of one another are equal.
const EQUAL: f64 = 0.1;

impl Peer {
    /// How many times as fast the other program is.
    pub fn times(&self) -> Option<f64> {
        let ours = self.ours.as_ref()?.value;
        (ours > 0.0).then(|| self.bytes_per_second / ours)
    }

    /// Whether both run the same code: the same author's for the same instructions.
    pub fn is_same_code(&self) -> bool {
        let is_shared = match self.algorithm {
            Algorithm::Sha256 => true,
            Algorithm::Aes256Gcm => self.uses == Uses::AesNi,
            _ => false,
        };
        is_shared && self.uses == self.our_uses
    }

    /// What explains the difference, or says that there is none.
    pub fn remark(&self) -> &'static str {
        let is_equal =
            self.times().is_some_and(|times| (1.0 - EQUAL..=1.0 + EQUAL).contains(&times));
        match (is_equal, self.uses == self.our_uses, self.is_same_code()) {
            (true, _, _) => "equal",
            (false, _, true) => "same code, so one was disturbed",
            (false, true, false) => "same instructions, other code",
            (false, false, _) => "other instructions",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(algorithm: Algorithm, theirs: (Uses, f64), ours: (Uses, f64)) -> Peer {
        Peer {
            tool: "OpenSSL 3.0.22".into(),
            algorithm,
            block_bytes: 16384,
            bytes_per_second: theirs.1,
            uses: theirs.0,
            ours: Some(Estimate::exact(ours.1)),
            our_uses: ours.0,
        }
    }

    #[test]
    fn a_difference_is_explained() {
        let sha = Algorithm::Sha256;
        let equal = peer(sha, (Uses::ShaNi, 2.1e9), (Uses::ShaNi, 2e9));
        assert_eq!(equal.remark(), "equal");
        let disturbed = peer(sha, (Uses::ShaNi, 3e9), (Uses::ShaNi, 2e9));
        assert_eq!(disturbed.remark(), "same code, so one was disturbed");
        let xts = Algorithm::AesXts512;
        let other = peer(xts, (Uses::AesNi, 3e9), (Uses::AesNi, 2e9));
        assert_eq!(other.remark(), "same instructions, other code");
        let gcm = Algorithm::Aes256Gcm;
        let wider = peer(gcm, (Uses::AesNi, 3e9), (Uses::Vaes256, 6e9));
        assert_eq!((wider.remark(), wider.times()), ("other instructions", Some(0.5)));
    }
}
