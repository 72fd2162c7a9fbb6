//! What happened to a running cluster while an image or a pool in it was measured: pure readings of what its own tools answer.

pub mod client;
pub mod dip;
pub mod image;
pub mod pool_name;
pub mod state;
pub mod timeline;
