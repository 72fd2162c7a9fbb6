//! Loop devices that reach their file through the page cache: a direct operation on such a device
//! goes past the device's own cache and is answered from the file's.
//!
//! Source: `/sys/block/loopN/loop/dio` (kernel documentation, "ABI/testing/sysfs-block-loop"), 1 for a
//! device that reaches its file by direct I/O.

use std::path::Path;

/// How many devices may lie upon one another.
const MAX_LAYERS: u32 = 8;

/// The loop device through whose file's page cache the operations on `device` go: the device
/// itself, the one that it is a partition of, or one below it. `sysfs` is where that is mounted.
pub(crate) fn through_cache(sysfs: &Path, device: &str) -> Option<String> {
    find(sysfs, device, MAX_LAYERS)
}

fn find(sysfs: &Path, device: &str, layers: u32) -> Option<String> {
    // The link leads to …/block/DISK or …/block/DISK/PARTITION.
    let place = std::fs::canonicalize(sysfs.join("class/block").join(device)).ok()?;
    let disk = if place.join("partition").exists() { place.parent()?.to_path_buf() } else { place };
    if let Ok(dio) = std::fs::read_to_string(disk.join("loop/dio")) {
        let name = disk.file_name()?.to_string_lossy().into_owned();
        return (dio.trim() == "0").then_some(name);
    }
    let below = std::fs::read_dir(disk.join("slaves")).ok()?.flatten();
    let mut names = below.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.find_map(|name| match layers {
        0 => None,
        _ => find(sysfs, &name, layers - 1),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    use super::*;

    /// A sysfs with loop0 (and a partition), loop1, and a volume on the partition.
    fn sysfs() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let at = |path: &str| root.path().join(path);
        let link = |name: &str, to: &str| {
            let to = Path::new("../../devices/virtual/block").join(to);
            symlink(to, at("class/block").join(name)).expect("a link");
        };
        create_dir_all(at("class/block")).expect("a directory");
        create_dir_all(at("devices/virtual/block/loop0/loop")).expect("a directory");
        create_dir_all(at("devices/virtual/block/loop1/loop")).expect("a directory");
        create_dir_all(at("devices/virtual/block/loop0/loop0p1")).expect("a directory");
        create_dir_all(at("devices/virtual/block/dm-0/slaves/loop0p1")).expect("a directory");
        create_dir_all(at("devices/virtual/block/sda")).expect("a directory");
        write(at("devices/virtual/block/loop0/loop/dio"), "0\n").expect("a file");
        write(at("devices/virtual/block/loop1/loop/dio"), "1\n").expect("a file");
        write(at("devices/virtual/block/loop0/loop0p1/partition"), "1\n").expect("a file");
        link("loop0", "loop0");
        link("loop1", "loop1");
        link("loop0p1", "loop0/loop0p1");
        link("dm-0", "dm-0");
        link("sda", "sda");
        root
    }

    #[test]
    fn the_loop_device_is_found_below_partitions_and_volumes() {
        let root = sysfs();
        let found = |device| through_cache(root.path(), device);
        for device in ["loop0", "loop0p1", "dm-0"] {
            assert_eq!(found(device).as_deref(), Some("loop0"), "{device}");
        }
        for device in ["loop1", "sda", "nothing"] {
            assert_eq!(found(device), None, "{device}");
        }
    }
}
