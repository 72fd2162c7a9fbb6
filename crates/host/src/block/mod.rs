//! Block devices and images of disks: opened, claimed, read, written, made durable.

pub mod block_writing;
pub mod blockdev;
pub mod buffers;
pub mod disk_bytes;
pub mod image;
pub mod loop_device;
