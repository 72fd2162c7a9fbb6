//! The verbs of kept runs with what they need of rooms above theirs: pages.

use rubus_runs::cli::{self, Outside, Verb};
use rubus_verdict::verdict::Verdict;
use rubus_vocabulary::result::Run;

use crate::args::General;
use crate::exit::Exit;

/// Does what was asked.
///
/// # Errors
/// Those of the verb.
pub fn run(general: &General, verb: &Verb) -> anyhow::Result<Exit> {
    cli::run(general, verb, &Pages)
}

struct Pages;

impl Outside for Pages {
    fn page(&self, run: &Run, verdict: &Verdict) -> String {
        rubus_page::render(run, verdict)
    }
}
