//! The recipe `desktop` on a board whose firmware knows no trial: without the new disk the card's system starts by
//! itself and says so, with the disk the new root starts again. An initramfs that is rebuilt on the new root starts it
//! too, and the change is undone after that, or with the disk gone for good.

use std::time::Instant;

use crate::common::desktop::{LONG, MAY_DIFFER, SOON, must, root};
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::outside::{Manifest, differences, manifest};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_fallback";
const OLD: &str = "ext4 ";
const NEW: &str = "btrfs subvol=/@";

#[test]
fn without_the_new_disk_the_card_starts_and_an_update_on_the_new_root_starts_it_again() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let kit = Kit::temporary(&cache, Board::Pc, &[UsbDisk::as_sold()]).unwrap();
    let boot = |kit: &Kit, without_usb| {
        let options = Options { push: vec![rubus.clone()], without_usb, ..Options::default() };
        Session::boot_kit(&cache, kit, &options).unwrap()
    };
    let before = manifest(&kit.sd()).unwrap();
    let begun = Instant::now();
    let told = |what: &str| println!("{:4.0} s: {what}", begun.elapsed().as_secs_f64());

    let mut old = boot(&kit, false);
    apply(&mut old, &kit.usb_disks()[0].serial);
    old.switch_off().unwrap();
    told("applied");

    let dead = kit.temporary_copy(&cache).unwrap();
    let mut card = boot(&dead, true);
    is_on_the_card(&mut card);
    told("the disk is away, and the card's system runs");
    says(&mut card, "rubus undo --yes", 0, "is undone");
    card.switch_off().unwrap();
    let mut card = boot(&dead, true);
    assert_eq!(root(&mut card), OLD);
    assert!(!card.console().contains("rubus: "), "{}", card.console());
    says(&mut card, "rubus status", 0, "undone");
    card.switch_off().unwrap();
    nothing_is_lost(&dead, &before);
    drop(dead);
    told("undone without the disk");

    let mut card = boot(&kit, true);
    is_on_the_card(&mut card);
    card.switch_off().unwrap();
    let mut new = boot(&kit, false);
    told("the disk is back, and the new root runs");
    assert_eq!(root(&mut new), NEW);
    holds(&mut new);
    must(&mut new, "update-initramfs -u", LONG);
    told("made a new initial RAM filesystem on the new root");
    holds(&mut new);
    new.switch_off().unwrap();

    let mut new = boot(&kit, false);
    told("the new root runs with it");
    assert_eq!(root(&mut new), NEW);
    holds(&mut new);
    undo_puts_the_original_back_when_told(&mut new);
    new.switch_off().unwrap();

    let mut back = boot(&kit, false);
    told("the card's system runs again");
    assert_eq!(root(&mut back), OLD);
    back.switch_off().unwrap();
    nothing_is_lost(&kit, &before);
}

fn apply(board: &mut Session, serial: &str) {
    let usb = board.usb_device(0).unwrap();
    let script = format!(
        "rubus apply desktop device={usb} compress=zstd:1 trial=no wait=60 --yes --i-will-lose-everything-on={serial}"
    );
    let said = must(board, &script, LONG);
    assert!(said.contains("is applied"), "{said}");
}

/// What a script said, in one line.
fn said(board: &mut Session, script: &str) -> (i32, String) {
    let done = board.run(script, "root", SOON).unwrap();
    let said = format!("{} {}", done.text(), done.complaint_text());
    let words: Vec<&str> = said.split_whitespace().collect();
    (done.status, words.join(" "))
}

/// Runs a script that must end with this status and say this.
fn says(board: &mut Session, script: &str, status: i32, words: &str) {
    let (ended, said) = said(board, script);
    assert_eq!(ended, status, "{script}: {said}");
    assert!(said.contains(words), "{script}: '{words}' in: {said}");
}

/// All that the card's fstab names is there, and everyone who looks learns which root runs and why.
fn is_on_the_card(board: &mut Session) {
    assert_eq!(root(board), OLD, "{}", board.console());
    let console = board.console();
    assert!(console.contains("rubus: this start is from the card: the disk"), "{console}");
    // The board's packages have made no groups, which `systemd-tmpfiles` says at every start.
    let failed = |line: &&str| line.contains("init: failed") && !line.contains("systemd-tmpfiles");
    assert_eq!(console.lines().find(failed), None, "{console}");
    let why = "(serial number 4C530001230914116022) did not answer within 60 s";
    let words = "This start is FROM THE OLD SYSTEM, because the disk";
    for (command, status) in [("rubus status", 1), ("rubus verify", 1), ("rubus survey", 0)] {
        says(board, command, status, words);
        says(board, command, status, why);
    }
    says(board, "cat /run/motd.d/rubus", 0, "This board started from the card, because the disk");
    let mounts = must(board, "cat /proc/mounts", SOON);
    assert!(mounts.contains(" /boot/firmware vfat "), "{mounts}");
    let swaps = must(board, "cat /proc/swaps", SOON);
    assert!(swaps.contains("/var/swap"), "{swaps}");
    says(board, "rubus resume", 0, "Nothing was interrupted.");
}

fn holds(board: &mut Session) {
    let nothing = "ls /run/rubus/desktop-from-old-disk /run/motd.d/rubus 2>/dev/null | wc -l";
    assert_eq!(must(board, nothing, SOON).trim(), "0");
    says(board, "rubus status", 0, "applied");
    says(board, "rubus verify", 0, "promises hold");
}

/// The initial RAM filesystem is not the one that the change has made, so that undo names two commands and does neither.
fn undo_puts_the_original_back_when_told(board: &mut Session) {
    let (status, stopped) = said(board, "rubus undo --yes");
    assert_eq!(status, 1, "{stopped}");
    assert_eq!(root(board), NEW);
    let from = stopped.find("`sudo mv ").expect("it names a command") + "`sudo ".len();
    let end = stopped[from..].find('`').expect("its end");
    let command = stopped[from..from + end].to_owned();
    println!("{command}");
    must(board, &command, SOON);
    says(board, "rubus undo --yes", 0, "is undone");
}

fn nothing_is_lost(kit: &Kit, before: &Manifest) {
    let lost = differences(before, &manifest(&kit.sd()).unwrap(), MAY_DIFFER);
    assert!(lost.is_empty(), "on the card:\n{}", lost.join("\n"));
}
