//! What stands before devices and files that are to be written, as far as network disks need it. The guard itself knows
//! what recipes and plans know, so it is above this room; the roof brings the two together.

use std::path::Path;

use rubus_host::block::blockdev::{BlockReader, ClaimedDevice, OpenError};

/// Says what may be written, with the words of a refusal where it may not.
pub trait Guard {
    /// Checks that a file is neither mounted nor backs a device.
    ///
    /// # Errors
    /// Who uses it, and what to do.
    fn file_unused(&self, path: &Path) -> Result<(), String>;

    /// Opens a block device read-only, even if it is in use.
    ///
    /// # Errors
    /// Why it cannot be opened.
    fn read_only(&self, path: &Path) -> Result<BlockReader, String>;

    /// Claims an unused block device for overwriting; any data on it must be named by `losses`.
    ///
    /// # Errors
    /// Why not, and which name would be enough.
    fn claim(&self, path: &Path, losses: &[String]) -> Result<ClaimedDevice, NotClaimed>;

    /// Whether a block device is in use.
    fn is_in_use(&self, path: &Path) -> bool;

    /// Claims an unused network disk. It cannot be mounted until the claim is dropped.
    ///
    /// # Errors
    /// Who uses it, and what to do.
    fn unused(&self, path: &Path) -> Result<Box<dyn Unused>, String>;

    /// Whether nothing stands on a network disk, without opening it.
    ///
    /// # Errors
    /// What stands on it, and what to do.
    fn carries_nothing(&self, path: &Path) -> Result<(), String>;
}

/// A claimed device that is not in use.
pub trait Unused {
    /// Waits until everything that was written to it is on stable storage.
    ///
    /// # Errors
    /// When a write or the flush failed.
    fn flush(&self) -> Result<(), OpenError>;
}

/// Why a device is not to be overwritten.
#[derive(Debug)]
pub struct NotClaimed {
    pub refusal: String,
    /// What would have to be given to `--i-will-lose-everything-on`, where that alone is missing.
    pub expected: Option<String>,
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Lets files through, and knows no devices.
    pub(crate) struct OnlyFiles;

    impl Guard for OnlyFiles {
        fn file_unused(&self, _: &Path) -> Result<(), String> {
            Ok(())
        }

        fn read_only(&self, _: &Path) -> Result<BlockReader, String> {
            Err("no device".into())
        }

        fn claim(&self, _: &Path, _: &[String]) -> Result<ClaimedDevice, NotClaimed> {
            Err(NotClaimed { refusal: "no device".into(), expected: None })
        }

        fn is_in_use(&self, _: &Path) -> bool {
            false
        }

        fn unused(&self, _: &Path) -> Result<Box<dyn Unused>, String> {
            Err("no device".into())
        }

        fn carries_nothing(&self, _: &Path) -> Result<(), String> {
            Ok(())
        }
    }
}
