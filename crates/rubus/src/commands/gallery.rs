//! `rubus gallery`: many shared runs in one table.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rubus_runs::gallery::entries;
use rubus_vocabulary::result::Run;

use crate::args::{Gallery, General};
use crate::exit::Exit;
use crate::places;
use crate::subjects;
use crate::world::Terminal;

/// Reads the runs and shows them.
pub fn run(general: &General, args: &Gallery) -> anyhow::Result<Exit> {
    if let Some(path) = &args.html {
        places::must_be_writable(path)?;
    }
    let mut runs = Vec::new();
    for path in &args.paths {
        if path.is_dir() {
            for file in files_in(path)? {
                match runs_in(&file) {
                    Ok(found) => runs.extend(found),
                    Err(error) => eprintln!("rubus: left out: {error:#}"),
                }
            }
        } else {
            runs.extend(runs_in(path)?);
        }
    }
    let entries = entries(&runs);
    if entries.is_empty() {
        bail!("none of these files has a run of a disk; `rubus share` writes one");
    }
    let to_stdout = args.html.as_deref() == Some(Path::new("-"));
    if let Some(path) = &args.html {
        places::write_whole(
            path,
            &rubus_page::gallery::render(&entries, env!("CARGO_PKG_VERSION")),
        )?;
        if !general.quiet && !to_stdout {
            eprintln!("page: {}", path.display());
        }
    }
    if args.json.wanted {
        places::say(&(serde_json::to_string_pretty(&entries)? + "\n"))?;
    } else if !to_stdout {
        let style = Terminal::of(general).style();
        places::say(&rubus_runs::text::gallery::render(&entries, style))?;
    }
    Ok(Exit::Fine)
}

/// The files of a directory whose name ends in `.json` or `.jsonl`, by name.
fn files_in(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot_read = || format!("cannot read {}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(cannot_read)? {
        let path = entry.with_context(cannot_read)?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("json" | "jsonl")) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The runs in a file, with their labels.
fn runs_in(path: &Path) -> anyhow::Result<Vec<(Option<String>, Run)>> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    subjects::runs_of_json(&name, &text)
}
