//! Arguments of `rubus copy`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::Json;

/// Copy a directory tree faithfully.
///
/// Keeps owners, modes, times to the nanosecond, access control lists, extended attributes,
/// capabilities, hard links, holes, devices, pipes, sockets and flags. Does not enter other
/// filesystems mounted in FROM. TO must not exist or be empty. The same command resumes an
/// interrupted copy. TO/.rubus-copy records what was copied, until --last.
#[derive(Debug, ClapArgs)]
pub struct Copy {
    /// The directory to copy
    #[arg(value_name = "FROM", value_hint = clap::ValueHint::DirPath)]
    pub from: PathBuf,
    /// Where to; must not exist, be empty, or hold a copy of FROM
    #[arg(value_name = "TO", value_hint = clap::ValueHint::DirPath)]
    pub to: PathBuf,
    /// Leave out a path; / is FROM, and * matches any characters of one name: /swapfile, /tmp/*
    /// (keeps the empty directory) (repeatable)
    #[arg(long, value_name = "PATH")]
    pub exclude: Vec<OsString>,
    /// Leave out what a copy of a running system must not contain: the contents of /proc, /sys,
    /// /dev, /run, /tmp, /mnt and /media, and /lost+found
    #[arg(long)]
    pub system: bool,
    /// Update a finished copy: copy what changed since, remove from TO what is gone from FROM
    #[arg(long)]
    pub again: bool,
    /// This is the last pass: remove TO/.rubus-copy at the end
    #[arg(long)]
    pub last: bool,
    /// Compare FROM and TO afterwards: nothing, all entries with a sample of 256 MiB of contents,
    /// or everything
    #[arg(long, value_name = "HOW MUCH", default_value = "none")]
    pub verify: HowMuch,
    /// Number of copying threads [default: what suits the disk of FROM]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub workers: Option<u8>,
    /// Read small files one by one through the filesystem, not in batches from the ext4 disk:
    /// slower, same result
    #[arg(long)]
    pub by_file: bool,
    #[command(flatten)]
    pub json: Json,
}

/// How much to compare after a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HowMuch {
    /// Nothing, not even names
    None,
    /// Everything about every entry, and 256 MiB of randomly chosen contents
    Sample,
    /// Everything
    All,
}
