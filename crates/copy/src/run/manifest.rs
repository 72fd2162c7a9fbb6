//! The manifest: what was copied, kept beside the copy, so that the next pass or the next attempt copies only the rest.
//!
//! It is written in the order of the walk and read in the same order beside the next walk, so neither is ever in memory
//! as a whole. A file is a head and blocks; a block is `kind, length, XXH64 of the payload, payload`:
//!
//! - records: for each entry its path (what it shares with the one before, and the rest) and its fingerprint;
//! - "durable": everything before it in the file is on stable storage, and so is what it tells of;
//! - "complete": the walk came to its end.
//!
//! What comes after the last "durable" is not believed. Each attempt writes a file of its own, `pass-attempt`; older
//! ones count for what comes after the place that the newer ones reached.

use std::cmp::Ordering;
use std::ffi::OsStr;

use rubus_host::files::copy_io::{Directory, Failure, File, Kind, Meta, Reason};
use rubus_vocabulary::checksum::xxh64;

/// The directory in the root of the target.
pub(super) const DIRECTORY: &str = ".rubus-copy";

const MAGIC: &[u8; 8] = b"rubuscp1";
const HEAD_BYTES: usize = 8 + 4 + 8 + 8;
const BLOCK_HEAD_BYTES: usize = 1 + 4 + 8;
/// Longer blocks are damage.
const MAX_BLOCK_BYTES: usize = 64 << 20;

const RECORDS: u8 = 1;
const DURABLE: u8 = 2;
const COMPLETE: u8 = 3;

/// The fingerprint of what must be copied again in any case. No entry has it.
pub(super) const NEVER: u64 = 0;

/// What tells whether an entry was touched: a sum over what the kernel changes with it.
pub(super) fn fingerprint(meta: &Meta) -> u64 {
    let mut bytes = Vec::with_capacity(96);
    let kind = match meta.kind {
        Kind::File => 1,
        Kind::Directory => 2,
        Kind::Link => 3,
        Kind::Block => 4,
        Kind::Character => 5,
        Kind::Fifo => 6,
        Kind::Socket => 7,
        Kind::Unknown => 8,
    };
    for word in [
        kind,
        meta.mode,
        meta.owner,
        meta.group,
        meta.names,
        meta.modified.nanoseconds,
        meta.changed.nanoseconds,
        meta.stands_for.0,
        meta.stands_for.1,
    ] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    for word in
        [meta.inode, meta.size_bytes, meta.modified.seconds as u64, meta.changed.seconds as u64]
    {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    xxh64(&bytes, 0).max(1)
}

/// The order of the walk: by name within a directory, a directory before what is in it.
pub(super) fn order(a: &[u8], b: &[u8]) -> Ordering {
    let key = |&byte: &u8| if byte == b'/' { 0 } else { byte };
    a.iter().map(key).cmp(b.iter().map(key))
}

/// By what a source is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) pass: u32,
    /// Number of the source's root in its filesystem.
    pub(super) root_inode: u64,
    /// Sum over the source's path.
    pub(super) path_sum: u64,
}

impl Head {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.pass.to_le_bytes());
        bytes.extend_from_slice(&self.root_inode.to_le_bytes());
        bytes.extend_from_slice(&self.path_sum.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Head> {
        let rest = bytes.strip_prefix(MAGIC)?;
        Some(Head {
            pass: u32::from_le_bytes(rest.get(..4)?.try_into().ok()?),
            root_inode: u64::from_le_bytes(rest.get(4..12)?.try_into().ok()?),
            path_sum: u64::from_le_bytes(rest.get(12..20)?.try_into().ok()?),
        })
    }
}

/// A manifest that is being written.
#[derive(Debug)]
pub(super) struct Writer {
    file: File,
    end: u64,
    block: Vec<u8>,
    last_path: Vec<u8>,
}

impl Writer {
    pub(super) fn new(directory: &Directory, name: &OsStr, head: &Head) -> Result<Self, Failure> {
        let file = directory.make_file(name)?;
        let bytes = head.bytes();
        file.write_at(&bytes, 0)?;
        Ok(Writer { file, end: bytes.len() as u64, block: Vec::new(), last_path: Vec::new() })
    }

    /// Notes an entry that is done. Entries come in the order of the walk.
    pub(super) fn add(&mut self, path: &[u8], fingerprint: u64) {
        let shared = self.last_path.iter().zip(path).take_while(|(a, b)| a == b).count();
        push_number(&mut self.block, shared as u64);
        push_number(&mut self.block, (path.len() - shared) as u64);
        self.block.extend_from_slice(&path[shared..]);
        self.block.extend_from_slice(&fingerprint.to_le_bytes());
        self.last_path.truncate(shared);
        self.last_path.extend_from_slice(&path[shared..]);
    }

    /// Writes what was noted to the file, as one block.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        if self.block.is_empty() {
            return Ok(());
        }
        let block = std::mem::take(&mut self.block);
        self.last_path.clear();
        self.write(RECORDS, &block)
    }

    /// Says that everything flushed up to a place ([`Writer::place`]) is on stable storage.
    pub(super) fn mark_durable(&mut self, place: u64) -> Result<(), Failure> {
        self.write(DURABLE, &place.to_le_bytes())?;
        self.file.sync()
    }

    /// Says that the walk came to its end.
    pub(super) fn mark_complete(&mut self) -> Result<(), Failure> {
        self.write(COMPLETE, &[])?;
        self.file.sync()
    }

    /// The end of what was flushed.
    pub(super) fn place(&self) -> u64 {
        self.end
    }

    fn write(&mut self, kind: u8, payload: &[u8]) -> Result<(), Failure> {
        let mut bytes = Vec::with_capacity(BLOCK_HEAD_BYTES + payload.len());
        bytes.push(kind);
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&xxh64(payload, u64::from(kind)).to_le_bytes());
        bytes.extend_from_slice(payload);
        self.file.write_at(&bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }
}

/// A manifest of an earlier attempt.
#[derive(Debug)]
pub(super) struct Reader {
    file: File,
    at: u64,
    /// Up to here it is believed.
    believed: u64,
    block: Vec<u8>,
    used: usize,
    /// The record that is next.
    path: Vec<u8>,
    fingerprint: u64,
    has_record: bool,
    pub(super) head: Head,
    pub(super) is_complete: bool,
}

impl Reader {
    /// Opens a manifest; nothing when it is none.
    pub(super) fn open(directory: &Directory, name: &OsStr) -> Result<Option<Self>, Failure> {
        let file = match directory.read_file(name) {
            Ok(file) => file,
            Err(failure) if failure.reason() == Reason::Gone => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let mut head = [0; HEAD_BYTES];
        let read = file.read_at(&mut head, 0)?;
        let Some(head) = Head::read(&head[..read]) else {
            return Ok(None);
        };
        let mut reader = Reader {
            file,
            at: HEAD_BYTES as u64,
            believed: HEAD_BYTES as u64,
            block: Vec::new(),
            used: 0,
            path: Vec::new(),
            fingerprint: NEVER,
            has_record: false,
            head,
            is_complete: false,
        };
        reader.find_believed()?;
        reader.advance()?;
        Ok(Some(reader))
    }

    fn find_believed(&mut self) -> Result<(), Failure> {
        while let Some((kind, end)) = self.read_block()? {
            match kind {
                DURABLE => {
                    let place = self.block.get(..8).and_then(|b| b.try_into().ok());
                    let place = u64::from_le_bytes(place.unwrap_or_default());
                    self.believed = self.believed.max(place.min(self.at));
                }
                COMPLETE => {
                    self.believed = self.at;
                    self.is_complete = true;
                }
                _ => {}
            }
            self.at = end;
        }
        self.at = HEAD_BYTES as u64;
        self.block.clear();
        Ok(())
    }

    /// Reads the block at the present place; gives its kind and its end, and nothing where no whole block is.
    fn read_block(&mut self) -> Result<Option<(u8, u64)>, Failure> {
        let mut head = [0; BLOCK_HEAD_BYTES];
        if self.file.read_at(&mut head, self.at)? < BLOCK_HEAD_BYTES {
            return Ok(None);
        }
        let [kind, a, b, c, d, sum @ ..] = head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > MAX_BLOCK_BYTES {
            return Ok(None);
        }
        self.block.resize(length, 0);
        let start = self.at + BLOCK_HEAD_BYTES as u64;
        let read = self.file.read_at(&mut self.block, start)?;
        let is_whole =
            read == length && xxh64(&self.block, u64::from(kind)) == u64::from_le_bytes(sum);
        Ok(is_whole.then_some((kind, start + length as u64)))
    }

    /// The entry that is next, if there is one.
    pub(super) fn peek(&self) -> Option<(&[u8], u64)> {
        self.has_record.then_some((self.path.as_slice(), self.fingerprint))
    }

    /// Goes to the next entry.
    pub(super) fn advance(&mut self) -> Result<(), Failure> {
        self.has_record = false;
        while self.used >= self.block.len() {
            self.block.clear();
            self.used = 0;
            self.path.clear();
            if self.at >= self.believed {
                return Ok(());
            }
            let Some((kind, end)) = self.read_block()? else {
                return Ok(());
            };
            self.at = end;
            if kind != RECORDS {
                self.block.clear();
            }
        }
        self.has_record = self.take_record().is_some();
        Ok(())
    }

    fn take_record(&mut self) -> Option<()> {
        let shared = self.take_number()?;
        let more = self.take_number()?;
        let rest = self.block.get(self.used..self.used.checked_add(more)?)?;
        self.path.truncate(shared);
        self.path.extend_from_slice(rest);
        self.used += more;
        let sum = self.block.get(self.used..self.used + 8)?;
        self.fingerprint = u64::from_le_bytes(sum.try_into().ok()?);
        self.used += 8;
        Some(())
    }

    fn take_number(&mut self) -> Option<usize> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.block.get(self.used)?;
            self.used += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(number).ok();
            }
        }
        None
    }
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// What earlier attempts left, read beside the walk.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// The newest first.
    readers: Vec<Reader>,
    pub(super) names: Vec<std::ffi::OsString>,
}

impl Earlier {
    /// Opens all manifests in the directory. Damaged ones are worth nothing, and what they tell of is copied again.
    pub(super) fn open(directory: &Directory) -> Result<Self, Failure> {
        let listed = directory.list()?;
        let mut numbered: Vec<(u64, std::ffi::OsString)> = (0..listed.len())
            .filter_map(|i| listed.get(i))
            .filter_map(|(name, _)| Some((number_of(name)?, name.to_owned())))
            .collect();
        numbered.sort();
        let mut earlier = Earlier::default();
        for (_, name) in numbered.into_iter().rev() {
            earlier.readers.extend(Reader::open(directory, &name)?);
            earlier.names.push(name);
        }
        Ok(earlier)
    }

    /// The head of the newest, and whether that attempt came to its end.
    pub(super) fn newest(&self) -> Option<(Head, bool)> {
        let reader = self.readers.first()?;
        Some((reader.head, reader.is_complete))
    }

    /// A name that comes after all names.
    pub(super) fn next_name(&self) -> std::ffi::OsString {
        let last = self.names.iter().filter_map(|name| number_of(name)).max();
        format!("manifest-{}", last.unwrap_or(0) + 1).into()
    }

    /// The fingerprint that an entry had, if it was copied. Paths must come in the order of the walk.
    pub(super) fn find(&mut self, path: &[u8]) -> Result<Option<u64>, Failure> {
        let mut found = None;
        for reader in &mut self.readers {
            while let Some((next, fingerprint)) = reader.peek() {
                match order(next, path) {
                    Ordering::Less => reader.advance()?,
                    Ordering::Equal => {
                        // The newest decides.
                        found = found.or(Some(fingerprint));
                        reader.advance()?;
                    }
                    Ordering::Greater => break,
                }
            }
            // A newer attempt that got beyond this place has looked here, and what it does not know is not there.
            if found.is_some() || reader.peek().is_some() || reader.is_complete {
                break;
            }
        }
        Ok(found)
    }
}

fn number_of(name: &OsStr) -> Option<u64> {
    name.to_str()?.strip_prefix("manifest-")?.parse().ok()
}
