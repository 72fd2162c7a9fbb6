//! The verbs about memory, each in its file with its arguments, exit statuses, examples and JSON document.

pub mod memory;
pub mod zswap;

use rubus_vocabulary::verb::Page;

/// Exit statuses and examples, in the order of the commands.
pub const PAGES: &[Page] = &[memory::PAGE, zswap::PAGE];

/// The JSON documents that they print, besides runs.
#[cfg(feature = "schema")]
pub fn documents() -> Vec<rubus_vocabulary::verb::Document> {
    use rubus_vocabulary::verb::Document;
    vec![Document::of::<zswap::ZswapDocument>("zswap", "rubus zswap --json")]
}
