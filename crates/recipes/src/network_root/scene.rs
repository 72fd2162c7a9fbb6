//! What was found on a machine whose root is to move to a network disk: what the steps are made of.

use super::current::Start;
use super::kernels::Kernel;
use rubus_change::plan::TextFile;
use rubus_change::plan::volume::DiskIdentity;
use rubus_vocabulary::machine::{BlockDevice, Link, Mount};

/// Everything that the steps are made of.
pub(super) struct Scene<'a> {
    pub(super) start: Start<'a>,
    pub(super) kernels: Vec<Kernel>,
    pub(super) disk: DiskIdentity,
    pub(super) address: String,
    /// Whether the server says which disk it serves.
    pub(super) is_identified: bool,
    pub(super) link: &'a Link,
    pub(super) program: String,
    pub(super) card: &'a Mount,
    pub(super) card_uuid: &'a str,
    pub(super) card_disks: Vec<&'a BlockDevice>,
    pub(super) fstab: &'a TextFile,
    /// Name in the boot partition, the current text, the new one.
    pub(super) cmdlines: Vec<(String, &'a TextFile, String)>,
}
