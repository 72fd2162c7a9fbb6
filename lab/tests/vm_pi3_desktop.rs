//! The whole way of the recipe `desktop` on the emulated Raspberry Pi 3: from a plain SD system to a compressed
//! root on the USB disk, through memory pressure, and back to the card as it was.

use crate::common::desktop::{SOON, apply, there_and_back};
use rubus_lab::board::Board;
use rubus_lab::session::Session;
use serde_json::Value;

#[test]
fn a_raspberry_pi_3_moves_to_a_compressed_usb_disk_and_back() {
    there_and_back("vm_pi3_desktop", Board::Pi3, |board, serial| {
        apply(board, serial);
        a_second_time_nothing_is_left_to_do(board);
    });
}

fn a_second_time_nothing_is_left_to_do(board: &mut Session) {
    let usb = board.usb_device(0).unwrap();
    let again = format!("rubus plan desktop device={usb} compress=zstd:1 --json");
    let again = board.run(&again, "root", SOON).unwrap();
    let plan: Value = serde_json::from_str(&again.text()).unwrap();
    assert_eq!(plan["steps"].as_array().map(Vec::len), Some(0), "{plan}");
}
