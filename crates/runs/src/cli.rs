//! The verbs of runs that were kept, each in its file with its arguments, exit statuses, examples and JSON document. What they
//! need of rooms above goes through [`Outside`].

mod history;
mod share;

use clap::Subcommand;
use rubus_command::{Exit, General};
use rubus_verdict::verdict::Verdict;
use rubus_vocabulary::result::Run;
use rubus_vocabulary::verb::Page;

/// What the verbs need of rooms above this one.
pub trait Outside {
    /// The page of a run.
    fn page(&self, run: &Run, verdict: &Verdict) -> String;
}

/// The verbs. Each is described where its arguments are.
#[derive(Debug, Subcommand)]
pub enum Verb {
    History(Box<history::HistoryArgs>),
    Share(share::Share),
}

/// Does what was asked.
///
/// # Errors
/// Names of no runs, and what cannot be read or written.
pub fn run(general: &General, verb: &Verb, outside: &dyn Outside) -> anyhow::Result<Exit> {
    match verb {
        Verb::History(history) => history::run(general, history, outside),
        Verb::Share(share) => share::run(general, share),
    }
}

/// Exit statuses and examples, in the order of the commands.
pub const PAGES: &[Page] = &[
    history::PAGE,
    history::SHOW_PAGE,
    history::LABEL_PAGE,
    history::DELETE_PAGE,
    history::EXPORT_PAGE,
    history::IMPORT_PAGE,
    share::PAGE,
];

/// The JSON documents that they print.
#[cfg(feature = "schema")]
pub fn documents() -> Vec<rubus_vocabulary::verb::Document> {
    use crate::history::RunSummary;
    use rubus_vocabulary::verb::Document;
    vec![Document::of::<Vec<RunSummary>>("history", "rubus history --json")]
}
