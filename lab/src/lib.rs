//! Emulated boards: building their disks, booting them as their firmware would, and running
//! commands on them. The boards know nothing of the product; the product is pushed into them and
//! driven from outside.
//!
//! [`devices`] stands apart: loop devices, servers and filesystems whose truth is known. [`model`] holds the pipe model against them.
//!
//! [`test_table`] and [`test_report`] are for the script that runs all tests: which ones when, and what came of it.
//!
//! Reading order: [`board`] (what the boards are), [`image`] (what is on their disks),
//! [`kit`] (disks that are kept), [`firmware`] (how they start), [`session`] (how they are driven).

pub mod bare_debian;
pub mod board;
pub mod cache;
pub mod capture;
pub mod ceph;
pub mod ceph_measure;
pub mod ceph_running;
pub mod channel;
pub mod cpio;
pub mod devices;
pub mod drives;
pub mod emulator;
pub mod extra_packages;
pub mod firmware;
pub mod foreign;
pub mod image;
pub mod initramfs;
pub mod kit;
pub mod live;
pub mod model;
pub mod modules;
pub mod monitor;
pub mod mounted;
pub mod options;
pub mod outside;
pub mod power_cuts;
pub mod product;
pub mod quick_initramfs;
pub mod raid_board;
pub mod server_kills;
pub mod session;
pub mod snapshot;
pub mod test_report;
pub mod test_table;
pub mod tools;
pub mod tree;
mod tree_files;
pub mod under_systemd;
mod usb_disk;
