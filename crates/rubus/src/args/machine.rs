//! `--machine`: which commands read a machine. The others refuse it, since an option without effect is a wrong answer.

use rubus_recipes::cli::Verb as Change;

use super::{Args, Command};

/// What a command does with `--machine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Reads the captured machine in place of this one.
    Captured,
    /// Is about the machine that it runs on, and says itself why.
    Running,
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
            Use::Captured | Use::Running => Ok(()),
            Use::None => Err(format!(
                "this command reads no machine, so --machine {} would change nothing\nLeave it out.",
                machine.display()
            )),
        }
    }
}

fn use_of(command: &Command) -> Use {
    match command {
        Command::Survey(_) | Command::Explain(_) | Command::Zswap(_) | Command::Advise(_) => {
            Use::Captured
        }
        // A disk or an image that is named is looked at itself.
        Command::Boot(boot) if boot.disk.is_some() => Use::None,
        Command::Boot(_) => Use::Captured,
        Command::Checkup(_)
        | Command::Bench(_)
        | Command::Enough(_)
        | Command::Copy(_)
        | Command::Nbd(_)
        | Command::Compression(_)
        | Command::Tune(_)
        | Command::Watch(_) => Use::Running,
        Command::Change(verb) => match verb {
            Change::Recipes(_) => Use::None,
            Change::Plan(_) => Use::Captured,
            Change::Apply(_)
            | Change::Undo(_)
            | Change::Resume(_)
            | Change::Status(_)
            | Change::Verify(_) => Use::Running,
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::{CommandFactory, FromArgMatches};
    use rubus_vocabulary::next_step::READ_CAPTURES;

    use super::*;
    use crate::args::help;

    /// The verb of an example of the help, and what it does with a captured machine.
    fn use_in(example: &str) -> Option<(String, Use)> {
        let words = example.split([';', '|', '>']).next()?.split_whitespace();
        let words = words.skip_while(|word| *word != "rubus");
        let words: Vec<String> = words.map(|word| word.replace(['\'', '"'], "")).collect();
        let matches = Args::command().try_get_matches_from(words).ok()?;
        let args = Args::from_arg_matches(&matches).ok()?;
        Some((matches.subcommand_name()?.to_string(), use_of(args.command.as_ref()?)))
    }

    /// A next step is shown with the capture where its verb reads one. The match above has every verb.
    #[test]
    fn next_steps_know_which_verbs_read_a_captured_machine() {
        let mut reads_capture = BTreeMap::new();
        for (example, _) in help::pages().flat_map(|page| page.examples) {
            if let Some((verb, used)) = use_in(example) {
                *reads_capture.entry(verb).or_insert(false) |= used == Use::Captured;
            }
        }
        let program = Args::command();
        for verb in program.get_subcommands() {
            assert!(reads_capture.contains_key(verb.get_name()), "{verb}: no example was read");
        }
        reads_capture.retain(|_, reads| *reads);
        assert_eq!(reads_capture.keys().collect::<Vec<_>>(), READ_CAPTURES);
    }
}
