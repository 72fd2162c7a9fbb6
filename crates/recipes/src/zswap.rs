//! zswap: pages that are to be swapped out are kept compressed in memory, and only what does not fit
//! goes to the disk.
//!
//! The settings are written at run time and read back, and written again at each boot by
//! systemd-tmpfiles: on the kernel's command line a compressor whose module cannot be loaded yet is silently
//! replaced, and no boot file has to be touched this way.

use std::path::{Path, PathBuf};

use super::{OptionSpec, PlanBuilder, PlanInput, Queries, Recipe, Wishes, programs};
use rubus_machine::swap_place::SwapPlace;
use rubus_vocabulary::machine::{BlockKind, Machine, SwapArea};
use rubus_vocabulary::units::bytes_iec;

pub(super) static RECIPE: Recipe = Recipe {
    name: "zswap",
    title: "Keep swapped pages compressed in memory and write only the rest to the disk.",
    guide: super::Guide {
        changes: "Sets the kernel's zswap parameters, now and at each boot.",
        needs: "A kernel with zswap, and swap on a disk.",
        example: "sudo rubus plan zswap max-pool-percent=25",
    },
    options: &[
        OptionSpec {
            name: "max-pool-percent",
            what: "most of the memory that the compressed pages may take, 1 to 50 percent; else 20, or what it is now where that is more",
            default: None,
            check: pool_percent,
        },
        OptionSpec {
            name: "compressor",
            what: "a compressor of this kernel, such as lzo-rle, lz4 or zstd; else the one it uses now",
            default: None,
            check: compressor,
        },
    ],
    look_at,
    draw_up,
};

/// What the kernel takes without a word, in percent of the memory.
const USUAL_PERCENT: u8 = 20;
/// Beyond half of the memory the pool takes what programs need.
const MAX_PERCENT: u8 = 50;
pub(super) const PARAMETERS: &str = "/sys/module/zswap/parameters";
pub(super) const BOOT_FILE: &str = "/etc/tmpfiles.d/rubus-zswap.conf";
/// Writes [`BOOT_FILE`] into the kernel at each boot.
const TMPFILES: &str = "systemd-tmpfiles";
const PAGE_CLUSTER_FILE: &str = "/etc/sysctl.d/90-rubus-zswap.conf";
const PAGE_CLUSTER: &str = "/proc/sys/vm/page-cluster";

/// Whether it is a share of the memory that the pool may have.
pub(super) fn pool_percent(value: &str) -> Result<(), String> {
    match value.parse::<u8>() {
        Ok(1..=MAX_PERCENT) => Ok(()),
        _ => Err(format!("write a whole number from 1 to {MAX_PERCENT}")),
    }
}

pub(super) fn compressor(value: &str) -> Result<(), String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !value.is_empty() && value.len() <= 32 && value.chars().all(is_name) {
        Ok(())
    } else {
        Err("write the name of a compressor, such as zstd".into())
    }
}

fn look_at(_: &Machine, _: &Wishes) -> Queries {
    let paths = [BOOT_FILE, "/etc/tmpfiles.d", PAGE_CLUSTER_FILE, "/etc/sysctl.d", PAGE_CLUSTER];
    Queries::paths(paths.map(PathBuf::from).into_iter().chain(programs::paths([TMPFILES])))
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    check(situation, draft);
    let Some(now) = parameters(situation.machine) else {
        return;
    };
    let wanted = wanted(situation, &now);
    draft.write(
        "at-boot",
        "The kernel forgets these settings when it stops; systemd-tmpfiles writes them at each boot.",
        Path::new(BOOT_FILE),
        boot_text(&wanted),
        situation,
    );
    draft.write(
        "no-read-ahead-at-boot",
        "Compressed pages are found one by one: reading their neighbours ahead costs and gains nothing.",
        Path::new(PAGE_CLUSTER_FILE),
        "# Made by rubus (zswap).\nvm.page-cluster = 0\n".into(),
        situation,
    );
    for (name, value) in &wanted {
        let Some((_, was)) = now.iter().find(|(known, _)| known == name) else {
            continue;
        };
        let why = reason(name);
        draft.set_knob(name, why, &format!("{PARAMETERS}/{name}"), was, value);
    }
    if let Some(was) = situation.file(Path::new(PAGE_CLUSTER)) {
        let why = "The same now, without a boot.";
        draft.set_knob("no-read-ahead", why, PAGE_CLUSTER, was.text.trim(), "0");
    }
    notes(situation, draft);
}

/// What systemd-tmpfiles reads at each boot. The order is kept: switched on last, with everything else in place.
pub(super) fn boot_text(settings: &[(String, String)]) -> String {
    let mut text = String::from(
        "# Made by rubus (zswap): settings of the compressed cache in front of the swap.\n\
         # `rubus undo` removes this file.\n",
    );
    for (name, value) in settings {
        text.push_str(&format!("w {PARAMETERS}/{name} - - - - {value}\n"));
    }
    text
}

/// What a recipe that writes [`BOOT_FILE`] has to look at.
pub(super) fn boot_paths() -> [&'static str; 2] {
    [BOOT_FILE, "/etc/tmpfiles.d"]
}

fn reason(name: &str) -> &'static str {
    match name {
        "compressor" => "What is compressed from now on is compressed by this.",
        "max_pool_percent" => "More room in memory means less traffic on the disk.",
        _ => "The same now, without a boot.",
    }
}

/// The parameters of this kernel's zswap, by name; nothing where it has none.
pub(super) fn parameters(machine: &Machine) -> Option<Vec<(String, String)>> {
    let known = machine.swap.zswap.parameters.iter();
    let known: Vec<(String, String)> = known
        .filter_map(|setting| Some((setting.name.clone(), setting.value.text()?.to_string())))
        .collect();
    known.iter().any(|(name, _)| name == "enabled").then_some(known)
}

/// What is to be set, in this order.
fn wanted(situation: &PlanInput<'_>, now: &[(String, String)]) -> Vec<(String, String)> {
    let mut wanted = settings(now, situation.option("compressor"), wished_percent(situation));
    // On a card the shrinker would write more, and wear it.
    if swaps_to_a_card(situation.machine) {
        wanted.retain(|(name, _)| name != "shrinker_enabled");
    }
    wanted
}

fn swaps_to_a_card(machine: &Machine) -> bool {
    let devices = machine.swap.areas.iter().filter_map(|area| area.device.text());
    let mut disks = devices.flat_map(|device| machine.disks_below(device));
    disks.any(|disk| disk.mmc.is_some() || disk.name.starts_with("mmcblk"))
}

fn wished_percent(situation: &PlanInput<'_>) -> Option<u8> {
    situation.option("max-pool-percent")?.parse().ok()
}

/// A fifth of the memory, as the kernel has it by itself; more where it was given more.
fn usual_percent(now: &[(String, String)]) -> u8 {
    let set = now.iter().find(|(name, _)| name == "max_pool_percent");
    let set = set.and_then(|(_, value)| value.parse().ok());
    set.unwrap_or(0).clamp(USUAL_PERCENT, MAX_PERCENT)
}

/// Settings for a kernel that has these parameters now, in the order in which they are written.
pub(super) fn settings(
    now: &[(String, String)],
    compressor: Option<&str>,
    percent: Option<u8>,
) -> Vec<(String, String)> {
    let percent = percent.unwrap_or_else(|| usual_percent(now));
    let now = |name: &str| now.iter().find(|(known, _)| known == name);
    let mut wanted = Vec::new();
    let compressor = compressor.map(str::to_string);
    let compressor = compressor.or_else(|| now("compressor").map(|(_, value)| value.clone()));
    wanted.extend(compressor.map(|value| ("compressor".to_string(), value)));
    wanted.push(("max_pool_percent".into(), percent.to_string()));
    if now("shrinker_enabled").is_some() {
        // Cold pages leave for the disk before the pool is full.
        wanted.push(("shrinker_enabled".into(), "Y".into()));
    }
    wanted.push(("enabled".into(), "Y".into()));
    wanted
}

fn check(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let machine = situation.machine;
    let has_zswap = parameters(machine).is_some();
    draft.check(
        "the kernel has zswap",
        has_zswap,
        if has_zswap { "yes" } else { "no" }.to_string() + &format!(" ({PARAMETERS})"),
        "use a kernel with CONFIG_ZSWAP=y: Raspberry Pi OS and Debian have it",
    );
    let (disk, memory): (Vec<&SwapArea>, Vec<&SwapArea>) =
        machine.swap.areas.iter().partition(|area| !is_in_memory(area, machine));
    let found = match (&disk[..], &memory[..]) {
        ([], []) => "no swap at all".to_string(),
        ([], memory) => format!("only {}, which is compressed memory already", paths(memory)),
        (disk, _) => paths(disk),
    };
    draft.check(
        "there is a swap on a disk, to which zswap can write what does not fit",
        !disk.is_empty(),
        found,
        match SwapPlace::of(machine) {
            SwapPlace::InMemory => "keep the zram swap that it has: no disk here takes swap",
            SwapPlace::Open | SwapPlace::OnDisks => {
                "run `rubus advise swap`: it says whether swap belongs on a disk here, and on which"
            }
        },
    );
    draft.check(
        "no zram swap is used before a disk",
        memory.is_empty() || disk.is_empty(),
        match (memory.is_empty(), disk.is_empty()) {
            (true, _) => "none".into(),
            (false, true) => format!("{}, and no disk behind it", paths(&memory)),
            (false, false) => format!("{} is", paths(&memory)),
        },
        "switch the zram swap off (with rpi-swap: Mechanism=none), since pages would be compressed twice and the cold \
         ones would stay in memory",
    );
    let (has_tmpfiles, found) = programs::look(TMPFILES, situation);
    draft.check(
        "systemd-tmpfiles writes the settings at each boot",
        has_tmpfiles,
        found,
        "without it the settings would be lost at the next boot: have your system write them in its own way, and leave its first program as it is",
    );
}

fn is_in_memory(area: &SwapArea, machine: &Machine) -> bool {
    let on_zram = |name: &str| {
        let block = machine.block_devices.iter().find(|device| device.name == name);
        name.starts_with("zram") || block.is_some_and(|device| device.kind == BlockKind::Zram)
    };
    let name = area.path.rsplit('/').next().unwrap_or_default();
    on_zram(area.device.text().unwrap_or(name))
}

fn paths(areas: &[&SwapArea]) -> String {
    let areas = areas.iter();
    let words: Vec<String> =
        areas.map(|area| format!("{} ({})", area.path, bytes_iec(area.size_bytes))).collect();
    words.join(", ")
}

fn notes(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    if let Some(total) = situation.machine.memory.total_bytes.get() {
        let now = parameters(situation.machine).unwrap_or_default();
        let percent = wished_percent(situation).unwrap_or_else(|| usual_percent(&now));
        let share = f64::from(percent) / 100.0;
        draft.notes.push(format!(
            "At most {} of the {} of memory hold compressed pages; they are taken only while there are any.",
            bytes_iec((total as f64 * share) as u64),
            bytes_iec(total),
        ));
    }
    let swap_on_card = situation.machine.swap.areas.iter().find(|area| {
        let device = area.device.text().unwrap_or_default();
        device.starts_with("mmcblk")
    });
    if let Some(area) = swap_on_card {
        draft.notes.push(format!(
            "{} is on an SD card: what does not fit into memory is still written there and wears it. A swap on a USB disk \
             or SSD is better.",
            area.path
        ));
    }
    draft.notes.push("It works at once and after each boot; no boot file is touched.".into());
}

#[cfg(test)]
mod tests;
