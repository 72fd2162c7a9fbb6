//! `rubus manual`: manual pages in roff, from the same definitions as the help.

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Args, Manual};
use crate::exit::Exit;

/// Prints the main page, or writes one page per command into a directory.
pub fn run(manual: &Manual) -> anyhow::Result<Exit> {
    let command = Args::command();
    match &manual.dir {
        None => clap_mangen::Man::new(command).render(&mut std::io::stdout())?,
        Some(directory) => {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("cannot make the directory {}", directory.display()))?;
            clap_mangen::generate_to(command, directory)
                .with_context(|| format!("cannot write manual pages to {}", directory.display()))?;
        }
    }
    Ok(Exit::Fine)
}
