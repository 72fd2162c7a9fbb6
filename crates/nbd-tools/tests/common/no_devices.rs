//! A guard that lets files through and knows no devices.

use std::path::Path;

use rubus_host::block::blockdev::{BlockReader, ClaimedDevice};
use rubus_nbd_tools::guard::{Guard, NotClaimed, Unused};

pub struct OnlyFiles;

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
