//! `rubus gallery`: many shared runs in one table.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use rubus_command::messages::write_few;
use rubus_command::{Exit, General, Json, Terminal, message, places};
use rubus_draw::text::clean;
use rubus_host::files::{document, own_files};
use rubus_runs::gallery::entries;
use rubus_runs::shown::shown;
use rubus_vocabulary::result::Run;
use rubus_vocabulary::verb::{PLAIN, Page};

use super::Pages;
use crate::subjects;

/// A file with runs is not larger: one of a checkup has some 50 KiB.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Exit statuses and examples.
pub(super) const PAGE: Page = Page {
    name: "rubus-gallery",
    statuses: PLAIN,
    examples: &[(
        "rubus gallery shared/ --html gallery.html",
        "Compare all shared runs of a directory, on a page too.",
    )],
};

/// Compare many shared runs: boards, cards and disks in one table.
///
/// Reads what `rubus share` and `rubus history export` write, and the JSON of `rubus bench`. The
/// page needs no server software: put it on any web space.
#[derive(Debug, Args)]
pub struct Gallery {
    /// Files, and directories of .json files
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Write a page to a file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub json: Json,
}

/// Reads the runs and shows them.
pub fn run(general: &General, args: &Gallery, pages: &dyn Pages) -> anyhow::Result<Exit> {
    if let Some(path) = &args.html {
        places::must_be_writable(path)?;
    }
    let mut files = Vec::new();
    for path in &args.paths {
        if path.is_dir() {
            files.extend(files_in(path)?);
        } else {
            files.push(path.clone());
        }
    }
    let (mut runs, mut left_out) = (Vec::new(), Vec::new());
    for file in &files {
        match runs_in(file) {
            Ok(found) => runs.extend(found),
            Err(error) => {
                left_out.push(format!("rubus: left out: {}", clean(&format!("{error:#}"))));
            }
        }
    }
    write_few(&left_out, " files: name one to see why");
    let entries = entries(&runs);
    if entries.is_empty() {
        let paths: Vec<String> =
            args.paths.iter().map(|path| clean(&path.display().to_string())).collect();
        bail!("no run of a disk in {}; `rubus share` writes one", paths.join(", "));
    }
    let to_stdout = args.html.as_deref() == Some(Path::new("-"));
    if let Some(path) = &args.html {
        // A page is for others; a file need not come from `rubus share`.
        let shared = runs.iter().map(|(label, run)| Ok((label.clone(), shown(run, false)?)));
        let shared = self::entries(&shared.collect::<anyhow::Result<Vec<_>>>()?);
        let page = pages.of_gallery(&shared);
        places::write_whole(path, &page)?;
        if !general.quiet && !to_stdout {
            message!("page: {}", path.display());
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
    for path in own_files::list(directory).with_context(cannot_read)? {
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
    let text =
        document::text(path, MAX_FILE_BYTES).with_context(|| format!("cannot read {name}"))?;
    subjects::runs_of_json(&name, &text)
}
