//! The health of every disk in one word, with why and what to do: the kernel's log, what its filesystems and arrays count, and what
//! the disk says of itself, joined.
//!
//! The word is about the data on the disk. It fails where data was lost or unreadable, whatever the cause, and where
//! the disk itself says so; errors that a retry cured make no disk fail.

mod array;
mod of_disk;
#[cfg(test)]
mod tests;
pub mod text;
pub use array::ArrayState;
pub use text::warnings;

use rubus_machine::kernel_log::{self, Cause, Health, Suspect};
use rubus_vocabulary::kernel_log::KernelTrouble;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine};
use serde::{Deserialize, Serialize};

use crate::wear::Wear;

/// What stands for a disk where the board's own supply is meant.
const POWER_SUPPLY: &str = "power supply";

/// The health of a disk in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Data was lost or unreadable, or the disk expects to fail.
    Failing,
    /// It mends more than it should, or has used up what it was made for.
    WearingOut,
    /// Nothing that could be read says.
    NotKnown,
    /// What could be read has nothing against it.
    Fine,
}

/// The health of one disk, or of an array that is not whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskHealth {
    /// Kernel name: "sda"; "power supply" for the board's own.
    pub disk: String,
    /// In one word.
    pub word: Word,
    /// The likely cause of what the kernel's log has; absent where it has nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Why, the weightiest first.
    pub evidence: Vec<String>,
    /// What to do; absent where nothing has to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The command that does it, where this program has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Of a USB disk that resets or drops off: the causes in the order to try them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspects: Vec<PossibleCause>,
}

/// A possible cause of the trouble of a USB disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PossibleCause {
    /// The cause.
    pub cause: Cause,
    /// What the log has for it, or that it has nothing.
    pub evidence: String,
    /// What to do about it.
    pub fix: String,
    /// The command that does it, where this program has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl From<Suspect> for PossibleCause {
    fn from(suspect: Suspect) -> PossibleCause {
        let Suspect { cause, evidence, fix, command } = suspect;
        PossibleCause { cause, evidence, fix, command }
    }
}

/// What is known of health besides the facts of the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// What the disks say of themselves.
    pub wear: Vec<Wear>,
    /// The trouble in the kernel's logs of earlier boots, the newest first.
    pub earlier_boots: Vec<Vec<KernelTrouble>>,
    /// What filesystems and arrays count of errors over all boots.
    pub counts: Vec<ErrorCount>,
    /// The arrays (md).
    pub arrays: Vec<ArrayState>,
}

/// Errors that a filesystem or an array counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// The disk or partition by kernel name; several where it is not told which of them.
    pub devices: Vec<String>,
    /// What counted: "ext4", "md0".
    pub counter: String,
    /// What was counted: "read errors".
    pub what: String,
    /// Number of errors.
    pub times: u64,
    /// The day of the last, where it says: "2026-03-01".
    pub last_day: Option<String>,
}

/// The health of every disk of a machine, the worst first.
pub fn of_machine(machine: &Machine, told: &Told) -> Vec<DiskHealth> {
    let now = kernel_log::of_machine(machine);
    let earlier: Vec<Vec<Health>> =
        told.earlier_boots.iter().map(|log| kernel_log::of_log(machine, log)).collect();
    let is_disk = |device: &&BlockDevice| device.kind == BlockKind::Disk;
    let disks = machine.block_devices.iter().filter(is_disk);
    let mut found: Vec<DiskHealth> = disks
        .map(|disk| {
            let about = of_disk::About { machine, told, disk, now: &now, earlier: &earlier };
            about.health()
        })
        .collect();
    found.extend(of_disk::gone(machine, &now));
    found.extend(told.arrays.iter().filter_map(ArrayState::health));
    // The sort is stable: disks of one word stay in the kernel's order.
    found.sort_by_key(|health| health.word);
    found
}
