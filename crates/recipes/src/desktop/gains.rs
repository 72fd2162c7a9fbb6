//! What the change gives, takes, risks and promises.

use std::cmp::Ordering;
use std::path::Path;

use super::super::moving::current::bus_bytes_per_second;
use super::super::moving::steps::kept_ending;
use super::super::moving::time;
use super::super::{PlanBuilder, PlanInput};
use super::compression::{Chosen, Link};
use super::current::{self, Start};
use super::filesystem::ROOT_SUBVOLUME;
use super::layout::NewDisk;
use super::memory::SWAP_PRIORITY;
use super::scene::Scene;
use rubus_change::plan::promise::{Look, Promise};
use rubus_change::plan::volume::partition_path;
use rubus_change::plan::{Effort, Gain, RESCUE};
use rubus_machine::in_use::is_on;
use rubus_vocabulary::machine::{BlockDevice, Machine};
use rubus_vocabulary::units::{bytes_iec, rate_si};

/// Filesystems that a mount needs no options for.
const MOUNTABLE: [&str; 6] = ["btrfs", "exfat", "ext4", "f2fs", "vfat", "xfs"];
/// Mounts of the running system alone.
const RUNTIME: [&str; 4] = ["/run", "/media", "/proc", "/sys"];
/// Assumed where neither a measurement nor a bus says anything: a disk at USB 2.
const ASSUMED_BYTES_PER_SECOND: f64 = 30e6;
/// What may be written to a disk that is only there to start from, per second: nothing but a rare timestamp.
const QUIET_BYTES_PER_SECOND: u64 = 1024;

/// What the link to the new disk carries.
pub(super) fn link(situation: &PlanInput<'_>, disk: Option<&BlockDevice>) -> Link {
    let Some(disk) = disk else {
        return assumed();
    };
    let measured = situation.facts.speeds.get(&disk.name);
    let bus = bus_bytes_per_second(disk);
    if let Some(speed) = measured {
        let known = [speed.read_bytes_per_second, speed.write_bytes_per_second];
        if let [Some(read), Some(write)] = known {
            return Link { read, write, source: speed.source.clone() };
        }
    }
    match bus {
        Some((rate, source)) => Link { read: rate, write: rate, source },
        None => assumed(),
    }
}

fn assumed() -> Link {
    Link {
        read: ASSUMED_BYTES_PER_SECOND,
        write: ASSUMED_BYTES_PER_SECOND,
        source: "assumed: nothing was measured and the bus is not known".into(),
    }
}

/// Before and after, by what was measured here. Figures of other machines' disks say nothing about this one.
pub(super) fn gains(
    situation: &PlanInput<'_>,
    old: Option<&BlockDevice>,
    new: &BlockDevice,
    chosen: &Chosen,
    link: &Link,
    draft: &mut PlanBuilder,
) {
    let speeds = &situation.facts.speeds;
    let measured = |disk: &BlockDevice| speeds.get(&disk.name);
    draft.gains_unknown = unmeasured(situation.machine, old, new, |disk| measured(disk).is_some());
    let Some(then) = measured(new) else {
        return;
    };
    let rate = |iops: Option<f64>| iops.map(|iops| iops * 4096.0);
    let (random_write, random_read, source) = match old.and_then(measured) {
        Some(now) => (
            rate(now.random_write_iops).zip(rate(then.random_write_iops)),
            rate(now.random_read_iops).zip(rate(then.random_read_iops)),
            format!("both disks: {}; {}", now.source, then.source),
        ),
        None => (None, None, String::new()),
    };
    for (what, pair) in [("random 4 KiB writes", random_write), ("random 4 KiB reads", random_read)]
    {
        let Some((now, then)) = pair.filter(|(now, then)| *now > 0.0 && then > now) else {
            continue;
        };
        draft.gains.push(Gain {
            what: what.into(),
            now: rate_si(now),
            then: rate_si(then),
            ratio: then / now,
            source: source.clone(),
        });
    }
    if let Some(forecast) = &chosen.forecast {
        let by = "the compression that was measured on this processor and the link to the disk";
        for (what, plain, with) in [
            ("reads of files, by compression", link.read, forecast.read),
            ("writes of files, by compression", link.write, forecast.write),
        ] {
            if with > plain {
                draft.gains.push(Gain {
                    what: what.into(),
                    now: rate_si(plain),
                    then: rate_si(with),
                    ratio: with / plain,
                    source: by.into(),
                });
            }
        }
    }
}

/// Which of the two disks was not measured, and how to measure it; nothing where both were.
fn unmeasured(
    machine: &Machine,
    old: Option<&BlockDevice>,
    new: &BlockDevice,
    is_measured: impl Fn(&BlockDevice) -> bool,
) -> Option<String> {
    let mut sentences = Vec::new();
    if !is_measured(new) {
        let is_on_new = |device: &&BlockDevice| {
            device.name == new.name || device.parent.as_deref() == Some(&new.name)
        };
        let mut on_new = machine.block_devices.iter().filter(is_on_new);
        let holds = on_new.find(|device| {
            let content = device.content.text();
            content.is_some_and(|content| MOUNTABLE.contains(&content))
        });
        sentences.push(match holds {
            Some(holds) => format!(
                "{} was not measured. Measure it first: `sudo mount /dev/{} /mnt`, `rubus checkup /mnt`, `sudo umount /mnt`.",
                new.name, holds.name
            ),
            None => format!(
                "{} was not measured. Measure it first: mount a filesystem of it, then `rubus checkup DIR` there.",
                new.name
            ),
        });
    }
    if let Some(old) = old.filter(|old| !is_measured(old)) {
        sentences.push(format!(
            "{}, where the system is now, was not measured. Measure it first: `rubus checkup /`.",
            old.name
        ));
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// What it takes.
pub(super) fn effort(
    situation: &PlanInput<'_>,
    old: Option<&BlockDevice>,
    chosen: &Chosen,
    link: &Link,
    kernels: usize,
) -> Effort {
    let expected = chosen.forecast.as_ref().map_or(link.write, |one| one.write);
    time::effort(situation, &time::Move { old, write: expected, share: chosen.share(), kernels })
}

/// Share of the original size up to which a root counts as compressed. What it will be depends on the files, of which only
/// a sample was seen, and films and pictures hardly shrink: that anything is compressed at all is what tells.
const MAX_COMPRESSED: f64 = 1.0;

/// What holds after the next boot.
pub(super) fn promises(
    machine: &Machine,
    new: &NewDisk,
    old_disks: &[&BlockDevice],
    chosen: &Chosen,
    zswap: &[(String, String)],
    sysctls: &[(&'static str, String, String)],
    draft: &mut PlanBuilder,
) {
    let mut promise = |what: String, look: Look| {
        draft.promises.push(Promise { what, look, needs_boot: true });
    };
    let mut options = vec!["noatime".to_string()];
    if new.filesystem.is_btrfs() {
        options.insert(0, format!("subvol=/{ROOT_SUBVOLUME}"));
    }
    options.extend(chosen.method.iter().map(|method| format!("compress={method}")));
    promise(
        format!(
            "the root is {} on {}",
            new.filesystem.name(),
            partition_path(&new.disk.path, new.layout.root.number)
        ),
        Look::Mounted {
            at: "/".into(),
            kind: new.filesystem.kind(),
            uuid: new.root.uuid.clone(),
            options,
        },
    );
    if chosen.method.is_some() {
        promise(
            "what is on the root is compressed".into(),
            Look::Compressed { at: "/".into(), at_most: MAX_COMPRESSED },
        );
    }
    for (name, value) in zswap {
        promise(
            format!("zswap: {name} is {value}"),
            Look::Knob {
                path: format!("{}/{name}", super::super::zswap::PARAMETERS).into(),
                value: value.clone(),
            },
        );
    }
    for (name, value, _) in sysctls {
        promise(
            format!("vm.{name} is {value}"),
            Look::Knob { path: format!("/proc/sys/vm/{name}").into(), value: value.clone() },
        );
    }
    let area = new.swap.as_ref().map(|swap| swap.uuid.clone());
    if let Some(what) = area.or(new.swap_file()) {
        promise(
            "the new swap is in use".into(),
            Look::SwapOn { what, priority: Some(SWAP_PRIORITY) },
        );
    }
    for disk in old_disks {
        let of_disk = |device: &&BlockDevice| device.parent.as_deref() == Some(&disk.name);
        let mut partitions = machine.block_devices.iter().filter(of_disk);
        let partuuid = partitions.find_map(|partition| partition.identity.partuuid.clone());
        promise(
            format!("no swap is on {}", disk.name),
            Look::NoSwapOnDisk { disk: disk.name.clone(), partuuid: partuuid.clone() },
        );
        // What else is mounted from it may well be written to.
        let mut others = machine.mounts.iter().filter(|mount| {
            let device = mount.device.as_deref();
            mount.point != "/" && device.is_some_and(|device| is_on(machine, device, &disk.name))
        });
        let boot = current::boot(machine).map(|boot| boot.device.as_deref());
        if others.any(|mount| Some(mount.device.as_deref()) != boot) {
            continue;
        }
        promise(
            format!("no writes to {} while the system is idle", disk.name),
            Look::QuietDisk {
                disk: disk.name.clone(),
                partuuid,
                at_most_bytes_per_second: QUIET_BYTES_PER_SECOND,
            },
        );
    }
}

/// What can go wrong, worst first.
pub(super) fn risks(situation: &PlanInput<'_>, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let disk = scene.new.disk.path.display();
    let old: Vec<&str> = scene.old_disks.iter().map(|disk| disk.name.as_str()).collect();
    draft.risks.push(format!(
        "Everything that is on {disk} now is lost, and undoing does not bring it back."
    ));
    let new = situation.machine.device(current::disk_name(&scene.new.disk.path));
    if new.is_some_and(|new| new.removable.get() == Some(true) && new.usb_device().is_some()) {
        draft.risks.push(format!(
            "{disk} is a USB stick: most are slower at a system's work than the card they would replace. `rubus advise` says              what is known; measure it first."
        ));
    }
    draft.risks.push(format!(
        "The board needs two devices from then on: {} to start and {disk} to run. {}",
        old.join(" and "),
        match &scene.fallback {
            Some(fallback) => format!(
                "If the first fails, it does not come up. If {disk} does not answer within {} s, the old system starts from {}, \
                 as it was when it was copied: `rubus status` says so, and what is changed then is not on {disk}.",
                fallback.wait_s, fallback.old
            ),
            None => "If either fails, it does not come up.".into(),
        }
    ));
    draft.risks.push(
        "Going back leads to the system as it was when it was copied: what is changed afterwards is only on the new disk. \
         A kernel that is installed there replaces the one that both start with, and the old system then lacks its modules."
            .into(),
    );
    if let Some(root) = scene.start.counted_root(situation.machine) {
        draft.risks.push(format!(
            "The current command line names the old root as {root}, which the kernel may give to {disk} when both are plugged \
             in: before you go back, name it by its PARTUUID, or unplug {disk}."
        ));
    }
    draft.risks.push(
        "Programs that write all the time (databases, containers) are copied while they run; stop them before, or their \
         copies may be torn."
            .into(),
    );
    if situation.machine.power.has_sagged() {
        draft.risks.push(
            "The supply voltage was too low since the last boot, and a USB disk needs more: use a stronger power supply first."
                .into(),
        );
    }
}

/// What stays on the disks of before: they go on being mounted from there.
pub(super) fn stays(
    situation: &PlanInput<'_>,
    old_disks: &[&BlockDevice],
    draft: &mut PlanBuilder,
) {
    let machine = situation.machine;
    let boot = current::boot(machine).map(|boot| boot.point.as_str());
    for disk in old_disks {
        let on_it = machine.mounts.iter().filter(|mount| {
            let device = mount.device.as_deref();
            mount.point != "/"
                && Some(mount.point.as_str()) != boot
                && !RUNTIME.iter().any(|place| Path::new(&mount.point).starts_with(place))
                && device.is_some_and(|device| is_on(machine, device, &disk.name))
        });
        let mut points: Vec<&str> = on_it.map(|mount| mount.point.as_str()).collect();
        points.sort_unstable();
        points.dedup();
        if !points.is_empty() {
            draft.notes.push(format!(
                "{} {} on {}: only the root is copied, and the new system mounts {} from there. Programs that write there go \
                 on writing to it. To move it too, copy its files to the new root afterwards and take its line out of \
                 /etc/fstab.",
                points.join(", "),
                if points.len() == 1 { "stays" } else { "stay" },
                disk.name,
                if points.len() == 1 { "it" } else { "them" },
            ));
        }
    }
}

/// Swap in memory that stays before the new one, made by a program that is not known here.
pub(super) fn foreign_zram(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let swap = &situation.machine.swap;
    let is_known = |name: &str| matches!(name, "zram-generator" | "zram-tools" | "rpi-swap");
    if swap.managers.iter().any(|manager| is_known(&manager.name)) {
        return;
    }
    for area in swap.areas.iter().filter(|area| area.path.starts_with("/dev/zram")) {
        let order = match area.priority.cmp(&SWAP_PRIORITY) {
            Ordering::Greater => "it is used before the new swap",
            Ordering::Equal => "it and the new swap are used in turns",
            Ordering::Less => "it is used after the new swap",
        };
        draft.notes.push(format!(
            "{} (priority {}) is swap in memory that a program makes which is not known here, and which goes on making it: {order} \
             (priority {SWAP_PRIORITY}). With zswap before the new swap it compresses what is compressed already: switch that \
             program off, or take swap=none.",
            area.path, area.priority
        ));
    }
}

/// What the user should know.
pub(super) fn notes(
    situation: &PlanInput<'_>,
    new: &NewDisk,
    chosen: &Chosen,
    start: &Start<'_>,
    draft: &mut PlanBuilder,
) {
    draft.notes.push(format!("Compression: {}", chosen.why));
    draft.notes.extend(chosen.table.iter().cloned());
    let mib = |bytes: u64| bytes_iec(bytes);
    let mut parts = vec![format!("root {}", mib(new.layout.root.size_bytes))];
    parts.extend(new.layout.swap.iter().map(|swap| format!("swap {}", mib(swap.size_bytes))));
    parts.extend(new.swap_file_bytes.map(|bytes| format!("of it a swap file of {}", mib(bytes))));
    draft.notes.push(format!("{}: {}.", new.disk.path.display(), parts.join(", ")));
    let page_bytes = situation.machine.system.page_bytes.get();
    if new.filesystem.is_btrfs() && page_bytes.is_some_and(|bytes| bytes > 4096) {
        draft.notes.push(
            "This kernel has pages of 16 KiB. The filesystem is made with sectors of 4 KiB, so that any Linux PC can mount \
             it; kernels before 7 then compress only what fills whole pages."
                .into(),
        );
    }
    if draft.trial.is_none() {
        draft.notes.push(
            "It takes effect at the next boot. Until then only the boot partition and /etc/initramfs-tools have changed on the running system. `rubus verify` then checks that everything is as promised."
                .into(),
        );
    }
    draft.notes.push(
        "Restart soon after applying, and install and edit nothing before: it would be missing on the new root. Afterwards install and edit as always; the initial RAM filesystem of each new kernel is made with what the new root needs."
            .into(),
    );
    draft.notes.push(format!(
        "{RESCUE} {}, delete cmdline.txt on its FAT partition ({} here) and \
         rename cmdline.txt.{} to cmdline.txt. The old system then starts as before.",
        current::way_to_boot_files(situation.machine),
        start.point.display(),
        kept_ending(start)
    ));
}

/// What it takes to start without the card, board by board.
pub(super) fn direct_boot(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let board = situation.machine.board.revision.value().map(|known| known.board_type.as_str());
    let text = match board {
        Some("2B" | "3B" | "3A+" | "CM3" | "CM3+") => {
            "This board starts from USB only after program_usb_boot_mode=1 was in config.txt once, which cannot be taken \
             back (`vcgencmd otp_dump` then says 17:3020000a). The card is the safer way."
        }
        Some("3B+" | "Zero 2 W") => {
            "This board starts from USB as it is sold, where there is no card in it."
        }
        Some("4B" | "400" | "CM4" | "CM4S") => {
            "This board starts from USB with a bootloader of 2020-09 or later; `rpi-eeprom-update` shows it, \
             and BOOT_ORDER=0xf41 (`rpi-eeprom-config`) tries the card first and then USB."
        }
        Some("5" | "500" | "CM5" | "CM5 Lite") => {
            "This board starts from USB and NVMe; BOOT_ORDER=0xf416 (`rpi-eeprom-config`) tries NVMe first. On a supply \
             with 3 A it needs usb_max_current_enable=1 in config.txt for USB."
        }
        _ => "Nothing is known about how this board starts from another disk.",
    };
    draft.notes.push(format!("Without the card: {text} Rubus changes neither EEPROM nor OTP."));
}
