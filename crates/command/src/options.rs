//! Options of every command, and the choice of JSON.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of every command. They come last in the help, since a reader looks for the command's own.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "For every command")]
pub struct General {
    /// Read a recorded machine (from `rubus survey --save FILE`), not this one
    #[arg(long, global = true, value_name = "FILE")]
    pub machine: Option<PathBuf>,
    /// Colour and live progress: auto, always or never
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
