//! Reading the state of arrays (md) from sysfs. Source: Linux documentation, admin-guide/md.

use std::path::Path;

use rubus_host::Files;

use super::sysfs::{number, text};
use crate::health::{ArrayState, ErrorCount};

const BLOCK: &str = "/sys/block";

/// Every array, with the read errors of its members that it could correct.
pub(super) fn read(files: &dyn Files) -> Vec<(ArrayState, Vec<ErrorCount>)> {
    let names = files.list(Path::new(BLOCK)).unwrap_or_default();
    let arrays = names.into_iter().filter(|name| name.starts_with("md"));
    arrays.filter_map(|name| array(files, name)).collect()
}

fn array(files: &dyn Files, name: String) -> Option<(ArrayState, Vec<ErrorCount>)> {
    let md = format!("{BLOCK}/{name}/md");
    let say = |file: &str| text(files, &format!("{md}/{file}")).trim().to_string();
    let disks = number(files, &format!("{md}/raid_disks"))?;
    let mut counts = Vec::new();
    let mut faulty = Vec::new();
    for directory in files.list(Path::new(&md)).unwrap_or_default() {
        let Some(member) = directory.strip_prefix("dev-") else {
            continue;
        };
        if say(&format!("{directory}/state")).split(',').any(|word| word == "faulty") {
            faulty.push(member.to_string());
        }
        let errors = number(files, &format!("{md}/{directory}/errors")).filter(|times| *times > 0);
        counts.extend(errors.map(|times| ErrorCount {
            devices: vec![member.to_string()],
            counter: name.clone(),
            what: "read errors that it could correct".into(),
            times,
            last_day: None,
        }));
    }
    let state = ArrayState {
        level: say("level"),
        disks,
        lacking: number(files, &format!("{md}/degraded")).unwrap_or(0),
        is_rebuilding: say("sync_action") == "recover",
        is_broken: say("array_state") == "broken",
        faulty,
        name,
    };
    Some((state, counts))
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;

    #[test]
    fn what_an_array_lacks_has_put_out_and_could_correct_is_read() {
        let files = FakeFiles::new()
            .file("/sys/block/md0/md/level", "raid1\n")
            .file("/sys/block/md0/md/raid_disks", "2\n")
            .file("/sys/block/md0/md/degraded", "1\n")
            .file("/sys/block/md0/md/array_state", "clean\n")
            .file("/sys/block/md0/md/sync_action", "idle\n")
            .file("/sys/block/md0/md/dev-sda1/state", "in_sync\n")
            .file("/sys/block/md0/md/dev-sda1/errors", "4\n")
            .file("/sys/block/md0/md/dev-sdb1/state", "faulty,want_replacement\n")
            .file("/sys/block/md0/md/dev-sdb1/errors", "0\n")
            .file("/sys/block/md1/md/level", "raid0\n")
            .file("/sys/block/md1/md/raid_disks", "2\n")
            .file("/sys/block/md1/md/array_state", "broken\n")
            .file("/sys/block/sda/size", "8\n");
        let found = read(&files);
        let states: Vec<&ArrayState> = found.iter().map(|(state, _)| state).collect();
        let mirror = ArrayState {
            name: "md0".into(),
            level: "raid1".into(),
            disks: 2,
            lacking: 1,
            faulty: vec!["sdb1".into()],
            ..ArrayState::default()
        };
        let striped = ArrayState {
            name: "md1".into(),
            level: "raid0".into(),
            disks: 2,
            is_broken: true,
            ..ArrayState::default()
        };
        assert_eq!(states, [&mirror, &striped]);
        let counts: Vec<_> = found
            .iter()
            .flat_map(|(_, counts)| counts)
            .map(|one| (&one.devices[..], one.times))
            .collect();
        assert_eq!(counts, [(&["sda1".to_string()][..], 4)]);
    }
}
