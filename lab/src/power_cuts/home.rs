//! The root from which a board starts before a change: the card's own, or one on a USB disk to which an earlier change has moved the
//! system. Its boot partition is the card's in either case.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::cache::Cache;
use crate::firmware;
use crate::kit::Kit;
use crate::outside::{self, Manifest, Mounted, Sums, is_below};

use super::STATE_DIRECTORY;
use super::other_root::{self, SUBVOLUME};
use super::start::start;

/// Begins the names of files on the card's own root, where the system has moved to a disk. They are to stay as they are, but for the journals
/// of the change by which it moved, which has both roots.
const CARD_ROOT: &str = "the card's ";

/// Where the root is on which a change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// On the card, behind its boot partition.
    Card,
    /// On a USB disk.
    Disk {
        /// Its number among the USB disks.
        usb: usize,
        /// Where its filesystem begins, in bytes.
        start: u64,
    },
}

impl Home {
    /// That of a board that is off, by what its firmware would start.
    pub(super) fn of(cache: &Cache, kit: &Kit) -> Result<Self> {
        let place = cache.work_directory()?;
        let start = start(kit, false, &place.path().join("start"))?;
        let found = other_root::find(kit, start.root())?;
        Ok(match found {
            Some((usb, start)) => Self::Disk { usb, start },
            None => Self::Card,
        })
    }

    /// The number of its disk among those of a board, of which the card is the first.
    pub(super) fn disk(self) -> usize {
        match self {
            Self::Card => 0,
            Self::Disk { usb, .. } => usb + 1,
        }
    }

    /// What the root is called in a row.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Card => "/dev/card2",
            Self::Disk { .. } => "/dev/disk before",
        }
    }

    /// Mounts the root.
    pub(super) fn mounted<'a>(self, kit: &Kit, place: &'a Path) -> Result<Mounted<'a>> {
        match self {
            Self::Card => {
                let (_, root_start) = firmware::partition_starts(&kit.sd())?;
                Mounted::at(&kit.sd(), root_start, place)
            }
            // On btrfs a subvolume is the root; another filesystem knows no such option.
            Self::Disk { usb, start } => Mounted::subvolume(&kit.usb(usb), start, SUBVOLUME, place)
                .or_else(|_| Mounted::at(&kit.usb(usb), start, place)),
        }
    }

    /// The fingerprints of all files of the root, of the boot partition, and of the card's own root where that is another.
    pub(super) fn manifest(self, kit: &Kit) -> Result<Manifest> {
        if self == Self::Card {
            return outside::manifest(&kit.sd());
        }
        let place = tempfile::tempdir()?;
        self.opened(kit, place.path(), |root, boot| {
            self.files(kit, root, boot, &mut Sums::default())
        })
    }

    /// Looks at the root, which is mounted below `place` meanwhile, and at a copy of the boot partition's files there.
    pub(super) fn opened<T>(
        self,
        kit: &Kit,
        place: &Path,
        look: impl FnOnce(&Path, &Path) -> Result<T>,
    ) -> Result<T> {
        let [root, boot] = ["root", "boot"].map(|name| place.join(name));
        fs::create_dir(&root)?;
        fs::create_dir(&boot)?;
        let (boot_start, _) = firmware::partition_starts(&kit.sd())?;
        outside::copy_boot_files(&kit.sd(), boot_start, &boot)?;
        let _mounted = self.mounted(kit, &root)?;
        look(&root, &boot)
    }

    /// The same of a root that is mounted, with the boot partition's files in `boot`. What is in `sums` is not read; they are of files on
    /// the card.
    pub(super) fn files(
        self,
        kit: &Kit,
        root: &Path,
        boot: &Path,
        sums: &mut Sums,
    ) -> Result<Manifest> {
        if self == Self::Card {
            return outside::manifest_of(root, Some(boot), sums);
        }
        // Where a file of btrfs lies on its disk is not what filefrag says, so each is read again.
        let mut files = outside::manifest_of(root, Some(boot), &mut Sums::default())?;
        let place = tempfile::tempdir()?;
        let _mounted = Self::Card.mounted(kit, place.path())?;
        let own = outside::manifest_of(place.path(), None, sums)?;
        let own = own.into_iter().filter(|(path, _)| !is_below(path, STATE_DIRECTORY));
        files.extend(own.map(|(path, seen)| (format!("{CARD_ROOT}{path}"), seen)));
        Ok(files)
    }

    /// The journals of the changes that the root knows, in their order.
    pub(super) fn journals(self, kit: &Kit) -> Result<Vec<String>> {
        let place = tempfile::tempdir()?;
        let _mounted = self.mounted(kit, place.path())?;
        other_root::journals(place.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Board;
    use crate::kit::UsbDisk;
    use crate::tools;

    #[test]
    fn a_root_is_at_home_on_the_disk_whose_partition_has_its_name() {
        let place = tempfile::tempdir().unwrap();
        let usb = [UsbDisk::blank(0, 1 << 20), UsbDisk::blank(1, 8 << 20)];
        let label = serde_json::json!({"board": "pc", "usb": usb});
        fs::write(place.path().join("kit.json"), label.to_string()).unwrap();
        for (number, disk) in usb.iter().enumerate() {
            let image = place.path().join(format!("usb{number}.img"));
            fs::write(image, vec![0; usize::try_from(disk.bytes).unwrap()]).unwrap();
        }
        let table = place.path().join("table");
        let partition =
            "label: gpt\nstart=2048, size=4096, uuid=A77F3F92-0000-4000-8000-0123456789AB\n";
        fs::write(&table, partition).unwrap();
        let mut sfdisk = tools::command("sfdisk");
        sfdisk.arg(place.path().join("usb1.img"));
        tools::run(sfdisk.stdin(fs::File::open(&table).unwrap())).unwrap();
        let kit = Kit::open(Board::Pc, place.path()).unwrap();
        let named = |name: &str| other_root::find(&kit, name).unwrap();
        let there = "PARTUUID=a77f3f92-0000-4000-8000-0123456789ab";
        assert_eq!(named(there), Some((1, 2048 * 512)));
        assert_eq!(named("PARTUUID=7c0a02d1-02"), None);
        assert_eq!(named("/dev/mmcblk0p2"), None);
        assert_eq!(named("nbd://10.0.2.2:10809/root"), None);
    }
}
