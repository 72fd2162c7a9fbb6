//! Which disk an image is: what clients compare before they go on after a lost connection.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rubus_host::digest::sha256;
use rubus_host::image::Image;
use rubus_nbd::identity::{Identity, Uuid};

/// Where the image keeps a number that nothing else has, if its filesystem can keep one.
const LABEL: &str = "user.rubus.export";

/// The identity of an export of the image at that path.
pub fn of(image: &Image, path: &Path, sync: bool) -> Option<Identity> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let (sum, _) = sha256(&mut marks(image, path)?.as_bytes()).ok()?;
    let export = u128::from_str_radix(sum.get(..32)?, 16).ok()?;
    Some(Identity {
        boot: Uuid::parse(boot.trim())?,
        export: Uuid(export),
        generation: 0,
        sync,
    })
}

/// What tells the image from all others, after a restart of the machine, too. A copy takes the label
/// along, and then its inode and its birth tell it from the original: a backup that was put back is
/// not the disk that a client had.
fn marks(image: &Image, path: &Path) -> Option<String> {
    if image.is_device() {
        let path = std::fs::canonicalize(path).ok()?;
        let number = std::fs::metadata(&path).ok()?.rdev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let kernel = format!("/sys/dev/block/{major}:{minor}");
        // The path may be another device's after the next start.
        let name = device_name(Path::new(&kernel), Path::new("/sys/block"));
        let name = name.unwrap_or_else(|| path.display().to_string());
        return Some(format!("{name} {}", image.size_bytes()));
    }
    if image.label(LABEL).is_none() && image.is_writable() {
        let fresh = std::fs::read_to_string("/proc/sys/kernel/random/uuid").ok()?;
        // Where nothing can be kept there is no label, and the device's number has to do.
        let _ = image.set_label(LABEL, fresh.trim());
    }
    Some(match image.label(LABEL) {
        Some(label) => format!("{label} {}", image.mark(false).ok()?),
        None => image.mark(true).ok()?,
    })
}

/// What the kernel knows a device by, wherever it is plugged in: the number that its maker gave it,
/// or that of the volume, and for a partition its place on that. None where nobody gave one, or two
/// of `disks` have the same: cheap ones often do.
fn device_name(kernel: &Path, disks: &Path) -> Option<String> {
    let kernel = std::fs::canonicalize(kernel).ok()?;
    let partition = word(&kernel, "partition");
    let disk = match partition {
        Some(_) => kernel.parent()?,
        None => &kernel,
    };
    let name = disk_name(disk)?;
    let all = std::fs::read_dir(disks).ok()?.flatten();
    let same = all.filter(|other| disk_name(&other.path()).as_ref() == Some(&name));
    if same.count() > 1 {
        return None;
    }
    Some(match partition {
        Some(number) => format!("{name} {number} {}", word(&kernel, "start")?),
        None => name,
    })
}

fn disk_name(disk: &Path) -> Option<String> {
    const NAMES: [&str; 7] = [
        "wwid",
        "device/wwid",
        "device/serial",
        "serial",
        "device/cid",
        "dm/uuid",
        "md/uuid",
    ];
    NAMES.iter().find_map(|name| word(disk, name))
}

fn word(directory: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(directory.join(name)).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_known_by_what_it_says_and_a_partition_by_its_place_on_it() {
        let directory = tempfile::tempdir().unwrap();
        let disks = directory.path().join("disks");
        let disk = disks.join("sda");
        let partition = disk.join("sda2");
        std::fs::create_dir_all(disk.join("device")).unwrap();
        std::fs::create_dir_all(&partition).unwrap();
        assert_eq!(device_name(&disk, &disks), None);
        std::fs::write(disk.join("device/serial"), "S3RIAL  \n").unwrap();
        assert_eq!(device_name(&disk, &disks).unwrap(), "S3RIAL");
        std::fs::write(disk.join("device/wwid"), "naa.5000\n").unwrap();
        std::fs::write(partition.join("partition"), "2\n").unwrap();
        std::fs::write(partition.join("start"), "2048\n").unwrap();
        assert_eq!(device_name(&disk, &disks).unwrap(), "naa.5000");
        let link = directory.path().join("8:2");
        std::os::unix::fs::symlink(&partition, &link).unwrap();
        assert_eq!(device_name(&link, &disks).unwrap(), "naa.5000 2 2048");
        let twin = disks.join("sdb");
        std::fs::create_dir(&twin).unwrap();
        std::fs::write(twin.join("wwid"), "naa.5000").unwrap();
        assert_eq!(
            device_name(&link, &disks),
            None,
            "nobody knows which of the two"
        );
    }
}
