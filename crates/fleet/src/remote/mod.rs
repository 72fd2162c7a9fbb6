//! Other machines over the system's ssh: which ones are meant, the way to them, and a command that runs there.
//!
//! A bounded number of machines work in parallel ([`run()`]), each with its own live line. A program is copied there
//! (`copy`) over a connection whose other end clears up (`connection`), and told what to do (`work`). Over there, [`life_line`] listens to this end.

mod candidates;
mod connection;
mod copy;
pub mod life_line;
mod machines;
mod run;
mod screen;
mod task;
mod told;
mod way;
mod work;

pub use connection::NotReached;
pub use machines::Machines;
pub use run::{Order, Results, run};
pub use task::{CAPTURE, Task, Word};
pub use way::{HEADING, Remote};
