//! Whether the completions of a target can be polled for.
//!
//! A ring made with `IORING_SETUP_IOPOLL` asks the driver for completions in a loop instead of waiting for an
//! interrupt. That takes direct I/O, a filesystem that passes the question on, and a device with poll queues.
//! Many kernels take such operations on a device without poll queues, too, and complete them by interrupt, as if
//! nothing had been asked for: so the device's queue is looked at before anything is tried.
//!
//! Source: `io_uring_setup(2)`; kernel documentation, "ABI/stable/sysfs-block", `queue/io_poll`.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rubus_vocabulary::result::{Access, TargetKind};
use rustix::fs::{FileType, fstat, major, minor};

use crate::error::BenchError;
use crate::lanes::Queueing;
use crate::probe::{Verdict, try_polled};
use crate::target::Opened;

/// How to do without.
const WITHOUT: &str = "leave --hipri out";

/// Refuses a target whose completions cannot be polled for, where that is wanted. `device` is the kernel's name
/// of the block device below, if it is known.
///
/// # Errors
/// [`BenchError::Target`], with what was looked at and what to do.
pub(crate) fn check(
    opened: &Opened,
    queueing: Queueing,
    device: Option<&str>,
) -> Result<(), BenchError> {
    if !queueing.polled {
        return Ok(());
    }
    let refused =
        |reason: String| BenchError::Target { path: opened.path.display().to_string(), reason };
    if matches!(opened.kind, TargetKind::Network | TargetKind::Pool) {
        return Err(refused(format!(
            "--hipri polls a device of this machine for completions, and this is none\nAttach the disk, or {WITHOUT}."
        )));
    }
    if opened.access == Access::Buffered {
        return Err(refused(format!(
            "--hipri polls for completions, which takes direct I/O, and the target is reached through the page cache\nName \
             a block device or a directory on ext4, XFS or btrfs, or {WITHOUT}."
        )));
    }
    if let Some(reason) = without_poll_queues(Path::new("/sys"), opened, device) {
        return Err(refused(reason));
    }
    match try_polled(&opened.file) {
        Verdict::Bad(error) => Err(refused(format!(
            "a first read whose completion was polled for failed: {error}\nName a block device or a directory on ext4, XFS \
             or btrfs, or {WITHOUT}."
        ))),
        Verdict::Good | Verdict::Punts => Ok(()),
    }
}

/// Why the device below has nothing to poll; nothing where it has, or where it is not known.
fn without_poll_queues(sysfs: &Path, opened: &Opened, device: Option<&str>) -> Option<String> {
    let stat = fstat(opened.file.as_fd()).ok()?;
    let number = match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => stat.st_rdev,
        _ => stat.st_dev,
    };
    let by_number = sysfs.join(format!("dev/block/{}:{}", major(number), minor(number)));
    let by_name = device.map(|device| sysfs.join("class/block").join(device));
    // A filesystem on several devices has a number that is no device's.
    let place = [Some(by_number), by_name].into_iter().flatten();
    missing(&place.filter_map(|place| disk_of(&place)).next()?)
}

/// The directory of the whole disk that a link in sysfs leads to.
fn disk_of(link: &Path) -> Option<PathBuf> {
    // The link leads to …/block/DISK or …/block/DISK/PARTITION.
    let place = std::fs::canonicalize(link).ok()?;
    if place.join("partition").exists() { Some(place.parent()?.to_path_buf()) } else { Some(place) }
}

/// What to say of a disk whose queue cannot be polled.
fn missing(disk: &Path) -> Option<String> {
    let name = disk.file_name()?.to_string_lossy();
    let said = std::fs::read_to_string(disk.join("queue/io_poll")).ok()?;
    if said.trim() != "0" {
        return None;
    }
    let remedy = match parameter(&name) {
        Some(parameter) => format!(
            "Give it some with the kernel option {parameter}=N (one for each lane) and restart, or {WITHOUT}."
        ),
        None => format!(
            "Its driver may know none, as most do; name an NVMe disk that has some, or {WITHOUT}."
        ),
    };
    Some(format!(
        "--hipri polls for completions, and {name} has no poll queues (/sys/block/{name}/queue/io_poll is 0)\n{remedy}"
    ))
}

/// The option of the kernel that gives such a disk poll queues.
fn parameter(disk: &str) -> Option<&'static str> {
    let known = [
        ("nvme", "nvme.poll_queues"),
        ("nullb", "null_blk.poll_queues"),
        ("vd", "virtio_blk.poll_queues"),
    ];
    let found = known.iter().find(|(start, _)| disk.starts_with(start));
    found.map(|(_, parameter)| *parameter)
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::target::Target;

    /// What is said of a partition of a disk of that name, whose queue says this.
    fn said(name: &str, io_poll: Option<&str>) -> Option<String> {
        let root = tempfile::tempdir().expect("a directory");
        let disk = root.path().join("devices/block").join(name);
        create_dir_all(disk.join("queue")).expect("a directory");
        create_dir_all(disk.join("part1")).expect("a directory");
        write(disk.join("part1/partition"), "1\n").expect("a file");
        if let Some(io_poll) = io_poll {
            write(disk.join("queue/io_poll"), io_poll).expect("a file");
        }
        let link = root.path().join("part1");
        symlink(disk.join("part1"), &link).expect("a link");
        missing(&disk_of(&link).expect("the disk"))
    }

    #[test]
    fn a_disk_without_poll_queues_is_refused_with_what_gives_it_some() {
        let nvme = said("nvme0n1", Some("0\n")).expect("it has none");
        insta::assert_snapshot!(nvme, @r"
        --hipri polls for completions, and nvme0n1 has no poll queues (/sys/block/nvme0n1/queue/io_poll is 0)
        Give it some with the kernel option nvme.poll_queues=N (one for each lane) and restart, or leave --hipri out.
        ");
        let card = said("mmcblk0", Some("0\n")).expect("it has none");
        assert!(card.contains("name an NVMe disk"), "{card}");
        assert_eq!(said("nvme0n1", Some("1\n")), None);
        // A kernel that does not say: the first operation will.
        assert_eq!(said("nvme0n1", None), None);
    }

    #[test]
    fn a_file_without_anything_to_poll_is_refused() {
        let polled = Queueing { polled: true, ..Queueing::USUAL };
        let memory = Opened::new(Target::Ram { size_bytes: 1 << 20 }).expect("memory");
        let error = check(&memory, polled, None).expect_err("nothing to poll");
        assert!(error.to_string().contains("--hipri"), "{error}");
        assert_eq!(check(&memory, Queueing::USUAL, None), Ok(()));
    }
}
