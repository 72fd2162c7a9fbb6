//! How much the files below a directory take.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The kernel counts in these whatever the filesystem's own blocks are.
const BLOCK_BYTES: u64 = 512;

/// Bytes that they take on their filesystem; a file with several names counts once, what is mounted below not at all. A
/// directory that is not there has none.
///
/// # Errors
/// When one of the directories cannot be read, as by a user who may not.
pub fn bytes_below(directory: &Path) -> std::io::Result<u64> {
    let Ok(top) = std::fs::symlink_metadata(directory) else {
        return Ok(0);
    };
    let mut bytes = 0_u64;
    let mut several = BTreeSet::new();
    let mut waiting: Vec<PathBuf> = vec![directory.into()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            // A log may go while it is looked at.
            let Ok(found) = std::fs::symlink_metadata(&path) else {
                continue;
            };
            let is_counted = found.nlink() > 1 && !found.is_dir() && !several.insert(found.ino());
            if found.dev() != top.dev() || is_counted {
                continue;
            }
            bytes = bytes.saturating_add(found.blocks().saturating_mul(BLOCK_BYTES));
            if found.is_dir() {
                waiting.push(path);
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_count_once_and_links_lead_nowhere() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir(at("logs")).unwrap();
        fs::create_dir(at("logs/old")).unwrap();
        let empty = bytes_below(&at("logs")).unwrap();
        fs::write(at("logs/old/log"), vec![7; 100_000]).unwrap();
        fs::write(at("beside"), vec![7; 900_000]).unwrap();
        fs::hard_link(at("logs/old/log"), at("logs/same")).unwrap();
        std::os::unix::fs::symlink(top.path(), at("logs/link")).unwrap();
        for name in ["logs/old/log", "beside"] {
            fs::File::open(at(name)).unwrap().sync_all().unwrap();
        }
        let bytes = bytes_below(&at("logs")).unwrap() - empty;
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
        assert_eq!(bytes_below(&at("none")).unwrap(), 0);
    }
}
