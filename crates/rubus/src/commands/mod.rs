//! One file per verb.

pub mod advise;
pub mod change;
pub mod cluster;
pub mod completions;
pub mod explain;
pub mod manual;
pub mod nbd;
pub mod pages;
pub mod survey;
pub mod tune;
