//! What to do next: every verb that judges ends its answer with it.

use serde::{Deserialize, Serialize};

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
        NextStep { command: Some(command), words: words.into() }
    }

    /// What is done by hand, or nothing.
    pub fn by_hand(words: &str) -> NextStep {
        NextStep { command: None, words: words.into() }
    }
}
