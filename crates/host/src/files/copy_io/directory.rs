//! Directories: opening, listing, looking at what is in them, making and removing entries.

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Statx, StatxFlags};
use rustix::io::Errno;

use super::failure::Failure;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A block device.
    Block,
    /// A character device.
    Character,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// The directory did not say, or it is newer than this program.
    Unknown,
}

impl Kind {
    fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            FileType::BlockDevice => Kind::Block,
            FileType::CharacterDevice => Kind::Character,
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            _ => Kind::Unknown,
        }
    }
}

/// A point in time, as a filesystem keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Moment {
    /// Seconds since 1970, negative before.
    pub seconds: i64,
    /// Nanoseconds within that second.
    pub nanoseconds: u32,
}

/// What a filesystem knows about an entry besides its contents, name and attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// What it is.
    pub kind: Kind,
    /// Permission bits with set-user-id, set-group-id and sticky.
    pub mode: u32,
    /// Number of the owner.
    pub owner: u32,
    /// Number of the group.
    pub group: u32,
    /// Names it has.
    pub names: u32,
    /// Its number in the filesystem.
    pub inode: u64,
    /// Length in bytes.
    pub size_bytes: u64,
    /// What it takes on the filesystem, before compression.
    pub allocated_bytes: u64,
    /// Last access.
    pub accessed: Moment,
    /// Last change of the contents.
    pub modified: Moment,
    /// Last change of anything, set by the kernel alone.
    pub changed: Moment,
    /// For devices: major and minor number of what it stands for.
    pub stands_for: (u32, u32),
    /// Major and minor number of the filesystem it is on.
    pub device: (u32, u32),
    /// Number of the mount it was reached through; 0 on kernels before 5.8.
    pub mount: u64,
    /// Whether it is the root of a mount, where the kernel says so (5.8).
    pub is_mount_root: bool,
}

impl Meta {
    fn of(raw: &Statx) -> Self {
        let moment = |time: rustix::fs::StatxTimestamp| Moment {
            seconds: time.tv_sec,
            nanoseconds: time.tv_nsec,
        };
        let has_mount = raw.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        let mount_root = rustix::fs::StatxAttributes::MOUNT_ROOT;
        Meta {
            kind: Kind::of(FileType::from_raw_mode(raw.stx_mode.into())),
            mode: u32::from(raw.stx_mode) & 0o7777,
            owner: raw.stx_uid,
            group: raw.stx_gid,
            names: raw.stx_nlink,
            inode: raw.stx_ino,
            size_bytes: raw.stx_size,
            allocated_bytes: raw.stx_blocks * 512,
            accessed: moment(raw.stx_atime),
            modified: moment(raw.stx_mtime),
            changed: moment(raw.stx_ctime),
            stands_for: (raw.stx_rdev_major, raw.stx_rdev_minor),
            device: (raw.stx_dev_major, raw.stx_dev_minor),
            mount: if has_mount { raw.stx_mnt_id } else { 0 },
            is_mount_root: raw.stx_attributes.contains(mount_root),
        }
    }
}

/// The names in a directory, sorted by their bytes, in one piece of memory.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    names: Vec<u8>,
    entries: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    start: u32,
    length: u8,
    kind: Kind,
    inode: u64,
}

impl Slot {
    fn name<'a>(&self, names: &'a [u8]) -> &'a [u8] {
        let start = self.start as usize;
        &names[start..start + usize::from(self.length)]
    }
}

impl Listed {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The name of an entry, and what the directory says that it is.
    pub fn get(&self, index: usize) -> Option<(&OsStr, Kind)> {
        let slot = self.entries.get(index)?;
        Some((OsStr::from_bytes(slot.name(&self.names)), slot.kind))
    }

    /// The number that an entry has in the filesystem; 0 when there is no such entry.
    pub fn inode(&self, index: usize) -> u64 {
        self.entries.get(index).map_or(0, |slot| slot.inode)
    }

    /// Whether there is an entry of that name.
    pub fn has(&self, name: &OsStr) -> bool {
        let order = |slot: &Slot| slot.name(&self.names).cmp(name.as_bytes());
        self.entries.binary_search_by(order).is_ok()
    }

    fn add(&mut self, name: &[u8], kind: Kind, inode: u64) -> Result<(), Errno> {
        let start = u32::try_from(self.names.len()).map_err(|_| Errno::OVERFLOW)?;
        let length = u8::try_from(name.len()).map_err(|_| Errno::NAMETOOLONG)?;
        self.names.extend_from_slice(name);
        self.entries.push(Slot { start, length, kind, inode });
        Ok(())
    }

    fn sort(&mut self) {
        let names = &self.names;
        self.entries.sort_unstable_by(|a, b| a.name(names).cmp(b.name(names)));
    }
}

/// What the filesystem of a directory says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filesystem {
    /// The kernel's number of its type (`linux/magic.h`).
    pub magic: u64,
    /// What is used, in bytes.
    pub used_bytes: u64,
    /// Free for this user, in bytes.
    pub available_bytes: u64,
    /// Inodes in use; 0 where it does not count them (btrfs).
    pub used_inodes: u64,
}

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    pub(super) fd: OwnedFd,
}

const OPEN: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

/// The kernel's limit of a path, with its end.
const PATH_MAX: usize = 4096;

impl Directory {
    /// Opens the directory at a path, links in it followed.
    ///
    /// # Errors
    /// When it does not exist, is no directory or may not be read.
    pub fn open_root(path: &Path) -> Result<Self, Failure> {
        let flags = OPEN.difference(OFlags::NOFOLLOW);
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(Failure::of("open"))?;
        Ok(Directory { fd })
    }

    /// Opens a directory in this one without changing its time of access where that is allowed.
    ///
    /// # Errors
    /// When there is none of that name, or it is a link.
    pub fn open(&self, name: &OsStr) -> Result<Self, Failure> {
        let fd =
            quietly(|flags| rustix::fs::openat(&self.fd, name, OPEN.union(flags), Mode::empty()));
        Ok(Directory { fd: fd.map_err(Failure::of("open the directory"))? })
    }

    /// Opens this directory once more.
    ///
    /// # Errors
    /// When too many files are open.
    pub fn again(&self) -> Result<Self, Failure> {
        let fd = rustix::fs::openat(&self.fd, c".", OPEN, Mode::empty());
        Ok(Directory { fd: fd.map_err(Failure::of("open the directory"))? })
    }

    /// Opens a directory at a relative path of any length; an empty path is this directory. The way there stays on this
    /// filesystem and follows no link.
    ///
    /// # Errors
    /// When a part of the path does not exist, is a link, or is a mount.
    pub fn open_beneath(&self, path: &[u8]) -> Result<Self, Failure> {
        let mut at = self.again()?;
        let mut rest = path;
        while !rest.is_empty() {
            let (head, tail) = first_part(rest);
            at = at.step_down(OsStr::from_bytes(head))?;
            rest = tail;
        }
        Ok(at)
    }

    fn step_down(&self, path: &OsStr) -> Result<Self, Failure> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let fd = quietly(|flags| {
            rustix::fs::openat2(&self.fd, path, OPEN.union(flags), Mode::empty(), resolve)
        });
        match fd {
            Ok(fd) => Ok(Directory { fd }),
            // Kernels before 5.6, and some sandboxes.
            Err(Errno::NOSYS) => self.step_by_step(path),
            Err(errno) => Err(Failure::of("open the directory")(errno)),
        }
    }

    fn step_by_step(&self, path: &OsStr) -> Result<Self, Failure> {
        let device = self.look()?.device;
        let mut at = self.again()?;
        for name in path.as_bytes().split(|&byte| byte == b'/') {
            at = at.open(OsStr::from_bytes(name))?;
            if at.look()?.device != device {
                return Err(Failure::of("open the directory")(Errno::XDEV));
            }
        }
        Ok(at)
    }

    /// What is known about this directory.
    ///
    /// # Errors
    /// When the filesystem fails.
    pub fn look(&self) -> Result<Meta, Failure> {
        look(self.fd.as_fd(), c"", AtFlags::EMPTY_PATH)
    }

    /// What is known about an entry; a link is looked at itself.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn look_at(&self, name: &OsStr) -> Result<Meta, Failure> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        look(self.fd.as_fd(), name, flags)
    }

    /// All names in the directory but `.` and `..`.
    ///
    /// # Errors
    /// When the filesystem fails.
    pub fn list(&self) -> Result<Listed, Failure> {
        let failed = Failure::of("list the directory");
        let again = self.again()?;
        let mut buffer = Vec::with_capacity(64 << 10);
        let mut entries = RawDir::new(&again.fd, buffer.spare_capacity_mut());
        let mut listed = Listed::default();
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(&failed)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                listed.add(name, Kind::of(entry.file_type()), entry.ino()).map_err(&failed)?;
            }
        }
        listed.sort();
        Ok(listed)
    }

    /// What a symbolic link says.
    ///
    /// # Errors
    /// When there is no link of that name.
    pub fn read_link(&self, name: &OsStr) -> Result<OsString, Failure> {
        let text = rustix::fs::readlinkat(&self.fd, name, Vec::new());
        let text = text.map_err(Failure::of("read the link"))?;
        Ok(OsString::from_vec(text.into_bytes()))
    }

    /// Makes a directory that only its owner may enter.
    ///
    /// # Errors
    /// When it exists or cannot be made.
    pub fn make_directory(&self, name: &OsStr) -> Result<(), Failure> {
        rustix::fs::mkdirat(&self.fd, name, Mode::RWXU).map_err(Failure::of("make the directory"))
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// When something of that name exists.
    pub fn make_link(&self, name: &OsStr, text: &OsStr) -> Result<(), Failure> {
        rustix::fs::symlinkat(text, &self.fd, name).map_err(Failure::of("make the link"))
    }

    /// Makes a device, a named pipe or a socket that only its owner may use.
    ///
    /// # Errors
    /// When something of that name exists, or this user may not make devices.
    pub fn make_node(&self, name: &OsStr, like: &Meta) -> Result<(), Failure> {
        let kind = match like.kind {
            Kind::Block => FileType::BlockDevice,
            Kind::Character => FileType::CharacterDevice,
            Kind::Fifo => FileType::Fifo,
            Kind::Socket => FileType::Socket,
            _ => return Err(Failure::of("make the node")(Errno::INVAL)),
        };
        let device = rustix::fs::makedev(like.stands_for.0, like.stands_for.1);
        rustix::fs::mknodat(&self.fd, name, kind, Mode::RUSR | Mode::WUSR, device)
            .map_err(Failure::of("make the node"))
    }

    /// Gives an entry one more name.
    ///
    /// # Errors
    /// When something of the new name exists.
    pub fn make_name(
        &self,
        name: &OsStr,
        from: &Directory,
        old_name: &OsStr,
    ) -> Result<(), Failure> {
        rustix::fs::linkat(&from.fd, old_name, &self.fd, name, AtFlags::empty())
            .map_err(Failure::of("link"))
    }

    /// Moves an entry within the filesystem.
    ///
    /// # Errors
    /// If the filesystem refuses the rename.
    pub fn move_to(&self, name: &OsStr, to: &Directory, new_name: &OsStr) -> Result<(), Failure> {
        rustix::fs::renameat(&self.fd, name, &to.fd, new_name).map_err(Failure::of("move"))
    }

    /// Removes an entry that is no directory.
    ///
    /// # Errors
    /// When it is one, or the system refuses.
    pub fn remove(&self, name: &OsStr) -> Result<(), Failure> {
        rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()).map_err(Failure::of("remove"))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// When it is not empty, or the system refuses.
    pub fn remove_directory(&self, name: &OsStr) -> Result<(), Failure> {
        rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)
            .map_err(Failure::of("remove the directory"))
    }

    /// Brings everything that was written to this filesystem to stable storage. Also tells about writing that failed
    /// behind our back since this directory was opened (kernel 5.8).
    ///
    /// # Errors
    /// When the device fails or is full.
    pub fn sync_filesystem(&self) -> Result<(), Failure> {
        rustix::fs::syncfs(&self.fd).map_err(Failure::of("write to stable storage"))
    }

    /// Brings the names in this directory to stable storage.
    ///
    /// # Errors
    /// When the device fails.
    pub fn sync(&self) -> Result<(), Failure> {
        rustix::fs::fsync(&self.fd).map_err(Failure::of("write to stable storage"))
    }

    /// What the filesystem says about itself.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn filesystem(&self) -> Result<Filesystem, Failure> {
        let raw = rustix::fs::fstatfs(&self.fd).map_err(Failure::of("ask the filesystem"))?;
        #[allow(clippy::unnecessary_cast, reason = "the width differs by processor")]
        let (magic, block_bytes) = (raw.f_type as u32, raw.f_bsize as u64);
        Ok(Filesystem {
            magic: u64::from(magic),
            used_bytes: raw.f_blocks.saturating_sub(raw.f_bfree) * block_bytes,
            available_bytes: raw.f_bavail * block_bytes,
            used_inodes: raw.f_files.saturating_sub(raw.f_ffree),
        })
    }
}

pub(super) fn look<P: rustix::path::Arg>(
    at: BorrowedFd<'_>,
    name: P,
    flags: AtFlags,
) -> Result<Meta, Failure> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let raw = rustix::fs::statx(at, name, flags, wanted).map_err(Failure::of("look at"))?;
    Ok(Meta::of(&raw))
}

/// Tries with `O_NOATIME`, and without where only the owner may use it.
pub(super) fn quietly(open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    match open(OFlags::NOATIME) {
        Err(Errno::PERM) => open(OFlags::empty()),
        other => other,
    }
}

/// As many whole names as fit into a path that the kernel takes, and what is left.
fn first_part(path: &[u8]) -> (&[u8], &[u8]) {
    if path.len() < PATH_MAX {
        return (path, &[]);
    }
    let end = path[..PATH_MAX].iter().rposition(|&byte| byte == b'/');
    match end {
        Some(end) => (&path[..end], &path[end + 1..]),
        None => (path, &[]),
    }
}

/// The path by which the calls that know only paths reach an entry of an open directory.
pub(super) fn proc_path(directory: &Directory, name: &CStr) -> Vec<u8> {
    use std::os::fd::AsRawFd;
    let mut path = format!("/proc/self/fd/{}/", directory.fd.as_raw_fd()).into_bytes();
    path.extend_from_slice(name.to_bytes());
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_walked_in_parts_of_whole_names() {
        let name = "x".repeat(250);
        let path = vec![name.as_str(); 40].join("/");
        let (head, tail) = first_part(path.as_bytes());
        assert!(head.len() < PATH_MAX && head.len() > PATH_MAX - 260);
        let joined = [head, tail].join(&b'/');
        assert_eq!(joined, path.as_bytes());
        assert_eq!(first_part(b"a/b"), (&b"a/b"[..], &b""[..]));
    }

    #[test]
    fn a_link_on_the_way_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("inside/deep")).unwrap();
        std::os::unix::fs::symlink("/tmp", root.path().join("out")).unwrap();
        let directory = Directory::open_root(root.path()).unwrap();
        assert!(directory.open_beneath(b"inside/deep").is_ok());
        assert!(directory.open_beneath(b"out").is_err());
        assert!(directory.open_beneath(b"inside/../..").is_err());
        assert!(directory.open(OsStr::new("out")).is_err());
    }

    #[test]
    fn names_are_sorted_by_their_bytes_and_found() {
        let root = tempfile::tempdir().unwrap();
        let names: [&[u8]; 4] = [b"b\nc", b"a", b"\xff\xfe", b"b"];
        for name in names {
            std::fs::write(root.path().join(OsStr::from_bytes(name)), "").unwrap();
        }
        let listed = Directory::open_root(root.path()).unwrap().list().unwrap();
        let found: Vec<_> = (0..listed.len())
            .filter_map(|i| listed.get(i))
            .map(|(name, _)| name.as_bytes().to_vec())
            .collect();
        assert_eq!(found, [&b"a"[..], b"b", b"b\nc", b"\xff\xfe"]);
        assert!(listed.has(OsStr::new("b")) && !listed.has(OsStr::new("c")));
    }
}
