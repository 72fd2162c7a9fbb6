//! Where a file is whose server keeps words in memory that outlives it: they are of no use once the file is gone.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a file was when it was served last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its path from the root directory on, without links.
    pub path: PathBuf,
    /// Its filesystem's device, and its inode there.
    pub inode: (u64, u64),
}

impl Place {
    /// Whether the file was deleted, moved or replaced, and not only its filesystem unmounted. `inode_at` looks at the
    /// device and inode of a path.
    pub(super) fn is_gone(&self, inode_at: &dyn Fn(&Path) -> io::Result<(u64, u64)>) -> bool {
        for (above, path) in self.path.ancestors().enumerate() {
            match inode_at(path) {
                Ok(found) if above == 0 => return found.0 == self.inode.0 && found != self.inode,
                Ok((device, _)) => return device == self.inode.0,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => return false,
            }
        }
        false
    }

    /// Keeps a place, or that there is none, in words that a kill may stop half written: then there is none. A path that is too
    /// long is not kept.
    pub(super) fn keep_in(place: Option<&Place>, words: &[AtomicU64]) {
        let put = |at: usize, value: u64| words[at].store(value, Ordering::Release);
        put(at::PATH_BYTES, 0);
        let Some(place) = place else { return };
        let path = place.path.as_os_str().as_bytes();
        let chunks = path.chunks(8);
        let Some(room) = words.get(at::PATH..).filter(|room| chunks.len() <= room.len()) else {
            return;
        };
        for (word, chunk) in room.iter().zip(chunks) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(bytes), Ordering::Release);
        }
        put(at::DEVICE, place.inode.0);
        put(at::INODE, place.inode.1);
        put(at::PATH_BYTES, path.len() as u64);
    }

    /// The place that is kept in words, if any.
    pub(super) fn kept_in(words: &[AtomicU64]) -> Option<Place> {
        let get = |at: usize| Some(words.get(at)?.load(Ordering::Acquire));
        let length = usize::try_from(get(at::PATH_BYTES)?).ok()?;
        let mut path: Vec<u8> = words
            .get(at::PATH..)?
            .iter()
            .take(length.div_ceil(8))
            .flat_map(|word| word.load(Ordering::Acquire).to_le_bytes())
            .collect();
        path.truncate(length);
        let is_whole = length > 0 && path.len() == length;
        is_whole.then_some(Place {
            path: OsStr::from_bytes(&path).into(),
            inode: (get(at::DEVICE)?, get(at::INODE)?),
        })
    }
}

/// Places of the words.
mod at {
    /// The path's length in bytes; 0 when no place is kept.
    pub const PATH_BYTES: usize = 0;
    pub const DEVICE: usize = 1;
    pub const INODE: usize = 2;
    /// The path's first eight bytes.
    pub const PATH: usize = 3;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_gone_when_its_filesystem_is_there_without_it() {
        let place = Place { path: "/mnt/stick/images/disk.img".into(), inode: (7, 12) };
        let is_gone = |there: &[(&str, (u64, u64))]| {
            place.is_gone(&|path| {
                let found = there.iter().find(|(at, _)| Path::new(at) == path);
                found.map(|(_, inode)| *inode).ok_or_else(|| io::ErrorKind::NotFound.into())
            })
        };
        let (image, directory) = ("/mnt/stick/images/disk.img", "/mnt/stick/images");
        assert!(!is_gone(&[(directory, (7, 11)), (image, (7, 12))]));
        assert!(is_gone(&[(directory, (7, 11))]), "it was deleted or moved");
        assert!(is_gone(&[("/mnt/stick", (7, 2)), ("/", (1, 2))]), "with its directory");
        assert!(is_gone(&[(image, (7, 13))]), "another file was put in its place");
        assert!(!is_gone(&[("/mnt/stick", (1, 30)), ("/", (1, 2))]), "it is unmounted");
        assert!(!is_gone(&[(image, (1, 12))]), "another filesystem is over it");
        assert!(!is_gone(&[]));
        let forbidden = |_: &Path| Err(io::ErrorKind::PermissionDenied.into());
        assert!(!place.is_gone(&forbidden));
    }
}
