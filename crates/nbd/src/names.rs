//! The files of a directory of certificates (TLS).
//!
//! Their names are those that libnbd, nbdkit, qemu-nbd and nbd-client look for, so one directory serves all of them.

/// The authority, which both ends trust.
pub const AUTHORITY: &str = "ca-cert.pem";
/// The authority's key, with which more certificates can be made.
pub const AUTHORITY_KEY: &str = "ca-key.pem";
/// What a server shows.
pub const SERVER: &str = "server-cert.pem";
pub const SERVER_KEY: &str = "server-key.pem";
/// What a client shows to a server that wants to know who it is.
pub const CLIENT: &str = "client-cert.pem";
pub const CLIENT_KEY: &str = "client-key.pem";
