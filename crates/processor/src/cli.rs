//! The verbs about the processor and what it does for storage, each in its file with its arguments, exit statuses, examples and
//! JSON document.

pub mod compression;
pub mod cpu;

use rubus_vocabulary::verb::Page;

/// Exit statuses and examples, in the order of the commands.
pub const PAGES: &[Page] = &[cpu::PAGE, compression::PAGE];

/// The JSON documents that they print, besides runs.
#[cfg(feature = "schema")]
pub fn documents() -> Vec<rubus_vocabulary::verb::Document> {
    use rubus_vocabulary::verb::Document;
    vec![Document::of::<compression::CompressionDocument>(
        "compression",
        "rubus compression --json",
    )]
}
