//! Machine facts, read through the host: one file per subject.
//!
//! Every fact says where it was read; what could not be read is unknown with the reason. Nothing
//! here judges what a fact means for storage; that is the business of `rubus-core`.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod read;
