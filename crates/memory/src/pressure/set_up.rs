//! What pages go to that do not fit: the machine's own swap, none, or swap that is made for the measurement.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, bail, ensure};
use rubus_host::block::loop_device::{LoopDevice, Part};
use rubus_host::files::mounting::swap_on;
use rubus_host::files::own_files;
use rubus_host::process::programs;
use rubus_vocabulary::machine::{Machine, Setting, SwapArea};
use rubus_vocabulary::memory::{SetUp, SetUpKind};
use rubus_vocabulary::units::{bytes_iec, percent};
use rustix::fs::{FallocateFlags, Mode, OFlags};

use super::counters;
use super::keeper::{Deed, Keeper};

const ZSWAP: &str = "/sys/module/zswap/parameters";
/// Before every area whose priority the kernel chose.
const FIRST_OF_ALL: i32 = 32767;

/// Where pages are kept compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pool {
    /// The pool of zswap.
    Zswap,
    /// A zram device.
    Zram(String),
}

impl Pool {
    /// Memory that it takes, and bytes of the pages in it.
    fn now(&self) -> (u64, u64) {
        let found = match self {
            Pool::Zswap => counters::zswap_pool(),
            Pool::Zram(name) => counters::zram_pool(name),
        };
        found.unwrap_or_default()
    }
}

/// Memory that all of them take, and bytes of the pages in them.
pub fn pools_now(pools: &[Pool]) -> (u64, u64) {
    let each = pools.iter().map(Pool::now);
    each.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
}

/// A set-up that is there.
pub struct Made {
    /// What it is.
    pub set_up: SetUp,
    /// Where pages are compressed.
    pub pools: Vec<Pool>,
    /// What its figures do not say, as sentences without full stops.
    pub remarks: Vec<String>,
    /// Held until the swap on it is off.
    _device: Option<LoopDevice>,
}

impl Made {
    /// Whether pages are written to something that wears.
    pub fn writes_to_disk(&self) -> bool {
        !matches!(self.set_up.kind, SetUpKind::None | SetUpKind::Zram)
    }
}

/// What the machine has.
pub fn own(machine: &Machine) -> Made {
    let areas = &machine.swap.areas;
    let is_zram = |area: &SwapArea| area.device.text().is_some_and(|name| name.starts_with("zram"));
    let zswap_on = machine.swap.zswap.enabled.get() == Some(true);
    let (zram, disk): (Vec<_>, Vec<_>) = areas.iter().partition(|area| is_zram(area));
    let kind = match (zram.is_empty(), disk.is_empty()) {
        (true, true) => SetUpKind::None,
        (true, false) if zswap_on => SetUpKind::Zswap,
        (true, false) => SetUpKind::Disk,
        (false, true) if !zswap_on => SetUpKind::Zram,
        _ => SetUpKind::Mixed,
    };
    let paths: Vec<&str> = areas.iter().map(|area| area.path.as_str()).collect();
    let paths = paths.join(", ");
    let mut pools: Vec<Pool> = zram
        .iter()
        .filter_map(|area| area.device.text())
        .map(|name| Pool::Zram(name.to_string()))
        .collect();
    let zswap_counts = zswap_on && !areas.is_empty();
    if zswap_counts {
        pools.push(Pool::Zswap);
    }
    let title = match kind {
        SetUpKind::None => "no swap".into(),
        SetUpKind::Disk => format!("swap on {paths}"),
        SetUpKind::Zram => format!("zram: {paths}"),
        SetUpKind::Zswap => format!("{} before {paths}", zswap_words(machine)),
        SetUpKind::Mixed => format!("several: {paths}"),
    };
    Made {
        set_up: SetUp {
            kind,
            title,
            is_temporary: false,
            swap_bytes: areas.iter().map(|area| area.size_bytes).sum(),
            pool_share: zswap_counts.then(|| pool_percent(machine)).flatten().map(|p| p / 100.0),
        },
        pools,
        remarks: Vec::new(),
        _device: None,
    }
}

fn parameter<'a>(machine: &'a Machine, name: &str) -> Option<&'a str> {
    let parameters: &[Setting] = &machine.swap.zswap.parameters;
    parameters.iter().find(|setting| setting.name == name)?.value.text()
}

/// The value of zswap's `max_pool_percent`.
pub fn pool_percent(machine: &Machine) -> Option<f64> {
    parameter(machine, "max_pool_percent")?.parse().ok()
}

fn zswap_words(machine: &Machine) -> String {
    let words = [
        parameter(machine, "compressor").map(str::to_string),
        pool_percent(machine).map(|p| percent(p / 100.0)),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    format!("zswap ({})", words.join(", "))
}

/// What is needed to make swap.
pub struct SetUpInputs<'a> {
    /// The machine before anything was made.
    pub machine: &'a Machine,
    /// A directory on the disk that stands for the swap disk.
    pub directory: &'a Path,
    pub swap_bytes: u64,
    /// The user wants no more.
    pub cancel: &'a AtomicBool,
}

/// Makes a set-up that the keeper removes.
///
/// # Errors
/// When something is missing: root, a driver, a program, room on the disk.
pub fn make(
    kind: SetUpKind,
    inputs: &SetUpInputs<'_>,
    keeper: &mut Keeper,
) -> anyhow::Result<Made> {
    let mut made = Made {
        set_up: SetUp {
            kind,
            title: "no swap".into(),
            is_temporary: true,
            swap_bytes: if kind == SetUpKind::None { 0 } else { inputs.swap_bytes },
            pool_share: None,
        },
        pools: Vec::new(),
        remarks: Vec::new(),
        _device: None,
    };
    if kind == SetUpKind::None {
        return Ok(made);
    }
    ensure!(rustix::process::geteuid().is_root(), "only root can make swap; run it with sudo");
    let areas = &inputs.machine.swap.areas;
    ensure!(
        areas.iter().all(|area| area.priority < FIRST_OF_ALL),
        "an area of this machine has the highest priority of all, so pages would go there"
    );
    match kind {
        SetUpKind::Disk | SetUpKind::Zswap => on_file(&mut made, inputs, keeper)?,
        SetUpKind::Zram => on_zram(&mut made, inputs, keeper)?,
        SetUpKind::None | SetUpKind::Mixed => bail!("there is no such set-up to be made"),
    }
    let zswap = Path::new(ZSWAP).join("enabled");
    match (kind, zswap.exists()) {
        (SetUpKind::Zswap, false) => bail!("this kernel has no zswap"),
        (_, false) => {}
        (_, true) => set(&zswap, if kind == SetUpKind::Zswap { "Y" } else { "N" }, keeper)?,
    }
    Ok(made)
}

/// Swap on a file without a name, through a loop device.
fn on_file(made: &mut Made, inputs: &SetUpInputs<'_>, keeper: &mut Keeper) -> anyhow::Result<()> {
    let directory = inputs.directory;
    let device = (|| {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file: File = rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)?.into();
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, inputs.swap_bytes)?;
        Ok::<_, rustix::io::Errno>(file)
    })();
    let file = device.map_err(std::io::Error::from).with_context(|| {
        format!(
            "cannot make a file of {} without a name in {}: choose another directory (--directory) or less memory",
            bytes_iec(inputs.swap_bytes),
            directory.display()
        )
    })?;
    let way = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let device = LoopDevice::attach(&way, Part::Whole)?;
    if let Err(error) = device.go_past_cache() {
        bail!(
            "{error}: swap there would stay in memory and look faster than any disk; name a directory on a disk with \
             --directory"
        );
    }
    use_area(device.path(), inputs, keeper)?;
    let path = device.path().display();
    made.set_up.title = match made.set_up.kind {
        SetUpKind::Zswap => {
            made.pools.push(Pool::Zswap);
            made.set_up.pool_share = pool_percent(inputs.machine).map(|p| p / 100.0);
            format!("{} before a file in {}", zswap_words(inputs.machine), directory.display())
        }
        _ => format!("swap on a file in {} ({path})", directory.display()),
    };
    made._device = Some(device);
    Ok(())
}

fn on_zram(made: &mut Made, inputs: &SetUpInputs<'_>, keeper: &mut Keeper) -> anyhow::Result<()> {
    let control = Path::new("/sys/class/zram-control/hot_add");
    let number = own_files::text(control).context(
        "cannot make a zram device: the kernel has no zram, or its module is not loaded (`modprobe zram`)",
    )?;
    let number: u32 = number.trim().parse().context("the kernel named no number")?;
    keeper.promise(&Deed::Zram(number))?;
    let name = format!("zram{number}");
    let sysfs = Path::new("/sys/block").join(&name);
    own_files::write(&sysfs.join("disksize"), &inputs.swap_bytes.to_string())
        .with_context(|| format!("cannot give {name} a size"))?;
    let algorithm = own_files::text(&sysfs.join("comp_algorithm")).unwrap_or_default();
    let chosen = algorithm.split_whitespace().find(|word| word.starts_with('['));
    use_area(&Path::new("/dev").join(&name), inputs, keeper)?;
    let chosen = chosen.unwrap_or("").trim_matches(['[', ']']);
    made.set_up.title = format!("zram ({chosen}, {})", bytes_iec(inputs.swap_bytes));
    made.pools.push(Pool::Zram(name));
    Ok(())
}

fn use_area(path: &Path, inputs: &SetUpInputs<'_>, keeper: &mut Keeper) -> anyhow::Result<()> {
    let name = path.to_string_lossy();
    programs::run("mkswap", &["--label", "rubus-bench", &name], inputs.cancel)?;
    keeper.promise(&Deed::Swap(path.into()))?;
    swap_on(path, Some(FIRST_OF_ALL))?;
    Ok(())
}

/// Changes a setting of the kernel, if it is another one.
///
/// # Errors
/// When it cannot be read or written.
pub fn set(path: &Path, value: &str, keeper: &mut Keeper) -> anyhow::Result<()> {
    let before =
        own_files::text(path).with_context(|| format!("cannot read {}", path.display()))?;
    if before.trim() == value {
        return Ok(());
    }
    keeper.promise(&Deed::Knob { path: path.into(), value: before.trim().into() })?;
    own_files::write(path, value)
        .with_context(|| format!("cannot write {value} to {}", path.display()))
}

/// Lets zswap's pool have the share of a group's memory that it has of the machine's, where the kernel limits it for
/// the whole machine only: by a lower limit while it is measured.
pub fn scale_pool(made: &mut Made, group_bytes: u64, machine: &Machine, keeper: &mut Keeper) {
    let Some((percent_now, memory)) = pool_percent(machine).zip(machine.memory.total_bytes.get())
    else {
        return;
    };
    let wanted = percent_now * group_bytes as f64 / memory as f64;
    let whole = (wanted.round() as u64).max(1);
    let limit = memory / 100 * whole;
    let in_use = counters::zswap_pool().unwrap_or_default().0;
    let knob = Path::new(ZSWAP).join("max_pool_percent");
    let outcome = if in_use * 2 > limit {
        Err(anyhow::anyhow!("other programs have {} in it", bytes_iec(in_use)))
    } else {
        set(&knob, &whole.to_string(), keeper)
    };
    let share = match outcome {
        Ok(()) => limit as f64 / group_bytes as f64,
        Err(error) => {
            made.remarks.push(format!(
                "zswap's pool could not be limited to its share of the group ({error:#}), so it was larger than the \
                 machine's would be"
            ));
            percent_now / 100.0 * memory as f64 / group_bytes as f64
        }
    };
    let is_like = (share * 100.0 / percent_now - 1.0).abs() < 0.1;
    if !is_like {
        made.remarks.push(format!(
            "zswap's pool might take {} of the group, of the machine {}",
            percent(share.min(1.0)),
            percent(percent_now / 100.0)
        ));
    }
    made.set_up.pool_share = Some(share.min(1.0));
}
