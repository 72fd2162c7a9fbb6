//! Files that are read again and again: opened once, read from their beginning each time. And the walk over all
//! processes, with one file of each.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::files::ReadError;

/// Not to block: see [`crate::live`].
const FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// One of the kernel's files, which make up their contents when they are read.
#[derive(Debug)]
pub struct PolledFile {
    file: OwnedFd,
}

impl PolledFile {
    /// Opens a file for repeated reading.
    ///
    /// # Errors
    /// When it does not exist or may not be read.
    pub fn open(path: &Path) -> Result<PolledFile, ReadError> {
        let file = rustix::fs::open(path, FLAGS, Mode::empty())?;
        Ok(PolledFile { file })
    }

    /// Reads the whole file again into `buffer`, which grows if it must and should be reused.
    ///
    /// # Errors
    /// When the kernel does not give it: that of a device that is gone, for instance.
    pub fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], ReadError> {
        let length = read_from_start(&self.file, buffer)?;
        Ok(&buffer[..length])
    }
}

/// Such a file fits one page mostly; larger ones are asked for again with more room.
const FIRST_BYTES: usize = 8 << 10;
/// No file of the kernel that is of interest here is larger.
const MAX_BYTES: usize = 4 << 20;

fn read_from_start(file: &OwnedFd, buffer: &mut Vec<u8>) -> Result<usize, ReadError> {
    if buffer.len() < FIRST_BYTES {
        buffer.resize(FIRST_BYTES, 0);
    }
    let mut length = 0;
    loop {
        match rustix::io::pread(file, &mut buffer[length..], length as u64) {
            // The kernel gives less than there is room for only at the end; most of its files in one piece. Asking
            // once more to be told that this was all would double the work.
            Ok(0) => return Ok(length),
            Ok(count) => length += count,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        if length == buffer.len() && length < MAX_BYTES {
            buffer.resize(length * 2, 0);
        } else if length == buffer.len() || ends_a_line(&buffer[..length]) {
            return Ok(length);
        }
    }
}

/// A read that ends in the middle of a line has not come to the end: the kernel gives its longer files a page at a time.
/// It may also stop between two lines, so that only what left most of the room empty counts.
fn ends_a_line(bytes: &[u8]) -> bool {
    bytes.ends_with(b"\n") && bytes.len() < 3 << 10
}

/// All processes, for looking at one small file of each.
#[derive(Debug)]
pub struct Processes {
    directory: Dir,
    text: Vec<u8>,
}

impl Processes {
    /// Opens `/proc`.
    ///
    /// # Errors
    /// When it is not mounted.
    pub fn open() -> Result<Processes, ReadError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let file = rustix::fs::open("/proc", flags, Mode::empty())?;
        Ok(Processes { directory: Dir::new(file)?, text: vec![0; 512] })
    }

    /// Gives every process's number with the first half KiB of its file of this name, in the order of numbers, or why it
    /// cannot be read. One that ends meanwhile is left out.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn walk(
        &mut self,
        name: &str,
        mut each: impl FnMut(u32, Result<&[u8], ReadError>),
    ) -> Result<(), ReadError> {
        self.directory.rewind();
        let mut numbers: Vec<u32> = Vec::new();
        while let Some(entry) = self.directory.read() {
            let entry = entry?;
            let name = entry.file_name().to_str();
            numbers.extend(name.ok().and_then(|name| name.parse::<u32>().ok()));
        }
        numbers.sort_unstable();
        for number in numbers {
            match self.file_of(number, name) {
                Err(ReadError::Absent) => {}
                // The process ended between the opening and the reading.
                Err(ReadError::Other(_)) => {}
                text => each(number, text),
            }
        }
        Ok(())
    }

    /// The first half KiB of a file of one process.
    ///
    /// # Errors
    /// When it is gone or may not be looked at.
    pub fn file_of(&mut self, number: u32, name: &str) -> Result<&[u8], ReadError> {
        let path = format!("{number}/{name}");
        let file = rustix::fs::openat(self.directory.fd()?, path, FLAGS, Mode::empty())?;
        let length = rustix::io::read(&file, &mut self.text)?;
        Ok(&self.text[..length])
    }

    /// Files that one process has open for writing, as the kernel names them (a deleted one ends in " (deleted)"); of many
    /// those with the lowest numbers, `most` descriptors being looked at. Devices, pipes, sockets and the kernel's own files
    /// are left out. Those that `parent` has open under the same number come last: a program most often writes into what it
    /// opened itself, and what it was given is a log that others write too.
    ///
    /// # Errors
    /// When it is gone or may not be looked at.
    pub fn written_files(
        &mut self,
        number: u32,
        parent: Option<u32>,
        most: usize,
    ) -> Result<Vec<String>, ReadError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = format!("{number}/fd");
        let open = rustix::fs::openat(self.directory.fd()?, path, flags, Mode::empty())?;
        let mut descriptors: Vec<u32> = Vec::new();
        for entry in Dir::read_from(&open)? {
            let entry = entry?;
            let name = entry.file_name().to_str();
            descriptors.extend(name.ok().and_then(|name| name.parse::<u32>().ok()));
        }
        descriptors.sort_unstable();
        descriptors.truncate(most);
        let parents = parent.and_then(|parent| {
            let path = format!("{parent}/fd");
            rustix::fs::openat(self.directory.fd().ok()?, path, flags, Mode::empty()).ok()
        });
        let target_of = |open: &OwnedFd, descriptor: u32| {
            let target = rustix::fs::readlinkat(open, descriptor.to_string(), Vec::new()).ok()?;
            Some(target.to_string_lossy().into_owned())
        };
        let (mut files, mut inherited) = (Vec::new(), Vec::new());
        for descriptor in descriptors {
            let Some(target) = target_of(&open, descriptor) else {
                continue;
            };
            if !is_of_a_disk(&target) {
                continue;
            }
            // One that was closed meanwhile is left out.
            let facts = self.file_of(number, &format!("fdinfo/{descriptor}"));
            if !facts.is_ok_and(is_for_writing) {
                continue;
            }
            let of_the_parent = parents.as_ref().and_then(|open| target_of(open, descriptor));
            if of_the_parent.is_some_and(|other| other == target) {
                inherited.push(target)
            } else {
                files.push(target)
            }
        }
        files.append(&mut inherited);
        Ok(files)
    }
}

/// Whether a descriptor's target is a file that may be on a disk: pipes and the like have no path.
fn is_of_a_disk(target: &str) -> bool {
    let elsewhere = ["/dev/", "/proc/", "/sys/", "/memfd:"];
    target.starts_with('/') && !elsewhere.iter().any(|start| target.starts_with(start))
}

/// Whether a descriptor's facts (proc_pid_fdinfo(5)) say that it was opened for writing: the two lowest bits of the octal
/// flags are 1 or 2 then.
fn is_for_writing(facts: &[u8]) -> bool {
    let facts = String::from_utf8_lossy(facts);
    let mut lines = facts.lines();
    let flags = lines.find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u64::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| matches!(flags & 3, 1 | 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_polled_file_says_what_is_there_now() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "one\n").unwrap();
        let kept = PolledFile::open(&path).unwrap();
        let mut buffer = Vec::new();
        assert_eq!(kept.read(&mut buffer).unwrap(), b"one\n");
        let large: Vec<u8> = (0..50_000_u32).map(|i| b'a' + (i % 26) as u8).collect();
        std::fs::write(&path, &large).unwrap();
        assert_eq!(kept.read(&mut buffer).unwrap(), large);
        std::fs::write(&path, "two").unwrap();
        assert_eq!(kept.read(&mut buffer).unwrap(), b"two");
        let missing = PolledFile::open(&directory.path().join("none"));
        assert_eq!(missing.unwrap_err(), ReadError::Absent);
    }

    #[test]
    fn the_kernel_s_own_files_are_read_whole() {
        for path in ["/proc/stat", "/proc/vmstat", "/proc/meminfo", "/proc/self/maps"] {
            let kept = PolledFile::open(Path::new(path)).unwrap();
            let mut buffer = Vec::new();
            for _ in 0..2 {
                let text = kept.read(&mut buffer).unwrap();
                assert!(text.ends_with(b"\n"), "{path}");
                let lines = text.split(|&byte| byte == b'\n').count();
                let whole = std::fs::read(path).unwrap();
                let wanted = whole.split(|&byte| byte == b'\n').count();
                // Its own maps grow while it reads.
                assert!(lines.abs_diff(wanted) <= 4, "{path}: {lines} of {wanted}");
            }
        }
    }

    #[test]
    fn the_walk_finds_this_process() {
        let mut processes = Processes::open().unwrap();
        for _ in 0..2 {
            let mut found = Vec::new();
            processes.walk("comm", |number, text| found.push((number, text.is_ok()))).unwrap();
            assert!(found.contains(&(std::process::id(), true)));
            assert!(found.is_sorted());
        }
    }

    #[test]
    fn files_that_a_process_writes_are_named_and_those_that_it_reads_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let [read, written] = ["read", "written"].map(|name| directory.path().join(name));
        std::fs::write(&read, "words").unwrap();
        let _read = std::fs::File::open(&read).unwrap();
        let _written = std::fs::File::create(&written).unwrap();
        let mut processes = Processes::open().unwrap();
        let files = processes.written_files(std::process::id(), None, 1_000).unwrap();
        assert!(files.contains(&written.display().to_string()), "{files:?}");
        assert!(!files.contains(&read.display().to_string()), "{files:?}");
        assert!(files.iter().all(|file| !file.starts_with("/dev/")));
        assert_eq!(processes.written_files(std::process::id(), None, 0).unwrap(), [""; 0]);
    }

    #[test]
    fn what_a_program_opened_comes_before_what_it_was_given() {
        use std::io::{BufRead, BufReader};
        use std::process::{Command, Stdio};

        let directory = tempfile::tempdir().unwrap();
        let script = "exec 3>>given; sh -c 'exec 4>>own; echo $$; read end'; true";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = shell.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let child: u32 = line.trim().parse().unwrap();
        let mut processes = Processes::open().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let mut names = |parent| {
            let files = processes.written_files(child, parent, 1_000).unwrap();
            let own = |file: &String| {
                // What this program was given itself is not of interest.
                let name = Path::new(file).strip_prefix(&place).ok()?;
                Some(name.to_str().unwrap().to_string())
            };
            files.iter().filter_map(own).collect::<Vec<_>>()
        };
        let (unknown, known) = (names(None), names(Some(shell.id())));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(unknown, ["given", "own"]);
        assert_eq!(known, ["own", "given"]);
    }

    #[test]
    fn only_flags_tell_who_writes() {
        assert!(is_for_writing(b"pos:\t0\nflags:\t0100002\nmnt_id:\t9\n"));
        assert!(is_for_writing(b"flags:\t02001\n"));
        assert!(!is_for_writing(b"flags:\t0100000\n"));
        assert!(!is_for_writing(b"pos:\t0\n") && !is_for_writing(b"flags:\tx\n"));
        assert!(!is_of_a_disk("pipe:[12]") && !is_of_a_disk("/dev/null") && is_of_a_disk("/var"));
    }
}
