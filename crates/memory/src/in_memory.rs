//! Whether a directory lies in memory in the end, so that swap there would be no swap.
//!
//! Swap on a file whose own pages the kernel keeps in memory makes no room: what is swapped out is kept all the same. Once
//! those pages are to be swapped out themselves, to the very file that they are of, the kernel waits for itself for ever.

#![deny(clippy::disallowed_methods)]

use rubus_machine::parse::mountinfo::{self, MountLine};
use rubus_vocabulary::machine::Machine;

/// Filesystems whose files are nowhere but in memory. `rootfs` is the first one, of a system that never left its initramfs.
const IN_MEMORY: [&str; 5] = ["tmpfs", "ramfs", "devtmpfs", "rootfs", "hugetlbfs"];

/// What of it is memory, in words ("/dev/shm is a tmpfs"), when a file in the directory would be kept in memory; nothing
/// when it would be on a disk. `mounts` is `/proc/self/mountinfo`; the directory is absolute, without links.
pub fn in_memory(machine: &Machine, mounts: &str, directory: &str) -> Option<String> {
    let (mounts, _strange) = mountinfo::parse(mounts);
    let mut walk = Walk { machine, mounts: &mounts, seen: Vec::new() };
    walk.directory(directory)
}

struct Walk<'a> {
    machine: &'a Machine,
    mounts: &'a [MountLine],
    /// Devices that were looked at: a stack that stands on itself has no bottom to be found.
    seen: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn directory(&mut self, directory: &str) -> Option<String> {
        let mount = mountinfo::holding(self.mounts, directory)?;
        let point = &mount.point;
        if IN_MEMORY.contains(&mount.filesystem.as_str()) {
            return Some(format!("{point} is a {}", mount.filesystem));
        }
        if mount.filesystem == "overlay" {
            let mut options = mount.super_options.iter();
            let upper = options.find_map(|option| option.strip_prefix("upperdir="))?;
            let holder = mountinfo::holding(self.mounts, upper)?;
            // The kernel looks an upper directory up before the overlay is there, so it is not in the overlay, nor in
            // a later one: such a path was right in another view of the mounts.
            if holder.id == mount.id || holder.filesystem == "overlay" {
                return Some(format!(
                    "{point} is an overlay, and where it keeps what is written ({upper}) cannot be seen from here"
                ));
            }
            let below = self.directory(upper)?;
            return Some(format!("{point} is an overlay in {upper}, and {below}"));
        }
        let mut surveyed = self.machine.mounts.iter();
        let found = surveyed.find(|found| found.point == *point)?;
        self.device(found.device.as_deref()?)
    }

    fn device(&mut self, name: &'a str) -> Option<String> {
        if is_numbered(name, "zram") || is_numbered(name, "ram") {
            return Some(format!("{name} is a device in memory"));
        }
        if self.seen.contains(&name) {
            return None;
        }
        self.seen.push(name);
        let device = self.machine.device(name)?;
        if let Some(file) = &device.backing_file {
            let below = self.directory(file)?;
            return Some(format!("{name} is the file {file}, and {below}"));
        }
        let mut below = device.parent.iter().chain(&device.below);
        below.find_map(|below| self.device(below))
    }
}

/// `zram0`, but not `zramdisk`; `zram0p1`, too.
fn is_numbered(name: &str, kind: &str) -> bool {
    name.strip_prefix(kind)
        .is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::machine::{BlockDevice, Mount};

    const MOUNTS: &str = "\
20 1 0:2 / / rw - ext4 /dev/mmcblk0p2 rw
21 20 0:22 / /dev rw - devtmpfs udev rw
22 21 0:23 / /dev/shm rw - tmpfs tmpfs rw
23 20 252:0 / /mnt/zram rw - ext4 /dev/zram0 rw
24 20 7:0 / /mnt/image rw - ext4 /dev/loop0 rw
25 20 7:1 / /mnt/kept rw - ext4 /dev/loop1 rw
26 20 0:30 / /mnt/live rw - overlay overlay rw,lowerdir=/,upperdir=/dev/shm/upper,workdir=/dev/shm/work
27 20 0:31 / /mnt/merged rw - overlay overlay rw,lowerdir=/,upperdir=/var/upper,workdir=/var/work
28 20 254:1 / /mnt/secret rw - ext4 /dev/mapper/secret rw
";

    fn machine() -> Machine {
        let mut machine = fixture::pi3_with_usb_ssd();
        let mount = machine.mounts[0].clone();
        machine.mounts = mountinfo::parse(MOUNTS)
            .0
            .iter()
            .map(|line| Mount {
                point: line.point.clone(),
                filesystem: line.filesystem.clone(),
                device: match line.source.as_str() {
                    "/dev/mapper/secret" => Some("dm-1".into()),
                    source => source.strip_prefix("/dev/").map(str::to_string),
                },
                ..mount.clone()
            })
            .collect();
        let device = machine.block_devices[0].clone();
        let mut add = |name: &str, backing_file: Option<&str>, below: &[&str]| {
            machine.block_devices.push(BlockDevice {
                name: name.into(),
                parent: None,
                backing_file: backing_file.map(str::to_string),
                below: below.iter().map(|name| name.to_string()).collect(),
                ..device.clone()
            });
        };
        add("loop0", Some("/dev/shm/disk.img"), &[]);
        add("loop1", Some("/srv/disk.img"), &["mmcblk0p2"]);
        add("dm-1", None, &["loop0"]);
        machine
    }

    fn found(directory: &str) -> Option<String> {
        in_memory(&machine(), MOUNTS, directory)
    }

    #[test]
    fn what_is_kept_in_memory_is_found_however_deep() {
        let says = |directory: &str, words: &str| {
            assert_eq!(found(directory).as_deref(), Some(words), "{directory}");
        };
        says("/dev/shm/a", "/dev/shm is a tmpfs");
        says("/dev", "/dev is a devtmpfs");
        says("/mnt/zram", "zram0 is a device in memory");
        let file = "loop0 is the file /dev/shm/disk.img, and /dev/shm is a tmpfs";
        says("/mnt/image/var", file);
        says("/mnt/secret", file);
        says("/mnt/live", "/mnt/live is an overlay in /dev/shm/upper, and /dev/shm is a tmpfs");
    }

    #[test]
    fn a_disk_is_a_disk_however_deep() {
        for directory in ["/var/tmp", "/mnt/kept", "/mnt/merged", "/"] {
            assert_eq!(found(directory), None, "{directory}");
        }
    }

    #[test]
    fn an_overlay_from_another_view_of_the_mounts_is_not_trusted() {
        let mounts = "1 0 0:30 / / rw - overlay overlay rw,lowerdir=/a,upperdir=/b/upper\n";
        let said = in_memory(&machine(), mounts, "/var/tmp").unwrap();
        assert!(said.contains("/b/upper) cannot be seen"), "{said}");
    }

    #[test]
    fn names_are_not_taken_for_others() {
        assert!(is_numbered("zram0", "zram") && is_numbered("ram12", "ram"));
        assert!(!is_numbered("ramdisk", "ram") && !is_numbered("sda", "ram"));
    }

    proptest::proptest! {
        #[test]
        fn no_stack_is_without_an_end(
            below in proptest::collection::vec((0_usize..4, 0_usize..4), 1..4),
            file in proptest::option::of("(/mnt/image|/dev/shm|/)/[a-z]{1,3}"),
        ) {
            let mut machine = machine();
            for (at, (left, right)) in below.iter().enumerate() {
                let device = machine.block_devices[0].clone();
                machine.block_devices.insert(0, BlockDevice {
                    name: format!("dm-{at}"),
                    parent: None,
                    backing_file: None,
                    below: vec![format!("dm-{left}"), format!("dm-{right}"), "loop9".into()],
                    ..device
                });
            }
            let device = machine.block_devices[0].clone();
            machine.block_devices.push(BlockDevice { name: "loop9".into(), backing_file: file, below: vec![], ..device });
            for mount in &mut machine.mounts {
                mount.device = Some("dm-0".into());
            }
            let _ = in_memory(&machine, MOUNTS, "/var/tmp");
        }
    }
}
