//! What a recipe looks at, besides the surveyed machine: whether a path is there, and the text of a
//! small file.

use std::path::{Path, PathBuf};

use crate::plan::TextFile;
use crate::recipe::{Seen, Sight};
use crate::unseen::Unseen;
use rubus_host::{Files, ReadError};

/// A file larger than this is not one that a plan edits.
const MAX_BYTES: usize = 256 << 10;
/// A directory with more names than this is not one that a plan looks through.
const MAX_NAMES: usize = 4096;
/// The mode of a file that a capture keeps without it.
const USUAL_MODE: u32 = 0o644;

/// Looks at all paths. A part of a path that is `*` stands for every name in the directory before it; what such a
/// path leads to is looked at where it is there, and not told of where it is not.
pub fn look(files: &dyn Files, paths: &[PathBuf]) -> Seen {
    let mut seen = Seen::new();
    for path in paths {
        let is_pattern = path.components().any(|part| part.as_os_str() == "*");
        for found in spread(files, path) {
            match sight(files, &found) {
                Sight::Absent if is_pattern => {}
                sight => drop(seen.insert(found, sight)),
            }
        }
    }
    seen
}

/// The paths that one with `*` in it stands for.
fn spread(files: &dyn Files, pattern: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::new()];
    for part in pattern.components() {
        if part.as_os_str() != "*" {
            paths.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let names = |path: &PathBuf| {
            let names = files.list(path).unwrap_or_default().into_iter();
            let whole: Vec<PathBuf> = names.take(MAX_NAMES).map(|n| path.join(n)).collect();
            whole
        };
        paths = paths.iter().flat_map(names).collect();
    }
    paths
}

fn sight(files: &dyn Files, path: &Path) -> Sight {
    if let Ok(names) = files.list(path) {
        return match names.len() <= MAX_NAMES {
            true => Sight::Directory(names),
            false => Sight::Something,
        };
    }
    match files.read_prefix(path, MAX_BYTES + 1) {
        Ok(bytes) if bytes.len() > MAX_BYTES => Sight::Something,
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => {
                Sight::Text(TextFile { text, mode: files.mode(path).unwrap_or(USUAL_MODE) })
            }
            Err(_) => Sight::Something,
        },
        Err(ReadError::Absent) => match files.link(path) {
            Ok(target) => Sight::Dangling(target),
            Err(_) => Sight::Absent,
        },
        Err(error) => Sight::Hidden(Unseen::from(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::fake::FakeFiles;

    #[test]
    fn everything_is_of_some_kind() {
        let files = FakeFiles::new()
            .file("/etc/text", "a = 1\n")
            .file("/bin/program", [0x7f, b'E', 0xff, 0])
            .file("/big", vec![b'x'; MAX_BYTES + 1])
            .denied("/secret");
        let paths = ["/etc/text", "/etc", "/bin/program", "/big", "/none", "/secret"];
        let seen = look(&files, &paths.map(PathBuf::from));
        let at = |path: &str| &seen[Path::new(path)];
        assert_eq!(*at("/etc/text"), Sight::Text(TextFile::public("a = 1\n")));
        assert_eq!(*at("/etc"), Sight::Directory(vec!["text".into()]));
        assert_eq!(*at("/bin/program"), Sight::Something);
        assert_eq!(*at("/big"), Sight::Something);
        assert_eq!(*at("/none"), Sight::Absent);
        assert!(matches!(at("/secret"), Sight::Hidden(Unseen::Denied(_))));
    }

    #[test]
    fn a_star_is_every_name() {
        let files = FakeFiles::new()
            .file("/lib/modules/6.1/builtin", "a\n")
            .file("/lib/modules/6.12/builtin", "b\n")
            .file("/lib/modules/old/other", "c\n");
        let seen = look(
            &files,
            &[PathBuf::from("/lib/modules/*/builtin"), PathBuf::from("/none/*/builtin")],
        );
        let paths: Vec<&Path> = seen.keys().map(PathBuf::as_path).collect();
        assert_eq!(
            paths,
            [Path::new("/lib/modules/6.1/builtin"), Path::new("/lib/modules/6.12/builtin")]
        );
    }
}
