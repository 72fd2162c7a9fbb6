//! A system that is not running, seen from its own root: the filesystem of an image that is mounted
//! somewhere, and its boot files.
//!
//! Symbolic links are followed as that system would follow them; none leads out of it.

use std::path::{Component, Path, PathBuf};

use crate::files::hands::below;
use crate::files::{Files, ReadError, Space};
use crate::live::Live;

/// Symbolic links followed in one path before it counts as a loop; the kernel's own limit.
const LINK_LIMIT: usize = 40;

/// A system below a directory.
#[derive(Clone, Debug)]
pub struct Inside {
    top: PathBuf,
    /// A directory of that system, and what is shown there instead.
    boot: Option<(PathBuf, PathBuf)>,
}

impl Inside {
    /// The system whose root is `top`.
    pub fn new(top: impl Into<PathBuf>) -> Self {
        Inside { top: top.into(), boot: None }
    }

    /// With `shown` at the place `at`, as if it were mounted there.
    #[must_use]
    pub fn with(mut self, at: impl Into<PathBuf>, shown: impl Into<PathBuf>) -> Self {
        self.boot = Some((at.into(), shown.into()));
        self
    }

    /// Where a path of that system is on this machine, its links not followed.
    fn outside(&self, path: &Path) -> PathBuf {
        if let Some((at, shown)) = &self.boot {
            if let Ok(rest) = path.strip_prefix(at) {
                return shown.join(rest);
            }
        }
        below(&self.top, path)
    }

    /// The path with its links followed, the last one only if `to_the_end`.
    fn resolve(&self, path: &Path, to_the_end: bool) -> Result<PathBuf, ReadError> {
        let mut todo: Vec<PathBuf> = parts_of(path);
        let mut done = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = todo.pop() {
            if part.as_os_str() == ".." {
                done.pop();
                continue;
            }
            let next = done.join(&part);
            let is_last = todo.is_empty();
            match std::fs::read_link(self.outside(&next)) {
                Ok(target) if to_the_end || !is_last => {
                    links += 1;
                    if links > LINK_LIMIT {
                        return Err(ReadError::Other("too many symbolic links".into()));
                    }
                    if target.is_absolute() {
                        done = PathBuf::from("/");
                    }
                    todo.extend(parts_of(&target));
                }
                _ => done = next,
            }
        }
        Ok(done)
    }

    fn real(&self, path: &Path) -> Result<PathBuf, ReadError> {
        Ok(self.outside(&self.resolve(path, true)?))
    }
}

/// Where a path of the system whose root is seen at `top` is on this machine, with the links before its last part followed as
/// that system would follow them: what is written there is written into that system, whatever its links name. What belongs
/// to this machine itself (`top` is `/`) is found as it is.
///
/// # Errors
/// When links lead to each other.
pub fn place_within(top: &Path, path: &Path) -> Result<PathBuf, ReadError> {
    if top == Path::new("/") {
        return Ok(path.to_path_buf());
    }
    let inside = Inside::new(top);
    Ok(inside.outside(&inside.resolve(path, false)?))
}

/// The parts of a path, the first one last.
fn parts_of(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        _ => None,
    });
    let mut parts: Vec<PathBuf> = parts.collect();
    parts.reverse();
    parts
}

impl Files for Inside {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        Live.read_prefix(&self.real(path)?, limit)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        Live.list(&self.real(path)?)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        let found = self.resolve(path, true)?;
        std::fs::symlink_metadata(self.outside(&found))?;
        Ok(found)
    }

    fn space(&self, path: &Path) -> Result<Space, ReadError> {
        Live.space(&self.real(path)?)
    }

    fn ask(&self, _: &str, _: &[&str]) -> Result<String, ReadError> {
        // It does not run.
        Err(ReadError::Absent)
    }

    fn mode(&self, path: &Path) -> Result<u32, ReadError> {
        Live.mode(&self.outside(&self.resolve(path, false)?))
    }

    fn keeps_modes(&self, path: &Path) -> bool {
        self.resolve(path, true).map_or(true, |inside| Live.keeps_modes(&self.outside(&inside)))
    }

    fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
        Live.link(&self.outside(&self.resolve(path, false)?))
    }

    fn firmware_word(&self, _: u32) -> Result<u32, ReadError> {
        Err(ReadError::Absent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_into_a_system_stays_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let (top, outside) = (directory.path().join("top"), directory.path().join("outside"));
        for made in ["top/etc", "top/usr/lib", "outside"] {
            std::fs::create_dir_all(directory.path().join(made)).unwrap();
        }
        let link = |target: &Path, at: &str| {
            std::os::unix::fs::symlink(target, top.join(at)).unwrap();
        };
        link(&outside, "etc/away");
        link(Path::new("../../../../outside"), "etc/up");
        link(Path::new("/etc/round"), "etc/round");
        link(Path::new("usr/lib"), "lib");
        link(Path::new("/outside/x"), "etc/file");
        let found = |path: &str| place_within(&top, Path::new(path)).unwrap();
        let name = outside.strip_prefix("/").unwrap();
        assert_eq!(found("/etc/away/x.conf"), top.join(name).join("x.conf"));
        assert_eq!(found("/etc/up/x.conf"), top.join("outside/x.conf"));
        assert_eq!(found("/lib/x"), top.join("usr/lib/x"));
        // The last part is what is replaced, and not what it leads to.
        assert_eq!(found("/etc/file"), top.join("etc/file"));
        assert_eq!(found("/new/deeper/x"), top.join("new/deeper/x"));
        assert!(place_within(&top, Path::new("/etc/round/x")).is_err());
        assert_eq!(place_within(Path::new("/"), Path::new("/etc/x")).unwrap(), Path::new("/etc/x"));
    }

    #[test]
    fn links_stay_inside_and_the_boot_files_are_where_they_belong() {
        let directory = tempfile::tempdir().unwrap();
        let (top, boot) = (directory.path().join("top"), directory.path().join("boot"));
        for made in ["top/usr/lib", "top/etc", "top/boot/firmware", "boot"] {
            std::fs::create_dir_all(directory.path().join(made)).unwrap();
        }
        let link = |target: &str, at: &str| std::os::unix::fs::symlink(target, top.join(at));
        link("usr/lib", "lib").unwrap();
        link("/etc/real", "etc/absolute").unwrap();
        link("../../../../etc/real", "usr/lib/deep").unwrap();
        link("/boot/firmware", "usr/lib/to-boot").unwrap();
        link("round", "etc/round").unwrap();
        link("/dev/null", "etc/masked").unwrap();
        std::fs::write(top.join("etc/real"), "real\n").unwrap();
        std::fs::write(boot.join("config.txt"), "kernel=x\n").unwrap();
        let files = Inside::new(&top).with("/boot/firmware", &boot);
        let text = |path: &str| files.text(Path::new(path));
        for path in ["/etc/real", "/etc/absolute", "/lib/deep", "/usr/lib/../../etc/real"] {
            assert_eq!(text(path).as_deref(), Ok("real"), "{path}");
        }
        assert_eq!(text("/boot/firmware/config.txt").unwrap(), "kernel=x");
        assert_eq!(text("/lib/to-boot/config.txt").unwrap(), "kernel=x");
        assert_eq!(files.list(Path::new("/boot/firmware")).unwrap(), ["config.txt"]);
        assert!(text("/etc/round").is_err());
        // The /dev/null of this machine is not that system's.
        assert_eq!(text("/etc/masked"), Err(ReadError::Absent));
        assert_eq!(files.link(Path::new("/etc/masked")).unwrap(), Path::new("/dev/null"));
        assert_eq!(files.real_path(Path::new("/lib/deep")).unwrap(), Path::new("/etc/real"));
        assert!(!files.exists(Path::new("/none")));
    }
}
