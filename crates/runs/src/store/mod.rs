//! The history of runs: one SQLite file that any SQLite tool can read.
//!
//! Here live the schema, its migrations and the few queries. SQLite does its own file access, so
//! this room is the exception to the rule that only `host` opens files. Nothing is computed here:
//! what a summary says is decided in `history`.
//!
//! The promise: a run that was acknowledged is never lost, by a second writer, a kill, a power
//! cut, a full disk or a newer version of this program; and a file that is not a healthy history
//! is left exactly as it was found.

mod error;
mod exchange;
mod history;
mod known;
mod schema;

#[cfg(test)]
mod tests;

pub use error::StoreError;
pub use exchange::Imported;
pub use history::{Filter, History, StoredRun};
