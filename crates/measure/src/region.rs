//! The files of a session: what each is, what it holds, and the ways in which jobs reach it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rubus_vocabulary::result::{Access, TargetKind};
use rubus_vocabulary::spec::{FileNeed, FileStart};

use crate::rig::Rig;
use crate::target::Opened;

/// One of the files (or the only one) of a session.
#[derive(Debug)]
pub(crate) struct Region {
    /// The file, open.
    pub(crate) opened: Opened,
    /// Bytes from its start that jobs may work on.
    pub(crate) wanted_bytes: u64,
    /// Bytes from its start that hold what they need.
    pub(crate) filled_bytes: u64,
    /// It has been emptied, so that what the next job does not write is to be filled after it.
    pub(crate) is_emptied: bool,
    /// What a file of our own has to hold before the first job; absent: it is filled when a job needs
    /// it.
    pub(crate) start: Option<FileStart>,
    /// Its name in results, where there are several.
    pub(crate) name: Option<String>,
    /// The same file, open with its page cache, where the usual way goes past it.
    through_cache: Option<Arc<OwnedFd>>,
}

/// How one job reaches a file.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// Where its operations go.
    pub(crate) file: Arc<OwnedFd>,
    /// Past the page cache or through it.
    pub(crate) access: Access,
    /// The file's own descriptor has to be switched to that for as long as the job runs.
    pub(crate) is_switched: bool,
}

impl Region {
    /// The only file of a session, with a region of that size.
    pub(crate) fn single(opened: Opened, wanted_bytes: u64) -> Self {
        let filled_bytes =
            if opened.is_own_file() { 0 } else { opened.size_bytes.min(wanted_bytes) };
        Region {
            opened,
            wanted_bytes,
            filled_bytes,
            is_emptied: false,
            start: None,
            name: None,
            through_cache: None,
        }
    }

    /// One of several files.
    pub(crate) fn of_several(opened: Opened, need: &FileNeed) -> Self {
        let mut region = Region::single(opened, need.region_bytes);
        region.start = Some(need.start);
        region.name = Some(need.name.clone());
        region
    }

    /// Bytes that jobs which need contents may work on.
    pub(crate) fn region_bytes(&self) -> u64 {
        self.filled_bytes.min(self.wanted_bytes)
    }

    /// Sets the length of a file of our own, without writing anything. One that has to be filled is not filled by
    /// that.
    ///
    /// # Errors
    /// In words, when the filesystem refuses it.
    pub(crate) fn extend(&mut self, rig: &mut dyn Rig, start: FileStart) -> Result<(), String> {
        rig.extend(&self.opened.file, self.wanted_bytes, start)?;
        if start != FileStart::Filled {
            self.filled_bytes = self.wanted_bytes;
        }
        Ok(())
    }

    /// How a job that wants to go through the page cache, or not, reaches the file.
    pub(crate) fn way(&mut self, rig: &mut dyn Rig, through_cache: bool) -> Way {
        let usual =
            |access, is_switched| Way { file: Arc::clone(&self.opened.file), access, is_switched };
        if !through_cache || self.opened.access == Access::Buffered {
            return usual(self.opened.access, false);
        }
        // A claimed device is not opened a second time: only the guard opens devices.
        if self.opened.kind == TargetKind::Device || self.opened.remote.is_some() {
            return usual(Access::Buffered, true);
        }
        if self.through_cache.is_none() {
            let may_write = self.opened.may_write;
            self.through_cache = rig.reopen(&self.opened.file, may_write).map(Arc::new);
        }
        match &self.through_cache {
            Some(file) => {
                Way { file: Arc::clone(file), access: Access::Buffered, is_switched: false }
            }
            None => usual(Access::Buffered, true),
        }
    }
}
