//! The verb `rubus tune`: its arguments, what its help says, and what it does. What it needs of rooms above goes through
//! [`Outside`].

mod trial;

use std::path::{Path, PathBuf};

use clap::Args;
use rubus_command::signals::LongestStall;
use rubus_command::values::time_within;
use rubus_command::{Exit, General, Json};
use rubus_measure::Observer;
use rubus_vocabulary::verb::{MISTAKE, Page};

use crate::works::Purpose;

pub use trial::run;

/// What the verb needs of rooms above this one.
pub trait Outside {
    /// What shows a session while it runs.
    fn line(&self, general: &General) -> Box<dyn Shown>;
    /// Applies the recipe in a file as `rubus apply` does, without a question where the user has `agreed`.
    ///
    /// # Errors
    /// Those of that verb.
    fn apply(&self, general: &General, recipe: &Path, agreed: bool) -> anyhow::Result<Exit>;
}

/// What shows a session.
pub trait Shown: Observer {
    /// The longest time in which nothing was done, as it is seen.
    fn stalls(&self) -> LongestStall;
}

/// Exit statuses and examples, in the order of the commands.
pub const PAGES: &[Page] = &[Page {
    name: "rubus-tune",
    statuses: &[
        (0, "done"),
        (1, "not agreed to, cut short, nothing could be judged, or what was applied does not hold"),
        MISTAKE,
        (5, "a setting could not be put back: see `rubus tune --restore`"),
    ],
    examples: &[
        ("rubus tune /mnt/ssd --list", "Show what would be tried. Changes nothing."),
        ("sudo rubus tune /mnt/ssd", "Ask, try it, put everything back, and say what helps."),
        (
            "sudo rubus tune /mnt/ssd --for files --apply",
            "The same for large files; then make what helps last, and prove it.",
        ),
    ],
}];

/// The JSON documents that they print.
#[cfg(feature = "schema")]
pub fn documents() -> Vec<rubus_vocabulary::verb::Document> {
    use crate::report::TuneDocument;
    use rubus_vocabulary::verb::Document;
    vec![Document::of::<TuneDocument>("tune", "rubus tune --json")]
}

/// Try settings of a disk in turns, put them back, and say which help.
///
/// Tries read-ahead, I/O scheduler, queue length and the processor's governor, each against its
/// present value, on the disk under a directory. Every value is recorded before it is changed and
/// put back afterwards, also after Ctrl-C, a kill or a crash. Writes a nameless file, which is gone
/// at the end. Says how much and how long at most, and asks, before it begins. Needs root, except
/// for --list.
#[derive(Debug, Args)]
pub struct Tune {
    /// Directory on the disk to be tuned
    #[arg(default_value = ".", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub directory: PathBuf,
    /// What the disk is for: everything, files or database
    #[arg(
        long = "for",
        value_name = "PURPOSE",
        default_value = "everything",
        hide_possible_values = true
    )]
    pub purpose: Purpose,
    /// Longest time, such as 10m or 2h; small effects need long trials
    #[arg(long, value_name = "TIME", default_value = "20m", value_parser = time)]
    pub time: f64,
    /// Show what would be tried, how long it takes and what it writes; change nothing
    #[arg(long, alias = "dry-run", conflicts_with_all = ["apply", "restore", "forget"])]
    pub list: bool,
    /// Make what helps last, with a plan that `rubus undo` takes back, and measure again
    #[arg(long, conflicts_with_all = ["restore", "forget", "wanted"])]
    pub apply: bool,
    /// Do not ask for confirmation, neither before the trial nor before the plan of --apply
    #[arg(long, short)]
    pub yes: bool,
    /// Put back what a trial has left that was cut off by a kill
    #[arg(long, conflicts_with = "forget")]
    pub restore: bool,
    /// Drop the record of a trial without putting anything back
    #[arg(long)]
    pub forget: bool,
    #[command(flatten)]
    pub json: Json,
    /// The process that puts settings back after a kill
    #[arg(long, hide = true)]
    pub keeper: bool,
}

/// Seconds, minutes with an `m` or hours with an `h`.
fn time(text: &str) -> Result<f64, String> {
    time_within(text, 60.0..=86_400.0).ok_or_else(|| "write a time from 1m to 24h".into())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        tune: Tune,
    }

    #[test]
    fn a_trial_alone_can_be_agreed_to_beforehand() {
        let yes = |line: &[&str]| Line::try_parse_from(line).unwrap().tune.yes;
        assert!(yes(&["tune", "/mnt/ssd", "--yes"]));
        assert!(yes(&["tune", "/mnt/ssd", "--apply", "-y"]));
        assert!(!yes(&["tune", "/mnt/ssd"]));
    }

    #[test]
    fn a_time_is_in_seconds_minutes_or_hours() {
        assert_eq!(time("20m"), Ok(1200.0));
        assert_eq!(time("90"), Ok(90.0));
        for wrong in ["59s", "25h", "m", "-1m", "NaN"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
