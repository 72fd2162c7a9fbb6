//! Which measurements the history has, for an import of many.

use std::collections::{HashMap, HashSet};

use rubus_vocabulary::result::Run;
use rusqlite::Transaction;

use crate::history::measurement_key;

/// The measurements of the moments that were asked about. Each moment's records are read once, not once for each run that
/// began in it.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// By the moment in which they began.
    keys: HashMap<String, HashSet<String>>,
    /// What the database counts for changes by other connections; what was read before one may be out of date.
    version: Option<i64>,
    #[cfg(test)]
    pub(super) records_read: usize,
}

impl Known {
    /// Whether a run is new; then it counts as known from here on.
    pub(super) fn is_new(
        &mut self,
        transaction: &Transaction<'_>,
        run: &Run,
    ) -> rusqlite::Result<bool> {
        if !self.keys.contains_key(&run.started) {
            let keys = self.read(transaction, &run.started)?;
            self.keys.insert(run.started.clone(), keys);
        }
        let keys = self.keys.entry(run.started.clone()).or_default();
        Ok(keys.insert(measurement_key(run)))
    }

    /// Forgets everything where another connection has changed the history since.
    pub(super) fn begin(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let version = transaction.query_row("PRAGMA data_version", [], |row| row.get(0))?;
        if self.version.replace(version) != Some(version) {
            self.keys.clear();
        }
        Ok(())
    }

    fn read(
        &mut self,
        transaction: &Transaction<'_>,
        started: &str,
    ) -> rusqlite::Result<HashSet<String>> {
        let mut statement = transaction.prepare_cached(
            "SELECT json FROM run JOIN record ON record.run_id = run.id WHERE started = ?1",
        )?;
        let mut rows = statement.query([started])?;
        let mut keys = HashSet::new();
        while let Some(row) = rows.next()? {
            let record: String = row.get(0)?;
            #[cfg(test)]
            {
                self.records_read += 1;
            }
            // A record that this version cannot read is not one that it has just read.
            keys.extend(Run::of_json_text(&record).ok().map(|run| measurement_key(&run)));
        }
        Ok(keys)
    }
}
