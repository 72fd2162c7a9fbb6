//! What killed processes of the lab left in the machine: found by its mark, and removed.
//!
//! A process that ends, or fails, removes what it made itself. One that is killed cannot: its loop devices, what is mounted on them
//! or swaps to them, their limits, its control groups with what runs in them, changed settings and files stay. Its own servers and
//! measurements end with it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::block_group::{self, LimitForAll};
use super::{backing, mark, programs, settings};

/// A loop device that is no longer needed.
#[derive(Debug)]
struct Device {
    node: PathBuf,
    number: (u32, u32),
}

/// Removes everything that processes left which are no more, and gives a line for each thing: what was removed, or why it was not.
/// What living processes use is not touched.
pub fn remove() -> Vec<String> {
    let mut told = Vec::new();
    // First what may use the others.
    for group in block_group::directories().into_iter().flat_map(marked_in) {
        let removed = block_group::remove(&group);
        tell(&mut told, &format!("control group {}", group.display()), removed);
    }
    let devices = devices();
    for node in swaps().filter(|node| devices.iter().any(|device| device.node == *node)) {
        let node = node.display().to_string();
        let done = programs::run("swapoff", &[&node]);
        tell(&mut told, &format!("swap on {node}"), done);
    }
    // What was mounted last, perhaps on another one, is unmounted first.
    for (node, point) in mounts().into_iter().rev() {
        let is_on_a_device = devices.iter().any(|device| device.node == Path::new(&node));
        if is_on_a_device || Path::new(&point).components().any(is_left) {
            let done = programs::run("umount", &[&point]);
            tell(&mut told, &format!("mount at {point}"), done);
        }
    }
    for device in &devices {
        // Where there is no limit for all, none was left.
        let _ = LimitForAll::lift(device.number);
        let node = device.node.display().to_string();
        let done = programs::run("losetup", &["--detach", &node]);
        tell(&mut told, &format!("loop device {node}"), done);
    }
    told.extend(settings::restore_left());
    let places = backing::directories().into_iter().chain([std::env::temp_dir()]);
    let mut paths: Vec<PathBuf> = places.flat_map(marked_in).collect();
    paths.sort();
    paths.dedup();
    for path in paths.iter().filter(|path| is_ours(path)) {
        let removed =
            if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        tell(&mut told, &path.display().to_string(), removed.map_err(Into::into));
    }
    told
}

fn tell<T>(told: &mut Vec<String>, what: &str, done: anyhow::Result<T>) {
    told.push(match done {
        Ok(_) => format!("removed {what}"),
        Err(error) => format!("could not remove {what}: {error:#}"),
    });
}

fn is_left(name: std::path::Component<'_>) -> bool {
    name.as_os_str().to_str().is_some_and(mark::is_left)
}

/// What is in a directory and has the mark of a process that is no more.
fn marked_in(directory: PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let marked = entries.filter(|entry| entry.file_name().to_str().is_some_and(mark::is_left));
    marked.map(|entry| entry.path()).collect()
}

/// Anybody may make a file of any name in these directories. And what something is still mounted in is not to be emptied.
fn is_ours(path: &Path) -> bool {
    let owner = path.symlink_metadata().map(|entry| entry.uid());
    let me = rustix::process::geteuid().as_raw();
    let mut mounts = mounts().into_iter();
    owner.is_ok_and(|owner| owner == me)
        && !mounts.any(|(_, point)| Path::new(&point).starts_with(path))
}

/// Loop devices over files that were left, and those over such devices; these come first, since they have to go first.
fn devices() -> Vec<Device> {
    let all: Vec<(Device, PathBuf)> = loops();
    let is_over_left = |file: &Path| {
        let name = file.file_name().and_then(|name| name.to_str());
        name.is_some_and(mark::is_left) && is_ours(file)
    };
    let below: Vec<PathBuf> = all
        .iter()
        .filter(|(_, file)| is_over_left(file))
        .map(|(device, _)| device.node.clone())
        .collect();
    let (first, second): (Vec<_>, Vec<_>) = all
        .into_iter()
        .filter(|(_, file)| below.contains(file) || is_over_left(file))
        .partition(|(_, file)| below.contains(file));
    let both = first.into_iter().chain(second);
    both.map(|(device, _)| device).collect()
}

/// The loop devices in use, each with its file.
fn loops() -> Vec<(Device, PathBuf)> {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let device = |entry: std::fs::DirEntry| {
        let read = |file: &str| std::fs::read_to_string(entry.path().join(file)).ok();
        let file = read("loop/backing_file")?;
        let number = read("dev")?;
        let (major, minor) = number.trim().split_once(':')?;
        let device = Device {
            node: Path::new("/dev").join(entry.file_name()),
            number: (major.parse().ok()?, minor.parse().ok()?),
        };
        Some((device, PathBuf::from(file.trim_end())))
    };
    entries.filter_map(device).collect()
}

fn swaps() -> impl Iterator<Item = PathBuf> {
    let text = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    let nodes = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    nodes.map(PathBuf::from).collect::<Vec<_>>().into_iter()
}

/// What is mounted, and where, in the order in which it was.
fn mounts() -> Vec<(String, String)> {
    let text = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let both = |line: &str| {
        let mut fields = line.split(' ');
        Some((fields.next()?.to_string(), fields.next()?.to_string()))
    };
    text.lines().filter_map(both).collect()
}
