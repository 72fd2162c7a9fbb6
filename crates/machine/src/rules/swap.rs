//! Swap: where it is, what stands before it.

use super::Look::Facts;
use super::{Rule, Seen, Weight, is_card, setting};
use crate::swap_place::{SwapPlace, WEIGH, is_memory, swappiness_for_disks};
use rubus_vocabulary::machine::device_index::DeviceIndex;
use rubus_vocabulary::machine::{BlockKind, HopKind, Machine, SwapArea};
use rubus_vocabulary::units::bytes_iec;

const ZSWAP: &str = "Linux documentation, admin-guide/mm/zswap";

const ZSWAP_TRIED: &str = "`rubus bench memory` with the setting and without it: the same, and it gains nothing \
    here.";

const SWAP_TRIED: &str = "`rubus bench memory` with both values: no difference, and the setting does not matter \
    here.";

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "swap-on-card",
        weight: Weight::Cost,
        when: "a swap area is on an SD card",
        source: "SD Physical Layer Simplified Specification: A1 promises 500 random writes per second; flash wears by writing",
        disproof: "`rubus watch` during an ordinary day: no pages swapped, and swap wears nothing.",
        look: Facts(on_card),
    },
    Rule {
        name: "swap-over-network",
        weight: Weight::Danger,
        when: "a swap area is on a network disk",
        source: "Linux: sending over the network needs memory, which is what is missing when pages go to swap",
        disproof: "Nothing short of the failure: the machine hangs when it needs memory to send what frees memory.",
        look: Facts(over_network),
    },
    Rule {
        name: "no-swap",
        weight: Weight::Hint,
        when: "2 GiB of memory or less and no swap",
        source: "Linux: without swap the kernel ends a program when memory is full, and drops the pages of running programs before",
        disproof: "`rubus watch` while all your programs run: memory stays available and there is no pressure, and \
        none is needed.",
        look: Facts(none),
    },
    Rule {
        name: "zswap-off",
        weight: Weight::Cost,
        when: "a swap area on a disk that is no card, and zswap is there and off",
        source: ZSWAP,
        disproof: ZSWAP_TRIED,
        look: Facts(zswap_off),
    },
    Rule {
        name: "zswap-before-zram",
        weight: Weight::Cost,
        when: "zswap is on and a swap area is zram",
        source: ZSWAP,
        disproof: ZSWAP_TRIED,
        look: Facts(compressed_twice),
    },
    Rule {
        name: "zswap-allocator-gone",
        weight: Weight::Hint,
        when: "zswap uses, or is told to use, z3fold or zbud",
        source: "Linux 6.15 removed z3fold and zbud, 6.18 the parameter zswap.zpool",
        disproof: "`cat /sys/module/zswap/parameters/zpool`: zsmalloc, and the kernel has changed it already.",
        look: Facts(old_allocator),
    },
    Rule {
        name: "zswap-keeps-cold-pages",
        weight: Weight::Hint,
        when: "zswap is on, its shrinker is off, and no swap is on a card",
        source: "Linux 6.8: zswap.shrinker_enabled writes cold pages back before the pool is full",
        disproof: ZSWAP_TRIED,
        look: Facts(no_shrinker),
    },
    Rule {
        name: "swap-read-ahead",
        weight: Weight::Cost,
        when: "swap is compressed memory and vm.page-cluster is above 0",
        source: "Linux documentation, admin-guide/sysctl/vm: page-cluster 3 reads 8 pages at a time",
        disproof: SWAP_TRIED,
        look: Facts(read_ahead),
    },
    Rule {
        name: "swappiness-for-disks",
        weight: Weight::Hint,
        when: "all swap is compressed memory and vm.swappiness is below 100",
        source: "Linux documentation, admin-guide/sysctl/vm: swappiness above 100 where swap is faster than the filesystems",
        disproof: SWAP_TRIED,
        look: Facts(swappiness),
    },
    Rule {
        name: "two-managers-of-swap",
        weight: Weight::Danger,
        when: "two programs set swap up",
        source: "AllskyTeam/allsky issue 5175: dphys-swapfile beside rpi-swap, two swap systems that race",
        disproof: "`swapon --show` after several restarts: the same areas each time, and they do not race.",
        look: Facts(two_managers),
    },
    Rule {
        name: "slow-swap-first",
        weight: Weight::Cost,
        when: "a swap area on a disk comes before or with one in memory",
        source: "swapon(2): areas of equal priority are filled in turns, the higher priority first",
        disproof: "`swapon --show` while memory is short: the fast area fills first, and the order is right.",
        look: Facts(order),
    },
];

/// Areas on something that is not memory.
fn on_disks(machine: &Machine) -> impl Iterator<Item = &SwapArea> {
    let index = DeviceIndex::of(machine);
    machine.swap.areas.iter().filter(move |area| !is_memory(&index, area))
}

fn is_on_card(index: &DeviceIndex<'_>, area: &SwapArea) -> bool {
    let device = area.device.text().unwrap_or_default();
    index.disks_below(device).iter().any(|disk| is_card(disk))
}

fn on_card(machine: &Machine) -> Vec<Seen> {
    let index = DeviceIndex::of(machine);
    on_disks(machine)
        .filter(|area| is_on_card(&index, area))
        .map(|area| Seen {
            about: area.path.clone(),
            evidence: format!("{} of swap on an SD card", bytes_iec(area.size_bytes)),
            read_from: area.device.source().into(),
            consequence: "A page that goes out is a random write of 4 KiB, of which cards do 20 to 500 per second: a desktop that swaps stands still, and the card wears.".into(),
            fix: "Compressed memory first: zram, or zswap before a swap area on a USB SSD.".into(),
            command: Some(WEIGH.into()),
        })
        .collect()
}

fn is_over_network(index: &DeviceIndex<'_>, area: &SwapArea) -> bool {
    let device = area.device.text().unwrap_or_default();
    let below = index.disks_below(device);
    below.iter().any(|disk| {
        disk.kind == BlockKind::Nbd || disk.path.iter().any(|hop| hop.kind == HopKind::Network)
    })
}

fn over_network(machine: &Machine) -> Vec<Seen> {
    let index = DeviceIndex::of(machine);
    on_disks(machine)
        .filter(|area| is_over_network(&index, area))
        .map(|area| Seen {
            about: area.path.clone(),
            evidence: "swap is on a network disk".into(),
            read_from: area.device.source().into(),
            consequence: "When memory is out, what sends the page needs memory itself: the machine can stand still for good, and does when the server is away.".into(),
            fix: "swapoff, and take compressed memory.".into(),
            command: Some(WEIGH.into()),
        })
        .collect()
}

/// With more memory than this a machine without swap is common and fine.
const SMALL_MEMORY_BYTES: u64 = 2 << 30;

fn none(machine: &Machine) -> Vec<Seen> {
    let total = &machine.memory.total_bytes;
    let Some(bytes) = total.get().filter(|bytes| *bytes <= SMALL_MEMORY_BYTES) else {
        return Vec::new();
    };
    if !machine.swap.areas.is_empty() {
        return Vec::new();
    }
    vec![Seen {
        about: "swap".into(),
        evidence: format!("{} of memory and no swap", bytes_iec(bytes)),
        read_from: total.source().into(),
        consequence: "A browser fills that. Then the kernel reads programs from the card again and again, and at last ends one.".into(),
        fix: "zram costs nothing until it is needed and carries about two to three times its own memory.".into(),
        command: Some(WEIGH.into()),
    }]
}

fn zswap_off(machine: &Machine) -> Vec<Seen> {
    let enabled = &machine.swap.zswap.enabled;
    if enabled.get() != Some(false) {
        return Vec::new();
    }
    let index = DeviceIndex::of(machine);
    // Swap on a card or over the network is a finding of its own, which goes another way.
    on_disks(machine)
        .filter(|area| !is_on_card(&index, area) && !is_over_network(&index, area))
        .take(1)
        .map(|area| Seen {
            about: "zswap".into(),
            evidence: format!("swap on a disk ({}) and no compressed memory before it", area.path),
            read_from: enabled.source().into(),
            consequence: "Every page goes to the disk. With zswap two to three pages fit where one was, and most never reach it: tens of microseconds instead of milliseconds.".into(),
            fix: "Switch zswap on, for good.".into(),
            command: Some(SwapPlace::command(machine, "rubus plan zswap")),
        })
        .collect()
}

fn compressed_twice(machine: &Machine) -> Vec<Seen> {
    let enabled = &machine.swap.zswap.enabled;
    if enabled.get() != Some(true) {
        return Vec::new();
    }
    let index = DeviceIndex::of(machine);
    let memory = machine.swap.areas.iter().filter(|area| is_memory(&index, area));
    memory
        .map(|area| Seen {
            about: area.path.clone(),
            evidence: "zswap stands before swap that is compressed memory itself".into(),
            read_from: enabled.source().into(),
            consequence: "Pages are compressed, expanded and compressed again when they move on, and zram's own figures say nothing any more.".into(),
            fix: "One of them: zram without a disk, zswap before a disk.".into(),
            command: Some(SwapPlace::command(machine, "rubus plan swap to=zram")),
        })
        .collect()
}

fn old_allocator(machine: &Machine) -> Vec<Seen> {
    let zpool = setting(&machine.swap.zswap.parameters, "zpool");
    let line = machine.system.command_line.text().unwrap_or_default();
    let asked =
        ["zswap.zpool=z3fold", "zswap.zpool=zbud"].into_iter().find(|word| line.contains(word));
    let (evidence, read_from) = match (zpool, asked) {
        (Some((name @ ("z3fold" | "zbud"), source)), _) => {
            (format!("zswap uses the allocator {name}"), source.to_string())
        }
        (_, Some(word)) => (
            format!("the kernel's command line has {word}"),
            machine.system.command_line.source().into(),
        ),
        _ => return Vec::new(),
    };
    vec![Seen {
        about: "zswap".into(),
        evidence,
        read_from,
        consequence: "It holds two or three pages in one at best, zsmalloc packs them tighter; newer kernels do not \
        have it and use zsmalloc or no zswap.".into(),
        fix: "Leave the allocator to the kernel.".into(),
        command: Some("rubus plan zswap".into()),
    }]
}

fn no_shrinker(machine: &Machine) -> Vec<Seen> {
    if machine.swap.zswap.enabled.get() != Some(true) {
        return Vec::new();
    }
    let Some((_, source)) = setting(&machine.swap.zswap.parameters, "shrinker_enabled")
        .filter(|(value, _)| *value == "N")
    else {
        return Vec::new();
    };
    // On a card it would write more, and wear it.
    let index = DeviceIndex::of(machine);
    if on_disks(machine).any(|area| is_on_card(&index, area)) {
        return Vec::new();
    }
    vec![Seen {
        about: "zswap".into(),
        evidence: "its shrinker is off".into(),
        read_from: source.into(),
        consequence:
            "Unused pages stay in the pool until it is full; then new ones wait for the disk."
                .into(),
        fix: "Switch it on: no swap is on a card, which it would wear.".into(),
        command: Some("rubus plan zswap".into()),
    }]
}

fn read_ahead(machine: &Machine) -> Vec<Seen> {
    let Some((value, source)) = setting(&machine.vm, "page-cluster") else {
        return Vec::new();
    };
    let Some(cluster) = value.parse::<u32>().ok().filter(|cluster| (1..=10).contains(cluster))
    else {
        return Vec::new();
    };
    let is_zswap = machine.swap.zswap.enabled.get() == Some(true);
    let is_compressed = is_zswap
        || machine.swap.areas.iter().any(|area| is_memory(&DeviceIndex::of(machine), area));
    if !is_compressed || machine.swap.areas.is_empty() {
        return Vec::new();
    }
    // The recipe for zswap refuses a machine whose swap is all in memory.
    let own = if is_zswap { "rubus plan zswap" } else { "rubus plan swap to=zram" };
    vec![Seen {
        about: "vm.page-cluster".into(),
        evidence: format!(
            "it is {cluster}: a page that is wanted brings {} others along",
            (1_u32 << cluster) - 1
        ),
        read_from: source.into(),
        consequence: format!(
            "Compressed memory has no seeks to save: {} pages are expanded where one is wanted.",
            1_u32 << cluster
        ),
        fix: "vm.page-cluster = 0.".into(),
        command: Some(SwapPlace::command(machine, own)),
    }]
}

fn swappiness(machine: &Machine) -> Vec<Seen> {
    let (Some(swappiness), Some((_, source))) =
        (swappiness_for_disks(machine), setting(&machine.vm, "swappiness"))
    else {
        return Vec::new();
    };
    vec![Seen {
        about: "vm.swappiness".into(),
        evidence: format!("it is {swappiness}, and all swap is compressed memory"),
        read_from: source.into(),
        consequence: "The kernel assumes that swap is slower than files. It drops cached pages of files first and reads them back from the disk: milliseconds instead of tens of microseconds.".into(),
        fix: "Set vm.swappiness above 100. The value depends on where swap belongs; advice names both.".into(),
        command: Some(WEIGH.into()),
    }]
}

fn two_managers(machine: &Machine) -> Vec<Seen> {
    let names: Vec<&str> =
        machine.swap.managers.iter().map(|manager| manager.name.as_str()).collect();
    // rpi-swap configures zram-generator: these two belong together.
    let is_pair = names.iter().all(|name| ["rpi-swap", "zram-generator"].contains(name));
    if names.len() < 2 || is_pair {
        return Vec::new();
    }
    vec![Seen {
        about: "swap".into(),
        evidence: format!("{} all set swap up", names.join(" and ")),
        read_from: machine.swap.managers[0].settings.source().into(),
        consequence: "Each start ends with another swap, or with both.".into(),
        fix: "Keep one of them; the swap recipe does that and can be undone.".into(),
        command: Some(SwapPlace::command(machine, "rubus plan swap to=zram")),
    }]
}

fn order(machine: &Machine) -> Vec<Seen> {
    let index = DeviceIndex::of(machine);
    let memory = machine.swap.areas.iter().filter(|area| is_memory(&index, area));
    let Some(fast) = memory.max_by_key(|area| area.priority) else {
        return Vec::new();
    };
    on_disks(machine)
        .filter(|area| area.priority >= fast.priority)
        .map(|area| Seen {
            about: area.path.clone(),
            evidence: format!(
                "its priority {} is not below that of {} ({})",
                area.priority, fast.path, fast.priority
            ),
            read_from: "/proc/swaps".into(),
            consequence: "Pages go to the disk while compressed memory is free.".into(),
            fix: format!("Give {} the higher priority (pri=100 in fstab).", fast.path),
            command: Some(SwapPlace::command(machine, WEIGH)),
        })
        .collect()
}
