//! Writing to a claimed block device, and telling the kernel about the partitions on it.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

use crate::block::blockdev::ClaimedDevice;

/// A partition as the kernel is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelPartition {
    /// Its number, from 1.
    pub number: u32,
    /// Where it begins, in bytes from the start of the disk.
    pub start_bytes: u64,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// `struct blkpg_ioctl_arg` of include/uapi/linux/blkpg.h.
#[repr(C)]
struct Request {
    operation: libc::c_int,
    flags: libc::c_int,
    length: libc::c_int,
    data: *mut Span,
}

/// `struct blkpg_partition` of the same file.
#[repr(C)]
struct Span {
    start: i64,
    length: i64,
    number: libc::c_int,
    device_name: [u8; 64],
    volume_name: [u8; 64],
}

const BLKPG: u32 = 0x1269;
const BLKPG_ADD_PARTITION: libc::c_int = 1;
const BLKPG_DEL_PARTITION: libc::c_int = 2;
const BLKRRPART: u32 = 0x125F;

impl ClaimedDevice {
    /// Writes bytes; they are on the device after [`ClaimedDevice::sync`]. Without `O_DIRECT` only.
    ///
    /// # Errors
    /// A sentence with the offset.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), String> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            match rustix::io::pwrite(self.as_fd(), &bytes[done..], at) {
                Ok(0) => return Err(format!("cannot write at byte {at}: it ends there")),
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(format!("cannot write at byte {at}: {}", words(errno))),
            }
        }
        Ok(())
    }

    /// Everything that was written is on the device.
    ///
    /// # Errors
    /// A sentence; then what was written may be lost.
    pub fn sync(&self) -> Result<(), String> {
        rustix::fs::fsync(self.as_fd())
            .map_err(|errno| format!("cannot make durable what was written: {}", words(errno)))
    }

    /// Lets the kernel read the partition table again.
    ///
    /// # Errors
    /// In the kernel's words, when a partition is in use or it cannot read tables.
    pub fn read_partitions_again(&self) -> Result<(), String> {
        // SAFETY: this number takes no argument.
        let answer = unsafe { libc::ioctl(self.as_fd().as_raw_fd(), BLKRRPART as _, 0) };
        answer_of(answer)
    }

    /// Tells the kernel of a partition, whatever the table says.
    ///
    /// # Errors
    /// In the kernel's words, when it has one of that number or at that place.
    pub fn add_partition(&self, partition: &KernelPartition) -> Result<(), String> {
        self.partition_request(BLKPG_ADD_PARTITION, partition)
    }

    /// Tells the kernel that there is no such partition any more.
    ///
    /// # Errors
    /// In the kernel's words, when it is in use or not there.
    pub fn forget_partition(&self, number: u32) -> Result<(), String> {
        let partition = KernelPartition { number, start_bytes: 0, size_bytes: 0 };
        self.partition_request(BLKPG_DEL_PARTITION, &partition)
    }

    fn partition_request(
        &self,
        operation: libc::c_int,
        partition: &KernelPartition,
    ) -> Result<(), String> {
        let mut span = Span {
            start: partition.start_bytes as i64,
            length: partition.size_bytes as i64,
            number: partition.number as libc::c_int,
            device_name: [0; 64],
            volume_name: [0; 64],
        };
        let mut request = Request {
            operation,
            flags: 0,
            length: size_of::<Span>() as libc::c_int,
            data: &raw mut span,
        };
        // SAFETY: both structures are those of the kernel's header and live until the call returns.
        let answer = unsafe { libc::ioctl(self.as_fd().as_raw_fd(), BLKPG as _, &raw mut request) };
        answer_of(answer)
    }
}

fn answer_of(answer: libc::c_int) -> Result<(), String> {
    match answer {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error().to_string()),
    }
}

fn words(errno: Errno) -> String {
    std::io::Error::from(errno).to_string()
}
