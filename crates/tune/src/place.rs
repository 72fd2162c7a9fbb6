//! The directory whose disk is tuned: which disk that is, or why none can be tuned there.

use std::path::{Path, PathBuf};

use rubus_host::Files;
use rubus_machine::parse::mountinfo;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, HopKind, Machine};

/// A directory and the disk below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Absolute path without links.
    pub path: PathBuf,
    /// Filesystem type.
    pub filesystem: String,
    /// Kernel name of the disk.
    pub disk: String,
    /// What the filesystem is on, where that is neither the disk nor a partition of it: `dm-0`.
    pub stacked_on: Option<String>,
    /// The disk is a loop device over a file.
    pub is_loop: bool,
    /// The disk is behind USB.
    pub is_usb: bool,
    /// Options of the mount and of the filesystem.
    pub options: Vec<String>,
}

/// The disk below a directory of a machine.
///
/// # Errors
/// In words, when no disk of this machine, or more than one, is below it.
pub fn of(path: &Path, machine: &Machine, files: &dyn Files) -> Result<Place, String> {
    let shown = path.display();
    let table = files.text(Path::new("/proc/self/mountinfo")).map_err(|error| {
        format!("cannot tell what {shown} is on: /proc/self/mountinfo: {error}")
    })?;
    let (lines, _) = mountinfo::parse(&table);
    let line = mountinfo::holding(&lines, &path.to_string_lossy())
        .ok_or_else(|| format!("cannot tell what {shown} is on: no mount holds it"))?;
    let options: Vec<String> = line.options.iter().chain(&line.super_options).cloned().collect();
    if options.iter().any(|option| option == "ro") {
        return Err(format!(
            "cannot tune {shown}: its filesystem is mounted read-only, and the trial needs a test file there; \
             name a directory that can be written"
        ));
    }
    let none = |why: &str| {
        format!(
            "cannot tune {shown}: {why}; name a directory on a filesystem that lies on a disk of this machine"
        )
    };
    let kind = line.filesystem.as_str();
    if is_network(kind) {
        return Err(none(&format!(
            "it is on a file server ({kind}), whose disk is not this machine's"
        )));
    }
    if kind == "overlay" {
        return Err(none("it is on an overlay, as in a container, which hides its disks"));
    }
    let mounted = machine.mounts.iter().rev().find(|mount| mount.point == line.point);
    let device = mounted
        .and_then(|mount| mount.device.clone())
        .ok_or_else(|| none(&format!("{kind} is on no disk that the kernel names")))?;
    let found = machine
        .device(&device)
        .ok_or_else(|| none(&format!("nothing is known of {device}, on which it is")))?;
    if kind == "btrfs" && is_spread(&found.name, files) {
        return Err(none("it is spread over several disks, and a trial changes one"));
    }
    let disk = disk_below(found, machine).map_err(|why| none(&why))?;
    let is_direct = found.name == disk.name || found.parent.as_deref() == Some(&disk.name);
    Ok(Place {
        path: path.into(),
        filesystem: line.filesystem.clone(),
        disk: disk.name.clone(),
        stacked_on: (!is_direct).then(|| found.name.clone()),
        is_loop: disk.kind == BlockKind::Loop,
        is_usb: disk.path.iter().any(|hop| hop.kind == HopKind::UsbDevice),
        options,
    })
}

/// Whether btrfs has this device as one of several.
fn is_spread(device: &str, files: &dyn Files) -> bool {
    let top = Path::new("/sys/fs/btrfs");
    let volumes = files.list(top).unwrap_or_default();
    let mut members =
        volumes.iter().filter_map(|name| files.list(&top.join(name).join("devices")).ok());
    members.any(|names| names.len() > 1 && names.iter().any(|name| name == device))
}

fn is_network(kind: &str) -> bool {
    const NETWORK: [&str; 9] =
        ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "virtiofs"];
    NETWORK.contains(&kind) || kind.starts_with("fuse.")
}

/// The one disk below a device: a loop device counts as one, since it has a queue of its own.
fn disk_below<'a>(
    device: &'a BlockDevice,
    machine: &'a Machine,
) -> Result<&'a BlockDevice, String> {
    let whole = device.parent.as_deref().and_then(|parent| machine.device(parent));
    let whole = whole.unwrap_or(device);
    let disk = match whole.kind {
        BlockKind::Loop => whole,
        _ => {
            let disks = machine.disks_below(&device.name);
            match disks[..] {
                [disk] => disk,
                [] => return Err(format!("no disk is known below {}", device.name)),
                _ => {
                    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
                    return Err(format!(
                        "it is spread over several disks ({}), and a trial changes one",
                        names.join(", ")
                    ));
                }
            }
        }
    };
    match disk.kind {
        BlockKind::Disk | BlockKind::Loop => Ok(disk),
        BlockKind::Nbd => Err(format!("{} is a network disk", disk.name)),
        BlockKind::Zram | BlockKind::Ram => Err(format!("{} is memory", disk.name)),
        _ => Err(format!("{} is no disk with settings of its own", disk.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_disk_of_this_machine_is_refused_with_the_reason() {
        let line = |kind: &str, options: &str| {
            let text = format!("30 1 0:40 / /data {options} - {kind} source rw\n");
            let files =
                rubus_host::simulated::fake::FakeFiles::new().file("/proc/self/mountinfo", text);
            let machine = rubus_fixtures::unreadable_machine();
            of(Path::new("/data/x"), &machine, &files).unwrap_err()
        };
        for (kind, options, why) in [
            ("nfs4", "rw", "file server"),
            ("fuse.sshfs", "rw", "file server"),
            ("overlay", "rw", "container"),
            ("tmpfs", "rw", "no disk"),
            ("ext4", "ro", "read-only"),
        ] {
            let words = line(kind, options);
            assert!(words.contains(why), "{words}");
        }
    }
}
