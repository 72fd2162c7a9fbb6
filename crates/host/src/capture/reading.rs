//! For tests: reading everything that an arbitrary capture lets one read.

use std::path::Path;

use crate::files::Files;

/// Reads the whole machine, which may be anything.
pub(super) fn read_everything_there(files: &dyn Files) {
    fn walk(files: &dyn Files, directory: &Path, depth: usize) {
        if depth > 12 {
            return;
        }
        for name in files.list(directory).unwrap_or_default().into_iter().take(40) {
            let path = directory.join(name);
            let _ = files.real_path(&path);
            let _ = files.text(&path);
            walk(files, &path, depth + 1);
        }
    }
    walk(files, Path::new("/"), 0);
}
