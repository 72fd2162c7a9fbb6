//! Control groups, version 1 or 2, whichever this machine has: the block throttle (`blkio` or `io`), and the limit of
//! memory.
//!
//! Version 1 throttles only what a process submits itself, so what runs inside must use direct I/O.
//! The throttle works in slices of a tenth of a second: a device limited to 500 operations per
//! second lets 50 pass at once and then pauses. Rates are exact over whole slices, latencies are not
//! those of a smooth device.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::{mark, programs};

/// What a device may do at most; nothing means no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Bytes read per second.
    pub read_bytes_per_second: Option<u64>,
    /// Bytes written per second.
    pub write_bytes_per_second: Option<u64>,
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
}

impl Limits {
    /// Key of version 2, file of version 1, and the limit.
    fn entries(&self) -> [(&'static str, &'static str, Option<u64>); 4] {
        [
            ("rbps", "blkio.throttle.read_bps_device", self.read_bytes_per_second),
            ("wbps", "blkio.throttle.write_bps_device", self.write_bytes_per_second),
            ("riops", "blkio.throttle.read_iops_device", self.read_iops),
            ("wiops", "blkio.throttle.write_iops_device", self.write_iops),
        ]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The directory in which a group's limits are written. Dropping it does nothing: the group may be shared.
#[derive(Debug)]
struct Throttle {
    directory: PathBuf,
    version: Version,
}

/// A control group of our own; what is started by [`BlockGroup::command`] is inside.
#[derive(Debug)]
pub struct BlockGroup {
    throttle: Throttle,
}

impl Throttle {
    fn limit(&self, device: (u32, u32), limits: Limits) -> Result<()> {
        let (major, minor) = device;
        match self.version {
            Version::One => {
                for (_, file, limit) in limits.entries() {
                    let limit = limit.unwrap_or(0);
                    self.write(file, &format!("{major}:{minor} {limit}"))?;
                }
            }
            Version::Two => {
                let mut line = format!("{major}:{minor}");
                for (key, _, limit) in limits.entries() {
                    let limit = limit.map_or("max".to_string(), |limit| limit.to_string());
                    line.push_str(&format!(" {key}={limit}"));
                }
                self.write("io.max", &line)?;
            }
        }
        Ok(())
    }

    fn write(&self, file: &str, line: &str) -> Result<()> {
        let path = self.directory.join(file);
        std::fs::write(&path, line)
            .with_context(|| format!("could not write \"{line}\" to {}", path.display()))
    }
}

impl BlockGroup {
    /// Makes a group without limits.
    ///
    /// # Errors
    /// When the machine has no hierarchy that can throttle, or does not let us use it.
    pub fn new() -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (root, version) = hierarchy("blkio", "io")?;
        if version == Version::Two {
            hand_on(&root, "io")?;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = root.join(format!("{}{number}", mark::prefix()));
        std::fs::create_dir(&directory)
            .with_context(|| format!("could not make the control group {}", directory.display()))?;
        let throttle = Throttle { directory, version };
        Ok(BlockGroup { throttle })
    }

    /// Limits a device, given by its major and minor number. Takes effect at once, also for what
    /// is waiting; a limit that is absent is lifted.
    ///
    /// # Errors
    /// When the kernel refuses, as it does for a number that is no whole disk.
    pub fn limit(&self, device: (u32, u32), limits: Limits) -> Result<()> {
        self.throttle.limit(device, limits)
    }

    /// A command that will run inside the group from its first instruction on.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = programs::command("sh");
        command
            .arg("-c")
            .arg(r#"echo $$ > "$0/cgroup.procs" && exec "$@""#)
            .arg(&self.throttle.directory)
            .arg(program);
        command
    }

    /// `1` or `2`.
    pub fn version(&self) -> u32 {
        match self.throttle.version {
            Version::One => 1,
            Version::Two => 2,
        }
    }
}

impl Drop for BlockGroup {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.throttle.directory) {
            eprintln!("{error:#}");
        }
    }
}

/// Ends what still runs inside a group and removes it. What waits for a throttled device is let go only when its turn comes, so
/// this is tried for a while.
///
/// # Errors
/// When it is still there after ten seconds.
pub(super) fn remove(directory: &Path) -> Result<()> {
    let give_up = Instant::now() + Duration::from_secs(10);
    while let Err(error) = std::fs::remove_dir(directory) {
        if Instant::now() > give_up {
            return Err(error).with_context(|| format!("could not remove {}", directory.display()));
        }
        let list = std::fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
        let processes = list.lines().filter_map(|line| line.parse().ok());
        for process in processes.filter_map(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Where groups of our own are made, as far as this machine has such hierarchies.
pub(super) fn directories() -> Vec<PathBuf> {
    let both = [hierarchy("blkio", "io"), hierarchy("memory", "memory")];
    let mut roots: Vec<PathBuf> = both.into_iter().flatten().map(|(root, _)| root).collect();
    roots.dedup();
    roots
}

/// A limit for all processes outside other groups, kernel threads included, that is lifted on drop. A filesystem's
/// later writes are not charged to their user, and only this limit throttles them.
#[derive(Debug)]
pub struct LimitForAll {
    root: Throttle,
    device: (u32, u32),
}

impl LimitForAll {
    /// Limits a device, given by its major and minor number.
    ///
    /// # Errors
    /// When the machine has no hierarchy of version 1 that throttles (version 2 has no limits at its root), or refuses.
    pub fn new(device: (u32, u32), limits: Limits) -> Result<Self> {
        let root = LimitForAll::root()?;
        let limit = LimitForAll { root, device };
        limit.change(limits)?;
        Ok(limit)
    }

    /// Lifts a limit that a killed process left.
    ///
    /// # Errors
    /// When the machine has no such limits, or refuses.
    pub(super) fn lift(device: (u32, u32)) -> Result<()> {
        LimitForAll::root()?.limit(device, Limits::default())
    }

    /// Why there can be no such limit; nothing when there can.
    pub fn missing() -> Option<String> {
        LimitForAll::root().err().map(|error| format!("no throttle for all: {error:#}"))
    }

    fn root() -> Result<Throttle> {
        let (directory, version) = hierarchy("blkio", "io")?;
        if version == Version::Two {
            bail!("control groups of version 2 have no limits at their root");
        }
        if !directory.join("blkio.throttle.io_serviced").exists() {
            bail!("{} has no throttle", directory.display());
        }
        Ok(Throttle { directory, version })
    }

    /// Other limits, from now on.
    ///
    /// # Errors
    /// When the kernel refuses them.
    pub fn change(&self, limits: Limits) -> Result<()> {
        self.root.limit(self.device, limits)
    }

    /// Where the kernel lists the limits of reads per second of all devices.
    pub fn file_of_reads(&self) -> PathBuf {
        self.root.directory.join("blkio.throttle.read_iops_device")
    }

    /// Writes and flushes of the device that the throttle has counted.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn writes(&self) -> Result<u64> {
        let (major, minor) = self.device;
        let path = self.root.directory.join("blkio.throttle.io_serviced");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("could not read {}", path.display()))?;
        let wanted = format!("{major}:{minor} Write ");
        let count = text.lines().find_map(|line| line.strip_prefix(&wanted));
        Ok(count.and_then(|count| count.parse().ok()).unwrap_or(0))
    }
}

impl Drop for LimitForAll {
    fn drop(&mut self) {
        if let Err(error) = self.change(Limits::default()) {
            eprintln!("could not lift a limit: {error:#}");
        }
    }
}

/// A new control group whose processes may take so much memory, swap not counted; gives its directory, which the
/// caller removes when nothing runs in it.
///
/// # Errors
/// When the machine has no hierarchy that limits memory, or does not let us use it.
pub fn memory_group(limit_bytes: u64) -> Result<PathBuf> {
    let (root, version) = hierarchy("memory", "memory")?;
    if version == Version::Two {
        hand_on(&root, "memory")?;
    }
    let directory = root.join(format!("{}memory", mark::prefix()));
    std::fs::create_dir(&directory)
        .with_context(|| format!("could not make the control group {}", directory.display()))?;
    let file = match version {
        Version::One => "memory.limit_in_bytes",
        Version::Two => "memory.max",
    };
    std::fs::write(directory.join(file), limit_bytes.to_string())
        .with_context(|| format!("could not limit the memory of {}", directory.display()))
        .inspect_err(|_| {
            let _ = std::fs::remove_dir(&directory);
        })?;
    Ok(directory)
}

/// The hierarchy with a controller: its name in version 1, and in version 2.
fn hierarchy(first: &str, second: &str) -> Result<(PathBuf, Version)> {
    let mounts = std::fs::read_to_string("/proc/mounts").context("could not read /proc/mounts")?;
    let mut unified = None;
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, at, kind, options, ..] = fields[..] else {
            continue;
        };
        match kind {
            "cgroup" if options.split(',').any(|option| option == first) => {
                return Ok((PathBuf::from(at), Version::One));
            }
            "cgroup2" => {
                let offered = std::fs::read_to_string(Path::new(at).join("cgroup.controllers"));
                if offered.is_ok_and(|list| list.split_whitespace().any(|name| name == second)) {
                    unified = Some(PathBuf::from(at));
                }
            }
            _ => {}
        }
    }
    unified.map(|root| (root, Version::Two)).ok_or_else(|| {
        anyhow!("neither a cgroup v1 with {first} nor a cgroup v2 with {second} is mounted")
    })
}

/// Delegates a controller to the children of the root group. It stays delegated: another process may rely on it by now.
fn hand_on(root: &Path, controller: &str) -> Result<()> {
    let control = root.join("cgroup.subtree_control");
    let enabled = std::fs::read_to_string(&control).unwrap_or_default();
    if enabled.split_whitespace().any(|name| name == controller) {
        return Ok(());
    }
    if let Err(error) = std::fs::write(&control, format!("+{controller}")) {
        bail!("could not enable {controller} in {}: {error}", control.display());
    }
    Ok(())
}
