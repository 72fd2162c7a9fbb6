//! What happened to a running cluster while an image in it was measured: pure readings of what its own tools answer.

pub mod dip;
pub mod image;
pub mod state;
pub mod timeline;
