//! The table of mounts of the root that will be started.

use super::{Facts, check};
use crate::crypttab::Crypttab;
use crate::fstab::{Entry, Fstab, Hazard};
use crate::volume::Name;
use rubus_vocabulary::check::Check;

/// What the start of a usual system waits for.
pub const WAITS_FOR_LITTLE: &str = "nothing but root and boot files";
/// The check that says what a start waits for.
pub const WAITED_FOR: &str = "what the start waits for is there";

/// Where systems keep what the firmware reads: Raspberry Pi OS since 2023, and before.
const BOOT_PLACES: [&str; 2] = ["/boot/firmware", "/boot"];

pub(super) fn look(facts: &Facts<'_>, checks: &mut Vec<Check>) {
    let fstab = Fstab::parse(facts.fstab);
    let mut essential = vec!["/"];
    essential.extend(BOOT_PLACES);
    // Whether the keys are there is a question of how the machine starts now.
    let volumes = Crypttab::parse(facts.crypttab).with_opened(facts.volumes);
    let hazards = fstab.hazards(&volumes, &essential);
    // The board may have a disk that is not known here.
    let is_elsewhere = |entry: &Entry| {
        let place = entry.target.trim_end_matches('/');
        !facts.are_all_volumes && !place.is_empty() && !BOOT_PLACES.contains(&place)
    };
    let (waits, wrong): (Vec<&Hazard>, Vec<&Hazard>) =
        hazards.iter().partition(|hazard| match hazard {
            Hazard::NotOptional(_) => true,
            // Swap is started beside the rest: a start waits for it, and goes on without.
            Hazard::NotThere(entry) => entry.is_swap() || is_elsewhere(entry),
            Hazard::OtherCase(..)
            | Hazard::Ambiguous(..)
            | Hazard::OtherFilesystem(..)
            | Hazard::RefusedOption(..)
            | Hazard::Twice(_) => false,
        });
    checks.push(judge(
        "every line of fstab means one volume that holds what it says",
        &wrong,
        remedy(&wrong),
    ));
    checks.push(check(WAITED_FOR, Ok(waited_for(&waits))));
    // A line that means no volume, or several, is one fault and is told once.
    let is_told = |hazard: &&Hazard| {
        BOOT_PLACES.contains(&hazard.entry().target.trim_end_matches('/'))
            && matches!(hazard, Hazard::NotThere(_) | Hazard::Ambiguous(..))
    };
    if !wrong.iter().any(is_told) {
        checks.push(check(
            "the boot files are mounted from where the firmware reads them",
            boot_files(facts, &fstab),
        ));
    }
}

/// Lines that a missing disk would make a hazard of. They were so before, and the disks are there now.
fn waited_for(hazards: &[&Hazard]) -> String {
    let (swaps, mounts): (Vec<&Hazard>, Vec<&Hazard>) = hazards
        .iter()
        .partition(|hazard| matches!(hazard, Hazard::NotThere(entry) if entry.is_swap()));
    let lines = |hazards: &[&Hazard]| {
        let lines = hazards.iter().map(|hazard| match hazard {
            Hazard::NotOptional(entry) => format!("{} at {}", entry.source, entry.target),
            Hazard::NotThere(entry) if entry.is_swap() => entry.source.clone(),
            Hazard::NotThere(entry) => {
                format!("{} at {}, on another disk of the board", entry.source, entry.target)
            }
            other => other.sentence(),
        });
        lines.collect::<Vec<_>>().join(", ")
    };
    let mut sentences = Vec::new();
    if !mounts.is_empty() {
        sentences.push(format!(
            "{}; without nofail in its line of fstab a missing disk ends in the emergency shell",
            lines(&mounts)
        ));
    }
    if !swaps.is_empty() {
        sentences.push(format!("swap that is not there costs each start 90 s: {}", lines(&swaps)));
    }
    if sentences.is_empty() { WAITS_FOR_LITTLE.into() } else { sentences.join("; ") }
}

/// No board starts without its root or with two of them: there `nofail` is no help.
fn remedy(hazards: &[&Hazard]) -> &'static str {
    let is_twice = |hazard: &&Hazard| matches!(hazard, Hazard::Twice(_));
    let is_root = |hazard: &&Hazard| hazard.entry().target == "/";
    match hazards.first() {
        Some(_) if hazards.iter().all(is_twice) => "take one of the lines out",
        Some(_) if hazards.iter().all(|hazard| is_root(hazard) || is_twice(hazard)) => {
            "correct the line"
        }
        _ => "correct the line, or add nofail where the board may start without it",
    }
}

fn judge(what: &str, hazards: &[&Hazard], remedy: &str) -> Check {
    let sentences: Vec<String> = hazards.iter().map(|hazard| hazard.sentence()).collect();
    check(
        what,
        if sentences.is_empty() {
            Ok("all lines looked at".into())
        } else {
            Err((sentences.join("; "), remedy.into()))
        },
    )
}

fn boot_files(facts: &Facts<'_>, fstab: &Fstab) -> Result<String, (String, String)> {
    let remedy = || {
        "mount the firmware's partition at /boot/firmware in fstab, or updates of the kernel would not be started"
            .to_string()
    };
    let Some(firmware) = facts.firmware_volume else {
        return Err(("which volume the firmware reads is not known".into(), remedy()));
    };
    let entry = BOOT_PLACES.iter().find_map(|place| fstab.at(place));
    let Some(entry) = entry else {
        return Err(("fstab mounts nothing at /boot/firmware or /boot".into(), remedy()));
    };
    let found = Name::of(&entry).resolve(facts.volumes);
    match found.as_slice() {
        [one] if one.path == firmware => {
            Ok(format!("{} at {} is {firmware}", entry.source, entry.target))
        }
        [one] => Err((
            format!("{} is {}, but the firmware reads {firmware}", entry.target, one.path),
            remedy(),
        )),
        _ => Err((
            format!("{} at {} is not exactly one volume", entry.source, entry.target),
            remedy(),
        )),
    }
}
