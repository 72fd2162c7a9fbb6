//! What lies below a clone: its file, the golden image, and memory that outlives the server.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rubus_host::clone_file::CloneFile;
use rubus_host::live_words::{self, LiveWords};

/// A file that is read and written at offsets by several threads.
pub trait Store: Send + Sync {
    /// How long the file is.
    ///
    /// # Errors
    /// The device's.
    fn length(&self) -> io::Result<u64>;

    /// Reads so many bytes; what lies beyond the end is zeros.
    ///
    /// # Errors
    /// The device's.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// The same for what is in memory.
    ///
    /// # Errors
    /// `WouldBlock` when a device would have to be waited for.
    fn read_ready_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes all parts one behind the other. Programs see them from then on; what a power cut leaves of them is
    /// undefined until [`Store::sync`].
    ///
    /// # Errors
    /// The device's; a part may have been written.
    fn write_at(&self, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()>;

    /// What was written before is durable when this returns.
    ///
    /// # Errors
    /// The device's; what was written may be lost then.
    fn sync(&self) -> io::Result<()>;

    /// Makes bytes zeros that take no space.
    ///
    /// # Errors
    /// `Unsupported` where that cannot be.
    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()>;

    /// Makes bytes zeros that have their place, without writing them.
    ///
    /// # Errors
    /// `Unsupported` where that cannot be.
    fn zero_in_place(&self, offset: u64, bytes: u64) -> io::Result<()>;

    /// Writes zeros.
    ///
    /// # Errors
    /// As for [`Store::write_at`].
    fn write_zeros(&self, offset: u64, bytes: u64) -> io::Result<()>;

    /// The next piece that is no hole, at or after an offset: begin and end.
    ///
    /// # Errors
    /// The device's.
    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>>;

    /// These bytes will be read soon.
    fn will_need(&self, offset: u64, bytes: u64);
}

impl Store for CloneFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.stamp()?.size_bytes)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        CloneFile::read_at(self, offset, into)
    }

    fn read_ready_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        CloneFile::read_ready_at(self, offset, into)
    }

    fn write_at(&self, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        CloneFile::write_at(self, offset, parts)
    }

    fn sync(&self) -> io::Result<()> {
        CloneFile::sync(self)
    }

    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        CloneFile::punch(self, offset, bytes)
    }

    fn zero_in_place(&self, offset: u64, bytes: u64) -> io::Result<()> {
        CloneFile::zero_in_place(self, offset, bytes)
    }

    fn write_zeros(&self, offset: u64, bytes: u64) -> io::Result<()> {
        CloneFile::write_zeros(self, offset, bytes)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        CloneFile::next_data(self, offset)
    }

    fn will_need(&self, offset: u64, bytes: u64) {
        CloneFile::will_need(self, offset, bytes);
    }
}

/// The image below all clones; nothing here can write it.
pub trait Golden: Send + Sync {
    /// Reads so many bytes; what lies beyond the end is zeros.
    ///
    /// # Errors
    /// The device's.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// The same for what is in memory.
    ///
    /// # Errors
    /// `WouldBlock` when a device would have to be waited for.
    fn read_ready_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// The next piece that is no hole, at or after an offset: begin and end.
    ///
    /// # Errors
    /// The device's.
    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>>;

    /// These bytes will be read soon.
    fn will_need(&self, offset: u64, bytes: u64);

    /// Whether it is still what it was when it was opened.
    ///
    /// # Errors
    /// That it is not, or the device's.
    fn check(&self) -> io::Result<()>;
}

/// Words of 64 bits.
#[derive(Debug)]
pub enum Words {
    /// Gone with the program.
    Heap(Arc<[AtomicU64]>),
    /// Gone with the boot.
    Live(LiveWords),
}

impl Words {
    /// So many zeros in this program's memory.
    pub fn zeros(count: usize) -> Words {
        Words::Heap((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    /// The words.
    pub fn get(&self) -> &[AtomicU64] {
        match self {
            Words::Heap(words) => words,
            Words::Live(words) => words.words(),
        }
    }
}

/// Memory that outlives the server as the page cache does, under names.
pub trait Memory {
    /// Makes so many words, all 0, in place of what has the name.
    ///
    /// # Errors
    /// When there is no such memory.
    fn create(&self, name: &str, count: usize) -> io::Result<Words>;

    /// What an earlier program has made under that name.
    fn find(&self, name: &str, count: usize) -> Option<Words>;

    /// A later program finds nothing under that name.
    fn forget(&self, name: &str);
}

/// The memory of this machine.
#[derive(Clone, Copy, Debug)]
pub struct SharedMemory;

impl Memory for SharedMemory {
    fn create(&self, name: &str, count: usize) -> io::Result<Words> {
        LiveWords::create(name, count).map(Words::Live)
    }

    fn find(&self, name: &str, count: usize) -> Option<Words> {
        LiveWords::find(name, count).ok()?.map(Words::Live)
    }

    fn forget(&self, name: &str) {
        // What cannot be forgotten is another user's, and not found by us.
        let _ = live_words::forget(name);
    }
}
