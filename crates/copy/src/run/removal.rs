//! Removing from the target what an earlier pass put there, and nothing else.
//!
//! A directory is first moved into the copy's own directory, and directories within it as well when their turn comes,
//! so that the depth of a tree costs neither memory nor open files.

use std::ffi::{OsStr, OsString};

use rubus_host::files::copy_io::{Directory, Failure, Flags, Kind, Meta, Place, Reason};

/// Where directories wait for being removed.
#[derive(Debug)]
pub(super) struct Bin {
    directory: Directory,
    device: (u32, u32),
    next: u64,
}

const PREFIX: &str = "removed-";

impl Bin {
    /// A bin in the copy's own directory.
    pub(super) fn new(directory: Directory) -> Result<Self, Failure> {
        let device = directory.look()?.device;
        Ok(Bin { directory, device, next: 0 })
    }

    /// Removes an entry of the target, with all that is in it. Says how many entries that were; 0 when there was none.
    /// What is on another filesystem stays.
    pub(super) fn remove(&mut self, from: &Directory, name: &OsStr) -> Result<u64, Failure> {
        let meta = match from.look_at(name) {
            Ok(meta) => meta,
            Err(failure) if failure.reason() == Reason::Gone => return Ok(0),
            Err(failure) => return Err(failure),
        };
        match meta.kind {
            Kind::Directory => {
                self.take(from, name, &meta)?;
                self.empty()
            }
            _ => remove_one(from, name, &meta).map(|()| 1),
        }
    }

    /// Removes what waits, also from an attempt before.
    pub(super) fn empty(&mut self) -> Result<u64, Failure> {
        let mut removed = 0;
        while let Some(name) = self.one_that_waits()? {
            let inner = self.directory.open(&name)?;
            let listed = inner.list()?;
            for (entry, _) in (0..listed.len()).filter_map(|i| listed.get(i)) {
                let meta = inner.look_at(entry)?;
                match meta.kind {
                    Kind::Directory => self.take(&inner, entry, &meta)?,
                    _ => {
                        remove_one(&inner, entry, &meta)?;
                        removed += 1;
                    }
                }
            }
            self.directory.remove_directory(&name)?;
            removed += 1;
        }
        Ok(removed)
    }

    fn one_that_waits(&self) -> Result<Option<OsString>, Failure> {
        let listed = self.directory.list()?;
        let mut names = (0..listed.len()).filter_map(|i| listed.get(i));
        let is_waiting = |name: &OsStr| name.to_str().is_some_and(|n| n.starts_with(PREFIX));
        Ok(names.find(|(name, _)| is_waiting(name)).map(|(name, _)| name.to_owned()))
    }

    fn take(&mut self, from: &Directory, name: &OsStr, meta: &Meta) -> Result<(), Failure> {
        let opened = from.open(name)?;
        unlock(Place::Directory(&opened))?;
        if meta.device != self.device {
            // The system refuses this one: it is another filesystem's.
            return from.remove_directory(name);
        }
        loop {
            let new_name = OsString::from(format!("{PREFIX}{}", self.next));
            self.next += 1;
            if self.directory.look_at(&new_name).is_err() {
                return from.move_to(name, &self.directory, &new_name);
            }
        }
    }
}

fn remove_one(from: &Directory, name: &OsStr, meta: &Meta) -> Result<(), Failure> {
    match from.remove(name) {
        Err(failure) if failure.reason() == Reason::Denied && meta.kind == Kind::File => {
            let file = from.read_file(name)?;
            unlock(Place::File(&file))?;
            from.remove(name)
        }
        Err(failure) if failure.reason() == Reason::Gone => Ok(()),
        other => other,
    }
}

/// Takes "immutable" and "append only" away, which keep even root from changing something.
pub(super) fn unlock(place: Place<'_>) -> Result<(), Failure> {
    let Ok(flags) = place.flags() else {
        return Ok(());
    };
    if flags.and(Flags::LOCKED).is_empty() {
        Ok(())
    } else {
        place.set_flags(flags.without(Flags::LOCKED))
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests look at what was made past the I/O module")]
mod tests {
    use super::*;

    #[test]
    fn a_deep_tree_goes_and_its_neighbour_stays() {
        let root = tempfile::tempdir().unwrap();
        let mut deep = root.path().join("gone");
        for level in 0..40 {
            std::fs::create_dir(&deep).unwrap();
            std::fs::write(deep.join("file"), "x").unwrap();
            deep = deep.join(format!("level-{level}"));
        }
        std::fs::create_dir(root.path().join("bin")).unwrap();
        std::fs::write(root.path().join("stays"), "x").unwrap();
        std::os::unix::fs::symlink("stays", root.path().join("gone/link")).unwrap();
        let directory = Directory::open_root(root.path()).unwrap();
        let mut bin = Bin::new(directory.open(OsStr::new("bin")).unwrap()).unwrap();
        assert_eq!(bin.remove(&directory, OsStr::new("gone")).unwrap(), 81);
        assert_eq!(bin.remove(&directory, OsStr::new("gone")).unwrap(), 0);
        assert!(root.path().join("stays").exists());
        assert_eq!(std::fs::read_dir(root.path().join("bin")).unwrap().count(), 0);
    }
}
