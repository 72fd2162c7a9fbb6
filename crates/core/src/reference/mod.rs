//! Published figures of small boards, to compare one's own with.
//!
//! They are what articles printed: no intervals, not all conditions, boards and systems of their time. The
//! numbers are in `figures`; here is how they are found and compared.

mod figures;
pub mod kinds;

use serde::Serialize;

use crate::compare::{Figure, Named, Source, Subject, SubjectJob, Unit};
use crate::machine::{HopKind, Machine};
use crate::result::Access;
use crate::spec::{Direction, Operation, Pattern};
use crate::title::block;

pub use figures::{ASIDES, REFERENCES};

/// What was measured on one board and device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reference {
    /// Short unique name for the command line.
    pub id: &'static str,
    /// The board.
    pub board: &'static str,
    /// What kind of device it was.
    pub kind: DeviceKind,
    /// The device.
    pub device: &'static str,
    /// The filesystem, where it was said.
    pub filesystem: Option<&'static str>,
    /// The tool and its options.
    pub tool: &'static str,
    /// Where and when it was published.
    pub source: &'static str,
    /// What the source does not say or says oddly.
    pub note: &'static str,
    /// The figures.
    pub figures: &'static [Published],
}

/// One published figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    /// Name of the job.
    pub job: &'static str,
    /// Read or write.
    pub direction: Direction,
    /// Sequential or random.
    pub pattern: Pattern,
    /// Bytes per operation, where it was said.
    pub block_bytes: Option<u32>,
    /// Operations in flight, where it was said.
    pub queue_depth: Option<u32>,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

/// A published figure that no job of a suite measures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Aside {
    /// The board.
    pub board: &'static str,
    /// What was measured.
    pub what: &'static str,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Where and when it was published.
    pub source: &'static str,
}

/// Kinds of devices, as far as references are told apart by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// An SD card.
    Card,
    /// A disk behind USB.
    Usb,
    /// A network block device.
    Network,
}

impl Reference {
    /// The reference of that name.
    pub fn by_id(id: &str) -> Option<&'static Reference> {
        REFERENCES.iter().find(|reference| reference.id == id)
    }

    /// The reference that is nearest in kind: the same kind of device first, then the same model of the
    /// board, then its neighbour. `device` is the kernel name of the device that was measured.
    pub fn nearest(machine: &Machine, device: Option<&str>) -> &'static Reference {
        let kind = device.and_then(|device| kind_of(machine, device));
        let board = machine.board.model.text().unwrap_or_default();
        let likeness = |reference: &Reference| {
            let device = if kind == Some(reference.kind) { 10 } else { 0 };
            device + board_likeness(board, reference.board)
        };
        let mut best = &REFERENCES[0];
        for reference in &REFERENCES[1..] {
            if likeness(reference) > likeness(best) {
                best = reference;
            }
        }
        best
    }

    /// The reference as something to compare with.
    pub fn subject(&self) -> Subject {
        let named = |name: &str, value: Option<&str>| Named {
            name: name.into(),
            value: value.map(str::to_string),
        };
        Subject {
            name: self.id.into(),
            source: Source::Published,
            when: None,
            facts: vec![
                named("board", Some(self.board)),
                named("device", Some(self.device)),
                named("filesystem", self.filesystem),
                named("version", Some(self.tool)),
            ],
            jobs: self.figures.iter().map(Published::job).collect(),
            doubts: Vec::new(),
            against: None,
            picture: None,
            note: Some(format!(
                "{}; no intervals were published{}",
                self.source,
                if self.note.is_empty() {
                    String::new()
                } else {
                    format!("; {}", self.note)
                }
            )),
        }
    }
}

impl Published {
    fn job(&self) -> SubjectJob {
        let size = self
            .block_bytes
            .map_or(String::new(), |bytes| block(bytes) + " ");
        let order = match self.pattern {
            Pattern::Sequential => "sequential",
            Pattern::Random => "random",
        };
        let verb = match self.direction {
            Direction::Read => "reads",
            Direction::Write => "writes",
        };
        let title = match self.job.split('-').next() {
            Some("rewrite") => format!("{size}sequential rewrites"),
            Some("reread") => format!("{size}sequential rereads"),
            _ => format!("{size}{order} {verb}"),
        };
        SubjectJob {
            name: self.job.into(),
            title,
            direction: self.direction,
            pattern: self.pattern,
            block_bytes: self.block_bytes,
            queue_depth: self.queue_depth,
            copies: 1,
            commit: false,
            access: Some(Access::Direct),
            content: None,
            on: None,
            is_shared: false,
            operation: Operation::Block,
            throughput: Figure::bare(self.bytes_per_second),
            unit: Unit::BytesPerSecond,
            p50_ns: None,
            p99_ns: None,
            doubts: Vec::new(),
        }
    }
}

/// 4 for the same model, 2 for the same generation, 1 for any Raspberry Pi.
pub(crate) fn board_likeness(ours: &str, published: &str) -> u32 {
    let generation = |name: &str| {
        let rest = name.strip_prefix("Raspberry Pi ")?;
        rest.chars().next().filter(char::is_ascii_digit)
    };
    if published == ours || ours.starts_with(&format!("{published} ")) {
        return 4;
    }
    match (generation(ours), generation(published)) {
        (Some(a), Some(b)) if a == b => 2,
        (Some(_), Some(_)) => 1,
        _ => 0,
    }
}

fn kind_of(machine: &Machine, device: &str) -> Option<DeviceKind> {
    if device.starts_with("nbd") {
        return Some(DeviceKind::Network);
    }
    let disk = machine.disks_below(device).into_iter().next()?;
    if disk.mmc.is_some() {
        return Some(DeviceKind::Card);
    }
    let over = |kind| disk.path.iter().any(|hop| hop.kind == kind);
    if over(HopKind::Network) {
        return Some(DeviceKind::Network);
    }
    over(HopKind::UsbDevice).then_some(DeviceKind::Usb)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn names_are_unique_and_figures_plausible() {
        for (i, reference) in REFERENCES.iter().enumerate() {
            assert!(REFERENCES[..i].iter().all(|other| other.id != reference.id));
            assert!(!reference.figures.is_empty());
            for figure in reference.figures {
                let rate = figure.bytes_per_second;
                assert!((1e5..1e8).contains(&rate), "{}: {rate}", reference.id);
            }
        }
    }

    #[test]
    fn the_same_kind_of_device_is_nearer_than_the_same_board() {
        let machine = fixture::slow_sd_card_run().machine;
        let card = Reference::nearest(&machine, Some("mmcblk0p2"));
        assert_eq!((card.kind, card.id), (DeviceKind::Card, "pi3-card-f2fs"));
        let disk = Reference::nearest(&machine, Some("sda"));
        assert_eq!(disk.id, "pi3-usb-ssd");
        let network = Reference::nearest(&machine, Some("nbd0"));
        assert_eq!(network.kind, DeviceKind::Network);
    }

    #[test]
    fn a_model_is_not_taken_for_its_neighbour() {
        assert_eq!(
            board_likeness("Raspberry Pi 3 Model B Rev 1.2", "Raspberry Pi 3 Model B"),
            4
        );
        assert_eq!(
            board_likeness("Raspberry Pi 3 Model B Plus Rev 1.3", "Raspberry Pi 3+"),
            2
        );
        assert_eq!(
            board_likeness("Raspberry Pi 5 Model B", "Raspberry Pi 2"),
            1
        );
        assert_eq!(board_likeness("QEMU", "Raspberry Pi 2"), 0);
    }
}
