//! A plan says how long it will take, and that is about how long it takes: the recipe `desktop` with nothing beside it, on the
//! emulated `pc`, whose processor is slow at starting programs, and on cards that are slow themselves, there and on the Pi 3.

use crate::common::desktop::{PlannedTime, SOON, apply, must};
use rubus_lab::board::{Board, Throttle};
use rubus_lab::cache::Cache;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_plan_time";

/// The initial RAM filesystem is made as Debian makes it: without what the lab has put before its programs to save time, so
/// that it starts the programs that it starts on a real board.
const AS_DEBIAN_HAS_IT: &str = "sed -i 's,/usr/lib/rubus-lab/quick:,,' /usr/sbin/mkinitramfs
! grep -q rubus-lab /usr/sbin/mkinitramfs";

/// Slower than any that is sold, so that reading the system from it takes longer than all else.
const SLOW_CARD: Throttle = Throttle {
    bytes_per_second: 1_000_000,
    // The emulated card counts each block of 512 bytes as an operation.
    operations_per_second: 0,
};

#[test]
fn a_plan_says_about_how_long_it_takes() {
    takes_about_as_long_as_planned(Board::Pc, None);
}

#[test]
fn a_plan_counts_a_slow_card() {
    takes_about_as_long_as_planned(Board::Pc, Some(SLOW_CARD));
}

#[test]
fn a_plan_counts_a_slow_card_on_a_raspberry_pi_3() {
    takes_about_as_long_as_planned(Board::Pi3, Some(SLOW_CARD));
}

/// The card is as slow as that from before the plan on. What the start has read is no longer in memory, as on a board that has
/// done other things since.
fn takes_about_as_long_as_planned(kind: Board, card: Option<Throttle>) {
    if !can_boot(TEST, kind) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, kind) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let kit = Kit::temporary(&cache, kind, &[UsbDisk::as_sold()]).unwrap();
    let options = Options { push: vec![rubus], ..Options::default() };
    let mut board = Session::boot_kit(&cache, &kit, &options).unwrap();
    must(&mut board, AS_DEBIAN_HAS_IT, SOON);
    must(&mut board, "sync; echo 3 >/proc/sys/vm/drop_caches", SOON);
    board.throttle_sd(card).unwrap();
    apply(&mut board, &kit.usb_disks()[0].serial);
    let time = PlannedTime::of_the_last_change(&mut board);
    assert!(time.is_right(), "{time}");
}
