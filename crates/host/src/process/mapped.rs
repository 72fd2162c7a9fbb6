//! What processes write to through shared memory: a mapping stays when the descriptor that it was made from is closed.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, StatxFlags};

use crate::block::blockdev::DeviceNumber;

/// A file or device that a process has mapped so that it may write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// Of a block device: which one.
    pub(crate) block: Option<DeviceNumber>,
    /// Of a regular file: the filesystem it is on, and its number there.
    pub(crate) file: Option<(DeviceNumber, u64)>,
}

/// The block devices and regular files that a process (`/proc/PID`) may write to through shared memory, as far as this user
/// may know.
pub(crate) fn writable(process: &Path) -> Vec<Mapped> {
    let text = std::fs::read_to_string(process.join("maps")).unwrap_or_default();
    let links = shared_and_writable(&text).map(|(range, _)| process.join("map_files").join(range));
    links.filter_map(|link| look(&link)).collect()
}

/// Ranges that are shared and writable and have a file behind them, as `map_files` names them, with the path of the file.
fn shared_and_writable(maps: &str) -> impl Iterator<Item = (PathBuf, &str)> {
    maps.lines().filter_map(|line| {
        let mut words = line.splitn(6, ' ');
        let (range, modes) = (words.next()?, words.next()?);
        let path = words.nth(3)?.trim_start();
        let is_wanted = modes.contains('w') && modes.ends_with('s') && path.starts_with('/');
        let elsewhere = ["/dev/shm/", "/dev/zero", "/memfd:", "/SYSV", "/dev/dri/"];
        if !is_wanted || elsewhere.iter().any(|other| path.starts_with(other)) {
            return None;
        }
        // `maps` fills up with zeros, `map_files` does not.
        let (start, end) = range.split_once('-')?;
        let plain = |digits: &str| match digits.trim_start_matches('0') {
            "" => "0".to_string(),
            rest => rest.to_string(),
        };
        Some((format!("{}-{}", plain(start), plain(end)).into(), path))
    })
}

/// What is behind a link, from what the kernel remembers: a file on a dead network filesystem does not answer.
fn look(link: &Path) -> Option<Mapped> {
    let flags = AtFlags::STATX_DONT_SYNC;
    let wanted = StatxFlags::TYPE | StatxFlags::INO;
    let stat = rustix::fs::statx(rustix::fs::CWD, link, flags, wanted).ok()?;
    let kind = FileType::from_raw_mode(u32::from(stat.stx_mode));
    let number = |major, minor| DeviceNumber { major, minor };
    let mapped = Mapped {
        block: (kind == FileType::BlockDevice)
            .then(|| number(stat.stx_rdev_major, stat.stx_rdev_minor)),
        file: (kind == FileType::RegularFile)
            .then(|| (number(stat.stx_dev_major, stat.stx_dev_minor), stat.stx_ino)),
    };
    (mapped.block.is_some() || mapped.file.is_some()).then_some(mapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon
7f5c10000000-7f5c10001000 rw-s 00000000 00:05 415  /dev/sda
7f5c10001000-7f5c10002000 r--s 00000000 00:05 415  /dev/sda
7f5c10002000-7f5c10003000 rw-p 00000000 00:05 415  /dev/sda
00e03000-00e24000 rw-s 00000000 b3:02 77           /srv/my disk.img
7f5c10004000-7f5c10005000 rw-s 00000000 00:01 12   /memfd:pulseaudio (deleted)
7f5c10005000-7f5c10006000 rw-s 00000000 00:00 0 \n\
7ffd1-7ffd2 rw-s";

    #[test]
    fn shared_and_writable_mappings_of_files_are_found() {
        let found: Vec<_> = shared_and_writable(MAPS).collect();
        assert_eq!(
            found,
            [
                (PathBuf::from("7f5c10000000-7f5c10001000"), "/dev/sda"),
                (PathBuf::from("e03000-e24000"), "/srv/my disk.img"),
            ]
        );
    }
}
