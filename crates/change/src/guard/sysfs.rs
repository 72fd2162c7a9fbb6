//! The kernel's tree of block devices: names, partitions, holders, what stands on what. Read
//! through [`Files`]; what the relations mean is decided elsewhere.

use std::path::{Path, PathBuf};

use rubus_host::block::blockdev::DeviceNumber;
use rubus_host::{Files, ReadError};
use rubus_machine::parse::major_minor;
use rubus_vocabulary::machine::BlockKind;

use super::facts::SpanOnDisk;

/// The kernel counts starts and sizes in this unit, whatever the device's own block.
const SECTOR_BYTES: u64 = 512;

/// Questions about the tree.
pub(super) struct Sys<'a> {
    pub files: &'a dyn Files,
}

/// One device of the tree.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The kernel's name.
    pub name: String,
    /// Its directory, symbolic links resolved.
    pub directory: PathBuf,
    is_partition: bool,
}

impl Node {
    /// The disk that a partition is a part of.
    pub fn parent_name(&self) -> Option<String> {
        let parent = self.directory.parent().filter(|_| self.is_partition)?;
        Some(parent.file_name()?.to_string_lossy().into_owned())
    }

    /// What kind of device the kernel's name stands for.
    pub fn kind(&self) -> BlockKind {
        if self.is_partition {
            return BlockKind::Partition;
        }
        let name = self.name.as_str();
        let is_mmc_area =
            name.starts_with("mmcblk") && (name.contains("boot") || name.contains("rpmb"));
        let numbered = |prefix: &str| {
            name.strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        match () {
            () if is_mmc_area => BlockKind::MmcArea,
            () if numbered("loop") => BlockKind::Loop,
            () if numbered("md") || name.starts_with("md_") => BlockKind::Md,
            () if numbered("dm-") => BlockKind::Dm,
            () if numbered("zram") => BlockKind::Zram,
            () if numbered("nbd") => BlockKind::Nbd,
            () if numbered("ram") => BlockKind::Ram,
            () if numbered("sr") => BlockKind::Rom,
            () => BlockKind::Disk,
        }
    }
}

impl<'a> Sys<'a> {
    pub fn new(files: &'a dyn Files) -> Self {
        Sys { files }
    }

    pub fn by_number(&self, number: DeviceNumber) -> Result<Node, String> {
        self.node(&PathBuf::from(format!("/sys/dev/block/{number}")))
    }

    pub fn by_name(&self, name: &str) -> Result<Node, String> {
        self.node(&Path::new("/sys/class/block").join(name))
    }

    fn node(&self, link: &Path) -> Result<Node, String> {
        let cannot = |why: ReadError| cannot_read(link, &why);
        let directory = self.files.real_path(link).map_err(cannot)?;
        let name = directory.file_name().unwrap_or_default();
        Ok(Node {
            name: name.to_string_lossy().into_owned(),
            is_partition: self.files.exists(&directory.join("partition")),
            directory,
        })
    }

    /// The device's number.
    pub fn number(&self, node: &Node) -> Option<DeviceNumber> {
        let text = self.files.text(&node.directory.join("dev")).ok()?;
        let (major, minor) = major_minor(&text)?;
        Some(DeviceNumber { major, minor })
    }

    /// The names of a disk's partitions.
    pub fn partitions(&self, node: &Node) -> Result<Vec<String>, String> {
        let names =
            self.files.list(&node.directory).map_err(|why| cannot_read(&node.directory, &why))?;
        let is_partition =
            |name: &String| self.files.exists(&node.directory.join(name).join("partition"));
        Ok(names.into_iter().filter(is_partition).collect())
    }

    /// A disk's partitions with their place on it, in the order of the disk.
    pub fn partition_spans(&self, node: &Node) -> Result<Vec<SpanOnDisk>, String> {
        let mut spans = Vec::new();
        for name in self.partitions(node)? {
            let sectors = |file: &str| -> Result<u64, String> {
                let path = node.directory.join(&name).join(file);
                let text = self.files.text(&path).map_err(|why| cannot_read(&path, &why))?;
                let count = text.trim().parse::<u64>().ok();
                count
                    .and_then(|count| count.checked_mul(SECTOR_BYTES))
                    .ok_or_else(|| format!("{} says '{text}'", path.display()))
            };
            spans.push(SpanOnDisk {
                start_bytes: sectors("start")?,
                size_bytes: sectors("size")?,
                name,
            });
        }
        spans.sort_by_key(|span| span.start_bytes);
        Ok(spans)
    }

    /// What stands directly on it.
    pub fn holders(&self, node: &Node) -> Result<Vec<String>, String> {
        self.relatives(node, "holders")
    }

    /// What it directly stands on.
    pub fn slaves(&self, node: &Node) -> Result<Vec<String>, String> {
        self.relatives(node, "slaves")
    }

    fn relatives(&self, node: &Node, directory: &str) -> Result<Vec<String>, String> {
        let path = node.directory.join(directory);
        match self.files.list(&path) {
            Ok(names) => Ok(names),
            // Partitions have no `slaves`.
            Err(ReadError::Absent) => Ok(Vec::new()),
            Err(why) => Err(cannot_read(&path, &why)),
        }
    }

    /// The names of all loop devices, bound or not.
    pub fn loop_names(&self) -> Result<Vec<String>, String> {
        let path = Path::new("/sys/block");
        let names = self.files.list(path).map_err(|why| cannot_read(path, &why))?;
        Ok(names.into_iter().filter(|name| name.starts_with("loop")).collect())
    }

    /// The backing file of a loop device as the kernel names it; none when it has none.
    pub fn loop_backing_path(&self, name: &str) -> Option<String> {
        let path = format!("/sys/block/{name}/loop/backing_file");
        self.files.text(Path::new(&path)).ok()
    }

    /// A holder for a sentence.
    pub fn holder_phrase(&self, name: &str) -> String {
        let mapper = format!("/sys/class/block/{name}/dm/name");
        match self.files.text(Path::new(&mapper)) {
            Ok(volume) => format!("the device-mapper volume {volume} ({name})"),
            Err(_) if name.starts_with("md") => format!("the RAID array {name}"),
            Err(_) if name.starts_with("bcache") => format!("the cache {name}"),
            Err(_) => format!("the device {name}"),
        }
    }
}

pub(super) fn cannot_read(path: &Path, why: &ReadError) -> String {
    format!("{} cannot be read: {why}", path.display())
}

/// How the kernel's name appears below `/dev`: an exclamation mark stands for a slash.
pub(super) fn node_path(name: &str) -> String {
    format!("/dev/{}", name.replace('!', "/"))
}
