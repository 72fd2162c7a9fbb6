//! The kernel: what it was built with, how it is set, what presses on it now.

use super::Look::Facts;
use super::{Rule, Seen, Weight, root, setting};
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::units::{bytes_iec, duration_ns, rate_si};

const KERNEL_CONFIG: &str =
    "`zcat /proc/config.gz` or /boot/config: the option is y or m, and the kernel has it.";

const PRESSURE: &str =
    "`rubus watch` for a minute: the share is near zero, and it was a moment's load.";

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "much-unwritten",
        weight: Weight::Cost,
        when: "what may wait in memory to be written takes the root's disk 10 s or more",
        source: "Linux documentation, admin-guide/sysctl/vm: dirty_ratio is a share of available memory",
        disproof: "Copy a large file and then type `sync`: it returns within 2 s, and little waits.",
        look: Facts(dirty_limit),
    },
    Rule {
        name: "no-zswap-in-kernel",
        weight: Weight::Hint,
        when: "the kernel is built without zswap",
        source: "Linux, CONFIG_ZSWAP",
        disproof: KERNEL_CONFIG,
        look: Facts(no_zswap),
    },
    Rule {
        name: "no-btrfs-in-kernel",
        weight: Weight::Hint,
        when: "the kernel is built without btrfs",
        source: "Linux, CONFIG_BTRFS_FS",
        disproof: KERNEL_CONFIG,
        look: Facts(no_btrfs),
    },
    Rule {
        name: "no-pressure-figures",
        weight: Weight::Hint,
        when: "the kernel can tell pressure (PSI) and is not told to",
        source: "Linux documentation, accounting/psi: psi=1 on the command line where CONFIG_PSI_DEFAULT_DISABLED",
        disproof: "`cat /proc/pressure/io`: figures, and the kernel tells them.",
        look: Facts(no_pressure),
    },
    Rule {
        name: "memory-groups-off",
        weight: Weight::Hint,
        when: "cgroup_disable=memory is on the kernel's command line and nothing takes it back",
        source: "Raspberry Pi OS: cgroup_disable=memory is on its command line",
        disproof: "`cat /sys/fs/cgroup/cgroup.controllers`: memory is among them, and limits work.",
        look: Facts(no_memory_groups),
    },
    Rule {
        name: "32-bit-programs-on-64-bit",
        weight: Weight::Cost,
        when: "32-bit programs run on a 64-bit kernel",
        source: "ARMv8-A: AES, SHA and double-precision vectors are instructions of 64-bit programs; ChaCha20 and Linpack were measured 1.3 to 2 times as fast",
        disproof: "`rubus bench cpu --against-binary` with a 64-bit program: no faster, and it costs nothing.",
        look: Facts(narrow_programs),
    },
    Rule {
        name: "old-kernel",
        weight: Weight::Hint,
        when: "the kernel is older than Linux 5.6",
        source: "Linux 5.6: io_uring reads and writes (IORING_OP_READ); 5.1: levels of btrfs's zstd; 4.20: pressure figures",
        disproof: "`uname -r`: 5.6 or later.",
        look: Facts(old_kernel),
    },
    Rule {
        name: "memory-pressure-now",
        weight: Weight::Cost,
        when: "for 5 % or more of the last 10 s every program waited for memory",
        source: "Linux documentation, accounting/psi",
        disproof: PRESSURE,
        look: Facts(memory_pressure),
    },
    Rule {
        name: "disk-pressure-now",
        weight: Weight::Hint,
        when: "for 20 % or more of the last 10 s every program waited for a disk",
        source: "Linux documentation, accounting/psi",
        disproof: PRESSURE,
        look: Facts(io_pressure),
    },
];

/// A sync that takes longer than this is felt.
const LONG_SYNC_S: f64 = 10.0;

fn dirty_limit(machine: &Machine) -> Vec<Seen> {
    let number = |name| {
        setting(&machine.vm, name)
            .and_then(|(value, source)| Some((value.parse::<u64>().ok()?, source)))
    };
    let by_bytes = number("dirty_bytes").filter(|(bytes, _)| *bytes > 0);
    let by_ratio = || {
        let (ratio, source) =
            number("dirty_ratio").filter(|(ratio, _)| (1..=100).contains(ratio))?;
        Some((machine.memory.available_bytes.get()? / 100 * ratio, source))
    };
    let Some((limit, source)) = by_bytes.or_else(by_ratio) else {
        return Vec::new();
    };
    let Some((link, carries)) = root(machine)
        .and_then(|root| root.device.as_deref())
        .and_then(|device| super::disks::link_of(machine, device))
    else {
        return Vec::new();
    };
    let seconds = limit as f64 / carries;
    if seconds < LONG_SYNC_S {
        return Vec::new();
    }
    vec![Seen {
        about: "vm.dirty_ratio".into(),
        evidence: format!("up to {} may wait in memory to be written", bytes_iec(limit)),
        read_from: source.into(),
        consequence: format!(
            "Behind {link}, {} at most, writing it takes {} or more. A sync, a shutdown or an unmount hangs for that time, and all of \
             it is lost when the power fails.",
            rate_si(carries),
            duration_ns((seconds * 1e9) as u64)
        ),
        fix: format!(
            "vm.dirty_bytes = {}, vm.dirty_background_bytes = {}: two seconds of the disk.",
            (carries * 2.0) as u64,
            carries as u64
        ),
        command: None,
    }]
}

/// A switch of the kernel that is off, with where that was read.
fn is_off<'a>(machine: &'a Machine, name: &str) -> Option<&'a str> {
    setting(&machine.kernel_config, name)
        .and_then(|(value, source)| (value == "not set" || value == "n").then_some(source))
}

fn no_zswap(machine: &Machine) -> Vec<Seen> {
    let Some(source) = is_off(machine, "ZSWAP") else {
        return Vec::new();
    };
    vec![Seen {
        about: "the kernel".into(),
        evidence: "it is built without zswap".into(),
        read_from: source.into(),
        consequence: "Swap on a disk cannot have compressed memory before it.".into(),
        fix: "zram, which nearly every kernel has, or the distribution's own kernel.".into(),
        command: Some("rubus plan swap to=zram".into()),
    }]
}

fn no_btrfs(machine: &Machine) -> Vec<Seen> {
    let Some(source) = is_off(machine, "BTRFS_FS") else {
        return Vec::new();
    };
    vec![Seen {
        about: "the kernel".into(),
        evidence: "it is built without btrfs".into(),
        read_from: source.into(),
        consequence: "No compressed root filesystem; f2fs compresses too, but gives no space back."
            .into(),
        fix: "The distribution's own kernel.".into(),
        command: None,
    }]
}

fn no_pressure(machine: &Machine) -> Vec<Seen> {
    let (Some((psi, source)), Some((disabled, _))) = (
        setting(&machine.kernel_config, "PSI"),
        setting(&machine.kernel_config, "PSI_DEFAULT_DISABLED"),
    ) else {
        return Vec::new();
    };
    let line = machine.system.command_line.text().unwrap_or_default();
    if psi != "y" || disabled != "y" || line.split_whitespace().any(|word| word == "psi=1") {
        return Vec::new();
    }
    vec![Seen {
        about: "the kernel".into(),
        evidence: "pressure stall information (PSI) is built in but off: how long programs wait for memory and disks"
            .into(),
        read_from: source.into(),
        consequence: "Whether memory or the disk holds the machine up must be guessed.".into(),
        fix: "Add psi=1 to the kernel's command line (on a Raspberry Pi: to the end of the line in cmdline.txt) and restart; it costs less than one percent.".into(),
        command: None,
    }]
}

fn no_memory_groups(machine: &Machine) -> Vec<Seen> {
    let line = &machine.system.command_line;
    let words = || line.text().unwrap_or_default().split_whitespace();
    if !words().any(|word| word == "cgroup_disable=memory")
        || words().any(|word| word == "cgroup_enable=memory")
    {
        return Vec::new();
    }
    vec![Seen {
        about: "the kernel".into(),
        evidence: "cgroup_disable=memory is on its command line".into(),
        read_from: line.source().into(),
        consequence: "Containers cannot have memory limits, and `rubus bench memory` must use the whole machine.".into(),
        fix: "Add cgroup_enable=memory to the kernel's command line (on a Raspberry Pi: to the end of the line in cmdline.txt) and restart; it costs about 1 % of memory.".into(),
        command: None,
    }]
}

fn narrow_programs(machine: &Machine) -> Vec<Seen> {
    let system = &machine.system;
    let is_wide = matches!(system.kernel_arch.text(), Some("aarch64" | "x86_64"));
    if !is_wide || system.user_space_bits.get() != Some(32) {
        return Vec::new();
    }
    vec![Seen {
        about: "the system".into(),
        evidence: "32-bit programs on a 64-bit kernel".into(),
        read_from: system.user_space_bits.source().into(),
        consequence: "ssh, compression and arithmetic run at a half to three quarters of what the processor could do.".into(),
        fix: "The 64-bit edition of the system (on a board with 1 GiB or more); it is a new installation.".into(),
        command: Some("rubus bench cpu".into()),
    }]
}

/// The first kernel whose io_uring reads and writes as the engine does.
const OLDEST_WITH_RING: (u32, u32) = (5, 6);

fn old_kernel(machine: &Machine) -> Vec<Seen> {
    let release = &machine.system.kernel_release;
    let Some(text) = release.text() else {
        return Vec::new();
    };
    if major_and_minor(text).is_none_or(|version| version >= OLDEST_WITH_RING) {
        return Vec::new();
    }
    vec![Seen {
        about: "the kernel".into(),
        evidence: format!("Linux {text}"),
        read_from: release.source().into(),
        consequence: "No io_uring: deep queues are measured with threads, which take more processor time, so fast disks look slower than they are. \
                      Features such as pressure figures and btrfs compression levels may be missing."
            .into(),
        fix: "A current release of the distribution; its kernel is Linux 5.6 or later.".into(),
        command: None,
    }]
}

/// The first two numbers of a kernel's release: 6 and 12 of `6.12.47+rpt-rpi-v8`.
fn major_and_minor(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|one: char| !one.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn pressure<'a>(
    machine: &'a Machine,
    resource: &str,
) -> Option<&'a rubus_vocabulary::machine::Pressure> {
    machine.memory.pressure.iter().find(|pressure| pressure.resource == resource)
}

fn memory_pressure(machine: &Machine) -> Vec<Seen> {
    let Some((pressure, share)) = pressure(machine, "memory")
        .and_then(|pressure| Some((pressure, pressure.full_avg10.get()?)))
        .filter(|(_, share)| *share >= 5.0)
    else {
        return Vec::new();
    };
    vec![Seen {
        about: "memory".into(),
        evidence: format!("for {share:.0} % of the last 10 s every program waited for memory"),
        read_from: pressure.full_avg10.source().into(),
        consequence: "More is in use than fits: the rest moves to and from swap all the time."
            .into(),
        fix: "Close programs, or compress memory before it goes to the disk.".into(),
        command: Some("rubus zswap".into()),
    }]
}

fn io_pressure(machine: &Machine) -> Vec<Seen> {
    let Some((pressure, share)) = pressure(machine, "io")
        .and_then(|pressure| Some((pressure, pressure.full_avg10.get()?)))
        .filter(|(_, share)| *share >= 20.0)
    else {
        return Vec::new();
    };
    vec![Seen {
        about: "disks".into(),
        evidence: format!("for {share:.0} % of the last 10 s every program waited for a disk"),
        read_from: pressure.full_avg10.source().into(),
        consequence: "A measurement now would measure that, too.".into(),
        fix: "See who it is, and wait.".into(),
        command: Some("rubus watch".into()),
    }]
}
