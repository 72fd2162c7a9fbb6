//! The verbs that put many runs side by side, each in its file with its arguments, exit statuses, examples and JSON document.
//! Their pages are made by a room above, through [`Pages`].

pub mod compare;
pub mod gallery;

use rubus_runs::compare::Comparison;
use rubus_runs::gallery::Entry;
use rubus_vocabulary::verb::Page;

/// What draws the pages.
pub trait Pages {
    /// The page of a comparison.
    fn of_comparison(&self, comparison: &Comparison) -> String;
    /// The page of a gallery.
    fn of_gallery(&self, entries: &[Entry]) -> String;
}

/// Exit statuses and examples, in the order of the commands.
pub const PAGES: &[Page] = &[compare::PAGE, gallery::PAGE];

/// The JSON documents that they print.
#[cfg(feature = "schema")]
pub fn documents() -> Vec<rubus_vocabulary::verb::Document> {
    use crate::compare::FleetComparison;
    use rubus_vocabulary::published::Reference;
    use rubus_vocabulary::verb::Document;
    vec![
        Document::of::<Comparison>("compare", "rubus compare --json"),
        Document::of::<FleetComparison>("fleet-compare", "rubus compare FLEET FLEET --json"),
        Document::of::<Vec<Entry>>("gallery", "rubus gallery --json"),
        Document::of::<Vec<Reference>>("references", "rubus compare --list-references --json"),
    ]
}
