//! A plan says how long it will take, and that is about how long it takes: the recipe `desktop` on the emulated `pc`, whose
//! processor is slow at starting programs, with nothing beside it.

use crate::common::desktop::{PlannedTime, SOON, apply, must};
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_plan_time";

/// The initial RAM filesystem is made as Debian makes it: without what the lab has put before its programs to save time, so
/// that it starts the programs that it starts on a real board.
const AS_DEBIAN_HAS_IT: &str = "sed -i 's,/usr/lib/rubus-lab/quick:,,' /usr/sbin/mkinitramfs
! grep -q rubus-lab /usr/sbin/mkinitramfs";

#[test]
fn a_plan_says_about_how_long_it_takes() {
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
    let mut board = Session::boot_kit(&cache, &kit, &options).unwrap();
    must(&mut board, AS_DEBIAN_HAS_IT, SOON);
    apply(&mut board, &kit.usb_disks()[0].serial);
    let time = PlannedTime::of_the_last_change(&mut board);
    assert!(time.is_right(), "{time}");
}
