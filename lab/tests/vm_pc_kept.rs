//! Disks that are kept: what a board wrote is there at the next boot, also after its power was cut,
//! and what is done to its disks from outside happens.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rubus_lab::board::{Board, Throttle};
use rubus_lab::cache::Cache;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::live::Fault;
use rubus_lab::product::can_boot;
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_kept";
/// Making an initial RAM filesystem takes half a minute on a free machine, and minutes on a busy one.
const LIMIT: Duration = Duration::from_secs(900);
const MIB: u64 = 1 << 20;

/// The second disk: blank, of an odd size, on the second controller.
const SECOND_BYTES: u64 = 3 * 1024 * MIB + 512;

#[test]
fn disks_outlive_sessions_and_can_be_disturbed() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let cache = Cache::of_this_machine();
    let second = UsbDisk::blank(1, SECOND_BYTES).on_bus(1);
    let kit = Kit::temporary(&cache, Board::Pc, &[UsbDisk::as_sold(), second]).unwrap();
    let boot = || Session::boot_kit(&cache, &kit, &Options::default()).unwrap();

    let mut first = boot();
    disks_are_as_bought(&mut first);
    cut_after_a_flush(first);

    let mut second = boot();
    assert_eq!(must(&mut second, "cat /root/kept"), "kept\n");
    limits_hold_from_one_moment_to_the_next(&mut second);
    a_disk_fails_and_is_mended(&mut second);
    a_disk_is_pulled_out_and_put_back(&mut second);
    let disk = second.usb_device(1).unwrap();
    let write = format!("echo here | dd of={disk} bs=512 seek=2048 conv=sync,fsync");
    must(&mut second, &write);
    second.switch_off().unwrap();

    let mut seen = [0; 5];
    let disk = File::open(kit.usb(1)).unwrap();
    disk.read_exact_at(&mut seen, MIB).unwrap();
    assert_eq!(&seen, b"here\n");
}

/// One file is flushed, another one is written when the power goes.
fn cut_after_a_flush(mut board: Session) {
    let script = "echo kept >kept && sync kept && echo flushed; while :; do echo >maybe-lost; done";
    let mut watch = |said: &[u8]| said != b"flushed\n";
    board.begin(script, "root", LIMIT).unwrap();
    let outcome = board.follow(LIMIT, &mut watch).unwrap();
    assert_eq!(outcome, None, "the command ended before the cut");
    board.cut_power();
}

fn limits_hold_from_one_moment_to_the_next(board: &mut Session) {
    let disk = board.usb_device(1).unwrap();
    let write = format!(
        "t=$(cut -d. -f1 /proc/uptime); dd if=/dev/zero of={disk} bs=512k count=8 oflag=direct \
         2>/dev/null; echo $(($(cut -d. -f1 /proc/uptime) - t))"
    );
    let seconds = |board: &mut Session| must(board, &write).trim().parse::<u64>().unwrap();
    let slow = Throttle { bytes_per_second: MIB, operations_per_second: 0 };
    board.throttle_usb(1, Some(slow)).unwrap();
    assert!(seconds(board) >= 3);
    board.throttle_usb(1, None).unwrap();
    board.throttle_bus(1, Some(slow)).unwrap();
    assert!(seconds(board) >= 3);
    board.throttle_bus(1, None).unwrap();
    assert!(seconds(board) < 3);
}

fn a_disk_fails_and_is_mended(board: &mut Session) {
    let disk = board.usb_device(1).unwrap();
    let write = |board: &mut Session, at: u64| {
        let script = format!("dd if=/dev/zero of={disk} bs=4k count=1 seek={at} oflag=direct");
        board.run(&script, "root", LIMIT).unwrap()
    };
    board.break_usb(1, Some(Fault::Writes)).unwrap();
    let failed = write(board, 0);
    assert_ne!(failed.status, 0);
    assert!(failed.complaint_text().contains("Input/output error"), "{failed:?}");
    let read = format!("dd if={disk} of=/dev/null bs=4k count=1 iflag=direct");
    must(board, &read);
    let spot = Fault::Spot { offset_bytes: 8192 };
    board.break_usb(1, Some(spot)).unwrap();
    assert_eq!(write(board, 1).status, 0);
    assert_ne!(write(board, 2).status, 0);
    board.break_usb(1, None).unwrap();
    assert_eq!(write(board, 2).status, 0);
}

fn a_disk_is_pulled_out_and_put_back(board: &mut Session) {
    board.unplug_usb(1).unwrap();
    must(board, "udevadm settle; [ $(lsblk -dno NAME | grep -c ^sd) = 1 ]");
    let gone = board.usb_device(1).unwrap_err().to_string();
    assert!(gone.contains("4C530001230914116023"), "{gone}");
    board.plug_usb(1).unwrap();
    must(
        board,
        "until [ $(lsblk -dno NAME | grep -c ^sd) = 2 ]; do sleep 0.2; done; udevadm settle",
    );
    board.usb_device(1).unwrap();
}

fn must(board: &mut Session, script: &str) -> String {
    board.must(script, "root", LIMIT).unwrap()
}

/// Which names the disks get is a race between their controllers; their serial numbers tell them.
fn disks_are_as_bought(board: &mut Session) {
    let mut controllers = Vec::new();
    for (number, bytes) in [(0, 4096 * MIB), (1, SECOND_BYTES)] {
        let disk = board.usb_device(number).unwrap();
        let row = must(board, &format!("lsblk -bdno SIZE,SERIAL,TRAN {disk}"));
        let row: Vec<&str> = row.split_whitespace().collect();
        let serial = format!("4C53000123091411{}", 6022 + number);
        assert_eq!(row, [bytes.to_string().as_str(), &serial, "usb"]);
        let path = must(board, &disk.replace("/dev/", "readlink -f /sys/block/"));
        controllers.push(path.split("/usb").next().unwrap().to_owned());
    }
    assert_ne!(controllers[0], controllers[1], "both are on one controller");
}
