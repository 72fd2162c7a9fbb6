//! The verbs that watch a machine, each in its file with its arguments, exit statuses, examples and JSON document.

mod watch;
mod writers;

use clap::Subcommand;
use rubus_command::{Exit, General};
use rubus_vocabulary::verb::Page;

/// The verbs. Each is described where its arguments are.
#[derive(Debug, Subcommand)]
pub enum Verb {
    Watch(watch::Watch),
    Writers(writers::Writers),
}

/// Does what was asked.
///
/// # Errors
/// Wrong arguments, and what this machine does not allow.
pub fn run(general: &General, verb: &Verb) -> anyhow::Result<Exit> {
    match verb {
        Verb::Watch(watch) => watch::run(general, watch),
        Verb::Writers(writers) => writers::run(general, writers),
    }
}

/// Exit statuses and examples, in the order of the commands.
pub const PAGES: &[Page] = &[watch::PAGE, writers::PAGE];

/// A line of a recording: the first is the header, each further one a sample.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum RecordingLine {
    Header(crate::Header),
    Sample(Box<crate::Sample>),
}

/// The JSON documents that they print.
#[cfg(feature = "schema")]
pub fn documents() -> Vec<rubus_vocabulary::verb::Document> {
    use rubus_vocabulary::verb::Document;
    vec![
        Document::of::<watch::WatchDocument<'_>>("watch", "rubus watch --once --json"),
        Document::of::<writers::WritersDocument<'_>>("writers", "rubus writers --json"),
        Document::of::<RecordingLine>("recording", "a line of rubus watch --record FILE"),
    ]
}
