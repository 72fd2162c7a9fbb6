//! Arguments of `rubus copy`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::Json;

/// Copy a directory with everything in it, faithfully.
///
/// Owners, modes, times to the nanosecond, access control lists, extended
/// attributes, capabilities, hard links, holes, devices, pipes, sockets and
/// flags are kept; other filesystems mounted in FROM are not entered. TO must
/// not exist or be empty. An interrupted copy is gone on with by the same
/// command. What was copied is noted in TO/.rubus-copy until --last.
///
/// Exit status: 0 complete; 1 something was lost, changed meanwhile or differs;
/// 2 it could not be done.
#[derive(Debug, ClapArgs)]
pub struct Copy {
    /// The directory to copy
    #[arg(value_name = "FROM", value_hint = clap::ValueHint::DirPath)]
    pub from: PathBuf,
    /// Where to; must not exist, be empty, or hold a copy of FROM
    #[arg(value_name = "TO", value_hint = clap::ValueHint::DirPath)]
    pub to: PathBuf,
    /// Leave out a path; / is FROM, and * stands for any characters of one
    /// name: /swapfile, /tmp/* (keeps the empty directory). More than once
    #[arg(long, value_name = "PATH")]
    pub exclude: Vec<OsString>,
    /// Leave out what a running system must not take along: what is in /proc,
    /// /sys, /dev, /run, /tmp, /mnt, /media, and /lost+found
    #[arg(long)]
    pub system: bool,
    /// Bring a finished copy up to date: copy what was touched since, remove
    /// from TO what vanished from FROM
    #[arg(long)]
    pub again: bool,
    /// No pass will follow: remove the notes in TO/.rubus-copy at the end
    #[arg(long)]
    pub last: bool,
    /// Compare FROM and TO afterwards: all entries, and of the contents
    /// nothing, a sample of 256 MiB, or all
    #[arg(long, value_name = "HOW MUCH", default_value = "none")]
    pub verify: HowMuch,
    /// Threads that copy [default: what suits the disk of FROM]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub workers: Option<u8>,
    /// Read small files each through the filesystem, and not several at once
    /// from an ext4 disk; slower, otherwise the same
    #[arg(long)]
    pub by_file: bool,
    #[command(flatten)]
    pub json: Json,
}

/// How much is compared after a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HowMuch {
    /// Nothing, not even names
    None,
    /// Everything about every entry, and 256 MiB of contents chosen by chance
    Sample,
    /// Everything
    All,
}
