//! Small files of sysfs.

use std::path::Path;

use rubus_host::Files;

pub(super) fn number(files: &dyn Files, path: &str) -> Option<u64> {
    text(files, path).trim().parse().ok()
}

pub(super) fn text(files: &dyn Files, path: &str) -> String {
    const MAX_BYTES: usize = 1024;
    let bytes = files.read_prefix(Path::new(path), MAX_BYTES).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
