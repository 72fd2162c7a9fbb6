//! A large file that has its name only when it is whole: made under another name, locked, renamed at the end.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FallocateFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::files::hands::{WriteError, parent_of};

/// What the name ends with until the file is whole.
const ENDING: &str = "unfinished";

/// A file that is being made. It is removed when this is dropped before [`NewFile::finish`]; after a kill or a power
/// cut it stays, with a name that says what it is, and the next attempt starts over.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    unfinished: PathBuf,
    file: OwnedFd,
    is_whole: bool,
}

impl NewFile {
    /// Begins a file that does not exist, as an empty one; nothing when another program makes it just now.
    ///
    /// # Errors
    /// When something of that name is there, or it cannot be made.
    pub fn begin(path: &Path) -> Result<Option<Self>, WriteError> {
        not_there(path)?;
        let unfinished = unfinished(path);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let cannot = |errno| trouble("make", &unfinished, errno);
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let file = rustix::fs::open(&unfinished, flags, mode).map_err(cannot)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(errno) => return Err(cannot(errno)),
        }
        rustix::fs::ftruncate(&file, 0).map_err(cannot)?;
        Ok(Some(NewFile { path: path.into(), unfinished, file, is_whole: false }))
    }

    /// Where it is until it is whole.
    pub fn unfinished(&self) -> &Path {
        &self.unfinished
    }

    /// Makes it this long; what is new is zeros and takes no room.
    ///
    /// # Errors
    /// When the filesystem cannot have a file so large.
    pub fn resize(&mut self, bytes: u64) -> Result<(), WriteError> {
        rustix::fs::ftruncate(&self.file, bytes)
            .map_err(|errno| trouble("make larger", &self.unfinished, errno))
    }

    /// Allocates `bytes` bytes now; what is new reads as zeros.
    ///
    /// # Errors
    /// When there is not enough room, or the filesystem cannot take it before it is written.
    pub fn preallocate(&mut self, bytes: u64) -> Result<(), WriteError> {
        rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, bytes).map_err(|errno| {
            let advice = match errno {
                Errno::OPNOTSUPP => "; this filesystem cannot: make it without",
                Errno::NOSPC => "; choose a smaller size or another filesystem",
                _ => "",
            };
            WriteError::advised("take room for", self.path.display(), errno, advice)
        })
    }

    /// Puts everything on stable storage, then gives it its name, durably.
    ///
    /// # Errors
    /// When the disk fails, or something has taken that name meanwhile; the file is removed then.
    pub fn finish(mut self) -> Result<(), WriteError> {
        rustix::fs::fsync(&self.file)
            .map_err(|errno| trouble("make durable", &self.unfinished, errno))?;
        let renamed = rustix::fs::renameat_with(
            CWD,
            &self.unfinished,
            CWD,
            &self.path,
            RenameFlags::NOREPLACE,
        );
        match renamed {
            Ok(()) => {}
            // Not every filesystem knows how to keep what is there.
            Err(Errno::INVAL | Errno::NOSYS) => {
                not_there(&self.path)?;
                rustix::fs::rename(&self.unfinished, &self.path)
                    .map_err(|errno| trouble("name", &self.path, errno))?;
            }
            Err(errno) => return Err(trouble("name", &self.path, errno)),
        }
        self.is_whole = true;
        let directory = directory_of(&self.path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(&directory, flags, Mode::empty())
            .and_then(rustix::fs::fsync)
            .map_err(|errno| trouble("make durable", &directory, errno))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_whole {
            // Nothing more can be done when it cannot be removed; its name says that it is not whole.
            let _ = rustix::fs::unlink(&self.unfinished);
        }
    }
}

/// The size of a regular file, bytes.
///
/// # Errors
/// When it is none, or cannot be looked at.
pub fn size_of_file(path: &Path) -> Result<u64, WriteError> {
    let found = rustix::fs::stat(path).map_err(|errno| trouble("look at", path, errno))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok(found.st_size as u64),
        _ => Err(WriteError {
            tried: "take as an image",
            path: path.display().to_string(),
            reason: "it is no file".into(),
        }),
    }
}

/// The directory that a path is in, for a path that may be a name alone.
pub fn directory_of(path: &Path) -> PathBuf {
    match parent_of(path) {
        empty if empty.as_os_str().is_empty() => PathBuf::from("."),
        directory => directory,
    }
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{ENDING}"));
    name.into()
}

fn not_there(path: &Path) -> Result<(), WriteError> {
    match rustix::fs::lstat(path) {
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(trouble("make", path, errno)),
        Ok(_) => Err(trouble("make", path, Errno::EXIST)),
    }
}

fn trouble(tried: &'static str, path: &Path, errno: Errno) -> WriteError {
    let advice = match errno {
        Errno::EXIST => "; choose another name, or remove it",
        Errno::NOENT | Errno::NOTDIR if tried == "make" => "; make its directory first",
        Errno::FBIG => "; choose a filesystem that takes large files",
        _ => return WriteError::of(tried, path, errno),
    };
    WriteError::advised(tried, path.display(), errno, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_its_name_only_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new.img");
        let names = || {
            let mut names: Vec<_> = std::fs::read_dir(directory.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        let mut file = NewFile::begin(&path).unwrap().unwrap();
        file.resize(4096).unwrap();
        assert_eq!(names(), ["new.img.unfinished"]);
        assert!(NewFile::begin(&path).unwrap().is_none(), "it is being made");
        drop(file);
        assert!(names().is_empty(), "given up, it is gone");

        // A file left by a kill is started over.
        std::fs::write(directory.path().join("new.img.unfinished"), "old").unwrap();
        let mut file = NewFile::begin(&path).unwrap().unwrap();
        file.resize(8192).unwrap();
        file.finish().unwrap();
        assert_eq!(names(), ["new.img"]);
        assert_eq!(std::fs::read(&path).unwrap(), vec![0; 8192]);
        let why = NewFile::begin(&path).unwrap_err().to_string();
        assert!(why.contains("exists"), "{why}");
    }

    #[test]
    fn what_came_meanwhile_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new.img");
        let file = NewFile::begin(&path).unwrap().unwrap();
        std::fs::write(&path, "mine").unwrap();
        assert!(file.finish().is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
