//! Ciphers and checksums: how many bytes a second, in this program and in the kernel, and with which instructions.

use serde::{Deserialize, Serialize};

use super::Rates;
use super::implementation::Implementation;
use super::peers::Peer;

/// What was measured of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ciphers {
    /// In the order of measuring.
    pub rows: Vec<Row>,
    /// Other programs beside this one.
    #[serde(default)]
    pub peers: Vec<Peer>,
}

/// One algorithm, one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which.
    pub algorithm: Algorithm,
    /// What is done with it.
    pub work: Work,
    /// Where it is computed.
    pub place: Place,
    /// Bytes of one message.
    pub block_bytes: u32,
    /// By whom, and with which instructions.
    pub implementation: Implementation,
    /// Bytes per second.
    pub rates: Rates,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// What is done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// It is enciphered.
    Encrypt,
    /// It is deciphered.
    Decrypt,
    /// Its sum is computed.
    Digest,
}

impl Work {
    /// In tables and names.
    pub fn name(self) -> &'static str {
        match self {
            Work::Encrypt => "encrypt",
            Work::Decrypt => "decrypt",
            Work::Digest => "digest",
        }
    }
}

/// Where something is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In this program.
    Program,
    /// In the kernel, reached through a socket (AF_ALG).
    Kernel,
}

impl Place {
    /// In tables and names.
    pub fn name(self) -> &'static str {
        match self {
            Place::Program => "program",
            Place::Kernel => "kernel",
        }
    }
}

impl Ciphers {
    /// A row by what it is.
    pub fn row(&self, algorithm: Algorithm, work: Work, place: Place) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| (row.algorithm, row.work, row.place) == (algorithm, work, place))
    }
}
