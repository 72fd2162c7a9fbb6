//! What is built is read back by the reader that the guard uses.

use super::*;
use crate::volume::PartitionRole;

const MIB: u64 = 1 << 20;

fn partition(number: u32, start_mib: u64, size_mib: u64, partuuid: &str) -> Partition {
    Partition {
        number,
        start_bytes: start_mib * MIB,
        size_bytes: size_mib * MIB,
        role: PartitionRole::Linux,
        partuuid: partuuid.into(),
    }
}

fn mbr_table() -> PartitionTable {
    PartitionTable {
        kind: TableKind::Mbr { disk_id: 0x3b0a_02d1 },
        partitions: vec![partition(1, 1, 4, "3b0a02d1-01"), partition(3, 8, 2, "3b0a02d1-03")],
    }
}

fn gpt_table() -> PartitionTable {
    PartitionTable {
        kind: TableKind::Gpt { disk_guid: "01234567-89ab-4def-8123-456789abcdef".into() },
        partitions: vec![
            partition(1, 1, 4, "11111111-2222-4333-8444-555555555555"),
            partition(2, 8, 2, "66666666-7777-4888-9999-aaaaaaaaaaaa"),
        ],
    }
}

fn image(table: &PartitionTable, device_bytes: u64, block_bytes: u32) -> Vec<u8> {
    let mut image = vec![0; device_bytes as usize];
    for extent in extents(table, device_bytes, block_bytes).expect("fits") {
        assert_eq!(extent.bytes.len() % block_bytes as usize, 0);
        let at = extent.offset_bytes as usize;
        image[at..at + extent.bytes.len()].copy_from_slice(&extent.bytes);
    }
    image
}

#[test]
fn both_kinds_are_read_back_as_built_with_both_blocks() {
    for block_bytes in [512, 4096] {
        for table in [mbr_table(), gpt_table()] {
            let image = image(&table, 16 * MIB, block_bytes);
            let window = Window::whole(&image).with_logical_block(block_bytes);
            assert_eq!(difference(&table, &window), None);
            let found = signature::partition_table(&window).expect("there is one");
            let places: Vec<(u32, u64, u64, Option<String>)> = found
                .partitions
                .into_iter()
                .map(|p| (p.number, p.start_bytes, p.size_bytes, p.partuuid))
                .collect();
            let expected: Vec<(u32, u64, u64, Option<String>)> = table
                .partitions
                .iter()
                .map(|p| (p.number, p.start_bytes, p.size_bytes, Some(p.partuuid.clone())))
                .collect();
            assert_eq!(places, expected);
            let id = match &table.kind {
                TableKind::Mbr { disk_id } => format!("{disk_id:08x}"),
                TableKind::Gpt { disk_guid } => disk_guid.clone(),
            };
            assert_eq!(found.id, Some(id));
        }
    }
}

#[test]
fn a_cut_between_any_two_writes_leaves_no_wrong_table() {
    let table = gpt_table();
    let all = extents(&table, 16 * MIB, 512).expect("fits");
    for done in 0..=all.len() {
        let mut image = vec![0; 16 << 20];
        for extent in &all[..done] {
            let at = extent.offset_bytes as usize;
            image[at..at + extent.bytes.len()].copy_from_slice(&extent.bytes);
        }
        let window = Window::whole(&image);
        let listed = signature::partitions(&window);
        let expected = if done < 2 { 0 } else { 2 };
        assert_eq!(listed.len(), expected, "after {done} writes");
        assert_eq!(difference(&table, &window).is_none(), done == all.len());
    }
}

#[test]
fn a_difference_is_said_in_words_and_boot_code_is_none() {
    let table = mbr_table();
    let mut bytes = image(&table, 16 * MIB, 512);
    bytes[..440].fill(0x90);
    assert_eq!(difference(&table, &Window::whole(&bytes)), None);
    bytes[454] ^= 1;
    let said = difference(&table, &Window::whole(&bytes)).expect("differs");
    assert!(said.contains("1: 3b0a02d1-01"), "{said}");
    let other = image(&gpt_table(), 16 * MIB, 512);
    let said = difference(&table, &Window::whole(&other)).expect("differs");
    assert_eq!(said, "there is a GPT partition table");
    let empty = vec![0; 16 << 20];
    let said = difference(&table, &Window::whole(&empty)).expect("differs");
    assert_eq!(said, "there is no partition table");
}

#[test]
fn tables_that_cannot_be_are_refused() {
    type Change = fn(&mut PartitionTable);
    let changes: [(Change, &str); 8] = [
        (|table| table.partitions.clear(), "no partition"),
        (|table| table.partitions[1].number = 1, "number 1"),
        (|table| table.partitions[1].number = 5, "number 5"),
        (|table| table.partitions[1].start_bytes = 2 * MIB, "does not lie"),
        (|table| table.partitions[1].size_bytes = 64 * MIB, "does not lie"),
        (|table| table.partitions[0].size_bytes = 1000, "whole blocks"),
        (|table| table.partitions[0].partuuid = "x".into(), "cannot be 'x'"),
        (|table| table.kind = TableKind::Mbr { disk_id: 0 }, "cannot be"),
    ];
    for (change, words) in changes {
        let mut table = mbr_table();
        change(&mut table);
        let error = extents(&table, 16 * MIB, 512).expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    }
    // The backup of a GPT is at the end.
    let mut table = gpt_table();
    table.partitions[1].size_bytes = 8 * MIB;
    assert!(matches!(check(&table, 16 * MIB, 512), Err(TableError::OutOfPlace { .. })));
}

#[test]
fn an_mbr_ends_where_its_counting_ends() {
    let mut table = mbr_table();
    table.partitions[1].start_bytes = 3 << 40;
    let error = extents(&table, 4 << 40, 512).expect_err("too far");
    assert_eq!(error, TableError::BeyondMbr { number: 3 });
    assert!(extents(&table, 4 << 40, 4096).is_ok());
}

#[test]
fn remains_are_at_both_ends() {
    assert_eq!(remains(100 * MIB), [(0, MIB), (99 * MIB, MIB)]);
    assert_eq!(remains(MIB + 5), [(0, MIB + 5)]);
}
