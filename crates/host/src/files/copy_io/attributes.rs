//! Owner, mode, times, extended attributes and flags of entries.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{AtFlags, Gid, IFlags, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use super::data::File;
use super::directory::{Directory, Moment, proc_path};
use super::failure::Failure;

/// Something that has an owner, times and attributes: an open file or directory, or an entry by its name (the only way
/// for links, devices, pipes and sockets).
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// An open file.
    File(&'a File),
    /// An open directory.
    Directory(&'a Directory),
    /// An entry of an open directory, itself even if it is a link.
    Entry(&'a Directory, &'a OsStr),
}

/// Times that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Last access.
    pub accessed: Moment,
    /// Last change of the contents.
    pub modified: Moment,
}

/// Flags of a file as `chattr` sets them (`FS_IOC_GETFLAGS`, `linux/fs.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

impl Flags {
    /// What most filesystems can keep and a user sets: `s` sync, `i` immutable, `a` append only, `d` nodump,
    /// `A` noatime, `D` dirsync.
    pub const KEPT: Flags = Flags(0x8 | 0x10 | 0x20 | 0x40 | 0x80 | 0x1_0000);
    /// `i` and `a`: nothing can be changed while they are set.
    pub const LOCKED: Flags = Flags(0x10 | 0x20);
    /// `c` compressed, `m` not to be compressed, `C` not copied on write: they decide how data is written, so they
    /// are set before it is.
    pub const BEFORE_DATA: Flags = Flags(0x4 | 0x400 | 0x80_0000);
    /// What a filesystem notes for itself and no user sets: indexed directory, huge file, extents, attributes in an
    /// inode, inline data.
    pub const INTERNAL: Flags =
        Flags(0x1000 | 0x4_0000 | 0x8_0000 | 0x20_0000 | 0x1000_0000 | 0x2000_0000);

    /// Those that are in both.
    pub fn and(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }

    /// Those that are in either.
    pub fn or(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Those that are not in the other.
    pub fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The letters of `lsattr`; a number for flags that have none here.
    pub fn letters(self) -> String {
        const LETTERS: [(u32, char); 18] = [
            (0x1, 's'),
            (0x2, 'u'),
            (0x4, 'c'),
            (0x8, 'S'),
            (0x10, 'i'),
            (0x20, 'a'),
            (0x40, 'd'),
            (0x80, 'A'),
            (0x400, 'm'),
            (0x800, 'E'),
            (0x4000, 'j'),
            (0x8000, 't'),
            (0x1_0000, 'D'),
            (0x2_0000, 'T'),
            (0x10_0000, 'V'),
            (0x80_0000, 'C'),
            (0x2000_0000, 'P'),
            (0x4000_0000, 'F'),
        ];
        let mut text: String = LETTERS
            .iter()
            .filter(|(bit, _)| self.0 & bit != 0)
            .map(|&(_, letter)| letter)
            .collect();
        let known: u32 = LETTERS.iter().map(|(bit, _)| bit).sum();
        if self.0 & !known != 0 {
            text += &format!("{:#x}", self.0 & !known);
        }
        text
    }
}

/// Long enough for most lists and values; longer ones are asked for again.
const USUAL_BYTES: usize = 1 << 10;
/// The kernel's limit of a list and of a value (`XATTR_LIST_MAX`, `XATTR_SIZE_MAX`).
const MAX_BYTES: usize = 64 << 10;

impl Place<'_> {
    /// Gives it to an owner and a group. The kernel takes capabilities, and set-user-id from files, away.
    ///
    /// # Errors
    /// When this user may not.
    pub fn set_owner(&self, owner: u32, group: u32) -> Result<(), Failure> {
        let (owner, group) = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(group)));
        let set = match self {
            Place::File(file) => rustix::fs::fchown(&file.fd, owner, group),
            Place::Directory(directory) => rustix::fs::fchown(&directory.fd, owner, group),
            Place::Entry(directory, name) => {
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::chownat(&directory.fd, *name, owner, group, flags)
            }
        };
        set.map_err(Failure::of("set the owner"))
    }

    /// Sets the permission bits. Links have none.
    ///
    /// # Errors
    /// When this user may not, or it is a link.
    pub fn set_mode(&self, mode: u32) -> Result<(), Failure> {
        let mode = Mode::from_raw_mode(mode as rustix::fs::RawMode);
        let set = match self {
            Place::File(file) => rustix::fs::fchmod(&file.fd, mode),
            Place::Directory(directory) => rustix::fs::fchmod(&directory.fd, mode),
            // It would follow a link; the caller asks for nodes that it made a moment ago, and the target is its own.
            Place::Entry(directory, name) => {
                rustix::fs::chmodat(&directory.fd, *name, mode, AtFlags::empty())
            }
        };
        set.map_err(Failure::of("set the mode"))
    }

    /// Sets both times to the nanosecond.
    ///
    /// # Errors
    /// When this user may not.
    pub fn set_times(&self, times: &Times) -> Result<(), Failure> {
        let stamps = Timestamps {
            last_access: timespec(times.accessed),
            last_modification: timespec(times.modified),
        };
        let set = match self {
            Place::File(file) => rustix::fs::futimens(&file.fd, &stamps),
            Place::Directory(directory) => rustix::fs::futimens(&directory.fd, &stamps),
            Place::Entry(directory, name) => {
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::utimensat(&directory.fd, *name, &stamps, flags)
            }
        };
        set.map_err(Failure::of("set the times"))
    }

    /// The names of its extended attributes, access control lists among them.
    ///
    /// # Errors
    /// When the filesystem fails or knows none.
    pub fn attributes(&self) -> Result<Vec<OsString>, Failure> {
        let path = self.path()?;
        let list = grown(|buffer: &mut [u8]| match self {
            Place::File(file) => rustix::fs::flistxattr(&file.fd, buffer),
            Place::Directory(directory) => rustix::fs::flistxattr(&directory.fd, buffer),
            Place::Entry(..) => rustix::fs::llistxattr(path.as_slice(), buffer),
        })
        .map_err(Failure::of("list the extended attributes"))?;
        let names = list.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| OsString::from_vec(name.to_vec())).collect())
    }

    /// The value of an extended attribute.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn attribute(&self, name: &OsStr) -> Result<Vec<u8>, Failure> {
        let path = self.path()?;
        grown(|buffer: &mut [u8]| match self {
            Place::File(file) => rustix::fs::fgetxattr(&file.fd, name, buffer),
            Place::Directory(directory) => rustix::fs::fgetxattr(&directory.fd, name, buffer),
            Place::Entry(..) => rustix::fs::lgetxattr(path.as_slice(), name, buffer),
        })
        .map_err(Failure::of("read the extended attribute"))
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// When this user may not, the filesystem does not know such attributes, or there is no room.
    pub fn set_attribute(&self, name: &OsStr, value: &[u8]) -> Result<(), Failure> {
        let path = self.path()?;
        let flags = XattrFlags::empty();
        let set = match self {
            Place::File(file) => rustix::fs::fsetxattr(&file.fd, name, value, flags),
            Place::Directory(directory) => rustix::fs::fsetxattr(&directory.fd, name, value, flags),
            Place::Entry(..) => rustix::fs::lsetxattr(path.as_slice(), name, value, flags),
        };
        set.map_err(Failure::of("set the extended attribute"))
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// When there is none, or this user may not.
    pub fn remove_attribute(&self, name: &OsStr) -> Result<(), Failure> {
        let path = self.path()?;
        let removed = match self {
            Place::File(file) => rustix::fs::fremovexattr(&file.fd, name),
            Place::Directory(directory) => rustix::fs::fremovexattr(&directory.fd, name),
            Place::Entry(..) => rustix::fs::lremovexattr(path.as_slice(), name),
        };
        removed.map_err(Failure::of("remove the extended attribute"))
    }

    /// The flags of an open file or directory; none for what cannot have any.
    ///
    /// # Errors
    /// When the filesystem knows no flags.
    pub fn flags(&self) -> Result<Flags, Failure> {
        let flags = match self {
            Place::File(file) => rustix::fs::ioctl_getflags(&file.fd),
            Place::Directory(directory) => rustix::fs::ioctl_getflags(&directory.fd),
            Place::Entry(..) => return Ok(Flags::default()),
        };
        let flags = flags.map_err(Failure::of("read the flags"))?;
        Ok(Flags(flags.bits()))
    }

    /// Sets the flags, all at once.
    ///
    /// # Errors
    /// When the filesystem does not know one of them, or this user may not.
    pub fn set_flags(&self, flags: Flags) -> Result<(), Failure> {
        let bits = IFlags::from_bits_retain(flags.0);
        let set = match self {
            Place::File(file) => rustix::fs::ioctl_setflags(&file.fd, bits),
            Place::Directory(directory) => rustix::fs::ioctl_setflags(&directory.fd, bits),
            Place::Entry(..) => Err(Errno::OPNOTSUPP),
        };
        set.map_err(Failure::of("set the flags"))
    }

    /// For an entry: the path that the calls on links need. They know no directories, and `/proc/self/fd` leads to an
    /// open one whatever happens to its path.
    fn path(&self) -> Result<Vec<u8>, Failure> {
        let Place::Entry(directory, name) = self else {
            return Ok(Vec::new());
        };
        let name = CString::new(name.as_bytes());
        let name = name.map_err(|_| Failure::of("reach")(Errno::INVAL))?;
        Ok(proc_path(directory, &name))
    }
}

fn timespec(moment: Moment) -> Timespec {
    Timespec { tv_sec: moment.seconds, tv_nsec: moment.nanoseconds.into() }
}

/// Calls with a small buffer first, and with the largest that can be needed if it did not do.
fn grown(call: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut small = [0_u8; USUAL_BYTES];
    match call(&mut small) {
        Ok(length) => Ok(small[..length].to_vec()),
        Err(Errno::RANGE) => {
            let mut large = vec![0_u8; MAX_BYTES];
            let length = call(&mut large)?;
            large.truncate(length);
            Ok(large)
        }
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_told_in_the_letters_of_lsattr() {
        assert_eq!(Flags(0x10 | 0x40).letters(), "id");
        assert_eq!(Flags(0x80_0000 | 0x200).letters(), "C0x200");
        assert!(Flags::KEPT.and(Flags::INTERNAL).is_empty());
        assert!(Flags::KEPT.and(Flags::BEFORE_DATA).is_empty());
    }

    #[test]
    fn an_attribute_comes_back_as_it_was_set() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("file"), "x").unwrap();
        let directory = Directory::open_root(root.path()).unwrap();
        let place = Place::Entry(&directory, OsStr::new("file"));
        let name = OsStr::new("user.test");
        for length in [0, 1, 2000] {
            let value = vec![7_u8; length];
            // Not every filesystem that tests run on keeps such attributes.
            if let Err(failure) = place.set_attribute(name, &value) {
                assert_eq!(failure.reason(), super::super::Reason::Unsupported);
                return;
            }
            assert_eq!(place.attribute(name).unwrap(), value);
        }
        assert!(place.attributes().unwrap().contains(&name.to_owned()));
        place.remove_attribute(name).unwrap();
        assert!(place.attribute(name).is_err());
    }
}
