//! Other machines over the system's ssh: which ones are meant, and the way to them.

mod machines;
mod way;

pub use machines::Machines;
pub use way::{HEADING, Remote};
