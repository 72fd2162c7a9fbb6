//! Which disks a resumed change may overwrite without asking again.

use crate::steps::{Format, PartitionDisk};
use std::path::PathBuf;

use crate::fixture::plans::small_plan;
use crate::plan::Step;
use crate::volume::{FilesystemKind, NewFilesystem, PartitionRole, Place, TableKind};

use crate::plan::Plan;

use super::*;

const MIB: u64 = 1 << 20;
const DISK_BYTES: u64 = 64 * MIB;
const OURS: &str = "3f1e9d0a-1c2b-4d5e-8f90-a1b2c3d4e5f6";
const FOREIGN: &str = "77777777-1c2b-4d5e-8f90-a1b2c3d4e5f6";

/// A stick without any number of its own, as it was in the boot "one".
fn stick() -> DiskIdentity {
    DiskIdentity {
        path: "/dev/sda".into(),
        size_bytes: DISK_BYTES,
        model: Some("Generic Flash Disk".into()),
        serial: None,
        wwn: None,
        diskseq: Some(7),
        boot_id: Some("one".into()),
        contents: vec!["an ext4 filesystem".into()],
        confirmation: "usb-Generic_Flash_Disk-0:0".into(),
    }
}

fn plugged_in() -> Disk {
    Disk {
        name: "sda".into(),
        path: "/dev/sda".into(),
        kind: BlockKind::Disk,
        size_bytes: DISK_BYTES,
        model: Some("Generic Flash Disk".into()),
        serial: None,
        wwn: None,
        diskseq: Some(7),
        partitions: Vec::new(),
        holders: Vec::new(),
    }
}

fn given(ends: Option<&str>) -> GivenAway {
    GivenAway {
        disk: "/dev/sda".into(),
        words: stick().confirmation,
        ends: ends.map(str::to_string),
        boot: Some("one".into()),
    }
}

/// In the boot after the one in which the disk was given away.
fn seen(is_same_disk: bool, ends: &str, is_own: bool) -> Evidence {
    Evidence { is_same_disk, boot: Some("two".into()), ends: ends.into(), is_own }
}

#[test]
fn a_disk_of_the_same_model_is_not_the_one_that_was_given_away() {
    let another_boot = is_same_disk(&stick(), &plugged_in(), Some("two"));
    assert!(!another_boot);
    let mut evidence = seen(another_boot, "of B", false);
    let is_covered = |ends, evidence: &Evidence| covers(Some(&given(ends)), &stick(), evidence);
    assert!(!is_covered(Some("of A"), &evidence));
    evidence.ends = "of A".into();
    assert!(!is_covered(Some("of A"), &evidence), "two new sticks are equal to the byte");
    evidence.boot = Some("one".into());
    assert!(is_covered(Some("of A"), &evidence), "nothing has changed since it was asked about");
    assert!(!is_covered(None, &evidence), "a journal of before cannot prove it");
    let mut of_before = given(Some("of A"));
    (of_before.boot, evidence.boot) = (None, None);
    assert!(!covers(Some(&of_before), &stick(), &evidence), "no boot is no proof");
}

#[test]
fn a_disk_that_did_not_leave_is_the_one_that_was_given_away() {
    assert!(is_same_disk(&stick(), &plugged_in(), Some("one")));
    let mut again = plugged_in();
    again.diskseq = Some(8);
    assert!(!is_same_disk(&stick(), &again, Some("one")), "it was plugged in again");
    let mut unknown = stick();
    (unknown.diskseq, unknown.boot_id) = (None, None);
    again.diskseq = None;
    assert!(!is_same_disk(&unknown, &again, None), "nothing is no proof");
    let mut numbered = stick();
    numbered.serial = Some("4C530001".into());
    assert!(
        !is_same_disk(&numbered, &plugged_in(), Some("two")),
        "enclosures of one make say the same number"
    );
    let mut network = plugged_in();
    network.kind = BlockKind::Nbd;
    assert!(is_same_disk(&stick(), &network, Some("two")), "by its address");
    assert!(covers(Some(&given(None)), &stick(), &seen(true, "new", false)));
}

#[test]
fn a_blank_disk_that_was_used_since_is_asked_about() {
    // Nothing was confirmed, since nothing was on it.
    assert!(!covers(None, &stick(), &seen(true, "current", false)));
    assert!(covers(None, &stick(), &seen(true, "current", true)), "what this change made");
    let mut other = given(Some("current"));
    other.words = "another disk".into();
    assert!(!covers(Some(&other), &stick(), &seen(true, "current", false)));
}

fn table() -> PartitionTable {
    PartitionTable {
        kind: TableKind::Gpt { disk_guid: "11111111-2222-4333-8444-555555555555".into() },
        partitions: vec![Partition {
            number: 1,
            start_bytes: MIB,
            size_bytes: 32 * MIB,
            role: PartitionRole::Linux,
            partuuid: "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee".into(),
        }],
    }
}

fn ext4(uuid: &str) -> NewFilesystem {
    NewFilesystem {
        kind: FilesystemKind::Ext4,
        uuid: uuid.into(),
        label: String::new(),
        subvolumes: Vec::new(),
        mount_options: String::new(),
    }
}

fn plan(actions: Vec<Action>) -> Plan {
    let steps = actions.into_iter().map(|action| Step { id: "x".into(), why: "x".into(), action });
    Plan { steps: steps.collect(), ..small_plan() }
}

fn divided() -> Plan {
    let (disk, filesystem) = (stick(), ext4(OURS));
    let place = Place::Partition {
        disk: stick(),
        number: 1,
        partuuid: table().partitions[0].partuuid.clone(),
    };
    let table = table();
    plan(vec![
        Action::Partition(PartitionDisk { disk, table }),
        Action::Format(Format { place, filesystem }),
    ])
}

/// The whole disk after the first `sectors` of the table were written to it, of a disk that was blank.
fn cut_after(sectors: usize) -> Vec<u8> {
    let mut disk = vec![0; DISK_BYTES as usize];
    let extents = table::extents(&table(), DISK_BYTES, 512).unwrap();
    let pieces = extents.iter().flat_map(|extent| {
        let pieces = extent.bytes.chunks(SECTOR_BYTES).enumerate();
        pieces.map(|(i, piece)| (extent.offset_bytes as usize + i * SECTOR_BYTES, piece))
    });
    let pieces = pieces.filter(|(_, piece)| !all_zero(piece));
    for (at, piece) in pieces.take(sectors) {
        disk[at..at + piece.len()].copy_from_slice(piece);
    }
    disk
}

fn is_own_disk(plan: &Plan, disk: &[u8], on: &[Signature]) -> bool {
    let end = END_BYTES;
    let window = Window::new(DISK_BYTES, &disk[..end], &disk[disk.len() - end..]);
    is_own(&plan.steps, &stick(), &window, &|_| Some(on.to_vec()))
}

fn filesystem(uuid: &str) -> Signature {
    Signature {
        kind: Kind::Filesystem("ext4"),
        offset_bytes: 1080,
        label: None,
        uuid: Some(uuid.to_uppercase()),
        size_bytes: None,
    }
}

#[test]
fn a_table_of_this_change_is_its_own_however_far_it_was_written() {
    let whole = (0..).find(|sectors| cut_after(*sectors) == cut_after(sectors + 1)).unwrap();
    assert!(whole > 3, "two tables and a protective one");
    for sectors in 1..=whole {
        assert!(is_own_disk(&divided(), &cut_after(sectors), &[]), "{sectors} sectors");
    }
    assert!(!is_own_disk(&divided(), &cut_after(0), &[]), "a blank disk proves nothing");
    let mut used = cut_after(2);
    used[1080] = 0x53;
    assert!(!is_own_disk(&divided(), &used, &[]), "something else is there as well");
}

#[test]
fn what_was_put_on_the_partition_since_is_not_this_changes_own() {
    let disk = cut_after(usize::MAX);
    assert!(is_own_disk(&divided(), &disk, &[filesystem(OURS)]));
    assert!(!is_own_disk(&divided(), &disk, &[filesystem(FOREIGN)]));
    let window = Window::new(DISK_BYTES, &disk[..END_BYTES], &disk[disk.len() - END_BYTES..]);
    assert!(!is_own(&divided().steps, &stick(), &window, &|_| None), "it cannot be read");
}

#[test]
fn a_disk_without_a_table_is_its_own_by_its_filesystem() {
    let place = Place::Disk { disk: stick() };
    let made = |uuid| {
        let (place, filesystem) = (place.clone(), ext4(uuid));
        plan(vec![Action::Format(Format { place, filesystem })])
    };
    let mut disk = vec![0; DISK_BYTES as usize];
    assert!(!is_own_disk(&made(OURS), &disk, &[]));
    disk[1080..1082].copy_from_slice(&[0x53, 0xef]);
    let digits: Vec<u8> =
        (0..16).map(|i| u8::from_str_radix(&plain(OURS)[2 * i..2 * i + 2], 16).unwrap()).collect();
    disk[1128..1144].copy_from_slice(&digits);
    let found = signature::sniff(&Window::whole(&disk[..8 << 20]));
    assert!(found.iter().any(|found| found.uuid.is_some()), "{found:?}");
    assert!(is_own_disk(&made(OURS), &disk, &[]));
    assert!(!is_own_disk(&made(FOREIGN), &disk, &[]));
}

#[test]
fn a_journal_of_before_loads_without_a_fingerprint() {
    let old = r#"{"record":"confirmed","disk":"/dev/sda","words":"S123"}"#;
    let record = serde_json::from_str(old).unwrap();
    let crate::plan::journal::Record::Confirmed { ends, disk, .. } = &record else {
        panic!("{record:?}");
    };
    assert_eq!((ends, disk), (&None, &PathBuf::from("/dev/sda")));
    assert_eq!(serde_json::to_string(&record).unwrap(), old);
}
