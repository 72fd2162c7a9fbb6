//! Debian's package `raspi-firmware` on the quick board, where dpkg says that it is an ARM system.

use crate::common::raspi_firmware::there_and_back_with_updates;
use rubus_lab::board::Board;

#[test]
fn each_update_leaves_the_board_on_the_root_that_is_meant() {
    there_and_back_with_updates("vm_pc_raspi_firmware", Board::Pc);
}
