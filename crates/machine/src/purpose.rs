//! What a machine is for, as work: how many operations of each kind one second of it needs.
//!
//! The demands are those by which a verdict judges a device (`docs/explanation/verdict.md`): for a desktop a sixtieth of the reference work, ten
//! commits for a logger, two thousand pages in and out for swap; a storage node's, in their proportion, are as much as its network
//! port carries in a second. The small server's are a choice, and documented as one (`docs/explanation/advise.md`).

use serde::{Deserialize, Serialize};

use crate::ceiling;
pub use crate::operations::What;
use crate::reference_work;

/// What a machine is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A desktop someone works at.
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

/// A desktop's second is such a share of the reference work: all of it within a minute.
const DESKTOP_SECONDS: f64 = 60.0;

/// What a storage node reads in order besides its small reads and writes: the verdict's demands.
const NODE_BYTES: f64 = 117e6;
const NODE_READS: f64 = 8000.0;
const NODE_WRITES: f64 = 4000.0;

/// In order the kernel reads ahead and writes behind, so there is always more than one request.
pub const AHEAD: u32 = 4;

impl Purpose {
    /// All, in the order of the documentation.
    pub const ALL: [Purpose; 5] =
        [Purpose::Desktop, Purpose::Server, Purpose::Logger, Purpose::StorageNode, Purpose::Swap];

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

    /// One second of the work, as the end of "Time for ..."; a storage node's for a port of 1 Gbit/s.
    pub fn unit(self) -> String {
        self.unit_through("1 Gbit/s port", gigabit())
    }

    /// The same; a storage node's for a port of this name and bandwidth.
    pub fn unit_through(self, port: &str, bytes_per_second: f64) -> String {
        match self {
            Purpose::Desktop => {
                let [read, written] =
                    [What::SequentialRead, What::SequentialWrite].map(|what| counted_bytes(desktop_amount(what)));
                let [reads, writes, commits] = [What::RandomRead, What::RandomWrite, What::Commit].map(desktop_amount);
                format!(
                    "one second of desktop work: {commits} commits, {written} written, {read} read, {reads} random reads, \
                     {writes} random writes"
                )
            }
            Purpose::Server => {
                "one second of a small server: 2000 random reads and 500 writes with 8 in flight, 10 MB read, 100 commits".into()
            }
            Purpose::Logger => "one second of logging: 10 commits, 100 kB written".into(),
            Purpose::StorageNode => {
                let [bytes, reads, writes] = node_counts(bytes_per_second);
                let read = counted_bytes(bytes);
                format!(
                    "one second of a full {port}: {read} read, {reads} random reads and {writes} writes with 32 in flight"
                )
            }
            Purpose::Swap => "one second of swapping: 2000 pages in, 2000 pages out".into(),
        }
    }

    /// What is enough: a disk that does one second of the work within this time needs no change, whatever else is
    /// faster.
    ///
    /// A logger and a storage node have only to keep up. A server's callers wait: one that is busy half of the time
    /// lets a request wait as long again as it is served (M/M/1), and beyond that the wait grows quickly. The user of a
    /// desktop, or of a program that swaps, waits for all of it: where it takes a third, a disk twice as fast saves a
    /// sixth of each second, so that the whole is 1.2 times as fast, which is what a change has to bring; where it
    /// takes less, less.
    pub fn enough_s(self) -> f64 {
        match self {
            Purpose::Desktop | Purpose::Swap => 1.0 / 3.0,
            Purpose::Server => 0.5,
            Purpose::Logger | Purpose::StorageNode => 1.0,
        }
    }

    /// One second of the work; a storage node's fills a port of 1 Gbit/s.
    pub fn visits(self) -> Vec<Visit> {
        self.visits_through(gigabit())
    }

    /// The same; a storage node's fills a port of this bandwidth.
    pub fn visits_through(self, bytes_per_second: f64) -> Vec<Visit> {
        let visit = |what, count, depth| Visit { what, count, depth };
        match self {
            Purpose::Desktop => [
                (What::SequentialRead, AHEAD),
                (What::SequentialWrite, AHEAD),
                (What::RandomRead, 1),
                (What::RandomWrite, 1),
                (What::Commit, 1),
            ]
            .map(|(what, depth)| visit(what, desktop_amount(what), depth))
            .to_vec(),
            Purpose::Server => vec![
                visit(What::SequentialRead, 10e6, AHEAD),
                visit(What::RandomRead, 2000.0, 8),
                visit(What::RandomWrite, 500.0, 8),
                visit(What::Commit, 100.0, 1),
            ],
            Purpose::Logger => {
                vec![visit(What::SequentialWrite, 100e3, AHEAD), visit(What::Commit, 10.0, 1)]
            }
            Purpose::StorageNode => {
                let [bytes, reads, writes] = node_counts(bytes_per_second);
                vec![
                    visit(What::SequentialRead, bytes, AHEAD),
                    visit(What::RandomRead, reads, 32),
                    visit(What::RandomWrite, writes, 32),
                ]
            }
            Purpose::Swap => {
                vec![visit(What::RandomRead, 2000.0, 1), visit(What::RandomWrite, 2000.0, 1)]
            }
        }
    }
}

/// What one second of desktop work asks for, to two digits.
fn desktop_amount(what: What) -> f64 {
    two_digits(reference_work::amount_of_all(what) / DESKTOP_SECONDS)
}

/// What a port of 1 Gbit/s carries, bytes per second.
fn gigabit() -> f64 {
    ceiling::ethernet(1_000_000_000).bytes_per_second
}

/// Bytes in order, small reads and small writes that fill a port for one second, to two digits.
fn node_counts(port_bytes_per_second: f64) -> [f64; 3] {
    let small = What::RandomRead.bytes() as f64;
    let all = NODE_BYTES + (NODE_READS + NODE_WRITES) * small;
    let share = port_bytes_per_second / all;
    [NODE_BYTES, NODE_READS, NODE_WRITES].map(|count| two_digits(count * share))
}

fn two_digits(count: f64) -> f64 {
    let digit = 10_f64.powi(count.max(1.0).log10().floor() as i32 - 1);
    (count / digit).round() * digit
}

fn counted_bytes(bytes: f64) -> String {
    if bytes < 1e6 { format!("{} kB", bytes / 1e3) } else { format!("{} MB", bytes / 1e6) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_second_is_what_is_counted() {
        let ports = [0.5e6, 11_768_531.0, 35e6, gigabit(), 1e9];
        for (purpose, port) in
            Purpose::ALL.into_iter().flat_map(|purpose| ports.map(|port| (purpose, port)))
        {
            let unit = purpose.unit_through("port", port);
            for visit in purpose.visits_through(port) {
                let said = if visit.what.is_in_order() {
                    format!("{} ", counted_bytes(visit.count))
                } else {
                    format!("{} ", visit.count)
                };
                assert!(unit.replace(',', " ").contains(&said), "{said}: {unit}");
                let depth = format!("with {} in flight", visit.depth);
                let is_deep = visit.depth > 1 && !visit.what.is_in_order();
                assert!(!is_deep || unit.contains(&depth), "{depth}");
            }
        }
        assert!(Purpose::StorageNode.unit().ends_with(
            "a full 1 Gbit/s port: 83 MB read, 5700 random reads and 2800 writes with 32 in flight"
        ));
    }

    #[test]
    fn a_storage_nodes_second_is_what_its_port_carries_in_one() {
        for port in [1.5e6, 11_768_531.0, 35e6, gigabit(), 1e9] {
            let visits = Purpose::StorageNode.visits_through(port);
            let bytes = |visit: &Visit| {
                if visit.what.is_in_order() {
                    visit.count
                } else {
                    visit.count * visit.what.bytes() as f64
                }
            };
            let carried: f64 = visits.iter().map(bytes).sum();
            assert!((carried / port - 1.0).abs() < 0.05, "{carried} {port}");
        }
    }
}
