//! One file per verb.

pub mod bench;
pub mod checkup;
pub mod completions;
pub mod history;
pub mod manual;
pub mod survey;
