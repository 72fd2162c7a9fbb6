//! Loop devices: a file, or a part of one, as a block device.
//!
//! The kernel detaches the file itself once the device is neither open nor mounted (autoclear), so that nothing is
//! left behind however this program ends.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::files::hands::WriteError;

const CONTROL: &str = "/dev/loop-control";
// Numbers and structures of include/uapi/linux/loop.h.
const LOOP_CTL_GET_FREE: u32 = 0x4C82;
const LOOP_SET_DIRECT_IO: u32 = 0x4C08;
/// Since Linux 5.8.
const LOOP_CONFIGURE: u32 = 0x4C0A;
const READ_ONLY: u32 = 1;
const AUTOCLEAR: u32 = 4;
/// The kernel drops the partitions of the device together with its file.
const PARTSCAN: u32 = 8;
/// Another program may take the free device in between.
const ATTEMPTS: usize = 32;

/// `struct loop_config`.
#[repr(C)]
struct Config {
    file: u32,
    block_bytes: u32,
    info: Info,
    reserved: [u64; 8],
}

/// `struct loop_info64`.
#[repr(C)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encryption: [u32; 2],
    flags: u32,
    names: [u8; 160],
    init: [u64; 2],
}

/// What of a file the device shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it, for reading and writing.
    Whole,
    /// A part of it, only for reading.
    Span {
        /// Where it begins.
        start_bytes: u64,
        /// How long it is.
        size_bytes: u64,
    },
}

/// A loop device. The file is let go when this is dropped and nothing of the device is mounted.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    /// Keeps the device attached.
    _open: OwnedFd,
}

impl LoopDevice {
    /// Makes a file, or a part of it, a block device.
    ///
    /// # Errors
    /// Without root, without the loop driver, or when the file cannot be opened.
    pub fn attach(file: &Path, part: Part) -> Result<Self, WriteError> {
        let mode = match part {
            Part::Whole => OFlags::RDWR,
            Part::Span { .. } => OFlags::RDONLY,
        };
        let backing = rustix::fs::open(file, mode | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| trouble("open", file, errno))?;
        let control = Path::new(CONTROL);
        let driver = rustix::fs::open(control, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| trouble("open", control, errno))?;
        for _ in 0..ATTEMPTS {
            let path = free(&driver)?;
            let kept = rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|errno| trouble("open", &path, errno))?;
            // What is opened for reading alone becomes a device for reading alone.
            let device = rustix::fs::open(&path, mode | OFlags::CLOEXEC, Mode::empty())
                .map_err(|errno| trouble("open", &path, errno))?;
            match configure(&device, &backing, part) {
                Ok(()) => return Ok(LoopDevice { path, _open: kept }),
                Err(Errno::BUSY) => {}
                Err(errno) => return Err(trouble("make a block device of", file, errno)),
            }
        }
        Err(WriteError {
            tried: "make a block device of",
            path: file.display().to_string(),
            reason: "others take every free loop device; try again".into(),
        })
    }

    /// Reaches the file past the page cache from now on, as a disk of its own would be reached.
    ///
    /// # Errors
    /// When the file's filesystem cannot do that.
    pub fn go_past_cache(&self) -> Result<(), WriteError> {
        use std::os::fd::AsRawFd;
        // SAFETY: this number takes a number and changes nothing in memory.
        let answer =
            unsafe { libc::ioctl(self._open.as_raw_fd(), LOOP_SET_DIRECT_IO as _, 1_usize) };
        match answer {
            0 => Ok(()),
            _ => Err(WriteError {
                tried: "go past the page cache with",
                path: self.path.display().to_string(),
                reason: std::io::Error::last_os_error().to_string(),
            }),
        }
    }

    /// Its node, `/dev/loopN`.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn free(driver: &OwnedFd) -> Result<PathBuf, WriteError> {
    use std::os::fd::AsRawFd;
    // SAFETY: this number takes no argument and gives a number.
    let number = unsafe { libc::ioctl(driver.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
    match number {
        0.. => Ok(PathBuf::from(format!("/dev/loop{number}"))),
        _ => Err(WriteError {
            tried: "get a free loop device from",
            path: CONTROL.into(),
            reason: std::io::Error::last_os_error().to_string(),
        }),
    }
}

fn configure(device: &OwnedFd, backing: &OwnedFd, part: Part) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    let (offset, size_limit, flags) = match part {
        Part::Whole => (0, 0, AUTOCLEAR | PARTSCAN),
        Part::Span { start_bytes, size_bytes } => (start_bytes, size_bytes, AUTOCLEAR | READ_ONLY),
    };
    let config = Config {
        file: backing.as_raw_fd() as u32,
        block_bytes: 0,
        info: Info {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset,
            size_limit,
            number: 0,
            encryption: [0; 2],
            flags,
            names: [0; 160],
            init: [0; 2],
        },
        reserved: [0; 8],
    };
    // SAFETY: the structure is that of the kernel's header and lives until the call returns.
    let answer = unsafe {
        libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, std::ptr::from_ref(&config))
    };
    match answer {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

fn trouble(tried: &'static str, path: &Path, errno: Errno) -> WriteError {
    let advice = match errno {
        Errno::NOENT | Errno::NODEV | Errno::NXIO if path.starts_with("/dev") => {
            "; this kernel has no loop driver (`modprobe loop` may bring it)"
        }
        Errno::NOTTY | Errno::INVAL => "; a kernel from 5.8 on can do it",
        _ => return WriteError::of(tried, path, errno),
    };
    WriteError::advised(tried, path.display(), errno, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_is_as_long_as_the_kernels() {
        assert_eq!(size_of::<Info>(), 232);
        assert_eq!(size_of::<Config>(), 304);
    }
}
