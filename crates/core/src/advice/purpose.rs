//! What a machine is for, as work: how many operations of each kind one second of it needs.
//!
//! The demands are those by which a verdict judges a device (`docs/verdict.md`): class A1 and the commits of a desktop, ten
//! commits for a logger, what a port of 1 Gbit/s asks of a storage node, two thousand pages in and out for swap. The
//! small server's are a choice, and documented as one (`docs/advise.md`).

use serde::{Deserialize, Serialize};

use crate::application_class::A1;
use crate::verdict::COMMITS_PER_SECOND;

/// What a machine is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Somebody sits before it.
    #[default]
    Desktop,
    /// A small server: web, database, home automation.
    Server,
    /// It writes down what it sees, and must not lose it.
    Logger,
    /// It gives files or disks to others.
    StorageNode,
    /// Programs that need more memory than there is.
    Swap,
}

/// Kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Large reads in order.
    SequentialRead,
    /// Large writes in order.
    SequentialWrite,
    /// 4 KiB reads anywhere.
    RandomRead,
    /// 4 KiB writes anywhere.
    RandomWrite,
    /// 4 KiB written and made durable.
    Commit,
}

/// A part of one second of work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// The kind of operation.
    pub what: What,
    /// How much: bytes where it is in order, else operations.
    pub count: f64,
    /// Operations in flight.
    pub depth: u32,
}

/// In order the kernel reads ahead and writes behind, so there is always more than one request.
pub const AHEAD: u32 = 4;

impl Purpose {
    /// All, in the order of the documentation.
    pub const ALL: [Purpose; 5] = [
        Purpose::Desktop,
        Purpose::Server,
        Purpose::Logger,
        Purpose::StorageNode,
        Purpose::Swap,
    ];

    /// As on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Purpose::Desktop => "desktop",
            Purpose::Server => "server",
            Purpose::Logger => "logger",
            Purpose::StorageNode => "storage-node",
            Purpose::Swap => "swap",
        }
    }

    /// For people, with its article.
    pub fn words(self) -> &'static str {
        match self {
            Purpose::Desktop => "a desktop",
            Purpose::Server => "a small server",
            Purpose::Logger => "a logger",
            Purpose::StorageNode => "a storage node",
            Purpose::Swap => "swap",
        }
    }

    /// One second of the work, as the end of "Time for ...".
    pub fn unit(self) -> &'static str {
        match self {
            Purpose::Desktop => {
                "one second of desktop work: 1500 random reads, 500 random writes, 10 MB read, 10 MB written, 20 commits"
            }
            Purpose::Server => {
                "one second of a small server: 2000 random reads and 500 writes with 8 in flight, 10 MB read, 100 commits"
            }
            Purpose::Logger => "one second of logging: 10 commits, 100 kB written",
            Purpose::StorageNode => {
                "one second of a full 1 Gbit/s port: 117 MB read, 8000 random reads and 4000 writes with 32 in flight"
            }
            Purpose::Swap => "one second of swapping: 2000 pages in, 2000 pages out",
        }
    }

    /// What is enough: who does one second of the work in so many seconds needs no change, whatever else is faster.
    ///
    /// A logger and a storage node have only to keep up. A server's callers wait: one that is busy half of the time lets a request
    /// wait as long again as it is served (M/M/1), and beyond that the wait grows quickly. Somebody sits before a desktop or a program
    /// that swaps and waits for all of it: where it takes a third, a disk twice as fast saves a sixth of each second, so that the
    /// whole is 1.2 times as fast, which is what a change has to bring; where it takes less, less.
    pub fn enough_s(self) -> f64 {
        match self {
            Purpose::Desktop | Purpose::Swap => 1.0 / 3.0,
            Purpose::Server => 0.5,
            Purpose::Logger | Purpose::StorageNode => 1.0,
        }
    }

    /// One second of the work.
    pub fn visits(self) -> Vec<Visit> {
        let visit = |what, count, depth| Visit { what, count, depth };
        match self {
            Purpose::Desktop => vec![
                visit(What::SequentialRead, 10e6, AHEAD),
                visit(What::SequentialWrite, 10e6, AHEAD),
                visit(What::RandomRead, A1.read_iops, 1),
                visit(What::RandomWrite, A1.write_iops, 1),
                visit(What::Commit, COMMITS_PER_SECOND, 1),
            ],
            Purpose::Server => vec![
                visit(What::SequentialRead, 10e6, AHEAD),
                visit(What::RandomRead, 2000.0, 8),
                visit(What::RandomWrite, 500.0, 8),
                visit(What::Commit, 100.0, 1),
            ],
            Purpose::Logger => vec![
                visit(What::SequentialWrite, 100e3, AHEAD),
                visit(What::Commit, 10.0, 1),
            ],
            Purpose::StorageNode => vec![
                visit(What::SequentialRead, 117e6, AHEAD),
                visit(What::RandomRead, 8000.0, 32),
                visit(What::RandomWrite, 4000.0, 32),
            ],
            Purpose::Swap => vec![
                visit(What::RandomRead, 2000.0, 1),
                visit(What::RandomWrite, 2000.0, 1),
            ],
        }
    }
}

impl What {
    /// For people: "random reads".
    pub fn words(self) -> &'static str {
        match self {
            What::SequentialRead => "reading in order",
            What::SequentialWrite => "writing in order",
            What::RandomRead => "random reads",
            What::RandomWrite => "random writes",
            What::Commit => "commits",
        }
    }

    /// Bytes of one operation.
    pub fn bytes(self) -> u64 {
        match self {
            What::SequentialRead | What::SequentialWrite => 1 << 20,
            What::RandomRead | What::RandomWrite | What::Commit => 4096,
        }
    }

    /// Whether its amount is in bytes.
    pub fn is_in_order(self) -> bool {
        matches!(self, What::SequentialRead | What::SequentialWrite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_second_is_what_is_counted() {
        for purpose in Purpose::ALL {
            for visit in purpose.visits() {
                let said = match visit.what.is_in_order() {
                    true if visit.count < 1e6 => format!("{} kB", visit.count / 1e3),
                    true => format!("{} MB", visit.count / 1e6),
                    false => format!("{} ", visit.count),
                };
                assert!(purpose.unit().contains(&said), "{said}: {}", purpose.unit());
                let depth = format!("with {} in flight", visit.depth);
                let is_deep = visit.depth > 1 && !visit.what.is_in_order();
                assert!(!is_deep || purpose.unit().contains(&depth), "{depth}");
            }
        }
    }
}
