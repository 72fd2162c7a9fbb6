//! What the program does with network disks, and the verbs for it.
//!
//! [`attach`] makes an export a block device of the kernel. [`serving`] serves images, devices and clones. [`copy`] copies
//! from one disk to another, [`copying`] does so for what a user typed. [`info`] tells what a server offers. [`target`]
//! is an export that the engine measures, and what its server spends meanwhile. [`cli`] has the verbs. The protocol with
//! its client and its server is `rubus_nbd`.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod attach;
pub mod cli;
pub mod clones_text;
pub mod copy;
pub mod copying;
pub mod disk_copy;
pub mod documents;
pub mod guard;
pub mod images;
pub mod info;
pub mod serving;
pub mod target;
pub mod text;
