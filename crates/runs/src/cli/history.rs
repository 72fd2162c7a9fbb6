//! `rubus history`: earlier runs.

use std::io::{BufReader, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand};
use rubus_command::messages::{in_columns, write_few};
use rubus_command::values::label;
use rubus_command::{Exit, General, Json, Terminal, message, places, prompt};
use rubus_draw::text::clean;
use rubus_host::files::{document, kept_file};
use rubus_verdict::text::checkup::Detail;
use rubus_verdict::verdict::verdict;
use rubus_vocabulary::spelling::nearest;
use rubus_vocabulary::verb::{MISTAKE, PLAIN, Page};

use super::Outside;
use crate::aged_disks;
use crate::history::{KeyFigures, RunId};
use crate::named::{open_existing, run_id};
use crate::run_document::run_json;
use crate::shown::shown_run;
use crate::store::{Filter, History};

/// Exit statuses and examples.
pub(super) const PAGE: Page = Page {
    name: "rubus-history",
    statuses: PLAIN,
    examples: &[
        ("rubus history", "List the latest runs."),
        (
            "rubus history --target /mnt/ssd --since 7d",
            "List the runs of one disk in the last seven days.",
        ),
    ],
};
pub(super) const SHOW_PAGE: Page = Page {
    name: "rubus-history-show",
    statuses: PLAIN,
    examples: &[(
        "rubus history show 12 --html run12.html",
        "Show run 12 again, and write its page.",
    )],
};
pub(super) const LABEL_PAGE: Page = Page {
    name: "rubus-history-label",
    statuses: PLAIN,
    examples: &[(
        "rubus history label last new-ssd",
        "Give the last run a name that other commands take.",
    )],
};
pub(super) const DELETE_PAGE: Page = Page {
    name: "rubus-history-delete",
    statuses: &[(0, "deleted"), (1, "you did not agree, and nothing was deleted"), MISTAKE],
    examples: &[("rubus history delete 3 4", "Delete two runs, after a question.")],
};
pub(super) const EXPORT_PAGE: Page = Page {
    name: "rubus-history-export",
    statuses: PLAIN,
    examples: &[("rubus history export --with-serials > backup.jsonl", "Back up all runs.")],
};
pub(super) const IMPORT_PAGE: Page = Page {
    name: "rubus-history-import",
    statuses: &[(0, "imported"), (1, "a bad run was left out, the others imported"), MISTAKE],
    examples: &[("rubus history import backup.jsonl", "Restore a backup.")],
};

/// Show, label, delete, export or import earlier runs.
///
/// Without a run or a subcommand, lists the runs, newest first. A run is named by its number, its
/// label, or as last, last~1 and so on.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct HistoryArgs {
    #[command(flatten)]
    pub json: Json,
    #[command(subcommand)]
    pub action: Option<HistoryAction>,
    /// Show this run again, as `show` does: its number, its label, last, last~1
    #[arg(value_name = "RUN",
        conflicts_with_all = ["limit", "suite", "target", "board", "label", "since"])]
    pub run: Option<String>,
    /// How many runs to list
    #[arg(long, short = 'n', default_value_t = 20, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Only runs of this suite
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Only runs with this in the path, the device's name or its model
    #[arg(long, value_name = "TEXT")]
    pub target: Option<String>,
    /// Only runs on boards with this in their model
    #[arg(long, value_name = "TEXT")]
    pub board: Option<String>,
    /// Only runs with this label
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// Only runs since this day (2026-11-21, UTC), or of the last 12h, 7d, 4w
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum HistoryAction {
    Show(HistoryShow),
    Label(HistoryLabel),
    Delete(HistoryDelete),
    Export(HistoryExport),
    Import(HistoryImport),
}

/// Show one run again, as it was printed.
#[derive(Debug, Args)]
pub struct HistoryShow {
    #[command(flatten)]
    pub json: Json,
    /// The run: its number, its label, last, last~1
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    /// Also write its page to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write it as CSV to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write it as markdown to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Keep serial numbers, addresses, and names of users and servers in the page and the markdown
    #[arg(long)]
    pub with_serials: bool,
}

/// Label a run, or remove its label.
#[derive(Debug, Args)]
pub struct HistoryLabel {
    /// The run: its number, its label, last, last~1
    #[arg(value_name = "RUN")]
    pub run: String,
    /// The label
    #[arg(value_name = "TEXT", value_parser = label, required_unless_present = "remove")]
    pub text: Option<String>,
    /// Remove the label
    #[arg(long, conflicts_with = "text")]
    pub remove: bool,
}

/// Delete runs permanently.
///
/// Deletes their pages too. Their numbers are not reused.
#[derive(Debug, Args)]
pub struct HistoryDelete {
    /// The runs: numbers, labels, last, last~1
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
}

/// Write runs as lines of JSON to standard output.
///
/// Only what a rule lets through is written, as with `rubus share`: serial numbers, addresses, names of
/// users and servers are left out. For a backup, keep them with --with-serials.
#[derive(Debug, Args)]
pub struct HistoryExport {
    /// The runs [default: all]
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// Keep serial numbers, addresses, and names of users and servers
    #[arg(long)]
    pub with_serials: bool,
}

/// Add runs from an export or from the JSON of a bench.
///
/// Skips runs that are already in the history. Imported runs get new numbers.
#[derive(Debug, Args)]
pub struct HistoryImport {
    /// The file; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Lists the runs, or does something with some.
pub fn run(
    general: &General,
    history: &HistoryArgs,
    outside: &dyn Outside,
) -> anyhow::Result<Exit> {
    match &history.action {
        None => match &history.run {
            Some(run) => show_one(general, &as_printed(run), history.json.wanted, outside)
                .map_err(|error| with_what_was_meant(run, error)),
            None => list(general, history),
        },
        Some(HistoryAction::Show(show)) => show_one(general, show, history.json.wanted, outside),
        Some(HistoryAction::Label(label)) => label_one(general, label),
        Some(HistoryAction::Delete(delete)) => delete_some(general, delete),
        Some(HistoryAction::Export(export)) => export_some(general, export),
        Some(HistoryAction::Import(import)) => import_all(general, import),
    }
}

/// A name of no run may be a subcommand that was misspelt.
fn with_what_was_meant(typed: &str, error: anyhow::Error) -> anyhow::Error {
    const SUBCOMMANDS: [&str; 5] = ["show", "label", "delete", "export", "import"];
    match nearest(typed, &SUBCOMMANDS) {
        Some(meant) => anyhow!("{error:#}\nFor the subcommand: rubus history {meant}"),
        None => error,
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
        places::say(&crate::text::history::render(&runs, &unsettled, style))?;
        for line in aged_disks::of_each_disk(&store, &runs)? {
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

fn show_one(
    general: &General,
    show: &HistoryShow,
    json: bool,
    outside: &dyn Outside,
) -> anyhow::Result<Exit> {
    let store = open_existing()?.context(
        "there is no history yet, so there is no run to show; `rubus` measures the disk under the current directory",
    )?;
    let run = store.get(run_id(&store, &show.run)?)?.run;
    let verdict = verdict(&run);
    if let Some(path) = &show.html {
        let (run, verdict) = shown_run(&run, show.with_serials)?;
        places::write_whole(path, &outside.page(&run, &verdict))?;
    }
    if let Some(path) = &show.csv {
        places::write_whole(path, &crate::text::run::csv::render(&[&run]))?;
    }
    if let Some(path) = &show.markdown {
        let (run, verdict) = shown_run(&run, show.with_serials)?;
        places::write_whole(path, &crate::text::run::markdown::render(&run, &verdict))?;
    }
    let printed =
        [&show.csv, &show.markdown].into_iter().flatten().any(|path| path == Path::new("-"));
    if json || show.json.wanted {
        places::say(&(run_json(&run, &verdict)? + "\n"))?;
    } else if !printed {
        let style = Terminal::of(general).style();
        places::say(&crate::text::run::render(&run, &verdict, Detail::All, style))?;
    }
    Ok(Exit::Fine)
}

fn label_one(general: &General, label: &HistoryLabel) -> anyhow::Result<Exit> {
    let mut store = open_existing()?.context("there is no history yet, so there is no run")?;
    let id = run_id(&store, &label.run)?;
    store.label(id, label.text.as_deref())?;
    if !general.quiet {
        match &label.text {
            Some(text) => message!("run {id} is now labelled '{text}'"),
            None => message!("run {id} has no label any more"),
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
        message!("nothing was deleted");
        return Ok(Exit::AnswerIsNo);
    }
    store.delete(&ids)?;
    for id in &ids {
        remove_page(*id)?;
    }
    if !general.quiet {
        let names: Vec<String> = ids.iter().map(RunId::to_string).collect();
        message!("deleted: run {}", names.join(", "));
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
    prompt!("{}", crate::text::history::render(&lines, &unsettled, rubus_draw::Style::PLAIN));
    prompt!("Delete for good? Type yes: ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(answer.trim().eq_ignore_ascii_case("yes"))
}

/// The page of a run in the data directory, if it is still there.
fn remove_page(id: RunId) -> anyhow::Result<()> {
    let page = places::data_directory()?.join(format!("pages/run-{id}.html"));
    kept_file::remove(&page).with_context(|| format!("cannot remove {}", page.display()))
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
        message!("exported: {}", runs(exported.runs));
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
        message!("imported: {added}{numbers}; there already: {}", done.known);
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
