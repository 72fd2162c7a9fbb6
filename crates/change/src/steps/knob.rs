//! A setting of the running kernel.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::volume::DiskIdentity;
use rubus_host::{Files, Hands, ReadError};

use super::commands::{Command, Names};
use super::text_file::missing;
use super::{Behaviour, Detail, FileSite, FileStep, Receipt, StepError, Touches, Trace, TraceSite};

/// A setting of the running kernel, in `/sys` or `/proc/sys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct SetKnob {
    /// Absolute path.
    pub path: PathBuf,
    /// Its value now.
    pub was: String,
    /// Its new value.
    pub becomes: String,
}

impl Behaviour for SetKnob {
    fn title(&self) -> String {
        format!("set {} from {} to {}", self.path.display(), self.was, self.becomes)
    }

    fn proof_title(&self) -> String {
        format!("the kernel, asked again, says {}", self.becomes)
    }

    fn undo_title(&self) -> String {
        format!("set {} to {}", self.path.display(), self.was)
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches::path(&self.path)
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, files: &dyn Files) -> Option<String> {
        match files.text(&self.path) {
            Ok(live) if knob_says(&live, &self.becomes) => None,
            Ok(live) => {
                Some(format!("{} is {live} instead of {}", self.path.display(), self.becomes))
            }
            Err(error) => Some(missing(&self.path, &error)),
        }
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, files: &dyn Files) -> Trace {
        match files.text(&self.path) {
            Ok(live) if knob_says(&live, &self.was) => Trace::Untouched,
            Ok(live) if knob_says(&live, &self.becomes) => Trace::Made,
            Ok(live) => Trace::Foreign(format!("it is {live}")),
            // A setting of a module that is not loaded is not in force.
            Err(ReadError::Absent) => Trace::Untouched,
            Err(why) => Trace::Foreign(format!("it cannot be read: {why}")),
        }
    }
}

/// The kernel's settings are the running system's, wherever a step acts.
impl FileStep for SetKnob {
    fn apply(&self, _: &FileSite<'_>, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
        set(&self.path, &self.becomes, hands)
    }

    fn undo(&self, _: &FileSite<'_>, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
        set(&self.path, &self.was, hands)
    }
}

fn set(path: &Path, wanted: &str, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
    let mut live = read(path, hands)?;
    if !knob_says(&live, wanted) {
        hands.set_knob(path, wanted)?;
        live = read(path, hands)?;
    }
    if !knob_says(&live, wanted) {
        return Err(StepError::Ignored {
            path: path.display().to_string(),
            wanted: wanted.into(),
            live,
        });
    }
    Ok(Receipt { planned: wanted.into(), live })
}

fn read(path: &Path, hands: &dyn Hands) -> Result<String, StepError> {
    hands
        .files()
        .text(path)
        .map_err(|reason| StepError::Unreadable { path: path.display().to_string(), reason })
}

/// Whether a kernel's answer says what was asked for. Switches answer Y and N to 1 and 0; lists show
/// the choice in brackets (`lzo [zstd]`); numbers may come back without leading zeros.
pub fn knob_says(live: &str, wanted: &str) -> bool {
    let (live, wanted) = (live.trim(), wanted.trim());
    let chosen = live
        .split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .unwrap_or(live);
    let switch = |text: &str| match text {
        "Y" | "y" | "1" => Some(true),
        "N" | "n" | "0" => Some(false),
        _ => None,
    };
    let numbers = chosen.parse::<i64>().ok().zip(wanted.parse::<i64>().ok());
    chosen == wanted
        || numbers.is_some_and(|(live, wanted)| live == wanted)
        || switch(chosen).is_some() && switch(chosen) == switch(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_answers_in_its_own_words() {
        for (live, wanted) in [
            ("Y\n", "1"),
            ("N", "0"),
            ("20", "20"),
            ("lzo [zstd] lz4", "zstd"),
            ("007", "7"),
            ("zsmalloc", "zsmalloc"),
        ] {
            assert!(knob_says(live, wanted), "{live} for {wanted}");
        }
        for (live, wanted) in
            [("N", "1"), ("lzo [zstd]", "lzo"), ("lzo", "zstd"), ("20", "2"), ("", "Y")]
        {
            assert!(!knob_says(live, wanted), "{live} for {wanted}");
        }
    }
}
