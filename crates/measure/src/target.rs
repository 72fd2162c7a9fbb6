//! What is measured on, as the caller names it and as it is once open.
//!
//! Opening decides how the target is reached: past the page cache where that is possible, else
//! through it with a doubt. Of a directory only a file without a name is used, so that nothing
//! is left behind however the program ends.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{Access, TargetKind};
use rubus_vocabulary::spec::Content;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, SeekFrom, StatxFlags, fcntl_getfl, fcntl_setfl, fstat,
    fstatvfs, ioctl_blksszget, open, openat, statx, unlinkat,
};
use rustix::io::{Errno, pread, pwrite};

use crate::error::{BenchError, advice};
use crate::filesystem::{self, Filesystem};
use crate::page_cache;
use crate::remote::{Connections, Remote};
use crate::tree_names;
use rubus_host::block::buffers::Buffers;

/// What is to be measured on.
#[derive(Debug)]
pub enum Target {
    /// A directory: a nameless file of our own in it.
    Directory { path: PathBuf },
    /// A file of the user's.
    File {
        path: PathBuf,
        /// Whether its contents may be lost. If not, only jobs that read are run.
        may_overwrite: bool,
    },
    /// A block device that the guard has opened, exclusively and with `O_DIRECT`.
    Device {
        /// The open device.
        fd: OwnedFd,
        /// The path of its node, for messages.
        path: PathBuf,
        size_bytes: u64,
        /// Whether its contents may be lost. If not, only jobs that read are run.
        may_overwrite: bool,
    },
    /// A disk that another machine or program serves.
    Remote {
        /// How it is reached and what it offers.
        remote: Arc<dyn Remote>,
        /// Its address, for messages.
        path: PathBuf,
        /// Whether its contents may be lost. If not, only jobs that read are run.
        may_overwrite: bool,
    },
    /// Memory: a file that was never on a disk (`memfd_create(2)`), read and written like any other.
    Ram {
        /// How much of it. Whether there is that much is the caller's to know.
        size_bytes: u64,
    },
}

impl Target {
    /// The path, for messages.
    pub fn path(&self) -> &Path {
        match self {
            Target::Directory { path }
            | Target::File { path, .. }
            | Target::Device { path, .. }
            | Target::Remote { path, .. } => path,
            Target::Ram { .. } => Path::new("memory"),
        }
    }

    /// Whether jobs that write may run.
    pub fn may_write(&self) -> bool {
        match self {
            Target::Directory { .. } | Target::Ram { .. } => true,
            Target::File { may_overwrite, .. }
            | Target::Device { may_overwrite, .. }
            | Target::Remote { may_overwrite, .. } => *may_overwrite,
        }
    }

    /// Whether the session makes the file itself.
    pub fn is_own_file(&self) -> bool {
        matches!(self, Target::Directory { .. } | Target::Ram { .. })
    }
}

/// An open target.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Where the operations of all jobs but the commits go, unless that is `remote`.
    pub(crate) file: Arc<OwnedFd>,
    /// The network disk, if it is one.
    pub(crate) remote: Option<Arc<Connections>>,
    /// What kind of thing it is.
    pub(crate) kind: TargetKind,
    /// As the caller named it.
    pub(crate) path: PathBuf,
    /// How the operations reach the device.
    pub(crate) access: Access,
    /// The filesystem, of a directory or a file.
    pub(crate) filesystem: Option<Filesystem>,
    /// Bytes that exist; of a file of our own, what has been filled.
    pub(crate) size_bytes: u64,
    /// Offsets and lengths must be multiples of this.
    pub(crate) align_bytes: u32,
    /// Whether jobs that write may run.
    pub(crate) may_write: bool,
    /// Bytes that opening wrote, to try out direct I/O.
    pub(crate) probe_bytes: u64,
    /// Doubts about everything that is measured here.
    pub(crate) doubts: Vec<Doubt>,
    directory: Option<OwnedFd>,
}

impl Opened {
    /// Opens the target.
    ///
    /// # Errors
    /// [`BenchError::Target`] in words, or [`BenchError::NoSpace`] for an empty file.
    pub(crate) fn new(target: Target) -> Result<Self, BenchError> {
        let path = target.path().to_path_buf();
        let may_write = target.may_write();
        let mut opened = match target {
            Target::Remote { remote, .. } => return open_remote(remote, &path, may_write),
            Target::Directory { .. } => open_directory(&path)?,
            Target::File { .. } => open_file(&path, may_write)?,
            Target::Device { fd, size_bytes, .. } => open_device(fd, &path, size_bytes)?,
            Target::Ram { .. } => open_memory(&path)?,
        };
        opened.may_write = may_write;
        // To io_uring this flag means to give up instead of waiting.
        opened.clear_flag(OFlags::NONBLOCK)?;
        opened.try_direct()?;
        opened.add_doubts();
        Ok(opened)
    }

    fn of(file: OwnedFd, kind: TargetKind, path: &Path, access: Access, size_bytes: u64) -> Self {
        let filesystem = match kind {
            TargetKind::Device | TargetKind::Network | TargetKind::Pool => None,
            TargetKind::Directory | TargetKind::File | TargetKind::Ram => {
                filesystem::of(file.as_fd())
            }
        };
        Opened {
            file: Arc::new(file),
            remote: None,
            kind,
            path: path.to_path_buf(),
            access,
            filesystem,
            size_bytes,
            align_bytes: 512,
            may_write: false,
            probe_bytes: 0,
            doubts: Vec::new(),
            directory: None,
        }
    }

    /// A target that exists in a simulation only: a directory, or a device of that size.
    #[cfg(test)]
    pub(crate) fn pretended(size_bytes: Option<u64>) -> Self {
        let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        let file = null.expect("every Linux has /dev/null");
        let kind = match size_bytes {
            None => TargetKind::Directory,
            Some(_) => TargetKind::Device,
        };
        let size_bytes = size_bytes.unwrap_or(0);
        let mut opened = Opened::of(file, kind, Path::new("sim"), Access::Direct, size_bytes);
        opened.filesystem = None;
        opened.may_write = true;
        opened
    }

    /// The name of the filesystem, for doubts.
    fn filesystem_name(&self) -> String {
        match &self.filesystem {
            Some(filesystem) => filesystem.name.clone(),
            None => "this device".into(),
        }
    }

    /// Learns the alignment and tries one direct operation; where it is refused, goes on through
    /// the page cache.
    fn try_direct(&mut self) -> Result<(), BenchError> {
        if self.access == Access::Buffered {
            self.align_bytes = 1;
            return Ok(());
        }
        let stated = direct_alignment(self.file.as_fd());
        self.align_bytes = stated
            .filter(|&bytes| bytes > 0)
            .or_else(|| ioctl_blksszget(&self.file).ok())
            .unwrap_or(512);
        // Nothing here is smaller than 4 KiB; a filesystem that wants more than that per operation
        // is measured as programs use it, through the cache. One that says that it has no direct
        // I/O is believed, unless a file of our own shows that it has.
        let plausible = stated != Some(0) || self.kind == TargetKind::Directory;
        let works = plausible
            && self.align_bytes <= 4096
            && self.one_direct_operation()?
            && !(self.kind == TargetKind::Directory && self.first_page_is_cached());
        if !works {
            self.access = Access::Buffered;
            self.align_bytes = 1;
            self.clear_flag(OFlags::DIRECT)?;
        }
        Ok(())
    }

    fn clear_flag(&self, flag: OFlags) -> Result<(), BenchError> {
        let flags = fcntl_getfl(&self.file);
        flags
            .and_then(|flags| fcntl_setfl(&self.file, flags.difference(flag)))
            .map_err(|errno| trouble(&self.path, "change how it is open", errno))
    }

    /// True when a direct operation works, false when the filesystem refuses it.
    fn one_direct_operation(&mut self) -> Result<bool, BenchError> {
        const BYTES: usize = 4096;
        let memory = Buffers::new(1, BYTES, Content::Incompressible, 0);
        let mut memory = memory.map_err(|error| BenchError::Target {
            path: self.path.display().to_string(),
            reason: format!("no memory for a first operation: {error}"),
        })?;
        let (verb, answer) = if self.kind == TargetKind::Directory {
            self.probe_bytes = BYTES as u64;
            ("write to it", pwrite(&self.file, memory.first_mut(), 0))
        } else {
            ("read from it", pread(&self.file, memory.first_mut(), 0))
        };
        match answer {
            Ok(_) => Ok(true),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(false),
            Err(errno) => Err(trouble(&self.path, verb, errno)),
        }
    }

    /// Whether the page that a direct operation has just written lies in the page cache, as happens
    /// on filesystems that take the flag and ignore it.
    fn first_page_is_cached(&self) -> bool {
        page_cache::resident_share(self.file.as_fd(), 4096).is_some_and(|share| share > 0.0)
    }

    fn add_doubts(&mut self) {
        if self.kind == TargetKind::Ram {
            // The page cache is what is measured.
            return;
        }
        if self.access == Access::Buffered {
            self.doubts.push(Doubt::ThroughPageCache { filesystem: self.filesystem_name() });
        } else if let Some(why) = self.filesystem.as_ref().and_then(Filesystem::hidden_cache) {
            self.doubts.push(Doubt::DirectIsBuffered { filesystem: why });
        }
    }

    /// Whether the session made the file itself.
    pub(crate) fn is_own_file(&self) -> bool {
        matches!(self.kind, TargetKind::Directory | TargetKind::Ram)
    }

    /// Free space for an ordinary user where the file of our own lives, in bytes; absent for
    /// memory, of which the kernel does not say it by file.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        if self.kind == TargetKind::Ram {
            return None;
        }
        let found = fstatvfs(&self.file).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Another nameless file of our own in the same directory, opened in the same way.
    ///
    /// # Errors
    /// The system's, when it cannot be made.
    pub(crate) fn another_file(&self) -> Result<OwnedFd, Errno> {
        let extra = match self.access {
            Access::Direct => OFlags::DIRECT,
            Access::Buffered => OFlags::empty(),
        };
        match &self.directory {
            Some(directory) => nameless(directory.as_fd(), extra),
            None => Err(Errno::FBIG),
        }
    }

    /// A second file of our own for commits, through the page cache as the programs that commit
    /// write; absent where there is no directory to put it in.
    ///
    /// # Errors
    /// In words, when it cannot be made.
    pub(crate) fn commit_file(&self) -> Result<Option<CommitFile>, String> {
        let Some(directory) = &self.directory else {
            return Ok(None);
        };
        let keeps_nameless =
            self.filesystem.as_ref().is_some_and(|filesystem| filesystem.syncs_nameless_files);
        let made = if keeps_nameless {
            nameless(directory.as_fd(), OFlags::empty()).map(|file| (file, None))
        } else {
            named(directory.as_fd()).map(|(file, name)| (file, Some(name)))
        };
        let (file, name) = made.map_err(|errno| {
            let error = std::io::Error::from(errno);
            format!("cannot make a file for commits in {}: {error}", self.path.display())
        })?;
        let unlink = match name {
            None => None,
            Some(name) => {
                let directory = directory.try_clone().map_err(|error| error.to_string());
                Some((directory?, name))
            }
        };
        Ok(Some(CommitFile { file: Arc::new(file), unlink }))
    }
}

/// The file that commits are appended to. Its name, where it needs one, goes with it.
#[derive(Debug)]
pub(crate) struct CommitFile {
    /// The open file.
    pub(crate) file: Arc<OwnedFd>,
    unlink: Option<(OwnedFd, String)>,
}

impl Drop for CommitFile {
    fn drop(&mut self) {
        if let Some((directory, name)) = &self.unlink {
            // If this fails the next session removes it.
            let _ = unlinkat(directory, name.as_str(), AtFlags::empty());
        }
    }
}

fn trouble(path: &Path, tried: &str, errno: Errno) -> BenchError {
    let error = std::io::Error::from(errno);
    let advice = advice(errno);
    BenchError::Target {
        path: path.display().to_string(),
        reason: format!("cannot {tried}: {error}{advice}"),
    }
}

fn open_directory(path: &Path) -> Result<Opened, BenchError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty())
        .map_err(|errno| trouble(path, "open the directory", errno))?;
    remove_stale(directory.as_fd());
    tree_names::remove_stale(directory.as_fd());
    let (file, access) = match nameless(directory.as_fd(), OFlags::DIRECT) {
        Ok(file) => (file, Access::Direct),
        // The filesystem takes the file, but not the flag.
        Err(Errno::INVAL) => match nameless(directory.as_fd(), OFlags::empty()) {
            Ok(file) => (file, Access::Buffered),
            Err(errno) => return Err(trouble(path, "make a file in it", errno)),
        },
        Err(errno) => return Err(trouble(path, "make a file in it", errno)),
    };
    let mut opened = Opened::of(file, TargetKind::Directory, path, access, 0);
    opened.directory = Some(directory);
    Ok(opened)
}

/// A file of our own without a name: created so, or with a name that is removed at once.
fn nameless(directory: BorrowedFd<'_>, extra: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | extra;
    let mode = Mode::RUSR | Mode::WUSR;
    match openat(directory, ".", flags | OFlags::TMPFILE, mode) {
        // Three ways in which filesystems and old kernels say that they have no such thing; FUSE
        // and the network ones answer like the first two.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::NOSYS) => {}
        answer => return answer,
    }
    let name = own_name("rubus-test");
    let file = openat(directory, name.as_str(), flags | OFlags::CREATE | OFlags::EXCL, mode);
    // A filesystem may make the file and then refuse the flag.
    let removed = unlinkat(directory, name.as_str(), AtFlags::empty());
    let file = file?;
    removed?;
    Ok(file)
}

fn named(directory: BorrowedFd<'_>) -> Result<(OwnedFd, String), Errno> {
    let name = own_name(COMMIT_PREFIX);
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL;
    let file = openat(directory, name.as_str(), flags, Mode::RUSR | Mode::WUSR)?;
    // The lock shows a later cleanup whether the file is still in use. A filesystem without locks
    // only loses that cleanup.
    let _ = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    Ok((file, name))
}

const COMMIT_PREFIX: &str = "rubus-commit";

fn own_name(prefix: &str) -> String {
    // Unique enough: O_EXCL refuses the rest.
    let nanoseconds = rubus_host::ticks::now_ns();
    format!(".{prefix}-{}-{nanoseconds}", std::process::id())
}

/// Removes what a killed session has left: files with our prefix without a lock.
fn remove_stale(directory: BorrowedFd<'_>) {
    let Ok(entries) = rustix::fs::Dir::read_from(directory) else {
        return;
    };
    let ours = format!(".{COMMIT_PREFIX}-");
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !name.to_bytes().starts_with(ours.as_bytes()) {
            continue;
        }
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let Ok(file) = openat(directory, name, flags, Mode::empty()) else {
            continue;
        };
        let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        if rustix::fs::flock(&file, lock).is_ok() {
            let _ = unlinkat(directory, name, AtFlags::empty());
        }
    }
}

fn open_file(path: &Path, may_write: bool) -> Result<Opened, BenchError> {
    let way = if may_write { OFlags::RDWR } else { OFlags::RDONLY };
    // Not to block on a FIFO, and never to create anything.
    let flags = way | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let (file, access) = match open(path, flags | OFlags::DIRECT, Mode::empty()) {
        Err(Errno::INVAL) => (open(path, flags, Mode::empty()), Access::Buffered),
        answer => (answer, Access::Direct),
    };
    let file = file.map_err(|errno| trouble(path, "open it", errno))?;
    let stat = fstat(&file).map_err(|errno| trouble(path, "look at it", errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(BenchError::Target {
            path: path.display().to_string(),
            reason: "it is neither a directory nor a regular file".into(),
        });
    }
    // What lies beyond the first hole was never written: reading it would measure memory.
    let size_bytes = u64::try_from(stat.st_size).unwrap_or(0);
    let data_bytes = match rustix::fs::seek(&file, SeekFrom::Hole(0)) {
        Ok(hole) if !may_write => hole.min(size_bytes),
        _ => size_bytes,
    };
    Ok(Opened::of(file, TargetKind::File, path, access, data_bytes))
}

fn open_memory(path: &Path) -> Result<Opened, BenchError> {
    let file = rustix::fs::memfd_create("rubus", rustix::fs::MemfdFlags::CLOEXEC)
        .map_err(|errno| trouble(path, "make a file in memory", errno))?;
    Ok(Opened::of(file, TargetKind::Ram, path, Access::Buffered, 0))
}

fn open_remote(
    remote: Arc<dyn Remote>,
    path: &Path,
    may_write: bool,
) -> Result<Opened, BenchError> {
    // Stands where a file would: no operation goes there, and one that did would fail.
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| trouble(Path::new("/dev/null"), "open it", errno))?;
    let connections = Connections::new(remote);
    let facts = connections.facts();
    let size_bytes = facts.export_bytes;
    let mut opened = Opened::of(null, TargetKind::Network, path, Access::Direct, size_bytes);
    opened.align_bytes = facts.block_sizes.least_bytes;
    opened.may_write = may_write;
    if may_write && !facts.can_flush {
        opened.doubts.push(Doubt::NoFlush);
    }
    opened.remote = Some(Arc::new(connections));
    Ok(opened)
}

fn open_device(fd: OwnedFd, path: &Path, size_bytes: u64) -> Result<Opened, BenchError> {
    let flags = fcntl_getfl(&fd).map_err(|errno| trouble(path, "look at it", errno))?;
    let access = if flags.contains(OFlags::DIRECT) { Access::Direct } else { Access::Buffered };
    Ok(Opened::of(fd, TargetKind::Device, path, access, size_bytes))
}

/// What the kernel says of the alignment of direct I/O on this file (since Linux 6.1): 0 where it is not possible, absent
/// where the kernel does not say.
fn direct_alignment(file: BorrowedFd<'_>) -> Option<u32> {
    let found = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let says = found.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    says.then_some(found.stx_dio_offset_align)
}
