//! Ciphers and checksums, by name.

use serde::{Deserialize, Serialize};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// AES-128 in XTS mode: a key of 256 bits, since the mode takes two.
    AesXts256,
    /// AES-256 in XTS mode: a key of 512 bits; what LUKS uses unless told otherwise.
    AesXts512,
    /// What TLS and some of ssh's ciphers use.
    Aes256Gcm,
    /// The same for processors without instructions for AES.
    ChaCha20Poly1305,
    /// Disk encryption for processors without instructions for AES (XChaCha12).
    Adiantum,
    /// The hash of dm-verity and of checksums of files.
    Sha256,
    /// A fast checksum of programs.
    Xxh3,
    /// A checksum that btrfs can use.
    Xxh64,
    /// The checksum of btrfs and ext4.
    Crc32c,
}

impl Algorithm {
    /// In tables and names.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::AesXts256 => "AES-XTS 256",
            Algorithm::AesXts512 => "AES-XTS 512",
            Algorithm::Aes256Gcm => "AES-256-GCM",
            Algorithm::ChaCha20Poly1305 => "ChaCha20-Poly1305",
            Algorithm::Adiantum => "Adiantum",
            Algorithm::Sha256 => "SHA-256",
            Algorithm::Xxh3 => "xxh3",
            Algorithm::Xxh64 => "xxh64",
            Algorithm::Crc32c => "crc32c",
        }
    }
}
