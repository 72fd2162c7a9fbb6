//! `rubus history`: earlier runs.

use std::io::{BufReader, BufWriter, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, bail};
use rubus_draw::text::clean;
use rubus_host::files::document;
use rubus_runs::history::{KeyFigures, RunId};
use rubus_runs::store::{Filter, History};
use rubus_verdict::text::checkup::Detail;
use rubus_verdict::verdict::verdict;

use crate::ageing;
use crate::args::{
    General, History as HistoryArgs, HistoryAction, HistoryDelete, HistoryExport, HistoryImport,
    HistoryLabel, HistoryShow,
};
use crate::exit::Exit;
use crate::shown::shown_run;
use crate::subjects::run_id;
use rubus_command::messages::{in_columns, write_few};
use rubus_command::places;
use rubus_command::{Json, Terminal};

/// Lists the runs, or does something with some.
pub fn run(general: &General, history: &HistoryArgs) -> anyhow::Result<Exit> {
    match &history.action {
        None => match &history.run {
            Some(run) => show_one(general, &as_printed(run), history.json.wanted),
            None => list(general, history),
        },
        Some(HistoryAction::Show(show)) => show_one(general, show, history.json.wanted),
        Some(HistoryAction::Label(label)) => label_one(general, label),
        Some(HistoryAction::Delete(delete)) => delete_some(general, delete),
        Some(HistoryAction::Export(export)) => export_some(general, export),
        Some(HistoryAction::Import(import)) => import_all(general, import),
    }
}

/// A run on standard output alone.
fn as_printed(run: &str) -> HistoryShow {
    HistoryShow {
        json: Json::default(),
        run: run.into(),
        html: None,
        csv: None,
        markdown: None,
        with_serials: false,
    }
}

fn list(general: &General, args: &HistoryArgs) -> anyhow::Result<Exit> {
    let filter = Filter {
        suite: args.suite.clone(),
        target: args.target.clone(),
        board: args.board.clone(),
        label: args.label.clone(),
        since: args.since.as_deref().map(since).transpose()?,
    };
    let Some(store) = open_existing()? else {
        if args.json.wanted {
            places::say("[]\n")?;
        } else {
            places::say("no runs yet; `rubus` measures the disk under the current directory\n")?;
        }
        return Ok(Exit::Fine);
    };
    let runs = store.list_of(&filter, args.limit, 0)?;
    if args.json.wanted {
        places::say(&(serde_json::to_string_pretty(&runs)? + "\n"))?;
    } else if runs.is_empty() && filter != Filter::default() {
        let count = store.count()?;
        places::say(&format!("none of the {count} runs is like that\n"))?;
    } else {
        let unsettled: Vec<KeyFigures> =
            runs.iter().map(|line| unsettled(&store, line.id)).collect();
        let style = Terminal::of(general).style();
        places::say(&rubus_runs::text::history::render(&runs, &unsettled, style))?;
        for line in ageing::of_each_disk(&store, &runs)? {
            places::say(&(in_columns(&clean(&line)) + "\n"))?;
        }
    }
    Ok(Exit::Fine)
}

/// The figures of a run that did not settle. A record that cannot be read has none here: it is told where it is asked for.
fn unsettled(store: &History, id: RunId) -> KeyFigures {
    store.get(id).map(|stored| KeyFigures::unsettled(&stored.run)).unwrap_or_default()
}

/// The beginning of a moment in UTC, of a day or of a length of time before now.
fn since(text: &str) -> anyhow::Result<String> {
    let hours = |number: &str, each: i64| Some(number.parse::<u32>().ok()? as i64 * each);
    let back = match text.char_indices().last() {
        Some((at, 'h')) => hours(&text[..at], 1),
        Some((at, 'd')) => hours(&text[..at], 24),
        Some((at, 'w')) => hours(&text[..at], 24 * 7),
        _ => None,
    };
    if let Some(hours) = back {
        let from = jiff::Timestamp::now().checked_sub(jiff::SignedDuration::from_hours(hours));
        let from = from.context("that is further back than the calendar goes")?;
        return Ok(from.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    }
    // Moments are compared as texts, so the beginning of one is enough.
    let form = "0000-00-00T00:00:00";
    let fits = [4, 7, 10, 13, 16, 19].contains(&text.len());
    let digits = text.chars().zip(form.chars()).all(|(c, wanted)| match wanted {
        '0' => c.is_ascii_digit(),
        other => c == other,
    });
    if fits && digits {
        return Ok(text.to_string());
    }
    bail!("'{text}' is no moment; write 2026-11-21, 2026-11, 12h, 7d or 4w")
}

fn show_one(general: &General, show: &HistoryShow, json: bool) -> anyhow::Result<Exit> {
    let store = open_existing()?.context(
        "there is no history yet, so there is no run to show; `rubus` measures the disk under the current directory",
    )?;
    let run = store.get(run_id(&store, &show.run)?)?.run;
    let verdict = verdict(&run);
    if let Some(path) = &show.html {
        let (run, verdict) = shown_run(&run, show.with_serials)?;
        places::write_whole(path, &rubus_page::render(&run, &verdict))?;
    }
    if let Some(path) = &show.csv {
        places::write_whole(path, &rubus_runs::text::run::csv::render(&[&run]))?;
    }
    if let Some(path) = &show.markdown {
        let (run, verdict) = shown_run(&run, show.with_serials)?;
        places::write_whole(path, &rubus_runs::text::run::markdown::render(&run, &verdict))?;
    }
    let printed =
        [&show.csv, &show.markdown].into_iter().flatten().any(|path| path == Path::new("-"));
    if json || show.json.wanted {
        places::say(&(crate::outputs::run_json(&run, &verdict)? + "\n"))?;
    } else if !printed {
        let style = Terminal::of(general).style();
        places::say(&rubus_runs::text::run::render(&run, &verdict, Detail::All, style))?;
    }
    Ok(Exit::Fine)
}

fn label_one(general: &General, label: &HistoryLabel) -> anyhow::Result<Exit> {
    let mut store = open_existing()?.context("there is no history yet, so there is no run")?;
    let id = run_id(&store, &label.run)?;
    store.label(id, label.text.as_deref())?;
    if !general.quiet {
        match &label.text {
            Some(text) => eprintln!("run {id} is now labelled '{text}'"),
            None => eprintln!("run {id} has no label any more"),
        }
    }
    Ok(Exit::Fine)
}

fn delete_some(general: &General, delete: &HistoryDelete) -> anyhow::Result<Exit> {
    let mut store = open_existing()?.context("there is no history yet, so there is no run")?;
    let mut ids: Vec<RunId> = Vec::new();
    for name in &delete.runs {
        let id = run_id(&store, name)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if !delete.yes && !confirmed(&store, &ids)? {
        eprintln!("nothing was deleted");
        return Ok(Exit::AnswerIsNo);
    }
    store.delete(&ids)?;
    for id in &ids {
        remove_page(*id)?;
    }
    if !general.quiet {
        let names: Vec<String> = ids.iter().map(RunId::to_string).collect();
        eprintln!("deleted: run {}", names.join(", "));
    }
    Ok(Exit::Fine)
}

/// Shows what would be deleted and asks for confirmation, which takes a terminal.
fn confirmed(store: &History, ids: &[RunId]) -> anyhow::Result<bool> {
    let mut lines = Vec::new();
    for id in ids {
        lines.push(store.summary(*id)?);
    }
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        bail!("not a terminal, cannot ask for confirmation; use --yes");
    }
    let unsettled: Vec<KeyFigures> = ids.iter().map(|id| unsettled(store, *id)).collect();
    eprint!("{}", rubus_runs::text::history::render(&lines, &unsettled, rubus_draw::Style::PLAIN));
    eprint!("Delete for good? Type yes: ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(answer.trim().eq_ignore_ascii_case("yes"))
}

/// The page of a run in the data directory, if it is still there.
fn remove_page(id: RunId) -> anyhow::Result<()> {
    let page = places::data_directory()?.join(format!("pages/run-{id}.html"));
    match std::fs::remove_file(&page) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", page.display()))
        }
        _ => Ok(()),
    }
}

fn export_some(general: &General, export: &HistoryExport) -> anyhow::Result<Exit> {
    let Some(store) = open_existing()? else {
        bail!("there is no history yet, so there is nothing to export");
    };
    let mut ids = Vec::new();
    for name in &export.runs {
        ids.push(run_id(&store, name)?);
    }
    let chosen = (!ids.is_empty()).then_some(ids.as_slice());
    let mut out = BufWriter::new(std::io::stdout().lock());
    let exported = store.export(chosen, !export.with_serials, &mut out)?;
    out.flush().context("the export cannot be written")?;
    if !general.quiet && !std::io::stdout().is_terminal() {
        eprintln!("exported: {}", runs(exported.runs));
    }
    Ok(Exit::Fine)
}

fn import_all(general: &General, import: &HistoryImport) -> anyhow::Result<Exit> {
    let mut store = History::open(&places::history()?)?;
    let done = if import.file == Path::new("-") {
        store.import(&mut BufReader::new(std::io::stdin().lock()))
    } else {
        let file = document::open(&import.file)
            .with_context(|| format!("cannot read {}", import.file.display()))?;
        store.import(&mut BufReader::new(file))
    };
    let done = done.with_context(|| {
        let is_input = import.file.as_os_str() == "-";
        let file = import.file.display().to_string();
        format!("cannot import {}", if is_input { "standard input" } else { &file })
    })?;
    if !general.quiet {
        let numbers = match (done.added.first(), done.added.last()) {
            (Some(first), Some(last)) if first != last => format!(" as {first} to {last}"),
            (Some(only), _) => format!(" as {only}"),
            _ => String::new(),
        };
        let added = runs(done.added.len() as u64);
        eprintln!("imported: {added}{numbers}; there already: {}", done.known);
    }
    let left_out = done.left_out.iter().map(|(number, reason)| {
        format!("left out value {number} of {}: {}", import.file.display(), clean(reason))
    });
    write_few(&left_out.collect::<Vec<_>>(), " values of it left out");
    Ok(if done.left_out.is_empty() { Exit::Fine } else { Exit::AnswerIsNo })
}

fn runs(count: u64) -> String {
    match count {
        1 => "1 run".into(),
        n => format!("{n} runs"),
    }
}

/// The history, if there is one; looking must not make an empty one.
/// The history, where there is one.
pub fn open_existing() -> anyhow::Result<Option<History>> {
    let path = places::history()?;
    if !path.exists() {
        return Ok(None);
    }
    Ok(Some(History::open(&path)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_lengths_of_time_are_taken_and_nothing_else() {
        for good in ["2026", "2026-11", "2026-11-21", "2026-11-21T10:00"] {
            assert_eq!(since(good).unwrap(), good);
        }
        let week = since("7d").unwrap();
        assert!(week.len() == 20 && week.ends_with('Z') && since("1w").unwrap() <= week);
        assert!(since("3h").unwrap() > week);
        for bad in
            ["", "d", "yesterday", "21.11.2026", "2026-1", "-3d", "99999999999d", "4294967295w"]
        {
            assert!(since(bad).is_err(), "{bad}");
        }
    }
}
