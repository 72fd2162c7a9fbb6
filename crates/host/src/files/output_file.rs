//! Files that a user asked for: written whole, and never through what others have put into the directory.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use crate::files::new_file::directory_of;

/// How often another name is tried where one is taken.
const ATTEMPTS: u32 = 8;

/// Writes a file so that no reader sees a part of it: under a name that cannot be guessed, in the directory as it was opened
/// once, then renamed. A file that is there is replaced and keeps its permissions; a symbolic link is replaced, not followed.
/// Terminals, pipes and other devices are written to, but no pipe of another user, which is replaced, too: it might never be read.
///
/// # Errors
/// When the directory or the file cannot be opened, written, made durable or named; what was begun is removed.
pub fn write_output(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::other("the output file has no name"))?;
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory_of(path), directory, Mode::empty())?;
    let mode = match existing(&directory, name, path)? {
        Existing::SystemsLink => {
            let stream = rustix::fs::open(path, STREAM, Mode::empty())?;
            return File::from(stream).write_all(bytes);
        }
        Existing::Stream => return File::from(stream(&directory, name)?).write_all(bytes),
        Existing::File(mode) => Some(mode),
        Existing::None => None,
    };
    let (new_name, file) = create(&directory)?;
    let written = fill(file, bytes, mode)
        .and_then(|()| Ok(rustix::fs::renameat(&directory, &new_name, &directory, name)?));
    written.inspect_err(|_| {
        // Nothing more can be done where it cannot be removed.
        let _ = rustix::fs::unlinkat(&directory, &new_name, AtFlags::empty());
    })
}

/// The first of a file, what SQLite puts beside it, and its directory that is a symbolic link which another user made. Such
/// a link may lead to a file that only this user may write; links of one's own and of root are followed.
pub fn link_of_another(file: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let own = rustix::process::geteuid().as_raw();
    let name = file.file_name().unwrap_or_default();
    let beside = ["", "-wal", "-shm", "-journal"].iter().map(|end| {
        let mut name = name.to_os_string();
        name.push(end);
        file.with_file_name(name)
    });
    let is_of_another = |path: &PathBuf| {
        let about = std::fs::symlink_metadata(path);
        about.is_ok_and(|about| about.is_symlink() && ![own, 0].contains(&about.uid()))
    };
    beside.chain(file.parent().map(Path::to_path_buf)).find(is_of_another)
}

/// What has the name of an output.
enum Existing {
    /// A regular file, with its permissions.
    File(Mode),
    /// What takes bytes and has no contents: a device, a pipe.
    Stream,
    /// A link that the system made to what this program has open.
    SystemsLink,
    /// Nothing, or a link, which is replaced.
    None,
}

fn existing(directory: &OwnedFd, name: &OsStr, path: &Path) -> io::Result<Existing> {
    let found = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        Err(rustix::io::Errno::NOENT) => return Ok(Existing::None),
        Err(errno) => return Err(errno.into()),
    };
    Ok(match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Existing::File(Mode::from_raw_mode(found.st_mode & 0o777)),
        FileType::Directory => return Err(rustix::io::Errno::ISDIR.into()),
        // /dev/stdout is a link of the system's own, to what this program has open.
        FileType::Symlink if is_of_the_system(path) => Existing::SystemsLink,
        FileType::Fifo if is_of_another(found.st_uid) => Existing::None,
        FileType::Symlink => Existing::None,
        FileType::BlockDevice => return Err(io::Error::other("it is a block device")),
        FileType::CharacterDevice | FileType::Fifo | FileType::Socket | FileType::Unknown => {
            Existing::Stream
        }
    })
}

const STREAM: OFlags = OFlags::WRONLY.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens what has no contents. It may have become something else since it was looked at, such as a link to a file of root's.
fn stream(directory: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let opened = rustix::fs::openat(directory, name, STREAM | OFlags::NOFOLLOW, Mode::empty())?;
    match FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) {
        FileType::RegularFile | FileType::BlockDevice => {
            Err(io::Error::other("another program changed what has this name; try again"))
        }
        _ => Ok(opened),
    }
}

/// Whether it is neither this user's nor root's.
fn is_of_another(user: u32) -> bool {
    ![rustix::process::geteuid().as_raw(), 0].contains(&user)
}

fn is_of_the_system(path: &Path) -> bool {
    let parent = path.parent().unwrap_or(Path::new(""));
    parent == Path::new("/dev")
        || parent.starts_with("/dev/fd")
        || parent.starts_with("/proc/self/fd")
}

fn create(directory: &OwnedFd) -> io::Result<(String, OwnedFd)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let mut last = rustix::io::Errno::EXIST;
    for _ in 0..ATTEMPTS {
        let mut random = [0_u8; 12];
        SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("no random numbers"))?;
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!(".rubus-{digits}.new");
        match rustix::fs::openat(directory, &name, flags, mode) {
            Ok(file) => return Ok((name, file)),
            Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => {
                last = errno;
                break;
            }
        }
    }
    Err(last.into())
}

fn fill(file: OwnedFd, bytes: &[u8], mode: Option<Mode>) -> io::Result<()> {
    if let Some(mode) = mode {
        rustix::fs::fchmod(&file, mode)?;
    }
    let mut file = File::from(file);
    file.write_all(bytes)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_with_its_permissions_and_nothing_else_is_left() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("page.html");
        write_output(&path, b"one").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        write_output(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_pipe_is_written_to_unless_another_user_planted_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("page.html");
        let mode = Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, mode, 0).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || std::fs::read(path).unwrap()
        });
        write_output(&path, b"one").unwrap();
        assert_eq!(reader.join().unwrap(), b"one");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
            write_output(&path, b"two").unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"two", "nobody reads that pipe");
        }
    }

    /// Between the look and the opening, the owner of a directory may put a link in the place of a pipe.
    #[test]
    fn what_became_a_link_or_a_file_meanwhile_is_not_written_through() {
        let place = tempfile::tempdir().unwrap();
        let secret = place.path().join("secret");
        std::fs::write(&secret, "kept").unwrap();
        symlink(&secret, place.path().join("link")).unwrap();
        std::fs::hard_link(&secret, place.path().join("name")).unwrap();
        let directory = File::open(place.path()).unwrap().into();
        for planted in ["link", "name"] {
            assert!(stream(&directory, OsStr::new(planted)).is_err(), "{planted}");
        }
        assert_eq!(std::fs::read(&secret).unwrap(), b"kept");
    }

    #[test]
    fn a_planted_link_is_replaced_and_what_it_leads_to_stays() {
        let place = tempfile::tempdir().unwrap();
        let secret = place.path().join("secret");
        std::fs::write(&secret, "kept").unwrap();
        let path = place.path().join("page.html");
        symlink(&secret, &path).unwrap();
        // Names that an attacker could guess.
        for pid in [std::process::id(), 1] {
            symlink(&secret, place.path().join(format!("page.html.{pid}.new"))).unwrap();
        }
        write_output(&path, b"page").unwrap();
        assert_eq!(std::fs::read(&secret).unwrap(), b"kept");
        assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn links_of_others_are_told_from_links_of_ones_own() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("x.db");
        assert_eq!(link_of_another(&file), None);
        let link = place.path().join("x.db-wal");
        symlink("/nowhere", &link).unwrap();
        assert_eq!(link_of_another(&file), None);
        // Only root can give a link away.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
            assert_eq!(link_of_another(&file), Some(link));
        }
    }

    #[test]
    fn devices_are_written_to_and_directories_are_not() {
        write_output(Path::new("/dev/null"), b"gone").unwrap();
        use std::os::unix::fs::FileTypeExt;
        assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let place = tempfile::tempdir().unwrap();
        assert!(write_output(place.path(), b"x").is_err());
        assert!(write_output(&place.path().join("none/x"), b"x").is_err());
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
