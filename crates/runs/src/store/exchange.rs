//! Export and import: one JSON value per line, one line per run, so that histories of several
//! machines can be put together and a backup can be read without this program.
//!
//! A line is `{"rubus_history": 1, "id": …, "label": …, "headline": …, "run": {…}}`; `run` is the
//! record exactly as it is kept. An import also takes the JSON of `rubus bench` and lists of either.
//! A run that is there already is not added again, whatever its number; so importing twice, or after an
//! interruption, is harmless.

use std::cell::Cell;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::history::RunId;
use crate::json_weight::Weighed;
use crate::share::{self, Counts, LEFT_OUT, Record};
use rubus_verdict::verdict::verdict;
use rubus_vocabulary::checked_json::escaped;
use rubus_vocabulary::result::Run;
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior};
use serde_json::{Value, json};

use crate::store::error::StoreError;
use crate::store::history::{History, insert};
use crate::store::known::Known;

/// Version of the form of a line.
const FORM: u64 = 1;
/// How long others may be kept from adding a run of theirs; they wait for longer than that.
const MAX_HELD: Duration = Duration::from_secs(2);

/// A stream with more values that are no runs is no export.
const MAX_LEFT_OUT: usize = 10_000;

/// What an export wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// How many runs.
    pub runs: u64,
    /// What of them others may see; all zero where nothing was left out.
    pub counts: Counts,
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The runs that were added, by their numbers here.
    pub added: Vec<RunId>,
    /// How many were there already.
    pub known: u64,
    /// The values that are no runs, or bad ones: which of the input, from 1, and why. The others were imported.
    pub left_out: Vec<(u64, String)>,
}

/// A run on its way in.
struct Incoming {
    run: Run,
    json: String,
    headline: String,
    label: Option<String>,
}

impl History {
    /// Writes the runs, or all of them in the order of their numbers, one per line. Gives how many.
    /// With `is_shareable` they are [made fit for others](crate::share).
    ///
    /// # Errors
    /// When a run does not exist, the history cannot be read, or the output cannot be written.
    pub fn export(
        &self,
        ids: Option<&[RunId]>,
        is_shareable: bool,
        out: &mut dyn Write,
    ) -> Result<Exported, StoreError> {
        let all;
        let ids = match ids {
            Some(ids) => ids,
            None => {
                all = self.ids().map_err(|error| self.explain(error))?;
                &all
            }
        };
        let mut exported = Exported::default();
        for id in ids {
            let Some(line) = self.export_line(*id).map_err(|error| self.explain(error))? else {
                return Err(self.no_such_run(*id)?);
            };
            let not_written = |reason: String| StoreError::NotWritten { reason };
            let line = if is_shareable {
                let (line, counts) =
                    shareable_line(&line).map_err(|error| not_written(error.to_string()))?;
                exported.counts.add(counts);
                line
            } else {
                line
            };
            out.write_all(escaped(&line).as_bytes())
                .map_err(|error| not_written(error.to_string()))?;
            exported.runs += 1;
        }
        Ok(exported)
    }

    fn ids(&self) -> rusqlite::Result<Vec<RunId>> {
        let mut statement = self.connection.prepare("SELECT id FROM run ORDER BY id")?;
        let ids = statement.query_map([], |row| row.get(0).map(RunId))?;
        ids.collect()
    }

    fn export_line(&self, id: RunId) -> rusqlite::Result<Option<String>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT label, headline, json FROM run JOIN record ON record.run_id = run.id \
             WHERE run.id = ?1",
        )?;
        let row = statement
            .query_row([id.0], |row| {
                let label: Option<String> = row.get(0)?;
                let headline: String = row.get(1)?;
                let record: String = row.get(2)?;
                Ok((label, headline, record))
            })
            .optional()?;
        // The record is put in as it is: what a newer version wrote into it stays there.
        Ok(row.map(|(label, headline, record)| {
            format!(
                "{{\"rubus_history\":{FORM},\"id\":{id},\"label\":{},\"headline\":{},\"run\":{}}}\n",
                json!(label),
                json!(headline),
                record.trim()
            )
        }))
    }

    /// Adds the runs of an export, or of the JSON of a bench, that are not there yet. A value that is no run, or a bad one,
    /// is left out and named.
    ///
    /// # Errors
    /// When the input is no JSON, has no run at all but other things, or the history cannot be written. Runs before the error
    /// may have been added; importing the same again does not make them twice.
    pub fn import(&mut self, input: &mut dyn Read) -> Result<Imported, StoreError> {
        self.import_within(input, MAX_HELD)
    }

    pub(crate) fn import_within(
        &mut self,
        input: &mut dyn Read,
        max_held: Duration,
    ) -> Result<Imported, StoreError> {
        let mut adding = Adding {
            history: self,
            max_held,
            open: None,
            known: Known::default(),
            pending: Imported::default(),
            done: Imported::default(),
        };
        let weight = Cell::new(0);
        let input = Weighed::new(input, &weight);
        let values = serde_json::Deserializer::from_reader(input).into_iter::<Value>();
        let mut left_out: Vec<(u64, String)> = Vec::new();
        let mut is_cut = false;
        for (number, value) in (1_u64..).zip(values) {
            weight.set(0);
            let Ok(value) = value.map_err(|error| left_out.push((number, error.to_string())))
            else {
                is_cut = true;
                break;
            };
            for parsed in incoming(value) {
                match parsed {
                    Ok(run) => adding.take_in(&run)?,
                    Err(reason) => left_out.push((number, reason)),
                }
            }
            if left_out.len() > MAX_LEFT_OUT {
                is_cut = true;
                break;
            }
        }
        adding.commit()?;
        let mut done = adding.done;
        let has_runs = done.known > 0 || !done.added.is_empty();
        match left_out.last() {
            Some((number, reason)) if is_cut || !has_runs => Err(StoreError::NotAnExport {
                number: *number,
                reason: reason.clone(),
                added: done.added.len() as u64,
            }),
            _ => {
                done.left_out = left_out;
                Ok(done)
            }
        }
    }
}

/// The line with a record, and a headline made of it, that others may see. The label stays: it was written for others.
fn shareable_line(line: &str) -> serde_json::Result<(String, Counts)> {
    let mut value: Value = serde_json::from_str(line)?;
    let counts = share::share(&mut value["run"], Record::Run);
    let run = Run::of_json(value["run"].clone());
    let headline = run.map_or_else(|_| LEFT_OUT.to_string(), |run| verdict(&run).headline);
    let line = json!({
        "rubus_history": FORM,
        "id": value["id"],
        "label": value["label"],
        "headline": headline,
        "run": value["run"],
    });
    Ok((format!("{line}\n"), counts))
}

/// Runs on their way in: many in one transaction, since each costs a flush of the disk.
struct Adding<'h> {
    history: &'h History,
    max_held: Duration,
    open: Option<(Transaction<'h>, Instant)>,
    known: Known,
    /// What the open transaction did.
    pending: Imported,
    /// What is on the disk.
    done: Imported,
}

impl Adding<'_> {
    fn take_in(&mut self, one: &Incoming) -> Result<(), StoreError> {
        if self.open.is_none() {
            let begun = Transaction::new_unchecked(
                &self.history.connection,
                TransactionBehavior::Immediate,
            );
            let begun = begun.map_err(|error| self.history.explain(error))?;
            self.known.begin(&begun).map_err(|error| self.history.explain(error))?;
            self.open = Some((begun, Instant::now()));
        }
        let Some((transaction, begun)) = &self.open else {
            return Ok(());
        };
        let added = add_one(transaction, &mut self.known, one);
        match added.map_err(|error| self.history.explain(error))? {
            Some(id) => self.pending.added.push(id),
            None => self.pending.known += 1,
        }
        if begun.elapsed() >= self.max_held { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let pending = std::mem::take(&mut self.pending);
        if let Some((transaction, _)) = self.open.take() {
            let committed = transaction.commit();
            committed.map_err(|error| self.history.explain(error))?;
        }
        self.done.added.extend(pending.added);
        self.done.known += pending.known;
        Ok(())
    }
}

/// Nothing where it is there already.
fn add_one(
    transaction: &Transaction<'_>,
    known: &mut Known,
    one: &Incoming,
) -> rusqlite::Result<Option<RunId>> {
    if !known.is_new(transaction, &one.run)? {
        return Ok(None);
    }
    let label = one.label.as_deref();
    insert(transaction, &one.run, &one.headline, label, &one.json).map(Some)
}

/// The runs in one value of the input.
fn incoming(value: Value) -> Vec<Result<Incoming, String>> {
    match value {
        Value::Array(list) => list.into_iter().map(one).collect(),
        value => vec![one(value)],
    }
}

fn one(mut value: Value) -> Result<Incoming, String> {
    let text = |value: &Value, key: &str| value[key].as_str().map(str::to_string);
    let (mut record, headline, label) = match value.get("rubus_history").map(Value::as_u64) {
        Some(Some(form)) if form <= FORM => {
            let (headline, label) = (text(&value, "headline"), text(&value, "label"));
            (value["run"].take(), headline, label)
        }
        Some(_) => return Err("it was exported by a newer rubus; import it with that".into()),
        None => (value, None, None),
    };
    if let Value::Object(fields) = &mut record {
        // What the JSON of a bench has beside the run.
        fields.remove("verdict");
    }
    let json = record.to_string();
    let run = Run::of_json(record)?;
    let headline = headline.unwrap_or_else(|| verdict(&run).headline);
    Ok(Incoming { run, json, headline, label })
}
