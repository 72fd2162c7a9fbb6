//! What a cipher is computed with: a library or a driver of the kernel, and the instructions that it uses.

use serde::{Deserialize, Serialize};

/// Who does it, and with what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Implementation {
    /// The library and its version, or the kernel's driver.
    pub name: String,
    /// The instructions that it uses.
    pub uses: Uses,
}

/// What a cipher is computed with, from the fastest kind to the slowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Uses {
    /// A device beside the processor.
    Engine,
    /// AES instructions on several blocks at once, in registers of 512 bits.
    Vaes512,
    /// AES instructions on two blocks at once, in registers of 256 bits.
    Vaes256,
    /// AES instructions of x86.
    AesNi,
    /// AES instructions of ARMv8's cryptographic extension.
    ArmAes,
    /// SHA instructions of x86.
    ShaNi,
    /// SHA-256 instructions of ARMv8's cryptographic extension.
    ArmSha2,
    /// An instruction for this checksum.
    CrcInstruction,
    /// Vectors of 512 bits.
    Avx512,
    /// Vectors of 256 bits.
    Avx2,
    /// Vectors of 128 bits on x86 (AVX, SSSE3 or SSE2).
    Sse,
    /// Vectors of 128 bits on ARM.
    Neon,
    /// What every processor of the architecture can do.
    Plain,
    /// It is unknown.
    Unknown,
}

impl Uses {
    /// A short name for tables.
    pub fn words(self) -> &'static str {
        match self {
            Uses::Engine => "engine",
            Uses::Vaes512 => "VAES 512",
            Uses::Vaes256 => "VAES 256",
            Uses::AesNi => "AES-NI",
            Uses::ArmAes => "ARM AES",
            Uses::ShaNi => "SHA-NI",
            Uses::ArmSha2 => "ARM SHA-2",
            Uses::CrcInstruction => "CRC32",
            Uses::Avx512 => "AVX-512",
            Uses::Avx2 => "AVX2",
            Uses::Sse => "SSE",
            Uses::Neon => "NEON",
            Uses::Plain => "plain code",
            Uses::Unknown => "not known",
        }
    }
}
