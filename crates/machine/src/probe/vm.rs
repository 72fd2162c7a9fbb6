//! Settings below `/proc/sys/vm` that matter for writing and swapping.

use rubus_host::Files;
use rubus_vocabulary::machine::Setting;

use crate::probe::read;

/// In the order in which people read them. Source of the names: Documentation/admin-guide/
/// sysctl/vm.rst of the kernel.
const NAMES: [&str; 15] = [
    "dirty_ratio",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
    "swappiness",
    "page-cluster",
    "vfs_cache_pressure",
    "watermark_boost_factor",
    "watermark_scale_factor",
    "min_free_kbytes",
    "overcommit_memory",
    "overcommit_ratio",
    "laptop_mode",
];

pub(crate) fn vm(files: &dyn Files) -> Vec<Setting> {
    NAMES
        .iter()
        .map(|name| Setting {
            name: name.to_string(),
            value: read::filled_text(files, &format!("/proc/sys/vm/{name}")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    #[test]
    fn settings_keep_their_text_and_missing_ones_stay_in_the_list() {
        let files = FakeFiles::new().file("/proc/sys/vm/page-cluster", "3\n");
        let settings = vm(&files);
        assert_eq!(settings.len(), NAMES.len());
        for setting in settings {
            let expected = (setting.name == "page-cluster").then_some("3");
            assert_eq!(setting.value.text(), expected, "{}", setting.name);
        }
    }
}
