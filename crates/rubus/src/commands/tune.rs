//! `rubus tune` with what it needs of rooms above its own: the line of a session, and applying a recipe.

use std::path::Path;

use anyhow::Context;
use clap::Parser;
use rubus_bench::progress::LiveLine;
use rubus_command::Terminal;
use rubus_tune::cli::{self, Outside, Shown, Tune};

use crate::args::{Args, Command, General};
use crate::exit::Exit;

/// Does what was asked.
///
/// # Errors
/// Those of the verb.
pub fn run(general: &General, arguments: &Tune) -> anyhow::Result<Exit> {
    cli::run(general, arguments, &Here)
}

struct Here;

impl Outside for Here {
    fn line(&self, general: &General) -> Box<dyn Shown> {
        Box::new(LiveLine::new(Terminal::of(general)))
    }

    fn apply(&self, general: &General, recipe: &Path, agreed: bool) -> anyhow::Result<Exit> {
        let recipe = recipe.to_str().context("its name is not text")?;
        let mut line = vec!["rubus", "apply", recipe];
        line.extend(agreed.then_some("--yes"));
        match Args::try_parse_from(line)?.command {
            Some(Command::Change(verb)) => super::change::run(general, &verb),
            _ => anyhow::bail!("only a recipe is applied here"),
        }
    }
}
