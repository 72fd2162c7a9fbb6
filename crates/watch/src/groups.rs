//! `io.stat` of control groups (cgroup-v2.rst of the kernel): which disks the units of systemd wrote to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::numbers::{lines, number, words};
use super::unit::parse_unit;

/// What a unit's processes wrote to a disk between two walks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnitDisk {
    /// The unit, as systemd names it ("cron.service").
    pub unit: String,
    /// Kernel name of the disk: "mmcblk0".
    pub disk: String,
    /// Bytes that went to it, the filesystem's own apart.
    pub written_bytes: u64,
}

/// Bytes written since the start, by path of the control group ("/system.slice/cron.service") and number of the device
/// ("179:0"). A group has what the groups below it wrote, also of those that are gone.
pub type GroupTotals = BTreeMap<String, BTreeMap<String, u64>>;

/// Bytes written, by number of the device.
pub fn parse_io_stat(text: &[u8]) -> BTreeMap<String, u64> {
    let device = |line: &[u8]| {
        let mut words = words(line);
        let device = std::str::from_utf8(words.next()?).ok()?;
        let written = words.find_map(|word| word.strip_prefix(b"wbytes="))?;
        Some((device.to_string(), number(written)?))
    };
    lines(text).filter_map(device).collect()
}

/// What units wrote between two looks, by unit and number of the device. What a slice wrote beyond the groups in it is
/// of units that are gone or not counted, and is left out.
pub fn written_between(before: &GroupTotals, now: &GroupTotals) -> BTreeMap<(String, String), u64> {
    let advance = |path: &str, device: &str, total: u64| {
        let before = before.get(path).and_then(|devices| devices.get(device));
        // A group that was recreated under the same name counts from its start.
        total.checked_sub(before.copied().unwrap_or(0)).unwrap_or(total)
    };
    let mut below: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (path, devices) in now {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        for (device, total) in devices {
            *below.entry((parent, device)).or_default() += advance(path, device, *total);
        }
    }
    let mut written = BTreeMap::new();
    for (path, devices) in now {
        let unit = parse_unit(format!("0::{path}\n").as_bytes());
        if path.ends_with(".slice") {
            continue;
        }
        for (device, total) in devices {
            let of_others = below.get(&(path.as_str(), device.as_str()));
            let own = advance(path, device, *total).saturating_sub(of_others.copied().unwrap_or(0));
            if own > 0 {
                *written.entry((unit.clone(), device.clone())).or_default() += own;
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(groups: &[(&str, &[(&str, u64)])]) -> GroupTotals {
        let devices = |devices: &[(&str, u64)]| {
            let devices = devices.iter();
            devices.map(|(device, bytes)| (device.to_string(), *bytes)).collect()
        };
        let groups = groups.iter();
        groups.map(|(path, of)| (path.to_string(), devices(of))).collect()
    }

    #[test]
    fn written_bytes_stand_by_device() {
        let text = b"179:0 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n8:0 rbytes=4096 wbytes=0 rios=1\n\n9:9\n";
        let told = parse_io_stat(text);
        assert_eq!(
            told.into_iter().collect::<Vec<_>>(),
            [("179:0".to_string(), 314_773_504), ("8:0".to_string(), 0)]
        );
    }

    #[test]
    fn a_unit_has_what_it_wrote_beyond_those_in_it() {
        let before = totals(&[
            ("/system.slice", &[("8:0", 1000)]),
            ("/system.slice/cron.service", &[("8:0", 400)]),
            ("/user.slice/user@1000.service", &[("8:0", 90)]),
            ("/user.slice/user@1000.service/app.slice/foot.scope", &[("8:0", 80)]),
            ("/user.slice/user@1000.service/app.slice", &[("8:0", 80)]),
            ("/system.slice/anew.service", &[("8:0", 70)]),
        ]);
        let now = totals(&[
            ("/system.slice", &[("8:0", 9000)]),
            ("/system.slice/cron.service", &[("8:0", 500), ("179:0", 7)]),
            ("/user.slice/user@1000.service", &[("8:0", 140)]),
            ("/user.slice/user@1000.service/app.slice", &[("8:0", 120)]),
            ("/user.slice/user@1000.service/app.slice/foot.scope", &[("8:0", 120)]),
            ("/system.slice/anew.service", &[("8:0", 20)]),
            ("/system.slice/quiet.service", &[("8:0", 0)]),
        ]);
        let written = written_between(&before, &now);
        let written: Vec<String> = written
            .iter()
            .map(|((unit, device), bytes)| format!("{unit} {device} {bytes}"))
            .collect();
        assert_eq!(
            written,
            [
                "anew.service 8:0 20",
                "cron.service 179:0 7",
                "cron.service 8:0 100",
                "foot.scope 8:0 40",
                "user@1000.service 8:0 10",
            ]
        );
    }
}
