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
const CUTS: usize = 60;

/// The starting value of the cuts, or the hash of a commit, of which that is made.
const SEED: &str = "RUBUS_LAB_LOSSY";

/// Text files, a directory, a link and a removal on ext4; an old and a new name on FAT.
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
[[step]]
do = \"set_line\"
id = \"text\"
why = \"A text file of the root filesystem.\"
path = \"/etc/hosts\"
key = \"127.0.0.3\"
separator = \" \"
value = \"tidy\"
[[step]]
do = \"write_file\"
id = \"fresh\"
why = \"A new file in a new directory.\"
path = \"/etc/tidy/fresh.conf\"
text = \"fresh\"
[[step]]
do = \"set_link\"
id = \"link\"
why = \"A link.\"
path = \"/etc/tidy/link\"
to = \"fresh.conf\"
[[step]]
do = \"remove_file\"
id = \"gone\"
why = \"It is not needed.\"
path = \"/etc/tidy-old.conf\"
E
echo old=1 >/etc/tidy-old.conf; sync
";

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
    let draw = Draw {
        cuts: CUTS,
        board_each: 0,
        looks_only: false,
        seed,
    };
    let mut show = |row: &Row| println!("{}", line(row));
    let rows = replay::run(&cache, &campaign, place.path(), draw, &mut show).unwrap();
    let bad = rows.iter().filter(|row| !row.wrong.is_empty()).map(line);
    let bad: Vec<String> = bad.collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert_eq!(rows.len(), CUTS);
    assert!(
        rows.iter().any(|row| !row.unflushed.is_empty()),
        "no cut lost anything"
    );
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
