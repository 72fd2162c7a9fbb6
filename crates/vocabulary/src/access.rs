//! How a target was opened.

use serde::{Deserialize, Serialize};

/// How a target was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// `O_DIRECT`: past the page cache.
    Direct,
    /// Through the page cache, because the filesystem refuses anything else.
    Buffered,
}

/// How the jobs of a run reached its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accesses {
    /// All in one way.
    All(Access),
    /// Some with direct I/O, some through the page cache.
    Both,
}
