//! Documents that a user names: results, lists, plans, certificates. A name may lead to anything, so that only what has an end
//! is read, and no more of it than a document has.

use std::fs::{File, Metadata};
use std::io::{self, Chain, Cursor, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The limit of results: one of a fleet of six hundred boards has 30 MiB.
pub const MAX_RESULT_BYTES: u64 = 32 << 20;
/// The limit of what a person or a small tool writes: lists of machines and exports, job files, plans, certificates.
pub const MAX_LIST_BYTES: u64 = 16 << 20;

/// How long a named pipe may have no writer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked for one.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Of pipes without a name, such as a shell's `<(PROGRAM)`.
const PIPEFS_MAGIC: u64 = 0x5049_5045;
const NULL_DEVICE: (u32, u32) = (1, 3);

/// A document that is open: what was read of a pipe to see its writer, and the rest.
pub type Document = Chain<Cursor<Vec<u8>>, File>;

/// Opens a regular file or a pipe.
///
/// # Errors
/// The system's; in words where it is something else, or a named pipe that has no writer.
pub fn open(path: &Path) -> io::Result<Document> {
    // Before it is opened: that alone starts some devices.
    must_have_an_end(&std::fs::metadata(path)?)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let about = file.metadata()?;
    must_have_an_end(&about)?;
    let begin = if about.file_type().is_fifo() { first_byte(&file)? } else { Vec::new() };
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(Cursor::new(begin).chain(file))
}

/// Opens a regular file, which can be read twice.
///
/// # Errors
/// The system's; in words where it is something else.
pub fn open_regular(path: &Path) -> io::Result<File> {
    must_be_regular(&std::fs::metadata(path)?)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    must_be_regular(&file.metadata()?)?;
    Ok(file)
}

/// A whole document.
///
/// # Errors
/// As of [`open`]; `FileTooLarge` where it is longer than the limit.
pub fn bytes(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    all_of(open(path)?, limit)
}

/// A whole document as text.
///
/// # Errors
/// As of [`bytes`]; `InvalidData` where it is no UTF-8.
pub fn text(path: &Path, limit: u64) -> io::Result<String> {
    let text = String::from_utf8(bytes(path, limit)?);
    text.map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is no text in UTF-8"))
}

/// All of standard input.
///
/// # Errors
/// The system's; `FileTooLarge` where it is longer than the limit.
pub fn standard_input(limit: u64) -> io::Result<Vec<u8>> {
    all_of(io::stdin().lock(), limit)
}

/// Reads to the end, which must come within the limit.
fn all_of(file: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let why = format!(
            "it has more than {} MiB, and no file of this kind has\nName another file, or a part of this one",
            limit >> 20
        );
        return Err(io::Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

fn must_have_an_end(about: &Metadata) -> io::Result<()> {
    let kind = about.file_type();
    let device = (rustix::fs::major(about.rdev()), rustix::fs::minor(about.rdev()));
    if kind.is_fifo() || (kind.is_char_device() && device == NULL_DEVICE) {
        return Ok(());
    }
    must_be_regular(about)
}

fn must_be_regular(about: &Metadata) -> io::Result<()> {
    let kind = about.file_type();
    let what = if kind.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory; name a file"));
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_fifo() {
        "a pipe, which is read only once"
    } else {
        return Ok(());
    };
    Err(io::Error::new(ErrorKind::InvalidInput, format!("it is {what}; name a regular file")))
}

/// The first byte of a pipe, as soon as it has one; none at its end. A writer may take its time, but there must be one.
fn first_byte(pipe: &File) -> io::Result<Vec<u8>> {
    let is_unnamed = rustix::fs::fstatfs(pipe)
        .is_ok_and(|about| u64::try_from(about.f_type).is_ok_and(|kind| kind == PIPEFS_MAGIC));
    let begun = Instant::now();
    loop {
        let mut byte = [0; 1];
        match rustix::io::read(pipe, &mut byte) {
            Ok(0) if is_unnamed => return Ok(Vec::new()),
            Ok(0) if begun.elapsed() >= PATIENCE => {
                let why = "it is a pipe into which no program writes\nStart that program first";
                return Err(io::Error::new(ErrorKind::TimedOut, why));
            }
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(byte.to_vec()),
            // There is a writer.
            Err(Errno::AGAIN) => return Ok(Vec::new()),
            Err(errno) => return Err(errno.into()),
        }
        let wait = &mut [PollFd::new(pipe, PollFlags::IN)];
        match poll(wait, Some(&PAUSE)) {
            // Its writer came and went.
            Ok(1) if wait[0].revents() == PollFlags::HUP => return Ok(Vec::new()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn why(path: &Path) -> String {
        bytes(path, 10).expect_err("refused").to_string()
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x");
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(text(&path, 10).unwrap(), "0123456789");
        std::fs::write(&path, "0123456789a").unwrap();
        assert_eq!(bytes(&path, 10).unwrap_err().kind(), ErrorKind::FileTooLarge);
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(text(&path, 10).unwrap_err().kind(), ErrorKind::InvalidData);
        assert!(bytes(Path::new("/dev/null"), 10).unwrap().is_empty());
        assert!(!bytes(Path::new("/proc/self/stat"), 1 << 20).unwrap().is_empty());
    }

    #[test]
    fn what_has_no_end_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let _socket = UnixListener::bind(place.path().join("socket")).unwrap();
        assert!(why(place.path()).contains("directory"));
        assert!(why(Path::new("/dev/zero")).contains("a device"));
        assert!(why(&place.path().join("socket")).contains("a socket"));
        assert_eq!(open(&place.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_pipe_is_read_as_its_writer_writes() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("pipe");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(why(&path).contains("no program writes"));
        assert!(open_regular(&path).unwrap_err().to_string().contains("a pipe"));
        let writer = std::thread::spawn({
            let path = path.clone();
            move || std::fs::write(path, "whole")
        });
        assert_eq!(text(&path, 10).unwrap(), "whole");
        writer.join().unwrap().unwrap();
    }
}
