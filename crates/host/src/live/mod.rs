//! This machine: the read side of [`Files`] answered by the running kernel.
//!
//! Only reads. Programs are in `process`, the firmware mailbox in `mailbox.rs`.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::files::{Files, ReadError, Space};
use crate::process::programs;

pub mod hands;
mod mailbox;
mod null_disks;
pub mod offline_root;

/// The machine that this program runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Live;

impl Live {
    /// The read side of this machine.
    pub fn new() -> Self {
        Live
    }
}

impl Files for Live {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        if let Some(read) = null_disks::read_node(path, limit) {
            return read;
        }
        null_disks::may_read(path)?;
        // Not to block: a path may turn out to be a FIFO or a device that waits for a medium.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        read_up_to(&fd, limit)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn keeps_modes(&self, path: &Path) -> bool {
        // Magic numbers of linux/magic.h: FAT, exFAT and NTFS (ntfs3).
        const WITHOUT: [u64; 3] = [0x4d44, 0x2011_bab0, 0x7366_746e];
        rustix::fs::statfs(path).map_or(true, |fs| !WITHOUT.contains(&(fs.f_type as u64)))
    }

    fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
        Ok(std::fs::read_link(path)?)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        Ok(std::fs::canonicalize(path)?)
    }

    fn space(&self, path: &Path) -> Result<Space, ReadError> {
        space_within(path.to_path_buf(), SPACE_PATIENCE)
    }

    fn mode(&self, path: &Path) -> Result<u32, ReadError> {
        use std::os::unix::fs::PermissionsExt;
        let metadata = std::fs::symlink_metadata(path)?;
        Ok(metadata.permissions().mode() & 0o7777)
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, ReadError> {
        programs::ask(program, arguments)
    }

    fn firmware_word(&self, tag: u32) -> Result<u32, ReadError> {
        mailbox::word(tag)
    }
}

/// Timeout for a filesystem's size.
const SPACE_PATIENCE: Duration = Duration::from_secs(4);

/// Asks in a thread that is left behind when a server or a program below the filesystem does not answer; such a wait ends with
/// this program.
fn space_within(path: PathBuf, patience: Duration) -> Result<Space, ReadError> {
    let (answer, answers) = std::sync::mpsc::channel();
    let ask = move || {
        let found = rustix::fs::statvfs(&path).map(|found| Space {
            size_bytes: found.f_blocks.saturating_mul(found.f_frsize),
            available_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        });
        // The receiver may be gone.
        let _ = answer.send(found);
    };
    std::thread::Builder::new()
        .name("space".into())
        .spawn(ask)
        .map_err(|error| ReadError::Other(format!("no thread to ask: {error}")))?;
    match answers.recv_timeout(patience) {
        Ok(found) => Ok(found?),
        Err(_) => Err(ReadError::Other(format!(
            "the filesystem does not answer: nothing came within {} s",
            patience.as_secs_f32()
        ))),
    }
}

/// Reads until the end of the file or until `limit` bytes are there.
fn read_up_to(fd: &OwnedFd, limit: usize) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; 16 * 1024];
    while bytes.len() < limit {
        let want = chunk.len().min(limit - bytes.len());
        match rustix::io::read(fd, &mut chunk[..want]) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

impl From<Errno> for ReadError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR => ReadError::Absent,
            Errno::ACCESS | Errno::PERM => ReadError::Denied,
            other => std::io::Error::from(other).into(),
        }
    }
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => ReadError::Absent,
            std::io::ErrorKind::PermissionDenied => ReadError::Denied,
            _ => ReadError::Other(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_prefix_and_the_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let contents: Vec<u8> = (0..40_000_u32).map(|i| i as u8).collect();
        std::fs::write(&path, &contents).unwrap();
        assert_eq!(Live.read_prefix(&path, 3).unwrap(), &contents[..3]);
        assert_eq!(Live.read_prefix(&path, 1 << 20).unwrap(), contents);
        assert_eq!(Live.read_prefix(&path, 0).unwrap(), b"");
    }

    #[test]
    fn says_what_is_absent_and_what_is_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        assert_eq!(Live.read_prefix(&missing, 9), Err(ReadError::Absent));
        assert_eq!(Live.list(&missing), Err(ReadError::Absent));
        assert_eq!(Live.real_path(&missing), Err(ReadError::Absent));
        assert_eq!(Live.space(&missing), Err(ReadError::Absent));
        let error = Live.read_prefix(dir.path(), 9).unwrap_err();
        assert!(error.to_string().contains("directory"), "{error}");
    }

    #[test]
    fn lists_in_byte_order_and_resolves_links() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b", "B", "a10", "a2"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(Live.list(dir.path()).unwrap(), ["B", "a10", "a2", "b"]);
        std::os::unix::fs::symlink("b", dir.path().join("link")).unwrap();
        let real = Live.real_path(&dir.path().join("link")).unwrap();
        assert_eq!(real.file_name().unwrap(), "b");
    }

    #[test]
    fn a_fifo_without_a_writer_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(Live.read_prefix(&path, 9).unwrap(), b"");
    }

    #[test]
    fn knows_the_space_of_a_filesystem() {
        let space = Live.space(Path::new("/")).unwrap();
        assert!(space.size_bytes > 0 && space.available_bytes <= space.size_bytes);
    }
}
