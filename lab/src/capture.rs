//! Recording a board: boots it, runs `rubus survey --save` on it, and unpacks what it recorded
//! into a directory that can be committed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

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
    let options = Options { push: vec![rubus.to_path_buf()], ..Options::default() };
    let name = rubus.file_name().context("the program has no name")?.to_string_lossy();
    let mut session = Session::boot(cache, board, &options)?;
    // The slash asks for a directory.
    let said = session.must(&format!("{name} survey --save {ON_BOARD}/"), "root", LIMIT)?;
    let fetched = tempfile::tempdir()?;
    session.pull(&[ON_BOARD], fetched.path())?;
    session.switch_off()?;
    let recorded = fetched.path().join(ON_BOARD.trim_start_matches('/'));
    if !recorded.is_dir() {
        bail!("the survey recorded no directory; it said: {said}");
    }
    label(board, &recorded.join("manifest.json"))?;
    replace(&recorded, out)
}

/// Says in the capture how it came to be.
fn label(board: Board, manifest: &Path) -> Result<()> {
    let text = fs::read_to_string(manifest).with_context(|| format!("no {manifest:?}"))?;
    let value: Value = serde_json::from_str(&text).context("the manifest is not JSON")?;
    let old = value["label"].as_str().context("the manifest has no label")?;
    let version = tools::run(tools::command(board.emulator().program).arg("--version"))?;
    let version = String::from_utf8_lossy(&version);
    let version = version.lines().next().unwrap_or("an unknown emulator");
    let new = format!(
        "{}, really booted with Debian's kernel by the lab ({version}); {old}",
        board.title()
    );
    let quoted = |label: &str| format!("\"label\": {}", Value::from(label));
    if !text.contains(&quoted(old)) {
        bail!("the label is not where it was expected in {manifest:?}");
    }
    fs::write(manifest, text.replacen(&quoted(old), &quoted(&new), 1))
        .with_context(|| format!("could not write {manifest:?}"))
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
