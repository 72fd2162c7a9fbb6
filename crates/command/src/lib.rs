//! What all verbs share, so that each can stand in its room: the options of every command, the exit status, messages on
//! standard error, the terminal, the machine that is meant, and where the program keeps things.
//!
//! Like the roof, it reads the environment.
#![forbid(unsafe_code)]

// First: the macros below hold from here on.
#[macro_use]
pub mod messages;
mod exit;
pub mod file_text;
mod inherited;
mod options;
pub mod parts;
pub mod places;
pub mod progress;
pub mod signals;
mod terminal;
pub mod values;
mod world;

pub use exit::Exit;
pub use inherited::inherited_sockets;
pub use options::{General, Json, Keeping, Kept, When};
pub use terminal::{Terminal, can_draw, knows_utf8, text_columns};
pub use world::{World, must_be_live};
