//! The clones of all clients of one golden image, in one directory.
//!
//! A client finds its clone by the name that it asks for. All connections of one name have one
//! clone; it is closed when the last of them goes.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use rubus_host::files::clone_file::{CloneFile, Lock, make_directory, names_in, random_uuid};

use super::clone::CloneDisk;
use super::format::{Header, Kind, Layout, MAX_PATH_BYTES};
use super::golden::GoldenFile;
use super::open::{OpenError, Surroundings, fleeting, open, read_header, write_new};
use super::store::{Golden, SharedMemory};
use crate::identity::{Identity, Uuid};
use crate::server::disk::{Abilities, Disk, Extent, Zeroing};
use crate::server::place::Place;
use crate::server::pool::lock;

/// What a clone's file ends with.
pub const ENDING: &str = ".clone";
/// The name of a client is no longer.
pub const MAX_CLIENT_NAME_BYTES: usize = 64;

/// Whether clones outlive the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// A client finds what it wrote whenever it comes back.
    Kept,
    /// What was written is gone with the server, even if it is killed.
    ThrownAway,
}

/// The name of a client, which is that of its clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientName(String);

impl ClientName {
    /// The name that a client asks for: 1 to 64 letters, digits, dots, dashes and underscores of ASCII, of which the
    /// first is a letter or a digit.
    ///
    /// # Errors
    /// If the name breaks these rules.
    pub fn asked(name: &str) -> Result<Self, String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let first = name.bytes().next();
        if name.len() <= MAX_CLIENT_NAME_BYTES
            && name.bytes().all(is_plain)
            && first.is_some_and(|byte| byte.is_ascii_alphanumeric())
        {
            return Ok(ClientName(name.into()));
        }
        Err(format!(
            "a client's name has 1 to {MAX_CLIENT_NAME_BYTES} letters, digits, dots, dashes and underscores, and begins with a \
             letter or a digit; a board's serial number is a good one"
        ))
    }

    /// As it is asked for.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Where its clone is.
    pub fn path_in(&self, directory: &Path) -> PathBuf {
        directory.join(format!("{}{ENDING}", self.0))
    }
}

impl std::fmt::Display for ClientName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a client gets no clone.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Another server, or a command, has it.
    #[error(
        "the clone {0} is in use by another program; stop that server, or wait for that command"
    )]
    InUse(PathBuf),
    /// It cannot be opened.
    #[error("cannot open the clone {path}: {why}")]
    Open {
        /// Path of the clone.
        path: PathBuf,
        why: OpenError,
    },
    /// It cannot be made.
    #[error("cannot make the clone {path}: {why}")]
    Make {
        /// Path of the clone.
        path: PathBuf,
        why: io::Error,
    },
    /// The golden image is not what it was when the server started.
    #[error("{0}")]
    Golden(io::Error),
    /// The directory cannot be read.
    #[error("cannot read the directory of the clones: {0}")]
    Directory(io::Error),
    /// Clients make clones, and may not make any number.
    #[error(
        "there are {0} clones, and no more may be made; throw some away, or allow more with --max-clones"
    )]
    TooMany(usize),
}

impl FleetError {
    /// In words that tell a client nothing about the server's files.
    pub fn for_clients(&self) -> String {
        match self {
            FleetError::InUse(_) => {
                "this client's disk is in use by another program on the server".into()
            }
            FleetError::TooMany(_) => self.to_string(),
            FleetError::Open { why, .. } => format!("this client's disk cannot be opened: {why}"),
            FleetError::Make { why, .. } => {
                format!("a disk for this client cannot be made: {why}")
            }
            FleetError::Golden(_) | FleetError::Directory(_) => {
                "the server's golden image or its clones cannot be used; look at the server".into()
            }
        }
    }
}

#[derive(Debug, Default)]
struct Register {
    /// Nothing while it is being opened or closed.
    open: Mutex<HashMap<ClientName, Option<Weak<OpenClone>>>>,
    changed: Condvar,
    /// The first that could not be closed when its last client went.
    failed: Mutex<Option<io::Error>>,
}

/// The clones of one golden image.
#[derive(Debug)]
pub struct Fleet {
    directory: PathBuf,
    golden: Arc<GoldenFile>,
    lasting: Lasting,
    most: usize,
    register: Arc<Register>,
    /// Those that go with the server must not go before.
    fleeting: Mutex<Vec<Arc<OpenClone>>>,
}

impl Fleet {
    /// The clones in a directory, which is made if its parent is there; no more than `most` are.
    ///
    /// # Errors
    /// If the directory cannot be created or opened.
    pub fn new(
        directory: &Path,
        golden: GoldenFile,
        lasting: Lasting,
        most: usize,
    ) -> io::Result<Self> {
        make_directory(directory)?;
        Ok(Fleet {
            directory: directory.into(),
            golden: Arc::new(golden),
            lasting,
            most,
            register: Arc::default(),
            fleeting: Mutex::default(),
        })
    }

    /// The golden image.
    pub fn golden(&self) -> &GoldenFile {
        &self.golden
    }

    /// Closes all that are open; nothing may be written afterwards.
    ///
    /// # Errors
    /// The first that could not be closed.
    pub fn close(&self) -> io::Result<()> {
        // A clone takes itself off the register when it goes, which is locked first elsewhere.
        let fleeting = std::mem::take(&mut *lock(&self.fleeting));
        drop(fleeting);
        let open: Vec<_> = lock(&self.register.open)
            .values()
            .filter_map(|open| open.as_ref()?.upgrade())
            .collect();
        let mut closed = Ok(());
        for clone in open {
            closed = closed.and(clone.close().map_err(|error| clone.cannot_close(&error)));
        }
        match lock(&self.register.failed).take() {
            Some(error) => Err(error),
            None => closed,
        }
    }

    /// Closes what an earlier server left because it was killed: what outlived it in memory becomes durable, and the
    /// memory is free again. A clone that is open elsewhere is left alone. One that cannot be opened is left to the
    /// client that asks for it, which gets the error.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn settle(&self) -> io::Result<()> {
        if self.lasting == Lasting::ThrownAway {
            return Ok(());
        }
        for file in names_in(&self.directory)? {
            let name = file.to_str().and_then(|file| file.strip_suffix(ENDING));
            let Some(Ok(name)) = name.map(ClientName::asked) else {
                continue;
            };
            let header = CloneFile::read_only(&name.path_in(&self.directory))
                .ok()
                .and_then(|file| read_header(&file).ok());
            if header.is_some_and(|found| found.header.in_use) {
                drop(self.clone_of(&name));
            }
        }
        Ok(())
    }

    fn refuse_one_more(&self, there_are: usize) -> Result<(), FleetError> {
        if there_are >= self.most { Err(FleetError::TooMany(self.most)) } else { Ok(()) }
    }

    /// The clone of a client: already open, opened from its file, or new.
    ///
    /// # Errors
    /// If the clone is in use elsewhere, cannot be opened or made, or would exceed the limit.
    pub fn clone_of(&self, name: &ClientName) -> Result<Arc<OpenClone>, FleetError> {
        {
            let mut known = lock(&self.register.open);
            loop {
                match known.get(name) {
                    None => break,
                    Some(open) => {
                        if let Some(open) = open.as_ref().and_then(Weak::upgrade) {
                            return Ok(open);
                        }
                        // The last of its connections has just gone, or its first has just come.
                    }
                }
                known = self.register.changed.wait(known).unwrap_or_else(PoisonError::into_inner);
            }
            known.insert(name.clone(), None);
        }
        let opened = self.open_or_make(name);
        let mut known = lock(&self.register.open);
        let opened = match opened {
            Ok(disk) => {
                let open = Arc::new(OpenClone {
                    disk,
                    name: name.clone(),
                    register: self.register.clone(),
                });
                known.insert(name.clone(), Some(Arc::downgrade(&open)));
                if self.lasting == Lasting::ThrownAway {
                    lock(&self.fleeting).push(Arc::clone(&open));
                }
                Ok(open)
            }
            Err(error) => {
                known.remove(name);
                Err(error)
            }
        };
        drop(known);
        self.register.changed.notify_all();
        opened
    }

    fn open_or_make(&self, name: &ClientName) -> Result<CloneDisk<CloneFile>, FleetError> {
        self.golden.check().map_err(FleetError::Golden)?;
        let random = random;
        let mut around = Surroundings {
            golden: self.golden.clone(),
            golden_id: self.golden.id(),
            memory: Arc::new(SharedMemory),
            place: None,
            random: &random,
        };
        let path = name.path_in(&self.directory);
        if self.lasting == Lasting::ThrownAway {
            self.refuse_one_more(lock(&self.fleeting).len())?;
            let make = || {
                let file = CloneFile::without_name(&self.directory)?;
                let kind = lay_out(&file, &self.golden)?;
                fleeting(file, kind, &around)
            };
            return make().map_err(|why| FleetError::Make { path, why });
        }
        let file = match CloneFile::open(&path, Lock::Alone) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_clone = |name: &std::ffi::OsString| {
                    name.to_str().is_some_and(|name| name.ends_with(ENDING))
                };
                let names = names_in(&self.directory).map_err(FleetError::Directory)?;
                self.refuse_one_more(names.iter().filter(|name| is_clone(name)).count())?;
                make(&path, &self.golden, random, 1, random)
                    .map_err(|why| FleetError::Make { path: path.clone(), why })?
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(FleetError::InUse(path));
            }
            Err(error) => {
                let why = OpenError::Io(error);
                return Err(FleetError::Open { path, why });
            }
        };
        around.place = place_of(&file, &path);
        open(file, &around).map_err(|why| FleetError::Open { path, why })
    }
}

/// Where a clone's file is.
pub(super) fn place_of(file: &CloneFile, path: &Path) -> Option<Place> {
    let inode = file.inode().ok()?;
    // Its directory may be a link; it is none itself.
    let path = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
    Some(Place { path, inode })
}

/// A random number of 128 bits.
pub(super) fn random() -> io::Result<Uuid> {
    let text = random_uuid()?;
    Uuid::parse(&text).ok_or_else(|| io::Error::other("the kernel's random UUID is none"))
}

/// Makes a new file of an untouched clone, durably.
pub(super) fn make(
    path: &Path,
    golden: &GoldenFile,
    clone: impl Fn() -> io::Result<Uuid>,
    generation: u64,
    epoch: impl Fn() -> io::Result<Uuid>,
) -> io::Result<CloneFile> {
    let begun = CloneFile::begin(path)?;
    write_untouched(begun.file(), golden, clone()?, generation, epoch()?)?;
    begun.name()
}

/// Fills a new file.
pub(super) fn write_untouched(
    file: &CloneFile,
    golden: &GoldenFile,
    clone: Uuid,
    generation: u64,
    epoch: Uuid,
) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let golden_path = golden.path().as_os_str().as_bytes();
    if golden_path.len() > MAX_PATH_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the golden image's path is too long",
        ));
    }
    let kind = lay_out(file, golden)?;
    let header = Header {
        clone,
        generation,
        epoch,
        kind,
        in_use: false,
        golden: golden.id().clone(),
        golden_path: golden_path.to_vec(),
        note: None,
    };
    write_new(file, &header)?;
    // What was shared is what the header says that it is.
    golden.check()
}

/// Shares the golden image where that is possible, else makes room for a map.
fn lay_out(file: &CloneFile, golden: &GoldenFile) -> io::Result<Kind> {
    let shared = Layout::of(golden.id().size_bytes, Kind::Shared);
    if file.share(golden.file(), shared.data_at).is_ok() {
        file.set_length(shared.file_bytes)?;
        return Ok(Kind::Shared);
    }
    let layout = Layout::of(golden.id().size_bytes, Kind::Map);
    file.set_length(layout.file_bytes)?;
    // A flush must not fail for want of space for the map.
    let (map_at, map_bytes) = layout.map();
    file.reserve(0, map_at + map_bytes)?;
    Ok(Kind::Map)
}

/// A clone that is open for at least one connection.
#[derive(Debug)]
pub struct OpenClone {
    disk: CloneDisk<CloneFile>,
    name: ClientName,
    register: Arc<Register>,
}

impl OpenClone {
    /// Which disk it is.
    pub fn identity(&self) -> Identity {
        self.disk.identity()
    }

    /// Whose it is.
    pub fn name(&self) -> &ClientName {
        &self.name
    }

    /// How many bytes of the disk are its own.
    pub fn own_bytes(&self) -> u64 {
        self.disk.own_bytes()
    }

    /// Makes everything durable and says so in the file. The server calls it before it ends; nothing may be written
    /// afterwards.
    ///
    /// # Errors
    /// If the clone cannot be flushed, or its header cannot be written.
    pub fn close(&self) -> io::Result<()> {
        self.disk.close()
    }
}

impl OpenClone {
    fn cannot_close(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("the clone {}: {error}", self.name))
    }
}

impl Drop for OpenClone {
    fn drop(&mut self) {
        // If this fails, the file still says that it is in use, and the next open finds out what is missing.
        if let Err(error) = self.disk.close() {
            lock(&self.register.failed).get_or_insert(self.cannot_close(&error));
        }
        // The lock goes with the file, which must be closed before others may open it.
        self.disk.store.unlock();
        lock(&self.register.open).remove(&self.name);
        self.register.changed.notify_all();
    }
}

impl Disk for OpenClone {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn abilities(&self) -> Abilities {
        self.disk.abilities()
    }

    fn read_ready(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.read_ready(offset, into)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, into)
    }

    fn write(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.disk.write(offset, from)
    }

    fn flush(&self) -> io::Result<()> {
        self.disk.flush()
    }

    fn trim(&self, offset: u64, length: u64) -> io::Result<()> {
        self.disk.trim(offset, length)
    }

    fn zero(&self, offset: u64, length: u64, how: Zeroing) -> io::Result<()> {
        self.disk.zero(offset, length, how)
    }

    fn extents(&self, offset: u64, length: u64, only_one: bool) -> io::Result<Vec<Extent>> {
        self.disk.extents(offset, length, only_one)
    }

    fn prefetch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.disk.prefetch(offset, length)
    }

    fn admits(&self) -> io::Result<()> {
        self.disk.admits()
    }

    fn lost_writes(&self) -> Option<Uuid> {
        self.disk.lost_writes()
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use super::super::maintain::{CloneState, list};
    use super::super::open::memory_name;
    use super::super::store::{Memory, sweep};
    use super::*;

    #[test]
    fn what_a_killed_server_left_is_closed_and_its_memory_free() {
        let directory = tempfile::tempdir().unwrap();
        let golden = directory.path().join("golden.img");
        std::fs::write(&golden, vec![7; 1 << 20]).unwrap();
        let clones = directory.path().join("clones");
        let fleet = || {
            let golden = GoldenFile::open(&golden).unwrap();
            Fleet::new(&clones, golden, Lasting::Kept, 9).unwrap()
        };
        let (name, other) = (ClientName::asked("a").unwrap(), ClientName::asked("b").unwrap());
        let killed = fleet().clone_of(&name).unwrap();
        killed.write(4096, b"mine").unwrap();
        let identity = killed.identity();
        let memory = memory_name(identity.export, identity.boot);
        let words = killed.disk.layout.pages * super::super::format::PAGE_WORDS;
        let stands = || list(&clones).unwrap().remove(0).state;
        // While its server lives, the clone stays with it.
        let next = fleet();
        next.settle().unwrap();
        assert_eq!(stands(), CloneState::Open);
        // What the end of a process does.
        killed.disk.store.unlock();
        std::mem::forget(killed);
        assert_eq!(stands(), CloneState::Left);
        assert!(SharedMemory.find(&memory, words, None).is_some());
        drop(next.clone_of(&other).unwrap());

        next.settle().unwrap();
        assert_eq!(stands(), CloneState::Closed);
        assert!(SharedMemory.find(&memory, words, None).is_none());
        let again = next.clone_of(&name).unwrap();
        let mut seen = [0; 4];
        again.read(4096, &mut seen).unwrap();
        assert_eq!(&seen, b"mine");
        assert_eq!(again.identity(), identity, "nothing was lost");
    }

    fn inode_at(path: &Path) -> io::Result<(u64, u64)> {
        use std::os::unix::fs::MetadataExt;
        let found = std::fs::metadata(path)?;
        Ok((found.dev(), found.ino()))
    }

    /// The memory of clones in this directory alone: other tests have theirs.
    fn is_swept(fleet: &Fleet, memory: &str) -> bool {
        sweep(&|path| {
            if path.starts_with(&fleet.directory) || fleet.directory.starts_with(path) {
                inode_at(path)
            } else {
                Err(io::ErrorKind::PermissionDenied.into())
            }
        })
        .unwrap();
        !Path::new("/dev/shm").join(memory).exists()
    }

    /// Whatever becomes of the file and of its memory, what may be lost is told.
    #[test]
    fn the_memory_of_a_clone_goes_with_its_file_and_never_hides_a_loss() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        let golden = top.join("golden.img");
        std::fs::write(&golden, vec![7; 1 << 20]).unwrap();
        let clones = top.join("clones");
        let fleet = || {
            let golden = GoldenFile::open(&golden).unwrap();
            Fleet::new(&clones, golden, Lasting::Kept, 9).unwrap()
        };
        let name = ClientName::asked("a").unwrap();
        let path = name.path_in(&clones);
        let killed = || {
            let clone = fleet().clone_of(&name).unwrap();
            clone.write(4096, b"mine").unwrap();
            let identity = clone.identity();
            let memory = memory_name(identity.export, identity.boot);
            assert!(!is_swept(&fleet(), &memory), "it is open");
            // What the end of a process does; the memory is let go of too.
            clone.disk.store.unlock();
            let mut left = Arc::try_unwrap(clone).unwrap();
            left.disk.is_fleeting = true;
            drop(left);
            (identity, memory)
        };

        // Its file is there: nothing is swept, and nothing is lost.
        let (identity, memory) = killed();
        assert!(!is_swept(&fleet(), &memory));
        assert_eq!(fleet().clone_of(&name).unwrap().identity(), identity);

        // It is moved away, swept, and comes back: what was not flushed may be lost, and that is told.
        let (identity, memory) = killed();
        std::fs::rename(&path, top.join("moved")).unwrap();
        assert!(is_swept(&fleet(), &memory));
        std::fs::rename(top.join("moved"), &path).unwrap();
        let again = fleet().clone_of(&name).unwrap();
        assert_ne!(again.identity().boot, identity.boot);
        drop(again);

        // Another file is in its place: a copy of before, say.
        let (_, memory) = killed();
        std::fs::copy(&path, top.join("copy")).unwrap();
        std::fs::rename(top.join("copy"), &path).unwrap();
        assert!(is_swept(&fleet(), &memory));
        drop(fleet().clone_of(&name).unwrap());

        // The whole directory is gone.
        let (_, memory) = killed();
        std::fs::remove_dir_all(&clones).unwrap();
        let elsewhere = Fleet { directory: clones.clone(), ..fleet() };
        std::fs::remove_dir_all(&clones).unwrap();
        assert!(is_swept(&elsewhere, &memory));
    }

    #[test]
    fn a_clone_whose_flush_failed_is_not_said_to_be_durable_when_the_server_ends() {
        let directory = tempfile::tempdir().unwrap();
        let golden = directory.path().join("golden.img");
        std::fs::write(&golden, vec![7; 1 << 20]).unwrap();
        let golden = GoldenFile::open(&golden).unwrap();
        let clones = directory.path().join("clones");
        let fleet = Fleet::new(&clones, golden, Lasting::Kept, 9).unwrap();
        let well = fleet.clone_of(&ClientName::asked("well").unwrap()).unwrap();
        let gone = fleet.clone_of(&ClientName::asked("gone").unwrap()).unwrap();
        gone.disk.lose();
        drop(gone);
        let error = fleet.close().unwrap_err().to_string();
        assert!(error.contains("the clone gone: "), "{error}");
        drop(well);
        fleet.close().unwrap();
    }
}
