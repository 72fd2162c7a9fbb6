//! Targets at the other end of a network, spoken to without the kernel: what the engine needs of
//! them, and the connections that a session keeps.
//!
//! The engine knows no protocol and no socket. It hands a batch of requests to a [`Wire`] and gets a
//! batch of completions: one dynamic call for both, as with the kernel's rings.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use rubus_vocabulary::result::NetworkFacts;
use rubus_vocabulary::spec::{Direction, Job};

use crate::course::is_commit;

/// A disk that another machine or program serves.
pub trait Remote: Debug + Send + Sync {
    /// What it is and what it offers.
    fn facts(&self) -> &NetworkFacts;

    /// Makes a connection.
    ///
    /// # Errors
    /// In words, with what to do.
    fn connect(&self) -> Result<Box<dyn Wire>, String>;
}

/// One connection to a [`Remote`], with requests in flight.
pub trait Wire: Send {
    /// Sends the requests that are due, then waits until at least one that is in flight has been
    /// completed, and appends what has been. At most one request is in flight per slot. `memory` is
    /// the same in every call while anything is in flight.
    ///
    /// # Errors
    /// In words, when the connection is of no more use.
    fn exchange(
        &mut self,
        due: &[Request],
        memory: &mut [u8],
        completions: &mut Vec<Completion>,
    ) -> Result<(), String>;
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Bytes from the target.
    Read,
    /// Bytes to the target.
    Write,
    /// Bytes to the target that are durable when it is completed.
    DurableWrite,
    /// Makes durable what has been completed.
    Flush,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of the slot, from 0.
    pub slot: u32,
    /// What to do.
    pub kind: RequestKind,
    /// Where on the target, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub length: u32,
    /// Where in the memory the data are or go.
    pub memory_at: usize,
}

/// A request that was completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Number of the slot, which is free again.
    pub slot: u32,
    /// What went wrong, in words, if anything did.
    pub failure: Option<Box<str>>,
    /// Bytes of a read that the other end called zeros instead of sending them.
    pub hole_bytes: u32,
}

/// A remote with the connections that a session has made and uses again: some servers take one
/// client and end with it.
#[derive(Debug)]
pub(crate) struct Connections {
    remote: Arc<dyn Remote>,
    idle: Mutex<Vec<IdleWire>>,
    hole_bytes: std::sync::atomic::AtomicU64,
}

/// A wire without requests in flight.
struct IdleWire(Box<dyn Wire>);

impl Debug for IdleWire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IdleWire")
    }
}

impl Connections {
    /// Without a connection yet.
    pub(crate) fn new(remote: Arc<dyn Remote>) -> Self {
        Connections {
            remote,
            idle: Mutex::new(Vec::new()),
            hole_bytes: std::sync::atomic::AtomicU64::new(0),
        }
    }

    /// What is known of the remote.
    pub(crate) fn facts(&self) -> &NetworkFacts {
        self.remote.facts()
    }

    /// How many connections a job is to use at once, if its queue is that deep.
    pub(crate) fn wanted(&self) -> u32 {
        self.facts().connections.max(1)
    }

    /// An idle connection, or a new one.
    ///
    /// # Errors
    /// If connecting fails.
    pub(crate) fn take(&self) -> Result<Box<dyn Wire>, String> {
        let idle = self.idle().pop();
        match idle {
            Some(IdleWire(wire)) => Ok(wire),
            None => self.remote.connect(),
        }
    }

    /// Takes a connection back on which nothing is in flight.
    pub(crate) fn give_back(&self, wire: Box<dyn Wire>) {
        self.idle().push(IdleWire(wire));
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<IdleWire>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes bytes of reads that were called zeros instead of being sent.
    pub(crate) fn add_hole_bytes(&self, bytes: u64) {
        let order = std::sync::atomic::Ordering::Relaxed;
        self.hole_bytes.fetch_add(bytes, order);
    }

    /// How many those were in all.
    pub(crate) fn hole_bytes(&self) -> u64 {
        self.hole_bytes.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Whether each operation of a commit is one request, and not a write and a flush.
    pub(crate) fn commits_at_once(&self) -> bool {
        self.facts().can_fua
    }

    /// Makes durable what has been written; the other end need not be able to.
    ///
    /// # Errors
    /// If connecting or the flush fails.
    pub(crate) fn flush(&self) -> Result<(), String> {
        if !self.facts().can_flush {
            return Ok(());
        }
        let mut wire = self.take()?;
        let flush =
            Request { slot: 0, kind: RequestKind::Flush, offset: 0, length: 0, memory_at: 0 };
        let mut completions = Vec::new();
        wire.exchange(&[flush], &mut [], &mut completions)?;
        match completions.pop() {
            Some(Completion { failure: Some(failure), .. }) => Err(failure.into()),
            _ => {
                self.give_back(wire);
                Ok(())
            }
        }
    }

    /// Why the job cannot be run on such a target; nothing when it can.
    pub(crate) fn why_not(&self, job: &Job) -> Option<String> {
        let facts = self.facts();
        let most = u64::from(facts.block_sizes.most_bytes);
        if job.through_cache {
            return Some("there is no page cache between here and a network disk".into());
        }
        if !job.operation.is_block() || job.shape.is_some() {
            return Some("a network disk is measured with plain reads and writes only".into());
        }
        if u64::from(job.block_bytes) > most {
            return Some(format!("the server takes requests of {most} bytes at most"));
        }
        if is_commit(job) && !facts.can_flush && !facts.can_fua {
            return Some("the server offers no way to make a write durable".into());
        }
        if job.direction == Direction::Write && facts.is_read_only {
            return Some("the export is read-only".into());
        }
        if !job.beside.is_empty() && !facts.can_multi_conn {
            return Some(
                "it needs two connections, and the server does not promise that both see the same \
                 data"
                    .into(),
            );
        }
        job.beside.iter().find_map(|beside| self.why_not(beside))
    }
}
