//! What `openssl speed` prints, and which instructions OpenSSL uses.
//!
//! Sources: openssl-speed(1) for its machine-readable output; OpenSSL's CHANGES.md and crypto/*/asm for what it uses where.

use rubus_vocabulary::processor::algorithm::Algorithm;
use rubus_vocabulary::processor::implementation::Uses;

use crate::offer::Offer;

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
}
