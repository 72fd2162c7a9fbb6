//! Programs that must keep running when the system around them cannot: while the disk under the root
//! filesystem does not answer, nothing can be read from it, memory cannot be freed by writing to it, and no
//! program on it can be started.
//!
//! [`background`] starts this program once more so that it outlives its starter, [`stay`] keeps all of it in
//! memory, and a [`KeptDirectory`] reaches files where the names of paths have come to mean something else:
//! a program that was started in the initial RAM filesystem sees that one's empty directories for ever.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};

/// This program, started once more with other arguments.
#[derive(Debug)]
pub struct Background {
    child: Child,
}

/// Starts this program again under a name that begins with `@`: by that, systemd knows at shutdown that it
/// serves the root filesystem and lets it live to the end.
///
/// # Errors
/// When it cannot be started.
pub fn background(name: &str, arguments: &[OsString]) -> io::Result<Background> {
    debug_assert!(name.starts_with('@'));
    let child = Command::new("/proc/self/exe")
        .arg0(name)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    Ok(Background { child })
}

impl Background {
    /// What it writes to standard output until it closes that, by [`let_go`] or by ending; at most 64 KiB.
    ///
    /// # Errors
    /// If the pipe cannot be read, or the output is not UTF-8.
    pub fn hear(&mut self) -> io::Result<String> {
        let mut said = String::new();
        if let Some(out) = self.child.stdout.take() {
            out.take(64 << 10).read_to_string(&mut said)?;
        }
        Ok(said)
    }

    /// Waits for the program to end.
    ///
    /// # Errors
    /// If waiting fails.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

/// Makes this program independent of who started it: a session of its own, no terminal, no directory that it
/// holds, and its standard streams lead nowhere.
///
/// # Errors
/// When `/dev/null` cannot be opened.
pub fn let_go() -> io::Result<()> {
    // Fails where it leads a session already.
    let _ = rustix::process::setsid();
    rustix::process::chdir("/")?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Keeps this program in memory, now and whatever it allocates; lets the kernel give it memory without
/// waiting for a disk, since that disk may wait for it; and spares it when memory is out. Gives what of this
/// the kernel refused, in words.
pub fn stay() -> Vec<String> {
    let mut refused = Vec::new();
    if let Err(errno) = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE) {
        refused.push(format!("memory cannot be locked: {errno}"));
    }
    // Since Linux 5.6; without, only an extreme lack of memory matters.
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: the call takes numbers and changes how the kernel allocates for this thread.
    if unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) } != 0 {
        let error = io::Error::last_os_error();
        refused.push(format!("memory may wait for this very disk: {error}"));
    }
    if let Err(error) = std::fs::write("/proc/self/oom_score_adj", "-1000") {
        refused.push(format!("it may be ended when memory is out: {error}"));
    }
    refused
}

/// Whether a process of that number is there.
pub fn is_there(process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
}

/// A directory that stays the same whatever is mounted over its path or moved away from it.
#[derive(Debug)]
pub struct KeptDirectory {
    fd: OwnedFd,
}

impl KeptDirectory {
    /// Opens a directory.
    ///
    /// # Errors
    /// When it does not exist or is none.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(KeptDirectory { fd })
    }

    /// Makes the directory and those above it where they are missing, and opens it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        Self::open(path)
    }

    /// The text of a file in it, at most 64 KiB.
    ///
    /// # Errors
    /// When it does not exist or cannot be read.
    pub fn read(&self, name: &str) -> io::Result<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty())?;
        let mut text = String::new();
        File::from(fd).take(64 << 10).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Replaces a file atomically: readers see the old or the new content. It need not survive a power
    /// cut.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let fresh = format!("{name}.new");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let fd = rustix::fs::openat(&self.fd, &fresh, flags | OFlags::NOFOLLOW, mode)?;
        io::Write::write_all(&mut File::from(fd), text.as_bytes())?;
        rustix::fs::renameat(&self.fd, &fresh, &self.fd, name)?;
        Ok(())
    }

    /// Removes a file where there is one.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            answer => answer.map_err(Into::into),
        }
    }

    /// Names of what is in it.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// Makes a block device whose node is in it flush all caches, the kernel's and its own, and waits for
    /// that. Only the device's size is read.
    ///
    /// # Errors
    /// If the device cannot be opened or is empty ([`FlushError::NotBegun`]), or the flush fails.
    pub fn flush_device(&self, name: &str) -> Result<(), FlushError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let unopened = |errno: Errno| FlushError::NotBegun(errno.into());
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty()).map_err(unopened)?;
        // A detached network disk is empty; the kernel would complain about a flush without a server.
        if rustix::fs::seek(&fd, SeekFrom::End(0)).map_err(unopened)? == 0 {
            return Err(unopened(Errno::NOMEDIUM));
        }
        rustix::fs::fsync(&fd).map_err(|errno| FlushError::Failed(errno.into()))
    }
}

/// Why a device was not flushed.
#[derive(Debug, thiserror::Error)]
pub enum FlushError {
    /// It cannot be opened, or is empty; nothing is lost by that.
    #[error("cannot open it: {0}")]
    NotBegun(io::Error),
    /// A write or the flush failed: written data may be lost, and the kernel reports that only
    /// once.
    #[error("{0}")]
    Failed(io::Error),
}

/// A way to the kernel's log.
#[derive(Debug)]
pub struct KernelLog {
    file: OwnedFd,
}

impl KernelLog {
    /// Opens the log for writing.
    ///
    /// # Errors
    /// If `/dev/kmsg` cannot be opened, which needs root.
    pub fn open() -> io::Result<Self> {
        let file = rustix::fs::open("/dev/kmsg", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(KernelLog { file })
    }

    /// Writes a line with the urgency of `syslog`: 3 is an error, 4 a warning, 5 worth a note. A line
    /// that cannot be written is lost.
    pub fn line(&self, urgency: u8, text: &str) {
        let line = format!("<{urgency}>{text}\n");
        let _ = rustix::io::write(self.file.as_fd(), line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_directory_is_the_same_after_its_path_has_changed() {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("a/b");
        let kept = KeptDirectory::make(&path).unwrap();
        std::fs::rename(above.path().join("a"), above.path().join("elsewhere")).unwrap();
        kept.replace("state", "first").unwrap();
        kept.replace("state", "second").unwrap();
        assert_eq!(kept.read("state").unwrap(), "second");
        assert_eq!(kept.names().unwrap(), ["state"]);
        let there = above.path().join("elsewhere/b/state");
        assert_eq!(std::fs::read_to_string(&there).unwrap(), "second");
        kept.flush_device("state").unwrap();
        kept.replace("state", "").unwrap();
        assert!(
            matches!(kept.flush_device("state"), Err(FlushError::NotBegun(_))),
            "nothing is there to be flushed"
        );
        kept.remove("state").unwrap();
        kept.remove("state").unwrap();
        assert!(kept.read("state").is_err());
        assert!(kept.flush_device("state").is_err());
    }

    #[test]
    fn processes_are_told_from_numbers() {
        assert!(is_there(std::process::id()));
        assert!(!is_there(0));
        assert!(!is_there(u32::MAX));
    }
}
