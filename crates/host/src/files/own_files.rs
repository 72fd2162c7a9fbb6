//! Files as any program reads and makes them: lists, certificates, recordings, counters and settings of the kernel. A file
//! that is to be made safely is in `new_file` and `kept_file`; what a captured machine can answer, too, is read through
//! `Files`.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// Makes a file that is not there yet, with these permission bits less the user's mask.
///
/// # Errors
/// The system's; `AlreadyExists` where something of that name is there.
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true).mode(mode).open(path)
}

/// Refuses a path that cannot become a file, before anything is done for it; `-` is standard output.
///
/// # Errors
/// When its directory does not exist, in words.
pub fn must_be_writable(path: &Path) -> Result<(), String> {
    if path == Path::new("-") {
        return Ok(());
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    if !directory.is_dir() {
        return Err(format!(
            "cannot write {}: there is no directory {}",
            path.display(),
            directory.display()
        ));
    }
    if path.is_dir() {
        return Err(format!("cannot write {}: it is a directory", path.display()));
    }
    Ok(())
}

/// Whether another program holds a lock on a file, as servers of images do. No where that cannot be asked.
pub fn is_locked(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    rustix::fs::open(path, flags, Mode::empty()).is_ok_and(|file| {
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
    })
}

/// A whole file of the kernel or of rubus as text. What a user names is read by `document`.
///
/// # Errors
/// The system's; `InvalidData` where it is no UTF-8.
pub fn text(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

/// Writes a file over what was in it, as settings of the kernel want it.
///
/// # Errors
/// If the file cannot be opened, or the kernel rejects the value.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    std::fs::write(path, text)
}

/// The paths of what is in a directory, in no order.
///
/// # Errors
/// If the directory cannot be read.
pub fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// The path with all symbolic links resolved.
///
/// # Errors
/// If a component of the path does not exist or cannot be searched.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// The numbers of the filesystem and the inode of what a path leads to.
///
/// # Errors
/// If the path does not exist or cannot be examined.
pub fn inode(path: &Path) -> io::Result<(u64, u64)> {
    let found = metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// The number of the device (major, minor) that a path leads to; 0, 0 where it is none.
///
/// # Errors
/// If the path does not exist or cannot be examined.
pub fn device_number(path: &Path) -> io::Result<(u32, u32)> {
    let number = metadata(path)?.rdev();
    Ok((rustix::fs::major(number), rustix::fs::minor(number)))
}

/// What the filesystem knows of what a path leads to.
///
/// # Errors
/// The system's.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    std::fs::metadata(path)
}
