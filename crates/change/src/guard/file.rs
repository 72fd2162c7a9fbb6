//! Regular files that stand for a device: the backing of a loop device, an active swap file, an image that a server or a virtual
//! machine has open. What changes them changes a filesystem or memory that is in use. A file is what its numbers say: its names
//! may be many.

use std::path::{Path, PathBuf};

use rubus_host::Files;
use rubus_host::block::blockdev::{DeviceNumber, LoopBacking, NodeKind, Pinned};
use rubus_host::files::own_files;
use rubus_host::process::openers::{self, Opener};
use rubus_machine::parse::swaps;

use super::exporters;
use super::facts::{TargetFacts, UseKind};
use super::judge::{self, Reason, Verdict, quoted};
use super::refusal::Refusal;
use super::sysfs::Sys;
use super::uses::{self, LoopFact};

/// A loop device, what it stands on, and where it is mounted.
#[derive(Clone, Debug)]
struct LoopOver {
    name: String,
    backing: Option<LoopBacking>,
    points: Vec<String>,
}

/// What a file is by its numbers: its names may be many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileNumbers {
    on_device: DeviceNumber,
    inode: u64,
}

/// Allows a regular file to be overwritten unless it is in use: by the kernel as the backing of a loop device or as swap, by a
/// program that has it open for writing or serves it, or that has locked it. Whether
/// its contents may be lost is not asked here. What is no regular file is allowed: the device guard has its say on devices.
///
/// # Errors
/// A [`Refusal`] with everything that uses it.
pub fn file_unused(files: &dyn Files, path: &Path) -> Result<(), Refusal> {
    let Ok(node) = Pinned::new(path) else {
        return Ok(());
    };
    if node.kind() != NodeKind::Regular {
        return Ok(());
    }
    let numbers = FileNumbers { on_device: node.on_device(), inode: node.inode() };
    let mut reasons = Vec::new();
    let mut unreadable = Vec::new();
    let sys = Sys::new(files);
    let over = |on_it: LoopFact| LoopOver {
        points: mount_points(files, &on_it.name),
        name: on_it.name,
        backing: on_it.backing,
    };
    let all = super::loops(&sys, &mut unreadable);
    // Only those over this very file are asked who uses them.
    let on_it = all.into_iter().filter(|on_it| is_over(on_it.backing, numbers));
    let loops: Vec<LoopOver> = on_it.map(over).collect();
    reasons.extend(judge_kernel(numbers, &loops, &swap_files(files, &mut unreadable)));
    let openers = openers::file_openers(numbers.on_device, numbers.inode);
    let users = openers.iter().filter(|opener| is_user(opener));
    let users: Vec<Reason> = users.map(open_in).collect();
    // Not every user sees who has it open.
    let is_ours = openers.iter().any(|opener| opener.pid == std::process::id());
    if users.is_empty() && !is_ours && own_files::is_locked(path) {
        reasons.push(Reason::lasting(
            "Another program has it open and locked.".into(),
            "Stop that program first; `sudo fuser -v` names it.".into(),
        ));
    }
    reasons.extend(users);
    let exported = exporters::all(files).into_iter().filter(|exported| {
        Pinned::new(&exported.path)
            .is_ok_and(|own| (own.on_device(), own.inode()) == (numbers.on_device, numbers.inode))
    });
    reasons.extend(exported.map(|exported| {
        Reason::lasting(
            format!("It is exported by {}.", exported.by),
            "Stop that export first.".into(),
        )
    }));
    reasons.extend(unreadable.into_iter().map(|why| {
        Reason::lasting(
            format!("Not everything could be checked: {why}."),
            "Try as root, with /proc and /sys mounted.".into(),
        )
    }));
    if reasons.is_empty() {
        return Ok(());
    }
    let asked = path.display().to_string();
    Err(Refusal::new(&TargetFacts::Named { asked }, Verdict::Refused(reasons)))
}

/// Whether a process writes to the file, or serves it to others. This program asks before it opens a file.
fn is_user(opener: &Opener) -> bool {
    let is_own = opener.pid == std::process::id();
    !is_own && (opener.writes || uses::serves(&opener.name))
}

fn open_in(opener: &Opener) -> Reason {
    let (what, next) = judge::opened("It", opener.pid, &opener.name, opener.writes);
    Reason::lasting(what, next)
}

fn is_over(backing: Option<LoopBacking>, file: FileNumbers) -> bool {
    backing.is_some_and(|backing| {
        backing.block.is_none()
            && (backing.on_device, backing.inode) == (file.on_device, file.inode)
    })
}

/// Every reason of the kernel against overwriting a file.
fn judge_kernel(
    file: FileNumbers,
    loops: &[LoopOver],
    swaps: &[(PathBuf, FileNumbers)],
) -> Vec<Reason> {
    let loops = loops.iter().filter(|on_it| is_over(on_it.backing, file));
    let of_loop = |on_it: &LoopOver| {
        let detach = format!("`losetup -d /dev/{}`", on_it.name);
        match on_it.points.first() {
            Some(point) => Reason::lasting(
                format!(
                    "It is the backing file of /dev/{}, which is mounted at {}.",
                    on_it.name,
                    on_it.points.join(", ")
                ),
                format!("Unmount it (`umount {}`) and detach it ({detach}).", quoted(point)),
            ),
            None => Reason::lasting(
                format!("It is the backing file of the loop device /dev/{}.", on_it.name),
                format!("Detach it with {detach}."),
            ),
        }
    };
    let swaps = swaps.iter().filter(|(_, numbers)| *numbers == file);
    let of_swap = |(path, _): &(PathBuf, FileNumbers)| {
        let path = path.display().to_string();
        Reason::lasting(
            format!("It is active swap ({path})."),
            format!("Switch it off with `swapoff {}`.", quoted(&path)),
        )
    };
    loops.map(of_loop).chain(swaps.map(of_swap)).collect()
}

/// Where a loop device or one of its partitions is mounted.
fn mount_points(files: &dyn Files, name: &str) -> Vec<String> {
    let path = PathBuf::from(format!("/dev/{name}"));
    let Ok(node) = super::pin(&path) else {
        return Vec::new();
    };
    let facts = super::gather(files, &path, super::Opened::not(&node), false);
    let mut points = Vec::new();
    for used in facts.uses {
        if let UseKind::Mounted { points: more, .. } | UseKind::Btrfs { points: more, .. } =
            used.kind
        {
            points.extend(more);
        }
    }
    points
}

/// Active swap files by their numbers. What has gone from its path is in use all the same, and cannot be named.
fn swap_files(files: &dyn Files, unreadable: &mut Vec<String>) -> Vec<(PathBuf, FileNumbers)> {
    let path = Path::new("/proc/swaps");
    let text = match files.text(path) {
        Ok(text) => text,
        // A kernel without swap has no such file.
        Err(rubus_host::ReadError::Absent) => return Vec::new(),
        Err(why) => {
            unreadable.push(super::sysfs::cannot_read(path, &why));
            return Vec::new();
        }
    };
    let areas = swaps::parse(&text).0.into_iter();
    let with_numbers = areas.filter_map(|area| {
        let node = Pinned::new(Path::new(&area.path)).ok()?;
        let numbers = FileNumbers { on_device: node.on_device(), inode: node.inode() };
        (node.kind() == NodeKind::Regular).then(|| (PathBuf::from(area.path), numbers))
    });
    with_numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceNumber = DeviceNumber { major: 179, minor: 2 };

    fn file(inode: u64) -> FileNumbers {
        FileNumbers { on_device: DISK, inode }
    }

    fn over(inode: u64, points: &[&str]) -> LoopOver {
        LoopOver {
            name: "loop3".into(),
            backing: Some(LoopBacking { on_device: DISK, inode, block: None }),
            points: points.iter().map(|point| point.to_string()).collect(),
        }
    }

    #[test]
    fn the_backing_file_of_a_loop_device_is_in_use() {
        let [mounted] = &judge_kernel(file(7), &[over(7, &["/mnt/my data"])], &[])[..] else {
            panic!("one reason");
        };
        assert!(mounted.what.contains("/dev/loop3, which is mounted at /mnt/my data"));
        assert!(mounted.next.contains("`umount '/mnt/my data'`"), "{}", mounted.next);
        let idle = judge_kernel(file(7), &[over(7, &[])], &[]);
        assert!(idle[0].next.contains("losetup -d /dev/loop3"));
        assert_eq!(judge_kernel(file(8), &[over(7, &["/mnt"])], &[]), []);
    }

    #[test]
    fn a_loop_device_over_a_device_is_over_no_file() {
        let mut on_block = over(7, &[]);
        on_block.backing =
            on_block.backing.map(|backing| LoopBacking { block: Some(DISK), ..backing });
        assert_eq!(judge_kernel(file(7), &[on_block], &[]), []);
    }

    #[test]
    fn an_active_swap_file_is_in_use_whatever_its_name() {
        let swaps = [(PathBuf::from("/var/swap"), file(9))];
        let reasons = judge_kernel(file(9), &[], &swaps);
        assert!(reasons[0].next.contains("swapoff /var/swap"));
        assert_eq!(judge_kernel(file(10), &[], &swaps), []);
    }
}
