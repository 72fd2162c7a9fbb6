//! Swap in another place: on a disk, in a file, compressed in memory, or none.
//!
//! The new area is in use before the old one is given up, so that what is swapped out always has a place.

mod old;
mod target;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use super::mounting::{self, FSTAB};
use super::{
    Answer, OptionSpec, PathState, PlanBuilder, PlanInput, Queries, Recipe, Wishes, disks,
    programs, swap_managers, tables,
};
use old::Old;
use rubus_boot::fstab::{Entry, Fstab};
use rubus_boot::volume::NamedVolume;
use rubus_change::plan::promise::{Look, Promise};
use rubus_change::plan::{Action, Gain};
use rubus_change::steps::{SwapOff, SwapOn};
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::units::{bytes_iec, iops, parse_size};
use target::{New, To};

pub(super) static RECIPE: Recipe = Recipe {
    name: "swap",
    title: "Move the swap to a better place; the new swap is in use before the old one is removed.",
    guide: super::Guide {
        changes: "Makes the new swap and puts it into use, then removes the old one. Writes /etc/fstab and the settings of the program that makes the swap.",
        needs: "A disk, a partition or room for a file; zram needs none of them. A disk or partition loses everything.",
        example: "sudo rubus plan swap to=file:/srv/data/swap size=2G",
    },
    options: &[
        OptionSpec {
            name: "to",
            what: "where: disk:/dev/sda (a disk that becomes swap), disk:/dev/sda3 (a partition), file:/path, zram, or none",
            default: None,
            check: |value| To::parse(value).map(drop),
        },
        OptionSpec {
            name: "size",
            what: "how large, such as 1G; else as large as the memory, from 512 MiB to 2 GiB (a partition is used whole)",
            default: None,
            check: size,
        },
        OptionSpec {
            name: "priority",
            what: "0 to 32767, the higher is used first; else the kernel chooses",
            default: None,
            check: |value| whole_number(value, 32_767),
        },
        OptionSpec {
            name: "swappiness",
            what: "0 to 200: how readily programs' memory goes to swap rather than files out of the cache; auto computes it \
                   where the speeds of the disks were measured here",
            default: Some("auto"),
            check: |value| match value {
                "auto" => Ok(()),
                value => whole_number(value, 200),
            },
        },
        OptionSpec {
            name: "keep",
            what: "areas that stay in use, by path with commas between them, or all",
            default: None,
            check: keep,
        },
    ],
    look_at,
    draw_up,
};

/// Read after `99-sysctl.conf`, which is `/etc/sysctl.conf`.
const SYSCTL: &str = "/etc/sysctl.d/zz-rubus-swap.conf";
const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
const PAGE_CLUSTER: &str = "/proc/sys/vm/page-cluster";
/// What is swapped out comes back at least this fast.
const SLOW_BYTES_PER_SECOND: f64 = 2e6;

fn size(value: &str) -> Result<(), String> {
    match parse_size(value)? {
        bytes if bytes >= 16 << 20 => Ok(()),
        _ => Err("write a size of at least 16M".into()),
    }
}

fn whole_number(value: &str, most: u32) -> Result<(), String> {
    match value.parse::<u32>() {
        Ok(number) if number <= most => Ok(()),
        _ => Err(format!("write a whole number from 0 to {most}")),
    }
}

fn keep(value: &str) -> Result<(), String> {
    if value == "all" || value.split(',').all(|path| path.starts_with('/')) {
        Ok(())
    } else {
        Err("write paths as `rubus survey` shows them, such as /dev/zram0, or all".into())
    }
}

fn look_at(machine: &Machine, wishes: &Wishes) -> Queries {
    let fixed = [FSTAB, tables::CRYPTTAB, SYSCTL, "/etc/sysctl.d", SWAPPINESS, PAGE_CLUSTER];
    let mut paths = fixed.map(PathBuf::from).to_vec();
    paths.extend(swap_managers::paths());
    paths.extend(programs::paths(["mkswap", "swapon", "swapoff"]));
    let mut disks = Vec::new();
    match wishes.get("to").and_then(|to| To::parse(to).ok()) {
        Some(To::Disk(node)) => disks.push(disks::whole(machine, &node)),
        Some(To::File(path)) => {
            paths.extend(mounting::directories(Path::new(&path)));
            paths.extend(programs::paths(["chattr", "fallocate"]));
        }
        _ => {}
    }
    Queries { disks, ..Queries::paths(paths) }
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let Some(to) = situation.option("to").and_then(|to| To::parse(to).ok()) else {
        let remedy = "say where: to=zram (compressed memory, no disk), to=file:/PATH, to=disk:/dev/PARTITION (erases it) or to=none; `rubus advise swap` says which";
        return draft.check("the new place is given", false, "no to=", remedy);
    };
    let Some(new) = target::resolve(&to, situation, draft) else {
        return;
    };
    let old = Old::of(situation, &new);
    check_room(&old, &new, situation, draft);
    draft.steps.extend(new.steps.iter().cloned());
    if let Some(what) = &new.what {
        let on_now = situation.machine.swap.areas.iter();
        let mut on_now = on_now.filter(|area| Some(&area.path) == new.path.as_ref());
        let is_right = on_now.any(|area| new.priority.is_none_or(|wished| area.priority == wished));
        if !is_right {
            draft.step(
                "new-on",
                "It is in use before the old one is given up: what is swapped out has a place all the time.",
                Action::SwapOn(SwapOn {
                    what: what.clone(),
                    priority: new.priority,
                }),
            );
        }
    }
    table(&old, &new, situation, draft);
    draft.steps.extend(old.manager_steps(situation, &new));
    if new.replaces_now() {
        for area in &old.given_up {
            draft.step(
                &format!("old-off-{}", slug(&area.path)),
                "What is in it moves to memory or to the new swap; then nothing is written there any more.",
                Action::SwapOff(SwapOff {
                    what: area.path.clone(),
                    priority: (area.priority >= 0).then_some(area.priority),
                }),
            );
        }
    }
    sysctl(&new, situation, draft);
    programs::check(situation, draft);
    promises(&old, &new, situation, draft);
    gains(&old, &new, situation, draft);
    old.words(&new, situation, draft);
}

/// A path as a part of a step's name.
fn slug(path: &str) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// What is swapped out now fits into the new swap and the memory that is free.
fn check_room(old: &Old<'_>, new: &New, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let used: u64 = old.given_up.iter().map(|area| area.used_bytes).sum();
    if used == 0 || !new.replaces_now() {
        return;
    }
    let free = situation.machine.memory.available_bytes.get().unwrap_or(0);
    let new_room = if new.is_on_now(situation.machine) { 0 } else { new.size_bytes };
    // The rest of the memory is for what programs ask for meanwhile.
    let room = new_room + free / 2;
    draft.check(
        "what is swapped out now fits into the new swap and half of the free memory",
        used <= room,
        format!("{} are swapped out, there is room for {}", bytes_iec(used), bytes_iec(room)),
        "make the new swap larger, or stop programs first",
    );
    draft.effort.most_s += used as f64 / SLOW_BYTES_PER_SECOND;
}

/// The lines of swap in fstab: the new one in, those of the old ones out.
fn table(old: &Old<'_>, new: &New, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let mut fstab = Fstab::parse(situation.text(Path::new(FSTAB)));
    let volumes = NamedVolume::all_of(situation.machine);
    let means = |entry: &Entry, path: &str| old::means(entry, path, &volumes);
    fstab.remove(|entry| {
        let mut given_up = old.given_up.iter();
        entry.is_swap() && given_up.any(|area| means(entry, &area.path))
    });
    if let Some(source) = &new.fstab_source {
        let mut options = vec!["defaults".to_string(), "nofail".into()];
        options.extend(new.priority.map(|priority| format!("pri={priority}")));
        if source.starts_with("UUID=") {
            options.push("x-systemd.device-timeout=30s".into());
        }
        let line = Entry::new(source, "none", "swap", &options.join(","));
        let path = new.path.as_deref().unwrap_or(source);
        let is_new =
            |entry: &Entry| entry.is_swap() && (means(entry, path) || entry.source == *source);
        if !fstab.swaps().contains(&line) {
            fstab.set_where(&line, is_new);
        }
    }
    if fstab.text() != situation.text(Path::new(FSTAB)) {
        if let Some(PathState::Hidden(_)) = situation.facts.seen.get(Path::new(FSTAB)) {
            let what = format!("what {FSTAB} says stays in it");
            let found = situation.presence(Path::new(FSTAB));
            let answer = if found.is_not_captured { Answer::Unknown } else { Answer::Fails };
            draft.check(&what, answer, found, "let it be read");
        }
        if new.fstab_source.is_some() && is_alpine(situation.machine) {
            draft.risks.push(
                "Alpine uses the swap of /etc/fstab only where its service is started: rc-update add swap boot.".into(),
            );
        }
        draft.write(
            "at-boot",
            "Each boot uses the swap that is in this table; one that is missing does not stop the boot.",
            Path::new(FSTAB),
            fstab.text().into(),
            situation,
        );
    }
}

/// Its swap is a service of OpenRC, which not every installation starts. Source: Alpine, openrc package, `swap`.
fn is_alpine(machine: &Machine) -> bool {
    machine.system.os_ids.iter().any(|id| id == "alpine")
}

fn sysctl(new: &New, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let mut wanted: Vec<(&str, &str, String, String)> = Vec::new();
    if let Some((value, why)) = swappiness(new, situation) {
        if is_eager(&value) && !new.is_in_memory && new.fstab_source.is_some() {
            draft.notes.extend(compressed_first(&value, situation.machine));
        }
        wanted.push(("vm.swappiness", SWAPPINESS, value, why));
    }
    if new.is_in_memory {
        let why =
            "Pages in memory are found one by one: reading their neighbours ahead gains nothing.";
        wanted.push(("vm.page-cluster", PAGE_CLUSTER, "0".into(), why.into()));
    }
    if wanted.is_empty() {
        return;
    }
    let lines = wanted.iter().map(|(name, _, value, _)| format!("{name} = {value}\n"));
    draft.write(
        "sysctl-at-boot",
        "The kernel forgets these settings when it stops.",
        Path::new(SYSCTL),
        format!("# Made by rubus (swap).\n{}", lines.collect::<String>()),
        situation,
    );
    for (name, path, value, why) in &wanted {
        let was = situation.text(Path::new(path)).trim();
        if !was.is_empty() {
            draft.set_knob(&name.replace('.', "-"), why, path, was, value);
        }
        draft.promises.push(Promise {
            what: format!("{name} is {value}"),
            look: Look::Knob { path: path.into(), value: value.clone() },
            needs_boot: false,
        });
    }
}

/// Whether the kernel then gives pages of programs out sooner than files from the cache.
fn is_eager(swappiness: &str) -> bool {
    swappiness.parse::<u32>().is_ok_and(|value| value > 100)
}

/// What has to follow, where nothing compresses before the disk.
fn compressed_first(swappiness: &str, machine: &Machine) -> Option<String> {
    (machine.swap.zswap.enabled.get() != Some(true)).then(|| {
        format!(
            "Then at once: `rubus plan zswap`. A swappiness of {swappiness} is for compressed memory before the disk; for a disk \
             alone it is too much."
        )
    })
}

/// The wished value; or with `auto` that of the kernel's own rule, where both speeds are known: with swap that is
/// r times as fast at random access as the files' disk, 200 · r / (1 + r). Source: Linux,
/// Documentation/admin-guide/sysctl/vm.rst, swappiness.
fn swappiness(new: &New, situation: &PlanInput<'_>) -> Option<(String, String)> {
    match situation.option("swappiness") {
        Some("auto") | None => {}
        Some(value) => return Some((value.into(), "As you asked.".into())),
    }
    let swap = speed(new.disk.as_deref()?, situation)?;
    let machine = situation.machine;
    let root = machine.mounts.iter().rfind(|mount| mount.point == "/")?;
    let files = machine.disks_below(root.device.as_deref()?);
    let files = speed(&files.first()?.name, situation)?;
    let ratio = swap / files;
    let value = (200.0 * ratio / (1.0 + ratio)).round().clamp(1.0, 200.0);
    Some((
        format!("{value}"),
        format!(
            "The new swap makes {} random IOPS, the disk of the files {}: the kernel's rule 200·r/(1+r).",
            iops(swap),
            iops(files)
        ),
    ))
}

/// Random operations per second of a disk, reading and writing in turns.
fn speed(disk: &str, situation: &PlanInput<'_>) -> Option<f64> {
    let speed = situation.facts.speeds.get(disk)?;
    match (speed.random_read_iops, speed.random_write_iops) {
        (Some(read), Some(write)) if read > 0.0 && write > 0.0 => {
            Some(2.0 / (1.0 / read + 1.0 / write))
        }
        (Some(one), None) | (None, Some(one)) if one > 0.0 => Some(one),
        _ => None,
    }
}

fn promises(old: &Old<'_>, new: &New, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let needs_boot = !new.replaces_now();
    draft.needs_boot = needs_boot && !draft.steps.is_empty();
    let mut promise = |what: String, look| {
        draft.promises.push(Promise { what, look, needs_boot });
    };
    if let Some(what) = new.what.as_ref().or(new.path.as_ref()) {
        promise(
            format!("the swap {} is in use", new.title),
            Look::SwapOn {
                what: what.strip_prefix("UUID=").unwrap_or(what).into(),
                priority: new.priority,
            },
        );
    }
    for disk in old.disks_left(new, situation.machine) {
        promise(format!("no swap is on {disk}"), Look::NoSwapOnDisk { disk, partuuid: None });
    }
}

fn gains(old: &Old<'_>, new: &New, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let Some(then) = new.disk.as_deref().and_then(|disk| speed(disk, situation)) else {
        return;
    };
    for disk in old.disks_left(new, situation.machine) {
        let Some(now) = speed(&disk, situation) else {
            continue;
        };
        draft.gains.push(Gain {
            what: "swapped pages, 4 KiB at random".into(),
            now: format!("{} IOPS", iops(now)),
            then: format!("{} IOPS", iops(then)),
            ratio: then / now,
            source: situation.facts.speeds[&disk].source.clone(),
        });
    }
}
