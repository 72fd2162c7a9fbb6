//! `rubus tune --apply` on a board: what helps on a slow USB disk is made to last by the disk's own identity, is proven, holds
//! after a restart under another name of the disk, and is gone after undoing it.
//!
//! The disk lets few commands pass in a second, so that large files come faster in larger pieces.

use crate::common::desktop::{LONG, SOON, must};
use rubus_lab::board::{Board, Throttle};
use rubus_lab::cache::Cache;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_tune";
const COMMANDS_PER_SECOND: u64 = 150;
/// The kernel's read-ahead of a new disk, in KiB.
const USUAL_KIB: u64 = 128;

#[test]
fn a_larger_read_ahead_is_made_to_last_and_undone() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let slow = Throttle { bytes_per_second: 0, operations_per_second: COMMANDS_PER_SECOND };
    let tuned = UsbDisk::blank(0, 3 << 30).with_uas().limited(slow);
    let other = UsbDisk::blank(1, 1 << 30).with_uas().on_bus(1);
    let kit = Kit::temporary(&cache, Board::Pc, &[tuned, other]).unwrap();
    let options = Options { push: vec![rubus], ..Options::default() };
    let boot = || Session::boot_kit(&cache, &kit, &options).unwrap();

    let mut board = boot();
    let disk = board.usb_device(0).unwrap();
    must(&mut board, &format!("mkfs.ext4 -q {disk} && mount {disk} /mnt"), SOON);
    assert_eq!(read_ahead_kib(&mut board, 0), USUAL_KIB);
    let said = must(&mut board, "rubus tune /mnt --for files --time 10m --apply --yes", LONG);
    println!("{said}");
    assert!(said.contains("It holds: "), "{said}");
    let found_kib = read_ahead_kib(&mut board, 0);
    assert!(found_kib > USUAL_KIB, "{said}");
    assert_eq!(read_ahead_kib(&mut board, 1), USUAL_KIB, "the other disk has its own");
    let rule = must(&mut board, "cat /etc/udev/rules.d/90-rubus-tune.rules", SOON);
    println!("{rule}");
    let named = disk.trim_start_matches("/dev/");
    let rules = rule.lines().filter(|line| line.starts_with("ACTION"));
    assert!(
        rules.clone().count() == 1 && rules.clone().all(|line| !line.contains(named)),
        "{rule}"
    );
    board.switch_off().unwrap();

    let mut board = boot();
    assert_eq!(read_ahead_kib(&mut board, 0), found_kib);
    assert_eq!(read_ahead_kib(&mut board, 1), USUAL_KIB);
    must(&mut board, "rubus undo --yes", SOON);
    must(&mut board, "! test -e /etc/udev/rules.d/90-rubus-tune.rules", SOON);
    board.switch_off().unwrap();

    let mut back = boot();
    assert_eq!(read_ahead_kib(&mut back, 0), USUAL_KIB);
    back.switch_off().unwrap();
}

/// The read-ahead that the kernel has for a USB disk now.
fn read_ahead_kib(board: &mut Session, number: usize) -> u64 {
    let disk = board.usb_device(number).unwrap();
    let file = disk.replace("/dev/", "/sys/block/") + "/queue/read_ahead_kb";
    let text = must(board, &format!("udevadm settle; cat {file}"), SOON);
    text.trim().parse().unwrap()
}
