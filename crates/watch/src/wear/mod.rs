//! How worn a disk is, as it says itself, and how long it lasts at a rate.
//!
//! Flash wears by being erased, which happens some time after it was written to and somewhat more often; a disk counts it
//! and tells a percentage of the life that it was made for. What it was written in that time is what a percent costs.

pub mod emmc;
mod finding;
pub mod smart;
pub mod text;
mod years;

use serde::{Deserialize, Serialize};

pub use finding::findings;
pub use years::{YearsLeft, years_left};

/// NVMe and ATA stop counting there.
const MAX_PERCENT: f64 = 255.0;
/// A disk whose values of wear differ by more percent than this contradicts itself.
const MAX_DISAGREEMENT_PERCENT: f64 = 5.0;
/// A disk's own counter may be below that of a filesystem by this much: a filesystem counts what waits in memory, too.
const MIN_SHARE_OF_FILESYSTEMS: f64 = 0.9;

/// What a disk says of its own wear.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wear {
    /// Kernel name: "mmcblk0".
    pub disk: String,
    /// Source of the figures; absent if there was none to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The share that is used of the life that it was made for; absent where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Used>,
    /// All that an ATA disk says of it, of which `used` is the worst: a statistic or attributes of its maker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told_used: Vec<ToldUsed>,
    /// What it warns of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The names of the attributes that are at their maker's threshold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing_attributes: Vec<String>,
    /// The names of those that count its use, such as hours, and are at the end of what its maker made it for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_up_attributes: Vec<String>,
    /// It has platters, which do not wear by being written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_turning: bool,
    /// Bytes that it was given to write in its life, by its own counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// It counts what it is given, but the number cannot be true: its unit is not known, or the counter is broken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_written_counter_implausible: bool,
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
    /// The health descriptor of a UFS disk, which the kernel has in sysfs.
    Ufs,
    /// The health log of an NVMe disk, through smartctl.
    Nvme,
    /// The SMART values of an ATA disk, through smartctl.
    Ata,
    /// The log pages of a SCSI disk, through smartctl.
    Scsi,
}

/// A share used, and what says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToldUsed {
    /// The statistic or attribute, as smartctl names it: "SSD_Life_Left".
    pub name: String,
    /// The share.
    #[serde(flatten)]
    pub used: Used,
}

/// A share of the life that a disk was made for. A disk says it in whole percents or tenths, and not how it rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ToldShare")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Used {
    /// It is at least so much, in percent; 100 and more is all that it was made for.
    pub min_percent: f64,
    /// And at most so much; absent where the disk stops counting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_percent: Option<f64>,
}

/// [`Used`] as a recording has it.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ToldShare {
    min_percent: f64,
    #[serde(default)]
    max_percent: Option<f64>,
}

impl TryFrom<ToldShare> for Used {
    type Error = String;

    fn try_from(told: ToldShare) -> Result<Used, String> {
        let ToldShare { min_percent, max_percent } = told;
        let is_share = |percent: f64| percent.is_finite() && percent >= 0.0;
        if !is_share(min_percent)
            || max_percent.is_some_and(|max| !is_share(max) || max < min_percent)
        {
            return Err(format!("{min_percent} to {max_percent:?} is no share of a disk's life"));
        }
        Ok(Used { min_percent, max_percent })
    }
}

impl Used {
    /// From a number of whole percents, rounded either way. A disk that says 100 has used all of it.
    fn about(percent: f64) -> Used {
        let min_percent = if percent >= 100.0 { (percent - 1.0).max(100.0) } else { percent - 1.0 };
        Used { min_percent: min_percent.max(0.0), max_percent: Some(percent + 1.0) }
    }

    /// As [`about`](Used::about), by a counter that stops at 255.
    fn of_percent(percent: f64) -> Used {
        if percent >= MAX_PERCENT {
            Used { min_percent: MAX_PERCENT, max_percent: None }
        } else {
            Used::about(percent)
        }
    }

    /// The one of two that says that more is used.
    fn worse(self, other: Used) -> Used {
        let order = |used: Used| (used.min_percent, used.max_percent.unwrap_or(f64::INFINITY));
        if order(other) > order(self) { other } else { self }
    }

    /// Whether all that the disk was made for is used.
    pub fn is_over(self) -> bool {
        self.min_percent >= 100.0
    }

    /// Whether all of it is used, or nearly all by a value that goes no further.
    pub fn is_at_end(self) -> bool {
        self.is_over() || self.max_percent.is_none()
    }
}

impl Wear {
    /// Adds what its filesystems have counted, by which a disk's own counter is checked.
    #[must_use]
    pub fn with_filesystems(mut self, written_bytes: Option<u64>) -> Wear {
        self.filesystems_written_bytes = written_bytes;
        let least = written_bytes.unwrap_or(0) as f64 * MIN_SHARE_OF_FILESYSTEMS;
        if self.written_bytes.is_some_and(|written| (written as f64) < least) {
            self.written_bytes = None;
            self.is_written_counter_implausible = true;
        }
        self
    }

    /// The best and the worst that the disk says of its wear, where they contradict each other.
    fn disagreement(&self) -> Option<(&ToldUsed, &ToldUsed)> {
        let by_share = |one: &&ToldUsed, other: &&ToldUsed| {
            one.used.min_percent.total_cmp(&other.used.min_percent)
        };
        let best = self.told_used.iter().min_by(by_share)?;
        let worst = self.told_used.iter().max_by(by_share)?;
        let apart = worst.used.min_percent - best.used.min_percent;
        (apart > MAX_DISAGREEMENT_PERCENT).then_some((best, worst))
    }
}

/// What a disk warns of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Warning {
    /// It expects to fail soon.
    Failing,
    /// An attribute is at its maker's threshold.
    AtThreshold,
    /// It cannot be written any more.
    ReadOnly,
    /// It has become unreliable by errors of its medium or inside it.
    Unreliable,
    /// It cannot read some of its blocks.
    UnreadableBlocks,
    /// Nearly all of its spare blocks are used up.
    SpareNearlyUsedUp,
    /// Most of its spare blocks are used up.
    SpareLow,
    /// It counts blocks that it could not give back at some time in its life.
    DataErrors,
    /// It has put many spare blocks in place of bad ones.
    ReallocatedBlocks,
    /// Its use, such as its hours, is at the end of what its maker made it for.
    DesignLifeOver,
    /// What it keeps in its memory is lost when the power is.
    UnsafeCache,
}

impl Warning {
    /// Whether to act now; else it is time to plan.
    pub fn is_danger(self) -> bool {
        match self {
            Warning::Failing
            | Warning::AtThreshold
            | Warning::ReadOnly
            | Warning::Unreliable
            | Warning::UnreadableBlocks
            | Warning::SpareNearlyUsedUp
            | Warning::UnsafeCache => true,
            Warning::SpareLow
            | Warning::DataErrors
            | Warning::ReallocatedBlocks
            | Warning::DesignLifeOver => false,
        }
    }
}

/// Why a disk could not be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// smartctl is not installed.
    NoSmartctl,
    /// smartctl is of this version, which does not answer in JSON.
    OldSmartctl(String),
    /// Only root may ask.
    NotRoot,
    /// The disk sleeps and was left alone.
    Asleep,
    /// Anything else, in the words of who was asked.
    Other(String),
}

#[cfg(test)]
mod share_tests {
    use super::*;

    #[test]
    fn a_share_of_a_recording_is_checked_where_it_is_read() {
        let of = |text: &str| serde_json::from_str::<Used>(text);
        let used = of(r#"{"min_percent": 98.0}"#).unwrap();
        assert_eq!(used, Used { min_percent: 98.0, max_percent: None });
        for bad in [
            r#"{"min_percent": -1.0}"#,
            r#"{"min_percent": 5.0, "max_percent": 4.0}"#,
            r#"{"min_percent": 5.0, "max_percent": -4.0}"#,
        ] {
            assert!(of(bad).unwrap_err().to_string().contains("no share"), "{bad}");
        }
    }
}
