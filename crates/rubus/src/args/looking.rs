//! Arguments of the commands that look at one thing closely.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Json;

/// Show disk usage of files on btrfs, by compression method.
///
/// Reads every extent below the paths, subvolumes included, and opens no file; needs root. A shared
/// extent counts once, and so does a file with several hard links.
#[derive(Debug, ClapArgs)]
pub struct Compression {
    /// Directories or files of one btrfs filesystem
    #[arg(value_name = "PATH", default_value = ".", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Leave out subvolumes below the paths
    #[arg(long, short = 'x')]
    pub one_file_system: bool,
    #[command(flatten)]
    pub json: Json,
}

/// Show what zswap holds, what its counters mean, and whether it helps.
///
/// Without root, shows only public counters: how much is stored and how often, but not why pages
/// were rejected.
#[derive(Debug, ClapArgs)]
pub struct Zswap {
    #[command(flatten)]
    pub json: Json,
}
