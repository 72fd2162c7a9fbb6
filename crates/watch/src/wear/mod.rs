//! How worn a disk is, as it says itself, and how long it lasts at a rate.
//!
//! Flash wears by being erased, which happens some time after it was written to and somewhat more often; a disk counts it
//! and tells a percentage of the life that it was made for. What it was written in that time is what a percent costs.

pub mod emmc;
pub mod smart;
pub mod text;
mod years;

use serde::{Deserialize, Serialize};

pub use years::{YearsLeft, years_left};

/// What a disk says of its own wear.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wear {
    /// Kernel name: "mmcblk0".
    pub disk: String,
    /// Who said it; absent if nobody could be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The share that is used of the life that it was made for; absent where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Used>,
    /// What it warns of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Bytes that it was given to write in its life, by its own counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Bytes that the ext4 filesystems on it have written since they were made: it was given at least as many. Absent if
    /// none is mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystems_written_bytes: Option<u64>,
    /// Why it could not be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
}

/// Who says how worn a disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// An eMMC's registers, which the kernel has in sysfs.
    Emmc,
    /// The health log of an NVMe disk, through smartctl.
    Nvme,
    /// The SMART values of an ATA disk, through smartctl.
    Ata,
}

/// A share of the life that a disk was made for. A disk says it in whole percents or tenths, and not how it rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Used {
    /// It is at least so much, in percent; 100 and more is more than it was made for.
    pub min_percent: f64,
    /// And at most so much; absent where the disk stops counting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_percent: Option<f64>,
}

impl Used {
    /// From a number of whole percents, rounded either way.
    fn about(percent: f64) -> Used {
        Used { min_percent: (percent - 1.0).max(0.0), max_percent: Some(percent + 1.0) }
    }

    /// Whether it is more than the disk was made for.
    pub fn is_over(self) -> bool {
        self.min_percent >= 100.0
    }
}

/// What a disk warns of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Warning {
    /// It expects to fail soon.
    Failing,
    /// It cannot be written any more.
    ReadOnly,
    /// It has become unreliable by errors of its medium or inside it.
    Unreliable,
    /// Nearly all of its spare blocks are used up.
    SpareNearlyUsedUp,
    /// Most of its spare blocks are used up.
    SpareLow,
    /// What it keeps in its memory is lost when the power is.
    UnsafeCache,
}

/// Why a disk could not be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// smartctl is not installed.
    NoSmartctl,
    /// Only root may ask.
    NotRoot,
    /// The disk sleeps and was left alone.
    Asleep,
    /// Anything else, in the words of who was asked.
    Other(String),
}
