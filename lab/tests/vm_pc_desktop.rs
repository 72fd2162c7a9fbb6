//! The recipe `desktop` from a plain SD system to a compressed root on a USB disk and back, with real boots
//! between: what is promised holds after the start, memory pressure reaches the new swap through zswap, and
//! after undoing the card is as it was, file by file.

use std::time::Duration;

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::outside::{differences, manifest};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};
use serde_json::Value;

const TEST: &str = "vm_pc_desktop";
/// For what takes seconds on a free machine.
const SOON: Duration = Duration::from_secs(180);
/// Copying the system and making an initial RAM filesystem on an emulated processor.
const LONG: Duration = Duration::from_secs(900);

/// What may differ on the card afterwards: the plan and its journal, and what each boot writes.
const MAY_DIFFER: &[&str] = &["/var/lib/rubus", "/var/cache", "/etc/mtab"];

#[test]
fn a_card_moves_to_a_compressed_usb_disk_and_back() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let kit = Kit::temporary(&cache, Board::Pc, &[UsbDisk::as_sold()]).unwrap();
    let options = Options {
        push: vec![rubus],
        ..Options::default()
    };
    let boot = || Session::boot_kit(&cache, &kit, &options).unwrap();
    let before = manifest(&kit.sd()).unwrap();

    let mut old = boot();
    wrong_disks_are_refused(&mut old);
    let serial = &kit.usb_disks()[0].serial;
    apply(&mut old, serial);
    old.switch_off().unwrap();

    let mut new = boot();
    is_as_promised(&mut new);
    memory_pressure_reaches_the_new_swap(&mut new);
    must(&mut new, "rubus undo --yes", SOON);
    new.switch_off().unwrap();

    let mut back = boot();
    assert_eq!(root(&mut back), "ext4 ");
    let swaps = must(&mut back, "cat /proc/swaps", SOON);
    assert!(swaps.contains("/var/swap"), "{swaps}");
    must(&mut back, "rubus resume", SOON);
    back.switch_off().unwrap();
    let lost = differences(&before, &manifest(&kit.sd()).unwrap(), MAY_DIFFER);
    assert!(lost.is_empty(), "on the card:\n{}", lost.join("\n"));
}

fn must(board: &mut Session, script: &str, limit: Duration) -> String {
    board.must(script, "root", limit).unwrap()
}

/// Type of the root filesystem and the subvolume that it is.
fn root(board: &mut Session) -> String {
    let script =
        "awk '$2 == \"/\" { type = $3; options = $4 } END { print type, options }' /proc/mounts";
    let line = must(board, script, SOON);
    let (kind, options) = line.trim().split_once(' ').unwrap();
    let subvolume = options.split(',').find(|word| word.starts_with("subvol="));
    format!("{kind} {}", subvolume.unwrap_or_default())
}

/// The card itself, a disk that is not given away, and one that is in use.
fn wrong_disks_are_refused(board: &mut Session) {
    let usb = board.usb_device(0).unwrap();
    let before = must(board, &format!("sfdisk -d {usb}"), SOON);
    for (script, status, says) in [
        (
            "rubus apply desktop device=/dev/mmcblk0 --yes".to_string(),
            1,
            "mmcblk0",
        ),
        (
            format!("rubus apply desktop device={usb} --yes"),
            3,
            "4C530001230914116022",
        ),
        (
            format!(
                "mount {usb}1 /mnt && rubus apply desktop device={usb} --yes \
                 --i-will-lose-everything-on=4C530001230914116022"
            ),
            1,
            "mounted",
        ),
    ] {
        let done = board.run(&script, "root", SOON).unwrap();
        let said = format!("{}\n{}", done.text(), done.complaint_text());
        assert_eq!(done.status, status, "{script}: {said}");
        assert!(said.contains(says), "{script}: {said}");
    }
    must(board, "umount /mnt", SOON);
    assert_eq!(must(board, &format!("sfdisk -d {usb}"), SOON), before);
    assert_eq!(
        must(board, "rubus status", SOON),
        "No recipe has been applied on this machine.\n"
    );
}

fn apply(board: &mut Session, serial: &str) {
    let usb = board.usb_device(0).unwrap();
    let script = format!(
        "rubus apply desktop device={usb} compress=zstd:1 --yes --i-will-lose-everything-on={serial}"
    );
    let said = must(board, &script, LONG);
    assert!(said.contains("is applied"), "{said}");
    assert_eq!(root(board), "ext4 ", "the running system has changed");
    // Done a second time, it changes nothing.
    let again = format!("rubus plan desktop device={usb} compress=zstd:1 --json");
    let again = board.run(&again, "root", SOON).unwrap();
    let plan: Value = serde_json::from_str(&again.text()).unwrap();
    assert_eq!(plan["steps"].as_array().map(Vec::len), Some(0), "{plan}");
}

fn is_as_promised(board: &mut Session) {
    assert_eq!(root(board), "btrfs subvol=/@");
    let verified = board.run("rubus verify", "root", SOON).unwrap();
    let said = format!("{}\n{}", verified.text(), verified.complaint_text());
    assert_eq!(verified.status, 0, "{said}");
    assert!(said.contains("zstd"), "{said}");
}

/// More than fits into memory, half of which compresses: some stays in the pool, some goes to the disk.
fn memory_pressure_reaches_the_new_swap(board: &mut Session) {
    let script = "mkdir -p /run/full && mount -t tmpfs -o size=1200M tmpfs /run/full && \
                  head -c 64M /dev/urandom | od -An -v -tx1 | head -c 150M >/run/full/0 && \
                  for i in 1 2 3 4 5 6; do cp /run/full/0 /run/full/$i; done; \
                  cd /sys/kernel/debug/zswap && cat stored_pages written_back_pages; \
                  awk 'NR > 1 { used += $4 } END { print used }' /proc/swaps; umount /run/full";
    let said = must(board, script, LONG);
    let numbers: Vec<u64> = said
        .lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect();
    let [stored, written_back, used_kib] = numbers[..] else {
        panic!("no three numbers: {said}");
    };
    println!(
        "zswap: {stored} pages stored, {written_back} written back, {used_kib} KiB of swap used"
    );
    assert!(stored > 1000, "{said}");
    assert!(used_kib > 4096, "{said}");
}
