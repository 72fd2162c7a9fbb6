//! A few numbers that outlive this program and not this boot: words of memory in `/dev/shm`.
//!
//! The kernel keeps them when the program is killed and forgets them when the machine restarts, which is just what it
//! does with the pages of a file that have not been written out.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use rustix::fs::{FallocateFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

const DIRECTORY: &str = "/dev/shm";

/// Words that outlive this program. They are locked against [`sweep`] until this is dropped.
#[derive(Debug)]
pub struct LiveWords {
    first: *const AtomicU64,
    count: usize,
    path: PathBuf,
    /// Holds the lock.
    _file: OwnedFd,
}

// SAFETY: the memory is mapped until this is dropped, and only reached as atomic numbers.
unsafe impl Send for LiveWords {}
// SAFETY: as above.
unsafe impl Sync for LiveWords {}

impl LiveWords {
    /// Makes `count` words, all 0, under a name, and replaces any of that name.
    ///
    /// # Errors
    /// If the memory cannot be created or reserved.
    pub fn create(name: &str, count: usize) -> io::Result<Self> {
        forget(name)?;
        let path = path_of(name)?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
        let bytes = (count * size_of::<AtomicU64>()) as u64;
        // Memory that is given now cannot be missing later, when that would end the program.
        let given = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes);
        let locked = given.and_then(|()| rustix::fs::flock(&file, FlockOperation::LockShared));
        let words = match locked {
            Ok(()) => LiveWords::map(file, count, path.clone()),
            Err(errno) => Err(errno.into()),
        };
        if words.is_err() {
            let _ = rustix::fs::unlink(&path);
        }
        words
    }

    /// Finds words that an earlier program made, with their values; `None` if there are none, their number differs,
    /// or they belong to another user.
    ///
    /// # Errors
    /// If the memory cannot be opened or mapped.
    pub fn find(name: &str, count: usize) -> io::Result<Option<Self>> {
        let path = path_of(name)?;
        let Some((file, found)) = open_ours(&path)? else {
            return Ok(None);
        };
        if count_in(&found) != Some(count) {
            return Ok(None);
        }
        rustix::fs::flock(&file, FlockOperation::LockShared)?;
        // A sweep may have removed the file before this got the lock.
        if rustix::fs::fstat(&file)?.st_nlink != 1 {
            return Ok(None);
        }
        LiveWords::map(file, count, path).map(Some)
    }

    fn map(file: OwnedFd, count: usize, path: PathBuf) -> io::Result<Self> {
        if count == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: a new mapping without other references; the file is at least that long and its
        // memory is allocated.
        let memory = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                count * size_of::<AtomicU64>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file.as_fd(),
                0,
            )?
        };
        Ok(LiveWords { first: memory.cast(), count, path, _file: file })
    }

    /// The words, as a slice.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping begins at a page, has this length, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.first, self.count) }
    }

    /// Forgets them: a later program does not find them. This one keeps them until it drops this.
    pub fn forget(&self) {
        // What stays is overwritten by the next that takes the name, and lost with the boot at the latest.
        let _ = rustix::fs::unlink(&self.path);
    }
}

impl Drop for LiveWords {
    fn drop(&mut self) {
        // SAFETY: it is this mapping, and no reference into it is left.
        unsafe {
            let _ = rustix::mm::munmap(
                self.first.cast_mut().cast(),
                self.count * size_of::<AtomicU64>(),
            );
        }
    }
}

/// Forgets the words of a name, no matter which program made them.
///
/// # Errors
/// When they are another user's.
pub fn forget(name: &str) -> io::Result<()> {
    match rustix::fs::unlink(path_of(name)?) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Forgets all words whose name has this prefix, that no program has open, and that are stale by their values. Returns how many
/// those were. Skips words of other users.
///
/// # Errors
/// When the directory cannot be listed.
pub fn sweep(prefix: &str, is_stale: &dyn Fn(&[AtomicU64]) -> bool) -> io::Result<usize> {
    let mut swept = 0;
    for entry in std::fs::read_dir(DIRECTORY)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(prefix)) else {
            continue;
        };
        // Words that cannot be read or removed may stay.
        swept += usize::from(forget_if(name, is_stale).unwrap_or(false));
    }
    Ok(swept)
}

fn forget_if(name: &str, is_stale: &dyn Fn(&[AtomicU64]) -> bool) -> io::Result<bool> {
    let path = path_of(name)?;
    let Some((file, found)) = open_ours(&path)? else {
        return Ok(false);
    };
    let Some(count) = count_in(&found) else {
        return Ok(false);
    };
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(false);
    }
    // Holds the lock until the name is gone.
    let words = LiveWords::map(file, count, path)?;
    let is_there = rustix::fs::stat(&words.path)?.st_ino == found.st_ino;
    let is_swept = is_there && is_stale(words.words());
    if is_swept {
        words.forget();
    }
    Ok(is_swept)
}

/// Opens a file of this user that no one else can write; `None` if there is none, or if it belongs to another user:
/// anyone may create files there.
fn open_ours(path: &Path) -> io::Result<Option<(OwnedFd, Stat)>> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP | Errno::ACCESS) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let found = rustix::fs::fstat(&file)?;
    let is_ours = found.st_uid == rustix::process::geteuid().as_raw()
        && FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && found.st_mode & 0o077 == 0
        && found.st_nlink == 1;
    Ok(is_ours.then_some((file, found)))
}

/// How many words a file has; nothing when it has none, or part of one.
fn count_in(found: &Stat) -> Option<usize> {
    let bytes = usize::try_from(found.st_size).ok()?;
    let count = bytes / size_of::<AtomicU64>();
    (count > 0 && bytes == count * size_of::<AtomicU64>()).then_some(count)
}

fn path_of(name: &str) -> io::Result<PathBuf> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !name.is_empty() && name.bytes().all(is_plain) {
        Ok(PathBuf::from(DIRECTORY).join(name))
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn words_are_found_again_until_they_are_forgotten() {
        let name = format!("rubus-test-{}", std::process::id());
        assert!(LiveWords::find(&name, 3).unwrap().is_none());
        let words = LiveWords::create(&name, 3).unwrap();
        words.words()[2].fetch_or(5, Ordering::Relaxed);
        drop(words);

        let again = LiveWords::find(&name, 3).unwrap().expect("they are there");
        assert_eq!(again.words()[2].load(Ordering::Relaxed), 5);
        assert!(LiveWords::find(&name, 4).unwrap().is_none(), "not so many");
        again.forget();
        assert!(LiveWords::find(&name, 3).unwrap().is_none());
        assert_eq!(again.words()[2].load(Ordering::Relaxed), 5);
        assert!(LiveWords::create("../etc/x", 1).is_err());
    }

    #[test]
    fn a_sweep_forgets_stale_words_that_no_program_has_open() {
        let prefix = format!("rubus-sweep-{}-", std::process::id());
        let names = ["open", "stale", "fresh"].map(|word| format!("{prefix}{word}"));
        let [open, stale, fresh] = names.clone().map(|name| {
            let words = LiveWords::create(&name, 2).unwrap();
            let value = u64::from(!name.ends_with("fresh"));
            words.words()[1].store(value, Ordering::Relaxed);
            words
        });
        drop((stale, fresh));
        let is_stale = |words: &[AtomicU64]| words[1].load(Ordering::Relaxed) == 1;
        let is_there = || names.clone().map(|name| LiveWords::find(&name, 2).unwrap().is_some());
        assert_eq!(sweep(&prefix, &is_stale).unwrap(), 1);
        assert_eq!(is_there(), [true, false, true]);
        // Found again, and so open.
        drop(open);
        let open = LiveWords::find(&names[0], 2).unwrap();
        assert_eq!(sweep(&prefix, &is_stale).unwrap(), 0);
        drop(open);
        assert_eq!(sweep(&prefix, &is_stale).unwrap(), 1);
        assert_eq!(is_there(), [false, false, true]);
        forget(&names[2]).unwrap();
    }

    #[test]
    fn words_that_others_can_write_are_not_taken() {
        use std::os::unix::fs::PermissionsExt;
        let name = format!("rubus-open-{}", std::process::id());
        let path = PathBuf::from(DIRECTORY).join(&name);
        std::fs::write(&path, [0; 8]).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let found = LiveWords::find(&name, 1);
        forget(&name).unwrap();
        assert!(found.unwrap().is_none());
    }
}
