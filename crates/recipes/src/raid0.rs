//! Several disks as one that is read and written at the same time: RAID-0 with mdadm.

mod speed;

use std::path::{Path, PathBuf};

use super::{
    Answer, OptionSpec, PlanBuilder, PlanInput, Queries, Recipe, Wishes, disks, format,
    identifiers, mounting, programs, tables,
};
use rubus_boot::fstab::Entry;
use rubus_change::plan::Action;
use rubus_change::plan::promise::{Look, Promise};
use rubus_change::plan::volume::{DiskIdentity, FilesystemKind, PartitionRole, Place};
use rubus_change::steps::{MakeArray, PartitionDisk};
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::units::{bytes_si, parse_size};

pub(super) static RECIPE: Recipe = Recipe {
    name: "raid0",
    title: "Let several disks work as one: faster together, and lost together.",
    guide: super::Guide {
        changes: "Overwrites the disks, makes one array of them and mounts it, now and at each boot.",
        needs: "Two or more disks that are not in use and may lose everything. If one fails, all is lost.",
        example: "sudo rubus plan raid0 devices=/dev/sda,/dev/sdb at=/mnt/fast",
    },
    options: &[
        OptionSpec {
            name: "devices",
            what: "the disks with commas between them, such as /dev/sda,/dev/sdb; everything on them is lost",
            default: None,
            check: devices,
        },
        OptionSpec {
            name: "at",
            what: "where it is mounted, such as /mnt/fast",
            default: None,
            check: mounting::place,
        },
        OptionSpec {
            name: "filesystem",
            what: "ext4 or btrfs",
            default: Some("ext4"),
            check: |value| match value {
                "ext4" | "btrfs" => Ok(()),
                _ => Err("write ext4 or btrfs".into()),
            },
        },
        OptionSpec {
            name: "chunk",
            what: "how much goes to one disk before the next one's turn, a power of two from 4K to 4M; with small \
                   ones, the kernel's usual read-ahead of 128 KiB uses both disks",
            default: Some("64K"),
            check: |value| chunk(value).map(drop),
        },
        OptionSpec {
            name: "name",
            what: "the array's name, below /dev/md",
            default: Some("rubus"),
            check: format::label,
        },
    ],
    look_at,
    draw_up,
};

const CONFIGURATION: &str = "/etc/mdadm/mdadm.conf";
const MDSTAT: &str = "/proc/mdstat";
const MAX_DISKS: usize = 16;

fn devices(value: &str) -> Result<(), String> {
    let nodes: Vec<&str> = value.split(',').collect();
    for node in &nodes {
        disks::node(node)?;
    }
    let mut different = nodes.clone();
    different.sort_unstable();
    different.dedup();
    if (2..=MAX_DISKS).contains(&nodes.len()) && different.len() == nodes.len() {
        Ok(())
    } else {
        Err(format!("write 2 to {MAX_DISKS} different disks, such as /dev/sda,/dev/sdb"))
    }
}

fn chunk(value: &str) -> Result<u64, String> {
    match parse_size(value)? {
        bytes if bytes.is_power_of_two() && (4 << 10..=4 << 20).contains(&bytes) => Ok(bytes),
        _ => Err("write a power of two from 4K to 4M, such as 64K".into()),
    }
}

fn look_at(_: &Machine, wishes: &Wishes) -> Queries {
    let mut paths: Vec<PathBuf> = vec![MDSTAT.into(), CONFIGURATION.into(), "/etc/mdadm".into()];
    paths.extend(wishes.get("at").map_or(Vec::new(), |at| mounting::look_at(at)));
    paths.extend(tables::paths().map(PathBuf::from));
    paths.extend(programs::paths(["mdadm", "mkfs.ext4", "mkfs.btrfs", "mount"]));
    let named = wishes.get("devices").map(String::as_str).unwrap_or_default();
    let named = named.split(',').filter(|node| !node.is_empty());
    Queries { disks: named.map(PathBuf::from).collect(), ..Queries::paths(paths) }
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let (Some(nodes), Some(at)) = (situation.option("devices"), situation.option("at")) else {
        let remedy = "say both: rubus plan raid0 devices=/dev/sda,/dev/sdb at=/mnt/fast";
        return draft.check("the disks and their mount point are named", false, "no", remedy);
    };
    let nodes: Vec<&str> = nodes.split(',').collect();
    if is_done(&nodes, at, situation.machine) {
        draft.check("it is as wished already", true, format!("{at} is on all of them"), "");
        return;
    }
    mounting::check_place(Path::new(at), situation, draft);
    check_kernel(situation, draft);
    let Some(members) = members(&nodes, situation, draft) else {
        return;
    };
    array(members, situation, draft);
    words(&nodes, at, situation, draft);
    speed::predict(&nodes, situation, draft);
    programs::check(situation, draft);
}

/// Whether the place is on an array of just these disks.
fn is_done(nodes: &[&str], at: &str, machine: &Machine) -> bool {
    let mount = machine.mounts.iter().find(|mount| mount.point == at);
    let device = mount.and_then(|mount| mount.device.as_deref());
    let Some(device) = device.filter(|device| device.starts_with("md")) else {
        return false;
    };
    let below = machine.disks_below(device);
    below.len() == nodes.len()
        && below.iter().all(|disk| nodes.iter().any(|node| disks::name(node) == disk.name))
}

fn check_kernel(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let switch = situation.machine.kernel_config.iter();
    let mut switch = switch.filter(|setting| setting.name == "MD_RAID0");
    let switch = switch.find_map(|setting| setting.value.text());
    let is_loaded = situation.text(Path::new(MDSTAT)).contains("[raid0]");
    let is_off = matches!(switch, Some(value) if value != "y" && value != "m");
    draft.check(
        "the kernel has RAID-0",
        if is_loaded || switch.is_some() {
            Answer::from(is_loaded || !is_off)
        } else {
            Answer::Unknown
        },
        match (is_loaded, switch) {
            (true, _) => format!("{MDSTAT} lists it"),
            (_, Some(value)) => format!("CONFIG_MD_RAID0={value}"),
            (_, None) => "its configuration cannot be seen".into(),
        },
        "use a kernel with CONFIG_MD_RAID0=m: Raspberry Pi OS and Debian have it",
    );
}

/// The disks, each with one partition; all partitions are of the same size, so that every chunk has its partners and
/// no kernel has to be told how the rest of the larger ones is laid out.
fn members(
    nodes: &[&str],
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) -> Option<Vec<Place>> {
    let mut found: Vec<DiskIdentity> = Vec::new();
    for node in nodes {
        let Some(device) = disks::find(node, situation, draft) else {
            continue;
        };
        let is_whole = device.parent.is_none();
        if !is_whole {
            let whole = disks::whole(situation.machine, node);
            let remedy = format!("name the disk: {}", whole.display());
            draft.check("whole disks are named", false, format!("{node} is a partition"), &remedy);
            continue;
        }
        found.extend(disks::take(Path::new(node), situation, draft));
        let at = situation.option("at");
        let is_replaced = |entry: &Entry| !entry.is_swap() && Some(entry.target.as_str()) == at;
        tables::check(&device.name, &is_replaced, situation, draft);
    }
    if found.len() < nodes.len() {
        return None;
    }
    let least = found.iter().map(|disk| disk.size_bytes).min()?;
    let tables: Result<Vec<_>, String> = found
        .iter()
        .map(|disk| {
            let purpose = format!("raid0 {}", disk.path.display());
            let random = &situation.facts.random;
            let like_least = DiskIdentity { size_bytes: least, ..disk.clone() };
            identifiers::one_partition(random, &purpose, PartitionRole::Raid, &like_least, None)
        })
        .collect();
    let tables = match tables {
        Ok(tables) => tables,
        Err(why) => {
            draft.check("the disks are large enough", false, why, "take larger ones");
            return None;
        }
    };
    let mut places = Vec::new();
    for (disk, table) in found.into_iter().zip(tables) {
        let part = table.partitions.first()?;
        places.push(disks::partition(&disk, part.number, &part.partuuid));
        let unused = disk.size_bytes - least;
        if unused > least / 50 {
            draft.notes.push(format!(
                "{} is larger than the smallest disk: {} of it stay unused.",
                disk.path.display(),
                bytes_si(unused)
            ));
        }
        draft.step(
            &format!("partition-{}", disks::name(&disk.path.display().to_string())),
            "A partition of its kind says that the disk belongs to an array, so that it does not look empty.",
            Action::Partition(PartitionDisk { disk, table }),
        );
    }
    Some(places)
}

fn array(members: Vec<Place>, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let name = situation.option("name").unwrap_or("rubus");
    let uuid = identifiers::array_uuid(&situation.facts.random, "raid0");
    let chunk_bytes = situation.option("chunk").and_then(|text| chunk(text).ok());
    let count = members.len() as u32;
    draft.step(
        "array",
        "What is written goes to the disks in turns, chunk by chunk, so that all of them work at the same time.",
        Action::MakeArray(MakeArray {
            name: name.into(),
            uuid: uuid.clone(),
            level: 0,
            chunk_bytes: chunk_bytes.unwrap_or(64 << 10),
            members: members.clone(),
        }),
    );
    let path = Path::new(CONFIGURATION);
    let was = situation.text(path);
    let start = if was.is_empty() {
        "# Made by rubus (raid0).\nHOMEHOST <system>\n".to_string()
    } else if was.ends_with('\n') {
        was.to_string()
    } else {
        format!("{was}\n")
    };
    draft.write(
        "array-at-boot",
        "mdadm puts arrays together at each boot; with this line the array has its name.",
        path,
        format!("{start}ARRAY /dev/md/{name} metadata=1.2 UUID={uuid}\n"),
        situation,
    );
    let kind = match situation.option("filesystem") {
        Some("btrfs") => FilesystemKind::Btrfs,
        _ => FilesystemKind::Ext4,
    };
    let new = format::new_filesystem(kind, name, situation);
    let place = Place::Array { uuid: uuid.clone(), members };
    format::make(place, new, situation.option("at"), situation, draft);
    draft.promises.push(Promise {
        what: format!("the array {name} runs with all its disks"),
        look: Look::Array { uuid, members: count },
        needs_boot: false,
    });
}

fn words(nodes: &[&str], at: &str, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let times = match nodes.len() {
        2 => "Two disks: twice the chance of losing everything".to_string(),
        3 => "Three disks: three times the chance of losing everything".into(),
        count => format!("{count} disks: {count} times the chance of losing everything"),
    };
    draft.risks.push(format!(
        "{times}, since one that fails or is unplugged takes all files with it. Keep a copy of what matters."
    ));
    draft.risks.push(format!("Everything on {} is lost now.", nodes.join(", ")));
    if let Some(card) =
        nodes.iter().find(|node| disks::is_on_card(situation.machine, disks::name(node)))
    {
        draft
            .risks
            .push(format!("{card} is an SD card: the array is as slow as its slowest disk."));
    }
    draft.notes.push(format!(
        "The root filesystem is not on the array, so the initial RAM filesystem needs nothing; {at} is mounted by its UUID, \
         whatever number the array gets."
    ));
}

#[cfg(test)]
pub(super) mod tests;
