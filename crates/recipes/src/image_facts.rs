//! What is known when a recipe plans for an image of a card instead of a machine that runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rubus_boot::initramfs::Listing;
use rubus_change::plan::volume::DiskIdentity;

/// An image, and the one that is to be made from it.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageFacts {
    /// The image that is only read.
    pub file: PathBuf,
    /// The new one, as a disk. Its size does not matter: the recipe says how large it has to be.
    pub out: DiskIdentity,
    /// Free bytes where the new one is made.
    pub room_bytes: Option<u64>,
    /// Bytes of the files in the boot partition.
    pub boot_bytes: u64,
    /// What each initial RAM filesystem in the boot partition holds, by its name there, or why it cannot be looked into.
    pub initramfs: BTreeMap<String, Result<Listing, String>>,
    /// Whether programs of the image run on this machine, or why not.
    pub runs_here: Result<(), String>,
    /// Those of [`image_programs`](super::image_programs) that are not installed on this machine.
    pub missing: Vec<String>,
}
