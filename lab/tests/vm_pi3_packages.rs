//! The apt repository on an emulated Raspberry Pi 3.

use rubus_lab::board::Board;

use crate::common::packages_on_board::life_of_a_package;

#[test]
fn a_package_is_installed_used_upgraded_and_purged() {
    life_of_a_package("vm_pi3_packages", Board::Pi3);
}
