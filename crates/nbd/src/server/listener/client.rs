//! Clients and their events, as the operator of the server sees them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rubus_host::net::Stream;
use rubus_host::net::listening::Caller;

use super::super::session::Gone;
use super::super::tally::{Counts, Tally};

/// A client that is served, as others see it.
#[derive(Debug)]
pub struct Client {
    /// Number of the client, from 1.
    pub number: u64,
    /// Who it is.
    pub caller: Caller,
    /// Which export it has.
    pub export: String,
    /// When it agreed on that, on the clock that never jumps.
    pub since_ns: u64,
    pub(super) stream: Arc<Stream>,
    pub(super) is_busy: AtomicBool,
    pub(super) tally: Arc<Tally>,
}

impl Client {
    /// What it has had done.
    pub fn counts(&self) -> Counts {
        self.tally.counts()
    }

    /// Whether it has a thread at the moment, because it has sent something within two seconds.
    pub fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }
}

/// Something worth logging.
#[derive(Debug)]
pub enum Event<'a> {
    /// A client has an export.
    Came(&'a Client),
    /// A client has gone, and this is what it had done.
    Went(&'a Client, &'a Gone),
    /// A client asked about the exports and disconnected properly.
    Asked(&'a Caller),
    /// A client disconnected during the handshake without a goodbye.
    Left(&'a Caller),
    /// A client was refused.
    Refused {
        /// Where the client comes from.
        caller: &'a Caller,
        why: String,
    },
    /// The server itself has a problem.
    Trouble(String),
}

/// What the server does, at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// Connected clients.
    pub clients: Vec<Arc<Client>>,
    /// How many were served and are gone.
    pub gone_clients: u64,
    /// What those have had done.
    pub gone: Counts,
    /// Threads that serve clients at the moment.
    pub threads: usize,
}
