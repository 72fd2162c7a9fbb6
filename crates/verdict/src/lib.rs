//! What results mean: a run becomes findings, a verdict, an answer, and their words.
//!
//! `findings` are what the results of one suite say together; `verdict` holds a disk against real work and names its narrowest pipe;
//! `pipes` is that as a picture; `enough` answers whether storage is fast enough for a program; `text` words all of it. Nothing here
//! measures: everything is a pure function of a [`Run`](rubus_vocabulary::result::Run).
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod enough;
pub mod findings;
#[doc(hidden)]
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod nas;
pub mod pipes;
pub mod text;
pub mod verdict;
