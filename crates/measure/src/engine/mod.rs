//! The engines: loops that keep a target busy. Nothing here knows why.

pub(crate) mod positional;
pub(crate) mod ring;
pub(crate) mod wire;
