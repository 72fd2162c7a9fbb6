//! What a machine is: facts as probes read them, the kernel's texts and disks' superblocks parsed, rules that find what is wrong, and the survey as a text.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod ceiling;
pub mod in_use;
pub mod kernel_log;
pub mod not_copied;
pub mod operations;
pub mod parse;
pub mod probe;
pub mod purpose;
pub mod reference_work;
pub mod rules;
pub mod rules_text;
pub mod sd;
pub mod signature;
pub mod superblock;
pub mod swap_place;
pub mod text;
pub mod usb_ids;
