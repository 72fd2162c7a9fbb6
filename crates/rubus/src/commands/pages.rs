//! The pages that the verbs of rooms below theirs write.

use rubus_fleet::cli::Pages;
use rubus_runs::cli::Outside;
use rubus_runs::compare::Comparison;
use rubus_runs::gallery::Entry;
use rubus_verdict::verdict::Verdict;
use rubus_vocabulary::result::Run;

/// What draws them.
pub struct Drawn;

impl Outside for Drawn {
    fn page(&self, run: &Run, verdict: &Verdict) -> String {
        rubus_page::render(run, verdict)
    }
}

impl Pages for Drawn {
    fn of_comparison(&self, comparison: &Comparison) -> String {
        rubus_page::compare::render(comparison)
    }

    fn of_gallery(&self, entries: &[Entry]) -> String {
        rubus_page::gallery::render(entries, env!("CARGO_PKG_VERSION"))
    }
}
