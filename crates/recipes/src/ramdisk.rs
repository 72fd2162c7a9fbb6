//! A directory that lies in memory: tmpfs, mounted now and at each boot.

use std::path::Path;

use super::mounting::{self, MountRequest};
use super::{Answer, OptionSpec, PlanBuilder, PlanInput, Queries, Recipe, Wishes, programs};
use rubus_boot::fstab::{Entry, Fstab};
use rubus_vocabulary::machine::{Machine, Mount};
use rubus_vocabulary::units::{bytes_iec, parse_size, percent};

pub(super) static RECIPE: Recipe = Recipe {
    name: "ramdisk",
    title: "Keep a directory in memory, where it is fast and wears no disk, until the machine stops.",
    guide: super::Guide {
        changes: "Writes a line into /etc/fstab and mounts it. What is in the directory is lost when the machine stops.",
        needs: "Memory to spare, and a directory that is empty or not there yet.",
        example: "sudo rubus plan ramdisk at=/mnt/ram size=200M",
    },
    options: &[
        OptionSpec {
            name: "at",
            what: "the directory, such as /mnt/ram; it must be empty or not there yet",
            default: None,
            check: mounting::place,
        },
        OptionSpec {
            name: "size",
            what: "most memory that it may take, such as 200M; else a quarter of the memory",
            default: None,
            check: size,
        },
    ],
    look_at,
    draw_up,
};

/// The largest share of the memory.
const MAX: f64 = 0.5;
const PAGE_BYTES: u64 = 65_536;

fn size(value: &str) -> Result<(), String> {
    match parse_size(value)? {
        bytes if bytes >= 1 << 20 => Ok(()),
        _ => Err("write a size of at least 1M".into()),
    }
}

fn look_at(_: &Machine, wishes: &Wishes) -> Queries {
    let mut paths = wishes.get("at").map_or(Vec::new(), |at| mounting::look_at(at));
    paths.extend(programs::paths(["mount", "umount"]));
    Queries::paths(paths)
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let Some(at) = situation.option("at") else {
        let remedy = "say where: rubus plan ramdisk at=/mnt/ram size=200M";
        return draft.check("the directory is named", false, "no", remedy);
    };
    let Some(bytes) = check_size(situation, draft) else {
        return;
    };
    let options = format!("rw,nosuid,nodev,noatime,size={bytes},mode=1777");
    let at = Path::new(at);
    let here = situation.machine.mounts.iter();
    let mut here = here.filter(|mount| Path::new(&mount.point) == at);
    let is_ours = here.clone().any(|mount| is_as_wanted(mount, bytes))
        || here.any(|mount| mount.filesystem == "tmpfs") && is_in_fstab(at, &options, situation);
    if !is_ours {
        mounting::check_place(at, situation, draft);
        check_on_demand(at, situation, draft);
    }
    let wanted = MountRequest { at, what: "tmpfs", kind: "tmpfs", options: &options, pass: 0 };
    let why = "It is there at once, without a boot.";
    mounting::put(&wanted, why, situation, draft);
    programs::check(situation, draft);
    words(at, bytes, situation, draft);
}

fn check_size(situation: &PlanInput<'_>, draft: &mut PlanBuilder) -> Option<u64> {
    let total = situation.machine.memory.total_bytes.get();
    let wished = situation.option("size").and_then(|text| parse_size(text).ok());
    let bytes = wished.or(total.map(|total| total / 4))?.div_ceil(PAGE_BYTES) * PAGE_BYTES;
    let what = "half of the memory stays for programs";
    match total {
        Some(total) => {
            let share = bytes as f64 / total as f64;
            draft.check(
                what,
                share <= MAX,
                format!("{} is {} of {}", bytes_iec(bytes), percent(share), bytes_iec(total)),
                &format!("take at most size={}M", (total as f64 * MAX) as u64 >> 20),
            );
        }
        None => draft.check(
            what,
            Answer::Unknown,
            format!("not known: {}", situation.machine.memory.total_bytes.reason().unwrap_or("?")),
            "",
        ),
    }
    Some(bytes)
}

/// What fstab has mounted there by the first look stands in no list of mounts until then, and lies below afterwards.
fn check_on_demand(at: &Path, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let shown = at.display().to_string();
    let entry = Fstab::parse(situation.text(Path::new(mounting::FSTAB))).at(&shown);
    if let Some(entry) = entry.filter(Entry::is_on_demand) {
        draft.check(
            "nothing is mounted there on demand",
            false,
            format!("{} mounts {} at {shown} by the first look", mounting::FSTAB, entry.source),
            "take that line out and restart, or take another place",
        );
    }
}

/// The kernel says `size=204800k`.
fn is_as_wanted(mount: &Mount, bytes: u64) -> bool {
    let size = mount.options.iter().find_map(|o| o.strip_prefix("size="));
    let size = size.and_then(|size| parse_size(size).ok());
    mount.filesystem == "tmpfs" && size == Some(bytes)
}

fn is_in_fstab(at: &Path, options: &str, situation: &PlanInput<'_>) -> bool {
    let fstab = Fstab::parse(situation.text(Path::new(mounting::FSTAB)));
    let entry = fstab.at(&at.display().to_string());
    entry.is_some_and(|entry| entry.filesystem == "tmpfs" && entry.options == options)
}

fn words(at: &Path, bytes: u64, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let shown = at.display();
    draft.risks.push(format!(
        "What is in {shown} is lost whenever the machine stops, also by a power cut. Nothing that matters belongs there."
    ));
    let machine = situation.machine;
    if let Some(available) = machine.memory.available_bytes.get() {
        if bytes > available {
            draft.risks.push(format!(
                "Only {} of memory are available now: when {shown} is full, programs are swapped out{}.",
                bytes_iec(available),
                if machine.swap.areas.is_empty() { ", and there is no swap, so that the kernel stops some" } else { "" }
            ));
        }
    }
    draft.notes.push(format!(
        "{shown} takes memory only for what is in it, at most {}. Undoing unmounts it: copy away first what you want to \
         keep.",
        bytes_iec(bytes)
    ));
}

#[cfg(test)]
mod tests;
