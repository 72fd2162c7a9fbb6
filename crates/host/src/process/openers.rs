//! Which processes have a block device or a file open, or mapped.

use std::path::Path;

use rustix::fs::{AtFlags, FileType, OFlags, StatxFlags};

use crate::block::blockdev::DeviceNumber;
use crate::process::mapped;

/// A process that has a device open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opener {
    /// Its process id.
    pub pid: u32,
    /// Its name (`/proc/PID/comm`).
    pub name: String,
    /// Number of the open device.
    pub number: DeviceNumber,
    /// Whether it may write through that descriptor.
    pub writes: bool,
}

/// What [`openers`] looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Descriptors, and what is mapped without one.
    Whole,
    /// Descriptors only: the mappings of a process that waits for a dead device may not be readable.
    Descriptors,
}

/// The processes that have one of these block devices open, or mapped so that they may write to it, as far as this user can
/// see them: root sees all, others only their own. Sorted, each process once per device.
pub fn openers(devices: &[DeviceNumber], look: Look) -> Vec<Opener> {
    of_all_processes(|process| opened_by(process, devices, look))
}

/// The processes that have a regular file open or mapped, by the number of its filesystem and its inode; as far as this user can
/// see them. The number in each is that of the filesystem.
pub fn file_openers(on_device: DeviceNumber, inode: u64) -> Vec<Opener> {
    of_all_processes(|process| {
        let writes = file_opened_by(process, on_device, inode);
        writes.map(|writes| (on_device, writes))
    })
}

/// What each process has open, by its directory in `/proc`, and whether it may write to that. Sorted.
fn of_all_processes<T>(opened_by: impl Fn(&Path) -> T) -> Vec<Opener>
where
    T: IntoIterator<Item = (DeviceNumber, bool)>,
{
    let mut found = Vec::new();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return found;
    };
    for process in processes.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        for (number, writes) in opened_by(&process.path()) {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push(Opener { pid, name: name.trim_end().to_string(), number, writes });
        }
    }
    found.sort_by_key(|opener| (opener.pid, opener.number));
    found
}

/// Whether a process may write to a file that it has open; none where it has not.
fn file_opened_by(process: &Path, on_device: DeviceNumber, inode: u64) -> Option<bool> {
    let descriptors = std::fs::read_dir(process.join("fd")).ok()?;
    let mut found = None;
    for entry in descriptors.flatten() {
        if is_file(&entry.path(), on_device, inode) {
            let writes = access(&process.join("fdinfo").join(entry.file_name()));
            found = match (found, writes) {
                (Some(before), Some(now)) => Some(before | now),
                (before, now) => before.or(now),
            };
        }
    }
    let is_mapped =
        mapped::writable(process).iter().any(|mapped| mapped.file == Some((on_device, inode)));
    if is_mapped { Some(true) } else { found }
}

/// Whether a descriptor in `/proc` is of this file. Only what looks like a file is asked for, and from what the kernel
/// remembers: a file on a dead network filesystem does not answer.
fn is_file(descriptor: &Path, on_device: DeviceNumber, inode: u64) -> bool {
    let target = std::fs::read_link(descriptor).unwrap_or_default();
    let elsewhere = ["/dev/", "/proc/", "/sys/"];
    if !target.is_absolute() || elsewhere.iter().any(|top| target.starts_with(top)) {
        return false;
    }
    let flags = AtFlags::STATX_DONT_SYNC;
    let wanted = StatxFlags::TYPE | StatxFlags::INO;
    rustix::fs::statx(rustix::fs::CWD, descriptor, flags, wanted).is_ok_and(|stat| {
        let device = DeviceNumber { major: stat.stx_dev_major, minor: stat.stx_dev_minor };
        let is_regular = FileType::from_raw_mode(u32::from(stat.stx_mode)) == FileType::RegularFile;
        is_regular && stat.stx_ino == inode && device == on_device
    })
}

/// Which of the devices a process has open, and whether it may write.
fn opened_by(process: &Path, devices: &[DeviceNumber], look: Look) -> Vec<(DeviceNumber, bool)> {
    let mut found: Vec<(DeviceNumber, bool)> = Vec::new();
    let Ok(descriptors) = std::fs::read_dir(process.join("fd")) else {
        return found;
    };
    for entry in descriptors.flatten() {
        let Some(number) = block_device_behind(&entry.path()) else {
            continue;
        };
        if !devices.contains(&number) {
            continue;
        }
        let Some(writes) = access(&process.join("fdinfo").join(entry.file_name())) else {
            continue;
        };
        match found.iter_mut().find(|(known, _)| *known == number) {
            Some((_, any_writes)) => *any_writes |= writes,
            None => found.push((number, writes)),
        }
    }
    if look == Look::Descriptors {
        return found;
    }
    let mapped = mapped::writable(process).into_iter();
    for number in mapped.filter_map(|mapped| mapped.block) {
        match found.iter_mut().find(|(known, _)| *known == number) {
            Some((_, writes)) => *writes = true,
            None if devices.contains(&number) => found.push((number, true)),
            None => {}
        }
    }
    found
}

/// The block device behind a descriptor in `/proc`. Only what looks like a device node is followed:
/// a stat of a file on a dead network filesystem would hang.
fn block_device_behind(descriptor: &Path) -> Option<DeviceNumber> {
    let target = std::fs::read_link(descriptor).ok()?;
    if !target.starts_with("/dev") {
        return None;
    }
    let stat = rustix::fs::stat(descriptor).ok()?;
    let is_block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
    is_block.then(|| DeviceNumber::of(stat.st_rdev))
}

/// Whether a descriptor allows writing, from its `flags:` line, which is octal. None for a
/// descriptor that only holds the node (`O_PATH`). What cannot be read counts as writing.
fn access(fdinfo: &Path) -> Option<bool> {
    const ACCESS_MODE: u32 = 0o3;
    let text = std::fs::read_to_string(fdinfo).unwrap_or_default();
    let flags = text
        .lines()
        .find_map(|line| line.strip_prefix("flags:"))
        .and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok());
    match flags {
        Some(flags) if flags & OFlags::PATH.bits() != 0 => None,
        Some(flags) => Some(flags & ACCESS_MODE != 0),
        None => Some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::blockdev::Pinned;

    #[test]
    fn a_process_that_has_mapped_a_file_and_closed_it_may_write_to_it() {
        use rustix::mm::{MapFlags, ProtFlags};
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = directory.path().join("image");
        std::fs::write(&path, vec![0; 4096]).unwrap();
        let node = Pinned::new(&path).unwrap();
        let own = || {
            let all = file_openers(node.on_device(), node.inode());
            all.into_iter().find(|opener| opener.pid == std::process::id())
        };
        assert_eq!(own(), None);
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let (modes, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at a place that the kernel chooses, which nothing reads or writes.
        let mapping =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), 4096, modes, shared, &file, 0) };
        let mapping = mapping.unwrap();
        assert!(own().is_some_and(|opener| opener.writes));
        drop(file);
        let is_root = rustix::process::geteuid().is_root();
        // Others may not look at what is mapped.
        assert_eq!(own().is_some_and(|opener| opener.writes), is_root);
        // SAFETY: it is the mapping of above, and nothing points into it.
        unsafe { rustix::mm::munmap(mapping, 4096) }.unwrap();
        assert_eq!(own(), None);
    }
}
