//! From a path to something to measure: what it is, which filesystem and device it is on, and how
//! much room there is.

use std::io::IsTerminal;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rubus_apply::guard::{self, Consent, Refusal, TargetFacts};
use rubus_bench::Target;
use rubus_core::machine::Machine;
use rubus_core::parse::mountinfo;
use rubus_host::blockdev::DeviceNumber;
use rubus_host::files::Files;

use crate::exit::Refused;

/// A target, opened as far as needed, with what must be known before the first write.
pub struct Resolved {
    /// As the user named it.
    pub named: String,
    /// Ready for a session.
    pub target: Target,
    /// Absolute path without links.
    pub path: PathBuf,
    /// Filesystem type, for a directory or a file.
    pub filesystem: Option<String>,
    /// Kernel name of the block device below.
    pub device: Option<String>,
    /// Free bytes for a directory, else the size of the file or device.
    pub room_bytes: u64,
}

/// What the user allows.
#[derive(Clone, Debug, Default)]
pub struct Allowance {
    /// Measure only reading.
    pub read_only: bool,
    /// The serial number (or path) of what may be overwritten.
    pub may_lose: Option<String>,
}

/// Finds out what a path is and opens it as far as needed.
///
/// # Errors
/// When it does not exist, is no directory, file or block device, may not be used, or the guard
/// refuses it ([`Refused`]).
pub fn resolve(
    path: &Path,
    machine: &Machine,
    files: &dyn Files,
    allowance: &Allowance,
) -> anyhow::Result<Resolved> {
    let kind = std::fs::metadata(path)
        .with_context(|| format!("cannot measure on {}", path.display()))?
        .file_type();
    if kind.is_block_device() {
        return device(path, files, allowance);
    }
    let real = std::fs::canonicalize(path)
        .with_context(|| format!("cannot resolve {}", path.display()))?;
    if kind.is_dir() {
        return directory(path, real, machine, files);
    }
    if kind.is_file() {
        return file(path, real, machine, files, allowance);
    }
    anyhow::bail!(
        "{} is neither a directory, nor a file, nor a block device; name a directory on the disk to be measured",
        path.display()
    )
}

fn directory(
    path: &Path,
    real: PathBuf,
    machine: &Machine,
    files: &dyn Files,
) -> anyhow::Result<Resolved> {
    let space = files
        .space(&real)
        .with_context(|| format!("cannot read the free space of {}", real.display()))?;
    let place = Place::of(&real, machine, files);
    Ok(Resolved {
        named: path.display().to_string(),
        target: Target::Directory { path: real.clone() },
        filesystem: place.filesystem,
        device: place.device,
        room_bytes: space.available_bytes,
        path: real,
    })
}

fn file(
    path: &Path,
    real: PathBuf,
    machine: &Machine,
    files: &dyn Files,
    allowance: &Allowance,
) -> anyhow::Result<Resolved> {
    let size = std::fs::metadata(&real)
        .with_context(|| format!("cannot read the size of {}", real.display()))?
        .len();
    let place = Place::of(&real, machine, files);
    let may_overwrite = may_overwrite_file(path, &real, allowance)?;
    Ok(Resolved {
        named: path.display().to_string(),
        target: Target::File {
            path: real.clone(),
            may_overwrite,
        },
        filesystem: place.filesystem,
        device: place.device,
        room_bytes: size,
        path: real,
    })
}

/// A file's contents may be lost only if the user gave its path as the thing to lose.
fn may_overwrite_file(path: &Path, real: &Path, allowance: &Allowance) -> anyhow::Result<bool> {
    let Some(named) = &allowance.may_lose else {
        return Ok(false);
    };
    if Path::new(named) != path && Path::new(named) != real {
        return Err(Refused(format!(
            "you allowed the loss of '{named}', but the target is {}\n  \
             to overwrite it, give --i-will-lose-everything-on={}",
            path.display(),
            real.display()
        ))
        .into());
    }
    Ok(!allowance.read_only)
}

fn device(path: &Path, files: &dyn Files, allowance: &Allowance) -> anyhow::Result<Resolved> {
    let opened = if allowance.read_only {
        for_reading(path)?
    } else {
        claim(path, files, allowance)?
    };
    let sysfs = files
        .real_path(&Path::new("/sys/dev/block").join(opened.number.to_string()))
        .ok();
    let device = sysfs
        .as_deref()
        .and_then(Path::file_name)
        .map(|name| name.to_string_lossy().into_owned());
    Ok(Resolved {
        named: path.display().to_string(),
        target: Target::Device {
            fd: opened.fd,
            path: opened.path.clone(),
            size_bytes: opened.size_bytes,
            may_overwrite: !allowance.read_only,
        },
        filesystem: None,
        device,
        room_bytes: opened.size_bytes,
        path: opened.path,
    })
}

struct OpenedDevice {
    fd: OwnedFd,
    path: PathBuf,
    number: DeviceNumber,
    size_bytes: u64,
}

fn for_reading(path: &Path) -> anyhow::Result<OpenedDevice> {
    let reader = guard::read_only(path).map_err(refused)?;
    reader
        .set_direct(true)
        .with_context(|| format!("cannot bypass the cache of {}", path.display()))?;
    let (path, number, size_bytes) = (
        reader.path().to_path_buf(),
        reader.number(),
        reader.size_bytes(),
    );
    Ok(OpenedDevice {
        fd: reader.into_fd(),
        path,
        number,
        size_bytes,
    })
}

/// Claims a device for overwriting. What only needs a confirmation is asked for on a terminal.
fn claim(path: &Path, files: &dyn Files, allowance: &Allowance) -> anyhow::Result<OpenedDevice> {
    let given = allowance.may_lose.as_deref().map(Consent::new);
    let claimed = match guard::claim(files, path, given.as_ref()) {
        Err(refusal) if given.is_none() && refusal.expected_confirmation().is_some() => {
            let typed = ask(&refusal)?.ok_or_else(|| refused(refusal))?;
            guard::claim(files, path, Some(&Consent::new(&typed))).map_err(refused)?
        }
        answer => answer.map_err(refused)?,
    };
    claimed
        .set_direct(true)
        .with_context(|| format!("cannot bypass the cache of {}", path.display()))?;
    let (path, number, size_bytes) = (
        claimed.path().to_path_buf(),
        claimed.number(),
        claimed.size_bytes(),
    );
    Ok(OpenedDevice {
        fd: claimed.into_fd(),
        path,
        number,
        size_bytes,
    })
}

/// Shows what would be lost and lets the user type the confirmation; nothing without a terminal or
/// when the line is left empty.
fn ask(refusal: &Refusal) -> anyhow::Result<Option<String>> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Ok(None);
    }
    eprint!("{refusal}\n\nType it here to overwrite the device, or press Enter to stop: ");
    let mut typed = String::new();
    std::io::stdin()
        .read_line(&mut typed)
        .context("cannot read the confirmation")?;
    Ok(Some(typed.trim().to_string()).filter(|typed| !typed.is_empty()))
}

fn refused(refusal: Refusal) -> anyhow::Error {
    let hint = match refusal.facts() {
        TargetFacts::Device(_) => {
            "\n\nTo measure only reading, which changes nothing, add --read-only."
        }
        _ => "",
    };
    Refused(format!("{refusal}{hint}")).into()
}

/// The filesystem and the device that a path is on.
#[derive(Debug, Default)]
struct Place {
    filesystem: Option<String>,
    device: Option<String>,
}

impl Place {
    /// The kernel's own table says which mount holds a path. The survey, which knows the devices,
    /// leaves some mounts out (FUSE programs); what lies there is on no known device.
    fn of(real: &Path, machine: &Machine, files: &dyn Files) -> Place {
        let table = files
            .text(Path::new("/proc/self/mountinfo"))
            .unwrap_or_default();
        let (lines, _) = mountinfo::parse(&table);
        let Some(line) = mountinfo::holding(&lines, &real.to_string_lossy()) else {
            return Place::default();
        };
        let mut surveyed = machine.mounts.iter().rev();
        let mount = surveyed.find(|mount| mount.point == line.point);
        Place {
            filesystem: Some(line.filesystem.clone()),
            device: mount.and_then(|mount| mount.device.clone()),
        }
    }
}
