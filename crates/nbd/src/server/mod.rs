//! A server: what it serves, and how.

pub mod disk;
pub mod file_disk;
pub mod handshake;
pub mod overlay;
pub mod transmission;
