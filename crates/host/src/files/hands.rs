//! Changing the machine: the few operations on files and knobs of which every change is made.
//!
//! Each operation is small enough to reason about a power failure in its middle, and says what is on stable
//! storage when it returns. The crate `change` composes them.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::files::Files;

/// Why something could not be changed. Says what was tried, on what, why it failed, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {tried} {path}: {reason}")]
pub struct WriteError {
    /// As a verb ("write", "rename").
    pub tried: &'static str,
    /// The path in question.
    pub path: String,
    /// The system's words, with advice where there is some.
    pub reason: String,
}

impl WriteError {
    /// The system's refusal to do something with a path, with the advice that fits any path.
    pub fn of(tried: &'static str, path: &Path, errno: Errno) -> Self {
        let advice = match errno {
            Errno::ACCESS | Errno::PERM => "; run it as root",
            Errno::ROFS => "; it is mounted read-only: look at the kernel log, or remount it",
            Errno::NOSPC | Errno::DQUOT => "; free some space there",
            Errno::IO => "; look at the kernel log and at the cable",
            _ => "",
        };
        WriteError::advised(tried, path.display(), errno, advice)
    }

    /// The same with advice of its own, which begins with "; " or is empty.
    pub fn advised(tried: &'static str, path: impl Display, errno: Errno, advice: &str) -> Self {
        WriteError {
            tried,
            path: path.to_string(),
            reason: format!("{}{advice}", std::io::Error::from(errno)),
        }
    }
}

/// A file that lies on the same clusters as another one: what a power cut can leave on FAT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twin {
    /// Path of the file.
    pub path: PathBuf,
    /// The device of their filesystem.
    pub device: String,
}

/// The write side of a machine. Paths are absolute. Nothing but what the caller names is changed.
pub trait Hands {
    /// The read side of the same machine.
    fn files(&self) -> &dyn Files;

    /// Makes a directory whose parent exists. It is durable after [`Hands::sync_directory`] of the parent.
    ///
    /// # Errors
    /// When it exists or cannot be made.
    fn make_directory(&mut self, path: &Path) -> Result<(), WriteError>;

    /// Removes an empty directory; durable like [`Hands::make_directory`].
    ///
    /// # Errors
    /// When it is not empty or cannot be removed.
    fn remove_directory(&mut self, path: &Path) -> Result<(), WriteError>;

    /// Makes a file that does not exist, with owner and extended attributes of `like` where that is
    /// given. The contents are on stable storage afterwards, the name after
    /// [`Hands::sync_directory`].
    ///
    /// # Errors
    /// When it exists or cannot be written; nothing is left then where that can be arranged.
    fn write_new(
        &mut self,
        path: &Path,
        bytes: &[u8],
        mode: u32,
        like: Option<&Path>,
    ) -> Result<(), WriteError>;

    /// Makes a symbolic link that does not exist; durable like [`Hands::make_directory`].
    ///
    /// # Errors
    /// When something of that name exists, or it cannot be made.
    fn make_link(&mut self, path: &Path, target: &Path) -> Result<(), WriteError>;

    /// Cuts a file to its first `keep` bytes and appends `bytes`; all is on stable storage afterwards.
    ///
    /// # Errors
    /// When the file does not exist or cannot be written.
    fn append(&mut self, path: &Path, keep: u64, bytes: &[u8]) -> Result<(), WriteError>;

    /// Gives a file another name in the same directory, in place of what had that name: at any moment
    /// the name is the old file's or the new one's. Durable after [`Hands::sync_directory`]. On a filesystem that keeps no
    /// modes a power cut may leave an empty file under a name that is new.
    ///
    /// # Errors
    /// When it does not exist or the system refuses.
    fn rename(&mut self, from: &Path, to: &Path) -> Result<(), WriteError>;

    /// Removes a file: at any moment all of it is there or nothing. Durable after [`Hands::sync_directory`].
    ///
    /// # Errors
    /// When it does not exist or the system refuses.
    fn remove(&mut self, path: &Path) -> Result<(), WriteError>;

    /// On a filesystem that keeps no modes: another file of the directory that lies on the same clusters. Removing one
    /// of the two frees what the other one has.
    fn twin(&self, path: &Path) -> Option<Twin>;

    /// Makes durable what was made, renamed and removed in a directory.
    ///
    /// # Errors
    /// When the system refuses, or the device fails.
    fn sync_directory(&mut self, path: &Path) -> Result<(), WriteError>;

    /// Writes a value to a file of `/sys` or `/proc`, in one call as the kernel wants it.
    ///
    /// # Errors
    /// When it does not exist or the kernel refuses the value.
    fn set_knob(&mut self, path: &Path, value: &str) -> Result<(), WriteError>;
}

/// Puts bytes in the place of a file, durably: whole under the name `fresh` in the same directory first, then
/// renamed. What an interrupted earlier attempt left under that name is removed.
///
/// # Errors
/// When one of these steps fails; the old file is then in its place.
pub fn replace(
    path: &Path,
    fresh: &Path,
    bytes: &[u8],
    mode: u32,
    hands: &mut dyn Hands,
) -> Result<(), WriteError> {
    remove_leftover(fresh, hands)?;
    hands.write_new(fresh, bytes, mode, None)?;
    hands.rename(fresh, path)?;
    hands.sync_directory(&parent_of(path))
}

/// Removes what an interrupted attempt has left under the name under which it prepared a file, where there is something.
///
/// # Errors
/// As [`Hands::remove`], and when another file would lose its contents by that.
pub fn remove_leftover(fresh: &Path, hands: &mut dyn Hands) -> Result<(), WriteError> {
    // A link that leads nowhere is in the way, too.
    let is_there = hands.files().exists(fresh) || hands.files().link(fresh).is_ok();
    if !is_there {
        return Ok(());
    }
    match hands.twin(fresh) {
        Some(twin) => Err(shared(fresh, &twin)),
        None => hands.remove(fresh),
    }
}

fn shared(fresh: &Path, twin: &Twin) -> WriteError {
    let (place, device) = (parent_of(fresh), &twin.device);
    let name = twin.path.file_name().unwrap_or_default().to_string_lossy();
    WriteError {
        tried: "remove",
        path: fresh.display().to_string(),
        reason: format!(
            "a power cut has left it and {name} on the same clusters of {device}, and {name} would lose its contents; \
             copy {name} to another disk, mend the filesystem with `umount {place}`, `fsck.vfat -a {device}` and \
             `mount {place}`, run `rubus resume`, and check that {name} is whole then",
            place = place.display(),
        ),
    }
}

/// An absolute path of a system whose root is seen at `top`.
pub fn below(top: &Path, path: &Path) -> PathBuf {
    top.join(path.strip_prefix("/").unwrap_or(path))
}

/// The directory that a path is in.
pub fn parent_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_path_buf()
}
