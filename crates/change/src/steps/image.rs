//! An image of a card on the workbench: looked into, and a new one made from it.
//!
//! The image is attached for reading alone. Its root is mounted, its boot files are taken out into memory, all where only
//! this process sees it; so nothing stays attached or mounted however this process ends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rubus_boot::config_txt::ConfigTxt;
use rubus_boot::fstab::Fstab;
use rubus_boot::initramfs::{self, Listing};
use rubus_host::block::loop_device::{LoopDevice, Part};
use rubus_host::files::hands::parent_of;
use rubus_host::files::mounting;
use rubus_host::files::new_file::size_of_file;
use rubus_host::live::hands::{LiveHands, make_directories};
use rubus_host::live::offline_root::Inside;
use rubus_host::{Files, Hands, Live, clock};
use rubus_machine::signature::{self, END_BYTES, PartitionEntry, Window};
use rubus_machine::superblock::{self, Superblock};

use crate::guard;

/// Roots that systems have.
const ROOTS: [&str; 6] = ["ext4", "ext3", "ext2", "btrfs", "f2fs", "xfs"];
const BOOT_POINTS: [&str; 2] = ["/boot/firmware", "/boot"];
/// More than any initial RAM filesystem takes.
const MAX_BYTES: usize = 512 << 20;

/// A partition of an image.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Where it is.
    pub entry: PartitionEntry,
    /// What is on it.
    pub filesystem: Superblock,
}

/// An image that is looked into.
#[derive(Debug)]
pub struct OpenImage {
    pub file: PathBuf,
    pub size_bytes: u64,
    /// The boot partition.
    pub boot: Partition,
    pub root: Partition,
    /// Where the boot partition is mounted in that system.
    pub boot_point: PathBuf,
    place: PathBuf,
    _root_device: LoopDevice,
}

impl OpenImage {
    /// Opens an image of a card with a boot partition and a root.
    ///
    /// # Errors
    /// A sentence when it is none, or this user may not mount anything.
    pub fn open(file: &Path) -> Result<OpenImage, String> {
        let size_bytes = size_of_file(file).map_err(|why| why.to_string())?;
        let listed = partitions(file, size_bytes)?;
        let (boot, root) = (boot(file, &listed)?, root(file, &listed)?);
        mounting::private_mounts().map_err(|why| why.to_string())?;
        let place = place()?;
        let root_device = attach(file, &root.entry)?;
        let mut image = OpenImage {
            file: file.into(),
            size_bytes,
            boot,
            root,
            boot_point: BOOT_POINTS[0].into(),
            place,
            _root_device: root_device,
        };
        image.mount()?;
        image.boot_point = image.find_boot_point();
        image.take_boot_files()?;
        Ok(image)
    }

    /// Where its root is mounted, for reading alone.
    pub fn root_top(&self) -> PathBuf {
        self.place.join("root")
    }

    /// Where its boot files are, as files of this machine that may be changed.
    pub fn boot_top(&self) -> PathBuf {
        self.place.join("boot")
    }

    /// A directory in memory for the journal of what is made from it.
    pub fn changes(&self) -> PathBuf {
        self.place.join("changes")
    }

    /// The system, seen from its own root.
    pub fn files(&self) -> Inside {
        Inside::new(self.root_top()).with(&self.boot_point, self.boot_top())
    }

    /// Bytes of all boot files.
    pub fn boot_bytes(&self) -> u64 {
        rubus_host::files::filling::usage(&self.boot_top()).map_or(0, |used| used.bytes)
    }

    /// What every file of the boot partition holds that is named like an initial RAM filesystem in its settings or by custom: at
    /// its top, and in the directories that the settings load from.
    pub fn initramfs(&self) -> BTreeMap<String, Result<Listing, String>> {
        let texts = ["config.txt", "usercfg.txt", "distroconfig.txt"];
        let texts = texts.map(|name| Live.text(&self.boot_top().join(name)).unwrap_or_default());
        let named = texts.iter().flat_map(|text| ConfigTxt::parse(text.as_str()).companions());
        let mut directories: BTreeSet<String> = named.filter(|name| name.ends_with('/')).collect();
        directories.insert(String::new());
        let is_meant = |name: &&String| {
            let lower = name.to_ascii_lowercase();
            lower.starts_with("init") || texts.iter().any(|text| text.contains(name.as_str()))
        };
        let is_other = |name: &&String| {
            let lower = name.to_ascii_lowercase();
            let endings = [".txt", ".dtb", ".elf", ".dat", ".bin"];
            endings.iter().any(|ending| lower.ends_with(ending)) || lower.starts_with("kernel")
        };
        let mut listed = BTreeMap::new();
        for directory in directories {
            let top = self.boot_top().join(&directory);
            let names = Live.list(&top).unwrap_or_default();
            for name in names.iter().filter(|name| is_meant(name) && !is_other(name)) {
                let Ok(bytes) = Live.read_prefix(&top.join(name), MAX_BYTES) else { continue };
                let inside = initramfs::list(&bytes[..]).map_err(|why| why.to_string());
                listed.insert(format!("{directory}{name}"), inside);
            }
        }
        listed
    }

    /// Whether programs of that system would run on this machine. None is run.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn runs_here(&self) -> Result<(), String> {
        super::processor::runs_here(&self.files(), &Live)
    }

    fn mount(&self) -> Result<(), String> {
        let node = self._root_device.path();
        let kind = self.root.filesystem.kind.as_str();
        let tried = mounting::mount(node, &self.root_top(), kind, "ro");
        tried.map_err(|why| {
            format!(
                "the root in {} cannot be mounted: {why}. If it was not switched off properly, start it once more and \
                 shut it down, or mend a copy of the image with e2fsck",
                self.file.display()
            )
        })
    }

    /// The boot partition as files, through mtools, which need no driver of the kernel.
    fn take_boot_files(&self) -> Result<(), String> {
        let start = self.boot.entry.start_bytes;
        let from = format!("{}@@{start}", self.file.display());
        let to = self.boot_top().display().to_string();
        let stop = AtomicBool::new(false);
        super::boot_files::take_out(&from, &to, &stop).map_err(|why| {
            format!("cannot read the boot partition of {}: {why}", self.file.display())
        })
    }

    fn find_boot_point(&self) -> PathBuf {
        let inside = Inside::new(self.root_top());
        let table = inside.text(Path::new("/etc/fstab")).unwrap_or_default();
        let table = Fstab::parse(table);
        let point = BOOT_POINTS.iter().find(|point| table.at(point).is_some());
        point.unwrap_or(&BOOT_POINTS[0]).into()
    }
}

impl Drop for OpenImage {
    fn drop(&mut self) {
        // What cannot be unmounted is gone with this process.
        let _ = mounting::unmount(&self.root_top());
        let _ = mounting::unmount(&self.place);
        let mut hands = LiveHands::new();
        let _ = hands.remove_directory(&self.place);
        let _ = hands.remove_directory(&parent_of(&self.place));
    }
}

/// What the step runner needs to know when it makes an image.
#[derive(Clone, Debug)]
pub struct ImageSite {
    /// Where the root that is copied is mounted.
    pub root: PathBuf,
    /// Where the boot files are prepared.
    pub boot: PathBuf,
    /// The new image as a disk.
    pub node: PathBuf,
}

/// Steps that make an image.
impl super::LiveStepRunner {
    /// A runner of steps on an image instead of this machine, stopped like that of [`super::LiveStepRunner::new`].
    pub fn on_image(stop: Arc<AtomicBool>, site: ImageSite) -> Self {
        super::LiveStepRunner { image: Some(site), ..super::LiveStepRunner::new(stop) }
    }
}

/// A directory in memory that only this process sees, with places for the root, the boot files and the journal.
fn place() -> Result<PathBuf, String> {
    let words = |why: rubus_host::WriteError| why.to_string();
    let place =
        Path::new(super::mounts::PLACES).join("images").join(clock::monotonic_ns().to_string());
    let mut hands = LiveHands::new();
    make_directories(&mut hands, &place).map_err(words)?;
    mounting::mount(Path::new("tmpfs"), &place, "tmpfs", "mode=700").map_err(words)?;
    for name in ["root", "boot", "changes"] {
        hands.make_directory(&place.join(name)).map_err(words)?;
    }
    Ok(place)
}

fn attach(file: &Path, entry: &PartitionEntry) -> Result<LoopDevice, String> {
    let part = Part::Span { start_bytes: entry.start_bytes, size_bytes: entry.size_bytes };
    LoopDevice::attach(file, part).map_err(|why| why.to_string())
}

/// The partitions of an image that hold a filesystem.
fn partitions(file: &Path, size_bytes: u64) -> Result<Vec<Partition>, String> {
    let shown = file.display();
    let first = Live.read_prefix(file, END_BYTES);
    let first = first.map_err(|why| format!("cannot read {shown}: {why}"))?;
    let listed = signature::partitions(&Window::new(size_bytes, &first, &[]));
    if listed.is_empty() {
        return Err(format!(
            "{shown} is no image of a card: it has no partition table (a packed one, such as .img.xz, is unpacked first: \
             `xz -dk` or `unzip`)"
        ));
    }
    let mut found = Vec::new();
    for entry in listed {
        if entry.start_bytes.saturating_add(entry.size_bytes) > size_bytes {
            return Err(format!(
                "{shown} ends before its partition {} does: it is not whole; copy or download it again",
                entry.number
            ));
        }
        let device = attach(file, &entry)?;
        let reader = guard::read_only(device.path()).map_err(|why| why.to_string())?;
        let begin = reader.read(0, END_BYTES.min(entry.size_bytes as usize))?;
        let window = Window::new(entry.size_bytes, &begin, &[]);
        if let Some(filesystem) = superblock::identify(&window) {
            found.push(Partition { entry, filesystem });
        }
    }
    Ok(found)
}

fn boot(file: &Path, listed: &[Partition]) -> Result<Partition, String> {
    let found = listed.iter().find(|one| one.filesystem.kind == "vfat");
    found.cloned().ok_or_else(|| {
        format!("{} has no FAT partition: it is no image of a Raspberry Pi's card", file.display())
    })
}

fn root(file: &Path, listed: &[Partition]) -> Result<Partition, String> {
    let is_root = |one: &&Partition| ROOTS.contains(&one.filesystem.kind.as_str());
    let roots: Vec<&Partition> = listed.iter().filter(is_root).collect();
    match roots[..] {
        [only] => Ok(only.clone()),
        [] => Err(format!("{} has no partition with a root", file.display())),
        _ => Err(format!(
            "{} has {} partitions that could be the root; only images with one are understood",
            file.display(),
            roots.len()
        )),
    }
}
