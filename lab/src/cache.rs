//! Where built disks live between runs. An entry is a directory named by the hash of everything it
//! was made from. It is built under a temporary name and renamed when complete, so a half-built
//! entry is never used and two builders at once do no harm: the second one's copy is dropped.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// How the names of work directories start; the number of their process follows.
const WORK_PREFIX: &str = "work-";

/// The directory with all entries.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The cache of this machine: `$RUBUS_LAB_CACHE`, else `lab` in the target directory.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::at(std::env::var_os("RUBUS_LAB_CACHE").map_or_else(default_root, PathBuf::from))
    }

    /// A cache in a given directory, which is made when needed.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        // Programs are started in other directories.
        let root = std::path::absolute(&root).unwrap_or(root);
        Self { root }
    }

    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The entry's path, when it is there.
    #[must_use]
    pub fn lookup(&self, name: &str, key: &Key) -> Option<PathBuf> {
        let path = self.path(name, key);
        path.is_dir().then_some(path)
    }

    /// The entry's path; builds it first when it is not there. `build` fills the directory it is
    /// given; it may leave the work of a failed build behind, which is removed.
    ///
    /// # Errors
    /// What `build` reports, or that the cache directory cannot be written.
    pub fn entry(
        &self,
        name: &str,
        key: &Key,
        build: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        if let Some(path) = self.lookup(name, key) {
            return Ok(path);
        }
        let work = self.work_directory()?;
        let content = work.path().join("content");
        fs::create_dir(&content)?;
        build(&content)?;
        let path = self.path(name, key);
        match fs::rename(&content, &path) {
            Ok(()) => Ok(path),
            Err(_) if path.is_dir() => Ok(path),
            Err(error) => {
                Err(error).with_context(|| format!("could not put {path:?} into the cache"))
            }
        }
    }

    /// A directory in the cache for the life of this process; those that killed processes left
    /// behind are removed.
    ///
    /// # Errors
    /// When the cache directory cannot be written.
    pub fn work_directory(&self) -> Result<tempfile::TempDir> {
        fs::create_dir_all(&self.root)
            .with_context(|| format!("could not make the cache directory {:?}", self.root))?;
        self.sweep();
        tempfile::Builder::new()
            .prefix(&format!("{WORK_PREFIX}{}-", std::process::id()))
            .tempdir_in(&self.root)
            .with_context(|| format!("could not write to the cache {:?}", self.root))
    }

    /// Removes the work directories of processes that are no more. One that cannot be removed stays
    /// for the next time.
    pub fn sweep(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix(WORK_PREFIX));
            let owner = owner.and_then(|rest| rest.split('-').next());
            if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Removes the entry when it is there.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn forget(&self, name: &str, key: &Key) -> Result<()> {
        match self.lookup(name, key) {
            Some(path) => {
                fs::remove_dir_all(&path).with_context(|| format!("could not remove {path:?}"))
            }
            None => Ok(()),
        }
    }

    fn path(&self, name: &str, key: &Key) -> PathBuf {
        self.root.join(format!("{name}-{}", key.short()))
    }
}

/// `lab` beside what Cargo builds.
fn default_root() -> PathBuf {
    if let Some(target) = std::env::var_os("CARGO_TARGET_DIR") {
        return PathBuf::from(target).join("lab");
    }
    workspace_root().join("target/lab")
}

/// The top of this source tree.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    lab.parent().unwrap_or(lab).to_path_buf()
}

/// A hash of everything an entry is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The key of a list of ingredients; order and boundaries count.
    #[must_use]
    pub fn of<'a>(ingredients: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hash = Sha256::new();
        for ingredient in ingredients {
            hash.update(ingredient.len().to_le_bytes());
            hash.update(ingredient.as_bytes());
        }
        Self(format!("{:x}", hash.finalize()))
    }

    /// Enough of it to tell entries apart in a listing.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn boundaries_between_ingredients_count() {
        assert_ne!(Key::of(["ab", "c"]), Key::of(["a", "bc"]));
        assert_eq!(Key::of(["ab", "c"]), Key::of(["ab", "c"]));
    }

    #[test]
    fn a_failed_build_leaves_nothing_and_the_next_one_succeeds() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path());
        let key = Key::of(["x"]);
        let failed = cache.entry("thing", &key, |path| {
            fs::write(path.join("half"), "half")?;
            bail!("no network")
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

        let build = |path: &Path| Ok(fs::write(path.join("whole"), "whole")?);
        let path = cache.entry("thing", &key, build).unwrap();
        assert!(path.join("whole").exists());
        let again = cache.entry("thing", &key, |_| bail!("built twice")).unwrap();
        assert_eq!(path, again);
    }

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_a_living_one_uses_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path());
        let in_use = cache.work_directory().unwrap();
        // No process has a number this high.
        let left = directory.path().join("work-4999999999-abc");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("half"), "half").unwrap();
        let _other = cache.work_directory().unwrap();
        assert!(!left.exists());
        assert!(in_use.path().exists());
    }

    #[test]
    fn the_slower_of_two_builders_takes_the_entry_that_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path());
        let key = Key::of(["x"]);
        let path = cache
            .entry("thing", &key, |slow| {
                fs::write(slow.join("by"), "slow")?;
                cache.entry("thing", &key, |fast| Ok(fs::write(fast.join("by"), "fast")?))?;
                Ok(())
            })
            .unwrap();
        assert_eq!(fs::read_to_string(path.join("by")).unwrap(), "fast");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
