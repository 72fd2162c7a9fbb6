//! What a recipe wants to know besides the surveyed machine, and what was found.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rubus_change::plan::TextFile;
use rubus_change::plan::volume::DiskIdentity;
use rubus_change::unseen::Unseen;
use rubus_vocabulary::compression_speed::CompressionSpeed;

use super::{ImageFacts, NextStart};

/// What a recipe wants to know besides the surveyed machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queries {
    /// Files, knobs, links and directories. A part of a path that is `*` stands for every name in the directory.
    pub paths: Vec<PathBuf>,
    /// Disks that would be given a new content.
    pub disks: Vec<PathBuf>,
    /// Trees of which the size is needed: what is in use on their filesystems.
    pub trees: Vec<PathBuf>,
    /// Directories of which it is needed how much the files below them take.
    pub directories: Vec<PathBuf>,
    /// What a program is to open by itself: of which kind it is, and whose.
    pub nodes: Vec<PathBuf>,
    /// True where it depends on how fast this processor compresses what a move of the root copies, and how well.
    pub compression: bool,
    /// True where it depends on what starting a short program costs: making an initial RAM filesystem is mostly that.
    pub program_starts: bool,
}

impl Queries {
    /// Only these paths.
    pub fn paths(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Queries { paths: paths.into_iter().map(Into::into).collect(), ..Queries::default() }
    }
}

/// What was found where a recipe wanted to look.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Files, knobs, links and directories.
    pub seen: Seen,
    /// Releases of kernels in the boot partition, as their files say; one that does not say it is not there.
    pub kernels: BTreeMap<PathBuf, String>,
    /// How the next start would end if nothing were changed.
    pub next_start: NextStart,
    /// Why the root of the next start keeps no changes, while that of this one does.
    pub volatile_root: Option<VolatileRoot>,
    /// Disks, by the requested path; or why one is unavailable.
    pub disks: BTreeMap<PathBuf, Result<DiskIdentity, Unseen>>,
    /// Sizes of trees.
    pub trees: BTreeMap<PathBuf, TreeSize>,
    /// Bytes that the files below directories take; none of one that may not be looked into.
    pub directories: BTreeMap<PathBuf, u64>,
    /// What is at the end of a path, links followed: nothing, a node, or why it cannot be seen.
    pub nodes: BTreeMap<PathBuf, Result<Option<Node>, Unseen>>,
    /// How the processor compresses a sample of those trees; empty where that was not measured.
    pub compression: Vec<CompressionSpeed>,
    /// Bytes per second with which that sample came from the disk, not from memory, the opening of its files included;
    /// absent where too little came from there.
    pub sample_bytes_per_second: Option<f64>,
    /// Seconds for starting a short program, as it was measured just now; absent where that was not measured, as of a
    /// captured machine.
    pub program_start_s: Option<f64>,
    /// How fast disks are, by the kernel's name ("mmcblk0"), as far as it was measured here.
    pub speeds: BTreeMap<String, DiskSpeed>,
    /// How fast several disks are at once, as far as it was measured here; the newest first.
    pub together: Vec<TogetherSpeed>,
    /// Random bytes for new, unique identifiers. All zero in a rehearsal.
    pub random: [u8; 32],
    /// The running boot (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: Option<String>,
    /// Where the machine is none that runs, but what an image of a card says.
    pub image: Option<ImageFacts>,
}

/// A root that keeps no changes from start to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolatileRoot {
    /// The word that asks for it ("overlayroot=tmpfs").
    pub word: String,
    /// The command line that has it.
    pub path: PathBuf,
}

/// How much there is below a directory, on one filesystem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeSize {
    /// Bytes that are in use.
    pub bytes: u64,
    /// Files, directories and the rest.
    pub entries: u64,
}

/// What is at the end of a path, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Number of the user who owns it; 0 is root.
    pub user: u32,
    /// Number of its group.
    pub group: u32,
    /// Bytes of a file; 0 of all else.
    pub size_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File,
    Directory,
    BlockDevice,
    /// A socket, a pipe, a character device.
    Other,
}

/// How fast a disk was measured to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskSpeed {
    /// Sequential read, bytes per second.
    pub read_bytes_per_second: Option<f64>,
    /// Sequential write, bytes per second.
    pub write_bytes_per_second: Option<f64>,
    /// Random 4 KiB reads per second at queue depth 1.
    pub random_read_iops: Option<f64>,
    /// Random 4 KiB writes per second at queue depth 1.
    pub random_write_iops: Option<f64>,
    /// When, in words ("measured here on 2026-11-21, run 12").
    pub source: String,
}

/// How fast several disks were measured to be, each alone and all at once.
#[derive(Clone, Debug, PartialEq)]
pub struct TogetherSpeed {
    /// The kernel's names of the disks ("sda"), as they are now.
    pub disks: Vec<String>,
    /// True for reading in order, false for writing.
    pub is_read: bool,
    /// Bytes per second of each alone, in the order of the disks.
    pub alone_bytes_per_second: Vec<f64>,
    /// Bytes per second of each while all were at work.
    pub together_bytes_per_second: Vec<f64>,
    /// When, in words ("measured at once on 2026-11-21, run 12").
    pub source: String,
}

/// What a recipe looked at.
pub type Seen = BTreeMap<PathBuf, PathState>;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Nothing is there.
    Absent,
    /// A small text file, or a knob of the kernel. Bytes that are not UTF-8 are kept.
    Text(TextFile),
    /// A directory, with the names in it.
    Directory(Vec<String>),
    /// A symbolic link that points to nothing, with its target as written.
    Dangling(PathBuf),
    /// Something else: a program, a file too large or too strange to be edited.
    Something,
    /// It could not be looked at.
    Hidden(Unseen),
}
