//! A file in memory without a name, which other processes of the same user can read while this one lives.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;

use rustix::fs::{MemfdFlags, Mode, fchmod, memfd_create};

/// An anonymous file in memory (memfd).
pub(super) struct Nameless(File);

impl Nameless {
    /// With these contents, for its owner's eyes only: ssh refuses keys that others could read.
    pub(super) fn of(contents: &[u8]) -> std::io::Result<Nameless> {
        let mut file = File::from(memfd_create("rubus", MemfdFlags::CLOEXEC)?);
        fchmod(&file, Mode::RUSR | Mode::WUSR)?;
        file.write_all(contents)?;
        Ok(Nameless(file))
    }

    /// Where others find it: ssh closes everything that it inherits, so it must be this process's own.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}
