//! Trouble with storage: the kernel's log since the last start, and what ext4 counts in its superblock, over all starts.

use std::path::Path;

use rubus_host::{Files, ReadError};
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::kernel_log::{KernelTrouble, TroubleKind};

use crate::kernel_log::troubles;
use crate::probe::read;

const EXT4: &str = "/sys/fs/ext4";

pub(crate) fn kernel_log(files: &dyn Files) -> Fact<Vec<KernelTrouble>> {
    let log = match files.ask("dmesg", &[]) {
        Ok(log) => Ok(log),
        Err(ReadError::Failed { complaint, .. }) if complaint.contains("not permitted") => {
            Err(ReadError::Denied.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    let counted = counted(files);
    match log {
        Ok(log) => {
            let mut found = troubles(&log);
            found.extend(counted);
            Fact::known(found, "dmesg")
        }
        Err(_) if !counted.is_empty() => Fact::known(counted, EXT4),
        Err(reason) => Fact::unknown(reason, "dmesg"),
    }
}

/// `errors_count` of each ext4 (Linux documentation, ABI/testing/sysfs-fs-ext4): errors since the last check.
fn counted(files: &dyn Files) -> Vec<KernelTrouble> {
    let names = files.list(Path::new(EXT4)).unwrap_or_default();
    let counts = names.into_iter().filter_map(|part| {
        let times = read::number(files, &format!("{EXT4}/{part}/errors_count")).get()?;
        let trouble = KernelTrouble {
            kind: TroubleKind::Filesystem,
            part,
            times,
            first_s: None,
            last_s: None,
        };
        (times > 0).then_some(trouble)
    });
    counts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    #[test]
    fn the_log_and_the_counters_are_read() {
        let log = "[  353.1] I/O error, dev mmcblk0, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2";
        let files = FakeFiles::new()
            .program(&["dmesg"], log)
            .file("/sys/fs/ext4/mmcblk0p2/errors_count", "6\n")
            .file("/sys/fs/ext4/sda1/errors_count", "0\n");
        let fact = kernel_log(&files);
        let found: Vec<_> = fact
            .value()
            .expect("known")
            .iter()
            .map(|one| (one.kind, one.part.as_str(), one.times))
            .collect();
        assert_eq!(
            found,
            [(TroubleKind::Io, "mmcblk0", 1), (TroubleKind::Filesystem, "mmcblk0p2", 6)]
        );
    }

    #[test]
    fn where_the_log_is_for_root_alone_it_is_unknown() {
        let denied = ReadError::Failed {
            status: 1,
            complaint: "dmesg: read kernel buffer failed: Operation not permitted".into(),
            output: String::new(),
        };
        let files = FakeFiles::new().failing_program(&["dmesg"], denied);
        assert_eq!(kernel_log(&files).reason(), Some("permission denied; root may read it"));
    }
}
