//! The recipe `desktop` from a plain SD system to a compressed root on a USB disk and back, with real boots
//! between: what is promised holds after the start, memory pressure reaches the new swap through zswap, and
//! after undoing the card is as it was, file by file.

use crate::common::desktop::{SOON, apply, must, there_and_back};
use rubus_lab::board::Board;
use rubus_lab::session::Session;
use serde_json::Value;

#[test]
fn a_card_moves_to_a_compressed_usb_disk_and_back() {
    there_and_back("vm_pc_desktop", Board::Pc, |board, serial| {
        wrong_disks_are_refused(board);
        apply(board, serial);
        a_second_time_nothing_is_left_to_do(board);
    });
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

fn a_second_time_nothing_is_left_to_do(board: &mut Session) {
    let usb = board.usb_device(0).unwrap();
    let again = format!("rubus plan desktop device={usb} compress=zstd:1 --json");
    let again = board.run(&again, "root", SOON).unwrap();
    let plan: Value = serde_json::from_str(&again.text()).unwrap();
    assert_eq!(plan["steps"].as_array().map(Vec::len), Some(0), "{plan}");
}
