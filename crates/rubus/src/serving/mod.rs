//! `rubus serve`: what is served, what is said about it, and who may look.

pub mod exports;
mod identity;
pub mod log;
pub mod status;
