//! `rubus serve`: what is served, what is said about it, and who may look.

pub mod certificate_files;
pub mod exports;
pub mod image_identity;
pub mod lines;
pub mod log;
pub mod run;
pub mod status;
