//! A server: what it serves, to whom, and how.
//!
//! [`disk`] is what an export has behind it. [`handshake`] and [`transmission`] are the protocol,
//! which take and give bytes and know no socket. [`listener`] is the server itself: who comes in, and
//! which thread serves whom.

pub mod disk;
pub mod export_table;
mod fence;
pub mod file_disk;
mod greeting;
pub mod handshake;
pub mod ledger;
mod line;
pub mod listener;
mod orphans;
pub mod overlay;
pub mod place;
mod pool;
mod session;
mod shares;
mod slowness;
pub mod tally;
mod thread_pool;
pub mod transmission;

pub use session::Gone;
