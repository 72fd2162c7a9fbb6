//! The reference work: six pieces of real work, with what each asks of its disk.
//!
//! The counts are block requests that the kernel traced (`benches/loads.py`; docs/explanation/verdict.md has the table and how a request is
//! counted). A verdict holds a disk against all six, once each.

use crate::operations::What;

/// A piece of work and what it asks of its disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// For people: "the first start of Chromium".
    pub name: &'static str,
    /// The same as the subject of a short sentence: "starting Chromium".
    pub doing: &'static str,
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
        doing: "starting the board",
        read_bytes: 24e6,
        written_bytes: 0.06e6,
        small_reads: 233.0,
        small_writes: 6.0,
        commits: 0.0,
    },
    Work {
        name: "installing Chromium and a compiler",
        doing: "installing software",
        read_bytes: 155e6,
        written_bytes: 1883e6,
        small_reads: 2834.0,
        small_writes: 901.0,
        commits: 19_531.0,
    },
    Work {
        name: "first start of Chromium",
        doing: "starting Chromium",
        read_bytes: 402e6,
        written_bytes: 6.7e6,
        small_reads: 428.0,
        small_writes: 33.0,
        commits: 231.0,
    },
    Work {
        name: "second start of Chromium",
        doing: "starting Chromium again",
        read_bytes: 400e6,
        written_bytes: 1.3e6,
        small_reads: 433.0,
        small_writes: 30.0,
        commits: 20.0,
    },
    Work {
        name: "300 records of an SQLite logger",
        doing: "logging 300 records",
        read_bytes: 14e6,
        written_bytes: 16e6,
        small_reads: 91.0,
        small_writes: 8.0,
        commits: 1204.0,
    },
    Work {
        name: "build of a small Debian package",
        doing: "building a package",
        read_bytes: 86e6,
        written_bytes: 12e6,
        small_reads: 1242.0,
        small_writes: 80.0,
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
