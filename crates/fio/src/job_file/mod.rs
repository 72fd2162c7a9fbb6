//! Job files in fio's format: reading them, and turning them into suites.
//!
//! The way is text → sections ([`text`]) → a [`Plan`] of stages and files ([`plan`]) → once it is
//! known what those files are, a [`Suite`](rubus_vocabulary::spec::Suite) ([`lower`]). Nothing is skipped
//! silently: an option is done, or has no effect on what is measured here and is noted, or is a
//! problem that names file, line, section and option. Facts about the format are from fio's manual.

pub mod asked;
mod blocks;
pub mod lower;
pub mod options;
pub mod plan;
pub mod problem;
mod settings;
mod spelled;
pub mod stated;
pub mod text;
pub mod value;

#[cfg(test)]
mod tests;

pub use asked::Asked;
pub use lower::{FileFacts, Lowered};
pub use plan::{Note, NoteKind, Plan, WantedFile};
pub use problem::{At, JobFileError, Problem};
pub use text::{Included, Surroundings};
