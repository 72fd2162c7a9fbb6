//! The log of what a board wrote to a disk: QEMU's filter `blklogwrites`, in the format of the kernel's `dm-log-writes`.
//!
//! After a super block, each entry is one header sector, and behind it the data of a write. Entries stand in the order in
//! which the disk completed them. The super block is written now and then only, so its count of entries is not used: the
//! log ends before the first empty header.

use std::io;

use anyhow::{Context, Result, ensure};

/// What the lab makes the disks count in: the smallest unit that a disk writes whole.
pub const SECTOR_BYTES: u64 = 512;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const HEADER_BYTES: usize = 32;

const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;

/// One thing that the disk completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it was.
    pub kind: Kind,
    /// Where on the disk it begins, in sectors.
    pub sector: u64,
    /// How many sectors.
    pub sectors: u64,
    /// Where its data is in the log, in bytes.
    pub data_at: u64,
}

/// What a disk can complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everything before is durable.
    Flush,
    /// Data is written.
    Write {
        /// Whether it was durable when it completed (force unit access).
        is_durable: bool,
    },
    /// Sectors that the system needs no more.
    Discard,
}

impl Entry {
    /// Where the next entry begins.
    fn end(&self) -> u64 {
        match self.kind {
            Kind::Write { .. } => self.data_at + self.sectors * SECTOR_BYTES,
            Kind::Flush | Kind::Discard => self.data_at,
        }
    }
}

/// A log that is read as it grows.
#[derive(Debug, Default)]
pub struct WriteLog {
    entries: Vec<Entry>,
    /// Where the next header is; 0 before the super block was seen.
    end: u64,
}

impl WriteLog {
    /// All entries so far.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Reads the entries that were added; gives the number of all. `read_at` fills a buffer from an offset on and gives how much
    /// there was.
    ///
    /// # Errors
    /// When the log cannot be read or is none.
    pub fn read_on(
        &mut self,
        read_at: &dyn Fn(&mut [u8], u64) -> io::Result<usize>,
    ) -> Result<usize> {
        if self.end == 0 {
            self.end = SECTOR_BYTES;
        }
        let mut header = [0; HEADER_BYTES];
        loop {
            let there = read_at(&mut header, self.end).context("cannot read the log of writes")?;
            if there < HEADER_BYTES {
                return Ok(self.entries.len());
            }
            let at = self.end;
            let entry = entry(&header, at)
                .with_context(|| format!("the log of writes is damaged at byte {at}"))?;
            let Some(entry) = entry else {
                return Ok(self.entries.len());
            };
            self.end = entry.end();
            self.entries.push(entry);
        }
    }
}

/// Whether the first sector of a log is a super block of such a log.
///
/// # Errors
/// When it is not.
pub fn check_super(sector: &[u8]) -> Result<()> {
    ensure!(sector.len() >= 28, "the log of writes has no super block");
    ensure!(number(sector, 0) == MAGIC, "not a log of writes");
    let version = number(sector, 8);
    ensure!(version == VERSION, "log of writes of version {version}");
    let bytes = u64::from(u32::from_le_bytes([sector[24], sector[25], sector[26], sector[27]]));
    ensure!(bytes == SECTOR_BYTES, "log of writes in units of {bytes} bytes");
    Ok(())
}

/// The entry of a header; none for an empty header.
fn entry(header: &[u8; HEADER_BYTES], at: u64) -> Result<Option<Entry>> {
    let [sector, sectors, flags] = [number(header, 0), number(header, 8), number(header, 16)];
    if sectors == 0 && flags == 0 {
        return Ok(None);
    }
    ensure!(flags & !(FLUSH | FUA | DISCARD) == 0, "flags {flags:#x}");
    let kind = match (flags & DISCARD != 0, sectors) {
        (true, _) => Kind::Discard,
        (false, 0) => Kind::Flush,
        // A flush before the data is an entry of its own.
        (false, _) => Kind::Write { is_durable: flags & FUA != 0 },
    };
    ensure!(flags & FLUSH == 0 || kind == Kind::Flush, "a flush with {sectors} sectors");
    let room = u64::MAX / SECTOR_BYTES;
    let ends = sector.checked_add(sectors).is_some_and(|end| end < room);
    ensure!(ends, "{sectors} sectors at {sector}");
    Ok(Some(Entry { kind, sector, sectors, data_at: at + SECTOR_BYTES }))
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// A log of these writes: the sector of each and its data, or a flush.
#[cfg(test)]
pub(super) fn of_writes(writes: &[Option<(u64, Vec<u8>)>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let add = |bytes: &mut Vec<u8>, numbers: &[u64], data: &[u8]| {
        let start = bytes.len();
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes.resize(start + SECTOR_BYTES as usize, 0);
        bytes.extend(data);
    };
    add(&mut bytes, &[MAGIC, VERSION, 0, SECTOR_BYTES], &[]);
    for write in writes {
        match write {
            Some((sector, data)) => {
                let sectors = data.len() as u64 / SECTOR_BYTES;
                add(&mut bytes, &[*sector, sectors, 0], data);
            }
            None => add(&mut bytes, &[0, 0, FLUSH], &[]),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: u64 = 8;

    /// A log with these headers: sector, sectors, flags.
    fn log(headers: &[[u64; 3]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend(VERSION.to_le_bytes());
        // As long as nothing was flushed, the super block counts no entry.
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend(512_u32.to_le_bytes());
        bytes.resize(512, 0);
        for header in headers {
            let start = bytes.len();
            for number in header {
                bytes.extend(number.to_le_bytes());
            }
            bytes.resize(start + 512, 0);
            if header[2] & DISCARD == 0 {
                let data = usize::try_from(header[1] * SECTOR_BYTES).unwrap();
                bytes.resize(bytes.len() + data, 0xEE);
            }
        }
        bytes
    }

    fn read_on(log: &mut WriteLog, bytes: &[u8]) -> Result<usize> {
        log.read_on(&|buffer, at| {
            let from = usize::try_from(at).unwrap().min(bytes.len());
            let there = buffer.len().min(bytes.len() - from);
            buffer[..there].copy_from_slice(&bytes[from..from + there]);
            Ok(there)
        })
    }

    const HEADERS: &[[u64; 3]] =
        &[[0, 8, 0], [10, 0, FLUSH], [2048, 2, FUA], [6144, 128, DISCARD], [8, 1, 0]];

    #[test]
    fn entries_are_read_though_the_super_block_counts_none() {
        let bytes = log(HEADERS);
        check_super(&bytes).unwrap();
        let mut log = WriteLog::default();
        assert_eq!(read_on(&mut log, &bytes).unwrap(), 5);
        let write = |is_durable| Kind::Write { is_durable };
        let kinds: Vec<Kind> = log.entries().iter().map(|entry| entry.kind).collect();
        let wanted = [write(false), Kind::Flush, write(true), Kind::Discard, write(false)];
        assert_eq!(kinds, wanted);
        let last = log.entries()[4];
        assert_eq!((last.sector, last.sectors), (8, 1));
        // Five headers, ten sectors of data, the super block.
        assert_eq!(last.data_at, 512 * (1 + 5 + 8 + 2));
    }

    #[test]
    fn a_log_is_read_on_from_wherever_it_ended_before() {
        let bytes = log(HEADERS);
        for cut in 0..=bytes.len() {
            let mut log = WriteLog::default();
            let before = read_on(&mut log, &bytes[..cut]).unwrap();
            assert!(before <= 5, "{cut}");
            // A file that has room behind what was written.
            let mut padded = bytes.clone();
            padded.resize(bytes.len() + 4096, 0);
            assert_eq!(read_on(&mut log, &padded).unwrap(), 5, "{cut}");
        }
    }

    #[test]
    fn what_is_no_log_is_refused() {
        assert!(check_super(&[0; 512]).is_err());
        assert!(check_super(&[]).is_err());
        let mut other = log(&[]);
        other[25] = 16;
        assert!(check_super(&other).is_err(), "4096 bytes");
        for header in [[0, 8, MARK], [0, 8, FLUSH], [u64::MAX, 8, 0], [0, u64::MAX / 2, 0]] {
            let mut bytes = log(&[]);
            for number in header {
                bytes.extend(number.to_le_bytes());
            }
            bytes.resize(1024, 0);
            let refused = read_on(&mut WriteLog::default(), &bytes);
            assert!(refused.is_err(), "{header:?}: {refused:?}");
        }
    }
}
