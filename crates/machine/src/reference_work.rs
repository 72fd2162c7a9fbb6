//! The reference work: six pieces of real work, with what each asks of its disk.
//!
//! The counts are block requests that the kernel traced (`benches/loads.py`; docs/verdict.md has the table and how a request is
//! counted). A verdict holds a disk against all six, once each.

use crate::purpose::What;

/// A piece of work and what it asks of its disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// For people: "the first start of Chromium".
    pub name: &'static str,
    /// Bytes read in order.
    pub read_bytes: f64,
    /// Bytes written in order.
    pub written_bytes: f64,
    /// Reads of at most 64 KiB anywhere.
    pub small_reads: f64,
    /// Writes of at most 64 KiB anywhere, without those that a commit waits for.
    pub small_writes: f64,
    /// Calls that make a file durable.
    pub commits: f64,
}

/// The six, as traced.
pub const WORKS: [Work; 6] = [
    Work {
        name: "start of a board with few services",
        read_bytes: 26e6,
        written_bytes: 0.1e6,
        small_reads: 233.0,
        small_writes: 5.0,
        commits: 0.0,
    },
    Work {
        name: "installing Chromium and a compiler",
        read_bytes: 167e6,
        written_bytes: 1884e6,
        small_reads: 1266.0,
        small_writes: 619.0,
        commits: 19_531.0,
    },
    Work {
        name: "first start of Chromium",
        read_bytes: 411e6,
        written_bytes: 8e6,
        small_reads: 408.0,
        small_writes: 36.0,
        commits: 231.0,
    },
    Work {
        name: "second start of Chromium",
        read_bytes: 406e6,
        written_bytes: 2e6,
        small_reads: 412.0,
        small_writes: 29.0,
        commits: 20.0,
    },
    Work {
        name: "300 records of an SQLite logger",
        read_bytes: 15e6,
        written_bytes: 20e6,
        small_reads: 88.0,
        small_writes: 5.0,
        commits: 1204.0,
    },
    Work {
        name: "build of a small Debian package",
        read_bytes: 98e6,
        written_bytes: 13e6,
        small_reads: 1237.0,
        small_writes: 93.0,
        commits: 2.0,
    },
];

impl Work {
    /// How much of a kind of operation it asks for: bytes where they are in order, else operations.
    pub fn amount(&self, what: What) -> f64 {
        match what {
            What::SequentialRead => self.read_bytes,
            What::SequentialWrite => self.written_bytes,
            What::RandomRead => self.small_reads,
            What::RandomWrite => self.small_writes,
            What::Commit => self.commits,
        }
    }
}

/// What all six ask for together.
pub fn amount_of_all(what: What) -> f64 {
    WORKS.iter().map(|work| work.amount(what)).sum()
}
