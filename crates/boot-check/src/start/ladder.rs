//! Every medium that a board may start from, with the last stage that it reached and one reason.

use rubus_boot::chain::{ChainFacts, Outcome, Stage, StartChain};
use rubus_boot::medium::{Certainty, Mode};
use rubus_boot::model::Kernels;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine};

/// How far a medium gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The medium starts a system.
    Starts,
    /// It stops behind this stage.
    StopsBehind(Stage),
    /// What follows is not known.
    NotCertainBehind(Stage),
}

/// A medium or board of the ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// The medium or the board: "mmcblk0", "pi4".
    pub name: String,
    /// Whether the start that was followed is this one.
    pub is_followed: bool,
    pub reached: Reached,
    pub certainty: Certainty,
    /// The reason, in words.
    pub reason: String,
}

/// The rung of a start that was followed.
pub(super) fn rung(name: &str, is_followed: bool, chain: &StartChain) -> Rung {
    let reached = match chain.outcome() {
        Outcome::Starts => Reached::Starts,
        Outcome::StopsAt(stage) => Reached::StopsBehind(stage.before()),
        Outcome::NotCertainAfter(stage) => Reached::NotCertainBehind(stage),
    };
    let reason = match chain.deciding() {
        Some(link) => link.stop.as_ref().map_or(link.found.clone(), |stop| stop.why.clone()),
        None => chain.links().last().map_or(String::new(), |link| link.found.clone()),
    };
    Rung { name: name.into(), is_followed, reached, certainty: chain.certainty(), reason }
}

/// The media of a machine: the one that it started from, and every other disk that its firmware could look at.
pub(super) fn of_machine(machine: &Machine, facts: &ChainFacts, chain: &StartChain) -> Vec<Rung> {
    if facts.model.kernels == Kernels::Named {
        return Vec::new();
    }
    let mut disks: Vec<(usize, &BlockDevice)> =
        disks(machine).map(|disk| (place_of(facts, disk), disk)).collect();
    disks.sort_by_key(|(place, _)| *place);
    let rungs = disks.into_iter().map(|(_, disk)| {
        if facts.medium.disks.contains(&disk.name) {
            rung(&disk.name, true, chain)
        } else {
            other(machine, facts, disk)
        }
    });
    rungs.collect()
}

fn disks(machine: &Machine) -> impl Iterator<Item = &BlockDevice> {
    let is_medium = |disk: &&BlockDevice| {
        let is_disk = disk.kind == BlockKind::Disk && disk.parent.is_none();
        // On which way a disk is reached may not be known.
        let may_be_usb = Mode::Usb.holds(disk) != Some(false);
        is_disk && (mode_of(disk).is_some() || may_be_usb)
    };
    machine.block_devices.iter().filter(is_medium)
}

/// What kind of medium a disk is.
pub(super) fn mode_of(disk: &BlockDevice) -> Option<Mode> {
    [Mode::Card, Mode::Usb, Mode::Nvme].into_iter().find(|mode| mode.holds(disk) == Some(true))
}

/// Where in `BOOT_ORDER` a disk comes; those that are not in it come last.
fn place_of(facts: &ChainFacts, disk: &BlockDevice) -> usize {
    let modes = facts.eeprom.boot_order().map_or(Vec::new(), |order| order.modes());
    let own = mode_of(disk);
    let place = modes.iter().position(|mode| Some(*mode) == own);
    place.unwrap_or(modes.len())
}

/// A disk that this start did not use.
fn other(machine: &Machine, facts: &ChainFacts, disk: &BlockDevice) -> Rung {
    let stopped = |stage: Stage, reason: String| Rung {
        name: disk.name.clone(),
        is_followed: false,
        reached: Reached::StopsBehind(stage),
        certainty: Certainty::Certain,
        reason,
    };
    let order = facts.eeprom.boot_order();
    if let (Some(order), Some(mode)) = (order, mode_of(disk)) {
        if !order.modes().contains(&mode) {
            let reason = format!("BOOT_ORDER={} does not name {}", order.text(), mode.words());
            return stopped(Stage::Firmware, reason);
        }
    }
    let of_disk = |part: &&BlockDevice| part.parent.as_deref() == Some(&disk.name);
    let parts: Vec<&BlockDevice> = machine.block_devices.iter().filter(of_disk).collect();
    let may_be_fat = |part: &&&BlockDevice| part.content.text().is_none_or(|kind| kind == "vfat");
    match parts.iter().find(may_be_fat) {
        None => stopped(Stage::Medium, "it has no FAT partition".into()),
        Some(part) => Rung {
            name: disk.name.clone(),
            is_followed: false,
            reached: Reached::NotCertainBehind(Stage::Medium),
            certainty: Certainty::NotKnown,
            reason: format!(
                "the files of {} were not looked at; see sudo rubus boot /dev/{}",
                part.name, disk.name
            ),
        },
    }
}
