//! Recording a board: boots it, runs `rubus survey --save` on it, and unpacks what it recorded
//! into a directory that can be committed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::board::Board;
use crate::cache::Cache;
use crate::session::{Options, Session};
use crate::tools;

const LIMIT: Duration = Duration::from_secs(300);

/// Where the capture is made on the board.
const ON_BOARD: &str = "/run/lab/capture";

/// Records `board` with the given `rubus` into `out`, replacing what is there.
///
/// # Errors
/// When the board does not start or the survey fails.
pub fn record(cache: &Cache, board: Board, rubus: &Path, out: &Path) -> Result<()> {
    let options = Options {
        throttle_sd: None,
        push: vec![rubus.to_path_buf()],
    };
    let name = rubus
        .file_name()
        .context("the program has no name")?
        .to_string_lossy();
    let mut session = Session::boot(cache, board, &options)?;
    let said = session.must(&format!("{name} survey --save {ON_BOARD}"), "root", LIMIT)?;
    let fetched = tempfile::tempdir()?;
    session.pull(&[ON_BOARD], fetched.path())?;
    session.switch_off()?;
    let recorded = fetched.path().join(ON_BOARD.trim_start_matches('/'));
    if !recorded.is_dir() {
        bail!("the survey recorded no directory; it said: {said}");
    }
    replace(&recorded, out)
}

fn replace(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("could not replace {to:?}"))?;
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    tools::run(tools::command("cp").arg("-r").arg(from).arg(to))?;
    Ok(())
}
