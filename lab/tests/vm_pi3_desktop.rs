//! The whole way of the recipe `desktop` on the emulated Raspberry Pi 3: from a plain SD system to a compressed
//! root on the USB disk, through memory pressure, and back to the card as it was.

use crate::common::desktop::{apply, there_and_back};
use rubus_lab::board::Board;

#[test]
fn a_raspberry_pi_3_moves_to_a_compressed_usb_disk_and_back() {
    there_and_back("vm_pi3_desktop", Board::Pi3, apply);
}
