//! Clients and what happens to them, as whoever runs the server sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rubus_host::listening::Caller;
use rubus_host::net::Stream;

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

/// Something that whoever runs the server may want to know.
#[derive(Debug)]
pub enum Event<'a> {
    /// A client has an export.
    Came(&'a Client),
    /// A client has gone, and this is what it had done.
    Went(&'a Client, &'a Gone),
    /// Somebody asked what there is, and took leave.
    Asked(&'a Caller),
    /// Somebody went without a word, before it was agreed what for it came.
    Left(&'a Caller),
    /// Somebody came who does not become a client.
    Refused {
        /// Who.
        caller: &'a Caller,
        why: String,
    },
    /// The server itself has a problem.
    Trouble(String),
}

/// What the server does, at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// Those who are served.
    pub clients: Vec<Arc<Client>>,
    /// How many were served and are gone.
    pub gone_clients: u64,
    /// What those have had done.
    pub gone: Counts,
    /// Threads that serve clients at the moment.
    pub threads: usize,
}
