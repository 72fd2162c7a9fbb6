//! Memory: how fast it is, and what happens beyond its size: swap, zram and zswap.

pub mod cli;
pub mod cliff;
pub mod group;
pub mod in_memory;
pub mod pressure;
pub mod run;
pub mod sequence;
pub mod text;
pub mod zswap;
mod zswap_place;
pub mod zswap_probe;
pub mod zswap_text;
