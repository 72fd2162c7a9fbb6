//! Which instructions a library or a driver of the kernel uses for a cipher, by what the processor offers.
//!
//! The libraries do not tell what they chose; they choose by the same features that the kernel lists, so the choice is
//! repeated here. Sources: the crates' own detection (`aes` 0.9, `ring` 0.17, `crc32c` 0.6, `twox-hash` 2.1), the names
//! that `/proc/crypto` gives drivers (arch/*/crypto of the kernel), OpenSSL's OPENSSL_ia32cap(3) and OPENSSL_armcap.

use rubus_vocabulary::processor::algorithm::Algorithm;
use rubus_vocabulary::processor::implementation::{Implementation, Uses};

/// What a processor offers to a program.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// What the program was built for, as Rust calls it ("x86_64", "aarch64", "arm").
    pub architecture: &'a str,
    /// The features that matter here, as the kernel lists them.
    pub features: &'a [String],
}

impl Offer<'_> {
    pub(crate) fn has(&self, all: &[&str]) -> bool {
        let is_there = |wanted: &&str| self.features.iter().any(|feature| feature == wanted);
        all.iter().all(is_there)
    }

    fn is_x86(&self) -> bool {
        ["x86_64", "x86"].contains(&self.architecture)
    }

    /// Both names that the kernel has for it.
    pub(crate) fn has_neon(&self) -> bool {
        self.architecture == "aarch64" || self.has(&["neon"]) || self.has(&["asimd"])
    }

    /// What the library behind an algorithm chooses here.
    pub fn chosen(&self, algorithm: Algorithm) -> Implementation {
        let (name, uses) = match algorithm {
            Algorithm::AesXts256 | Algorithm::AesXts512 => ("aes 0.9", self.aes_crate()),
            Algorithm::Aes256Gcm => ("ring 0.17", self.ring_gcm()),
            Algorithm::ChaCha20Poly1305 => ("ring 0.17", self.ring_chacha()),
            Algorithm::Sha256 => ("ring 0.17", self.ring_sha256()),
            Algorithm::Xxh3 => ("twox-hash 2.1", self.xxh3()),
            Algorithm::Crc32c => ("crc32c 0.6", self.crc32c()),
            Algorithm::Xxh64 => ("twox-hash 2.1", Uses::Plain),
            Algorithm::Adiantum => ("none", Uses::Unknown),
        };
        Implementation { name: name.into(), uses }
    }

    fn aes_crate(&self) -> Uses {
        if self.is_x86() && self.has(&["aes"]) {
            Uses::AesNi
        } else if self.architecture == "aarch64" && self.has(&["aes"]) {
            Uses::ArmAes
        } else {
            // Bit slices in ordinary registers, also where there is NEON.
            Uses::Plain
        }
    }

    fn ring_gcm(&self) -> Uses {
        if self.is_x86() && self.has(&["aes", "pclmulqdq", "ssse3"]) {
            let is_wide =
                self.architecture == "x86_64" && self.has(&["vaes", "vpclmulqdq", "avx2"]);
            return if is_wide { Uses::Vaes256 } else { Uses::AesNi };
        }
        match self.architecture {
            "aarch64" if self.has(&["aes", "pmull"]) => Uses::ArmAes,
            _ => self.vectors(),
        }
    }

    fn ring_chacha(&self) -> Uses {
        match self.architecture {
            "x86_64" if self.has(&["avx2"]) => Uses::Avx2,
            _ => self.vectors(),
        }
    }

    fn ring_sha256(&self) -> Uses {
        match self.architecture {
            "x86_64" if self.has(&["sha_ni", "ssse3"]) => Uses::ShaNi,
            "aarch64" if self.has(&["sha2"]) => Uses::ArmSha2,
            "aarch64" => Uses::Plain,
            _ => self.vectors(),
        }
    }

    fn xxh3(&self) -> Uses {
        match self.architecture {
            "x86_64" if self.has(&["avx2"]) => Uses::Avx2,
            "x86_64" => Uses::Sse,
            "aarch64" => Uses::Neon,
            _ => Uses::Plain,
        }
    }

    fn crc32c(&self) -> Uses {
        match self.architecture {
            "x86_64" if self.has(&["sse4_2"]) => Uses::CrcInstruction,
            "aarch64" if self.has(&["crc32"]) => Uses::CrcInstruction,
            _ => Uses::Plain,
        }
    }

    fn vectors(&self) -> Uses {
        match self.architecture {
            "x86_64" | "x86" if self.has(&["ssse3"]) => Uses::Sse,
            "aarch64" | "arm" if self.has_neon() => Uses::Neon,
            _ => Uses::Plain,
        }
    }
}

/// What a driver of the kernel uses, by its name in `/proc/crypto`.
pub fn of_driver(driver: &str) -> Uses {
    // More special names come first: "xts-aes-vaes-avx512" is not what "avx512" alone would be.
    const NAMES: [(&str, Uses); 22] = [
        ("vaes-avx512", Uses::Vaes512),
        ("vaes-avx10", Uses::Vaes512),
        ("vaes", Uses::Vaes256),
        ("aesni", Uses::AesNi),
        ("aes-ce", Uses::ArmAes),
        ("sha256-ni", Uses::ShaNi),
        ("sha256-ce", Uses::ArmSha2),
        ("crc32c-intel", Uses::CrcInstruction),
        ("crc32c-arm64", Uses::CrcInstruction),
        ("crc32c-pclmul", Uses::CrcInstruction),
        ("crc32c-x86", Uses::CrcInstruction),
        ("avx512", Uses::Avx512),
        ("avx2", Uses::Avx2),
        ("avx", Uses::Sse),
        ("simd", Uses::Sse),
        ("ssse3", Uses::Sse),
        ("sse2", Uses::Sse),
        ("neon", Uses::Neon),
        ("fixed-time", Uses::Plain),
        ("generic", Uses::Plain),
        ("-arm", Uses::Plain),
        ("-asm", Uses::Plain),
    ];
    // Engines of common systems on a chip.
    const ENGINES: [&str; 8] =
        ["caam", "sun8i", "sun4i", "rk-", "-rk", "marvell", "safexcel", "omap"];
    // Adiantum is its stream cipher for all but a block of each message.
    let driver = match driver.strip_prefix("adiantum(") {
        Some(parts) => parts.split(',').next().unwrap_or(parts),
        None => driver,
    };
    if ENGINES.iter().any(|engine| driver.contains(engine)) {
        return Uses::Engine;
    }
    let found = NAMES.iter().find(|(part, _)| driver.contains(part));
    found.map_or(Uses::Unknown, |(_, uses)| *uses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(architecture: &str, features: &str, algorithm: Algorithm) -> Uses {
        let features: Vec<String> = features.split_whitespace().map(str::to_string).collect();
        let offer = Offer { architecture, features: &features };
        offer.chosen(algorithm).uses
    }

    #[test]
    fn a_board_without_the_cryptographic_extension_has_vectors_only() {
        let pi4 = |algorithm| chosen("aarch64", "asimd crc32", algorithm);
        assert_eq!(pi4(Algorithm::AesXts512), Uses::Plain);
        assert_eq!(pi4(Algorithm::Aes256Gcm), Uses::Neon);
        assert_eq!(pi4(Algorithm::ChaCha20Poly1305), Uses::Neon);
        assert_eq!(pi4(Algorithm::Sha256), Uses::Plain);
        assert_eq!(pi4(Algorithm::Crc32c), Uses::CrcInstruction);
        let pi4_32 = |algorithm| chosen("arm", "neon crc32", algorithm);
        assert_eq!(pi4_32(Algorithm::Aes256Gcm), Uses::Neon);
        assert_eq!(pi4_32(Algorithm::Crc32c), Uses::Plain);
        assert_eq!(chosen("arm", "", Algorithm::Aes256Gcm), Uses::Plain);
    }

    #[test]
    fn extensions_are_used_where_they_are() {
        let pi5 = |algorithm| chosen("aarch64", "asimd aes pmull sha1 sha2 crc32", algorithm);
        assert_eq!(pi5(Algorithm::AesXts256), Uses::ArmAes);
        assert_eq!(pi5(Algorithm::Aes256Gcm), Uses::ArmAes);
        assert_eq!(pi5(Algorithm::Sha256), Uses::ArmSha2);
        let old = "ssse3 sse4_2 aes pclmulqdq";
        assert_eq!(chosen("x86_64", old, Algorithm::Aes256Gcm), Uses::AesNi);
        assert_eq!(chosen("x86_64", old, Algorithm::Sha256), Uses::Sse);
        let new = "ssse3 sse4_2 aes pclmulqdq avx2 vaes vpclmulqdq sha_ni";
        assert_eq!(chosen("x86_64", new, Algorithm::Aes256Gcm), Uses::Vaes256);
        assert_eq!(chosen("x86_64", new, Algorithm::AesXts512), Uses::AesNi);
        assert_eq!(chosen("x86_64", new, Algorithm::Sha256), Uses::ShaNi);
    }

    #[test]
    fn drivers_are_known_by_their_names() {
        for (driver, uses) in [
            ("xts-aes-vaes-avx512", Uses::Vaes512),
            ("xts-aes-vaes-avx2", Uses::Vaes256),
            ("xts-aes-aesni-avx", Uses::AesNi),
            ("xts-aes-aesni", Uses::AesNi),
            ("xts-aes-ce", Uses::ArmAes),
            ("xts-aes-neonbs", Uses::Neon),
            ("xts-aes-neon", Uses::Neon),
            ("xts(ecb(aes-fixed-time))", Uses::Plain),
            ("xts(ecb(aes-generic))", Uses::Plain),
            ("gcm_base(ctr(aes-generic),ghash-generic)", Uses::Plain),
            ("generic-gcm-vaes-avx512", Uses::Vaes512),
            ("sha256-ni", Uses::ShaNi),
            ("sha256-generic", Uses::Plain),
            ("crc32c-intel", Uses::CrcInstruction),
            ("rfc7539(chacha20-simd,poly1305-simd)", Uses::Sse),
            ("xts-aes-caam", Uses::Engine),
            ("adiantum(xchacha12-simd,aes-aesni,nhpoly1305-sse2)", Uses::Sse),
            ("adiantum(xchacha12-neon,aes-arm64,nhpoly1305-neon)", Uses::Neon),
            ("nobody-knows", Uses::Unknown),
        ] {
            assert_eq!(of_driver(driver), uses, "{driver}");
        }
    }
}
