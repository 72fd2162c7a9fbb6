//! Filesystems: how full, how mounted, on what.

use std::collections::HashSet;

use super::Look::Facts;
use super::disks::link_of;
use super::{Rule, Seen, Weight, is_card};
use rubus_boot::fstab::Entry;
use rubus_boot::volume::Name;
use rubus_boot::volume::NamedVolume;
use rubus_vocabulary::machine::device_index::DeviceIndex;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine, Mount};
use rubus_vocabulary::units::{bytes_si, percent, rate_si};

const FREE_SPACE: &str = "`df -h` on its mount point: more is free than the finding says.";

const COMPRESSION: &str = "`rubus bench cpu` and `rubus advise --pipes`: the disk carries more than the processor \
    compresses, and it gains nothing.";

const NOATIME: &str = "`rubus writers` for a day with the option and with noatime: the same bytes, and access times \
    cost nothing here.";

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "filesystem-nearly-full",
        weight: Weight::Danger,
        when: "less than 10 % and less than 20 GB of a filesystem are free",
        source: "btrfs documentation: new chunks need unallocated space; flash translation layers slow down without free blocks",
        disproof: FREE_SPACE,
        look: Facts(nearly_full),
    },
    Rule {
        name: "boot-partition-nearly-full",
        weight: Weight::Danger,
        when: "less than 60 MB of the boot partition are free",
        source: "Raspberry Pi OS: a kernel with its initramfs takes 20 to 60 MB on the boot partition, twice during an update",
        disproof: FREE_SPACE,
        look: Facts(boot_full),
    },
    Rule {
        name: "root-went-read-only",
        weight: Weight::Danger,
        when: "the root filesystem is read-only and the command line does not ask for it",
        source: "ext4 documentation: errors=remount-ro",
        disproof: "`findmnt -no OPTIONS /`: it begins with rw, and the root takes writes.",
        look: Facts(read_only_root),
    },
    Rule {
        name: "disk-gone",
        weight: Weight::Danger,
        when: "a filesystem is mounted, or a swap area in use, from a disk that is no longer there",
        source: "Linux: a disk that was unplugged leaves its mounts behind; each request to them fails",
        disproof: "`ls` on its mount point: it shows the files, and the disk is there.",
        look: Facts(gone),
    },
    Rule {
        name: "btrfs-without-compression",
        weight: Weight::Cost,
        when: "btrfs without compression behind a link of 60 MB/s or less",
        source: "btrfs documentation, compression; the desktop of a Raspberry Pi was measured at 63 % of its size with zlib",
        disproof: COMPRESSION,
        look: Facts(uncompressed),
    },
    Rule {
        name: "btrfs-old-compression",
        weight: Weight::Hint,
        when: "btrfs compresses with zlib or lzo",
        source: "btrfs documentation, compression: zstd since Linux 4.14, levels since 5.1",
        disproof: COMPRESSION,
        look: Facts(old_compression),
    },
    Rule {
        name: "access-times-written",
        weight: Weight::Cost,
        when: "a filesystem is mounted with neither relatime nor noatime",
        source: "mount(8): strictatime writes at each read",
        disproof: NOATIME,
        look: Facts(strict_access_times),
    },
    Rule {
        name: "access-times-on-card",
        weight: Weight::Hint,
        when: "the root filesystem is on an SD card or eMMC and mounted with relatime",
        source: "mount(8): relatime writes the access time at a file's first read after a change, and once in 24 hours",
        disproof: NOATIME,
        look: Facts(access_times_on_card),
    },
    Rule {
        name: "barriers-off",
        weight: Weight::Danger,
        when: "a filesystem is mounted with nobarrier or barrier=0",
        source: "ext4 documentation: barrier=0 lets the journal reach the medium out of order",
        disproof: "A disk whose cache survives a power cut, by its data sheet: then nothing is lost without \
        barriers.",
        look: Facts(no_barriers),
    },
    Rule {
        name: "synchronous-mount",
        weight: Weight::Cost,
        when: "a filesystem is mounted with sync",
        source: "mount(8): sync makes every write wait for the medium",
        disproof: "`rubus checkup` there, then after a remount without sync: the same rates, and it costs nothing.",
        look: Facts(synchronous),
    },
    Rule {
        name: "trim-at-each-delete",
        weight: Weight::Hint,
        when: "a filesystem on a card or USB disk is mounted with discard",
        source: "mount(8), discard; fstrim(8) once a week is what distributions do",
        disproof: "Delete a large tree with the option and without it: as fast, and TRIM costs nothing here.",
        look: Facts(discard),
    },
    Rule {
        name: "ntfs-through-fuse",
        weight: Weight::Cost,
        when: "the filesystem of a disk is a program (fuseblk)",
        source: "Linux 5.15: ntfs3 in the kernel; ntfs-3g passes each request through a program",
        disproof: "`rubus checkup` there, then mounted with ntfs3: the same rates, and the program is not in the \
        way.",
        look: Facts(fuse),
    },
    Rule {
        name: "network-disk-without-netdev",
        weight: Weight::Danger,
        when: "a line of fstab for a network disk (NBD), the root's too, has no _netdev",
        source: "systemd.mount(5): without _netdev it is a local mount, before the network and until after it; of a root: systemd issues 32426, 35949",
        disproof: "Restart twice with the server on: it mounts each time and unmounts cleanly, and systemd orders it \
        here.",
        look: Facts(without_netdev),
    },
];

/// Mounts of filesystems on devices, each filesystem once.
fn on_devices(machine: &Machine) -> impl Iterator<Item = &Mount> {
    let mut seen = HashSet::new();
    machine
        .mounts
        .iter()
        .filter(move |mount| mount.device.as_deref().is_some_and(|device| seen.insert(device)))
}

fn has(mount: &Mount, option: &str) -> bool {
    mount.options.iter().any(|have| have == option)
}

fn is_boot(mount: &Mount) -> bool {
    ["/boot", "/boot/firmware"].contains(&mount.point.as_str())
}

fn nearly_full(machine: &Machine) -> Vec<Seen> {
    on_devices(machine)
        .filter(|mount| !is_boot(mount) && !["iso9660", "squashfs", "erofs"].contains(&mount.filesystem.as_str()))
        .filter_map(|mount| {
            let (size, free) = (mount.size_bytes.get()?, mount.available_bytes.get()?);
            let share = free as f64 / size.max(1) as f64;
            // A large disk with a small share may still have a lot.
            (share < 0.1 && free < 20_000_000_000).then(|| Seen {
                about: mount.point.clone(),
                evidence: format!("{} of {} are free ({})", bytes_si(free), bytes_si(size), percent(share)),
                read_from: mount.available_bytes.source().into(),
                consequence: if mount.filesystem == "btrfs" {
                    "btrfs can then fail to write although space is free, and flash gets slower the fuller it is.".into()
                } else {
                    "Files are scattered, flash gets slower the fuller it is, and an update may stop in the middle.".into()
                },
                fix: if mount.compression.is_some() {
                    "Make room: old packages (apt clean), logs (journalctl --vacuum-size=100M), snapshots \
                    that are not needed.".into()
                } else {
                    "Make room: old packages (apt clean), logs (journalctl --vacuum-size=100M); compression gives about a third of a system's size back.".into()
                },
                command: Some(format!("rubus compression {}", mount.point)).filter(|_| mount.filesystem == "btrfs"),
            })
        })
        .collect()
}

fn boot_full(machine: &Machine) -> Vec<Seen> {
    machine
        .mounts
        .iter()
        .filter(|mount| is_boot(mount) && mount.filesystem == "vfat")
        .filter_map(|mount| {
            let free = mount.available_bytes.get().filter(|free| *free < 60_000_000)?;
            Some(Seen {
                about: mount.point.clone(),
                evidence: format!("{} are free", bytes_si(free)),
                read_from: mount.available_bytes.source().into(),
                consequence: "The next kernel does not fit: the update stops, and a half-written kernel or initramfs does not start.".into(),
                fix: "Remove kernels that are not in use (apt autoremove); images since 2023 have 512 MB here, older ones 256.".into(),
                command: None,
            })
        })
        .collect()
}

fn read_only_root(machine: &Machine) -> Vec<Seen> {
    let Some(root) = super::root(machine) else {
        return Vec::new();
    };
    let line = machine.system.command_line.text().unwrap_or_default();
    let is_meant = line
        .split_whitespace()
        .any(|word| word == "ro" || word == "overlayroot=tmpfs" || word == "boot=overlay");
    let guards_itself = has(root, "errors=remount-ro") || root.filesystem == "btrfs";
    if !has(root, "ro") || is_meant || root.device.is_none() || !guards_itself {
        return Vec::new();
    }
    vec![Seen {
        about: "/".into(),
        evidence: "the root filesystem is read-only without having been told to".into(),
        read_from: "/proc/self/mountinfo".into(),
        consequence: "The kernel does so after an error of the device. What was written since is lost at the next start.".into(),
        fix: "Look at `dmesg`, copy what matters away, then check the card (another reader, another card).".into(),
        command: None,
    }]
}

/// Filesystems that lie on a disk.
const ON_DISKS: [&str; 10] =
    ["bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "ntfs3", "vfat", "xfs"];

/// What is mounted or swapped to, from a device that the kernel does not list any more.
fn gone(machine: &Machine) -> Vec<Seen> {
    // Where no device is seen at all (some containers), none is missing.
    if machine.block_devices.is_empty() {
        return Vec::new();
    }
    let name_of = |path: &str| {
        let name = path.strip_prefix("/dev/")?.split(' ').next()?;
        let is_plain = !name.contains('/') && name != "root";
        (is_plain && machine.device(name).is_none()).then(|| name.to_string())
    };
    let mounts = machine.mounts.iter().filter_map(|mount| {
        let is_on_disk = ON_DISKS.contains(&mount.filesystem.as_str());
        let name = name_of(&mount.source).filter(|_| is_on_disk && mount.device.is_none())?;
        let is_root = mount.point == "/";
        Some(Seen {
            about: mount.point.clone(),
            evidence: format!("{name}, which is mounted there, is gone"),
            read_from: "/proc/self/mountinfo, /sys/class/block".into(),
            consequence: if is_root {
                "The system runs without its disk: what is not in memory cannot be read, nothing can be written, and what was not written yet is lost.".into()
            } else {
                "What is not in memory cannot be read, nothing can be written there, and what was not written yet is lost.".into()
            },
            fix: if is_root {
                "Plug the disk in firmly and start the machine again; plugging it in alone does not help. If it happens again: another port, another cable, a stronger power supply.".into()
            } else {
                format!("Plug it in firmly, then umount {0} and mount it again. If it happens again: another port, another cable, a stronger power supply.", mount.point)
            },
            command: None,
        })
    });
    let areas = machine.swap.areas.iter().filter_map(|area| {
        let name = name_of(&area.path).filter(|_| area.device.value().is_none())?;
        Some(Seen {
            about: name.clone(),
            evidence: format!("{name}, on which there is swap in use, is gone"),
            read_from: "/proc/swaps, /sys/class/block".into(),
            consequence: "A program whose pages are there is killed as soon as it needs one."
                .into(),
            fix: "Plug the disk in firmly and start the machine again.".into(),
            command: None,
        })
    });
    mounts.chain(areas).collect()
}

/// Up to here a link is slow enough for compression by any of these boards.
const SLOW_LINK: f64 = 60e6;

fn uncompressed(machine: &Machine) -> Vec<Seen> {
    on_devices(machine)
        .filter(|mount| mount.filesystem == "btrfs" && mount.compression.is_none() && !has(mount, "ro"))
        .filter_map(|mount| {
            let (link, carries) = link_of(machine, mount.device.as_deref()?)?;
            (carries <= SLOW_LINK).then(|| Seen {
                about: mount.point.clone(),
                evidence: format!("btrfs without compression behind {link}"),
                read_from: "/proc/self/mountinfo".into(),
                consequence: format!("The link carries {}. System files shrink to about two thirds: as much as 1.5 times the link for those, and a third less wear.", rate_si(carries)),
                fix: "compress=zstd:3 in fstab; what is there already: btrfs filesystem defragment -r -czstd (not with snapshots, it undoes their sharing).".into(),
                command: None,
            })
        })
        .collect()
}

fn old_compression(machine: &Machine) -> Vec<Seen> {
    on_devices(machine)
        .filter_map(|mount| {
            let method = mount.compression.as_deref()?;
            let is_old = method.starts_with("zlib") || method.starts_with("lzo");
            (mount.filesystem == "btrfs" && is_old).then(|| Seen {
                about: mount.point.clone(),
                evidence: format!("it compresses with {method}"),
                read_from: "/proc/self/mountinfo".into(),
                consequence: if method.starts_with("zlib") {
                    "zstd at level 3 compresses as well and several times as fast.".into()
                } else {
                    "zstd at level 1 compresses better and is about as fast to read.".into()
                },
                fix: "compress=zstd:3 in fstab; old files stay as they are and readable.".into(),
                command: Some("rubus bench cpu".into()),
            })
        })
        .collect()
}

fn strict_access_times(machine: &Machine) -> Vec<Seen> {
    on_devices(machine)
        .filter(|mount| ["ext4", "btrfs", "xfs", "f2fs"].contains(&mount.filesystem.as_str()))
        .filter(|mount| !["relatime", "noatime", "ro"].iter().any(|option| has(mount, option)))
        .map(|mount| Seen {
            about: mount.point.clone(),
            evidence: "every read of a file writes the time of it".into(),
            read_from: "/proc/self/mountinfo".into(),
            consequence: "Reads become random writes, which are the slowest thing that a card does; with snapshots each also takes new space.".into(),
            fix: "noatime in fstab.".into(),
            command: None,
        })
        .collect()
}

fn access_times_on_card(machine: &Machine) -> Vec<Seen> {
    let Some(root) = super::root(machine) else {
        return Vec::new();
    };
    let below = machine.disks_below(root.device.as_deref().unwrap_or_default());
    let is_on_card = below.iter().any(|disk| disk.mmc.is_some());
    // With lazytime the times stay in memory until the inode is written for another reason, or a day has passed.
    let is_calm = ["ro", "lazytime"].iter().any(|option| has(root, option));
    if !is_on_card || is_calm || !has(root, "relatime") {
        return Vec::new();
    }
    vec![Seen {
        about: "/".into(),
        evidence: "the first read of a file in a day writes its access time to the card (relatime)".into(),
        read_from: "/proc/self/mountinfo".into(),
        consequence: "Up to one small random write for each file read: starting programs and backups wear the card and wait for it.".into(),
        fix: "Add noatime to the root's line in /etc/fstab; until the next start: mount -o remount,noatime /".into(),
        command: None,
    }]
}

fn no_barriers(machine: &Machine) -> Vec<Seen> {
    on_devices(machine)
        .filter(|mount| has(mount, "nobarrier") || has(mount, "barrier=0"))
        .map(|mount| Seen {
            about: mount.point.clone(),
            evidence: "barriers are off".into(),
            read_from: "/proc/self/mountinfo".into(),
            consequence: "After a power cut the filesystem may be damaged, and a commit is not durable when it says so. Benchmarks look splendid.".into(),
            fix: "Take nobarrier or barrier=0 out of fstab.".into(),
            command: None,
        })
        .collect()
}

fn synchronous(machine: &Machine) -> Vec<Seen> {
    on_devices(machine)
        .filter(|mount| has(mount, "sync"))
        .map(|mount| Seen {
            about: mount.point.clone(),
            evidence: "it is mounted with sync".into(),
            read_from: "/proc/self/mountinfo".into(),
            consequence: "Each write waits for the medium: the rate is that of commits, ten to a hundred times below that of writing.".into(),
            fix: "For sticks: the mount option flush (vfat), or none, and umount before you pull it out.".into(),
            command: None,
        })
        .collect()
}

fn discard(machine: &Machine) -> Vec<Seen> {
    let index = DeviceIndex::of(machine);
    on_devices(machine)
        .filter(|mount| has(mount, "discard"))
        .filter(|mount| {
            let below = index.disks_below(mount.device.as_deref().unwrap_or_default());
            below.iter().any(|disk| is_card(disk) || disk.usb_device().is_some())
        })
        .map(|mount| Seen {
            about: mount.point.clone(),
            evidence: "each deletion is told to the device at once (discard)".into(),
            read_from: "/proc/self/mountinfo".into(),
            consequence: "Cards and USB bridges do nothing else meanwhile: deleting many files takes seconds.".into(),
            fix: "Take discard out of fstab, and let fstrim.timer do it once a week.".into(),
            command: None,
        })
        .collect()
}

fn fuse(machine: &Machine) -> Vec<Seen> {
    on_devices(machine)
        .filter(|mount| mount.filesystem == "fuseblk")
        .map(|mount| Seen {
            about: mount.point.clone(),
            evidence: "its filesystem is a program (FUSE), as ntfs-3g is".into(),
            read_from: "/proc/self/mountinfo".into(),
            consequence: "Each request goes through that program: on a small board its core is full at a few tens of MB/s.".into(),
            fix: "For NTFS the kernel's own ntfs3 (mount -t ntfs3); better a filesystem of Linux if only Linux uses the disk.".into(),
            command: None,
        })
        .collect()
}

fn without_netdev(machine: &Machine) -> Vec<Seen> {
    let volumes: Vec<NamedVolume> = machine.block_devices.iter().map(named).collect();
    let index = DeviceIndex::of(machine);
    let lines = machine.fstab.value().into_iter().flatten();
    lines
        .filter(|line| !line.is_swap() && !line.has_option("_netdev"))
        .filter_map(|line| {
            let device = device_of(line, &volumes, machine)?;
            let is_network = device.starts_with("nbd")
                || index.disks_below(&device).iter().any(|disk| disk.kind == BlockKind::Nbd);
            if !is_network {
                return None;
            }
            // With _netdev, what lies on the root's own disk would wait for the network.
            let matters = is_mounted_first(line) || !is_on_roots_disk(&device, machine);
            matters.then(|| unannounced(line, &device, machine))
        })
        .collect()
}

fn named(device: &BlockDevice) -> NamedVolume {
    NamedVolume {
        path: format!("/dev/{}", device.name),
        partuuid: device.identity.partuuid.clone(),
        uuid: device.identity.uuid.clone(),
        label: device.identity.label.clone(),
        ..NamedVolume::default()
    }
}

/// The kernel name of what a line mounts: what it names, as far as that is known, else what is mounted at its place.
fn device_of(line: &Entry, volumes: &[NamedVolume], machine: &Machine) -> Option<String> {
    let short = |path: &str| path.strip_prefix("/dev/").map(str::to_string);
    if let [found, ..] = Name::of(line).resolve(volumes)[..] {
        return short(&found.path);
    }
    if line.source.starts_with("/dev/nbd") {
        return short(&line.source);
    }
    let mut mounts = machine.mounts.iter();
    mounts.rfind(|mount| mount.point == line.target)?.device.clone()
}

/// Whether the initial RAM filesystem mounts it. Source: systemd, `fstab_is_extrinsic`.
fn is_mounted_first(line: &Entry) -> bool {
    ["/", "/usr"].contains(&line.target.as_str()) || line.has_option("x-initrd.mount")
}

fn is_on_roots_disk(device: &str, machine: &Machine) -> bool {
    let root = super::root(machine).and_then(|root| root.device.as_deref());
    let below_root = root.map_or(Vec::new(), |root| machine.disks_below(root));
    let mut below = machine.disks_below(device).into_iter();
    below.any(|disk| below_root.iter().any(|other| other.name == disk.name))
}

/// What comes of a line without the option. Nothing waits for a root, but what stops the network does not know of it either.
fn unannounced(line: &Entry, device: &str, machine: &Machine) -> Seen {
    let consequence = match (
        is_mounted_first(line),
        line.has_option("nofail") || line.has_option("noauto"),
    ) {
        (true, _) => {
            "It starts well, since the initial RAM filesystem mounts it. At shutdown systemd-networkd, if it has the network card, takes \
             the address away before the last is written: that is lost, and the shutdown hangs."
        }
        (false, true) => {
            "At shutdown it is taken for a local disk, and the network goes first: what is not written yet is lost, and unmounting hangs."
        }
        (false, false) => {
            "A start takes it for a local disk, waits 90 s for it before there is a network, and ends in the emergency shell. At shutdown the \
             network goes first: what is not written yet is lost, and unmounting hangs."
        }
    };
    let fix = if is_mounted_first(line) {
        "Add _netdev to the options of that line, and systemd-networkd keeps the address. `rubus plan network-root` writes the line so.".into()
    } else {
        format!(
            "Add _netdev and nofail to the options of that line; `rubus plan network-disk address=nbd://SERVER/NAME at={}` writes it, with a \
             service that attaches the disk.",
            line.target
        )
    };
    Seen {
        about: line.target.clone(),
        evidence: format!("{} in fstab is a network disk ({device}) without _netdev", line.source),
        read_from: machine.fstab.source().into(),
        consequence: consequence.into(),
        fix,
        command: None,
    }
}
