//! A server: what it serves, to whom, and how.
//!
//! [`disk`] is what an export has behind it. [`handshake`] and [`transmission`] are the protocol,
//! which take and give bytes and know no socket. [`door`] is the server itself: who comes in, and
//! which thread serves whom.

mod crew;
pub mod disk;
pub mod door;
mod fence;
pub mod file_disk;
mod greeting;
pub mod handshake;
pub mod ledger;
mod line;
pub mod overlay;
mod pool;
mod session;
mod shares;
pub mod shelf;
mod slowness;
pub mod tally;
pub mod transmission;

pub use session::Gone;
