//! Loop devices over files of our own, and such with a speed limit.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempPath;

use super::block_group::{BlockGroup, Limits};
use super::{backing, programs};

/// A loop device; detached when it is dropped.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    /// Kept so that it is deleted after the device is detached. Not held open: the guard refuses a device whose backing
    /// file another process may write to.
    file: Option<TempPath>,
}

impl LoopDevice {
    /// A device over a new sparse file of this size.
    ///
    /// # Errors
    /// When the file or the device cannot be made.
    pub fn new(size_bytes: u64) -> Result<Self> {
        let file = backing::sparse(size_bytes)?;
        let mut device = LoopDevice::over(file.path())?;
        device.file = Some(file.into_temp_path());
        Ok(device)
    }

    /// A device over a new sparse file of this size on a disk.
    ///
    /// # Errors
    /// When the file or the device cannot be made.
    pub fn on_disk(size_bytes: u64) -> Result<Self> {
        let file = backing::sparse_on_disk(size_bytes)?;
        let mut device = LoopDevice::over(file.path())?;
        device.file = Some(file.into_temp_path());
        Ok(device)
    }

    /// A device that swap may be made on: on a disk, past the page cache, with all its room taken. On a file in memory the
    /// kernel would wait for itself for ever as soon as it swaps out that file's own pages.
    ///
    /// # Errors
    /// When the file or the device cannot be made, or the device cannot go past the page cache.
    pub fn for_swap(size_bytes: u64) -> Result<Self> {
        let file = backing::whole_on_disk(size_bytes)?;
        let mut device = LoopDevice::over(file.path())?;
        device.file = Some(file.into_temp_path());
        ensure!(
            device.is_direct(),
            "{} goes through the page cache, so swap on it would stay in memory",
            device.path.display()
        );
        Ok(device)
    }

    /// A device over an existing file, which stays when the device goes.
    ///
    /// # Errors
    /// When the device cannot be made.
    pub fn over(file: &Path) -> Result<Self> {
        let name = file.to_str().context("a path that is not UTF-8")?;
        // Direct I/O keeps a second copy out of the page cache; not every filesystem offers it.
        let path = programs::run("losetup", &["--find", "--show", "--direct-io=on", name])
            .or_else(|_| programs::run("losetup", &["--find", "--show", name]))?;
        LoopDevice::of(path)
    }

    /// A device over a part of another one.
    ///
    /// # Errors
    /// When the device cannot be made.
    pub fn part_of(device: &Path, offset_bytes: u64, size_bytes: u64) -> Result<Self> {
        let name = device.to_str().context("a path that is not UTF-8")?;
        let (offset, size) = (offset_bytes.to_string(), size_bytes.to_string());
        let arguments = ["--find", "--show", "--direct-io=on"];
        let part = ["--offset", &offset, "--sizelimit", &size, name];
        LoopDevice::of(programs::run("losetup", &[&arguments[..], &part].concat())?)
    }

    /// The device that `losetup` has made. The kernel keeps [`LoopDevice::without_write_cache`] of the device's number, so that without
    /// this, nothing would be flushed to the next file of that number.
    fn of(path: String) -> Result<Self> {
        let device = LoopDevice { path: PathBuf::from(path), file: None };
        device.set_write_cache("write back")?;
        Ok(device)
    }

    /// Its node, `/dev/loopN`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of our own behind it; none for [`LoopDevice::over`].
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether it reaches its file past the page cache.
    pub fn is_direct(&self) -> bool {
        let file = format!("/sys/block/{}/loop/dio", self.name());
        std::fs::read_to_string(file).is_ok_and(|text| text.trim() == "1")
    }

    /// Cuts the file behind the device while the device keeps its size: what lies beyond fails from
    /// then on. (A device that is not direct gives zeros instead on older kernels.)
    ///
    /// # Errors
    /// When the file cannot be cut.
    pub fn truncate_file(&self, size_bytes: u64) -> Result<()> {
        let file = self.file.as_ref().context("the file behind this device is not ours")?;
        std::fs::File::options()
            .write(true)
            .open(file)
            .context("could not open the file behind the device")?
            .set_len(size_bytes)
            .context("could not cut the file behind the device")
    }

    /// Makes it a device without a volatile write cache, which needs no flushes.
    ///
    /// # Errors
    /// When sysfs refuses.
    pub fn without_write_cache(&self) -> Result<()> {
        self.set_write_cache("write through")
    }

    fn set_write_cache(&self, kind: &str) -> Result<()> {
        let file = format!("/sys/block/{}/queue/write_cache", self.name());
        std::fs::write(&file, kind).with_context(|| format!("could not write {file}"))
    }

    /// Its kernel name, `loopN`.
    fn name(&self) -> &str {
        self.path.file_name().and_then(OsStr::to_str).unwrap_or_default()
    }

    /// Its major and minor number.
    ///
    /// # Errors
    /// When sysfs does not tell.
    pub fn number(&self) -> Result<(u32, u32)> {
        let name = self.path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let file = format!("/sys/block/{name}/dev");
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("could not read {file}"))?;
        let (major, minor) =
            text.trim().split_once(':').with_context(|| format!("{file}: {text}"))?;
        Ok((major.parse()?, minor.parse()?))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let path = self.path.to_string_lossy().into_owned();
        if let Err(error) = programs::run("losetup", &["--detach", &path]) {
            eprintln!("could not detach {path}: {error:#}");
        }
    }
}

/// A loop device which is only as fast as its limits say, for what runs inside its group.
///
/// It has no volatile write cache: else the throttle would count a flush as one more write, and a
/// short test that ends with one would be slower than the limit.
#[derive(Debug)]
pub struct ThrottledLoop {
    /// Dropped first: what runs inside must end before the device can be detached.
    group: BlockGroup,
    device: LoopDevice,
}

impl ThrottledLoop {
    /// A device of this size with these limits, in memory where there is room.
    ///
    /// # Errors
    /// When the device or the group cannot be made.
    pub fn new(size_bytes: u64, limits: Limits) -> Result<Self> {
        Self::of(LoopDevice::new(size_bytes)?, limits)
    }

    /// A device of this size with these limits that swap may be made on ([`LoopDevice::for_swap`]).
    ///
    /// # Errors
    /// When the device or the group cannot be made.
    pub fn for_swap(size_bytes: u64, limits: Limits) -> Result<Self> {
        Self::of(LoopDevice::for_swap(size_bytes)?, limits)
    }

    fn of(device: LoopDevice, limits: Limits) -> Result<Self> {
        device.without_write_cache()?;
        let group = BlockGroup::new()?;
        group.limit(device.number()?, limits)?;
        Ok(ThrottledLoop { group, device })
    }

    /// Path of the device node, `/dev/loop…`.
    pub fn path(&self) -> &Path {
        self.device.path()
    }

    /// The device without its limits.
    pub fn device(&self) -> &LoopDevice {
        &self.device
    }

    /// A command for which the limits hold.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.group.command(program)
    }

    /// Other limits, from now on.
    ///
    /// # Errors
    /// When the kernel refuses them.
    pub fn limit(&self, limits: Limits) -> Result<()> {
        self.group.limit(self.device.number()?, limits)
    }
}
