//! A few numbers that outlive this program and not this boot: words of memory in `/dev/shm`.
//!
//! The kernel keeps them when the program is killed and forgets them when the machine restarts, which is just what it
//! does with the pages of a file that have not been written out.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use rustix::fs::{FallocateFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

const DIRECTORY: &str = "/dev/shm";

/// Words that outlive this program.
#[derive(Debug)]
pub struct LiveWords {
    first: *const AtomicU64,
    count: usize,
    path: PathBuf,
}

// SAFETY: the memory is mapped until this is dropped, and only reached as atomic numbers.
unsafe impl Send for LiveWords {}
// SAFETY: as above.
unsafe impl Sync for LiveWords {}

impl LiveWords {
    /// Makes so many words, all 0, under a name; what had the name is forgotten.
    ///
    /// # Errors
    /// The system's.
    pub fn create(name: &str, count: usize) -> io::Result<Self> {
        forget(name)?;
        let path = path_of(name)?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
        let bytes = (count * size_of::<AtomicU64>()) as u64;
        // Memory that is given now cannot be missing later, when that would end the program.
        let given = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes);
        let words = match given {
            Ok(()) => LiveWords::map(&file, count, path.clone()),
            Err(errno) => Err(errno.into()),
        };
        if words.is_err() {
            let _ = rustix::fs::unlink(&path);
        }
        words
    }

    /// Finds words that an earlier program made, with their values; nothing when there are none, or not so many, or
    /// another user's.
    ///
    /// # Errors
    /// The system's.
    pub fn find(name: &str, count: usize) -> io::Result<Option<Self>> {
        let path = path_of(name)?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP | Errno::ACCESS) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let found = rustix::fs::fstat(&file)?;
        // Anybody may make a file there.
        let is_ours = found.st_uid == rustix::process::geteuid().as_raw()
            && FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
            && found.st_mode & 0o077 == 0
            && found.st_nlink == 1
            && found.st_size as u64 == (count * size_of::<AtomicU64>()) as u64;
        if !is_ours {
            return Ok(None);
        }
        LiveWords::map(&file, count, path).map(Some)
    }

    fn map(file: &OwnedFd, count: usize, path: PathBuf) -> io::Result<Self> {
        if count == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: a new mapping that nobody else has; the file is at least so long and has its memory.
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
        Ok(LiveWords {
            first: memory.cast(),
            count,
            path,
        })
    }

    /// The words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping begins at a page, is so long, and lives as long as this.
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
        // SAFETY: it is this mapping, and nobody has a reference into it any more.
        unsafe {
            let _ = rustix::mm::munmap(
                self.first.cast_mut().cast(),
                self.count * size_of::<AtomicU64>(),
            );
        }
    }
}

/// Forgets the words of a name, whoever made them.
///
/// # Errors
/// When they are another user's.
pub fn forget(name: &str) -> io::Result<()> {
    match rustix::fs::unlink(path_of(name)?) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn path_of(name: &str) -> io::Result<PathBuf> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    match !name.is_empty() && name.bytes().all(is_plain) {
        true => Ok(PathBuf::from(DIRECTORY).join(name)),
        false => Err(io::ErrorKind::InvalidInput.into()),
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
