//! The golden image: read by all clones, written by none, and watched for changes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rubus_host::files::clone_file::{CloneFile, Stamp, real_path};
use rubus_host::files::digest;

use super::format::{GoldenId, MAX_DISK_BYTES};
use super::store::Golden;

/// Bytes at each end of the image, and number and size of the pieces in between, that enter the
/// fingerprint.
const END_BYTES: u64 = 64 << 10;
const PIECES: u64 = 64;
const PIECE_BYTES: u64 = 4 << 10;

/// A golden image in a file or on a block device.
#[derive(Debug)]
pub struct GoldenFile {
    file: CloneFile,
    path: PathBuf,
    stamp: Stamp,
    id: GoldenId,
    is_changed: AtomicBool,
}

impl GoldenFile {
    /// Opens an image for reading.
    ///
    /// # Errors
    /// If the image cannot be opened or read, is open for writing elsewhere, or has an impossible
    /// size.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = real_path(path)?;
        let file = CloneFile::read_only(&path)?;
        file.share_lock().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::Error::new(
                io::ErrorKind::WouldBlock,
                "another program has it open for writing; stop that program first",
            ),
            _ => error,
        })?;
        let stamp = file.stamp()?;
        if stamp.size_bytes == 0 || stamp.size_bytes > MAX_DISK_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a disk cannot have {} bytes", stamp.size_bytes),
            ));
        }
        let id = GoldenId {
            size_bytes: stamp.size_bytes,
            changed_ns: stamp.changed_ns,
            fingerprint: fingerprint(&file, stamp.size_bytes)?,
        };
        Ok(GoldenFile { file, path, stamp, id, is_changed: AtomicBool::new(false) })
    }

    /// Where it is, links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// By what it is recognised.
    pub fn id(&self) -> &GoldenId {
        &self.id
    }

    pub(super) fn file(&self) -> &CloneFile {
        &self.file
    }

    fn refuse_if_changed(&self) -> io::Result<()> {
        if self.is_changed.load(Ordering::Relaxed) {
            Err(io::Error::other(format!(
                "the golden image {} was changed while clones of it are served; stop the server and bring the old \
                 image back",
                self.path.display()
            )))
        } else {
            Ok(())
        }
    }
}

impl Golden for GoldenFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.refuse_if_changed()?;
        self.file.read_at(offset, into)
    }

    fn read_ready_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.refuse_if_changed()?;
        self.file.read_ready_at(offset, into)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        self.file.next_data(offset)
    }

    fn will_need(&self, offset: u64, bytes: u64) {
        self.file.will_need(offset, bytes);
    }

    fn check(&self) -> io::Result<()> {
        let now = self.file.stamp()?;
        if (now.size_bytes, now.changed_ns) != (self.stamp.size_bytes, self.stamp.changed_ns) {
            self.is_changed.store(true, Ordering::Relaxed);
        }
        self.refuse_if_changed()
    }
}

fn fingerprint(file: &CloneFile, size_bytes: u64) -> io::Result<[u8; 32]> {
    let mut sampled = Vec::new();
    let mut sample = |offset: u64, bytes: u64| {
        let from = sampled.len();
        sampled.resize(from + bytes as usize, 0);
        file.read_at(offset, &mut sampled[from..])
    };
    sample(0, END_BYTES.min(size_bytes))?;
    sample(size_bytes.saturating_sub(END_BYTES), END_BYTES.min(size_bytes))?;
    for piece in 1..PIECES {
        let at = size_bytes / PIECES * piece;
        sample(at, PIECE_BYTES.min(size_bytes - at))?;
    }
    Ok(digest::sha256_of(&sampled))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use super::super::open::compare;
    use super::*;

    #[test]
    fn an_image_that_was_changed_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("golden.img");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let golden = GoldenFile::open(&path).unwrap();
        golden.check().unwrap();
        assert!(compare(golden.id(), GoldenFile::open(&path).unwrap().id()).is_ok());

        let time = std::fs::metadata(&path).unwrap().modified().unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        let later =
            std::fs::FileTimes::new().set_modified(time + std::time::Duration::from_secs(1));
        file.set_times(later).unwrap();
        let why = golden.check().unwrap_err().to_string();
        assert!(why.contains("was changed while"), "{why}");
        assert!(golden.read_at(0, &mut [0]).is_err());
        let now = GoldenFile::open(&path).unwrap();
        let why = compare(golden.id(), now.id()).unwrap_err();
        assert!(why.contains("touch --date=@"), "{why}");

        // Contents that are other ones, with the old time.
        std::fs::write(&path, vec![8; 1 << 20]).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_times(std::fs::FileTimes::new().set_modified(time)).unwrap();
        let why = compare(golden.id(), GoldenFile::open(&path).unwrap().id()).unwrap_err();
        assert!(why.contains("other contents"), "{why}");
        std::fs::write(&path, vec![7; 1 << 19]).unwrap();
        let why = compare(golden.id(), GoldenFile::open(&path).unwrap().id()).unwrap_err();
        assert!(why.contains("524288 bytes"), "{why}");
    }
}
