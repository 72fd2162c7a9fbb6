//! The recipe `usb-quirk` on a disk behind a bridge that the kernel serves with uas: after a restart the kernel leaves it to
//! usb-storage, and after undoing uas serves it again, with the boot partition as before.

use crate::common::desktop::{LONG, MAY_DIFFER, SOON, must};
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::outside::{differences, manifest};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_usb_quirk";

#[test]
fn the_kernel_leaves_a_bridge_to_usb_storage_until_it_is_undone() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let kit = Kit::temporary(&cache, Board::Pc, &[UsbDisk::as_sold().with_uas()]).unwrap();
    let options = Options { push: vec![rubus], ..Options::default() };
    let boot = || Session::boot_kit(&cache, &kit, &options).unwrap();
    let before = manifest(&kit.sd()).unwrap();

    // The emulated bridge speaks nothing but UAS, and says so.
    let mut board = boot();
    assert_eq!(driver(&mut board), "uas");
    let usb = board.usb_device(0).unwrap();
    for named in [format!("device={usb}"), "bridge=46f4:0003".into()] {
        let apply = format!("rubus apply usb-quirk {named} --yes");
        let refused = board.run(&apply, "root", SOON).unwrap();
        let said = format!("{}\n{}", refused.text(), refused.complaint_text());
        assert_ne!(refused.status, 0, "{said}");
        assert!(said.contains("UAS alone"), "{said}");
    }
    board.switch_off().unwrap();

    // Of one that is not plugged in nothing is known.
    let unplugged = Options { without_usb: true, ..options.clone() };
    let mut board = Session::boot_kit(&cache, &kit, &unplugged).unwrap();
    let said = must(&mut board, "rubus apply usb-quirk bridge=46f4:0003 --yes", LONG);
    assert!(said.contains("is applied"), "{said}");
    let verified = board.run("rubus verify", "root", SOON).unwrap();
    assert!(verified.text().contains("after the next start"), "{}", verified.text());
    board.switch_off().unwrap();

    // usb-storage cannot serve it either: real bridges speak both. That the kernel leaves it to usb-storage is what the recipe does.
    let mut board = boot();
    assert_eq!(driver(&mut board), "");
    let kernel = must(&mut board, "dmesg | grep -i uas", SOON);
    assert!(
        kernel.contains("UAS is ignored for this device, using usb-storage instead"),
        "{kernel}"
    );
    let again = must(&mut board, "rubus plan usb-quirk bridge=46f4:0003", SOON);
    assert!(again.contains("already"), "{again}");
    let verified = board.run("rubus verify", "root", LONG).unwrap();
    let said = format!("{}\n{}", verified.text(), verified.complaint_text());
    println!("{said}");
    assert_eq!(verified.status, 1, "the disk is not there, so nothing is proven: {said}");
    must(&mut board, "rubus undo --yes", SOON);
    board.switch_off().unwrap();

    let mut back = boot();
    assert_eq!(driver(&mut back), "uas");
    must(&mut back, "rubus resume || true", SOON);
    back.switch_off().unwrap();
    let lost = differences(&before, &manifest(&kit.sd()).unwrap(), MAY_DIFFER);
    assert!(lost.is_empty(), "on the card:\n{}", lost.join("\n"));
}

/// Which driver serves the USB disk, as the kernel's own links say it.
fn driver(board: &mut Session) -> String {
    let script = "for driver in uas usb-storage; do
  if ls /sys/bus/usb/drivers/$driver 2>/dev/null | grep -q '^[0-9]'; then echo $driver; fi
done";
    must(board, script, SOON).trim().to_string()
}
