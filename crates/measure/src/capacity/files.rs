//! Where the blocks are kept: one device or file, or as many nameless files as it takes, since not
//! every filesystem takes large ones.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Advice, fadvise, fdatasync};
use rustix::io::{Errno, pread, pwrite};

use crate::target::Opened;

/// One row of bytes over one or several files.
pub(crate) struct Files {
    opened: Opened,
    pieces: Mutex<Vec<Piece>>,
}

#[derive(Clone, Debug)]
struct Piece {
    start: u64,
    file: Arc<OwnedFd>,
}

impl Files {
    /// The target's own file or device first.
    pub(crate) fn new(opened: Opened) -> Self {
        let first = Piece { start: 0, file: Arc::clone(&opened.file) };
        Files { opened, pieces: Mutex::new(vec![first]) }
    }

    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    fn pieces(&self) -> MutexGuard<'_, Vec<Piece>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The piece that holds `offset`, and where the next begins.
    fn piece(&self, offset: u64) -> (Piece, u64) {
        let pieces = self.pieces();
        let after = pieces.partition_point(|piece| piece.start <= offset);
        let end = pieces.get(after).map_or(u64::MAX, |piece| piece.start);
        (pieces[after - 1].clone(), end)
    }

    /// Writes all of `bytes`; begins a new file of our own where one has become as large as the
    /// filesystem allows.
    ///
    /// # Errors
    /// If the filesystem is full, or the device reports an I/O error.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let (piece, _) = self.piece(at);
            match pwrite(&piece.file, &bytes[done..], at - piece.start) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(Errno::FBIG) if at > piece.start && self.opened.is_own_file() => {
                    let file = Arc::new(self.opened.another_file()?);
                    self.pieces().push(Piece { start: at, file });
                }
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Fills `bytes` from `offset`.
    ///
    /// # Errors
    /// The system's; `IO` where a file ends too early.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let (piece, end) = self.piece(at);
            let most = usize::try_from(end - at).unwrap_or(usize::MAX);
            let upto = bytes.len().min(done.saturating_add(most));
            match pread(&piece.file, &mut bytes[done..upto], at - piece.start) {
                Ok(0) => return Err(Errno::IO),
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// If a file cannot be flushed.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        let pieces = self.pieces().clone();
        pieces.iter().try_for_each(|piece| fdatasync(&piece.file))
    }

    /// Makes the kernel forget what it holds in memory; gives the share that it still holds of the
    /// first file, where that can be told.
    pub(crate) fn forget(&self) -> Option<f64> {
        let pieces = self.pieces().clone();
        for piece in &pieces {
            let _ = fadvise(&piece.file, 0, None, Advice::DontNeed);
        }
        let first = &pieces[0];
        let length = pieces.get(1).map_or(u64::MAX, |piece| piece.start);
        crate::page_cache::resident_share(
            first.file.as_fd(),
            length.min(self.opened.size_bytes.max(64 << 20)),
        )
    }
}
