//! What another program on the same machine makes of the same algorithm, and why that may differ.
//!
//! Sources: openssl-speed(1) for its machine-readable output; OpenSSL's CHANGES.md and crypto/*/asm for what it uses where.

use serde::{Deserialize, Serialize};

use super::algorithm::Algorithm;
use super::implementation::{Offer, Uses};
use crate::estimate::Estimate;

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

/// The rate in what `openssl speed -mr` prints: `+F:NUMBER:NAME:BYTES_PER_SECOND`.
pub fn parse_speed(printed: &str) -> Option<f64> {
    let line = printed.lines().find_map(|line| line.strip_prefix("+F:"))?;
    let rate: f64 = line.rsplit(':').next()?.trim().parse().ok()?;
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// Major and minor number in "OpenSSL 3.0.22 25 Aug 2026 (Library: …)".
pub fn parse_version(printed: &str) -> Option<(u32, u32)> {
    let mut words = printed.split_whitespace();
    let number = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = number.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The instructions that OpenSSL of that version uses on a processor.
pub fn of_openssl(version: (u32, u32), offer: &Offer<'_>, algorithm: Algorithm) -> Uses {
    match offer.architecture {
        "x86_64" => on_x86(version, offer, algorithm),
        "aarch64" | "arm" => on_arm(offer, algorithm),
        _ => Uses::Unknown,
    }
}

fn on_x86(version: (u32, u32), offer: &Offer<'_>, algorithm: Algorithm) -> Uses {
    let is_wide = offer.has(&["avx512f", "vaes", "vpclmulqdq"]);
    let vectors = || match () {
        () if offer.has(&["avx2"]) => Uses::Avx2,
        () if offer.has(&["ssse3"]) => Uses::Sse,
        () => Uses::Plain,
    };
    match algorithm {
        Algorithm::Aes256Gcm if is_wide && version >= (3, 1) => Uses::Vaes512,
        Algorithm::AesXts512 if is_wide && version >= (3, 5) => Uses::Vaes512,
        Algorithm::Aes256Gcm | Algorithm::AesXts512 if offer.has(&["aes"]) => Uses::AesNi,
        Algorithm::Aes256Gcm | Algorithm::AesXts512 if offer.has(&["ssse3"]) => Uses::Sse,
        Algorithm::Sha256 if offer.has(&["sha_ni"]) => Uses::ShaNi,
        Algorithm::ChaCha20Poly1305 if offer.has(&["avx512f"]) => Uses::Avx512,
        Algorithm::Sha256 | Algorithm::ChaCha20Poly1305 => vectors(),
        _ => Uses::Unknown,
    }
}

fn on_arm(offer: &Offer<'_>, algorithm: Algorithm) -> Uses {
    match algorithm {
        Algorithm::Aes256Gcm | Algorithm::AesXts512 if offer.has(&["aes"]) => Uses::ArmAes,
        Algorithm::Sha256 if offer.has(&["sha2"]) => Uses::ArmSha2,
        _ if offer.has_neon() => Uses::Neon,
        _ => Uses::Plain,
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
    fn what_openssl_prints_is_read() {
        let printed = "+H:16384\n+F:25:AES-256-GCM:1043563469.31\n";
        assert_eq!(parse_speed(printed), Some(1_043_563_469.31));
        assert_eq!(parse_speed("+F:25:AES-256-GCM:0.00\n"), None);
        assert_eq!(parse_speed("speed: unknown option"), None);
        let version = "OpenSSL 3.0.22 25 Aug 2026 (Library: OpenSSL 3.0.22 25 Aug 2026)";
        assert_eq!(parse_version(version), Some((3, 0)));
        assert_eq!(parse_version("LibreSSL"), None);
    }

    #[test]
    fn newer_versions_use_wider_instructions() {
        let features = ["aes", "vaes", "vpclmulqdq", "avx512f", "sha_ni", "ssse3"];
        let features = features.map(str::to_string);
        let offer = Offer { architecture: "x86_64", features: &features };
        let uses = |version, algorithm| of_openssl(version, &offer, algorithm);
        assert_eq!(uses((3, 0), Algorithm::Aes256Gcm), Uses::AesNi);
        assert_eq!(uses((3, 1), Algorithm::Aes256Gcm), Uses::Vaes512);
        assert_eq!(uses((3, 1), Algorithm::AesXts512), Uses::AesNi);
        assert_eq!(uses((3, 5), Algorithm::AesXts512), Uses::Vaes512);
        assert_eq!(uses((3, 0), Algorithm::Sha256), Uses::ShaNi);
        let pi = Offer { architecture: "aarch64", features: &[] };
        let uses = |algorithm| of_openssl((3, 0), &pi, algorithm);
        assert_eq!(uses(Algorithm::Aes256Gcm), Uses::Neon);
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
