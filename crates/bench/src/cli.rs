//! The verbs that measure a disk, the processor or memory and keep what came out, each in its file with its arguments, exit
//! statuses, examples and JSON document.

pub mod against;
mod against_binary;
pub mod bench;
pub mod bench_args;
mod bench_objects;
pub mod bench_options;
pub mod checkup;
pub mod cpu;
pub mod enough;
mod far_end;
mod job_file;
mod lanes;
pub mod memory;
pub mod suites;
mod together;

use rubus_vocabulary::verb::{GUARDED, MISTAKE, Page, Statuses};

const MEASURED: Statuses =
    &[(0, "measured"), (1, "cut short, failed, or data came back wrong"), MISTAKE, GUARDED];

/// Exit statuses and examples, in the order of the commands.
pub const PAGES: &[Page] = &[checkup::PAGE, bench::PAGE, enough::PAGE, suites::PAGE];

/// The JSON documents that they print.
#[cfg(feature = "schema")]
pub fn documents() -> Vec<rubus_vocabulary::verb::Document> {
    use rubus_vocabulary::spec::SuiteSummary;
    use rubus_vocabulary::verb::Document;
    vec![
        Document::of::<enough::EnoughDocument<'_>>("enough", "rubus enough --json"),
        Document::of::<Vec<SuiteSummary>>("suites", "rubus suites --json"),
    ]
}
