//! What lies below a clone: its file, the golden image, and memory that outlives the server.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rubus_host::files::clone_file::CloneFile;
use rubus_host::files::shm_words::{self, LiveWords};

use crate::server::place::Place;

/// A file that is read and written at offsets by several threads.
pub trait Store: Send + Sync {
    /// Length of the file, in bytes.
    ///
    /// # Errors
    /// If the file cannot be examined.
    fn length(&self) -> io::Result<u64>;

    /// Fills `into` from `offset`; bytes beyond the end read as zeros.
    ///
    /// # Errors
    /// If the device reports an I/O error.
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

    /// Writes zeros over `bytes` bytes from `offset`.
    ///
    /// # Errors
    /// As for [`Store::write_at`].
    fn write_zeros(&self, offset: u64, bytes: u64) -> io::Result<()>;

    /// The next extent of data at or after an offset: begin and end.
    ///
    /// # Errors
    /// If the file cannot be searched for data.
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
    /// Fills `into` from `offset`; bytes beyond the end read as zeros.
    ///
    /// # Errors
    /// If the device reports an I/O error, or the image has changed.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// The same for what is in memory.
    ///
    /// # Errors
    /// `WouldBlock` when a device would have to be waited for.
    fn read_ready_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// The next extent of data at or after an offset: begin and end.
    ///
    /// # Errors
    /// If the file cannot be searched for data.
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
    /// Lives until the next boot; only the first that many words belong to the clone.
    Live(LiveWords, usize),
}

impl Words {
    /// Makes `count` zero words on the heap.
    pub fn zeros(count: usize) -> Words {
        Words::Heap((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    /// The words, as a slice.
    pub fn get(&self) -> &[AtomicU64] {
        match self {
            Words::Heap(words) => words,
            Words::Live(words, count) => &words.words()[..*count],
        }
    }
}

/// Memory that outlives the server as the page cache does, under names.
pub trait Memory {
    /// Makes `count` words, all 0, replacing any of that name. They are useless once the clone's file has left its
    /// place.
    ///
    /// # Errors
    /// If the shared memory cannot be created.
    fn create(&self, name: &str, count: usize, place: Option<&Place>) -> io::Result<Words>;

    /// What an earlier program has made under that name; its file is at this place now.
    fn find(&self, name: &str, count: usize, place: Option<&Place>) -> Option<Words>;

    /// A later program finds nothing under that name.
    fn forget(&self, name: &str);
}

/// The beginning of all names of the memory of clones.
pub const PREFIX: &str = "rubus-clone-";

/// Begins what comes behind a clone's words: where its file is. Servers of before had nothing there.
const MARK: u64 = u64::from_le_bytes(*b"clone at");
/// The mark and the place: a page.
const WORDS_BEHIND: usize = 512;

/// The memory of this machine.
#[derive(Clone, Copy, Debug)]
pub struct SharedMemory;

impl Memory for SharedMemory {
    fn create(&self, name: &str, count: usize, place: Option<&Place>) -> io::Result<Words> {
        let words = LiveWords::create(name, count + WORDS_BEHIND)?;
        keep_place(words.words(), count, place);
        Ok(Words::Live(words, count))
    }

    fn find(&self, name: &str, count: usize, place: Option<&Place>) -> Option<Words> {
        if let Some(words) = LiveWords::find(name, count + WORDS_BEHIND).ok()? {
            keep_place(words.words(), count, place);
            return Some(Words::Live(words, count));
        }
        let words = LiveWords::find(name, count).ok()??;
        Some(Words::Live(words, count))
    }

    fn forget(&self, name: &str) {
        // What cannot be forgotten is another user's, and not found by us.
        let _ = shm_words::forget(name);
    }
}

fn keep_place(words: &[AtomicU64], count: usize, place: Option<&Place>) {
    let [mark, behind @ ..] = &words[count..] else {
        return;
    };
    Place::keep_in(place, behind);
    mark.store(MARK, Ordering::Release);
}

/// Frees the memory of clones whose files are gone and that no server has open. Returns the number of such clones.
/// `inode_at` gives the device and inode of a path.
///
/// A clone that was only moved counts from then on as one that may have lost writes: a server that opens the file of a
/// killed server without its memory reports another epoch.
///
/// # Errors
/// When the memory cannot be listed.
pub fn sweep(inode_at: &dyn Fn(&Path) -> io::Result<(u64, u64)>) -> io::Result<usize> {
    shm_words::sweep(PREFIX, &|words| {
        let place = kept_place(words);
        place.is_some_and(|place| place.is_gone(inode_at))
    })
}

fn kept_place(words: &[AtomicU64]) -> Option<Place> {
    let behind = words.get(words.len().checked_sub(WORDS_BEHIND)?..)?;
    let is_marked = behind[0].load(Ordering::Acquire) == MARK;
    is_marked.then(|| Place::kept_in(&behind[1..]))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(word: &str) -> String {
        format!("{PREFIX}{word}-{}", std::process::id())
    }

    fn place() -> Place {
        Place { path: "/mnt/stick/a.clone".into(), inode: (7, 12) }
    }

    #[test]
    fn the_place_behind_the_words_is_none_of_a_clones() {
        let name = name("place");
        let words = SharedMemory.create(&name, 504, Some(&place())).unwrap();
        assert_eq!(words.get().len(), 504);
        assert!(words.get().iter().all(|word| word.load(Ordering::Relaxed) == 0));
        words.get()[503].store(u64::MAX, Ordering::Relaxed);
        drop(words);
        let moved = Place { path: "/elsewhere".into(), ..place() };
        let words = SharedMemory.find(&name, 504, Some(&moved)).unwrap();
        assert_eq!(words.get()[503].load(Ordering::Relaxed), u64::MAX);
        let Words::Live(live, _) = &words else {
            panic!("{words:?}");
        };
        assert_eq!(kept_place(live.words()), Some(moved));
        SharedMemory.forget(&name);
    }

    #[test]
    fn memory_of_an_earlier_server_is_found_and_has_no_place() {
        let name = name("old");
        let old = LiveWords::create(&name, 504).unwrap();
        old.words().iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
        drop(old);
        let words = SharedMemory.find(&name, 504, Some(&place())).unwrap();
        assert_eq!(words.get().len(), 504);
        assert!(words.get().iter().all(|word| word.load(Ordering::Relaxed) == u64::MAX));
        let Words::Live(live, _) = &words else {
            panic!("{words:?}");
        };
        assert_eq!(kept_place(live.words()), None);
        SharedMemory.forget(&name);
    }
}
