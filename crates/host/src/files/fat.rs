//! FAT and its kin: replacing and removing a file so that a power cut leaves one of two whole files, or all of it or none, and looking
//! whether an earlier cut has left two names on the same clusters.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::files::hands::{Twin, parent_of};

/// Gives a file another name in the same directory, in place of what had that name, and makes that durable.
///
/// The kernel (`vfat_rename` and `fat_write_inode`, Linux 6.12) takes the old entry away with the directory, but writes where
/// the file begins into the new one only with the file itself. Left alone, both names may be on the same clusters when
/// the power goes, and then `fsck.vfat -a`, which every boot runs, empties the one that comes later in the
/// directory: it may be the file that the board starts from. So the directory comes first. Until the file follows,
/// the name is still that of the old contents, and these keep their clusters because the old file stays open
/// meanwhile. In between a name that is new is an empty file. What a power cut loses in this way are clusters that nothing
/// names.
///
/// The file alone is not enough: when the kernel has begun to write it back by itself, the entry waits in the cache of the
/// device, and `fsync` finds nothing left to do (`fat_file_fsync`, Linux 6.12). The whole filesystem follows, and only then the
/// old clusters are given up.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Errno> {
    let old = match open(to, OFlags::empty()) {
        Ok(old) => Some(old),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(errno),
    };
    rustix::fs::rename(from, to)?;
    rustix::fs::fsync(open(&parent_of(to), OFlags::DIRECTORY)?)?;
    let new = open(to, OFlags::empty())?;
    rustix::fs::fsync(&new)?;
    rustix::fs::syncfs(&new)?;
    drop(old);
    Ok(())
}

/// Removes a file, and makes that durable before its clusters are free.
///
/// Left alone, a disk may have the clusters free and the name still there when the power goes. `fsck.vfat -a` then leaves the part of the
/// file that was not freed yet under its name, which then looks like a file of another program. So the file stays open,
/// and keeps its clusters, until its name is gone for good: a power cut leaves all of it or none. At worst it leaks
/// clusters that no name refers to.
pub(crate) fn remove(path: &Path) -> Result<(), Errno> {
    remove_and(path, &mut settle)
}

fn remove_and(
    path: &Path,
    settle: &mut dyn FnMut(&OwnedFd) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let old = open(path, OFlags::empty())?;
    rustix::fs::unlink(path)?;
    settle(&open(&parent_of(path), OFlags::DIRECTORY)?)?;
    drop(old);
    Ok(())
}

/// Makes durable what is in a directory. `fsync` alone finds nothing left to do where the kernel has begun by itself, as in [`rename`].
fn settle(directory: &OwnedFd) -> Result<(), Errno> {
    rustix::fs::fsync(directory)?;
    rustix::fs::syncfs(directory)
}

fn open(path: &Path, more: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | more;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Another file of the same directory that lies on the same clusters.
pub(crate) fn twin(path: &Path) -> Option<Twin> {
    let mine = First::of(path)?;
    let entries = std::fs::read_dir(parent_of(path)).ok()?;
    let others = entries.flatten().map(|entry| entry.path());
    let mut others = others.filter(|other| other != path && other.is_file());
    let other = others.find(|other| First::of(other).is_some_and(|first| first.is_same(&mine)))?;
    Some(Twin { device: device_of(&other), path: other })
}

/// Where a file begins, as far as the kernel says.
struct First {
    path: PathBuf,
    size_bytes: u64,
    /// Number of the block; nothing where the kernel does not tell it.
    block: Option<u32>,
}

impl First {
    /// Nothing of a file without contents, which has no clusters.
    fn of(path: &Path) -> Option<Self> {
        let size_bytes = std::fs::metadata(path).ok()?.len();
        (size_bytes > 0).then(|| First {
            path: path.to_path_buf(),
            size_bytes,
            block: first_block(path),
        })
    }

    /// Where blocks are not told, equal contents are as good as the same ones: nothing is lost by caution.
    fn is_same(&self, other: &First) -> bool {
        match (self.block, other.block) {
            (Some(one), Some(other)) => one == other,
            _ => self.size_bytes == other.size_bytes && have_same_bytes(&self.path, &other.path),
        }
    }
}

/// `FIBMAP` of the first block (`linux/fs.h`), which takes `CAP_SYS_RAWIO`. FAT knows no `FIEMAP`.
fn first_block(path: &Path) -> Option<u32> {
    const FIBMAP: u32 = 1;
    let file = open(path, OFlags::NONBLOCK).ok()?;
    let mut block: libc::c_int = 0;
    // SAFETY: the call reads and writes the one integer that it is given.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), FIBMAP as _, &raw mut block) };
    // Block 0 is none.
    (answer == 0 && block > 0).then(|| block.unsigned_abs())
}

fn have_same_bytes(one: &Path, other: &Path) -> bool {
    let (Ok(one), Ok(other)) = (std::fs::File::open(one), std::fs::File::open(other)) else {
        return false;
    };
    let bytes = |file| std::io::BufReader::new(file).bytes();
    bytes(one).zip(bytes(other)).all(|pair| matches!(pair, (Ok(one), Ok(other)) if one == other))
}

/// The device of the filesystem that a file is on, by the kernel's name.
fn device_of(path: &Path) -> String {
    let name = || {
        let number = std::fs::metadata(path).ok()?.dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let link = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
        Some(format!("/dev/{}", link.file_name()?.to_string_lossy()))
    };
    name().unwrap_or_else(|| "its device".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_file_takes_the_place_of_an_old_one_or_of_none() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        for old in [true, false] {
            std::fs::write(place("fresh"), "new").unwrap();
            if old {
                std::fs::write(place("file"), "old").unwrap();
            } else {
                std::fs::remove_file(place("file")).unwrap();
            }
            rename(&place("fresh"), &place("file")).unwrap();
            assert_eq!(std::fs::read(place("file")).unwrap(), b"new");
            assert!(!place("fresh").exists());
        }
        assert_eq!(rename(&place("fresh"), &place("file")), Err(Errno::NOENT));
        assert_eq!(std::fs::read(place("file")).unwrap(), b"new");
    }

    #[test]
    fn a_removed_file_keeps_its_clusters_until_its_name_is_gone_for_good() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "old").unwrap();
        let removed = PathBuf::from(format!("{} (deleted)", path.display()));
        let is_open = || {
            let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
            let mut names = all.filter_map(|fd| std::fs::read_link(fd.path()).ok());
            names.any(|name| name == removed)
        };
        let mut settled = 0;
        let mut settle = |parent: &OwnedFd| {
            assert!(is_open() && !path.exists());
            settled += 1;
            settle(parent)
        };
        remove_and(&path, &mut settle).unwrap();
        assert!(settled == 1 && !is_open());
        assert_eq!(remove(&path), Err(Errno::NOENT));
    }

    #[test]
    fn names_on_the_same_blocks_are_found_and_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        std::fs::write(place("left"), "the same").unwrap();
        std::fs::write(place("empty"), "").unwrap();
        std::fs::write(place("other"), "else").unwrap();
        assert_eq!(twin(&place("left")), None);
        assert_eq!(twin(&place("empty")), None);
        assert_eq!(twin(&place("none")), None);
        // What FAT calls a cross-link is on other filesystems a second name.
        std::fs::hard_link(place("left"), place("target")).unwrap();
        let found = twin(&place("left")).unwrap();
        assert_eq!(found.path, place("target"));
        assert!(!found.device.is_empty());
    }

    #[test]
    fn without_block_numbers_equal_contents_count() {
        let directory = tempfile::tempdir().unwrap();
        let unknown = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            First { block: None, ..First::of(&path).unwrap() }
        };
        let one = unknown("one", "root=old");
        assert!(one.is_same(&unknown("same", "root=old")));
        assert!(!one.is_same(&unknown("longer", "root=old ")));
        assert!(!one.is_same(&unknown("other", "root=new")));
    }
}
