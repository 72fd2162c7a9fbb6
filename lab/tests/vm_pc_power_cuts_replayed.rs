//! A change is recorded once on the quick board, and power cuts are made from that recording and judged without a board: others in each
//! commit.

use std::time::Duration;

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::kit::UsbDisk;
use rubus_lab::power_cuts::record::record;
use rubus_lab::power_cuts::replay::{self, Draw};
use rubus_lab::power_cuts::{Campaign, Row, Stops, line};
use rubus_lab::product::{can_boot, rubus_or_skip};

const TEST: &str = "vm_pc_power_cuts_replayed";

/// Cuts, half of them on the way back.
const CUTS: usize = 30;

/// The starting value of the cuts, or the hash of a commit, of which that is made.
const SEED: &str = "RUBUS_LAB_LOSSY";

/// Writes `/root/tidy.toml`, and what it removes.
const PREPARE: &str = include_str!("power_cuts/tidy.sh");

#[test]
fn files_of_both_filesystems_survive_cuts_that_lose_what_was_not_flushed() {
    all_good(&["/root/tidy.toml"], PREPARE);
}

/// Records a change, and makes cuts of which every one must end well. They are ended with `undo` or `resume`.
fn all_good(change: &[&str], prepare: &str) {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let named = [SEED, "GITHUB_SHA"].map(|name| std::env::var(name).ok());
    let named = named.into_iter().flatten().next().unwrap_or_default();
    let seed = seed(&named);
    println!("{SEED}={seed}");
    let campaign = Campaign {
        board: Board::Pc,
        usb: vec![UsbDisk::as_sold()],
        rubus,
        export: None,
        change: change.iter().map(|&word| word.to_owned()).collect(),
        prepare: Some(prepare.to_owned()),
        before: None,
        after: None,
        runs: 0,
        stops: Stops::Syncs,
        only: Vec::new(),
        resume_each: 4,
        lengths: None,
        jobs: 2,
        seed,
        lossy: Some(seed),
        without_flush: None,
        limit: Duration::from_secs(600),
        keep_failures: None,
    };
    let cache = Cache::of_this_machine();
    let place = cache.work_directory().unwrap();
    record(&cache, &campaign, place.path()).unwrap();
    let draw = Draw { cuts: CUTS, only: None, board_each: 0, looks_only: false, seed };
    let mut show = |row: &Row| println!("{}", line(row));
    let rows = replay::run(&cache, &campaign, place.path(), draw, &mut show).unwrap();
    let bad = rows.iter().filter(|row| !row.wrong.is_empty()).map(line);
    let bad: Vec<String> = bad.collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert_eq!(rows.len(), CUTS);
    assert!(rows.iter().any(|row| !row.unflushed.is_empty()), "no cut lost anything");
}

/// A number as it stands, or one of the beginning of a hash; 1 for neither.
fn seed(named: &str) -> u64 {
    let hash = || u64::from_str_radix(named.get(..8)?, 16).ok();
    named.parse().ok().or_else(hash).unwrap_or(1)
}

#[test]
fn the_cuts_are_others_in_each_commit() {
    assert_eq!(seed("7"), 7);
    assert_eq!(seed("c9cf56bdeadbeef"), 0xc9cf_56bd);
    assert_eq!(seed(""), 1);
}
