//! The control groups of the unified hierarchy, as far as the kernel counts their writes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::groups::{GroupTotals, UnitDisk, parse_io_stat, written_between};
use rubus_host::Files;

const TOP: &str = "/sys/fs/cgroup";
/// How the files of a group begin, which are no groups.
const CONTROLLERS: [&str; 11] = [
    "cgroup.", "io.", "memory.", "cpu.", "cpuset.", "pids.", "hugetlb.", "rdma.", "misc.", "irq.",
    "dmem.",
];
/// Groups below that are no unit's own.
const MAX_DEPTH: usize = 8;

/// What they wrote when they were looked at last.
#[derive(Default)]
pub(super) struct Groups {
    last: Option<GroupTotals>,
    names: BTreeMap<String, String>,
}

impl Groups {
    /// Compares with the look before; nothing where there was none, or no unit is counted.
    pub(super) fn look(&mut self, files: &dyn Files) -> Option<Vec<UnitDisk>> {
        let mut now = GroupTotals::new();
        walk(files, Path::new(TOP), "", 0, &mut now);
        let is_counted = now.keys().any(|path| !path.ends_with(".slice"));
        let before = self.last.replace(now).filter(|_| is_counted)?;
        let now = self.last.as_ref()?;
        let mut written: Vec<UnitDisk> = Vec::new();
        for ((unit, device), written_bytes) in written_between(&before, now) {
            let name = self.names.entry(device).or_insert_with_key(|device| {
                let link = PathBuf::from("/sys/dev/block").join(device);
                let path = files.real_path(&link).ok();
                let name = path.as_deref().and_then(Path::file_name);
                name.map_or(device.clone(), |name| name.to_string_lossy().into_owned())
            });
            written.push(UnitDisk { unit, disk: name.clone(), written_bytes });
        }
        Some(written)
    }
}

/// Where a group does not pass the controller on, none below it is counted.
fn walk(files: &dyn Files, directory: &Path, path: &str, depth: usize, totals: &mut GroupTotals) {
    let passed_on = files.text(&directory.join("cgroup.subtree_control"));
    let has_io = passed_on.is_ok_and(|text| text.split_whitespace().any(|word| word == "io"));
    if !has_io || depth == MAX_DEPTH {
        return;
    }
    for name in files.list(directory).unwrap_or_default() {
        if CONTROLLERS.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        let below = directory.join(&name);
        let Ok(text) = files.text(&below.join("io.stat")) else {
            continue;
        };
        let path = format!("{path}/{name}");
        totals.insert(path.clone(), parse_io_stat(text.as_bytes()));
        walk(files, &below, &path, depth + 1, totals);
    }
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;

    fn machine(cron: u64) -> FakeFiles {
        FakeFiles::new()
            .file("/sys/fs/cgroup/cgroup.subtree_control", "cpu io memory\n")
            .file("/sys/fs/cgroup/io.stat", "8:0 wbytes=99\n")
            .file("/sys/fs/cgroup/system.slice/io.stat", "8:0 wbytes=900\n")
            .file("/sys/fs/cgroup/system.slice/cgroup.subtree_control", "io pids\n")
            .file(
                "/sys/fs/cgroup/system.slice/cron.service/io.stat",
                format!("8:0 rbytes=1 wbytes={cron}\n"),
            )
            .file("/sys/fs/cgroup/system.slice/cron.service/cgroup.subtree_control", "\n")
            .file("/sys/fs/cgroup/user.slice/io.stat", "8:0 wbytes=0\n")
            .file("/sys/fs/cgroup/user.slice/cgroup.subtree_control", "pids\n")
            .file("/sys/fs/cgroup/user.slice/own.scope/pids.max", "9\n")
            .link("/sys/dev/block/8:0", "../../devices/usb/block/sda")
            .file("/sys/devices/usb/block/sda/size", "1\n")
    }

    #[test]
    fn a_second_look_says_what_units_wrote_to_which_disk() {
        let mut groups = Groups::default();
        assert_eq!(groups.look(&machine(500)), None);
        let written = groups.look(&machine(750)).expect("it is counted");
        assert_eq!(
            written,
            [UnitDisk { unit: "cron.service".into(), disk: "sda".into(), written_bytes: 250 }]
        );
        assert_eq!(groups.look(&machine(750)), Some(Vec::new()));
    }

    #[test]
    fn where_no_unit_is_counted_nothing_is_said() {
        let files = FakeFiles::new()
            .file("/sys/fs/cgroup/cgroup.subtree_control", "io\n")
            .file("/sys/fs/cgroup/system.slice/io.stat", "8:0 wbytes=900\n")
            .file("/sys/fs/cgroup/system.slice/cgroup.subtree_control", "memory\n");
        let mut groups = Groups::default();
        assert_eq!(groups.look(&files), None);
        assert_eq!(groups.look(&files), None);
        assert_eq!(Groups::default().look(&FakeFiles::new()), None);
    }
}
