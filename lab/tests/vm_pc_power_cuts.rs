//! The recipe `desktop` from a plain SD system to a compressed root on a USB disk and back. Wrong disks are refused; what is
//! promised holds after the start, and memory pressure reaches the new swap through zswap. On the way there and back the power
//! is cut before and after the replacement of the command line, after which the board starts another root. Recorded runs are cut
//! at random moments (vm_pc_power_cuts_replayed); `rubus-lab power-cuts` does the same here for every moment.

use std::time::Duration;

use crate::common::desktop::{
    WAIT, is_as_promised, memory_pressure_reaches_the_disk_through_zswap, wrong_disks_are_refused,
};
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::kit::UsbDisk;
use rubus_lab::power_cuts::{Campaign, Moment, Row, Stops, Way, line, run};
use rubus_lab::product::{can_boot, rubus_or_skip};

const TEST: &str = "vm_pc_power_cuts";

#[test]
fn a_move_to_a_usb_disk_survives_power_cuts_on_the_way_there_and_back() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let disk = UsbDisk::as_sold();
    let campaign = Campaign {
        board: Board::Pc,
        rubus,
        export: None,
        change: vec![
            "desktop".into(),
            "device={usb0}".into(),
            "compress=zstd:1".into(),
            WAIT.into(),
            format!("--i-will-lose-everything-on={}", disk.serial),
        ],
        usb: vec![disk],
        prepare: None,
        before: Some(wrong_disks_are_refused),
        after: Some(|board| {
            memory_pressure_reaches_the_disk_through_zswap(board);
            is_as_promised(board);
        }),
        runs: 0,
        stops: Stops::Records,
        // The records before and after it. What is in between is tried with a file that is changed in the same way, below.
        only: vec!["(cmdline-txt)".into()],
        resume_each: 2,
        lengths: Some([Duration::ZERO; 2]),
        jobs: 2,
        seed: 4,
        lossy: None,
        without_flush: None,
        limit: Duration::from_secs(900),
        keep_failures: None,
    };
    let rows = all_good(&campaign);
    for way in [Way::Apply, Way::Undo] {
        let records = cuts(&rows, way, |moment| matches!(moment, Moment::Record(_)));
        assert_eq!(records, 2, "{way:?}");
    }
    let from_disk = |row: &Row| row.booted.ends_with("btrfs");
    assert!(rows.iter().any(|row| from_disk(row) && row.ended == "rubus undo"));
}

/// Runs a campaign, of which every cut must have ended well.
fn all_good(campaign: &Campaign) -> Vec<Row> {
    let mut show = |row: &Row| println!("{}", line(row));
    let rows = run(&Cache::of_this_machine(), campaign, &mut show).unwrap().rows;
    let bad = rows.iter().filter(|row| !row.wrong.is_empty()).map(line);
    let bad: Vec<String> = bad.collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    rows
}

/// How many cuts there were on this way at such moments.
fn cuts(rows: &[Row], way: Way, is_such: fn(&Moment) -> bool) -> usize {
    rows.iter().filter(|row| row.way == way && is_such(&row.moment)).count()
}

/// A file of the boot partition is changed, and another one gets a name that is new.
const PREPARE: &str = "cat >/root/tidy.toml <<'E'
name = \"tidy\"
title = \"Less memory for graphics.\"
[[step]]
do = \"write_file\"
id = \"new\"
why = \"It is a new name.\"
path = \"/boot/firmware/extra.txt\"
text = \"arm_boost=1\"
[[step]]
do = \"set_line\"
id = \"changed\"
why = \"Nobody looks at a screen here.\"
path = \"/boot/firmware/config.txt\"
key = \"gpu_mem\"
value = \"16\"
E
";

#[test]
fn files_on_the_boot_partition_survive_power_cuts() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let lossy = std::env::var(LOSSY).ok().and_then(|seed| seed.parse().ok());
    let campaign = Campaign {
        board: Board::Pc,
        rubus,
        export: None,
        change: vec!["/root/tidy.toml".into()],
        usb: Vec::new(),
        prepare: Some(PREPARE.into()),
        before: None,
        after: None,
        runs: 0,
        stops: Stops::Syncs,
        only: vec!["(changed)".into()],
        resume_each: 2,
        lengths: None,
        jobs: 2,
        seed: 4,
        lossy,
        without_flush: None,
        limit: Duration::from_secs(600),
        keep_failures: None,
    };
    let rows = all_good(&campaign);
    let is_lossy = |row: &Row| !row.unflushed.is_empty();
    assert!(
        lossy.is_none() || rows.iter().any(is_lossy),
        "no cut left anything unflushed: {rows:?}"
    );
    // Records, and in between the flush of the new file, its rename and four flushes behind that.
    for way in [Way::Apply, Way::Undo] {
        let records = cuts(&rows, way, |moment| matches!(moment, Moment::Record(_)));
        let syncs = cuts(&rows, way, |moment| matches!(moment, Moment::Sync(_)));
        assert_eq!((records, syncs), (2, 6), "{way:?}: {rows:?}");
    }
}

/// Has the disks lose what was not flushed, and is the starting value of what that is.
const LOSSY: &str = "RUBUS_LAB_LOSSY";
