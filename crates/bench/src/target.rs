//! From a path to something to measure: what it is, which filesystem and device it is on, and how
//! much room there is.

use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use rubus_change::guard::{self, Consent, Refusal};
use rubus_cluster::live as rbd;
use rubus_cluster::watch::image::ImageName;
use rubus_command::prompt;
use rubus_host::block::blockdev::DeviceNumber;
use rubus_host::files::Files;
use rubus_host::files::own_files;
use rubus_machine::parse::mountinfo;
use rubus_measure::nas::{self, Share};
use rubus_measure::remote::Remote;
use rubus_measure::suites::Endurance;
use rubus_measure::{FarEnd, Target};
use rubus_nbd_tools::target::Export;
use rubus_nbd_tools::target::link::{is_network_device, link_of_device, link_to};
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::refused::Refused;
use rubus_vocabulary::result::{ClientEnd, NetworkLink};
use rubus_vocabulary::units::bytes_iec;

use crate::target_name::TargetName;

/// A target, opened as far as needed, with what must be known before the first write.
pub struct OpenTarget {
    /// Ready for a session.
    pub target: Target,
    /// What describes it, before a session and in its run.
    pub identity: TargetIdentity,
    /// Free bytes for a directory, else the size of the file or device.
    pub room_bytes: u64,
    /// How much writing the disks below are made for: the least of them.
    pub endurance: Endurance,
}

/// What a target is called, what it is on, and who can be asked about it: what a session cannot see.
#[derive(Default)]
pub struct TargetIdentity {
    /// As the user named it.
    pub named: String,
    /// Absolute path without links.
    pub path: PathBuf,
    /// Filesystem type, for a directory or a file.
    pub filesystem: Option<String>,
    /// Kernel name of the block device below.
    pub device: Option<String>,
    /// The link to the server of a network disk, where its rate is known.
    pub link: Option<NetworkLink>,
    /// The share of a file server that it is on.
    pub share: Option<Share>,
    /// The server of a network disk, where it is to be asked what it spends.
    pub far_end: Option<FarEnd>,
    /// What watches the cluster that an image lies in.
    pub cluster: Option<Arc<rbd::Watcher>>,
}

impl OpenTarget {
    fn new(target: Target, identity: TargetIdentity, room_bytes: u64) -> OpenTarget {
        OpenTarget { target, identity, room_bytes, endurance: Endurance::default() }
    }

    /// What speaks to the server, if this is a network disk.
    pub fn client_end(&self) -> Option<ClientEnd> {
        let is_attached = self.identity.device.as_deref().is_some_and(is_network_device);
        match self.target {
            Target::Remote { .. } => Some(ClientEnd::Process),
            _ => is_attached.then_some(ClientEnd::Machine),
        }
    }

    /// Whether it is memory and no disk.
    pub fn is_memory(&self) -> bool {
        matches!(self.target, Target::Ram { .. })
    }
}

/// What the user allows.
#[derive(Clone, Debug, Default)]
pub struct Allowance {
    /// Measure only reading.
    pub read_only: bool,
    /// The serial numbers (or paths) of what may be overwritten.
    pub may_lose: Vec<String>,
    /// Connections to use at once, to a network disk.
    pub connections: Option<u32>,
}

/// Finds out what a target is and opens it as far as needed.
///
/// # Errors
/// When it does not exist, is no directory, file or block device, may not be used, or the guard
/// refuses it ([`Refused`]).
pub fn resolve(
    name: &TargetName,
    machine: &Machine,
    files: &dyn Files,
    allowance: &Allowance,
) -> anyhow::Result<OpenTarget> {
    let mut resolved = match name {
        TargetName::Path(path) => of_path(path, machine, files, allowance),
        TargetName::Ram(bytes) => memory(name, *bytes, machine),
        TargetName::Nbd(address) => export(address, files, allowance),
        TargetName::Rbd(name) => image(name, allowance),
        TargetName::Rados(name) => anyhow::bail!(
            "{} is no disk: its objects are measured with `rubus bench {0}` alone",
            name.address()
        ),
    }?;
    let device = resolved.identity.device.as_deref();
    let disks = device.map_or(Vec::new(), |name| machine.disks_below(name));
    let all = disks.into_iter().map(Endurance::of);
    resolved.endurance = all.min().unwrap_or_default();
    Ok(resolved)
}

/// An export of a network block device. Its contents may be lost only if the user gave its
/// address as the thing to lose.
fn export(address: &str, files: &dyn Files, allowance: &Allowance) -> anyhow::Result<OpenTarget> {
    let remote = Export::open(address, allowance.connections.unwrap_or(1))?;
    let facts = remote.facts();
    let (uri, size, peer) = (facts.uri.clone(), facts.export_bytes, facts.peer.clone());
    let may_overwrite = if !may_be_lost(&[address, &uri], allowance)? {
        false
    } else if facts.is_read_only && !allowance.read_only {
        anyhow::bail!(
            "cannot write to {uri}: its server offers it for reading only; measure without \
             --i-will-lose-everything-on, or let the server allow writing"
        )
    } else {
        !allowance.read_only
    };
    let path = PathBuf::from(uri);
    let target = Target::Remote { remote: Arc::new(remote), path: path.clone(), may_overwrite };
    let link = link_to(files, &peer);
    let identity = TargetIdentity { named: address.into(), path, link, ..Default::default() };
    Ok(OpenTarget::new(target, identity, size))
}

/// Whether the user gave what is at this address, or under these other names of it, to be lost.
fn may_be_lost(addresses: &[&str], allowance: &Allowance) -> anyhow::Result<bool> {
    let named = &allowance.may_lose;
    if named.is_empty() {
        return Ok(false);
    }
    if named.iter().any(|name| addresses.contains(&name.as_str())) {
        return Ok(true);
    }
    Err(Refused(format!(
        "you allowed the loss of '{}', but the target is {address}\n  \
         to overwrite it, give --i-will-lose-everything-on='{address}'",
        named.join("', '"),
        address = addresses[0],
    ))
    .into())
}

/// An image of a Ceph cluster, which is opened for writing only if it may be lost.
fn image(name: &ImageName, allowance: &Allowance) -> anyhow::Result<OpenTarget> {
    let (address, short) = (name.address(), name.to_string());
    let may_overwrite = may_be_lost(&[&address, &short], allowance)? && !allowance.read_only;
    anyhow::ensure!(
        !(may_overwrite && name.is_snapshot()),
        "cannot write to {address}: a snapshot is only read; measure without --i-will-lose-everything-on"
    );
    let wanted =
        rbd::Use { is_read_only: !may_overwrite, connections: allowance.connections.unwrap_or(1) };
    let (image, cluster) = rbd::open(name, wanted)?;
    let size = image.facts().export_bytes;
    let path = PathBuf::from(&address);
    let target = Target::Remote { remote: Arc::new(image), path: path.clone(), may_overwrite };
    let cluster = Some(cluster);
    let identity = TargetIdentity { named: address, path, cluster, ..Default::default() };
    Ok(OpenTarget::new(target, identity, size))
}

/// So much memory, if the machine can spare it: at most half of what is available, since the rest
/// is what keeps the machine from swapping.
fn memory(name: &TargetName, bytes: u64, machine: &Machine) -> anyhow::Result<OpenTarget> {
    const MIN: u64 = 1 << 20;
    let available = match &machine.memory.available_bytes {
        Fact::Known { value, .. } => *value,
        Fact::Unknown { unknown, .. } => {
            anyhow::bail!(
                "cannot use memory as a target: how much is available is not known ({unknown})"
            )
        }
    };
    anyhow::ensure!(
        (MIN..=available / 2).contains(&bytes),
        "cannot use {} of memory: {} are available and half of that may be used; give something \
         from ram:1MiB to ram:{}MiB",
        bytes_iec(bytes),
        bytes_iec(available),
        available / 2 / MIN,
    );
    let (named, path) = (name.to_string(), PathBuf::from("memory"));
    let identity = TargetIdentity { named, path, ..Default::default() };
    Ok(OpenTarget::new(Target::Ram { size_bytes: bytes }, identity, bytes))
}

fn of_path(
    path: &Path,
    machine: &Machine,
    files: &dyn Files,
    allowance: &Allowance,
) -> anyhow::Result<OpenTarget> {
    nas::must_answer(files, path)?;
    let kind = path.metadata().map_err(|error| unmeasurable(path, &error))?.file_type();
    if kind.is_block_device() {
        return device(path, files, allowance);
    }
    let real =
        own_files::real_path(path).with_context(|| format!("cannot resolve {}", path.display()))?;
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

/// Why nothing is measured there, and what to name instead.
fn unmeasurable(path: &Path, error: &io::Error) -> anyhow::Error {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => anyhow::anyhow!(
            "cannot measure on {shown}: there is no such file, directory or disk\n\
             Name a directory on the disk; `rubus survey` lists the disks and where they are mounted"
        ),
        io::ErrorKind::PermissionDenied if !rustix::process::geteuid().is_root() => {
            anyhow::anyhow!(
                "cannot measure on {shown}: this user may not look there\nRun the same with sudo"
            )
        }
        _ => anyhow::anyhow!("cannot measure on {shown}: {error}"),
    }
}

fn directory(
    path: &Path,
    real: PathBuf,
    machine: &Machine,
    files: &dyn Files,
) -> anyhow::Result<OpenTarget> {
    let space = files
        .space(&real)
        .with_context(|| format!("cannot read the free space of {}", real.display()))?;
    let target = Target::Directory { path: real.clone() };
    let identity = identity_of(path, real, machine, files);
    Ok(OpenTarget::new(target, identity, space.available_bytes))
}

fn file(
    path: &Path,
    real: PathBuf,
    machine: &Machine,
    files: &dyn Files,
    allowance: &Allowance,
) -> anyhow::Result<OpenTarget> {
    let size = real
        .metadata()
        .with_context(|| format!("cannot read the size of {}", real.display()))?
        .len();
    let may_overwrite = may_overwrite_file(path, &real, allowance)?;
    if may_overwrite {
        guard::file_unused(files, &real).map_err(refused)?;
    }
    let target = Target::File { path: real.clone(), may_overwrite };
    Ok(OpenTarget::new(target, identity_of(path, real, machine, files), size))
}

/// A file's contents may be lost only if the user gave its path as the thing to lose.
fn may_overwrite_file(path: &Path, real: &Path, allowance: &Allowance) -> anyhow::Result<bool> {
    if allowance.may_lose.is_empty() {
        return Ok(false);
    }
    let mut named = allowance.may_lose.iter().map(Path::new);
    if !named.any(|named| named == path || named == real) {
        return Err(Refused(format!(
            "you allowed the loss of '{}', but the target is {}\n  \
             to overwrite it, give --i-will-lose-everything-on={}",
            allowance.may_lose.join("', '"),
            path.display(),
            real.display()
        ))
        .into());
    }
    Ok(!allowance.read_only)
}

fn device(path: &Path, files: &dyn Files, allowance: &Allowance) -> anyhow::Result<OpenTarget> {
    let opened =
        if allowance.read_only { for_reading(path)? } else { claim(path, files, allowance)? };
    let sysfs = files.real_path(&Path::new("/sys/dev/block").join(opened.number.to_string())).ok();
    let device =
        sysfs.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let target = Target::Device {
        fd: opened.fd,
        path: opened.path.clone(),
        size_bytes: opened.size_bytes,
        may_overwrite: !allowance.read_only,
    };
    let identity = TargetIdentity {
        named: path.display().to_string(),
        path: opened.path,
        link: device.as_deref().and_then(|device| link_of_device(files, device)),
        device,
        ..Default::default()
    };
    Ok(OpenTarget::new(target, identity, opened.size_bytes))
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
    let (path, number, size_bytes) =
        (reader.path().to_path_buf(), reader.number(), reader.size_bytes());
    Ok(OpenedDevice { fd: reader.into_fd(), path, number, size_bytes })
}

/// Claims a device for overwriting. What only needs a confirmation is asked for on a terminal.
fn claim(path: &Path, files: &dyn Files, allowance: &Allowance) -> anyhow::Result<OpenedDevice> {
    let given = &allowance.may_lose;
    let mut answer = None;
    // Each target takes the one that is meant for it.
    for serial in given {
        let tried = guard::claim(files, path, Some(&Consent::new(serial)));
        let is_claimed = tried.is_ok();
        answer = Some(tried);
        if is_claimed {
            break;
        }
    }
    let answer = answer.unwrap_or_else(|| guard::claim(files, path, None));
    let claimed = match answer {
        Err(refusal) if given.is_empty() && refusal.expected_confirmation().is_some() => {
            let typed = ask(&refusal)?.ok_or_else(|| refused(refusal))?;
            guard::claim(files, path, Some(&Consent::new(&typed))).map_err(refused)?
        }
        answer => answer.map_err(refused)?,
    };
    claimed
        .set_direct(true)
        .with_context(|| format!("cannot bypass the cache of {}", path.display()))?;
    let (path, number, size_bytes) =
        (claimed.path().to_path_buf(), claimed.number(), claimed.size_bytes());
    Ok(OpenedDevice { fd: claimed.into_fd(), path, number, size_bytes })
}

/// Shows what would be lost and lets the user type the confirmation; nothing without a terminal or
/// when the line is left empty.
fn ask(refusal: &Refusal) -> anyhow::Result<Option<String>> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Ok(None);
    }
    prompt!("{refusal}\n\nType it here to overwrite the device, or press Enter to stop: ");
    let mut typed = String::new();
    std::io::stdin().read_line(&mut typed).context("cannot read the confirmation")?;
    Ok(Some(typed.trim().to_string()).filter(|typed| !typed.is_empty()))
}

/// What else can be done with a device that is refused.
pub const READ_ONLY_HINT: &str =
    "\n\nTo measure only reading, which changes nothing, add --read-only.";

fn refused(refusal: Refusal) -> anyhow::Error {
    let hint = match refusal.facts() {
        guard::TargetFacts::Device(_) => READ_ONLY_HINT,
        _ => "",
    };
    Refused(format!("{refusal}{hint}")).into()
}

/// What a path with the real path `real` is on. The kernel's own table says which mount holds it. The survey, which
/// knows the devices, leaves some mounts out (FUSE programs); what lies there is on no known device.
fn identity_of(path: &Path, real: PathBuf, machine: &Machine, files: &dyn Files) -> TargetIdentity {
    let table = files.text(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    let (lines, _) = mountinfo::parse(&table);
    let line = mountinfo::holding(&lines, &real.to_string_lossy());
    let surveyed =
        line.and_then(|line| machine.mounts.iter().rev().find(|mount| mount.point == line.point));
    let device = surveyed.and_then(|mount| mount.device.clone());
    TargetIdentity {
        named: path.display().to_string(),
        share: Share::holding(files, &real),
        path: real,
        filesystem: line.map(|line| line.filesystem.clone()),
        link: device.as_deref().and_then(|device| link_of_device(files, device)),
        device,
        ..Default::default()
    }
}
