//! Asking disks how worn they are.

use std::path::{Path, PathBuf};

use rubus_host::Files;
use rubus_host::files::ReadError;
use rubus_vocabulary::machine::Machine;

use crate::wear::emmc::{UFS_HEALTH, parse_life_time, parse_pre_eol_info};
use crate::wear::{Source, Trouble, Wear, smart};

/// No such file of the kernel is longer.
const MAX_BYTES: usize = 256;

/// What each disk of this machine says. Cards, eMMC, SCSI, ATA and NVMe disks are asked; a disk that sleeps stays asleep.
pub fn read(files: &dyn Files, machine: &Machine) -> Vec<Wear> {
    let devices = machine.block_devices.iter();
    let devices: Vec<Device<'_>> =
        devices.map(|device| (device.name.as_str(), device.parent.as_deref())).collect();
    of_devices(files, &devices)
}

/// The kernel's name of a device, and of the disk that it is a part of.
type Device<'a> = (&'a str, Option<&'a str>);

fn of_devices(files: &dyn Files, devices: &[Device<'_>]) -> Vec<Wear> {
    // The hardware partitions of an eMMC are no disks of their own.
    let disks = devices.iter().filter(|(name, parent)| parent.is_none() && !name.contains("boot"));
    disks
        .filter_map(|(disk, _)| {
            let starts_with = |start: &&str| disk.starts_with(start);
            let wear = match disk {
                _ if starts_with(&"mmcblk") => of_card(files, disk),
                _ if starts_with(&"sd") => {
                    of_ufs(files, disk).unwrap_or_else(|| of_disk(files, disk))
                }
                _ if starts_with(&"nvme") => of_disk(files, disk),
                _ => return None,
            };
            let is_on_it = |(name, parent): &&Device<'_>| name == disk || *parent == Some(disk);
            let names = devices.iter().filter(is_on_it).map(|(name, _)| *name);
            Some(wear.with_filesystems(filesystems_written_bytes(files, names)))
        })
        .collect()
}

fn of_card(files: &dyn Files, name: &str) -> Wear {
    let word =
        |file: &str| text(files, Path::new("/sys/block").join(name).join("device").join(file));
    let life_time = word("life_time");
    let warning = word("pre_eol_info").and_then(|text| parse_pre_eol_info(&text));
    Wear {
        disk: name.to_string(),
        // An SD card has no such register.
        source: life_time.is_some().then_some(Source::Emmc),
        used: life_time.and_then(|text| parse_life_time(&text)),
        warnings: warning.into_iter().collect(),
        ..Wear::default()
    }
}

/// A disk whose controller has a health descriptor, which smartctl does not read.
fn of_ufs(files: &dyn Files, name: &str) -> Option<Wear> {
    let directory = Path::new("/sys/block").join(name).join(UFS_HEALTH);
    let word = |file: &str| text(files, directory.join(file));
    let of_kinds: Vec<String> =
        ["life_time_estimation_a", "life_time_estimation_b"].into_iter().filter_map(word).collect();
    let warning = word("eol_info").and_then(|text| parse_pre_eol_info(&text));
    (!of_kinds.is_empty()).then(|| Wear {
        disk: name.to_string(),
        source: Some(Source::Ufs),
        used: parse_life_time(&of_kinds.join(" ")),
        warnings: warning.into_iter().collect(),
        ..Wear::default()
    })
}

fn of_disk(files: &dyn Files, name: &str) -> Wear {
    let wear = asked(files, name, None);
    let is_behind_bridge = name.starts_with("sd");
    let kind = wear.trouble.as_ref().filter(|_| is_behind_bridge).and_then(smart::device_type);
    let Some(kind) = kind else {
        return wear;
    };
    let again = asked(files, name, Some(kind));
    if again.source.is_some() { again } else { wear }
}

/// What smartctl says of a disk, as it finds it or as a disk of this kind (`--device`).
fn asked(files: &dyn Files, name: &str, kind: Option<&str>) -> Wear {
    let node = format!("/dev/{name}");
    let device = kind.map(|kind| format!("--device={kind}"));
    let mut arguments = smart::ARGUMENTS.to_vec();
    arguments.extend(device.as_deref());
    arguments.push(&node);
    let trouble = match files.ask("smartctl", &arguments) {
        // Its status tells what it found; its answer is there all the same.
        Ok(output) | Err(ReadError::Failed { output, .. }) if !output.trim().is_empty() => {
            return smart::parse(name, &output);
        }
        Err(ReadError::Absent) => Trouble::NoSmartctl,
        Ok(_) => Trouble::Other("no answer".into()),
        Err(error) => Trouble::Other(error.to_string()),
    };
    Wear { disk: name.to_string(), trouble: Some(trouble), ..Wear::default() }
}

/// What the mounted ext4 filesystems on these devices have written since they were made, as their superblocks count it.
fn filesystems_written_bytes<'a>(
    files: &dyn Files,
    names: impl Iterator<Item = &'a str>,
) -> Option<u64> {
    let written = names.filter_map(|name| {
        let path = Path::new("/sys/fs/ext4").join(name).join("lifetime_write_kbytes");
        let kib: u64 = text(files, path)?.trim().parse().ok()?;
        Some(kib.saturating_mul(1024))
    });
    written.reduce(u64::saturating_add)
}

fn text(files: &dyn Files, path: PathBuf) -> Option<String> {
    let bytes = files.read_prefix(&path, MAX_BYTES).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;
    use crate::wear::{Used, Warning};

    fn call(node: &str) -> Vec<&str> {
        let mut call = vec!["smartctl"];
        call.extend(smart::ARGUMENTS);
        call.push(node);
        call
    }

    #[test]
    fn a_soldered_flash_tells_by_its_registers_and_a_card_only_by_its_filesystems() {
        let files = FakeFiles::new()
            .file("/sys/block/mmcblk0/device/life_time", "0x02 0x01\n")
            .file("/sys/block/mmcblk0/device/pre_eol_info", "0x02\n")
            .file("/sys/fs/ext4/mmcblk0p2/lifetime_write_kbytes", "1000\n")
            .file("/sys/fs/ext4/mmcblk1p2/lifetime_write_kbytes", "2000\n")
            .file("/sys/fs/ext4/mmcblk1p3/lifetime_write_kbytes", "24\n");
        let devices = [
            ("mmcblk0", None),
            ("mmcblk0p2", Some("mmcblk0")),
            ("mmcblk0boot0", None),
            ("mmcblk1", None),
            ("mmcblk1p2", Some("mmcblk1")),
            ("mmcblk1p3", Some("mmcblk1")),
            ("zram0", None),
            ("loop0", None),
        ];
        let told = of_devices(&files, &devices);
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[0].source, Some(Source::Emmc));
        let used = Used { min_percent: 10.0, max_percent: Some(20.0) };
        assert_eq!(told[0].used, Some(used));
        assert_eq!(told[0].warnings, [Warning::SpareLow]);
        assert_eq!(told[0].filesystems_written_bytes, Some(1_024_000));
        let card = Wear {
            disk: "mmcblk1".into(),
            filesystems_written_bytes: Some(2024 * 1024),
            ..Wear::default()
        };
        assert_eq!(told[1], card);
    }

    #[test]
    fn a_ufs_disk_tells_by_the_health_descriptor_of_its_controller() {
        let of = |file: &str| format!("/sys/block/sda/device/../../../health_descriptor/{file}");
        let files = FakeFiles::new()
            .file(of("life_time_estimation_a"), "0x01\n")
            .file(of("life_time_estimation_b"), "0x0b\n")
            .file(of("eol_info"), "0x03\n");
        let told = of_devices(&files, &[("sda", None)]);
        assert_eq!(told[0].source, Some(Source::Ufs));
        assert_eq!(told[0].used, Some(Used { min_percent: 100.0, max_percent: None }));
        assert_eq!(told[0].warnings, [Warning::SpareNearlyUsedUp]);
    }

    #[test]
    fn a_disk_is_asked_by_smartctl_whatever_its_status() {
        let answer = r#"{"nvme_smart_health_information_log": {"percentage_used": 7, "data_units_written": 2}}"#;
        let failed =
            ReadError::Failed { status: 8, complaint: String::new(), output: answer.into() };
        let files = FakeFiles::new()
            .program(&call("/dev/sda"), answer)
            .failing_program(&call("/dev/nvme0n1"), failed)
            .failing_program(&call("/dev/sdb"), ReadError::Absent)
            .failing_program(&call("/dev/sdc"), ReadError::Other("no answer in time".into()));
        let names = ["sda", "nvme0n1", "sdb", "sdc"].map(|name| (name, None));
        let told = of_devices(&files, &names);
        let used: Vec<_> = told.iter().map(|wear| wear.used.is_some()).collect();
        assert_eq!(used, [true, true, false, false]);
        assert_eq!(told[1].written_bytes, Some(1_024_000));
        assert_eq!(told[2].trouble, Some(Trouble::NoSmartctl));
        let other = Trouble::Other("no answer in time".into());
        assert_eq!(told[3].trouble, Some(other));
    }

    #[test]
    fn a_bridge_that_smartctl_mistakes_is_asked_again_as_what_it_is() {
        let refused = |words: &str| {
            let message = format!(r#"{{"string": "{words}", "severity": "error"}}"#);
            ReadError::Failed {
                status: 2,
                complaint: String::new(),
                output: format!(r#"{{"smartctl": {{"exit_status": 2, "messages": [{message}]}}}}"#),
            }
        };
        let log = r#"{"nvme_smart_health_information_log": {"percentage_used": 7}}"#;
        let mistaken = "Read NVMe Identify Controller failed: scsi error unsupported field";
        let with_kind = |kind: &'static str, node: &'static str| {
            let mut call = call(node);
            call.insert(call.len() - 1, kind);
            call
        };
        let files = FakeFiles::new()
            .failing_program(
                &call("/dev/sda"),
                refused("/dev/sda: Unknown USB bridge [0x152d:0x0583 (0x209)]"),
            )
            .program(&with_kind("--device=sntjmicron", "/dev/sda"), log)
            .failing_program(&call("/dev/sdb"), refused(mistaken))
            .program(
                &with_kind("--device=sat", "/dev/sdb"),
                r#"{"ata_smart_attributes": {"table": [{"id": 9, "name": "Power_On_Hours", "value": 99, "raw": {"value": 5}}]}}"#,
            )
            .failing_program(
                &call("/dev/sdc"),
                refused("/dev/sdc: Unknown USB bridge [0x1352:0xa006 (0x100)]"),
            )
            .failing_program(&call("/dev/nvme0n1"), refused(mistaken));
        let names = ["sda", "sdb", "sdc", "nvme0n1"].map(|name| (name, None));
        let told = of_devices(&files, &names);
        assert_eq!(told[0].source, Some(Source::Nvme));
        assert_eq!(told[0].trouble, None);
        assert_eq!(told[1].trouble, None, "{:?}", told[1]);
        for left in &told[2..] {
            assert!(matches!(left.trouble, Some(Trouble::Other(_))), "{left:?}");
        }
    }
}
