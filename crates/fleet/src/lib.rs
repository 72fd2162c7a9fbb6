//! Many machines at once: which ones an inventory names, how their settings differ, and which one
//! stands apart.
//!
//! Nothing here connects or reads a file: the roof does that.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod figures;
pub mod inventory;
pub mod outliers;
pub mod settings;
pub mod text;
