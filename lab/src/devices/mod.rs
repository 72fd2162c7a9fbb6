//! Devices whose truth is known: how fast they are, when they pause, when they fail.
//!
//! Each is a guard: what it made (loop devices, mounts, control groups, servers) is gone when it is
//! dropped, also when a test panics, and what a killed process left is found by its name ([`left`]). Nothing here knows the program under test, and nothing here
//! touches a device that it did not make itself.
//!
//! All of it needs root. What is missing on a machine is asked of [`needs`] before anything is made.

mod backing;
mod block_group;
mod fake_device;
mod filesystem;
pub mod left;
mod loop_device;
pub mod mark;
mod moment;
mod nbd_file;
mod nbd_server;
pub mod needs;
mod processor;
pub mod programs;
mod serving;
mod settings;

pub use block_group::{BlockGroup, LimitForAll, Limits, memory_group};
pub use fake_device::{Beyond, FakeDevice};
pub use filesystem::{FilesystemKind, SmallFilesystem};
pub use loop_device::{LoopDevice, ThrottledLoop};
pub use moment::{Moment, Span};
pub use nbd_file::{FailingDevice, PausingDevice};
pub use nbd_server::{NbdServer, free_port};
pub use processor::occupy_processor;
pub use serving::{Listening, Serving};
pub use settings::Settings;
