//! What a server serves, and to whom.

use std::sync::Arc;

use crate::callers::Network;
use rubus_host::net::listening::Caller;

use super::super::disk::Disk;
use super::super::handshake::{Exports, TlsPolicy};
use crate::tls::TlsServerSettings;

/// What a server has, beyond what clients are told of it.
pub trait Store: Exports + Send + Sync {
    /// Opens an export for a client that has agreed on it.
    ///
    /// # Errors
    /// In words, for the log; the client is hung up on.
    fn open(&self, name: &str, caller: &Caller) -> Result<Opened, String>;

    /// Whether [`Exports::find`] or [`Store::open`] may wait for a device. If so, handshakes run in
    /// their own threads and delay no other client.
    fn may_wait(&self) -> bool {
        false
    }

    /// The export whose threads wait for the disk: exports that lie on one disk may share them.
    fn pool_of<'a>(&self, name: &'a str) -> &'a str {
        name
    }

    /// What clients are told: itself (Rust before 1.86 cannot say so of every store).
    fn exports(&self) -> &dyn Exports;
}

/// An export that is open for a client.
pub struct Opened {
    /// The disk behind the export.
    pub disk: Arc<dyn Disk>,
    /// Every write is durable before it is answered.
    pub sync: bool,
}

/// Who may come, and how many.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Networks that may connect; empty means all.
    pub allow: Vec<Network>,
    /// Maximum number of clients at once.
    pub max_clients: usize,
    /// Bytes that may be in flight, of all clients together.
    pub max_bytes: usize,
    /// Whether connections are encrypted.
    pub tls: TlsPolicy,
    /// What for that is needed; without it, none is.
    pub certificates: Option<TlsServerSettings>,
}

impl Settings {
    pub(super) fn encryption(&self) -> (TlsPolicy, Option<TlsServerSettings>) {
        (self.tls, self.certificates.clone())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            allow: Vec::new(),
            max_clients: 4096,
            max_bytes: 256 << 20,
            tls: TlsPolicy::Off,
            certificates: None,
        }
    }
}
