//! The swap that there is: which areas are given up, and who makes them at each boot.

use std::path::Path;

use super::super::mounting::FSTAB;
use super::super::{PlanBuilder, PlanInput, disks, swap_managers};
use super::target::New;
use rubus_boot::fstab::{Entry, Fstab};
use rubus_boot::volume::Name;
use rubus_boot::volume::NamedVolume;
use rubus_change::plan::Step;
use rubus_vocabulary::machine::{BlockKind, Machine, SwapArea, SwapManager};
use rubus_vocabulary::units::bytes_iec;

/// Areas in use that will not be.
pub(super) struct Old<'a> {
    pub(super) given_up: Vec<&'a SwapArea>,
    kept: Vec<&'a SwapArea>,
}

impl<'a> Old<'a> {
    pub(super) fn of(situation: &PlanInput<'a>, new: &New) -> Old<'a> {
        let keep = situation.option("keep").unwrap_or_default();
        let is_kept = |area: &SwapArea| {
            keep == "all"
                || keep.split(',').any(|path| path == area.path)
                || new.path.as_ref() == Some(&area.path)
        };
        let areas = situation.machine.swap.areas.iter();
        let (kept, given_up) = areas.partition(|area| is_kept(area));
        Old { given_up, kept }
    }

    /// Steps after which no manager makes the old areas at the next boot.
    pub(super) fn manager_steps(&self, situation: &PlanInput<'_>, new: &New) -> Vec<Step> {
        let managers = self.leaving(situation.machine, new);
        swap_managers::switch_off(managers, &situation.facts.seen)
    }

    /// The managers none of whose areas stays.
    fn leaving<'m>(&self, machine: &'m Machine, new: &New) -> Vec<&'m SwapManager> {
        let stays = |manager: &SwapManager| {
            new.manager.as_deref() == Some(&manager.name)
                || self.kept.iter().any(|area| makes(manager, area, machine))
        };
        let managers = machine.swap.managers.iter();
        managers.filter(|manager| !stays(manager)).collect()
    }

    /// Disks that had swap and have none afterwards.
    pub(super) fn disks_left(&self, new: &New, machine: &Machine) -> Vec<String> {
        let mut left: Vec<String> = Vec::new();
        for area in &self.given_up {
            let device = area.device.text().unwrap_or_default();
            for disk in machine.disks_below(device) {
                let is_used = new.disk.as_deref() == Some(&disk.name)
                    || self.kept.iter().any(|kept| {
                        let below = machine.disks_below(kept.device.text().unwrap_or_default());
                        below.iter().any(|other| other.name == disk.name)
                    });
                if disk.kind != BlockKind::Zram && !is_used && !left.contains(&disk.name) {
                    left.push(disk.name.clone());
                }
            }
        }
        left
    }

    /// What the user should know of the old areas.
    pub(super) fn words(&self, new: &New, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
        let machine = situation.machine;
        let volumes = NamedVolume::all_of(machine);
        let entries = Fstab::parse(situation.text(Path::new(FSTAB))).swaps();
        for area in &self.given_up {
            let mut managers = machine.swap.managers.iter();
            let is_managed = managers.any(|manager| makes(manager, area, machine));
            let is_in_table = entries.iter().any(|entry| means(entry, &area.path, &volumes));
            if !is_managed && !is_in_table {
                draft.notes.push(format!(
                    "It is not known what makes {} at a boot: look with `systemctl list-units --type=swap` after the \
                     next one.",
                    area.path
                ));
            }
            if area.kind == "file" {
                draft.notes.push(format!(
                    "The file {} of {} stays, so that undoing finds it; remove it by hand when you are content.",
                    area.path,
                    bytes_iec(area.size_bytes)
                ));
            }
        }
        if new.what.is_none() && new.path.is_none() && self.kept.is_empty() {
            draft.risks.push(
                "Without swap the kernel stops a program when the memory is full, and unused pages stay in memory."
                    .into(),
            );
        }
        if !new.replaces_now() && !self.given_up.is_empty() {
            draft.notes.push(
                "Until the next boot the current swap stays in use, so that memory has somewhere to go.".into(),
            );
        }
        if let Some(line) = machine.system.command_line.text() {
            let mut words = line.split_whitespace();
            if words.any(|word| word.starts_with("resume=")) {
                draft.risks.push(
                    "The kernel's command line names a swap to wake up from (resume=): hibernation will not work with \
                     another one."
                        .into(),
                );
            }
        }
        let page_bytes = machine.system.page_bytes.get().unwrap_or(4096);
        if page_bytes != 4096 && new.is_made && !new.is_in_memory {
            draft.notes.push(format!(
                "The area is made by a kernel with pages of {}; one with other pages cannot use it and goes without.",
                bytes_iec(page_bytes)
            ));
        }
    }
}

/// Whether a line of fstab means the area at this path.
pub(super) fn means(entry: &Entry, path: &str, volumes: &[NamedVolume]) -> bool {
    let name = Name::of(entry);
    let named = name.resolve(volumes);
    entry.source == path || named.iter().any(|volume| volume.path == path)
}

/// Whether a manager makes an area at each boot.
fn makes(manager: &SwapManager, area: &SwapArea, machine: &Machine) -> bool {
    let device = area.device.text().unwrap_or_default();
    let is_zram = machine.disks_below(device).iter().any(|disk| disk.kind == BlockKind::Zram)
        || disks::name(&area.path).starts_with("zram");
    let settings = manager.settings.value().map(Vec::as_slice);
    let path = |key: &str| {
        let mut settings = settings.unwrap_or_default().iter();
        settings.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
    };
    let is_file = |key: &str| area.path == path(key).unwrap_or("/var/swap");
    match manager.name.as_str() {
        "zram-generator" | "zram-tools" => is_zram,
        "rpi-swap" => is_zram || is_file("[File] Path"),
        "dphys-swapfile" => is_file("CONF_SWAPFILE"),
        _ => false,
    }
}
