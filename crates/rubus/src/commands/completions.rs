//! `rubus completions`: a completion script, from the same definitions as the help.

use clap::CommandFactory;

use crate::args::{Args, Completions};
use crate::exit::Exit;

/// Prints the script for the shell.
pub fn run(completions: &Completions) -> anyhow::Result<Exit> {
    let mut command = Args::command();
    clap_complete::generate(completions.shell, &mut command, "rubus", &mut std::io::stdout());
    Ok(Exit::Fine)
}
