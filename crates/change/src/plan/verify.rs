//! Whether promises hold: from what was found on the machine to an answer each. Pure; the looking is done elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::knob_says;
use super::promise::{Look, Promise};
use super::volume::FilesystemKind;
use rubus_machine::kernel_log;
use rubus_machine::parse::btrfs::Compression;
use rubus_vocabulary::machine::{BlockDevice, HopKind, Machine, Mount, SwapArea};
use rubus_vocabulary::units::{bytes_si, percent, rate_si};

/// What was found besides the surveyed machine. What was not looked at is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Settings of the kernel, or why one cannot be read.
    pub knobs: BTreeMap<PathBuf, Result<String, String>>,
    /// What was written to disks in a while, by the kernel's name of the disk.
    pub writes: BTreeMap<String, Result<Writes, String>>,
    /// The arrays that run.
    pub arrays: Vec<ArrayState>,
    /// How btrfs filesystems are compressed, by where they are mounted.
    pub compression: BTreeMap<PathBuf, Result<Compression, String>>,
    /// The names of the exports that servers list, by the address at which they were asked.
    pub exports: BTreeMap<String, Result<Vec<String>, Unheard>>,
    /// UUIDs read from superblocks, by the kernel's name of the device; before what the survey knows.
    pub uuids: BTreeMap<String, String>,
}

/// Why it is not known which exports a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unheard {
    /// It does not answer, or does not tell.
    Silent(String),
    /// This user may not ask it, so it may well serve.
    Forbidden(String),
}

/// What was written to a disk in a while.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Writes {
    pub bytes: u64,
    /// The while, in seconds.
    pub elapsed_s: f64,
}

/// An array as the kernel runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayState {
    /// The kernel's name of it, "md127".
    pub name: String,
    /// Its UUID, 32 hexadecimal digits; absent where it cannot be read.
    pub uuid: Option<String>,
    /// Members that are in use.
    pub members: u32,
    /// What the kernel says of it: "clean", "broken".
    pub state: String,
}

/// What became of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PromiseState {
    Holds,
    /// It does not hold yet, and need not before the machine was started again.
    AfterStart,
    /// It does not hold.
    Broken,
    /// It cannot be seen whether it holds.
    Unknown,
}

/// The answer to a promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// The promise.
    pub what: String,
    /// What became of it.
    pub standing: PromiseState,
    /// What is the case, in words.
    pub found: String,
}

/// What one look sees: whether it is as promised, and what is the case. `Err`: it cannot be seen, and why.
type PathState = Result<(bool, String), String>;

/// Looks at every promise. `started_since`: the machine was started again since the change was finished.
pub fn verify(
    promises: &[Promise],
    machine: &Machine,
    found: &Found,
    started_since: bool,
) -> Vec<Answer> {
    let answer = |promise: &Promise| {
        let (standing, found) = match see(&promise.look, machine, found) {
            Ok((true, found)) => (PromiseState::Holds, found),
            Ok((false, found)) if promise.needs_boot && !started_since => {
                (PromiseState::AfterStart, found)
            }
            Ok((false, found)) => (PromiseState::Broken, found),
            Err(why) if promise.needs_boot && !started_since => (PromiseState::AfterStart, why),
            Err(why) => (PromiseState::Unknown, why),
        };
        Answer { what: promise.what.clone(), standing, found }
    };
    promises.iter().map(answer).collect()
}

fn see(look: &Look, machine: &Machine, found: &Found) -> PathState {
    match look {
        Look::Mounted { at, kind, uuid, options } => {
            mounted(at, *kind, uuid, options, machine, found)
        }
        Look::MountedFrom { at, device } => Ok(mounted_from(at, device, machine)),
        Look::InMemory { at } => Ok(in_memory(at, machine)),
        Look::Compressed { at, at_most } => compressed(at, *at_most, found),
        Look::Knob { path, value } => knob(path, value, found),
        Look::SwapOn { what, priority } => swap_on(what, *priority, machine, found),
        Look::UsbDriver { chip, driver } => usb_driver(chip, driver, machine),
        Look::PcieLink { disk, line_bits_per_second } => {
            pcie_link(disk, *line_bits_per_second, machine)
        }
        Look::NoSwapOnDisk { disk, partuuid } => {
            match disk_now(disk, partuuid.as_deref(), machine) {
                Some(disk) => no_swap_on(disk, machine),
                None => Ok((true, format!("what was {disk} is not there now"))),
            }
        }
        Look::QuietDisk { disk, partuuid, at_most_bytes_per_second } => {
            match disk_now(disk, partuuid.as_deref(), machine) {
                Some(disk) => quiet(disk, *at_most_bytes_per_second, machine, found),
                None => Ok((true, format!("what was {disk} is not there now"))),
            }
        }
        Look::Served { address, export } => served(address, export.as_deref(), found),
        Look::Array { uuid, members } => array(uuid, *members, found),
    }
}

fn mounted(
    at: &Path,
    kind: FilesystemKind,
    uuid: &str,
    options: &[String],
    machine: &Machine,
    found: &Found,
) -> PathState {
    let place = at.display().to_string();
    let Some(mount) = machine.mounts.iter().find(|mount| mount.point == place) else {
        return Ok((false, format!("nothing is mounted at {place}")));
    };
    let words = format!("{} from {}", mount.filesystem, source_of(mount));
    if mount.filesystem != kind.name() {
        return Ok((false, words));
    }
    let live = mount.device.as_deref();
    let live = live.and_then(|device| uuid_of(device, machine, found));
    let Some(live) = live else {
        return Err(format!("{words}, but its UUID cannot be read; run it as root"));
    };
    if !live.eq_ignore_ascii_case(uuid) {
        return Ok((false, format!("{words} with the UUID {live}")));
    }
    let missing: Vec<&str> = options
        .iter()
        .filter(|wanted| !mount.options.iter().any(|live| option_says(live, wanted)))
        .map(String::as_str)
        .collect();
    Ok(if missing.is_empty() {
        (true, format!("{words}, {}", mount.options.join(",")))
    } else {
        (
            false,
            format!("{words}, without {}; it has {}", missing.join(","), mount.options.join(",")),
        )
    })
}

fn mounted_from(at: &Path, device: &str, machine: &Machine) -> (bool, String) {
    let place = at.display().to_string();
    match machine.mounts.iter().rfind(|mount| mount.point == place) {
        Some(mount) => (
            mount.device.as_deref() == Some(device),
            format!("{} from {}", mount.filesystem, source_of(mount)),
        ),
        None => (false, format!("nothing is mounted at {place}")),
    }
}

fn in_memory(at: &Path, machine: &Machine) -> (bool, String) {
    let place = at.display().to_string();
    match machine.mounts.iter().rfind(|mount| mount.point == place) {
        Some(mount) => {
            (mount.filesystem == "tmpfs", format!("{} is mounted at {place}", mount.filesystem))
        }
        None => (false, format!("nothing is mounted at {place}")),
    }
}

fn source_of(mount: &Mount) -> String {
    match &mount.device {
        Some(device) => format!("/dev/{device}"),
        None => mount.source.clone(),
    }
}

/// Whether an option that the kernel says is the wanted one, in its words: `subvol=/@` for `subvol=@`,
/// `compress=zstd:3` for `compress=zstd`. What only programs read (`nofail`, `x-…`) the kernel never says.
fn option_says(live: &str, wanted: &str) -> bool {
    const OF_PROGRAMS: [&str; 7] =
        ["defaults", "nofail", "auto", "noauto", "_netdev", "user", "users"];
    let bare = |option: &str| option.replacen("subvol=/", "subvol=", 1);
    OF_PROGRAMS.contains(&wanted)
        || wanted.starts_with("x-")
        || bare(live) == bare(wanted)
        || live
            .strip_prefix(wanted)
            .is_some_and(|level| wanted.contains('=') && level.starts_with(':'))
}

/// The UUID of what is on a device.
fn uuid_of<'a>(device: &str, machine: &'a Machine, found: &'a Found) -> Option<&'a str> {
    let read = found.uuids.get(device).map(String::as_str);
    read.or_else(|| block(machine, device)?.identity.uuid.as_deref())
}

fn block<'a>(machine: &'a Machine, name: &str) -> Option<&'a BlockDevice> {
    machine.block_devices.iter().find(|device| device.name == name)
}

fn compressed(at: &Path, at_most: f64, found: &Found) -> PathState {
    match found.compression.get(at) {
        None => Err(format!("{} was not looked at", at.display())),
        Some(Err(why)) => Err(why.clone()),
        Some(Ok(seen)) if seen.compressed_share() == 0.0 => {
            Ok((false, format!("nothing is compressed: {seen}")))
        }
        Some(Ok(seen)) => Ok((seen.share() <= at_most, seen.to_string())),
    }
}

fn knob(path: &Path, value: &str, found: &Found) -> PathState {
    let shown = path.display();
    match found.knobs.get(path) {
        None => Err(format!("{shown} was not looked at")),
        Some(Err(why)) => Err(format!("{shown}: {why}")),
        Some(Ok(live)) => Ok((knob_says(live, value), format!("{shown} is {live}"))),
    }
}

fn swap_on(what: &str, priority: Option<i32>, machine: &Machine, found: &Found) -> PathState {
    let is_meant = |area: &&SwapArea| match what.strip_prefix('/') {
        Some(_) => {
            area.path == what || area.device.value().map(|name| node(name)) == Some(what.into())
        }
        None => {
            let uuid = what.strip_prefix("UUID=").unwrap_or(what);
            let device = area.device.value().filter(|_| area.kind == "partition");
            let live = device.and_then(|device| uuid_of(device, machine, found));
            live.is_some_and(|live| live.eq_ignore_ascii_case(uuid))
        }
    };
    let Some(area) = machine.swap.areas.iter().find(is_meant) else {
        return Ok((false, format!("in use: {}", areas(&machine.swap.areas))));
    };
    let words = areas(std::slice::from_ref(area));
    Ok(match priority {
        Some(priority) if priority != area.priority => {
            (false, format!("{words}, instead of {priority}"))
        }
        _ => (true, words),
    })
}

/// What a disk is called now that had a partition with this PARTUUID when the promise was made; nothing where it is not
/// there. Without one, or where no PARTUUID of the machine is known, the name has to do.
pub fn disk_now<'a>(
    disk: &'a str,
    partuuid: Option<&str>,
    machine: &'a Machine,
) -> Option<&'a str> {
    let mut devices = machine.block_devices.iter();
    let is_known = machine.block_devices.iter().any(|device| device.identity.partuuid.is_some());
    let Some(partuuid) = partuuid.filter(|_| is_known) else {
        return Some(disk);
    };
    let device = devices.find(|device| {
        let known = device.identity.partuuid.as_deref();
        known.is_some_and(|known| known.eq_ignore_ascii_case(partuuid))
    })?;
    Some(device.parent.as_deref().unwrap_or(&device.name))
}

fn node(name: &str) -> String {
    format!("/dev/{name}")
}

fn areas(areas: &[SwapArea]) -> String {
    if areas.is_empty() {
        return "no swap at all".into();
    }
    let area = |area: &SwapArea| {
        format!(
            "{}, {}, {} used, priority {}",
            area.path,
            bytes_si(area.size_bytes),
            bytes_si(area.used_bytes),
            area.priority
        )
    };
    areas.iter().map(area).collect::<Vec<_>>().join("; ")
}

/// A bridge that is not plugged in is served by nothing, which is neither right nor wrong.
fn usb_driver(chip: &str, driver: &str, machine: &Machine) -> PathState {
    let mut hops = machine.block_devices.iter().flat_map(|device| &device.path);
    let bridge = hops.rfind(|hop| hop.chip.as_deref() == Some(chip));
    let bridge = bridge.ok_or_else(|| format!("no disk is behind a bridge {chip} now"))?;
    let now = bridge.driver.text();
    let now = now.ok_or_else(|| format!("which driver serves {} is unknown", bridge.name))?;
    Ok((now == driver, format!("{now} serves {}", bridge.name)))
}

fn pcie_link(disk: &str, line_bits_per_second: u64, machine: &Machine) -> PathState {
    let disk = machine.device(disk).ok_or_else(|| format!("{disk} is not there now"))?;
    let link = disk.path.iter().find(|hop| hop.kind == HopKind::Pcie);
    let link = link.ok_or_else(|| format!("which link leads to {} is not known", disk.name))?;
    let now = link.line_bits_per_second.get().ok_or("the rate of the link is not known")?;
    if now != line_bits_per_second {
        return Ok((false, link.link.clone()));
    }
    let errors = kernel_log::link_errors(machine, disk, &link.id);
    Ok(match errors {
        Ok(0) => (true, format!("{}, and no errors in the kernel's log", link.link)),
        Ok(count) => (false, format!("{}, with {count} errors in the kernel's log", link.link)),
        Err(why) => {
            let words = format!("{}, but whether it has errors is not known: {why}", link.link);
            return Err(words);
        }
    })
}

fn no_swap_on(disk: &str, machine: &Machine) -> PathState {
    let mut unsure = Vec::new();
    for area in &machine.swap.areas {
        match area.device.value() {
            Some(device) if stands_on(device, disk, machine) => {
                let words = areas(std::slice::from_ref(area));
                return Ok((false, format!("on {disk}: {words}")));
            }
            Some(_) => {}
            None => unsure.push(area.path.as_str()),
        }
    }
    for zram in &machine.swap.zram {
        let backing = zram.backing_device.value().map(String::as_str);
        let backing = backing.map(|device| device.trim_start_matches("/dev/"));
        if let Some(backing) = backing.filter(|device| stands_on(device, disk, machine)) {
            let words = format!("{} writes back to {backing}, which is on {disk}", zram.name);
            return Ok((false, words));
        }
    }
    if unsure.is_empty() {
        Ok((true, format!("in use: {}", areas(&machine.swap.areas))))
    } else {
        Err(format!("it cannot be seen on which disk {} lies", unsure.join(" and ")))
    }
}

/// Whether a device is a disk, a part of it, or stands on one that is.
fn stands_on(device: &str, disk: &str, machine: &Machine) -> bool {
    // Devices stand on one another a few levels deep at most; the bound is for nonsense that goes round.
    const MAX_LEVELS: usize = 16;
    let mut level = vec![device];
    for _ in 0..MAX_LEVELS {
        if level.contains(&disk) {
            return true;
        }
        level = level
            .into_iter()
            .filter_map(|name| block(machine, name))
            .flat_map(|block| block.parent.iter().chain(&block.below))
            .map(String::as_str)
            .collect();
    }
    false
}

fn quiet(disk: &str, at_most: u64, machine: &Machine, found: &Found) -> PathState {
    if block(machine, disk).is_none() {
        return Ok((true, format!("there is no {disk} now")));
    }
    match found.writes.get(disk) {
        None => Err(format!("{disk} was not looked at")),
        Some(Err(why)) => Err(format!("{disk}: {why}")),
        Some(Ok(writes)) => {
            let rate = writes.bytes as f64 / writes.elapsed_s.max(0.001);
            let words = format!(
                "{} written to {disk} in {:.0} s, {}",
                bytes_si(writes.bytes),
                writes.elapsed_s,
                rate_si(rate)
            );
            Ok((rate <= at_most as f64, words))
        }
    }
}

fn served(address: &str, export: Option<&str>, found: &Found) -> PathState {
    let names = match found.exports.get(address) {
        None => return Err(format!("{address} was not asked")),
        // A server that does not answer does not serve.
        Some(Err(Unheard::Silent(why))) => return Ok((false, why.clone())),
        Some(Err(Unheard::Forbidden(why))) => return Err(format!("{why}; run it as root")),
        Some(Ok(names)) => names,
    };
    let is_there = match export {
        Some(export) => names.iter().any(|name| name == export),
        None => !names.is_empty(),
    };
    let words = if names.is_empty() {
        "the server answers, and has no exports".into()
    } else {
        format!("the server answers, and has {}", names.join(", "))
    };
    Ok((is_there, words))
}

fn array(uuid: &str, members: u32, found: &Found) -> PathState {
    let wanted = hex_digits(uuid);
    let is_meant =
        |array: &&ArrayState| array.uuid.as_deref().map(hex_digits) == Some(wanted.clone());
    let Some(array) = found.arrays.iter().find(is_meant) else {
        let running: Vec<&str> = found.arrays.iter().map(|array| array.name.as_str()).collect();
        return if found.arrays.iter().any(|array| array.uuid.is_none()) {
            Err(format!("{} runs, but its UUID cannot be read; run it as root", running.join(", ")))
        } else {
            Ok((false, "the array does not run".into()))
        };
    };
    let words =
        format!("{} runs with {} of {members} members, {}", array.name, array.members, array.state);
    let is_whole = array.members == members && array.state != "broken";
    Ok((is_whole, words))
}

fn hex_digits(uuid: &str) -> String {
    let digits = uuid.chars().filter(char::is_ascii_hexdigit);
    digits.map(|digit| digit.to_ascii_lowercase()).collect()
}

/// How zswap is used, in words; nothing where it is off.
pub fn zswap_words(machine: &Machine) -> Option<String> {
    let zswap = &machine.swap.zswap;
    if zswap.enabled.value() != Some(&true) {
        return None;
    }
    if let Some(why) = &zswap.counters_unknown {
        return Some(format!("on; how much it holds cannot be seen: {why}"));
    }
    let counter = |name: &str| {
        let counter = zswap.counters.iter().find(|counter| counter.name == name);
        counter.and_then(|counter| counter.value.value()?.parse::<u64>().ok())
    };
    let page_bytes = machine.system.page_bytes.value().copied().unwrap_or(4096);
    let stored = counter("stored_pages").unwrap_or(0);
    let back = counter("written_back_pages").unwrap_or(0);
    if stored == 0 && back == 0 {
        return Some("on, nothing stored yet".into());
    }
    let pool = counter("pool_total_size").unwrap_or(0);
    let stored_bytes = stored * page_bytes;
    let share = pool as f64 / stored_bytes.max(1) as f64;
    Some(format!(
        "on; {} in {} of memory ({}), {} written back to disk so far",
        bytes_si(stored_bytes),
        bytes_si(pool),
        percent(share),
        bytes_si(back * page_bytes)
    ))
}

#[cfg(test)]
mod tests;
