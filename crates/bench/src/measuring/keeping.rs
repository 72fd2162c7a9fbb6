//! A judged run kept: in the history, and as a page.

use std::path::{Path, PathBuf};

use anyhow::Context;
use rubus_command::{Keeping, places};
use rubus_runs::shown::shown_run;
use rubus_runs::store::History;
use rubus_vocabulary::result::Figures;

use super::Measured;

/// Where a run was kept.
#[derive(Debug, Default)]
pub struct Kept {
    /// Its number in the history.
    pub number: Option<i64>,
    pub page: Option<PathBuf>,
    /// What could not be kept, and why.
    pub troubles: Vec<String>,
}

/// Stores a run in the history and writes its page. A run that cannot be kept is still shown, so
/// troubles are told and not returned as errors.
pub fn keep(measured: &Measured, keeping: &Keeping) -> Kept {
    let mut kept = Kept::default();
    if !keeping.kept.no_history {
        match add_to_history(measured, keeping.kept.label.as_deref()) {
            Ok(number) => kept.number = Some(number),
            Err(error) => kept.troubles.push(format!("this run is not in the history: {error:#}")),
        }
    }
    // The page is about disks.
    let is_of_disk = measured.run.figures == Figures::Disk;
    if !keeping.no_html && is_of_disk {
        match write_page(measured, keeping, kept.number) {
            Ok(path) => kept.page = Some(path),
            Err(error) => kept.troubles.push(format!("no page was written: {error:#}")),
        }
    }
    kept
}

fn add_to_history(measured: &Measured, label: Option<&str>) -> anyhow::Result<i64> {
    let mut history = History::open(&places::history()?)?;
    // A suite with a question of its own is remembered by its answer.
    let found = match &measured.run.figures {
        Figures::Memory(memory) => Some(rubus_memory::text::headline(memory)),
        Figures::Processor(processor) => Some(rubus_processor::text::headline(processor)),
        Figures::Disk => rubus_verdict::text::findings::headline(&measured.run),
    };
    let headline = if rubus_runs::text::run::is_checkup(&measured.run) {
        &measured.verdict.headline
    } else {
        found.as_ref().unwrap_or(&measured.verdict.headline)
    };
    Ok(history.add_labelled(&measured.run, headline, label)?.0)
}

fn write_page(
    measured: &Measured,
    keeping: &Keeping,
    number: Option<i64>,
) -> anyhow::Result<PathBuf> {
    let path = match &keeping.html {
        Some(path) => path.clone(),
        None => default_page(number, &measured.run.started)?,
    };
    let (run, verdict) = shown_run(&measured.run, keeping.with_serials)?;
    let page = rubus_page::render(&run, &verdict);
    places::write_whole(&path, &page)?;
    Ok(std::path::absolute(&path).unwrap_or(path))
}

/// `run-12.html`, or a name from the time for a run that is not in the history.
fn default_page(number: Option<i64>, started: &str) -> anyhow::Result<PathBuf> {
    let directory = places::data_directory()?.join("pages");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let name = match number {
        Some(number) => format!("run-{number}.html"),
        None => format!("run-{}.html", started.replace(':', "")),
    };
    Ok(directory.join(Path::new(&name)))
}
