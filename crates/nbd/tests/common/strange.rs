//! A disk in memory, of which some places fail, wait or are slow, as the test wants it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

use rubus_nbd::identity::Uuid;
use rubus_nbd::server::disk::{Abilities, Disk, Extent, Zeroing};

pub const SIZE: usize = 64 << 20;
pub const BLOCK: usize = 4096;
/// Requests that touch this block fail.
pub const BAD: usize = 7;
/// Nothing of this block and those behind it is in memory.
pub const COLD: usize = 1024;
/// A write to this block waits until cold reads do no more, and one to the next until it is let go.
pub const STUCK: usize = 20;
pub const SLOW: usize = 21;

#[derive(Default)]
pub struct Strange {
    pub bytes: Mutex<Vec<u8>>,
    /// Cold reads wait until this is true.
    pub thawed: (Mutex<bool>, Condvar),
    /// The threads that have read what is cold, by name.
    pub readers: Mutex<Vec<String>>,
    /// How many slow writes have begun, and how many may end.
    pub slow: (Mutex<(u32, u32)>, Condvar),
    /// What was written and not flushed.
    pub unflushed: AtomicU64,
    pub flushes: AtomicU64,
    pub durable: AtomicBool,
}

impl Strange {
    fn bad(offset: u64, length: usize) -> io::Result<()> {
        let (at, bad) = (offset as usize, BAD * BLOCK);
        if at < bad + BLOCK && bad < at + length {
            Err(io::Error::from_raw_os_error(5))
        } else {
            Ok(())
        }
    }

    fn copy(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        Strange::bad(offset, into.len())?;
        let at = offset as usize;
        into.copy_from_slice(&self.bytes.lock().unwrap()[at..at + into.len()]);
        Ok(())
    }

    /// Waits until `number` slow writes have begun.
    pub fn slow_writes_have_begun(&self, number: u32) {
        let slow = self.slow.0.lock().unwrap();
        drop(self.slow.1.wait_while(slow, |slow| slow.0 < number).unwrap());
    }

    pub fn let_a_slow_write_go(&self) {
        self.slow.0.lock().unwrap().1 += 1;
        self.slow.1.notify_all();
    }
}

impl Disk for Strange {
    fn size_bytes(&self) -> u64 {
        SIZE as u64
    }

    fn abilities(&self) -> Abilities {
        Abilities { can_trim: true, is_shared: true, ..Abilities::default() }
    }

    fn read_ready(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if offset as usize >= COLD * BLOCK {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.copy(offset, into)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let thawed = self.thawed.0.lock().unwrap();
        drop(self.thawed.1.wait_while(thawed, |thawed| !*thawed).unwrap());
        let reader = std::thread::current().name().map(str::to_string);
        self.readers.lock().unwrap().extend(reader);
        self.copy(offset, into)
    }

    fn write(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        Strange::bad(offset, from.len())?;
        let at = offset as usize;
        match at / BLOCK {
            STUCK => {
                let thawed = self.thawed.0.lock().unwrap();
                drop(self.thawed.1.wait_while(thawed, |thawed| !*thawed).unwrap());
            }
            SLOW => {
                let mut slow = self.slow.0.lock().unwrap();
                slow.0 += 1;
                let number = slow.0;
                self.slow.1.notify_all();
                let go = &self.slow.1;
                drop(go.wait_while(slow, |slow| slow.1 < number).unwrap());
            }
            _ => {}
        }
        self.bytes.lock().unwrap()[at..at + from.len()].copy_from_slice(from);
        self.unflushed.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.unflushed.store(0, Ordering::SeqCst);
        self.flushes.fetch_add(1, Ordering::SeqCst);
        self.durable.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn trim(&self, offset: u64, length: u64) -> io::Result<()> {
        Strange::bad(offset, length as usize)?;
        self.unflushed.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn zero(&self, offset: u64, length: u64, how: Zeroing) -> io::Result<()> {
        if how.only_if_fast {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.write(offset, &vec![0; length as usize])
    }

    fn extents(&self, _: u64, length: u64, _: bool) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent::data(length)])
    }

    fn prefetch(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn admits(&self) -> io::Result<()> {
        Ok(())
    }

    fn lost_writes(&self) -> Option<Uuid> {
        None
    }
}
