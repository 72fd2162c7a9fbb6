//! How much of what it can carry a pipe carries: a disk by what was measured of it, a bus by what was measured or by
//! rule of thumb.

use serde::{Deserialize, Serialize};

use super::rates::{DiskLook, LinkRates};
use rubus_runs::history::RunSummary;
use rubus_vocabulary::machine::{BlockKind, Machine};

/// Where a capacity comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Basis {
    /// Measured on this machine.
    Measured {
        /// Number of the run in the history.
        run: i64,
        /// When, RFC 3339, UTC.
        at: String,
    },
    /// What such a bus carries in practice.
    RuleOfThumb {
        /// What it rests on.
        why: String,
    },
}

/// Something with a capacity, and what goes through it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pipe {
    /// For people: "mmcblk0", "USB 2 hub".
    pub name: String,
    /// Disks and links whose traffic goes through it.
    pub members: Vec<String>,
    /// Bytes per second that it carries towards the processor, when nothing else goes on.
    pub read_bytes_per_second: Option<f64>,
    /// The same the other way.
    pub written_bytes_per_second: Option<f64>,
    /// Where that comes from.
    pub basis: Basis,
}

/// How much of it was used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PipeUse {
    /// The pipe, as the picture of the machine calls it: a disk, a bus, a link.
    pub name: String,
    /// Disks and links whose traffic goes through it.
    pub members: Vec<String>,
    /// Bytes per second through it, both ways together.
    pub bytes_per_second: f64,
    /// Share of the time that this traffic would have kept it busy at the measured speeds; above 1 when it was faster than
    /// it was ever measured.
    pub used: f64,
    /// Where the capacity comes from.
    pub basis: Basis,
}

impl Pipe {
    /// What went through it: the sum over its members of bytes by capacity, for each direction (the utilisation law,
    /// U = X · S). None if a direction with traffic has no known capacity.
    pub fn used(&self, disks: &[DiskLook], links: &[LinkRates]) -> Option<PipeUse> {
        let is_member = |name: &str| self.members.iter().any(|member| member == name);
        let (mut inward, mut outward) = (0.0, 0.0);
        for disk in disks.iter().filter(|disk| is_member(&disk.name)) {
            let rates = disk.rates?;
            inward += rates.read_bytes_per_second;
            outward += rates.written_bytes_per_second;
        }
        for link in links.iter().filter(|link| is_member(&link.name)) {
            inward += link.received_bytes_per_second;
            outward += link.sent_bytes_per_second;
        }
        let time = |traffic: f64, capacity: Option<f64>| match capacity {
            Some(capacity) if capacity > 0.0 => Some(traffic / capacity),
            _ => (traffic == 0.0).then_some(0.0),
        };
        Some(PipeUse {
            name: self.name.clone(),
            members: self.members.clone(),
            bytes_per_second: inward + outward,
            used: time(inward, self.read_bytes_per_second)?
                + time(outward, self.written_bytes_per_second)?,
            basis: self.basis.clone(),
        })
    }

    /// The buses of a machine that several disks or links share.
    pub fn buses(machine: &Machine) -> Vec<Pipe> {
        let usable = machine.shared_buses.iter();
        usable
            .filter_map(|bus| {
                let capacity = bus.usable_bytes_per_second.get()?;
                Some(Pipe {
                    name: bus.name.clone(),
                    members: bus.members.clone(),
                    read_bytes_per_second: Some(capacity),
                    written_bytes_per_second: Some(capacity),
                    basis: Basis::RuleOfThumb {
                        why: bus.usable_bytes_per_second.source().to_string(),
                    },
                })
            })
            .collect()
    }
}

/// What a disk of this machine was measured to carry in large blocks: of the last run that says it, on the disk itself or
/// a part of it. `runs` has the last one first. A run counts if board and model are the same; devices that are another one
/// every time under the same name (loop, network, RAM) have none.
pub fn measured_pipe(machine: &Machine, disk: &str, runs: &[RunSummary]) -> Option<Pipe> {
    let device = machine.device(disk)?;
    let comes_and_goes = [BlockKind::Loop, BlockKind::Nbd, BlockKind::Ram, BlockKind::Zram];
    if device.parent.is_some() || comes_and_goes.contains(&device.kind) {
        return None;
    }
    let is_part = |name: &str| {
        name == disk
            || machine.device(name).is_some_and(|part| part.parent.as_deref() == Some(disk))
    };
    let last = runs.iter().find(|run| {
        run.device.as_deref().is_some_and(is_part)
            && run.board.as_deref() == machine.board.model.text()
            && run.device_model.as_deref() == device.model.text()
            && (run.figures.sequential_read_bytes_per_second.is_some()
                || run.figures.sequential_write_bytes_per_second.is_some())
    })?;
    Some(Pipe {
        name: disk.to_string(),
        members: vec![disk.to_string()],
        read_bytes_per_second: last.figures.sequential_read_bytes_per_second,
        written_bytes_per_second: last.figures.sequential_write_bytes_per_second,
        basis: Basis::Measured { run: last.id.0, at: last.started.clone() },
    })
}
