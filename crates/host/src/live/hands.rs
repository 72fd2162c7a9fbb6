//! This machine: the write side.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use crate::files::Files;
use crate::files::fat;
use crate::files::hands::{Hands, Twin, WriteError, parent_of};
use crate::live::Live;

/// This machine, to be changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveHands {
    eyes: Live,
}

impl LiveHands {
    /// The write side of this machine.
    pub fn new() -> Self {
        LiveHands { eyes: Live::new() }
    }
}

/// Held by the one program that changes the machine; given back when it is dropped or its process ends.
#[derive(Debug)]
pub struct Lock {
    _file: OwnedFd,
}

/// Takes the lock at a path, making the file if it does not exist; nothing when another program has it.
///
/// # Errors
/// When the file cannot be opened.
pub fn lock(path: &Path) -> Result<Option<Lock>, WriteError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| WriteError::of("open the lock", path, errno))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock { _file: file })),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(WriteError::of("take the lock", path, errno)),
    }
}

impl Hands for LiveHands {
    fn files(&self) -> &dyn Files {
        &self.eyes
    }

    fn make_directory(&mut self, path: &Path) -> Result<(), WriteError> {
        let mode = Mode::from_raw_mode(0o755);
        rustix::fs::mkdir(path, mode)
            .map_err(|errno| WriteError::of("make the directory", path, errno))
    }

    fn remove_directory(&mut self, path: &Path) -> Result<(), WriteError> {
        rustix::fs::rmdir(path).map_err(|errno| WriteError::of("remove the directory", path, errno))
    }

    fn write_new(
        &mut self,
        path: &Path,
        bytes: &[u8],
        mode: u32,
        like: Option<&Path>,
    ) -> Result<(), WriteError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        // No one else may open it before it has its owner and its mode.
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| WriteError::of("make", path, errno))?;
        let written =
            fill(&file, bytes, mode, like).map_err(|errno| WriteError::of("write", path, errno));
        if written.is_err() {
            // It did not exist before; if this fails too there is nothing more to be done.
            let _ = rustix::fs::unlink(path);
        }
        written
    }

    fn make_link(&mut self, path: &Path, target: &Path) -> Result<(), WriteError> {
        rustix::fs::symlink(target, path)
            .map_err(|errno| WriteError::of("make the link", path, errno))
    }

    fn append(&mut self, path: &Path, keep: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, Mode::empty());
        let written = file.and_then(|file| {
            rustix::fs::ftruncate(&file, keep)?;
            let mut done = 0;
            while done < bytes.len() {
                done += rustix::io::pwrite(&file, &bytes[done..], keep + done as u64)?;
            }
            rustix::fs::fsync(&file)
        });
        written.map_err(|errno| WriteError::of("write", path, errno))
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Result<(), WriteError> {
        let renamed = if self.eyes.keeps_modes(&parent_of(to)) {
            rustix::fs::rename(from, to)
        } else {
            fat::rename(from, to)
        };
        renamed.map_err(|errno| WriteError::of("replace", to, errno))
    }

    fn twin(&self, path: &Path) -> Option<Twin> {
        if self.eyes.keeps_modes(&parent_of(path)) { None } else { fat::twin(path) }
    }

    fn remove(&mut self, path: &Path) -> Result<(), WriteError> {
        let removed = if self.eyes.keeps_modes(&parent_of(path)) {
            rustix::fs::unlink(path)
        } else {
            fat::remove(path)
        };
        removed.map_err(|errno| WriteError::of("remove", path, errno))
    }

    fn sync_directory(&mut self, path: &Path) -> Result<(), WriteError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let synced = rustix::fs::open(path, flags, Mode::empty()).and_then(|directory| {
            match rustix::fs::fsync(&directory) {
                // Filesystems without such a thing (in memory, some over the network).
                Err(Errno::INVAL) => Ok(()),
                answer => answer,
            }
        });
        synced.map_err(|errno| WriteError::of("make durable what is in", path, errno))
    }

    fn set_knob(&mut self, path: &Path, value: &str) -> Result<(), WriteError> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let written = rustix::fs::open(path, flags, Mode::empty())
            .and_then(|file| rustix::io::write(&file, value.as_bytes()));
        match written {
            Ok(count) if count == value.len() => Ok(()),
            Ok(_) => Err(WriteError {
                tried: "set",
                path: path.display().to_string(),
                reason: format!("the kernel took only a part of '{value}'"),
            }),
            // Of a file that is there it means the value: a compressor that the kernel does not have.
            Err(Errno::NOENT) if self.eyes.exists(path) => Err(WriteError {
                tried: "set",
                path: path.display().to_string(),
                reason: format!("this kernel has nothing called '{value}' (os error 2)"),
            }),
            Err(errno) => Err(WriteError::of("set", path, errno)),
        }
    }
}

/// Contents, owner, attributes, mode, in this order: a change of owner takes set-user-id bits away.
fn fill(file: &OwnedFd, bytes: &[u8], mode: u32, like: Option<&Path>) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes.len() {
        done += rustix::io::write(file, &bytes[done..])?;
    }
    if let Some(like) = like {
        copy_owner(file, like)?;
        copy_attributes(file, like)?;
    }
    match rustix::fs::fchmod(file, Mode::from_raw_mode(mode)) {
        // FAT has no modes.
        Ok(()) | Err(Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    rustix::fs::fsync(file)
}

fn copy_owner(file: &OwnedFd, like: &Path) -> Result<(), Errno> {
    let Ok(metadata) = std::fs::symlink_metadata(like) else {
        return Ok(());
    };
    let ours = rustix::fs::fstat(file)?;
    if (ours.st_uid, ours.st_gid) == (metadata.uid(), metadata.gid()) {
        return Ok(());
    }
    let owner = rustix::fs::Uid::from_raw(metadata.uid());
    let group = rustix::fs::Gid::from_raw(metadata.gid());
    rustix::fs::fchown(file, Some(owner), Some(group))
}

/// Security labels and access lists go with the name. Filesystems without them have none to copy.
fn copy_attributes(file: &OwnedFd, like: &Path) -> Result<(), Errno> {
    let mut names = vec![0_u8; 64 << 10];
    let Ok(length) = rustix::fs::llistxattr(like, &mut names) else {
        return Ok(());
    };
    for name in names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0_u8; 64 << 10];
        let Ok(length) = rustix::fs::lgetxattr(like, name, &mut value[..]) else {
            continue;
        };
        match rustix::fs::fsetxattr(file.as_fd(), name, &value[..length], XattrFlags::empty()) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::PERM) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// The directory of a path exists and is durable in its own parent, for what is made before any plan:
/// the place of the journals.
///
/// # Errors
/// When one of the directories cannot be made.
pub fn make_directories(hands: &mut dyn Hands, path: &Path) -> Result<(), WriteError> {
    if hands.files().exists(path) {
        return Ok(());
    }
    let parent = parent_of(path);
    make_directories(hands, &parent)?;
    hands.make_directory(path)?;
    hands.sync_directory(&parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_has_contents_mode_and_attributes() {
        let directory = tempfile::tempdir().unwrap();
        let (old, new) = (directory.path().join("old"), directory.path().join("new"));
        let mut hands = LiveHands::new();
        hands.write_new(&old, b"one", 0o640, None).unwrap();
        let labelled = rustix::fs::setxattr(&old, "user.rubus", b"label", XattrFlags::empty());
        hands.write_new(&new, b"two", 0o600, Some(&old)).unwrap();
        assert_eq!(hands.files().mode(&old), Ok(0o640));
        assert_eq!(hands.files().mode(&new), Ok(0o600));
        if labelled.is_ok() {
            let mut value = [0_u8; 16];
            let length = rustix::fs::getxattr(&new, "user.rubus", &mut value).unwrap();
            assert_eq!(&value[..length], b"label");
        }
        let twice = hands.write_new(&new, b"three", 0o600, None).unwrap_err();
        assert!(twice.to_string().contains("exists"), "{twice}");
        assert_eq!(std::fs::read(&new).unwrap(), b"two");
        hands.rename(&new, &old).unwrap();
        hands.sync_directory(directory.path()).unwrap();
        assert_eq!(std::fs::read(&old).unwrap(), b"two");
    }

    #[test]
    fn a_journal_is_cut_and_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut hands = LiveHands::new();
        assert!(hands.append(&path, 0, b"x").is_err(), "there is no such file");
        hands.write_new(&path, b"whole\ntorn", 0o600, None).unwrap();
        hands.append(&path, 6, b"next\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole\nnext\n");
    }

    #[test]
    fn directories_are_made_where_they_are_missing() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("a/b/c");
        let mut hands = LiveHands::new();
        make_directories(&mut hands, &deep).unwrap();
        make_directories(&mut hands, &deep).unwrap();
        assert!(deep.is_dir());
        hands.remove_directory(&deep).unwrap();
        assert!(!deep.exists());
    }

    #[test]
    fn one_program_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = lock(&path).unwrap();
        assert!(held.is_some());
        assert!(lock(&path).unwrap().is_none());
        drop(held);
        assert!(lock(&path).unwrap().is_some());
    }

    #[test]
    fn a_knob_that_does_not_exist_is_not_made() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("knob");
        assert!(LiveHands::new().set_knob(&path, "1").is_err());
        assert!(!path.exists());
        std::fs::write(&path, "0").unwrap();
        LiveHands::new().set_knob(&path, "1").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"1");
    }
}
