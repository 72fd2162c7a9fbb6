//! Files of this machine that set a setting already: what an owner or a service has decided is named, not overruled.

use std::path::{Path, PathBuf};

use rubus_host::Files;

use crate::setting::Setting;

/// Directories of files that set things, with the end of the names that count.
const DIRECTORIES: [(&str, &str); 6] = [
    ("/etc/udev/rules.d", ".rules"),
    ("/etc/tmpfiles.d", ".conf"),
    ("/etc/sysfs.d", ".conf"),
    ("/etc/tlp.d", ".conf"),
    ("/etc/default", "cpufrequtils"),
    ("/etc/tuned", "active_profile"),
];
/// Single files that do.
const FILES: [&str; 5] = [
    "/etc/sysfs.conf",
    "/etc/tlp.conf",
    "/etc/rc.local",
    "/etc/udev/hdparm.conf",
    // Of Raspberry Pi OS: it sets the governor at each start.
    "/etc/init.d/raspi-config",
];

/// The files that set this, as far as they can be read.
pub fn set_by(setting: Setting, files: &dyn Files) -> Vec<String> {
    let words: &[&str] = match setting {
        Setting::ReadAhead => &["read_ahead_kb", "--setra", "READAHEAD", "read_ahead_sect"],
        Setting::Scheduler => &["queue/scheduler", "DISK_IOSCHED", "elevator"],
        Setting::Requests => &["nr_requests"],
        Setting::Governor => {
            &["scaling_governor", "CPU_SCALING_GOVERNOR", "cpufreq-set", "cpupower", "GOVERNOR="]
        }
    };
    let mut paths: Vec<PathBuf> = FILES.map(PathBuf::from).into();
    for (directory, end) in DIRECTORIES {
        let names = files.list(Path::new(directory)).unwrap_or_default();
        let counts = names.iter().filter(|name| name.ends_with(end));
        paths.extend(counts.map(|name| Path::new(directory).join(name)));
    }
    let sets = |path: &PathBuf| {
        let Ok(text) = files.text(path) else { return false };
        if path.ends_with("active_profile") {
            // A profile of tuned may set any of them.
            return !text.trim().is_empty();
        }
        let mut lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        lines.any(|line| words.iter().any(|word| line.contains(word)))
    };
    paths.into_iter().filter(sets).map(|path| path.display().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;

    #[test]
    fn a_file_that_sets_it_is_named_and_a_comment_does_not_count() {
        let files = FakeFiles::new()
            .file(
                "/etc/udev/rules.d/60-mine.rules",
                "KERNEL==\"sda\", ATTR{queue/scheduler}=\"bfq\"\n",
            )
            .file("/etc/udev/rules.d/README", "queue/scheduler\n")
            .file("/etc/tlp.conf", "#DISK_IOSCHED=\"mq-deadline\"\nCPU_SCALING_GOVERNOR_ON_AC=x\n");
        assert_eq!(set_by(Setting::Scheduler, &files), ["/etc/udev/rules.d/60-mine.rules"]);
        assert_eq!(set_by(Setting::Governor, &files), ["/etc/tlp.conf"]);
        assert!(set_by(Setting::Requests, &files).is_empty());
    }
}
