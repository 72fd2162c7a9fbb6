//! Options of every command, the choice of JSON, and where a result goes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::values;

/// Options of every command. They come last in the help, since a reader looks for the command's own.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "For every command")]
pub struct General {
    /// Read a recorded machine (from `rubus survey --save FILE`), not this one
    #[arg(long, global = true, value_name = "FILE")]
    pub machine: Option<PathBuf>,
    /// Colour: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub color: When,
    /// Print nothing but the result
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Answer another rubus: records on standard output, its sign of life on standard input
    #[arg(long, global = true, hide = true)]
    pub records: bool,
}

/// The choice between text and JSON on standard output.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Json {
    /// Print the result as JSON
    #[arg(long = "json")]
    pub wanted: bool,
}

/// When to do something that depends on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Where a result goes besides the terminal.
#[derive(Clone, Debug, Default, Args)]
pub struct Keeping {
    /// Write the HTML page to this file instead of the data directory; of several machines, one page
    /// of all
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write no page
    #[arg(long, conflicts_with = "html")]
    pub no_html: bool,
    /// Show every figure, disturbance and finding below the answer
    #[arg(long, short)]
    pub verbose: bool,
    /// Keep serial numbers, addresses, and names of users and servers in the page and the markdown
    #[arg(long)]
    pub with_serials: bool,
    #[command(flatten)]
    pub kept: Kept,
}

impl Keeping {
    /// For a result that no page can show.
    pub fn without_page(kept: &Kept) -> Keeping {
        Keeping {
            html: None,
            no_html: true,
            verbose: false,
            with_serials: false,
            kept: kept.clone(),
        }
    }
}

/// Where a result goes besides the terminal and a page.
#[derive(Clone, Debug, Default, Args)]
pub struct Kept {
    /// Do not record this run in the history
    #[arg(long)]
    pub no_history: bool,
    /// Name of the run in the history, for finding and comparing it
    #[arg(long, value_name = "TEXT", conflicts_with = "no_history", value_parser = values::label)]
    pub label: Option<String>,
    /// Write CSV to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write markdown, for a forum or an issue, to a file, or to standard
    /// output with `-`
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}
