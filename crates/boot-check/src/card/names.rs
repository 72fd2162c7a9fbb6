//! Paths of a filesystem that is read without mounting it, with symbolic links followed inside of it.

use std::path::{Component, Path};

use rubus_host::ReadError;

/// Links that are followed on one way; the kernel's own limit.
const MAX_LINKS: usize = 40;

/// What a name in a directory is.
pub(super) enum Found<T> {
    /// A file or a directory.
    Node(T),
    /// A symbolic link, with what it says.
    Link(String),
}

/// Finds a name in a directory.
pub(super) type Look<'a, T> = &'a dyn Fn(&T, &str) -> Result<Found<T>, ReadError>;

/// Walks a path from the root. `look` finds a name in a directory.
///
/// # Errors
/// As `look`, or when links lead in a circle.
pub(super) fn walk<T: Clone>(root: T, path: &Path, look: Look<'_, T>) -> Result<T, ReadError> {
    let mut todo = parts(path);
    let mut above: Vec<T> = vec![root];
    let mut links = 0;
    while let Some(part) = todo.pop() {
        if part == ".." {
            if above.len() > 1 {
                above.pop();
            }
            continue;
        }
        let Some(here) = above.last() else { return Err(ReadError::Absent) };
        match look(here, &part)? {
            Found::Node(node) => above.push(node),
            Found::Link(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(ReadError::Other("symbolic links lead in a circle".into()));
                }
                if target.starts_with('/') {
                    above.truncate(1);
                }
                todo.extend(parts(Path::new(&target)));
            }
        }
    }
    above.pop().ok_or(ReadError::Absent)
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<String> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut parts: Vec<String> = parts.collect();
    parts.reverse();
    parts
}
