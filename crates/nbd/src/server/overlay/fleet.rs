//! The clones of all clients of one golden image, in one directory.
//!
//! A client finds its clone by the name that it asks for, or by its address. All connections of one name have one
//! clone; it is closed when the last of them goes.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use rubus_host::clone_file::{CloneFile, Lock, make_directory, random_uuid};

use super::clone::CloneDisk;
use super::format::{Header, Kind, Layout, MOST_PATH_BYTES};
use super::golden::GoldenFile;
use super::open::{OpenError, Surroundings, fleeting, open, write_new};
use super::store::{Golden, SharedMemory};
use crate::identity::{Identity, Uuid};
use crate::server::disk::{Abilities, Disk, Extent, Zeroing};

/// What a clone's file ends with.
pub const ENDING: &str = ".clone";
/// What the name of a clone begins with that belongs to an address.
const BY_ADDRESS: &str = "at-";
const MOST_NAME_BYTES: usize = 64;

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
    /// first is a letter or a digit. Names that begin with `at-` belong to addresses.
    ///
    /// # Errors
    /// In words.
    pub fn asked(name: &str) -> Result<Self, String> {
        let name = ClientName::of_file(name)?;
        match name.0.starts_with(BY_ADDRESS) {
            true => Err(format!(
                "a client cannot call itself '{name}': names that begin with '{BY_ADDRESS}' belong to addresses"
            )),
            false => Ok(name),
        }
    }

    /// The name of a clone that is there.
    ///
    /// # Errors
    /// In words.
    pub fn of_file(name: &str) -> Result<Self, String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let first = name.bytes().next();
        if name.len() <= MOST_NAME_BYTES
            && name.bytes().all(is_plain)
            && first.is_some_and(|byte| byte.is_ascii_alphanumeric())
        {
            return Ok(ClientName(name.into()));
        }
        Err(format!(
            "a client's name has 1 to {MOST_NAME_BYTES} letters, digits, dots, dashes and underscores, and begins with a \
             letter or a digit; a board's serial number is a good one"
        ))
    }

    /// The name of whoever comes from an address.
    pub fn at(address: IpAddr) -> Self {
        // A colon is awkward in a file's name and no address has a dash.
        let text = address.to_canonical().to_string().replace(':', "-");
        ClientName(format!("{BY_ADDRESS}{text}"))
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
        /// Its file.
        path: PathBuf,
        /// Why.
        why: OpenError,
    },
    /// It cannot be made.
    #[error("cannot make the clone {path}: {why}")]
    Make {
        /// Its file.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// The golden image is not what it was when the server started.
    #[error("{0}")]
    Golden(io::Error),
}

#[derive(Debug, Default)]
struct Register {
    /// Nothing while it is being opened or closed.
    open: Mutex<HashMap<ClientName, Option<Weak<OpenClone>>>>,
    changed: Condvar,
}

/// The clones of one golden image.
#[derive(Debug)]
pub struct Fleet {
    directory: PathBuf,
    golden: Arc<GoldenFile>,
    lasting: Lasting,
    register: Arc<Register>,
}

impl Fleet {
    /// The clones in a directory, which is made if its parent is there.
    ///
    /// # Errors
    /// The system's.
    pub fn new(directory: &Path, golden: GoldenFile, lasting: Lasting) -> io::Result<Self> {
        make_directory(directory)?;
        Ok(Fleet {
            directory: directory.into(),
            golden: Arc::new(golden),
            lasting,
            register: Arc::default(),
        })
    }

    /// The golden image.
    pub fn golden(&self) -> &GoldenFile {
        &self.golden
    }

    /// The clone of a client: that which is open, that which is there, or a new one.
    ///
    /// # Errors
    /// [`FleetError`].
    pub fn clone_of(&self, name: &ClientName) -> Result<Arc<OpenClone>, FleetError> {
        {
            let mut known = lock(&self.register.open);
            loop {
                match known.get(name) {
                    None => break,
                    Some(Some(open)) => match open.upgrade() {
                        Some(open) => return Ok(open),
                        // The last of its connections has just gone; it is being closed.
                        None => {}
                    },
                    Some(None) => {}
                }
                known = self
                    .register
                    .changed
                    .wait(known)
                    .unwrap_or_else(PoisonError::into_inner);
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
        let around = Surroundings {
            golden: self.golden.clone(),
            golden_id: self.golden.id(),
            memory: Arc::new(SharedMemory),
            random: &random,
        };
        let path = name.path_in(&self.directory);
        if self.lasting == Lasting::ThrownAway {
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
                make(&path, &self.golden, random, 1, random).map_err(|why| FleetError::Make {
                    path: path.clone(),
                    why,
                })?
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(FleetError::InUse(path));
            }
            Err(error) => {
                let why = OpenError::Io(error);
                return Err(FleetError::Open { path, why });
            }
        };
        open(file, &around).map_err(|why| FleetError::Open { path, why })
    }
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
    if golden_path.len() > MOST_PATH_BYTES {
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
    /// The device's.
    pub fn close(&self) -> io::Result<()> {
        self.disk.close()
    }
}

impl Drop for OpenClone {
    fn drop(&mut self) {
        // If it fails, the file says that it is in use, and whoever opens it next finds out what is missing.
        let _ = self.disk.close();
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
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
