//! Which disk an image is: what clients compare before they go on after a lost connection.

use std::path::Path;

use rubus_host::block::image::Image;
use rubus_host::files::clone_file::random_uuid;
use rubus_host::files::digest::sha256;
use rubus_host::files::own_files;
use rubus_nbd::identity::{Identity, Uuid};
use rubus_nbd::server::file_disk::FileDisk;
use rubus_nbd::server::ledger::{self, Ledger, Noted, Seen, Told, judge};
use rubus_nbd::server::overlay;
use rubus_nbd::server::place::Place;

/// Where the image keeps a number that nothing else has, if its filesystem can keep one.
const LABEL: &str = "user.rubus.export";

/// Where it keeps what the last server of it saw.
const NOTE: &str = "user.rubus.served";

/// Which disk an export is, and what is kept about it for the next server.
pub struct Known {
    /// What clients are told; `None` if the disk cannot be identified.
    pub identity: Option<Identity>,
    /// Where our own writes are noted.
    pub ledger: Option<Ledger>,
}

/// Finds out which disk the image at that path is, and whether its bytes are those that the last server left.
pub fn of(image: &Image, path: &Path, sync: bool) -> Known {
    known(image, path, sync).unwrap_or(Known { identity: None, ledger: None })
}

fn known(image: &Image, path: &Path, sync: bool) -> Option<Known> {
    let boot = own_files::text(Path::new("/proc/sys/kernel/random/boot_id")).ok()?;
    let boot = Uuid::parse(boot.trim())?;
    let before = seen(image, path, boot)?;
    let (sum, _) = sha256(&mut marks(image, path)?.as_bytes()).ok()?;
    let export = Uuid(u128::from_str_radix(sum.get(..32)?, 16).ok()?);
    let name = format!("{}{export}", ledger::PREFIX);
    let fresh = Uuid::parse(random_uuid().ok()?.trim())?;
    let noted = image.label(NOTE).and_then(|text| Noted::parse(&text));
    let ledger = Ledger::find(&name);
    let kept = ledger.as_ref().map(Ledger::kept);
    let told = judge(&before, kept.as_ref(), noted.as_ref(), fresh);
    if image.is_writable() {
        let is_new = noted.is_some_and(|noted| noted.generation != told.generation);
        let note = Noted { boot, epoch: told.epoch, generation: told.generation, ended: None };
        // Where nothing can be kept, memory has to do.
        if image.set_label(NOTE, &note.to_string()).is_ok() && is_new {
            // After a power cut the old generation would be told again.
            let _ = image.sync_whole();
        }
    }
    let ledger = ledger.or_else(|| Ledger::create(&name).ok());
    // A reader changes nothing: what a killed writer left is the next writer's to judge.
    let is_news = kept.is_none_or(|kept| kept.generation != told.generation);
    if let Some(ledger) = ledger.as_ref().filter(|_| image.is_writable() || is_news) {
        ledger.keep(&seen(image, path, boot)?, &told);
    }
    if let Some(ledger) = &ledger {
        let noted = image.label(NOTE).and_then(|text| Noted::parse(&text));
        let is_noted =
            noted.is_some_and(|noted| (noted.boot, noted.generation) == (boot, told.generation));
        let place = place(image, path).filter(|_| is_noted);
        ledger.keep_place(place.as_ref());
    }
    Some(Known {
        identity: Some(Identity { boot: told.epoch, export, generation: told.generation, sync }),
        ledger: ledger.filter(|_| image.is_writable()),
    })
}

/// Where an image is. A device is none.
fn place(image: &Image, path: &Path) -> Option<Place> {
    if image.is_device() {
        return None;
    }
    Some(Place { path: own_files::real_path(path).ok()?, inode: image.inode().ok()? })
}

/// Forgets what earlier servers have kept about images and clones that are gone.
pub fn sweep() {
    let inode_at = |path: &Path| own_files::inode(path);
    // What cannot be forgotten now takes memory until the machine restarts.
    let _ = ledger::sweep(&inode_at);
    let _ = overlay::sweep(&inode_at);
}

/// Keeps how an image is left whose writes are all on stable storage.
pub fn ended(disk: &FileDisk, path: &Path) {
    let (image, Some(ledger)) = (disk.image(), disk.ledger()) else {
        return;
    };
    let kept = ledger.kept();
    let (boot, epoch, generation) = (kept.seen.boot, kept.epoch, kept.generation);
    let Some(now) = seen(image, path, boot) else {
        return;
    };
    let note = Noted {
        boot,
        epoch,
        generation,
        ended: now.times.map(|(written_ns, _)| (written_ns, now.size_bytes)),
    };
    let _ = image.set_label(NOTE, &note.to_string());
    // The note itself has changed the file.
    if let Some(now) = seen(image, path, boot) {
        ledger.keep(&now, &Told { epoch, generation });
    }
}

/// What can be seen of an image.
fn seen(image: &Image, path: &Path, boot: Uuid) -> Option<Seen> {
    if image.is_device() {
        let (major, minor) = own_files::device_number(path).ok()?;
        return Some(Seen {
            boot,
            size_bytes: image.size_bytes(),
            times: None,
            diskseq: diskseq(Path::new(&format!("/sys/dev/block/{major}:{minor}"))),
        });
    }
    let (size_bytes, written_ns, changed_ns) = image.times().ok()?;
    Some(Seen {
        boot,
        size_bytes,
        times: (!image.is_remote()).then_some((written_ns, changed_ns)),
        diskseq: None,
    })
}

/// The number of a disk, or of the disk that a partition is on.
fn diskseq(kernel: &Path) -> Option<u64> {
    let kernel = own_files::real_path(kernel).ok()?;
    let number = word(&kernel, "diskseq").or_else(|| word(kernel.parent()?, "diskseq"))?;
    number.parse().ok()
}

/// What tells the image from all others, after a restart of the machine, too. A copy takes the label
/// along, and then its inode and its birth tell it from the original: a backup that was put back is
/// not the disk that a client had.
fn marks(image: &Image, path: &Path) -> Option<String> {
    if image.is_device() {
        let path = own_files::real_path(path).ok()?;
        let (major, minor) = own_files::device_number(&path).ok()?;
        let kernel = format!("/sys/dev/block/{major}:{minor}");
        // The path may be another device's after the next start.
        let name = device_name(Path::new(&kernel), Path::new("/sys/block"));
        let name = name.unwrap_or_else(|| path.display().to_string());
        return Some(format!("{name} {}", image.size_bytes()));
    }
    if image.label(LABEL).is_none() && image.is_writable() {
        let fresh = own_files::text(Path::new("/proc/sys/kernel/random/uuid")).ok()?;
        // Where nothing can be kept there is no label, and the device's number has to do.
        let _ = image.set_label(LABEL, fresh.trim());
    }
    Some(match image.label(LABEL) {
        Some(label) => format!("{label} {}", image.mark(false).ok()?),
        None => image.mark(true).ok()?,
    })
}

/// A stable name of a device, independent of its port: the maker's serial number or the volume's
/// UUID, and for a partition its place on it. `None` if there is none, or if two of `disks` share
/// it, as cheap ones often do.
fn device_name(kernel: &Path, disks: &Path) -> Option<String> {
    let kernel = own_files::real_path(kernel).ok()?;
    let partition = word(&kernel, "partition");
    let disk = match partition {
        Some(_) => kernel.parent()?,
        None => &kernel,
    };
    let name = disk_name(disk)?;
    let all = own_files::list(disks).ok()?.into_iter();
    let same = all.filter(|other| disk_name(other).as_ref() == Some(&name));
    if same.count() > 1 {
        return None;
    }
    Some(match partition {
        Some(number) => format!("{name} {number} {}", word(&kernel, "start")?),
        None => name,
    })
}

fn disk_name(disk: &Path) -> Option<String> {
    const NAMES: [&str; 7] =
        ["wwid", "device/wwid", "device/serial", "serial", "device/cid", "dm/uuid", "md/uuid"];
    NAMES.iter().find_map(|name| word(disk, name))
}

fn word(directory: &Path, name: &str) -> Option<String> {
    let text = own_files::text(&directory.join(name)).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use std::sync::Arc;

    use rubus_nbd::server::disk::Disk;

    use super::*;

    fn served(path: &Path) -> (FileDisk, Identity) {
        let image = Arc::new(Image::open(path, true).unwrap());
        let known = of(&image, path, false);
        let disk = FileDisk::new(image).noting_in(known.ledger);
        (disk, known.identity.unwrap())
    }

    fn forget(identity: &Identity) {
        let name = format!("{}{}", ledger::PREFIX, identity.export);
        rubus_host::files::shm_words::forget(&name).unwrap();
    }

    #[test]
    fn servers_that_follow_one_another_tell_the_same_and_what_others_wrote_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk.img");
        let backup = vec![1; 8192];
        std::fs::write(&path, &backup).unwrap();
        let (disk, first) = served(&path);
        disk.write(0, &[2]).unwrap();
        // Killed.
        drop(disk);
        let (disk, killed) = served(&path);
        assert_eq!(killed, first);
        disk.write_durably(0, &[3]).unwrap();
        disk.flush().unwrap();
        ended(&disk, &path);
        drop(disk);
        let (disk, clean) = served(&path);
        assert_eq!(clean, first);
        ended(&disk, &path);
        drop(disk);
        // A backup is copied into it: name, inode, size and label stay.
        std::fs::write(&path, &backup).unwrap();
        let (disk, replaced) = served(&path);
        assert_eq!((replaced.export, replaced.boot), (first.export, first.boot));
        assert_ne!(replaced.generation, first.generation);
        // The same under a server that was killed.
        disk.write(0, &[2]).unwrap();
        drop(disk);
        rubus_host::clock::sleep(std::time::Duration::from_millis(100));
        std::fs::write(&path, &backup).unwrap();
        let (disk, again) = served(&path);
        assert_ne!(again.generation, replaced.generation);
        // A reader is told the same.
        ended(&disk, &path);
        drop(disk);
        let image = Image::open(&path, false).unwrap();
        assert_eq!(of(&image, &path, false).identity, Some(again));
        forget(&first);
    }

    #[test]
    fn an_image_that_was_moved_and_written_over_is_another_one_after_a_sweep() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk.img");
        std::fs::write(&path, vec![1; 8192]).unwrap();
        let (disk, first) = served(&path);
        disk.write(0, &[2]).unwrap();
        let name = format!("{}{}", ledger::PREFIX, first.export);
        let moved = directory.path().join("moved.img");
        std::fs::rename(&path, &moved).unwrap();
        sweep();
        assert!(Ledger::find(&name).is_some(), "its server is there");
        // Killed.
        drop(disk);
        std::fs::rename(&moved, &path).unwrap();
        sweep();
        assert!(Ledger::find(&name).is_some(), "the image is there");
        std::fs::rename(&path, &moved).unwrap();
        std::fs::write(&moved, vec![3; 8192]).unwrap();
        sweep();
        assert!(Ledger::find(&name).is_none(), "the image is gone");
        let (disk, second) = served(&moved);
        assert_eq!(second.export, first.export);
        assert_ne!(second.generation, first.generation);
        drop(disk);
        let (_disk, third) = served(&moved);
        assert_eq!(third, second);
        forget(&first);
    }

    #[test]
    fn a_server_that_lost_writes_is_followed_by_one_that_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk.img");
        std::fs::write(&path, vec![1; 8192]).unwrap();
        let (disk, before) = served(&path);
        let lost = Uuid(77);
        disk.ledger().unwrap().lost(lost);
        drop(disk);
        let (_disk, now) = served(&path);
        assert_eq!(now.boot, lost);
        assert_eq!((now.export, now.generation), (before.export, before.generation));
        forget(&before);
    }

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
        assert_eq!(diskseq(&partition), None);
        std::fs::write(disk.join("diskseq"), "12\n").unwrap();
        assert_eq!(diskseq(&partition), Some(12));
        assert_eq!(device_name(&disk, &disks).unwrap(), "naa.5000");
        let link = directory.path().join("8:2");
        std::os::unix::fs::symlink(&partition, &link).unwrap();
        assert_eq!(device_name(&link, &disks).unwrap(), "naa.5000 2 2048");
        let twin = disks.join("sdb");
        std::fs::create_dir(&twin).unwrap();
        std::fs::write(twin.join("wwid"), "naa.5000").unwrap();
        assert_eq!(device_name(&link, &disks), None, "it is unknown which of the two");
    }
}
