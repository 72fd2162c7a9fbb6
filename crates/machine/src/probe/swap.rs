//! Swap in all its forms: active areas, zswap, zram.
//!
//! The programs that configure it are in `swap_managers.rs`.

use std::path::Path;

use crate::parse::mountinfo::{self, MountLine};
use crate::parse::swaps::{self, SwapLine};
use rubus_host::{Files, ReadError};
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{Setting, Swap, SwapArea, Zram, Zswap};

use crate::probe::read::{self, filled_text};
use crate::probe::swap_managers;

const SWAPS: &str = "/proc/swaps";
const MOUNTINFO: &str = "/proc/self/mountinfo";
const ZSWAP_PARAMETERS: &str = "/sys/module/zswap/parameters";
const ZSWAP_COUNTERS: &str = "/sys/kernel/debug/zswap";

pub(crate) fn swap(files: &dyn Files) -> Swap {
    Swap {
        areas: areas(files),
        zswap: zswap(files),
        zram: zram(files),
        managers: swap_managers::swap_managers(files),
    }
}

fn areas(files: &dyn Files) -> Vec<SwapArea> {
    let text = read::text(files, SWAPS);
    let (lines, _strange) = swaps::parse(text.text().unwrap_or(""));
    lines
        .into_iter()
        .map(|line| SwapArea {
            device: if line.kind == "partition" {
                device_of_node(files, &line.path)
            } else {
                device_of_file(files, &line)
            },
            path: line.path,
            kind: line.kind,
            size_bytes: line.size_bytes,
            used_bytes: line.used_bytes,
            priority: line.priority,
        })
        .collect()
}

/// The kernel name behind a path in `/dev`: `/dev/mapper/swap` is a link to `/dev/dm-0`.
fn device_of_node(files: &dyn Files, node: &str) -> Fact<String> {
    match files.real_path(Path::new(node)) {
        Ok(real) => match real.file_name() {
            Some(name) => Fact::known(name.to_string_lossy().into_owned(), node),
            None => Fact::unknown("the path has no name", node),
        },
        // The kernel tells the name as it was at the time of swapon; under /dev it is enough.
        Err(ReadError::Absent | ReadError::NotCaptured)
            if node.starts_with("/dev/") && !node["/dev/".len()..].contains('/') =>
        {
            Fact::known(node["/dev/".len()..].to_string(), SWAPS)
        }
        Err(error) => Fact::unknown(error.to_string(), node),
    }
}

/// The device of the filesystem that a swap file is on.
fn device_of_file(files: &dyn Files, area: &SwapLine) -> Fact<String> {
    let text = read::text(files, MOUNTINFO);
    let (mounts, _strange) = mountinfo::parse(text.text().unwrap_or(""));
    match mountinfo::holding(&mounts, &area.path) {
        Some(mount) => device_of_mount(files, mount),
        None => {
            Fact::unknown(text.reason().unwrap_or("no mount holds its path").to_string(), MOUNTINFO)
        }
    }
}

fn device_of_mount(files: &dyn Files, mount: &MountLine) -> Fact<String> {
    let (major, minor) = mount.device;
    if major == 0 {
        // btrfs has anonymous numbers; its source is the device.
        return match mount.source.strip_prefix("/dev/") {
            Some(_) => device_of_node(files, &mount.source),
            None => Fact::unknown(format!("{} is not on a device", mount.filesystem), MOUNTINFO),
        };
    }
    let link = format!("/sys/dev/block/{major}:{minor}");
    match files.real_path(Path::new(&link)) {
        Ok(real) => match real.file_name() {
            Some(name) => Fact::known(name.to_string_lossy().into_owned(), link),
            None => Fact::unknown("the link has no name", link),
        },
        Err(error) => Fact::unknown(error.to_string(), link),
    }
}

fn zswap(files: &dyn Files) -> Zswap {
    let enabled = match files.list(Path::new(ZSWAP_PARAMETERS)) {
        Err(ReadError::Absent) if !files.exists(Path::new("/sys/module")) => {
            Fact::unknown("there is no /sys here", ZSWAP_PARAMETERS)
        }
        Err(ReadError::Absent) => Fact::unknown("this kernel has no zswap", ZSWAP_PARAMETERS),
        _ => read::flag(files, &format!("{ZSWAP_PARAMETERS}/enabled")),
    };
    let (counters, counters_unknown) = match files.list(Path::new(ZSWAP_COUNTERS)) {
        Ok(names) => (settings(files, ZSWAP_COUNTERS, &names), None),
        Err(ReadError::Absent) => {
            let reason = "no such directory; debugfs is not mounted, or zswap was never used";
            (Vec::new(), Some(reason.to_string()))
        }
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let parameters = files.list(Path::new(ZSWAP_PARAMETERS)).unwrap_or_default();
    Zswap {
        enabled,
        parameters: settings(files, ZSWAP_PARAMETERS, &parameters),
        counters,
        counters_unknown,
    }
}

fn settings(files: &dyn Files, directory: &str, names: &[String]) -> Vec<Setting> {
    names
        .iter()
        .map(|name| Setting {
            name: name.clone(),
            value: filled_text(files, &format!("{directory}/{name}")),
        })
        .collect()
}

fn zram(files: &dyn Files) -> Vec<Zram> {
    files
        .list(Path::new("/sys/block"))
        .unwrap_or_default()
        .iter()
        .filter(|name| is_zram(name))
        .map(|name| zram_device(files, name))
        // The module makes one when it is loaded; without a size it holds nothing.
        .filter(|device| device.size_bytes.get() != Some(0))
        .collect()
}

fn is_zram(name: &str) -> bool {
    name.strip_prefix("zram")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn zram_device(files: &dyn Files, name: &str) -> Zram {
    let directory = format!("/sys/block/{name}");
    // Columns: Documentation/admin-guide/blockdev/zram.rst of the kernel.
    let statistics = read::text(files, &format!("{directory}/mm_stat"));
    let column = |number: usize| {
        statistics.clone().and_then(|text| {
            let word = text.split_whitespace().nth(number);
            word.ok_or_else(|| format!("it has no column {}", number + 1))
                .and_then(read::parse_number::<u64>)
        })
    };
    Zram {
        name: name.to_string(),
        size_bytes: read::number(files, &format!("{directory}/disksize")),
        algorithm: read::text(files, &format!("{directory}/comp_algorithm"))
            .and_then(|text| chosen(&text)),
        original_bytes: column(0),
        compressed_bytes: column(1),
        memory_bytes: column(2),
        backing_device: filled_text(files, &format!("{directory}/backing_dev")),
    }
}

/// The word in brackets: "lzo-rle lz4 [zstd]".
fn chosen(text: &str) -> Result<String, String> {
    text.split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .map(str::to_string)
        .ok_or_else(|| format!("it says '{text}' and marks none as chosen"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    #[test]
    fn areas_tell_the_device_that_they_sit_on() {
        let files = FakeFiles::new()
            .file(
                SWAPS,
                "Filename Type Size Used Priority\n\
                 /dev/zram0 partition 1048572 0 100\n/dev/mapper/vg-swap partition 4 0 5\n\
                 /var/swap file 102396 512 -2\n/home/swap/file file 8 0 -3\n\
                 /tmp/swap file 8 0 -4\n",
            )
            .link("/dev/mapper/vg-swap", "../dm-0")
            .dir("/dev/dm-0")
            .dir("/dev/sda1")
            .file(
                MOUNTINFO,
                "26 1 179:2 / / rw,noatime - ext4 /dev/root rw\n\
                 30 26 0:27 /@home /home rw - btrfs /dev/sda1 rw\n\
                 31 26 0:30 / /tmp rw - tmpfs tmpfs rw\n",
            )
            .link("/sys/dev/block/179:2", "/sys/devices/mmc/block/mmcblk0/mmcblk0p2")
            .dir("/sys/devices/mmc/block/mmcblk0/mmcblk0p2");
        let areas = swap(&files).areas;
        let devices: Vec<Option<&str>> = areas.iter().map(|area| area.device.text()).collect();
        assert_eq!(devices, [Some("zram0"), Some("dm-0"), Some("mmcblk0p2"), Some("sda1"), None]);
        assert_eq!(areas[4].device.reason(), Some("tmpfs is not on a device"));
        assert_eq!(areas[2].used_bytes, 512 * 1024);
        assert_eq!(areas[0].priority, 100);
    }

    #[test]
    fn zswap_shows_what_this_kernel_has() {
        let files = FakeFiles::new()
            .files(ZSWAP_PARAMETERS, [("enabled", "Y\n"), ("compressor", "zstd\n")])
            .denied(ZSWAP_COUNTERS);
        let zswap = swap(&files).zswap;
        assert_eq!(zswap.enabled.get(), Some(true));
        assert_eq!(zswap.parameters[0].name, "compressor");
        assert_eq!(zswap.parameters[0].value.text(), Some("zstd"));
        assert!(zswap.counters_unknown.unwrap().contains("root"));
        let container = swap(&FakeFiles::new()).zswap;
        assert_eq!(container.enabled.reason(), Some("there is no /sys here"));
        let without = swap(&FakeFiles::new().dir("/sys/module")).zswap;
        assert_eq!(without.enabled.reason(), Some("this kernel has no zswap"));
        let with_counters = files.file(format!("{ZSWAP_COUNTERS}/stored_pages"), "17\n");
        // Denied stays denied though something below is known.
        assert!(swap(&with_counters).zswap.counters.is_empty());
        let root = FakeFiles::new().file(format!("{ZSWAP_COUNTERS}/stored_pages"), "17\n");
        let zswap = swap(&root).zswap;
        assert_eq!(zswap.counters[0].value.text(), Some("17"));
        assert_eq!(zswap.counters_unknown, None);
    }

    #[test]
    fn zram_tells_compressor_sizes_and_backing() {
        let files = FakeFiles::new().dir("/sys/block/sda").files(
            "/sys/block/zram0",
            [
                ("disksize", "2147483648\n"),
                ("comp_algorithm", "lzo lzo-rle lz4 [zstd]\n"),
                ("mm_stat", "    8192   115    8192  0  8192  1  0  0  0\n"),
                ("backing_dev", "/dev/loop0\n"),
            ],
        );
        let zram = swap(&files).zram;
        assert_eq!(zram.len(), 1);
        assert_eq!(zram[0].algorithm.text(), Some("zstd"));
        assert_eq!(zram[0].original_bytes.get(), Some(8192));
        assert_eq!(zram[0].compressed_bytes.get(), Some(115));
        assert_eq!(zram[0].memory_bytes.get(), Some(8192));
        assert_eq!(zram[0].backing_device.text(), Some("/dev/loop0"));
        let unused = FakeFiles::new().file("/sys/block/zram0/disksize", "0\n");
        assert!(swap(&unused).zram.is_empty());
        let bare = FakeFiles::new().dir("/sys/block/zram1");
        assert_eq!(swap(&bare).zram[0].size_bytes.reason(), Some("no such file"));
    }
}
