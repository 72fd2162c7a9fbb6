//! `--machine`: which commands read a machine. The others refuse it, since an option without effect is a wrong answer.

use rubus_recipes::cli::Verb as Change;

use super::{Args, Command};

/// What a command does with `--machine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Reads the machine that is meant, or says itself why it needs the one that it runs on.
    Own,
    /// Looks at files, at the history, or at nothing.
    None,
}

impl Args {
    /// That a captured machine is named only where one is read.
    ///
    /// # Errors
    /// When it would be ignored.
    pub fn must_read_machine(&self) -> Result<(), String> {
        let (Some(machine), Some(command)) = (&self.general.machine, &self.command) else {
            return Ok(());
        };
        match use_of(command) {
            Use::Own => Ok(()),
            Use::None => Err(format!(
                "this command reads no machine, so --machine {} would change nothing\nLeave it out.",
                machine.display()
            )),
        }
    }
}

fn use_of(command: &Command) -> Use {
    match command {
        Command::Checkup(_)
        | Command::Survey(_)
        | Command::Explain(_)
        | Command::Bench(_)
        | Command::Enough(_)
        | Command::Copy(_)
        | Command::Nbd(_)
        | Command::Compression(_)
        | Command::Zswap(_)
        | Command::Advise(_)
        | Command::Tune(_)
        | Command::Watch(_) => Use::Own,
        // A disk or an image that is named is looked at itself.
        Command::Boot(boot) if boot.disk.is_some() => Use::None,
        Command::Boot(_) => Use::Own,
        Command::Change(verb) => match verb {
            Change::Recipes(_) => Use::None,
            Change::Plan(_)
            | Change::Apply(_)
            | Change::Undo(_)
            | Change::Resume(_)
            | Change::Status(_)
            | Change::Verify(_) => Use::Own,
        },
        Command::Suites(_)
        | Command::Compare(_)
        | Command::Runs(_)
        | Command::Gallery(_)
        | Command::Cluster(_)
        | Command::Completions(_)
        | Command::Manual(_) => Use::None,
    }
}
