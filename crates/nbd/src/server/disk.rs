//! What an export serves: bytes with an address, whatever lies behind them.

use std::io;

use rubus_host::net::splice::Conduit;

use crate::identity::Uuid;
use crate::wire::ErrorCode;

/// What a disk can do, and what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Nothing changes it; whatever would is refused before it comes here.
    pub is_read_only: bool,
    /// [`Disk::trim`] gives space back, or may.
    pub can_trim: bool,
    /// [`Disk::zero`] is faster than writing zeros, or says at once that it would not be.
    pub can_zero_fast: bool,
    /// [`Disk::extents`] knows more than "data everywhere".
    pub knows_extents: bool,
    /// All connections see the same disk, so that a flush on one covers the writes of all
    /// (multi-conn). A disk made for a single connection does not have this.
    pub is_shared: bool,
    /// A medium that turns.
    pub is_rotational: bool,
}

/// How bytes are to become zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zeroing {
    /// They may give their space back.
    pub may_punch: bool,
    /// Only if it is faster than writing zeros, else `Unsupported`.
    pub only_if_fast: bool,
}

/// Neighbouring bytes of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// How many, never 0.
    pub length: u64,
    /// They take no space.
    pub is_hole: bool,
    /// They are read as zeros.
    pub is_zero: bool,
}

impl Extent {
    /// Bytes of which nothing is known.
    pub const fn data(length: u64) -> Extent {
        Extent { length, is_hole: false, is_zero: false }
    }

    /// Bytes that take no space and are zeros.
    pub const fn hole(length: u64) -> Extent {
        Extent { length, is_hole: true, is_zero: true }
    }
}

/// How far a look for the end of data goes where the extents have to be put together.
const DATA_END_BYTES: u64 = 1 << 20;

/// What an export serves. All methods may be called from several threads at once; offsets and
/// lengths lie within the disk, which the caller has checked.
///
/// Errors become the protocol's by [`code_of`].
pub trait Disk: Send + Sync {
    /// Its size, the same for as long as it is served.
    fn size_bytes(&self) -> u64;

    /// What it can do.
    fn abilities(&self) -> Abilities;

    /// Reads what is in memory, without waiting for a device.
    ///
    /// # Errors
    /// `WouldBlock` when a device would have to be waited for; `into` is undefined then.
    fn read_ready(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Has a conduit take what is in memory, so that it need not be copied. The bytes may still change
    /// with the disk on their way.
    ///
    /// # Errors
    /// `WouldBlock` when that cannot be, and the conduit is still empty; else the device's.
    fn fill_ready(&self, _: &mut Conduit, _offset: u64, _bytes: usize) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Reads, and waits for the device if need be.
    ///
    /// # Errors
    /// If the device reports an I/O error.
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes; durable with the next flush.
    ///
    /// # Errors
    /// The device's. What is there afterwards is undefined.
    fn write(&self, offset: u64, from: &[u8]) -> io::Result<()>;

    /// Whether [`Disk::write_from`] is there.
    fn takes_from_conduits(&self) -> bool {
        false
    }

    /// Writes the first `bytes` bytes of a conduit without copying them, otherwise like
    /// [`Disk::write`].
    ///
    /// # Errors
    /// As for [`Disk::write`]; the conduit's content is undefined afterwards, too.
    fn write_from(&self, _: &mut Conduit, _offset: u64, _bytes: usize) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Writes; durable when this returns.
    ///
    /// # Errors
    /// As for [`Disk::write`] and [`Disk::flush`].
    fn write_durably(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.write(offset, from)?;
        self.flush()
    }

    /// Everything that was written before, by anybody, is on stable storage when this returns.
    ///
    /// # Errors
    /// The device's; what was written since the flush before may be lost then, and all later flushes
    /// fail, too: an operating system reports the loss once and then forgets it.
    fn flush(&self) -> io::Result<()>;

    /// Whether new clients may come: what they write will be found again.
    ///
    /// # Errors
    /// The reason why the disk takes no new clients.
    fn admits(&self) -> io::Result<()>;

    /// A random number that is there once acknowledged writes may have been lost: clients are to be
    /// told that this is not the disk that they had.
    fn lost_writes(&self) -> Option<Uuid>;

    /// These bytes are needed no more; they may keep what they are.
    ///
    /// # Errors
    /// If the device reports an I/O error.
    fn trim(&self, offset: u64, length: u64) -> io::Result<()>;

    /// These bytes are zeros from now on.
    ///
    /// # Errors
    /// The device's; `Unsupported` when it was to be fast and would not be, and nothing was done.
    fn zero(&self, offset: u64, length: u64, how: Zeroing) -> io::Result<()>;

    /// What kinds of bytes there are, from `offset` on: at least one extent, all of them together at
    /// most `length` long. Only the first if `only_one`.
    ///
    /// # Errors
    /// If the extents cannot be read.
    fn extents(&self, offset: u64, length: u64, only_one: bool) -> io::Result<Vec<Extent>>;

    /// Where the data that begins at `offset` ends, as far as one look tells: `offset` itself where a hole begins. Many
    /// filesystems walk to that end whenever they are asked, so who reads in order should ask once for each end.
    ///
    /// # Errors
    /// If the extents cannot be read.
    fn data_end(&self, offset: u64) -> io::Result<u64> {
        let length = DATA_END_BYTES.min(self.size_bytes() - offset);
        Ok(match self.extents(offset, length, true)?.first() {
            Some(extent) if !extent.is_hole => offset + extent.length,
            _ => offset,
        })
    }

    /// These bytes will be read soon. It does not wait for them.
    ///
    /// # Errors
    /// If the device reports an I/O error.
    fn prefetch(&self, offset: u64, length: u64) -> io::Result<()>;
}

/// The protocol's number for what went wrong with a disk.
pub fn code_of(error: &io::Error) -> ErrorCode {
    use io::ErrorKind;
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => ErrorCode::PERMISSION,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            ErrorCode::NO_SPACE
        }
        ErrorKind::InvalidInput => ErrorCode::INVALID,
        ErrorKind::Unsupported => ErrorCode::UNSUPPORTED,
        _ => ErrorCode::IO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_system_says_becomes_what_the_protocol_knows() {
        // ENOSPC, EDQUOT, EFBIG; EPERM, EACCES, EROFS; EOPNOTSUPP; EIO, ENOMEM, ESTALE.
        for (number, code) in [
            (28, ErrorCode::NO_SPACE),
            (122, ErrorCode::NO_SPACE),
            (27, ErrorCode::NO_SPACE),
            (1, ErrorCode::PERMISSION),
            (13, ErrorCode::PERMISSION),
            (30, ErrorCode::PERMISSION),
            (95, ErrorCode::UNSUPPORTED),
            (5, ErrorCode::IO),
            (12, ErrorCode::IO),
            (116, ErrorCode::IO),
        ] {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(code_of(&error), code, "{error}");
        }
    }
}
