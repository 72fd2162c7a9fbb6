//! Disks of any kind, PCI Express, encryption, arrays.

use super::Look::Facts;
use super::{Rule, Seen, Weight, disks, narrowest_hop, root};
use rubus_vocabulary::machine::{BlockDevice, BlockKind, HopKind, Machine};
use rubus_vocabulary::platters::has_platters;
use rubus_vocabulary::units::{bit_rate, rate_si};

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "disk-does-not-answer",
        weight: Weight::Danger,
        when: "a disk's queue in sysfs gave nothing within 4 s",
        source: "Linux, block/blk-mq.c: a queue that is frozen waits for the requests that are under way",
        disproof: "`cat /sys/block/*/queue/scheduler`: all answer at once, and it hung only for a while.",
        look: Facts(silent),
    },
    Rule {
        name: "pcie-below-its-best",
        // Advice does not count on it, either: only long transfers gain.
        weight: Weight::Hint,
        when: "a PCI Express link is slower than both its ends could be",
        source: "Raspberry Pi documentation, config.txt: dtparam=pciex1_gen=3; PCI Express Base Specification: 8b/10b and 128b/130b",
        disproof: "`lspci -vv` shows LnkCap and LnkSta: both the same, and the link is at its best.",
        look: Facts(slow_pcie),
    },
    Rule {
        name: "cipher-without-instructions",
        weight: Weight::Cost,
        when: "an encrypted volume and a processor without instructions for AES",
        source: "Crowley and Biggers, Adiantum, 2018: on a Cortex-A7, which has no AES instructions, Adiantum is more than five times as fast as AES-256-XTS",
        disproof: "`rubus bench cpu`: AES-XTS in the kernel carries more than the disk, and another cipher gains \
        nothing.",
        look: Facts(slow_cipher),
    },
    Rule {
        name: "system-on-platters",
        weight: Weight::Cost,
        when: "the root filesystem is on a disk that turns",
        source: "a disk of 5400 or 7200 turns per minute: 60 to 120 random operations per second, from half a turn and a seek",
        disproof: "`rubus checkup /`: more than 500 random reads per second, and the disk does not turn.",
        look: Facts(spinning_root),
    },
    Rule {
        name: "stick-says-it-spins",
        weight: Weight::Hint,
        when: "a removable USB disk says that it turns",
        source: "Linux documentation, sysfs block queue: rotational",
        disproof: "`rubus checkup` on it: more than 500 random reads per second, and it does not turn; far fewer, \
        and it may.",
        look: Facts(stick_says_it_spins),
    },
    Rule {
        name: "nvme-with-a-scheduler",
        weight: Weight::Hint,
        when: "a scheduler is set for an NVMe disk",
        source: "Linux documentation, block/blk-mq: devices with deep queues of their own need no reordering by the kernel",
        disproof: "`rubus bench` with the scheduler and with none (--against): no difference, and it costs nothing \
        here.",
        look: Facts(nvme_scheduler),
    },
    Rule {
        name: "write-cache-off",
        weight: Weight::Hint,
        when: "the kernel takes an SSD behind USB for one without a write cache",
        source: "Linux documentation, sysfs block queue: write_cache",
        disproof: "`rubus checkup` on it: thousands of commits per second, and its cache is used whatever the kernel \
        believes.",
        look: Facts(write_through),
    },
    Rule {
        name: "array-without-a-spare-copy",
        weight: Weight::Danger,
        when: "an array is as large as all its members together",
        source: "probability: an array of n disks without redundancy loses all when one of n fails",
        disproof: "Restore its backup to another disk: everything is there, and losing the array loses only time.",
        look: Facts(array),
    },
];

/// What the reading of such a disk's facts ends with.
const SILENT: &str = "does not answer";

fn silent(machine: &Machine) -> Vec<Seen> {
    let reason = |device: &BlockDevice| {
        let tried = [device.scheduler.reason(), device.logical_block_bytes.reason()];
        let said = tried.into_iter().flatten().find(|reason| reason.contains(SILENT));
        said.map(str::to_string)
    };
    machine
        .block_devices
        .iter()
        .filter_map(|device| {
            let is_network = device.kind == BlockKind::Nbd;
            Some(Seen {
                about: device.name.clone(),
                evidence: reason(device)?,
                read_from: device.scheduler.source().into(),
                consequence: "Every program that touches it waits without end, and cannot be killed; a shutdown hangs, too. What was not yet written to it may be lost.".into(),
                fix: if is_network {
                    "See whether its server and the cable are there; when they come back, the disk may go on. Else `dmesg` says what the kernel waits for.".into()
                } else {
                    "`dmesg` says what the kernel waits for. A USB disk: plug it in again, at another port, with a supply of its own. Then look at its filesystems.".into()
                },
                command: is_network.then(|| format!("rubus detach /dev/{}", device.name)),
            })
        })
        .collect()
}

fn slow_pcie(machine: &Machine) -> Vec<Seen> {
    let is_pi5 = machine.board.soc.text() == Some("BCM2712");
    disks(machine)
        .filter_map(|disk| {
            let hop = disk.path.iter().find(|hop| {
                matches!(hop.kind, HopKind::Pcie | HopKind::Nvme)
                    && hop.line_bits_per_second.get() < hop.max_line_bits_per_second.get()
                    && hop.line_bits_per_second.get().is_some()
            })?;
            let (now, most) = (hop.line_bits_per_second.get()?, hop.max_line_bits_per_second.get()?);
            Some(Seen {
                about: disk.name.clone(),
                evidence: format!("{} runs at {}, both ends could do {}", hop.name, bit_rate(now as f64), bit_rate(most as f64)),
                read_from: hop.line_bits_per_second.source().into(),
                consequence: format!(
                    "About {} instead of {} in long transfers. Single small reads gain nearly nothing.",
                    rate_si(now as f64 / 8.0 * 0.9),
                    rate_si(most as f64 / 8.0 * 0.9)
                ),
                fix: if is_pi5 {
                    "Keep it, unless you wait for long transfers: the Pi 5 is certified for generation 2, and `rubus advise` does not count on more. Many disks run at 3: this plans a trial that goes back by itself.".into()
                } else {
                    "Another slot or cable; some adapters carry fewer lanes or a lower generation than both ends could.".into()
                },
                command: is_pi5.then(|| "rubus plan pcie-gen".into()),
            })
        })
        .collect()
}

fn slow_cipher(machine: &Machine) -> Vec<Seen> {
    let Some(features) = machine.cpu.crypto_features.value() else {
        return Vec::new();
    };
    if features.iter().any(|feature| feature == "aes" || feature == "vaes") {
        return Vec::new();
    }
    let encrypted = |device: &&BlockDevice| {
        device.content.text().is_some_and(|content| content.contains("LUKS"))
    };
    machine
        .block_devices
        .iter()
        .filter(encrypted)
        .map(|device| Seen {
            about: device.name.clone(),
            evidence: "it is encrypted (LUKS), and the processor has no instructions for AES".into(),
            read_from: machine.cpu.crypto_features.source().into(),
            consequence: "If the cipher is AES-XTS, the usual one, a Cortex-A53 or A72 does 60 to 130 MB/s per core at best: less than a USB 3 disk gives. Adiantum does about twice as much, on older cores five times.".into(),
            fix: "Look with `cryptsetup luksDump`; for a new volume: cryptsetup luksFormat --cipher xchacha12,aes-adiantum-plain64 --key-size 256 --sector-size 4096.".into(),
            command: None,
        })
        .collect()
}

fn spinning_root(machine: &Machine) -> Vec<Seen> {
    let Some(device) = root(machine).and_then(|root| root.device.as_deref()) else {
        return Vec::new();
    };
    machine
        .disks_below(device)
        .into_iter()
        // Sticks and bridges say so and do not.
        .filter(|disk| {
            has_platters(disk) == Some(true)
                && disk.removable.get() == Some(false)
                && !super::is_card(disk)
        })
        .filter(|disk| !disk.path.iter().any(|hop| hop.kind == HopKind::Virtio))
        .map(|disk| Seen {
            about: disk.name.clone(),
            evidence: "the system is on a disk with platters".into(),
            read_from: disk.rotational.source().into(),
            consequence:
                "60 to 120 random operations per second: programs start slowly, updates take long."
                    .into(),
            fix: "An SSD for the system, the platters for what is large.".into(),
            command: None,
        })
        .collect()
}

fn stick_says_it_spins(machine: &Machine) -> Vec<Seen> {
    disks(machine)
        .filter(|disk| {
            disk.rotational.get() == Some(true) && disk.removable.get() == Some(true) && disk.usb_device().is_some()
        })
        .map(|disk| Seen {
            about: disk.name.clone(),
            evidence: "a removable USB disk reports itself as rotational".into(),
            read_from: disk.rotational.source().into(),
            consequence: "USB sticks report this because few of them say otherwise. btrfs and the scheduler then arrange data as for platters.".into(),
            fix: "For btrfs: the mount option ssd; for the rest a udev rule that writes 0 into queue/rotational.".into(),
            command: None,
        })
        .collect()
}

fn nvme_scheduler(machine: &Machine) -> Vec<Seen> {
    disks(machine)
        .filter(|disk| disk.name.starts_with("nvme"))
        .filter_map(|disk| {
            let scheduler = disk.scheduler.text().filter(|scheduler| *scheduler != "none")?;
            Some(Seen {
                about: disk.name.clone(),
                evidence: format!("the scheduler {scheduler} orders the requests of an NVMe disk"),
                read_from: disk.scheduler.source().into(),
                consequence: "Processor time for every request and one lock for all cores, and nothing for it: the disk orders its own queue.".into(),
                fix: format!("echo none into /sys/block/{}/queue/scheduler; a udev rule keeps it.", disk.name),
                command: None,
            })
        })
        .collect()
}

fn write_through(machine: &Machine) -> Vec<Seen> {
    disks(machine)
        .filter(|disk| {
            disk.write_cache.text() == Some("write through")
                && disk.rotational.get() == Some(false)
                && disk.removable.get() == Some(false)
                && disk.usb_device().is_some()
        })
        .map(|disk| Seen {
            about: disk.name.clone(),
            evidence: "the kernel takes the SSD for one without a write cache".into(),
            read_from: disk.write_cache.source().into(),
            consequence: "It then sends no flushes. If the bridge merely hides the SSD's cache, a commit is not durable when it says so.".into(),
            fix: "Trust it with a database only behind a bridge that passes flushes on (write back here).".into(),
            command: None,
        })
        .collect()
}

fn array(machine: &Machine) -> Vec<Seen> {
    let arrays = machine.block_devices.iter().filter(|device| device.kind == BlockKind::Md);
    arrays
        .filter_map(|array| {
            let one = array.size_bytes.get()?;
            let members: Vec<u64> = array
                .below
                .iter()
                .filter_map(|name| machine.device(name)?.size_bytes.get())
                .collect();
            let all = members.iter().copied().fold(0, u64::saturating_add);
            // An array with redundancy is smaller than its members together by at least one of them.
            let smallest = members.iter().min().copied()?;
            (members.len() > 1 && one > all - smallest / 2).then(|| Seen {
                about: array.name.clone(),
                evidence: format!("{} members, and their whole size is used", members.len()),
                read_from: array.size_bytes.source().into(),
                consequence: format!("When one of them fails all data are gone: {} times as likely as with one disk.", members.len()),
                fix: "Only for what exists elsewhere, too; make a backup that is tried.".into(),
                command: None,
            })
        })
        .collect()
}

/// The rate that the way to the disk of a mount carries, for what is slow because of its link.
pub(super) fn link_of(machine: &Machine, device: &str) -> Option<(String, f64)> {
    let below = machine.disks_below(device);
    let narrowest = below.iter().filter_map(|disk| narrowest_hop(disk));
    narrowest.map(|(hop, carries)| (hop.link.clone(), carries)).min_by(|a, b| a.1.total_cmp(&b.1))
}
