//! Reading the state of arrays (md) from sysfs, or from `/proc/mdstat` where that is all there is, as in a capture by hand.
//! Source: Linux documentation, admin-guide/md; drivers/md/md.c, `md_seq_show`.

use std::path::Path;

use rubus_host::Files;

use super::sysfs::{number, text};
use crate::health::{ArrayState, ErrorCount};

const BLOCK: &str = "/sys/block";
const MDSTAT: &str = "/proc/mdstat";
const MAX_MDSTAT_BYTES: usize = 64 * 1024;

/// Every array, with the read errors of its members that it could correct.
pub(super) fn read(files: &dyn Files) -> Vec<(ArrayState, Vec<ErrorCount>)> {
    let names = files.list(Path::new(BLOCK)).unwrap_or_default();
    let names: Vec<String> = names.into_iter().filter(|name| name.starts_with("md")).collect();
    let mut found: Vec<(ArrayState, Vec<ErrorCount>)> =
        names.iter().filter_map(|name| array(files, name.clone())).collect();
    if found.len() < names.len() {
        let bytes = files.read_prefix(Path::new(MDSTAT), MAX_MDSTAT_BYTES).unwrap_or_default();
        let mut others = of_mdstat(&String::from_utf8_lossy(&bytes));
        others.retain(|other| found.iter().all(|(known, _)| known.name != other.name));
        found.extend(others.into_iter().map(|other| (other, Vec::new())));
    }
    found
}

/// The arrays that `/proc/mdstat` says the disks of: `md0 : active raid1 sdb1[1](F) sda1[0]`, and below it `… [2/1] [U_]`.
fn of_mdstat(text: &str) -> Vec<ArrayState> {
    let mut found: Vec<ArrayState> = Vec::new();
    // The array whose lines these are, until a line begins another.
    let mut array: Option<ArrayState> = None;
    for line in text.lines() {
        if let Some((name, rest)) = line.split_once(" : ").filter(|(name, _)| is_array(name)) {
            found.extend(array.take().filter(|array| array.disks > 0));
            array = Some(of_heading(name, rest));
        } else if let Some(array) = array.as_mut() {
            if let Some((disks, working)) = line.split_whitespace().find_map(disks_and_working) {
                array.disks = disks;
                array.lacking = disks.saturating_sub(working);
            }
            array.is_rebuilding |= line.contains("recovery =");
        }
    }
    found.extend(array.filter(|array| array.disks > 0));
    found
}

fn is_array(name: &str) -> bool {
    name.starts_with("md") && !name.contains(' ')
}

/// `active (auto-read-only) raid1 sdb1[1](F) sda1[0]`.
fn of_heading(name: &str, rest: &str) -> ArrayState {
    let is_level = |word: &&str| word.starts_with("raid") || word.starts_with("linear");
    let members = || rest.split(' ').filter(|word| word.contains('['));
    let faulty = members().filter(|word| word.contains("(F)"));
    let level = rest.split(' ').find(is_level).unwrap_or_default();
    let has_redundancy = level != "raid0" && level != "linear";
    ArrayState {
        name: name.to_string(),
        level: level.to_string(),
        // Below an array without redundancy there is no count of its disks.
        disks: if has_redundancy { 0 } else { members().count() as u64 },
        is_broken: rest.split(' ').next() == Some("broken"),
        faulty: faulty.filter_map(|word| Some(word.split('[').next()?.to_string())).collect(),
        ..ArrayState::default()
    }
}

/// `[2/1]`: the disks that an array should have, and those that work.
fn disks_and_working(word: &str) -> Option<(u64, u64)> {
    let (disks, working) = word.strip_prefix('[')?.strip_suffix(']')?.split_once('/')?;
    Some((disks.parse().ok()?, working.parse().ok()?))
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

    #[test]
    fn where_sysfs_has_no_array_its_list_is_read() {
        let mdstat = "\
Personalities : [raid1] [raid6] [raid5] [raid4]
md2 : active raid5 sdd1[3] sdc1[2] sdb2[1]
      2917676544 blocks level 5, 256k chunk, algorithm 2 [4/3] [_UUU]
      [==>..................]  recovery = 12.6% (37043392/292945152) finish=127.5min speed=33440K/sec

md1 : active raid1 sdd2[1](F) sdc2[0]
      8385856 blocks [2/1] [U_]

md3 : active (auto-read-only) raid1 sdf1[1] sde1[0]
      8385856 blocks super 1.2 [2/2] [UU]
      bitmap: 0/8 pages [0KB], 65536KB chunk

md4 : inactive sdg1[0](S)
      33521664 blocks super 1.2

unused devices: <none>
";
        let mut files = FakeFiles::new().file("/proc/mdstat", mdstat);
        for name in ["md1", "md2", "md3", "md4"] {
            files = files.file(format!("/sys/block/{name}/size"), "8\n");
        }
        let states: Vec<ArrayState> = read(&files).into_iter().map(|(state, _)| state).collect();
        let array = |name: &str, level: &str, disks, lacking| ArrayState {
            name: name.into(),
            level: level.into(),
            disks,
            lacking,
            ..ArrayState::default()
        };
        let rebuilt = ArrayState { is_rebuilding: true, ..array("md2", "raid5", 4, 1) };
        let mirror = ArrayState { faulty: vec!["sdd2".into()], ..array("md1", "raid1", 2, 1) };
        assert_eq!(states, [rebuilt, mirror, array("md3", "raid1", 2, 0)]);
    }

    #[test]
    fn what_sysfs_has_is_not_read_from_the_list() {
        let files = FakeFiles::new()
            .file("/proc/mdstat", "md0 : active raid1 sda1[0]\n      8 blocks [2/1] [U_]\n")
            .file("/sys/block/md0/md/level", "raid1\n")
            .file("/sys/block/md0/md/raid_disks", "2\n")
            .file("/sys/block/md0/md/degraded", "0\n");
        let found = read(&files);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0.lacking, 0);
    }
}
