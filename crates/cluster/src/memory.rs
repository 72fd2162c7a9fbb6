//! Whether a board has the memory for its OSDs, and the `osd_memory_target` to set.

use rubus_vocabulary::basis::{Basis, assumed};
use rubus_vocabulary::units::bytes_iec;
use serde::Serialize;

use crate::design::{Design, Group};

const MIB: u64 = 1 << 20;

/// Smallest `osd_memory_target` that Ceph takes: 768 MiB base and 128 MiB cache (options/global.yaml.in).
pub const MIN_TARGET: u64 = 896 * MIB;
/// Below this the documentation does not recommend to go (hardware-recommendations).
pub const RECOMMENDED_TARGET: u64 = 2048 * MIB;
/// Ceph's default; more is not set here.
pub const DEFAULT_TARGET: u64 = 4096 * MIB;
/// An OSD's memory passes its target now and then: 20 % spare (hardware-recommendations).
const SPARE: f64 = 0.20;

/// What the system itself takes: kernel, ssh, container runtime. Assumed.
const SYSTEM_BYTES: u64 = 350 * MIB;
/// A monitor of a cluster of a few OSDs. Assumed: 54 to 118 MiB were seen minutes after a start, and the store's cache grows.
const MONITOR_BYTES: u64 = 450 * MIB;
/// A manager with the modules of a small cluster. Assumed: cephadm reserves 4 GB, idle ones take 300 to 600 MiB.
const MANAGER_BYTES: u64 = 550 * MIB;

/// Memory of one kind of board.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoardMemory {
    /// The board's name.
    pub board: String,
    /// What its kernel has, bytes.
    pub memory_bytes: u64,
    /// How that is known.
    pub basis: Basis,
    /// What the system takes, assumed, bytes.
    pub system_bytes: u64,
    /// What a monitor takes, assumed, bytes.
    pub monitor_bytes: u64,
    /// What a manager takes, assumed, bytes.
    pub manager_bytes: u64,
    /// OSDs on the board.
    pub osds: u32,
    /// `osd_memory_target` that fits beside a monitor and a manager, bytes; absent: none fits.
    pub target_bytes: Option<u64>,
    /// The same on a board that only has OSDs.
    pub target_without_monitor_bytes: Option<u64>,
    /// Whether the memory is enough.
    pub fit: Fit,
    /// That in words.
    pub words: String,
}

/// How a board's memory fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// It does not.
    TooSmall,
    /// Only without a monitor and a manager on the board.
    OnlyWithoutMonitor,
    /// Below what Ceph recommends.
    Tight,
    /// As recommended.
    Good,
}

/// The memory of each kind of board.
pub fn memory(design: &Design) -> Vec<BoardMemory> {
    design.groups.iter().map(of_group).collect()
}

fn of_group(group: &Group) -> BoardMemory {
    let total = group.board.memory_bytes;
    let osds = group.disks.max(1);
    let target = |reserved: u64| {
        let left = total.saturating_sub(reserved) as f64 / f64::from(osds) / (1.0 + SPARE);
        // Whole MiB, for a person to type.
        let target = (left as u64 / MIB * MIB).min(DEFAULT_TARGET);
        (target >= MIN_TARGET).then_some(target)
    };
    let beside = target(SYSTEM_BYTES + MONITOR_BYTES + MANAGER_BYTES);
    let alone = target(SYSTEM_BYTES);
    let fit = match (beside, alone) {
        (None, None) => Fit::TooSmall,
        (None, Some(_)) => Fit::OnlyWithoutMonitor,
        (Some(target), _) if target < RECOMMENDED_TARGET => Fit::Tight,
        (Some(_), _) => Fit::Good,
    };
    let needed = |reserved: u64| {
        let each = (MIN_TARGET as f64 * (1.0 + SPARE)) as u64;
        reserved + each * u64::from(osds)
    };
    let own = SYSTEM_BYTES;
    let with_others = SYSTEM_BYTES + MONITOR_BYTES + MANAGER_BYTES;
    let each = match osds {
        1 => "one OSD".to_string(),
        n => format!("{n} OSDs"),
    };
    let words = match fit {
        Fit::TooSmall => format!(
            "This board is too small, because {each} at the minimum of 896 MiB with 20 % spare and {} for the system take \
             {}, and it has {}.",
            assumed(&bytes_iec(own)),
            bytes_iec(needed(own)),
            bytes_iec(total)
        ),
        Fit::OnlyWithoutMonitor => format!(
            "Too small for monitor and manager beside {each}: that takes {}, and it has {}. OSDs alone fit with {} MiB \
             each. Run monitors and managers on other boards.",
            bytes_iec(needed(with_others)),
            bytes_iec(total),
            alone.unwrap_or(0) / MIB
        ),
        Fit::Tight => "It runs, but below the 2 GiB per OSD that Ceph recommends: expect slow recovery, and OSDs killed \
                       for memory when placement groups are many."
            .to_string(),
        Fit::Good => "More than the 2 GiB per OSD below which Ceph does not recommend to go, with 20 % spare; its default is 4 GiB.".to_string(),
    };
    BoardMemory {
        board: group.board.name.clone(),
        memory_bytes: total,
        basis: group.board.memory_basis,
        system_bytes: SYSTEM_BYTES,
        monitor_bytes: MONITOR_BYTES,
        manager_bytes: MANAGER_BYTES,
        osds,
        target_bytes: beside,
        target_without_monitor_bytes: alone,
        fit,
        words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wishes::Wishes;

    fn fit(board: &str, disks: u32) -> BoardMemory {
        let wishes = Wishes {
            nodes: Some(4),
            board: Some(board.into()),
            disks: Some(disks),
            disk: Some("1TB".into()),
            ..Wishes::default()
        };
        memory(&wishes.design(None).unwrap()).remove(0)
    }

    #[test]
    fn small_boards_are_refused_with_the_sum() {
        let found = fit("pi3b+", 1);
        assert_eq!(found.fit, Fit::TooSmall);
        assert_eq!(found.target_bytes, None);
        insta::assert_snapshot!(found.words, @"This board is too small, because one OSD at the minimum of 896 MiB with 20 % spare and ~350 MiB for the system take 1.39 GiB, and it has 962 MiB.");
        assert_eq!(fit("pi4-2gb", 1).fit, Fit::OnlyWithoutMonitor);
        assert_eq!(fit("pi4-4gb", 1).fit, Fit::Good);
        assert_eq!(fit("pi4-4gb", 2).fit, Fit::Tight);
        assert_eq!(fit("pi4-8gb", 1).target_bytes, Some(DEFAULT_TARGET));
    }

    #[test]
    fn targets_and_what_they_may_pass_fit_into_the_board() {
        for board in crate::boards::known() {
            for disks in 1..5 {
                let found = fit(&board.kind, disks);
                let Some(target) = found.target_bytes else {
                    continue;
                };
                let peak = target as f64 * 1.2 * f64::from(disks);
                let others = SYSTEM_BYTES + MONITOR_BYTES + MANAGER_BYTES;
                assert!(target >= MIN_TARGET);
                assert!(peak as u64 + others <= found.memory_bytes, "{}", board.kind);
            }
        }
    }
}
