//! The recipe `commit-interval`: after a restart the kernel commits the root once a minute, `verify` says so, and after undoing
//! the card is as it was.

use crate::common::desktop::{LONG, MAY_DIFFER, SOON, must};
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::kit::Kit;
use rubus_lab::outside::{differences, manifest};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_commit_interval";

#[test]
fn the_root_commits_once_a_minute_until_it_is_undone() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let kit = Kit::temporary(&cache, Board::Pc, &[]).unwrap();
    let options = Options { push: vec![rubus], ..Options::default() };
    let boot = || Session::boot_kit(&cache, &kit, &options).unwrap();
    let before = manifest(&kit.sd()).unwrap();

    let mut board = boot();
    assert_eq!(commit_option(&mut board), "");
    let said = must(&mut board, "rubus apply commit-interval --yes", LONG);
    assert!(said.contains("is applied"), "{said}");
    board.switch_off().unwrap();

    let mut board = boot();
    assert_eq!(commit_option(&mut board), "commit=60");
    let verified = must(&mut board, "rubus verify", LONG);
    assert!(verified.contains("the root is mounted with commit=60"), "{verified}");
    let again = must(&mut board, "rubus plan commit-interval", SOON);
    assert!(again.contains("already"), "{again}");
    must(&mut board, "rubus undo --yes", LONG);
    board.switch_off().unwrap();

    let mut back = boot();
    assert_eq!(commit_option(&mut back), "");
    back.switch_off().unwrap();
    let lost = differences(&before, &manifest(&kit.sd()).unwrap(), MAY_DIFFER);
    assert!(lost.is_empty(), "on the card:\n{}", lost.join("\n"));
}

/// The option that the kernel says of the root; it says none of its own interval.
fn commit_option(board: &mut Session) -> String {
    let script = "awk '$2 == \"/\" { print $4 }' /proc/mounts | tr , '\\n' | grep ^commit= || true";
    must(board, script, SOON).trim().to_string()
}
