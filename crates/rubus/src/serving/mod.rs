//! `rubus serve`: what is served, what is said about it, and who may look.

pub mod exports;
pub mod identity;
pub mod log;
pub mod status;
