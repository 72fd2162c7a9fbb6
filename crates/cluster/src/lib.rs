//! Sizes a storage cluster of small boards before it is bought: capacity, memory, ceilings,
//! rebuild, cost; compares layouts; describes the cluster for deployment.
//!
//! The engine is Ceph; nothing here stores data. Sizing is arithmetic over a [`design::Design`]; what it has to
//! read comes through [`cli::Outside`]. An image or a pool of a running cluster is measured by [`live`], and [`watch`]
//! reads what Ceph's own tools print meanwhile.
//! The formulas, their sources and what is assumed are in `docs/how-to/cluster.md`.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod beside;
pub mod boards;
pub mod capacity;
pub mod ceilings;
pub mod cli;
pub mod compare;
pub mod cost;
pub mod design;
pub mod disks;
pub mod layout;
pub mod live;
pub mod loss;
pub mod measured;
pub mod memory;
pub mod objects;
pub mod prices;
pub mod rados;
pub mod range;
pub mod rebuild;
pub mod release;
pub mod report;
pub mod spec;
pub mod text;
pub mod watch;
pub mod wishes;
