//! Mounted filesystems: those on a device, in memory, or over the network. What the kernel mounts
//! for its own information (proc, sysfs, cgroup) is left out.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::parse::mountinfo::{self, MountLine};
use rubus_host::Files;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{BlockDevice, Mount};

use crate::probe::sysfs::base_name;

const MOUNTINFO: &str = "/proc/self/mountinfo";

/// Filesystems that hold no files of the user's.
const PSEUDO: [&str; 24] = [
    "autofs",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tracefs",
    "rootfs",
];

/// Filesystems that another machine holds. A server that does not answer would hold up the
/// question about free space for good.
const NETWORK: [&str; 11] = [
    "afs",
    "ceph",
    "cifs",
    "fuse.ceph",
    "fuse.glusterfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "nfs",
    "nfs4",
    "smb3",
];

/// Whether a call on such a filesystem may wait for another machine or program, perhaps for good.
pub fn may_hang(filesystem: &str) -> bool {
    let is_of_program = filesystem.starts_with("fuse") && filesystem != "fusectl";
    // What an automount point stands for is mounted by the first call that reaches it, and that may be a share.
    let is_of_others = matches!(filesystem, "9p" | "autofs" | "virtiofs");
    is_of_program || is_of_others || NETWORK.contains(&filesystem)
}

/// The mount table with the kernel name of the block device below each mount.
#[derive(Clone, Debug, Default)]
pub(crate) struct MountTable {
    lines: Vec<MountLine>,
    devices: Vec<Option<String>>,
    /// The first line of each device.
    by_device: HashMap<String, usize>,
    /// The last line of each mount point, which hides the others.
    by_point: HashMap<String, usize>,
}

impl MountTable {
    /// Reads the table. `numbers` are the block devices by number ("179:2") and kernel name.
    pub(crate) fn read(files: &dyn Files, numbers: &[(String, String)]) -> MountTable {
        let text = files.text(Path::new(MOUNTINFO)).unwrap_or_default();
        let (lines, _) = mountinfo::parse(&text);
        let numbers = Numbers {
            names: numbers.iter().rev().map(|(number, name)| (number.as_str(), name)).collect(),
            known: numbers.iter().map(|(_, name)| name.as_str()).collect(),
        };
        let devices: Vec<Option<String>> =
            lines.iter().map(|line| device_of(files, line, &numbers)).collect();
        let mut by_device = HashMap::new();
        for (at, device) in devices.iter().enumerate() {
            if let Some(device) = device {
                by_device.entry(device.clone()).or_insert(at);
            }
        }
        let points = lines.iter().enumerate().map(|(at, line)| (line.point.clone(), at));
        let by_point = points.collect();
        MountTable { lines, devices, by_device, by_point }
    }

    /// The filesystem mounted from a block device.
    pub(crate) fn filesystem_on(&self, name: &str) -> Option<&str> {
        self.by_device.get(name).map(|at| self.lines[*at].filesystem.as_str())
    }

    /// The block device that the file at an absolute path is stored on.
    pub(crate) fn device_holding(&self, path: &str) -> Option<&str> {
        let mut above = Path::new(path).ancestors();
        let at = above.find_map(|point| self.by_point.get(point.to_str()?))?;
        self.devices[*at].as_deref()
    }
}

/// Block devices by number ("179:2"), and their names.
struct Numbers<'a> {
    names: HashMap<&'a str, &'a String>,
    known: HashSet<&'a str>,
}

/// The kernel name of the block device below a mount. Filesystems over several devices (btrfs,
/// bcachefs) have a number of their own with major 0; there the source counts.
fn device_of(files: &dyn Files, line: &MountLine, numbers: &Numbers<'_>) -> Option<String> {
    let (major, minor) = line.device;
    let number = format!("{major}:{minor}");
    if let Some(name) = numbers.names.get(number.as_str()) {
        return Some((*name).clone());
    }
    // bcachefs joins its devices with colons.
    let source = line.source.split(':').next().unwrap_or_default();
    if !source.starts_with("/dev/") {
        return None;
    }
    let is_known = |name: &str| numbers.known.contains(name);
    let direct = source.trim_start_matches("/dev/");
    if is_known(direct) {
        return Some(direct.to_string());
    }
    // /dev/mapper/…, /dev/disk/by-uuid/… are links.
    let real = files.real_path(Path::new(source)).ok()?;
    let name = base_name(&real.to_string_lossy()).to_string();
    is_known(&name).then_some(name)
}

/// The mounted filesystems that sit on a device, in memory, or come over the network, in the
/// kernel's order. Of several mounts on one point only the last is seen, so only it is listed.
pub fn mounts(files: &dyn Files, devices: &[BlockDevice]) -> Vec<Mount> {
    let numbers: Vec<(String, String)> =
        devices.iter().map(|device| (device.major_minor.clone(), device.name.clone())).collect();
    let table = MountTable::read(files, &numbers);
    table
        .lines
        .iter()
        .zip(&table.devices)
        .enumerate()
        .filter(|(at, (line, device))| {
            let is_hidden = table.by_point.get(&line.point) != Some(at);
            !is_hidden && matters(line, device.is_some())
        })
        .map(|(_, (line, device))| mount(files, line, device.clone()))
        .collect()
}

fn matters(line: &MountLine, has_device: bool) -> bool {
    let filesystem = line.filesystem.as_str();
    let is_below = |directory: &str| line.point.starts_with(directory);
    if has_device {
        return true;
    }
    if PSEUDO.contains(&filesystem) || is_below("/sys/") || is_below("/proc/") {
        return false;
    }
    // systemd hands every service its own small one.
    if is_below("/run/credentials/") {
        return false;
    }
    // Other FUSE filesystems show what is already somewhere else (desktop portals, containers).
    !filesystem.starts_with("fuse") || NETWORK.contains(&filesystem)
}

fn mount(files: &dyn Files, line: &MountLine, device: Option<String>) -> Mount {
    let source = format!("statvfs {}", line.point);
    let space = if NETWORK.contains(&line.filesystem.as_str()) {
        Err("not asked, because a server that does not answer would block the survey".to_string())
    } else {
        files.space(Path::new(&line.point)).map_err(|error| error.to_string())
    };
    let fact = |bytes: Option<u64>| match (&space, bytes) {
        (Ok(_), Some(bytes)) => Fact::known(bytes, &source),
        (Err(error), _) => Fact::unknown(error, &source),
        (Ok(_), None) => Fact::unknown("no answer", &source),
    };
    let answered = space.as_ref().ok();
    Mount {
        point: line.point.clone(),
        source: line.source.clone(),
        device,
        root: line.root.clone(),
        filesystem: line.filesystem.clone(),
        options: options(line),
        compression: compression(&line.super_options),
        size_bytes: fact(answered.map(|space| space.size_bytes)),
        available_bytes: fact(answered.map(|space| space.available_bytes)),
    }
}

/// Mount and superblock options together. Both say ro or rw; what holds is ro if either does, and
/// stands first.
fn options(line: &MountLine) -> Vec<String> {
    let is_access = |option: &&String| matches!(option.as_str(), "ro" | "rw");
    let is_read_only = line.options.iter().chain(&line.super_options).any(|option| option == "ro");
    let mut options = vec![if is_read_only { "ro" } else { "rw" }.to_string()];
    for option in line.options.iter().chain(&line.super_options) {
        if !is_access(&option) && !options.contains(option) {
            options.push(option.clone());
        }
    }
    options
}

/// The compression that new data gets: btrfs `compress=zstd:3`, f2fs `compress_algorithm=lz4`,
/// ubifs `compr=zstd`, bcachefs `compression=lz4`.
fn compression(options: &[String]) -> Option<String> {
    options
        .iter()
        .filter_map(|option| option.split_once('='))
        .filter(|(name, _)| {
            matches!(
                *name,
                "compress" | "compress-force" | "compress_algorithm" | "compr" | "compression"
            )
        })
        .map(|(_, value)| value.to_string())
        .rfind(|value| !matches!(value.as_str(), "no" | "none" | "off"))
}

#[cfg(test)]
mod tests;
