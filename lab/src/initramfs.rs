//! The initial RAM filesystem in the boot partition: a static busybox, the kernel modules that
//! reach the root filesystem, unpacked and in loading order, and a script. Small and uncompressed,
//! because every step of it costs time on an emulated processor.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::board::Board;
use crate::cpio::Archive;
use crate::tools;
use crate::tree_files;

/// The first program of the initial RAM filesystem.
pub const INIT: &str = include_str!("../board/initramfs-init");

/// Makes the archive from a finished tree.
///
/// # Errors
/// When the tree lacks a module or busybox.
pub fn make(board: Board, tree: &Path) -> Result<Vec<u8>> {
    let mut archive = Archive::new();
    for directory in ["dev", "proc", "sys", "run", "root", "bin"] {
        archive.directory(directory);
    }
    archive.file("init", 0o755, INIT.as_bytes());
    let busybox = tree.join("usr/bin/busybox");
    let program = fs::read(&busybox).with_context(|| format!("could not read {busybox:?}"))?;
    archive.file("bin/busybox", 0o755, &program);
    for (number, module) in modules(board, tree)?.iter().enumerate() {
        let name = module.file_stem().unwrap_or_default().to_string_lossy();
        let content = tools::run(tools::command("xz").arg("-dc").arg(module))?;
        archive.file(&format!("modules/{number:02}-{name}"), 0o644, &content);
    }
    Ok(archive.finish())
}

/// The board's boot modules and all they need, each after what it needs.
fn modules(board: Board, tree: &Path) -> Result<Vec<PathBuf>> {
    let release = tree_files::kernel_release(tree)?;
    let mut found: Vec<PathBuf> = Vec::new();
    for name in board.boot_modules() {
        let listing = tools::run(tools::command("modprobe").arg("-d").arg(tree).args([
            "-S",
            &release,
            "--show-depends",
            name,
        ]))?;
        for path in insmod_lines(&String::from_utf8_lossy(&listing)) {
            if path.extension().is_none_or(|extension| extension != "xz") {
                bail!("{path:?} is not compressed with xz, as Debian's modules are");
            }
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// The paths in the output of `modprobe --show-depends`; built-in modules have none.
fn insmod_lines(listing: &str) -> impl Iterator<Item = PathBuf> {
    listing
        .lines()
        .filter_map(|line| line.strip_prefix("insmod "))
        .map(|rest| PathBuf::from(rest.split(' ').next().unwrap_or(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_modules_and_options_are_passed_over() {
        let listing = "builtin mmc_core\ninsmod /lib/a.ko.xz \ninsmod /lib/b.ko.xz debug=1\n";
        let paths: Vec<_> = insmod_lines(listing).collect();
        assert_eq!(paths, [Path::new("/lib/a.ko.xz"), Path::new("/lib/b.ko.xz")]);
    }
}
