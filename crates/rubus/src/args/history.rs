//! Arguments of `rubus history`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use rubus_command::values::label;

use super::Json;

/// Show, label, delete, export or import earlier runs.
///
/// Without a run or a subcommand, lists the runs, newest first. A run is named by its number, its
/// label, or as last, last~1 and so on.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub struct History {
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
#[derive(Debug, ClapArgs)]
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
#[derive(Debug, ClapArgs)]
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
#[derive(Debug, ClapArgs)]
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
#[derive(Debug, ClapArgs)]
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
#[derive(Debug, ClapArgs)]
pub struct HistoryImport {
    /// The file; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
