//! Clones: one golden image, and for each client a disk of its own that differs from it only where the client wrote.
//!
//! A clone is one file (`format`). Where the filesystem can share contents, it holds the whole disk and shares it with
//! the golden image; elsewhere it holds the blocks that were written and a map of them. `open` finds out what a file
//! holds after a crash, `clone` is the disk itself, `fleet` has the clones of all clients. `docs/internals/clone-file.md` has the
//! layout and the reasons why no crash hurts it.

mod clone;
mod clone_exports;
#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod crash_tests;
mod fleet;
mod format;
mod gate;
mod golden;
mod maintain;
mod open;
mod present;
mod store;
#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests;

pub use clone::CloneDisk;
pub use clone_exports::CloneExports;
pub use fleet::{ClientName, Fleet, FleetError, Lasting, MAX_CLIENT_NAME_BYTES, OpenClone};
pub use format::{BLOCK_BYTES, GoldenId, Kind};
pub use golden::GoldenFile;
pub use maintain::{CloneState, Listed, list, merge, reset, throw_away};
pub use open::OpenError;
pub use store::sweep;
