//! What was found on a machine whose root is to move: what the steps are made of.

use super::compression::{Chosen, Link};
use super::current::Start;
use super::fallback::Fallback;
use super::kernels::Kernel;
use super::layout::NewDisk;
use super::root::NewTable;
use rubus_change::plan::TextFile;
use rubus_vocabulary::machine::BlockDevice;

/// Everything that the steps are made of.
pub(super) struct Scene<'a> {
    pub(super) start: Start<'a>,
    pub(super) device: &'a BlockDevice,
    pub(super) old_disks: Vec<&'a BlockDevice>,
    pub(super) kernels: Vec<Kernel>,
    /// The new system's table of mounts.
    pub(super) table: NewTable,
    pub(super) chosen: Chosen,
    pub(super) link: Link,
    pub(super) new: NewDisk,
    /// Name in the boot partition, the current text, the new one.
    pub(super) cmdlines: Vec<(String, &'a TextFile, String)>,
    /// Words of a first start that are taken out of them.
    pub(super) removed: Vec<String>,
    /// Whether the new system is first started on trial.
    pub(super) is_tried: bool,
    /// The name of the trial's own initial RAM filesystem, where it gets one.
    pub(super) trial_initramfs: Option<&'static str>,
    /// How the old system starts when the new disk does not answer.
    pub(super) fallback: Option<Fallback>,
}
