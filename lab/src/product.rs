//! The product's binaries for a board, and what tests say when something is missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use rubus_fixtures::skipped;

use crate::board::Board;
use crate::cache::{Cache, workspace_root};
use crate::session::missing_tools;
use crate::tools;

/// Whether a test can boot a board here. When not, says so as [`skipped`] does.
#[must_use]
pub fn can_boot(test: &str, board: Board) -> bool {
    let absent = missing_tools(&Cache::of_this_machine(), board);
    if absent.is_empty() {
        return true;
    }
    skipped(test, &tools::remedy(&absent));
    false
}

/// The `rubus` that a test pushes into a board. When there is none, says so as [`skipped`] does.
#[must_use]
pub fn rubus_or_skip(test: &str, board: Board) -> Option<PathBuf> {
    match rubus_for(board) {
        Ok(path) => Some(path),
        Err(error) => {
            skipped(test, &format!("{error:#}"));
            None
        }
    }
}

/// A static `rubus` for a board: from the environment (`RUBUS_BIN_AARCH64`, `RUBUS_BIN`), else
/// built here with cargo-zigbuild.
///
/// # Errors
/// When the named file is not there, or cargo-zigbuild is missing or fails.
pub fn rubus_for(board: Board) -> Result<PathBuf> {
    let variable = match board {
        Board::Pi3 => "RUBUS_BIN_AARCH64",
        Board::Pc => "RUBUS_BIN",
    };
    match std::env::var_os(variable) {
        Some(path) => {
            let path = PathBuf::from(path);
            if !path.is_file() {
                bail!("{variable} names {path:?}, which is not a file");
            }
            if path.file_name() != Some("rubus".as_ref()) {
                bail!("{variable} names {path:?}, but commands on the board call it rubus");
            }
            Ok(path)
        }
        None => {
            build(board).with_context(|| format!("no rubus for the board; {variable} can name one"))
        }
    }
}

/// Prefixes of the environment variables that describe a test's own package. Build scripts that look at them (that of
/// `ring` does) would run again, and everything that depends on them would be recompiled, now and in the next build
/// outside of a test.
const OF_THE_TEST: [&str; 4] = ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_CRATE_", "OUT_DIR"];

/// Cargo as it is outside of a test, so that what was compiled there is taken.
#[must_use]
pub fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let shown = name.to_string_lossy();
        if OF_THE_TEST.iter().any(|begin| shown.starts_with(begin)) {
            cargo.env_remove(&name);
        }
    }
    cargo
}

fn build(board: Board) -> Result<PathBuf> {
    if tools::find("cargo-zigbuild").is_none() {
        bail!("cargo-zigbuild is not installed");
    }
    let target = board.rust_target();
    tools::run(
        cargo()
            .args(["zigbuild", "--release", "--locked", "-p", "rubus", "--target", target])
            .current_dir(workspace_root()),
    )?;
    Ok(target_directory().join(target).join("release/rubus"))
}

/// A `rubus` for this machine: a release build made now.
///
/// # Errors
/// When it does not build.
pub fn rubus_here() -> Result<PathBuf> {
    tools::run(
        cargo()
            .args(["build", "--release", "--locked", "-p", "rubus"])
            .current_dir(workspace_root()),
    )?;
    Ok(target_directory().join("release/rubus"))
}

/// An example program of this workspace, built for this machine, which must be of the
/// board's kind.
///
/// # Errors
/// When the processors differ or it does not build.
pub fn example_for(board: Board, example: &str) -> Result<PathBuf> {
    if !board.runs_programs_of_this_machine() {
        bail!("this machine's programs do not run on the {}", board.title());
    }
    tools::run(
        cargo()
            // Built as a part of the workspace: for the package alone, its dependencies would be recompiled with fewer
            // features.
            .args(["build", "--locked", "--workspace", "--example", example])
            .current_dir(workspace_root()),
    )?;
    Ok(target_directory().join("debug/examples").join(example))
}

fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace_root().join("target"), |path| Path::new(&path).to_path_buf())
}
