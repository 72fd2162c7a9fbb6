//! Settings of the kernel, changed for a while.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

use super::mark;

/// Where it is kept how they were before, for the case that this process is killed. Only root writes there, and a restart, which
/// loses the settings too, empties it.
const RECORDS: &str = "/run";
const SUFFIX: &str = ".settings";

/// Settings of the kernel, as they were before when this is dropped.
#[derive(Debug)]
pub struct Settings {
    record: PathBuf,
    before: Vec<(PathBuf, String)>,
}

impl Settings {
    /// Writes these values to these files.
    ///
    /// # Errors
    /// When one of them cannot be read or written, or how they were cannot be kept.
    pub fn set(wanted: &[(PathBuf, &str)]) -> Result<Settings> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{number:04}{SUFFIX}", mark::prefix());
        let mut settings = Settings { record: Path::new(RECORDS).join(name), before: Vec::new() };
        let mut record = String::new();
        for (path, _) in wanted {
            let before = std::fs::read_to_string(path)
                .with_context(|| format!("could not read {}", path.display()))?;
            let _ = writeln!(record, "{}\t{}", path.display(), before.trim());
            settings.before.push((path.clone(), before));
        }
        std::fs::write(&settings.record, record)
            .with_context(|| format!("could not write {}", settings.record.display()))?;
        for (path, value) in wanted {
            std::fs::write(path, value)
                .with_context(|| format!("could not write {}", path.display()))?;
        }
        Ok(settings)
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        for (path, before) in &self.before {
            let _ = std::fs::write(path, before.trim());
        }
        let _ = std::fs::remove_file(&self.record);
    }
}

/// Gives settings that killed processes have left their old values; gives a line for each.
pub(super) fn restore_left() -> Vec<String> {
    let entries = std::fs::read_dir(RECORDS).into_iter().flatten().flatten();
    let is_left = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.ends_with(SUFFIX) && mark::is_left(name))
    };
    let mut records: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_left).collect();
    // The last one that was changed comes first.
    records.sort_by(|a, b| b.cmp(a));
    let mut told = Vec::new();
    for record in records {
        let text = std::fs::read_to_string(&record).unwrap_or_default();
        for (path, value) in text.lines().filter_map(|line| line.split_once('\t')) {
            match std::fs::write(path, value) {
                Ok(()) => told.push(format!("{path} is {value} again")),
                Err(error) => told.push(format!("could not set {path} to {value}: {error}")),
            }
        }
        let _ = std::fs::remove_file(record);
    }
    told
}
