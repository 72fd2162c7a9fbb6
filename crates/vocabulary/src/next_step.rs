//! What to do next: every verb that judges ends its answer with it.

use serde::{Deserialize, Serialize};

/// The option that names a capture.
const MACHINE: &str = "--machine";

/// The verbs that change and measure nothing, and take a capture for the machine. A test of the
/// program compares them with what each verb does.
pub const READ_CAPTURES: [&str; 6] = ["advise", "boot", "explain", "plan", "survey", "zswap"];

/// A command, or something to do by hand, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NextStep {
    /// The words of a command; absent where nothing is to be typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// What the command is for, or what to do by hand: "it weighs every disk of this machine".
    pub words: String,
}

impl NextStep {
    /// A command with what it is for.
    pub fn command(command: &[&str], words: &str) -> NextStep {
        let command = command.iter().map(|word| word.to_string()).collect();
        NextStep { command: Some(command), words: without_stop(words).into() }
    }

    /// The same where the machine is known from a capture in `path`: the verbs that only read a machine take the capture;
    /// every other command is for that machine, since this one has other disks of the same names.
    #[must_use]
    pub fn of_capture(mut self, path: &str) -> NextStep {
        let Some(command) = &mut self.command else {
            return self;
        };
        let reads = match command.as_slice() {
            [program, verb, ..] => program == "rubus" && READ_CAPTURES.contains(&verb.as_str()),
            _ => false,
        };
        if !reads {
            return self.on_that_machine();
        }
        if !command.iter().any(|word| word == MACHINE) {
            command.extend([MACHINE.into(), path.into()]);
        }
        self
    }

    /// The same for a machine that is not this one.
    #[must_use]
    pub fn on_that_machine(mut self) -> NextStep {
        if self.command.is_some() {
            self.words = format!("on that machine: {}", self.words);
        }
        self
    }

    /// What is done by hand, or nothing.
    pub fn by_hand(words: &str) -> NextStep {
        NextStep { command: None, words: without_stop(words).into() }
    }
}

/// Words without the full stop of their sentence: what shows them puts its own mark behind them. The end of a command or a path,
/// such as ` .` or `/..`, and three dots stay.
fn without_stop(words: &str) -> &str {
    match words.strip_suffix('.') {
        Some(rest) if !rest.ends_with([' ', '/', '.']) => rest,
        Some(_) | None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_without_a_full_stop_and_a_command_stays_whole() {
        for (given, kept) in [
            ("nothing: it is fast enough.", "nothing: it is fast enough"),
            ("stop it. Then measure again.", "stop it. Then measure again"),
            ("rubus checkup .", "rubus checkup ."),
            ("see rubus bench ...", "see rubus bench ..."),
        ] {
            assert_eq!(NextStep::by_hand(given).words, kept);
            assert_eq!(NextStep::command(&["rubus"], given).words, kept);
        }
    }

    #[test]
    fn of_a_capture_what_reads_takes_it_and_what_changes_is_for_that_machine() {
        let of = |command: &[&str]| {
            let step = NextStep::command(command, "it shows each step").of_capture("pi.tar");
            (step.command.unwrap_or_default().join(" "), step.words)
        };
        let (command, words) = of(&["rubus", "plan", "swap", "to=zram"]);
        assert_eq!(command, "rubus plan swap to=zram --machine pi.tar");
        assert_eq!(words, "it shows each step");
        let given = ["rubus", "advise", "--machine", "pi.tar"];
        assert_eq!(of(&given).0, given.join(" "));
        for other in [&["sudo", "rubus", "apply", "swap"][..], &["rubus", "bench", "/dev/sda"]] {
            let (command, words) = of(other);
            assert_eq!(command, other.join(" "));
            assert_eq!(words, "on that machine: it shows each step");
        }
        let by_hand = NextStep::by_hand("nothing");
        assert_eq!(by_hand.clone().of_capture("pi.tar"), by_hand);
    }
}
