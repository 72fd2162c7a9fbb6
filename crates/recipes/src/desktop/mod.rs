//! desktop: the running system moves from its SD card to a btrfs with compression, or an ext4, on a USB or NVMe disk,
//! with zswap and a swap of its own there; the card is only started from any more.
//!
//! The running root is never changed. Everything is prepared on the new disk and, under other names or with a kept
//! original, on the boot partition; the last step is one small file that says where the root is. Until then
//! the board starts as before, and afterwards that file is one rename away from what it was. Where the firmware can start
//! on trial, that step waits until the new system has come up once.

mod boot_copy;
mod checks;
mod compression;
mod debian;
mod fallback;
mod filesystem;
mod gains;
mod image;
mod layout;
mod memory;
mod options;
mod root;
mod scene;
mod steps;
mod trial;

use std::path::{Path, PathBuf};

use super::moving::{current, kernels};
use super::{PlanBuilder, PlanInput, Queries, Recipe, Wishes};
pub use fallback::StartedFromOld;
use filesystem::RootFilesystem;
pub use image::image_programs;
use options::{Choice, SwapKind};
use rubus_vocabulary::machine::Machine;

pub(super) static RECIPE: Recipe = Recipe {
    name: "desktop",
    title: "Move the system to a compressed btrfs on a faster disk, with zswap and swap there; the SD card only starts it.",
    guide: super::Guide {
        changes: "Partitions the new disk and copies the system to it. On the card it changes the boot partition and /etc/initramfs-tools.",
        needs: "A Raspberry Pi OS or Debian that starts from config.txt and cmdline.txt, and a disk that may lose everything. Takes effect at the next start.",
        example: "sudo rubus plan desktop device=/dev/sda",
    },
    options: options::OPTIONS,
    look_at,
    draw_up,
};

fn look_at(machine: &Machine, wishes: &Wishes) -> Queries {
    let boot = current::boot_point(machine);
    let mut paths = current::boot_paths(&boot);
    paths.extend(checks::paths());
    paths.extend(kernels::paths());
    paths.extend(memory::paths());
    paths.extend(steps::paths());
    paths.extend(debian::paths());
    paths.extend(trial::paths(&boot));
    paths.extend(fallback::paths());
    paths.extend(boot_copy::paths());
    let mut look_at = Queries::paths(paths);
    look_at.trees.push("/".into());
    look_at.disks.extend(wishes.get("device").map(PathBuf::from));
    let wish = wishes.get("compress").map(String::as_str);
    // Needed for ext4 and f2fs too: the plan shows what compression would have gained.
    look_at.compression = wish != Some("none");
    look_at.program_starts = true;
    look_at
}

/// What this plan does, where the recipe's own title says more or less.
fn title(situation: &PlanInput<'_>, choice: &Choice) -> Option<String> {
    let has_card = current::starts_from_card(situation.machine);
    let has_swap = choice.swap != SwapKind::None;
    if choice.filesystem.is_btrfs() && has_card && has_swap {
        return None;
    }
    let root = match choice.filesystem {
        RootFilesystem::Btrfs => "a compressed btrfs",
        RootFilesystem::Ext4 => "an ext4",
        RootFilesystem::F2fs => "an f2fs",
    };
    let swap = if has_swap { ", with zswap and swap there" } else { "" };
    let starter = if has_card { "the SD card" } else { "the disk of before" };
    Some(format!("Move the system to {root} on a faster disk{swap}; {starter} only starts it."))
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let choice = Choice::of(situation);
    draft.title = title(situation, &choice);
    if let Some(image) = &situation.facts.image {
        return image::draw_up(situation, choice, image, draft);
    }
    if choice.image_bytes.is_some() {
        draft.check(
            "every option is about this machine",
            false,
            "size= is about an image",
            "leave it out, since the root takes what the disk has; for an image name it with --image",
        );
        return;
    }
    if choice.device.is_none() {
        draft.check(
            "the new disk is given",
            false,
            "there is no device=",
            &format!("name an empty disk; {}", checks::others(situation.machine, Path::new(""))),
        );
        return;
    }
    if let Some((found, note)) = checks::already(situation, &choice) {
        draft.check("the root can move to that disk", true, found, "");
        draft.notes.push(note);
        return;
    }
    let scene = checks::look(situation, &choice, draft);
    // With an obstacle there is nothing to promise.
    let Some(scene) = scene.filter(|_| draft.checks.iter().all(|check| check.is_met)) else {
        return;
    };
    steps::draw(situation, &choice, &scene, draft);
}

#[cfg(test)]
pub(super) mod tests;
