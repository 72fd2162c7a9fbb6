//! The kernel's own ciphers: what it calls them, which of its drivers it takes, and what it means when some are not there.
//!
//! Sources: Documentation/crypto/userspace-if.rst and architecture.rst of the kernel (names, kinds, `/proc/crypto`),
//! crypto/af_alg.c (which error says what).

use rubus_vocabulary::processor::algorithm::Algorithm;

/// The kinds that the kernel offers through sockets of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ciphers without authentication.
    Cipher,
    /// Ciphers with authentication.
    Authenticated,
    /// Hashes and checksums.
    Hash,
}

impl Kind {
    /// As an address of such a socket names it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Cipher => "skcipher",
            Kind::Authenticated => "aead",
            Kind::Hash => "hash",
        }
    }

    /// The kernel's module that offers it, and the switch that it is built with.
    fn module(self) -> (&'static str, &'static str) {
        match self {
            Kind::Cipher => ("algif_skcipher", "CONFIG_CRYPTO_USER_API_SKCIPHER"),
            Kind::Authenticated => ("algif_aead", "CONFIG_CRYPTO_USER_API_AEAD"),
            Kind::Hash => ("algif_hash", "CONFIG_CRYPTO_USER_API_HASH"),
        }
    }

    /// Whether an entry of `/proc/crypto` with this type is one.
    fn is_of(self, kind: &str) -> bool {
        match self {
            Kind::Cipher => ["skcipher", "lskcipher"].contains(&kind),
            Kind::Authenticated => kind == "aead",
            Kind::Hash => ["shash", "ahash"].contains(&kind),
        }
    }
}

/// What the kernel calls an algorithm. Absent for one that it does not have.
pub fn name(algorithm: Algorithm) -> Option<(Kind, &'static str)> {
    Some(match algorithm {
        Algorithm::AesXts256 | Algorithm::AesXts512 => (Kind::Cipher, "xts(aes)"),
        Algorithm::Adiantum => (Kind::Cipher, "adiantum(xchacha12,aes)"),
        Algorithm::Aes256Gcm => (Kind::Authenticated, "gcm(aes)"),
        Algorithm::ChaCha20Poly1305 => (Kind::Authenticated, "rfc7539(chacha20,poly1305)"),
        Algorithm::Sha256 => (Kind::Hash, "sha256"),
        Algorithm::Xxh64 => (Kind::Hash, "xxhash64"),
        Algorithm::Crc32c => (Kind::Hash, "crc32c"),
        Algorithm::Xxh3 => return None,
    })
}

/// The driver that the kernel takes for an algorithm, of those in `/proc/crypto`: of the highest priority, and not just a
/// part of another one.
pub fn driver(listing: &str, kind: Kind, name: &str) -> Option<String> {
    let entries = listing.split("\n\n").filter_map(|entry| {
        let field = |wanted: &str| {
            let mut fields = entry.lines().filter_map(|line| line.split_once(':'));
            let found = fields.find(|(name, _)| name.trim() == wanted);
            found.map(|(_, value)| value.trim())
        };
        let is_it = field("name") == Some(name)
            && field("type").is_some_and(|found| kind.is_of(found))
            && field("internal") != Some("yes");
        let priority: i64 = field("priority")?.parse().ok()?;
        Some((priority, field("driver")?)).filter(|_| is_it)
    });
    let (_, driver) = entries.max_by_key(|(priority, _)| *priority)?;
    Some(driver.to_string())
}

/// Why the kernel did not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has no sockets for its ciphers.
    NoSockets,
    /// It has not that kind, or not that algorithm.
    Absent,
    /// This program may not.
    Denied,
    /// It computed something else than this program, or did not give back what it enciphered.
    Wrong,
    /// Any other error, in words.
    Failed(String),
}

/// What was refused, as sentences without a full stop, each reason once. `measured` are those that were not.
pub fn left_out(refused: &[(Algorithm, Refusal)], measured: &[Algorithm]) -> Vec<String> {
    let has = |wanted: Refusal| refused.iter().any(|(_, why)| *why == wanted);
    if has(Refusal::NoSockets) {
        let (module, switch) = Kind::Cipher.module();
        return vec![format!(
            "the kernel's own ciphers: this kernel does not offer them to programs; its module {module} would \
             ({switch}), and without it `cryptsetup benchmark` measures nothing either"
        )];
    }
    let mut said: Vec<String> = Vec::new();
    for (algorithm, why) in refused {
        let Some((kind, name)) = name(*algorithm) else {
            continue;
        };
        let is_of_kind = |other: &Algorithm| self::name(*other).is_some_and(|(k, _)| k == kind);
        let text = match why {
            Refusal::Absent if measured.iter().any(is_of_kind) => {
                format!("{} in the kernel: this kernel has no {name}", algorithm.name())
            }
            Refusal::NoSockets | Refusal::Absent => {
                let (module, switch) = kind.module();
                format!(
                    "what the kernel calls {}: this kernel does not offer it to programs; its module {module} would ({switch})",
                    kind.name()
                )
            }
            Refusal::Denied => "the kernel's own ciphers: this program may not use them; run it outside of the container, \
                                or without what restricts it"
                .into(),
            Refusal::Wrong => format!(
                "{} in the kernel: it gives other bytes than it should, so its speed means nothing",
                algorithm.name()
            ),
            Refusal::Failed(why) => format!("{} in the kernel ({name}): {why}", algorithm.name()),
        };
        if !said.contains(&text) {
            said.push(text);
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "name         : xts(aes)
driver       : xts(ecb(aes-generic))
module       : xts
priority     : 100
internal     : no
type         : skcipher

name         : __xts(aes)
driver       : __xts-aes-neonbs
priority     : 250
internal     : yes
type         : skcipher

name         : xts(aes)
driver       : xts-aes-neonbs
module       : aes_neon_bs
priority     : 250
refcnt       : 1
internal     : no
type         : skcipher

name         : sha256
driver       : sha256-arm64-neon
priority     : 150
internal     : no
type         : shash
";

    #[test]
    fn the_driver_of_the_highest_priority_is_taken() {
        let driver = |kind, name| driver(LISTING, kind, name);
        let xts = driver(Kind::Cipher, "xts(aes)");
        assert_eq!(xts.as_deref(), Some("xts-aes-neonbs"));
        assert_eq!(driver(Kind::Cipher, "__xts(aes)"), None);
        assert_eq!(driver(Kind::Hash, "xts(aes)"), None);
        let sha = driver(Kind::Hash, "sha256");
        assert_eq!(sha.as_deref(), Some("sha256-arm64-neon"));
        assert_eq!(super::driver("", Kind::Hash, "sha256"), None);
    }

    #[test]
    fn a_kernel_without_the_sockets_is_one_sentence() {
        let refused =
            [(Algorithm::AesXts256, Refusal::NoSockets), (Algorithm::Sha256, Refusal::NoSockets)];
        let said = left_out(&refused, &[]);
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("module algif_skcipher would"), "{said:?}");
    }

    #[test]
    fn a_missing_kind_and_a_missing_algorithm_are_told_apart() {
        let refused = [
            (Algorithm::Adiantum, Refusal::Absent),
            (Algorithm::Sha256, Refusal::Absent),
            (Algorithm::Crc32c, Refusal::Absent),
        ];
        let said = left_out(&refused, &[Algorithm::AesXts512]);
        assert_eq!(
            said,
            [
                "Adiantum in the kernel: this kernel has no adiantum(xchacha12,aes)",
                "what the kernel calls hash: this kernel does not offer it to programs; its module algif_hash would \
                 (CONFIG_CRYPTO_USER_API_HASH)"
            ]
        );
    }
}
