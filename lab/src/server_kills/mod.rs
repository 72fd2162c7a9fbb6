//! What happens to a disk that a board has over the network, drawn by a seed, and what must be
//! there afterwards. Pure: `tests/vm_pc_nbd_kills.rs` does it to a real kernel and a real server.
//!
//! [`events`] draws what happens and says how it may end; [`writes`] holds what a writer was told
//! of its writes against what is found.

pub mod events;
pub mod writes;
