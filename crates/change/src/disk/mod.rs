//! What is on disks, as bytes: partition tables that are built and read, layouts of new disks, and what
//! a superblock says. Reading is done by [`rubus_machine::signature`]; nothing here touches a device.

mod extent;
mod gpt;
pub mod guid;
pub mod layout;
mod mbr;
pub mod table;
