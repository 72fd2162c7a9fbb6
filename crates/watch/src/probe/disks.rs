//! The counters of disks: which of the kernel's block devices are whole ones, and what they did.

use std::path::Path;

use crate::{DiskCounters, parse_diskstats};
use rubus_host::Files;
use rubus_host::files::polled_file::PolledFile;

use super::keep;

pub(super) struct Disks<'a> {
    files: &'a dyn Files,
    diskstats: Option<PolledFile>,
    /// What is known of each name, in the kernel's order.
    known: Vec<Known>,
}

struct Known {
    name: String,
    is_shown: bool,
}

impl<'a> Disks<'a> {
    pub(super) fn new(files: &'a dyn Files) -> Disks<'a> {
        Disks { files, diskstats: keep("/proc/diskstats"), known: Vec::new() }
    }

    /// The counters of every disk. `forgets` discards what is known of each name: the same name may be another device now.
    pub(super) fn read(&mut self, buffer: &mut Vec<u8>, forgets: bool) -> Vec<DiskCounters> {
        let Some(text) = self.diskstats.as_ref().and_then(|file| file.read(buffer).ok()) else {
            return Vec::new();
        };
        if forgets {
            self.known.clear();
        }
        let mut disks = Vec::with_capacity(self.known.len());
        for (at, (name, counters)) in parse_diskstats(text).enumerate() {
            if !counters.is_used() {
                continue;
            }
            // Mostly the same names come in the same order.
            let hint = self.known.get(at).filter(|known| known.name == name);
            let found = hint.or_else(|| self.known.iter().find(|known| known.name == name));
            let is_shown = match found {
                Some(known) => known.is_shown,
                None => {
                    let is_shown = is_whole_and_there(self.files, name);
                    self.known.push(Known { name: name.to_string(), is_shown });
                    is_shown
                }
            };
            if is_shown {
                disks.push(DiskCounters { name: name.to_string(), ..counters });
            }
        }
        disks
    }
}

/// A partition has a number; a loop or network device without a file or a server has no size.
fn is_whole_and_there(files: &dyn Files, name: &str) -> bool {
    // The kernel writes a slash in a name as an exclamation mark there.
    let directory = format!("/sys/class/block/{}", name.replace('/', "!"));
    let is_partition = files.exists(Path::new(&format!("{directory}/partition")));
    let size = files.text(Path::new(&format!("{directory}/size")));
    !is_partition && size.is_ok_and(|sectors| sectors.trim() != "0")
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;

    #[test]
    fn partitions_and_empty_loop_devices_are_left_out() {
        let files = FakeFiles::new()
            .file("/sys/class/block/mmcblk0/size", "124735488\n")
            .file("/sys/class/block/mmcblk0p1/size", "1048576\n")
            .file("/sys/class/block/mmcblk0p1/partition", "1\n")
            .file("/sys/class/block/loop0/size", "0\n")
            .file("/sys/class/block/cciss!c0d0/size", "7\n");
        let shown = |name: &str| is_whole_and_there(&files, name);
        assert!(shown("mmcblk0") && shown("cciss/c0d0"));
        assert!(!shown("mmcblk0p1") && !shown("loop0") && !shown("sdz"));
    }
}
