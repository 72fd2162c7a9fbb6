//! Small filesystems of our own, mounted.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::loop_device::LoopDevice;
use super::{mark, programs};

/// Which filesystem, with its options where they matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesystemKind {
    /// ext4 on a loop device.
    Ext4,
    /// btrfs on a loop device; everything is compressed with zstd.
    BtrfsCompressed,
    /// In memory; at most the given size.
    Tmpfs,
}

impl FilesystemKind {
    fn name(self) -> &'static str {
        match self {
            FilesystemKind::Ext4 => "ext4",
            FilesystemKind::BtrfsCompressed => "btrfs",
            FilesystemKind::Tmpfs => "tmpfs",
        }
    }
}

/// A mounted filesystem; unmounted when it is dropped. Every user may write to it.
#[derive(Debug)]
pub struct SmallFilesystem {
    point: TempDir,
    mounted: bool,
    device: Option<LoopDevice>,
}

impl SmallFilesystem {
    /// Makes and mounts one of this size.
    ///
    /// # Errors
    /// When it cannot be made or mounted.
    pub fn new(kind: FilesystemKind, size_bytes: u64) -> Result<Self> {
        let point = mark::directory()?;
        let at = point.path().to_string_lossy().into_owned();
        let device = match kind {
            FilesystemKind::Tmpfs => None,
            _ => Some(LoopDevice::new(size_bytes)?),
        };
        let mut filesystem = SmallFilesystem { point, mounted: false, device };
        let node = filesystem.device.as_ref().map(|device| device.path().display().to_string());
        match (kind, node) {
            (FilesystemKind::Ext4, Some(node)) => {
                programs::run("mkfs.ext4", &["-q", "-F", "-m", "0", &node])?;
                programs::run("mount", &[&node, &at])?;
            }
            (FilesystemKind::BtrfsCompressed, Some(node)) => {
                programs::run("mkfs.btrfs", &["-q", "-f", &node])?;
                programs::run("mount", &["-o", "compress-force=zstd", &node, &at])?;
            }
            _ => {
                let options = format!("size={size_bytes}");
                programs::run("mount", &["-t", kind.name(), "-o", &options, "rubus-lab", &at])?;
            }
        }
        filesystem.mounted = true;
        std::fs::set_permissions(filesystem.path(), std::fs::Permissions::from_mode(0o1777))?;
        Ok(filesystem)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.point.path()
    }

    /// The loop device below; none for tmpfs.
    pub fn device(&self) -> Option<&LoopDevice> {
        self.device.as_ref()
    }

    /// Forbids writing from now on.
    ///
    /// # Errors
    /// When it is in use for writing.
    pub fn make_read_only(&self) -> Result<()> {
        let at = self.path().to_string_lossy();
        programs::run("mount", &["-o", "remount,ro", &at]).map(drop)
    }

    /// Fills it with one file until at most `left_bytes` are free.
    ///
    /// # Errors
    /// When the file cannot be written for another reason than a full filesystem.
    pub fn fill(&self, left_bytes: u64) -> Result<()> {
        let mut file = File::create(self.path().join("filling"))?;
        let block = vec![0xa5; 64 * 1024];
        while self.free_bytes()? > left_bytes {
            match file.write_all(&block) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => break,
                Err(error) => return Err(error).context("could not fill the filesystem"),
            }
        }
        // Also what is written later must not find room that was only reserved.
        file.sync_all().or_else(|error| match error.kind() {
            std::io::ErrorKind::StorageFull => Ok(()),
            _ => Err(error),
        })?;
        Ok(())
    }

    /// Free bytes, as an ordinary user sees them.
    ///
    /// # Errors
    /// When the filesystem does not tell.
    pub fn free_bytes(&self) -> Result<u64> {
        let stat = rustix::fs::statvfs(self.path())?;
        Ok(stat.f_bavail * stat.f_frsize)
    }
}

impl Drop for SmallFilesystem {
    fn drop(&mut self) {
        if !self.mounted {
            return;
        }
        let at = self.path().to_string_lossy().into_owned();
        if programs::run("umount", &[&at]).is_err() {
            if let Err(error) = programs::run("umount", &["--lazy", &at]) {
                eprintln!("could not unmount {at}: {error:#}");
            }
        }
    }
}
