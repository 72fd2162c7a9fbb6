//! Kinds of operations that work asks of a disk.

use serde::{Deserialize, Serialize};

/// Kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Large reads in order.
    SequentialRead,
    /// Large writes in order.
    SequentialWrite,
    /// 4 KiB reads anywhere.
    RandomRead,
    /// 4 KiB writes anywhere.
    RandomWrite,
    /// 4 KiB written and made durable.
    Commit,
}

impl What {
    /// For people: "random reads".
    pub fn words(self) -> &'static str {
        match self {
            What::SequentialRead => "reading in order",
            What::SequentialWrite => "writing in order",
            What::RandomRead => "random reads",
            What::RandomWrite => "random writes",
            What::Commit => "commits",
        }
    }

    /// Bytes of one operation.
    pub fn bytes(self) -> u64 {
        match self {
            What::SequentialRead | What::SequentialWrite => 1 << 20,
            What::RandomRead | What::RandomWrite | What::Commit => 4096,
        }
    }

    /// Whether its amount is in bytes.
    pub fn is_in_order(self) -> bool {
        matches!(self, What::SequentialRead | What::SequentialWrite)
    }
}
