//! Reading what the health of disks is judged by, besides the facts of the machine.

use std::path::Path;

use rubus_host::Files;
use rubus_host::clock::day_of;
use rubus_machine::kernel_log::troubles;
use rubus_vocabulary::kernel_log::KernelTrouble;
use rubus_vocabulary::machine::Machine;

use super::sysfs::{number, text};
use super::{arrays, wear};
use crate::health::{DiskHealth, ErrorCount, Told, of_machine};

/// Maximum number of previous boots to look at.
const MAX_BOOTS: usize = 3;
/// The last lines of each boot's log: trouble is what a boot ended with.
const MAX_LINES: &str = "--lines=4000";
const EXT4: &str = "/sys/fs/ext4";
const BTRFS: &str = "/sys/fs/btrfs";

/// The health of every disk of a machine.
pub fn read(files: &dyn Files, machine: &Machine) -> Vec<DiskHealth> {
    let wear = wear::read(files, machine);
    of_machine(machine, &told(files, wear))
}

/// [`read`] with what the disks have said of their wear already.
pub fn told(files: &dyn Files, wear: Vec<crate::wear::Wear>) -> Told {
    let mut counts = of_ext4(files);
    counts.extend(of_btrfs(files));
    let arrays = arrays::read(files);
    counts.extend(arrays.iter().flat_map(|(_, counts)| counts.clone()));
    let arrays = arrays.into_iter().map(|(array, _)| array).collect();
    Told { wear, earlier_boots: earlier_boots(files), counts, arrays }
}

/// The trouble in the logs of earlier boots, where the journal keeps them.
fn earlier_boots(files: &dyn Files) -> Vec<Vec<KernelTrouble>> {
    let boots = (1..=MAX_BOOTS).map_while(|boot| {
        let boot = format!("--boot=-{boot}");
        let arguments = ["--dmesg", &boot, "--quiet", "--no-pager", "--output=cat", MAX_LINES];
        files.ask("journalctl", &arguments).ok()
    });
    boots.map(|log| troubles(&log)).collect()
}

/// `errors_count` and `last_error_time` of each ext4 (Linux documentation, ABI/testing/sysfs-fs-ext4).
fn of_ext4(files: &dyn Files) -> Vec<ErrorCount> {
    let names = files.list(Path::new(EXT4)).unwrap_or_default();
    let counts = names.into_iter().filter_map(|device| {
        let times = number(files, &format!("{EXT4}/{device}/errors_count")).filter(|n| *n > 0)?;
        let last = number(files, &format!("{EXT4}/{device}/last_error_time")).filter(|n| *n > 0);
        let last_day = last.and_then(|seconds| day_of(i64::try_from(seconds).ok()?));
        let (devices, counter) = (vec![device], "ext4".into());
        Some(ErrorCount { devices, counter, what: "errors".into(), times, last_day })
    });
    counts.collect()
}

/// `error_stats` of each device of each btrfs: over its life, until `btrfs device stats -z`. On several devices sysfs does not say
/// which of them a number is of.
fn of_btrfs(files: &dyn Files) -> Vec<ErrorCount> {
    let list = |path: String| files.list(Path::new(&path)).unwrap_or_default();
    let mut counts = Vec::new();
    for filesystem in list(BTRFS.into()) {
        let root = format!("{BTRFS}/{filesystem}");
        let devices = list(format!("{root}/devices"));
        for number in list(format!("{root}/devinfo")) {
            let stats = text(files, &format!("{root}/devinfo/{number}/error_stats"));
            counts.extend(stats.lines().filter_map(|line| btrfs_count(&devices, line)));
        }
    }
    counts
}

/// `write_errs 0`.
fn btrfs_count(devices: &[String], line: &str) -> Option<ErrorCount> {
    let (name, times) = line.split_once(' ')?;
    let what = match name {
        "write_errs" => "write errors",
        "read_errs" => "read errors",
        "flush_errs" => "flush errors",
        "corruption_errs" => "wrong checksums",
        "generation_errs" => "blocks of another generation",
        _ => return None,
    };
    let times = times.trim().parse().ok().filter(|times| *times > 0)?;
    let (devices, what) = (devices.to_vec(), what.to_string());
    Some(ErrorCount { devices, counter: "btrfs".into(), what, times, last_day: None })
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;
    use rubus_vocabulary::kernel_log::TroubleKind;

    use super::*;

    fn boot(number: &str) -> [&str; 7] {
        ["journalctl", "--dmesg", number, "--quiet", "--no-pager", "--output=cat", MAX_LINES]
    }

    #[test]
    fn logs_of_earlier_boots_and_the_counters_of_filesystems_are_read() {
        let files = FakeFiles::new()
            .program(&boot("--boot=-1"), "EXT4-fs (sda1): Remounting filesystem read-only\n")
            .program(
                &boot("--boot=-2"),
                "I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2\n",
            )
            .file("/sys/fs/ext4/sda1/errors_count", "3\n")
            .file("/sys/fs/ext4/sda1/last_error_time", "1772323200\n")
            .file("/sys/fs/ext4/sda2/errors_count", "0\n")
            .file("/sys/fs/btrfs/6f2c/devices/sdb1/size", "1\n")
            .file(
                "/sys/fs/btrfs/6f2c/devinfo/1/error_stats",
                "write_errs 0\nread_errs 2\nflush_errs 0\n",
            );
        let told = told(&files, Vec::new());
        let kinds: Vec<Vec<TroubleKind>> = told
            .earlier_boots
            .iter()
            .map(|boot| boot.iter().map(|trouble| trouble.kind).collect())
            .collect();
        assert_eq!(kinds, [vec![TroubleKind::FilesystemReadOnly], vec![TroubleKind::Io]]);
        let counts: Vec<_> = told
            .counts
            .iter()
            .map(|one| {
                (one.devices[0].as_str(), one.what.as_str(), one.times, one.last_day.as_deref())
            })
            .collect();
        assert_eq!(
            counts,
            [("sda1", "errors", 3, Some("2026-03-01")), ("sdb1", "read errors", 2, None)]
        );
    }
}
