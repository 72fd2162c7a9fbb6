//! A disk that is a file or a block device.

use std::io;
use std::sync::{Arc, OnceLock};

use rubus_host::block::image::Image;
use rubus_host::clock::monotonic_ns;
use rubus_host::files::clone_file::random_uuid;
use rubus_host::net::splice::Conduit;

use super::disk::{Abilities, Disk, Extent, Zeroing, code_of};
use super::ledger::Ledger;
use crate::identity::Uuid;
use crate::wire::ErrorCode;

/// Maximum length of one call that zeroes or discards: a disk that does 1 GiB/s still lets the
/// program react to a request to stop.
const STRETCH_BYTES: u64 = 1 << 30;
/// Maximum number of extents in one answer. A client that wants more asks again from there.
const MAX_EXTENTS: usize = 1024;

/// An image as it is.
#[derive(Debug)]
pub struct FileDisk {
    image: Arc<Image>,
    loss: OnceLock<Loss>,
    /// Where our own writes are told from those of others.
    ledger: Option<Ledger>,
}

/// Acknowledged writes may have been lost. The system reports that once, so it is kept here.
#[derive(Debug)]
struct Loss {
    epoch: Uuid,
    why: String,
}

impl FileDisk {
    /// Serves this image.
    pub fn new(image: Arc<Image>) -> FileDisk {
        FileDisk { image, loss: OnceLock::new(), ledger: None }
    }

    /// Notes its writes there.
    #[must_use]
    pub fn noting_in(mut self, ledger: Option<Ledger>) -> FileDisk {
        self.ledger = ledger;
        self
    }

    /// Where its writes are noted.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// Fails when the file is not what it was. That is as final as a failed flush: what clients wrote is gone.
    #[inline]
    fn check_file(&self) -> io::Result<()> {
        self.image.is_whole().inspect_err(|error| self.lose(error))
    }

    /// Does a write and notes it.
    #[inline]
    fn noted<T>(&self, write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.check_file()?;
        let Some(ledger) = &self.ledger else {
            return write();
        };
        ledger.begins();
        let written = write();
        ledger.ended();
        written
    }

    /// What is served.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// Fails once something acknowledged may have been lost.
    fn check(&self) -> io::Result<()> {
        match self.loss.get() {
            None => Ok(()),
            Some(Loss { why, .. }) => Err(io::Error::other(format!(
                "writes may be lost ({why}): check the disk below, then restart the server"
            ))),
        }
    }

    /// From here on no flush succeeds, unless nothing was ever written.
    pub(super) fn lose(&self, error: &io::Error) {
        if !self.image.is_writable() {
            return;
        }
        let loss = self.loss.get_or_init(|| Loss { epoch: new_epoch(), why: error.to_string() });
        if let Some(ledger) = &self.ledger {
            ledger.lost(loss.epoch);
        }
    }

    /// Does what makes writes durable.
    fn sync(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if !self.image.is_writable() {
            return Ok(());
        }
        self.check()?;
        self.check_file()?;
        sync().inspect_err(|error| self.lose(error))?;
        // Another one may have failed meanwhile, and this one covers its writes, too.
        self.check()
    }

    /// Does what changes the disk without writing bytes to it. That there is no room, or no such
    /// ability, loses nothing.
    fn change(&self, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.noted(change).inspect_err(|error| {
            if code_of(error) == ErrorCode::IO {
                self.lose(error);
            }
        })
    }
}

/// A number that no earlier start has had.
pub(super) fn new_epoch() -> Uuid {
    let random = random_uuid().ok();
    let random = random.and_then(|text| Uuid::parse(&text));
    random.unwrap_or(Uuid(u128::from(monotonic_ns())))
}

impl Disk for FileDisk {
    fn size_bytes(&self) -> u64 {
        self.image.size_bytes()
    }

    fn abilities(&self) -> Abilities {
        let can_write = self.image.is_writable();
        Abilities {
            is_read_only: !can_write,
            can_trim: can_write,
            can_zero_fast: can_write,
            knows_extents: !self.image.is_device(),
            is_shared: true,
            is_rotational: false,
        }
    }

    #[inline]
    fn read_ready(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.image.read_ready(offset, into)
    }

    fn fill_ready(&self, conduit: &mut Conduit, offset: u64, bytes: usize) -> io::Result<()> {
        self.image.fill_ready(conduit, offset, bytes)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.image.read(offset, into)
    }

    #[inline]
    fn write(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.noted(|| self.image.write(offset, from))
    }

    #[inline]
    fn takes_from_conduits(&self) -> bool {
        self.image.takes_from_conduits()
    }

    fn write_from(&self, conduit: &mut Conduit, offset: u64, bytes: usize) -> io::Result<()> {
        self.noted(|| self.image.write_from(conduit, offset, bytes))
    }

    fn write_durably(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.check()?;
        let written = self.noted(|| self.image.write_durably(offset, from));
        if written.as_ref().is_err_and(is_full) {
            // Was there no room for these bytes, or for bytes that were acknowledged before?
            self.noted(|| self.image.write(offset, from))?;
        }
        self.sync(|| written)
    }

    fn flush(&self) -> io::Result<()> {
        self.sync(|| self.image.sync())
    }

    fn admits(&self) -> io::Result<()> {
        self.check_file()
    }

    fn lost_writes(&self) -> Option<Uuid> {
        self.loss.get().map(|loss| loss.epoch)
    }

    fn trim(&self, offset: u64, length: u64) -> io::Result<()> {
        self.change(|| in_stretches(offset, length, |at, bytes| self.image.discard(at, bytes)))
    }

    fn zero(&self, offset: u64, length: u64, how: Zeroing) -> io::Result<()> {
        self.change(|| {
            in_stretches(offset, length, |at, bytes| {
                self.image.zero(at, bytes, how.may_punch, how.only_if_fast)
            })
        })
    }

    fn extents(&self, offset: u64, length: u64, only_one: bool) -> io::Result<Vec<Extent>> {
        let end = offset + length;
        let most = if only_one { 1 } else { MAX_EXTENTS };
        let mut extents = Vec::new();
        let mut at = offset;
        while at < end && extents.len() < most {
            let (start, stop) = self.image.next_data(at, end)?.unwrap_or((end, end));
            if start > at {
                extents.push(Extent::hole(start - at));
            }
            if stop > start && extents.len() < most {
                extents.push(Extent::data(stop - start));
            }
            at = stop;
        }
        Ok(extents)
    }

    fn data_end(&self, offset: u64) -> io::Result<u64> {
        let data = self.image.next_data(offset, self.image.size_bytes())?;
        Ok(data.filter(|(start, _)| *start == offset).map_or(offset, |(_, end)| end))
    }

    fn prefetch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.image.prefetch(offset, length)
    }
}

fn is_full(error: &io::Error) -> bool {
    code_of(error) == ErrorCode::NO_SPACE
}

fn in_stretches(
    offset: u64,
    length: u64,
    mut work: impl FnMut(u64, u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut done = 0;
    while done < length {
        let now = (length - done).min(STRETCH_BYTES);
        work(offset + done, now)?;
        done += now;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Files of its own.
mod tests {
    use super::*;

    const BLOCK: u64 = 64 << 10;

    #[test]
    fn extents_cover_what_was_asked_for_and_no_more() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        let mut bytes = vec![0; 8 * BLOCK as usize];
        bytes[..BLOCK as usize].fill(1);
        std::fs::write(&path, &bytes).unwrap();
        let disk = FileDisk::new(Arc::new(Image::open(&path, true).unwrap()));
        // Data, hole, data, hole.
        disk.trim(BLOCK, 2 * BLOCK).unwrap();
        disk.trim(5 * BLOCK, 3 * BLOCK).unwrap();
        let told = |offset, length, only_one| {
            let extents = disk.extents(offset, length, only_one).unwrap();
            let blocks = |extent: Extent| (extent.length as f64 / BLOCK as f64, extent.is_hole);
            extents.into_iter().map(blocks).collect::<Vec<_>>()
        };
        let all = [(1.0, false), (2.0, true), (2.0, false), (3.0, true)];
        assert_eq!(told(0, 8 * BLOCK, false), all);
        assert_eq!(told(0, 8 * BLOCK, true), all[..1]);
        assert_eq!(told(BLOCK, 7 * BLOCK, true), all[1..2]);
        let part = [(0.5, true), (0.5, false)];
        assert_eq!(told(BLOCK * 5 / 2, BLOCK, false), part);
        assert_eq!(told(6 * BLOCK, BLOCK, false), [(1.0, true)]);
        let ends = [0, 1, 5, 8, 20, 31, 32]
            .map(|quarter| disk.data_end(quarter * BLOCK / 4).unwrap() * 4 / BLOCK);
        assert_eq!(ends, [4, 4, 5, 8, 20, 31, 32], "data from 0 to 1 and from 3 to 5");
    }

    fn writable(directory: &std::path::Path) -> FileDisk {
        let path = directory.join("image");
        std::fs::write(&path, vec![1; 8192]).unwrap();
        FileDisk::new(Arc::new(Image::open(&path, true).unwrap()))
    }

    #[test]
    fn one_failed_flush_fails_all_later_ones() {
        let directory = tempfile::tempdir().unwrap();
        let disk = writable(directory.path());
        disk.flush().unwrap();
        assert_eq!(disk.lost_writes(), None);
        // The system reports an error of the device once, and success afterwards.
        disk.sync(|| Err(io::Error::from_raw_os_error(5))).unwrap_err();
        let epoch = disk.lost_writes().expect("something may be lost");
        for failed in [disk.flush(), disk.write_durably(0, &[2]), disk.flush()] {
            let error = failed.unwrap_err();
            assert_eq!(code_of(&error), ErrorCode::IO);
            assert!(error.to_string().contains("may be lost"), "{error}");
        }
        assert_eq!(disk.lost_writes(), Some(epoch));
        let mut byte = [0];
        disk.read(0, &mut byte).unwrap();
        assert_eq!(byte, [1], "what must be durable is not written any more");
    }

    #[test]
    fn a_flush_during_which_another_one_fails_has_failed() {
        let directory = tempfile::tempdir().unwrap();
        let disk = writable(directory.path());
        let flushed = disk.sync(|| {
            disk.lose(&io::Error::from_raw_os_error(5));
            Ok(())
        });
        assert!(flushed.is_err());
    }

    #[test]
    fn a_file_that_was_cut_off_is_not_grown_again_by_a_write() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        let disk = writable(directory.path());
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(4096).unwrap();
        assert!(disk.read(4096, &mut [0; 10]).is_err());
        let how = Zeroing { may_punch: false, only_if_fast: false };
        for done in [
            disk.write(8000, &[2]),
            disk.write_durably(8000, &[2]),
            disk.zero(4096, 4096, how),
            disk.flush(),
            disk.admits(),
        ] {
            assert_eq!(code_of(&done.unwrap_err()), ErrorCode::IO);
        }
        assert!(disk.read(4096, &mut [0; 10]).is_err(), "no zeros");
        assert_eq!(file.metadata().unwrap().len(), 4096);
        assert!(disk.lost_writes().is_some());
        // What is left can be read.
        disk.read(0, &mut [0; 4096]).unwrap();
    }

    #[test]
    fn nothing_is_acknowledged_by_an_image_that_was_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let disk = writable(directory.path());
        disk.write_durably(0, &[2]).unwrap();
        disk.admits().unwrap();
        std::fs::remove_file(directory.path().join("image")).unwrap();
        let error = disk.write_durably(0, &[3]).unwrap_err().to_string();
        assert!(error.contains("deleted"), "{error}");
        assert!(disk.write(0, &[3]).is_err());
        assert!(disk.flush().is_err());
        assert!(disk.admits().is_err());
    }

    #[test]
    fn a_failed_trim_loses_and_a_full_or_unable_disk_does_not() {
        let directory = tempfile::tempdir().unwrap();
        // ENOSPC, EOPNOTSUPP, EINVAL.
        for harmless in [28, 95, 22] {
            let disk = writable(directory.path());
            disk.change(|| Err(io::Error::from_raw_os_error(harmless))).unwrap_err();
            disk.flush().unwrap();
        }
        let disk = writable(directory.path());
        disk.change(|| Err(io::Error::from_raw_os_error(5))).unwrap_err();
        assert!(disk.flush().is_err());
    }

    #[test]
    fn a_disk_that_is_only_read_says_so_and_has_nothing_to_flush() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        std::fs::write(&path, [1; 4096]).unwrap();
        let disk = FileDisk::new(Arc::new(Image::open(&path, false).unwrap()));
        assert!(disk.abilities().is_read_only);
        disk.flush().unwrap();
        assert!(disk.write(0, &[1]).is_err());
        // Also when it was replaced: nothing was written that could be lost.
        std::fs::remove_file(&path).unwrap();
        assert!(disk.admits().is_err());
        disk.flush().unwrap();
        assert_eq!(disk.lost_writes(), None);
    }
}
