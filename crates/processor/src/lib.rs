//! What a processor gives to storage: ciphers and checksums, ssh, compression, and a system of linear equations.

pub mod cli;
pub mod compression;
pub mod compression_text;
pub mod files;
pub mod offer;
pub mod published;
pub mod run;
pub mod solving;
pub mod suite;
pub mod text;
