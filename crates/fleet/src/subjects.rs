//! From what the user typed to something that can be compared: a run in the history, a JSON file of
//! ours or of fio, a captured machine, a fleet.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use rubus_command::messages::write_few;
use rubus_command::{file_text, message, places};
use rubus_draw::text::clean;
use rubus_host::capture::Captured;
use rubus_host::files::document::{self, MAX_RESULT_BYTES};
use rubus_runs::compare::{Subject, fio};
use rubus_runs::history::RunId;
use rubus_runs::json_text::{self, Documents, TextError};
use rubus_runs::named::{is_place, labelled, open_history, run_id};
use rubus_runs::store::History;
use rubus_vocabulary::checked_json;
use rubus_vocabulary::machine::{Machine, Origin};
use rubus_vocabulary::result::Run;
use serde_json::Value;

use crate::compare::{BoardRuns, Document};

/// What a name stands for, with the run behind it where there is one.
pub struct Found {
    /// For the comparison.
    pub subject: Subject,
    /// The run, of ours.
    pub run: Option<Run>,
}

/// What can be compared with others of its kind.
pub enum Thing {
    /// A run, a result of fio, or a machine.
    Single(Box<Found>),
    /// A fleet with its name.
    Fleet(String, Document),
}

/// Finds out what a name stands for; a file with several runs gives several.
///
/// # Errors
/// When it is nothing of the kind, or a fleet; the text says what was tried and what it is instead.
pub fn resolve(name: &str) -> anyhow::Result<Vec<Found>> {
    things(name)?.into_iter().map(single).collect()
}

fn single(thing: Thing) -> anyhow::Result<Found> {
    match thing {
        Thing::Single(found) => Ok(*found),
        Thing::Fleet(name, _) => bail!(
            "{name} is the document of a fleet, not a single run; `rubus compare` compares two such \
             documents\nTake the run of one board out of it: \
             jq '.boards[] | select(.name == \"BOARD\") | .runs[0]' FILE"
        ),
    }
}

/// Finds out what a name stands for, also where it is a fleet.
///
/// # Errors
/// When it is nothing of the kind; the text says what was tried and what it is instead.
pub fn things(name: &str) -> anyhow::Result<Vec<Thing>> {
    if is_place(name) {
        let history = open_history()?;
        let found = of_history(&history, run_id(&history, name)?)?;
        return Ok(vec![Thing::Single(Box::new(found))]);
    }
    if name == "-" {
        let bytes = document::standard_input(MAX_RESULT_BYTES);
        let bytes = bytes.context("cannot read standard input")?;
        return match file_text::of_bytes("standard input", bytes)? {
            Some(text) => of_json("standard input", &text),
            None => {
                bail!("standard input is no text, so it is no run of rubus and no result of fio")
            }
        };
    }
    let path = Path::new(name);
    if path.exists() {
        return of_path(name, path);
    }
    if places::history()?.exists() {
        let history = open_history()?;
        if let Some(id) = labelled(&history, name)? {
            let found = of_history(&history, id)?;
            return Ok(vec![Thing::Single(Box::new(found))]);
        }
    }
    bail!(
        "'{name}' is neither a run in the history nor a file; give a run's number or label, 'last', \
         'last~1', a JSON file of rubus or fio, or a capture"
    )
}

/// A run is called by its number, and by its label if it has one.
fn of_history(history: &History, id: RunId) -> anyhow::Result<Found> {
    let stored = history.get(id)?;
    let name = match stored.summary.label {
        Some(label) => format!("{label} (run {id})"),
        None => format!("run {id}"),
    };
    Ok(of_run(name, stored.run))
}

fn of_run(name: String, run: Run) -> Found {
    Found { subject: Subject::of_run(&name, &run), run: Some(run) }
}

fn of_path(name: &str, path: &Path) -> anyhow::Result<Vec<Thing>> {
    if path.is_dir() {
        return of_capture(name, path);
    }
    let bytes = document::bytes(path, MAX_RESULT_BYTES)
        .with_context(|| format!("cannot read {}", path.display()))?;
    match file_text::of_bytes(name, bytes)?.as_deref() {
        Some(text) if text.contains(['{', '[']) || fio::is_other_output(text) => {
            of_json(name, text)
        }
        Some("") => {
            bail!("{name} is empty; a run's JSON comes from `rubus bench TARGET --json FILE`")
        }
        // What was read of a pipe is gone.
        Some(_) | None if !path.is_file() => bail!(
            "{name} is neither the JSON of rubus nor that of fio\nA captured machine has to be a file or a directory."
        ),
        Some(_) | None => of_capture(name, path),
    }
}

fn of_capture(name: &str, path: &Path) -> anyhow::Result<Vec<Thing>> {
    let captured = Captured::open(path).with_context(|| {
        format!("{name} is neither the JSON of rubus or fio nor a captured machine")
    })?;
    let origin = Origin::Capture {
        path: captured.path().display().to_string(),
        label: captured.label().to_string(),
    };
    let machine = rubus_machine::probe::survey(&captured, captured.recorded_at(), origin);
    Ok(vec![Thing::Single(Box::new(Found {
        subject: Subject::of_machine(name, &machine),
        run: None,
    }))])
}

/// The runs of ours in a text of JSON, with their labels; whatever else is in it is left out.
///
/// # Errors
/// When it is no JSON, or something in it that should be a run does not read as one.
pub fn runs_of_json(name: &str, text: &str) -> anyhow::Result<Vec<(Option<String>, Run)>> {
    let mut runs = Vec::new();
    let values = values_of(name, text)?;
    let is_only = values.len() == 1;
    let mut left_out = Vec::new();
    for (at, value) in values.into_iter().enumerate() {
        let label = value.get("label").and_then(Value::as_str);
        let label = label.map(str::to_string);
        let of_one = if is_only { name.to_string() } else { format!("{name}#{}", at + 1) };
        match of_value(of_one, value).and_then(single) {
            Ok(found) => runs.extend(found.run.map(|run| (label, run))),
            Err(error) if is_only => return Err(error),
            Err(error) => {
                left_out.push(format!("rubus: left out: {}", clean(&format!("{error:#}"))));
            }
        }
    }
    write_few(&left_out, " values of that file");
    Ok(runs)
}

/// The documents in a text of JSON, whatever else is around them.
fn values_of(name: &str, text: &str) -> anyhow::Result<Vec<Value>> {
    let not_json = |error: TextError| match error {
        TextError::Malformed(error) => anyhow::Error::new(error)
            .context(format!("{name} is not JSON, so it is no run of rubus and no result of fio")),
        TextError::TooHeavy(why) => anyhow!("cannot read {name}: {why}"),
    };
    let Documents { whole: values, cut_off } = json_text::documents(text).map_err(not_json)?;
    match cut_off {
        None => {}
        // fio prints the statuses of a run one after the other, and may be stopped within one.
        Some(error) if !values.is_empty() && values.iter().all(fio::is_fio) => message!(
            "rubus: left out: the last result of {}, which is cut off ({error}); the whole one before it counts",
            clean(name)
        ),
        Some(error) => {
            let cut = format!(
                "{name} is not JSON: it ends within a document, as one that is cut off or still being written"
            );
            return Err(anyhow::Error::new(error).context(cut));
        }
    }
    if values.is_empty() && fio::is_other_output(text) {
        bail!(
            "{name} is fio's output for people or for awk, which cannot be read back\n\
             Let fio write JSON: fio --output-format=json --output=FILE JOBFILE"
        );
    }
    Ok(without_interim(values))
}

/// The documents without fio's results of a run whose later result is there, too.
fn without_interim(values: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::with_capacity(values.len());
    for value in values {
        kept.pop_if(|before| fio::is_interim(before, &value));
        kept.push(value);
    }
    kept
}

/// All runs or fleets in a text of JSON.
fn of_json(name: &str, text: &str) -> anyhow::Result<Vec<Thing>> {
    let values = values_of(name, text)?;
    let many = values.len() > 1;
    let mut found = Vec::new();
    for (i, value) in values.into_iter().enumerate() {
        let name = if many { format!("{name}#{}", i + 1) } else { name.to_string() };
        found.push(of_value(name, value)?);
    }
    match (found.is_empty(), text.trim_start().starts_with('[')) {
        (false, _) => {}
        (true, true) => bail!("{name} holds an empty list: there is nothing to compare"),
        (true, false) => {
            bail!("{name} is not JSON, so it is no run of rubus and no result of fio")
        }
    }
    Ok(found)
}

fn of_value(name: String, value: Value) -> anyhow::Result<Thing> {
    let has = |key: &str| value.get(key).is_some();
    if has("boards") && has("differences") {
        let fleet = fleet_without_bad_boards(&name, value)?;
        return Ok(Thing::Fleet(name, fleet));
    }
    Ok(Thing::Single(Box::new(of_single(name, value)?)))
}

/// A fleet of the boards that read as such; the others are named and left out.
fn fleet_without_bad_boards(name: &str, mut value: Value) -> anyhow::Result<Document> {
    if let Some(boards) = value["boards"].as_array_mut() {
        let all = std::mem::take(boards);
        for board in all {
            match checked_json::from_value::<BoardRuns>(board.clone()) {
                Ok(_) => boards.push(board),
                Err(why) => {
                    let of_board = board["name"].as_str().unwrap_or("without a name");
                    message!("rubus: left out: {name}, board {}: {}", clean(of_board), clean(&why));
                }
            }
        }
        if boards.is_empty() {
            bail!(
                "{name} looks like a fleet, but does not read as one: no board of it can be read"
            );
        }
    }
    checked_json::from_value(value)
        .map_err(|why| anyhow!("{name} looks like a fleet, but does not read as one: {why}"))
}

fn of_single(name: String, value: Value) -> anyhow::Result<Found> {
    let mut value = without_wrapping(value);
    let has = |key: &str| value.get(key).is_some();
    if has("rubus_history") && has("run") {
        value = value["run"].take();
    } else if fio::is_fio(&value) {
        let subject = fio::subject(&name, &value).map_err(|error| anyhow!("{name}: {error}"))?;
        return Ok(Found { subject, run: None });
    } else if has("schema") && has("board") {
        let machine: Machine = checked_json::from_value(value).map_err(|why| {
            anyhow!("{name} looks like a survey, but does not read as one: {why}")
        })?;
        return Ok(Found { subject: Subject::of_machine(&name, &machine), run: None });
    } else if (has("subjects") || has("fleets")) && has("rows") {
        bail!("{name} is already a comparison; give the runs that it was made of");
    } else if !has("rubus_version") && !value["results"].is_array() {
        bail!("{name} is JSON, but neither a run of rubus nor fio's: {}", keys(&value));
    }
    let run = Run::of_json(value).map_err(|why| {
        anyhow!("{name} looks like a run of rubus, but does not read as one: {why}")
    })?;
    Ok(of_run(name, run))
}

/// A result of fio that is one field of an object, as programs that run fio keep it; else what is given.
fn without_wrapping(mut value: Value) -> Value {
    let result = {
        let fields = value.as_object_mut().into_iter().flat_map(|fields| fields.values_mut());
        let mut results = fields.filter(|field| fio::is_fio(field));
        let only = results.next().filter(|_| results.next().is_none());
        only.map(Value::take)
    };
    result.unwrap_or(value)
}

/// What the JSON is instead, for an error.
fn keys(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let names: Vec<&str> = fields.keys().take(5).map(String::as_str).collect();
            if names.is_empty() {
                "an empty object".into()
            } else {
                format!("an object with the fields {}", names.join(", "))
            }
        }
        Value::String(_) => "a text".into(),
        Value::Number(_) => "a number".into(),
        Value::Bool(_) | Value::Null | Value::Array(_) => "no object".into(),
    }
}
