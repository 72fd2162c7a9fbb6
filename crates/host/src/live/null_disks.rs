//! Disks that answer nothing.
//!
//! A read of such a disk waits in the kernel where no signal may reach it, and with it this program: a process ends only when
//! all its threads do. So what may wait so is read by a program of its own (`head`), which is left behind when it takes too long.
//!
//! Two kinds of file wait for a disk: its node in `/dev`, and the files in its directory `queue` in sysfs, whose locks a driver
//! holds while it waits for requests that are under way (block/blk-sysfs.c, blk_mq_freeze_queue). One disk that is silent is asked no
//! more for a while, so that its many files cost one wait.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::files::ReadError;
use crate::process::programs::{self, Waited};

/// Timeout for a disk. One that has to spin up takes longer; its files are read when it has.
const PATIENCE: Duration = Duration::from_secs(4);

/// A disk that did not answer is tried again after this time.
const ASK_AGAIN: Duration = Duration::from_secs(20);

/// The disks that did not answer, and when they were asked.
static SILENT_NODES: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());
/// The last look at all queues.
static QUEUES: Mutex<Option<Look>> = Mutex::new(None);

/// When all queues were tried, and whose did not answer.
struct Look {
    at: Instant,
    silent: BTreeSet<String>,
}

/// The beginning of a block device; `None` for every other kind of file, and where there is no program for it: these are
/// read as they are.
///
/// # Errors
/// [`ReadError`], also when the disk does not answer: then the text names it.
pub(crate) fn read_node(path: &Path, limit: usize) -> Option<Result<Vec<u8>, ReadError>> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.file_type().is_block_device() || limit > programs::OUTPUT_LIMIT_BYTES {
        return None;
    }
    if let Err(errno) = rustix::fs::access(path, rustix::fs::Access::READ_OK) {
        return Some(Err(errno.into()));
    }
    // A link in /dev/disk or /dev/mapper is another name of the same disk.
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    read_patiently(&real, limit, PATIENCE)
}

fn read_patiently(
    path: &Path,
    limit: usize,
    patience: Duration,
) -> Option<Result<Vec<u8>, ReadError>> {
    let disk = disk_of(&path.file_name()?.to_string_lossy());
    let mut silent = SILENT_NODES.lock().unwrap_or_else(PoisonError::into_inner);
    if silent.get(&disk).is_some_and(|asked| asked.elapsed() < ASK_AGAIN) {
        return Some(Err(does_not_answer(&disk, "it did not a moment ago")));
    }
    let count = limit.to_string();
    let name = path.to_str()?;
    match programs::output_within("head", &["-c", &count, "--", name], patience) {
        Waited::Missing => None,
        Waited::TooLong => {
            silent.insert(disk.clone(), Instant::now());
            Some(Err(does_not_answer(&disk, &within(patience))))
        }
        Waited::Ended(Ok(bytes)) => {
            silent.remove(&disk);
            Some(Ok(bytes))
        }
        Waited::Ended(Err(complaint)) => {
            // "head: error reading '/dev/sda': Input/output error"
            let why = complaint.rsplit(": ").next().unwrap_or(&complaint);
            Some(Err(ReadError::Other(why.to_string())))
        }
    }
}

/// Whether a file in a disk's directory `queue` can be read without waiting; every other file can.
///
/// # Errors
/// [`ReadError::Other`] that names the disk when it does not answer.
pub(crate) fn may_read(path: &Path) -> Result<(), ReadError> {
    let Some(disk) = disk_of_queue(path) else {
        return Ok(());
    };
    let mut queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
    let is_fresh = |look: &&Look| look.at.elapsed() < ASK_AGAIN;
    if queues.as_ref().filter(is_fresh).is_none() {
        *queues = Some(Look {
            at: Instant::now(),
            silent: silent_queues(Path::new("/sys/block"), PATIENCE),
        });
    }
    match &*queues {
        Some(look) if look.silent.contains(&disk) => Err(does_not_answer(&disk, &within(PATIENCE))),
        _ => Ok(()),
    }
}

/// Files of a queue of which each takes another lock.
const TRIED: [&str; 3] = ["scheduler", "logical_block_size", "write_cache"];

/// The disks below a directory whose queue does not answer: all are tried at once, and each alone where that took too long.
fn silent_queues(directory: &Path, patience: Duration) -> BTreeSet<String> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return BTreeSet::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let disks: Vec<(String, Vec<PathBuf>)> = names
        .map(|name| {
            let queue = directory.join(&name).join("queue");
            let files = TRIED.iter().map(|file| queue.join(file));
            (name, files.collect())
        })
        .collect();
    let answers = |disks: &[(String, Vec<PathBuf>)]| {
        let files: Vec<&str> = disks
            .iter()
            .flat_map(|(_, files)| files.iter().filter_map(|file| file.to_str()))
            .collect();
        let arguments = [&["-q", "-c", "1", "--"], &files[..]].concat();
        // What a file says, and that an old kernel does not have one, does not matter here.
        !matches!(programs::output_within("head", &arguments, patience), Waited::TooLong)
    };
    if disks.is_empty() || answers(&disks) {
        return BTreeSet::new();
    }
    let alone = disks.chunks(1).filter(|disk| !answers(disk));
    alone.map(|disk| disk[0].0.clone()).collect()
}

/// "sda" of `/sys/block/sda/queue/scheduler` and of the longer paths below `/sys/devices`.
fn disk_of_queue(path: &Path) -> Option<String> {
    if !path.starts_with("/sys") {
        return None;
    }
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    let queue = names.iter().position(|name| name == "queue")?;
    Some(names.get(queue.checked_sub(1)?)?.to_string())
}

/// "sda" of "sda2", "mmcblk0" of "mmcblk0p1"; a disk's own name as it is.
fn disk_of(name: &str) -> String {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let ends_in_digit = |text: &str| text.ends_with(|c: char| c.is_ascii_digit());
    match stem.strip_suffix('p') {
        Some(disk) if stem != name && ends_in_digit(disk) => disk.into(),
        _ if ["sd", "hd", "vd", "xvd"].iter().any(|kind| name.starts_with(kind)) => stem.into(),
        _ => name.into(),
    }
}

fn within(patience: Duration) -> String {
    format!("nothing came within {} s", patience.as_secs_f32())
}

fn does_not_answer(disk: &str, how: &str) -> ReadError {
    ReadError::Other(format!("{disk} does not answer: {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    /// Opening it blocks until a writer opens it, too.
    fn fifo(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    }

    #[test]
    fn a_disk_that_answers_nothing_is_named_and_asked_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sdsilent1");
        fifo(&path);
        let asked = Instant::now();
        let read = || read_patiently(&path, 512, Duration::from_millis(300)).unwrap();
        assert_eq!(
            read(),
            Err(ReadError::Other("sdsilent does not answer: nothing came within 0.3 s".into()))
        );
        let first = asked.elapsed();
        for _ in 0..20 {
            let again = read().unwrap_err().to_string();
            assert_eq!(again, "sdsilent does not answer: it did not a moment ago");
        }
        assert!(asked.elapsed() < first * 3, "{:?} after {first:?}", asked.elapsed());
    }

    #[test]
    fn a_disk_that_answers_gives_its_bytes_and_one_that_fails_its_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sdfine");
        let bytes: Vec<u8> = (0..70_000_u32).map(|i| i as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let read = |path: &Path, limit| read_patiently(path, limit, PATIENCE).unwrap();
        assert_eq!(read(&path, 65_536).unwrap(), &bytes[..65_536]);
        assert_eq!(read(&path, 100_000).unwrap(), bytes);
        assert_eq!(read(directory.path(), 9), Err(ReadError::Other("Is a directory".into())));
        // No block device: read as it is.
        assert_eq!(read_node(&path, 9), None);
    }

    #[test]
    fn of_many_queues_the_silent_ones_are_found() {
        let directory = tempfile::tempdir().unwrap();
        for disk in ["sda", "sdb", "sdc", "zram0"] {
            let queue = directory.path().join(disk).join("queue");
            std::fs::create_dir_all(&queue).unwrap();
            std::fs::write(queue.join("scheduler"), "none\n").unwrap();
        }
        let patience = Duration::from_millis(400);
        assert_eq!(silent_queues(directory.path(), patience), BTreeSet::new());
        fifo(&directory.path().join("sdb/queue/write_cache"));
        let silent = silent_queues(directory.path(), patience);
        assert_eq!(silent, BTreeSet::from(["sdb".to_string()]));
    }

    #[test]
    fn partitions_belong_to_their_disk() {
        for (name, disk) in [
            ("sda", "sda"),
            ("sda12", "sda"),
            ("mmcblk0", "mmcblk0"),
            ("mmcblk0p2", "mmcblk0"),
            ("nvme0n1p3", "nvme0n1"),
            ("nbd0", "nbd0"),
            ("loop7", "loop7"),
            ("dm-0", "dm-0"),
            ("vda1", "vda"),
        ] {
            assert_eq!(disk_of(name), disk, "{name}");
        }
        let of = |path: &str| disk_of_queue(Path::new(path));
        assert_eq!(of("/sys/block/sda/queue/scheduler").as_deref(), Some("sda"));
        assert_eq!(of("/sys/block/sda/size"), None);
        assert_eq!(of("/srv/queue/x"), None);
    }
}
