//! Published figures of small boards, to compare one's own with.
//!
//! They are what articles printed: no intervals, not all conditions, boards and systems of their time. The
//! numbers are in `figures`; here is how they are found and compared.

#![deny(clippy::disallowed_methods)]

use crate::compare::{Figure, Named, Source, Subject, SubjectJob, Unit};
use rubus_vocabulary::machine::{HopKind, Machine};
use rubus_vocabulary::result::Access;
use rubus_vocabulary::spec::{Direction, Operation, Pattern};
use rubus_vocabulary::subject_job::Scope;
use rubus_vocabulary::units::block;

pub use rubus_vocabulary::published::figures::{ASIDES, REFERENCES};
pub use rubus_vocabulary::published::{Aside, DeviceKind, Published, Reference, board_likeness};

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
pub fn subject(reference: &Reference) -> Subject {
    let named = |name: &str, value: Option<&str>| Named {
        name: name.into(),
        value: value.map(str::to_string),
    };
    Subject {
        name: reference.id.into(),
        source: Source::Published,
        when: None,
        facts: vec![
            named("board", Some(reference.board)),
            named("device", Some(reference.device)),
            named("filesystem", reference.filesystem),
            named("version", Some(reference.tool)),
        ],
        jobs: reference.figures.iter().map(job).collect(),
        doubts: Vec::new(),
        against: None,
        picture: None,
        is_of_guest: false,
        note: Some(format!(
            "{}; no intervals were published{}",
            reference.source,
            if reference.note.is_empty() { String::new() } else { format!("; {}", reference.note) }
        )),
    }
}

fn job(figure: &Published) -> SubjectJob {
    let size = figure.block_bytes.map_or(String::new(), |bytes| block(bytes) + " ");
    let order = match figure.pattern {
        Pattern::Sequential => "sequential",
        Pattern::Random => "random",
    };
    let verb = match figure.direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    };
    let title = match figure.job.split('-').next() {
        Some("rewrite") => format!("{size}sequential rewrites"),
        Some("reread") => format!("{size}sequential rereads"),
        _ => format!("{size}{order} {verb}"),
    };
    SubjectJob {
        section: None,
        name: figure.job.into(),
        title,
        direction: figure.direction,
        pattern: figure.pattern,
        block_bytes: figure.block_bytes,
        queue_depth: figure.queue_depth,
        copies: 1,
        commit: false,
        sync: None,
        access: Some(Access::Direct),
        content: None,
        on: None,
        is_shared: false,
        beside: None,
        operation: Operation::Block,
        scope: Scope::OneDirection,
        stated: None,
        throughput: Figure::bare(figure.bytes_per_second),
        unit: Unit::BytesPerSecond,
        p50_ns: None,
        p99_ns: None,
        doubts: Vec::new(),
    }
}

fn kind_of(machine: &Machine, device: &str) -> Option<DeviceKind> {
    if device.starts_with("nbd") {
        return Some(DeviceKind::Network);
    }
    let disk = machine.measured_disk(device)?;
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
    use rubus_fixtures as fixture;

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
        let card = nearest(&machine, Some("mmcblk0p2"));
        assert_eq!((card.kind, card.id), (DeviceKind::Card, "pi3-card-f2fs"));
        let disk = nearest(&machine, Some("sda"));
        assert_eq!(disk.id, "pi3-usb-ssd");
        let network = nearest(&machine, Some("nbd0"));
        assert_eq!(network.kind, DeviceKind::Network);
    }

    #[test]
    fn a_model_is_not_taken_for_its_neighbour() {
        assert_eq!(board_likeness("Raspberry Pi 3 Model B Rev 1.2", "Raspberry Pi 3 Model B"), 4);
        assert_eq!(board_likeness("Raspberry Pi 3 Model B Plus Rev 1.3", "Raspberry Pi 3+"), 2);
        assert_eq!(board_likeness("Raspberry Pi 5 Model B", "Raspberry Pi 2"), 1);
        assert_eq!(board_likeness("QEMU", "Raspberry Pi 2"), 0);
    }
}
