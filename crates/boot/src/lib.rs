//! What decides how a small board starts: the files of its boot partition, its table of mounts, its
//! initial RAM filesystem, and the proof that all of them agree.
//!
//! Each file format is one file here. Texts are kept as they are: an edit changes the words it is about
//! and nothing else, byte for byte, comments and line ends included. Nothing here reads a file.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod autoboot;
pub mod chain;
pub mod cmdline_txt;
pub mod config_txt;
pub mod crypttab;
pub mod eeprom;
pub mod fstab;
pub mod initramfs;
pub mod kernel_file;
pub mod medium;
pub mod model;
pub mod modules;
pub mod mount_options;
pub mod proof;
pub mod revision;
pub mod tryboot;
pub mod volume;
