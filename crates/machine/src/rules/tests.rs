//! Each rule on a machine that it speaks of and on one that it has nothing to say about.

use std::collections::BTreeSet;

use super::*;
use rubus_boot::fstab::Entry;
use rubus_fixtures::{pi3_with_usb_ssd, unreadable_machine};
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::kernel_log::{KernelTrouble, TroubleKind};
use rubus_vocabulary::machine::{
    Bootloader, HopKind, Mount, SdStatus, Setting, SwapArea, SwapManager, Throttling,
};

pub(in crate::rules) mod commands;
mod machines;

fn is<T>(value: T) -> Fact<T> {
    Fact::known(value, "a test")
}

fn text(value: &str) -> Fact<String> {
    is(value.to_string())
}

fn set(settings: &mut Vec<Setting>, name: &str, value: &str) {
    settings.retain(|setting| setting.name != name);
    settings.push(Setting { name: name.into(), value: text(value) });
}

fn device<'a>(machine: &'a mut Machine, name: &str) -> &'a mut BlockDevice {
    let found = machine.block_devices.iter_mut().find(|device| device.name == name);
    found.expect("a device of the example")
}

fn usb(machine: &mut Machine) -> &mut Hop {
    let hops = &mut device(machine, "sda").path;
    let found = hops.iter_mut().find(|hop| hop.kind == HopKind::UsbDevice);
    found.expect("the bridge")
}

/// The bridge at a rate, with a driver and a chip.
fn bridge(machine: &mut Machine, bits: u64, driver: &str, chip: &str) {
    let hop = usb(machine);
    hop.line_bits_per_second = is(bits);
    hop.max_line_bits_per_second = is(5_000_000_000);
    hop.driver = text(driver);
    hop.chip = Some(chip.into());
}

fn mount<'a>(machine: &'a mut Machine, point: &str) -> &'a mut Mount {
    let found = machine.mounts.iter_mut().find(|mount| mount.point == point);
    found.expect("a mount of the example")
}

fn throttled(machine: &mut Machine, word: u32) {
    machine.power.throttling = is(Throttling::decode(word));
}

/// The firmware says that it started from the first partition of the card.
fn started_from_the_card(machine: &mut Machine) {
    let told = Bootloader { boot_mode: Some(1), partition: Some(1), ..Bootloader::default() };
    machine.board.bootloader = is(told);
}

fn swap_on(machine: &mut Machine, path: &str, device: &str, priority: i32) {
    machine.swap.areas.push(SwapArea {
        path: path.into(),
        kind: "file".into(),
        size_bytes: 1 << 29,
        used_bytes: 0,
        priority,
        device: text(device),
    });
}

fn option(machine: &mut Machine, point: &str, options: &[&str]) {
    mount(machine, point).options = options.iter().map(|option| option.to_string()).collect();
}

/// An array of two disks on the one bus.
fn array(machine: &mut Machine, bytes: u64) {
    let mut second = device(machine, "sda").clone();
    second.name = "sdb".into();
    let mut md = second.clone();
    machine.block_devices.push(second);
    machine.shared_buses[0].members.push("sdb".into());
    md.name = "md0".into();
    md.kind = BlockKind::Md;
    md.below = vec!["sda".into(), "sdb".into()];
    md.path = Vec::new();
    md.size_bytes = is(bytes);
    machine.block_devices.push(md);
}

fn command_line(machine: &mut Machine, more: &str) {
    let line = machine.system.command_line.text().unwrap_or_default();
    machine.system.command_line = text(&format!("{line} {more}"));
}

fn network_root(machine: &mut Machine) {
    let mut nbd = device(machine, "sda").clone();
    nbd.name = "nbd0".into();
    nbd.kind = BlockKind::Nbd;
    nbd.path = Vec::new();
    machine.block_devices.push(nbd);
    let root = mount(machine, "/");
    root.device = Some("nbd0".into());
    root.source = "/dev/nbd0".into();
}

/// A share of a file server at /mnt/nas.
fn share(machine: &mut Machine, filesystem: &str, options: &[&str]) {
    let mut share = mount(machine, "/").clone();
    share.point = "/mnt/nas".into();
    share.source = "nas:/media".into();
    share.device = None;
    share.filesystem = filesystem.into();
    share.options = options.iter().map(|option| option.to_string()).collect();
    machine.mounts.push(share);
}

/// One line more in fstab.
fn fstab(machine: &mut Machine, source: &str, target: &str, options: &str) {
    let mut lines = machine.fstab.value().cloned().unwrap_or_default();
    lines.push(Entry::new(source, target, "ext4", options));
    machine.fstab = is(lines);
}

/// A log with some trouble, where the firmware saw no low voltage.
fn log(machine: &mut Machine, troubles: &[(TroubleKind, &str)]) {
    machine.power.throttling = is(Throttling::decode(0));
    machine.power.undervoltage_alarm = is(false);
    let each = troubles.iter().map(|(kind, part)| KernelTrouble {
        kind: *kind,
        part: part.to_string(),
        times: 3,
        first_s: Some(100.0),
        last_s: Some(200.0),
    });
    machine.kernel_log = is(each.collect());
}

type Change = fn(&mut Machine);
const AS_IT_IS: Change = |_| {};

/// A rule, what makes the example one that it speaks of, and what makes it one that it does not.
const CASES: &[(&str, Change, Change)] = &[
    (
        "disk-fails",
        |m| log(m, &[(TroubleKind::Medium, "sda")]),
        |m| log(m, &[(TroubleKind::UsbConnect, "sda")]),
    ),
    (
        "disk-goes-silent",
        |m| log(m, &[(TroubleKind::AtaTimeout, "sda")]),
        |m| log(m, &[(TroubleKind::AtaTimeout, "sda"), (TroubleKind::Medium, "sda")]),
    ),
    (
        "card-queue-stalls",
        |m| log(m, &[(TroubleKind::CardQueue, "mmc0"), (TroubleKind::Io, "mmcblk0")]),
        |m| log(m, &[(TroubleKind::CardQueue, "mmc0")]),
    ),
    (
        "supply-disturbs-disks",
        |m| log(m, &[(TroubleKind::Undervoltage, ""), (TroubleKind::UasAbort, "sda")]),
        |m| log(m, &[(TroubleKind::UasAbort, "sda")]),
    ),
    (
        "uas-gives-up",
        |m| log(m, &[(TroubleKind::UasAbort, "sda")]),
        |m| log(m, &[(TroubleKind::UsbDisk, "sda")]),
    ),
    (
        "connection-fails",
        |m| log(m, &[(TroubleKind::UsbEnumeration, "sda")]),
        |m| log(m, &[(TroubleKind::UsbEnumeration, "1-1.9")]),
    ),
    (
        "usb-controller-stops",
        |m| {
            let controller = (TroubleKind::UsbController, "");
            log(m, &[controller, (TroubleKind::UsbDisconnect, "sda"), (TroubleKind::Io, "sda1")]);
        },
        |m| log(m, &[(TroubleKind::UsbController, ""), (TroubleKind::UsbDisconnect, "sda")]),
    ),
    (
        "disk-went-away",
        |m| log(m, &[(TroubleKind::UsbDisconnect, "sda"), (TroubleKind::Io, "sda1")]),
        |m| log(m, &[(TroubleKind::UsbDisconnect, "sda")]),
    ),
    (
        "filesystem-has-errors",
        |m| log(m, &[(TroubleKind::Filesystem, "mmcblk0p2")]),
        |m| log(m, &[(TroubleKind::Filesystem, "mmcblk0p2"), (TroubleKind::Io, "mmcblk0p2")]),
    ),
    ("undervoltage-now", |m| throttled(m, 0x1), AS_IT_IS),
    ("undervoltage-seen", AS_IT_IS, |m| throttled(m, 0)),
    ("throttled-now", |m| throttled(m, 0x4), AS_IT_IS),
    ("throttled-seen", |m| throttled(m, 0x4_0000), AS_IT_IS),
    ("hot", |m| m.power.temperatures[0].millicelsius = is(82_000), AS_IT_IS),
    ("slow-governor", |m| m.cpu.clocks[0].governor = text("powersave"), AS_IT_IS),
    ("usb3-disk-at-usb2", AS_IT_IS, |m| {
        bridge(m, 5_000_000_000, "uas", "152d:0583");
    }),
    ("usb-full-speed", |m| bridge(m, 12_000_000, "usb-storage", "0781:5567"), AS_IT_IS),
    (
        "usb-storage-for-uas",
        |m| bridge(m, 5_000_000_000, "usb-storage", "174c:55aa"),
        |m| {
            bridge(m, 5_000_000_000, "uas", "174c:55aa");
        },
    ),
    (
        "uas-trouble",
        |m| bridge(m, 5_000_000_000, "uas", "174c:5106"),
        |m| {
            bridge(m, 5_000_000_000, "uas", "152d:0578");
        },
    ),
    (
        "uas-quirk",
        |m| bridge(m, 5_000_000_000, "uas", "152d:0578"),
        |m| {
            bridge(m, 5_000_000_000, "uas", "152d:0583");
        },
    ),
    ("no-trim-over-usb", AS_IT_IS, |m| device(m, "sda").discard_max_bytes = is(1 << 30)),
    ("network-and-disk-share-usb", AS_IT_IS, |m| m.shared_buses.clear()),
    (
        "array-on-one-bus",
        |m| array(m, 1 << 36),
        |m| {
            array(m, 1 << 36);
            m.shared_buses[0].members.pop();
        },
    ),
    ("disks-share-usb2", |m| array(m, 1 << 36), AS_IT_IS),
    (
        "other-boot-partition-mounted",
        |m| {
            started_from_the_card(m);
            mount(m, "/boot/firmware").device = Some("sda1".into());
        },
        started_from_the_card,
    ),
    (
        "boot-partition-not-mounted",
        |m| {
            started_from_the_card(m);
            m.mounts.retain(|mount| mount.point != "/boot/firmware");
        },
        started_from_the_card,
    ),
    (
        "disks-with-one-identifier",
        |m| {
            for name in ["mmcblk0p2", "sda1"] {
                device(m, name).identity.partuuid = Some("1f3c5a77-02".into());
            }
        },
        AS_IT_IS,
    ),
    ("card-bus-slower-than-card", AS_IT_IS, |m| {
        device(m, "mmcblk0").mmc.as_mut().unwrap().timing = text("UHS-I SDR104");
    }),
    (
        "a2-card-without-queueing",
        |m| {
            let mmc = device(m, "mmcblk0").mmc.as_mut().unwrap();
            mmc.promises =
                mmc.promises.clone().map(|promises| SdStatus { application_class: 2, ..promises });
            mmc.command_queueing = is(false);
        },
        AS_IT_IS,
    ),
    ("card-one-data-line", |m| device(m, "mmcblk0").mmc.as_mut().unwrap().width = is(1), AS_IT_IS),
    (
        "card-without-application-class",
        |m| {
            let mmc = device(m, "mmcblk0").mmc.as_mut().unwrap();
            mmc.promises =
                mmc.promises.clone().map(|promises| SdStatus { application_class: 0, ..promises });
        },
        AS_IT_IS,
    ),
    ("card-write-protected", |m| device(m, "mmcblk0").read_only = is(true), AS_IT_IS),
    (
        "card-of-no-maker",
        |m| device(m, "mmcblk0").mmc.as_mut().unwrap().manufacturer_id = is(0),
        AS_IT_IS,
    ),
    (
        "system-on-card-beside-a-disk",
        |m| m.mounts.retain(|mount| mount.point != "/srv/data"),
        AS_IT_IS,
    ),
    (
        "disk-does-not-answer",
        |m| {
            let why = "sda does not answer: nothing came within 4 s";
            device(m, "sda").scheduler = Fact::unknown(why, "/sys/block/sda/queue/scheduler");
        },
        AS_IT_IS,
    ),
    (
        "pcie-below-its-best",
        |m| {
            let hop = usb(m);
            hop.kind = HopKind::Nvme;
            hop.line_bits_per_second = is(4_000_000_000);
            hop.max_line_bits_per_second = is(7_876_923_008);
        },
        AS_IT_IS,
    ),
    (
        "cipher-without-instructions",
        |m| device(m, "sda1").content = text("crypto_LUKS"),
        |m| {
            device(m, "sda1").content = text("crypto_LUKS");
            m.cpu.crypto_features = is(vec!["aes".into()]);
        },
    ),
    (
        "system-on-platters",
        |m| {
            device(m, "sda").rotational = is(true);
            device(m, "sda").model = text("WDC WD10SPZX");
            mount(m, "/").device = Some("sda1".into());
        },
        // Bridges say so of SSDs.
        |m| {
            device(m, "sda").rotational = is(true);
            device(m, "sda").model = text("USB3.0 Device");
            mount(m, "/").device = Some("sda1".into());
        },
    ),
    (
        "stick-says-it-spins",
        |m| {
            device(m, "sda").rotational = is(true);
            device(m, "sda").removable = is(true);
        },
        AS_IT_IS,
    ),
    ("nvme-with-a-scheduler", |m| device(m, "sda").name = "nvme0n1".into(), AS_IT_IS),
    ("write-cache-off", |m| device(m, "sda").write_cache = text("write through"), AS_IT_IS),
    ("array-without-a-spare-copy", |m| array(m, 64_000_000_000), |m| array(m, 32_000_000_000)),
    ("swap-on-card", |m| swap_on(m, "/var/swap", "mmcblk0p2", -2), AS_IT_IS),
    (
        "swap-over-network",
        |m| {
            network_root(m);
            swap_on(m, "/dev/nbd0", "nbd0", -2);
        },
        AS_IT_IS,
    ),
    ("no-swap", |m| m.swap.areas.clear(), AS_IT_IS),
    ("zswap-off", |m| swap_on(m, "/dev/sda2", "sda", -2), AS_IT_IS),
    ("zswap-before-zram", |m| m.swap.zswap.enabled = is(true), AS_IT_IS),
    ("zswap-allocator-gone", |m| set(&mut m.swap.zswap.parameters, "zpool", "z3fold"), AS_IT_IS),
    (
        "zswap-keeps-cold-pages",
        |m| {
            m.swap.zswap.enabled = is(true);
            set(&mut m.swap.zswap.parameters, "shrinker_enabled", "N");
        },
        AS_IT_IS,
    ),
    ("swap-read-ahead", |m| set(&mut m.vm, "page-cluster", "3"), AS_IT_IS),
    ("swappiness-for-disks", |m| set(&mut m.vm, "swappiness", "60"), AS_IT_IS),
    (
        "two-managers-of-swap",
        |m| {
            m.swap
                .managers
                .push(SwapManager { name: "dphys-swapfile".into(), settings: is(Vec::new()) })
        },
        AS_IT_IS,
    ),
    (
        "slow-swap-first",
        |m| swap_on(m, "/var/swap", "mmcblk0p2", 100),
        |m| swap_on(m, "/var/swap", "mmcblk0p2", -2),
    ),
    ("filesystem-nearly-full", |m| mount(m, "/").available_bytes = is(1_000_000_000), AS_IT_IS),
    (
        "boot-partition-nearly-full",
        |m| mount(m, "/boot/firmware").available_bytes = is(20_000_000),
        AS_IT_IS,
    ),
    (
        "root-went-read-only",
        |m| option(m, "/", &["ro", "errors=remount-ro"]),
        |m| {
            option(m, "/", &["ro", "errors=remount-ro"]);
            command_line(m, "ro");
        },
    ),
    (
        "disk-gone",
        |m| {
            m.block_devices.retain(|device| !device.name.starts_with("sda"));
            mount(m, "/srv/data").device = None;
        },
        // A place in memory has no device either.
        |m| {
            mount(m, "/srv/data").device = None;
            mount(m, "/srv/data").filesystem = "tmpfs".into();
            mount(m, "/srv/data").source = "tmpfs".into();
        },
    ),
    (
        "btrfs-without-compression",
        |m| {
            let root = mount(m, "/");
            root.filesystem = "btrfs".into();
            root.compression = None;
        },
        |m| {
            let root = mount(m, "/");
            root.filesystem = "btrfs".into();
            root.compression = Some("zstd:3".into());
        },
    ),
    (
        "btrfs-old-compression",
        |m| {
            let root = mount(m, "/");
            root.filesystem = "btrfs".into();
            root.compression = Some("zlib".into());
        },
        AS_IT_IS,
    ),
    ("access-times-written", |m| option(m, "/", &["rw"]), |m| option(m, "/", &["rw", "relatime"])),
    ("access-times-on-card", |m| option(m, "/", &["rw", "relatime"]), AS_IT_IS),
    ("barriers-off", |m| option(m, "/", &["rw", "noatime", "nobarrier"]), AS_IT_IS),
    ("synchronous-mount", |m| option(m, "/", &["rw", "noatime", "sync"]), AS_IT_IS),
    (
        "trim-at-each-delete",
        |m| option(m, "/", &["rw", "noatime", "discard"]),
        |m| {
            option(m, "/", &["rw", "noatime", "discard=async"]);
        },
    ),
    ("ntfs-through-fuse", |m| mount(m, "/").filesystem = "fuseblk".into(), AS_IT_IS),
    (
        "network-disk-without-netdev",
        |m| fstab(m, "/dev/nbd1", "/mnt/network", "noatime,nofail"),
        |m| fstab(m, "/dev/nbd1", "/mnt/network", "noatime,nofail,_netdev"),
    ),
    (
        "link-below-gigabit",
        |m| {
            m.links[0].driver = text("bcmgenet");
            m.links[0].bits_per_second = is(100_000_000);
        },
        AS_IT_IS,
    ),
    ("half-duplex", |m| m.links[0].duplex = text("half"), AS_IT_IS),
    ("gigabit-behind-usb2", |m| m.links[0].bits_per_second = is(1_000_000_000), AS_IT_IS),
    (
        "disk-over-wifi",
        |m| {
            network_root(m);
            m.links.truncate(1);
            m.links[0].kind = "wifi".into();
        },
        network_root,
    ),
    ("root-over-100-mbit", network_root, AS_IT_IS),
    (
        "nas-old-protocol",
        |m| share(m, "cifs", &["rw", "vers=1.0"]),
        |m| share(m, "cifs", &["rw", "vers=3.1.1"]),
    ),
    (
        "nas-small-requests",
        |m| share(m, "nfs", &["rw", "vers=3", "rsize=4096", "wsize=1048576"]),
        |m| share(m, "nfs", &["rw", "vers=3", "rsize=65536", "wsize=65536"]),
    ),
    ("nas-uncached", |m| share(m, "nfs4", &["rw", "noac"]), |m| share(m, "nfs4", &["rw", "ac"])),
    ("nas-sync", |m| share(m, "nfs4", &["rw", "sync"]), |m| share(m, "nfs4", &["rw", "async"])),
    (
        "nas-soft-writes",
        |m| share(m, "nfs4", &["rw", "soft"]),
        |m| share(m, "cifs", &["rw", "soft"]),
    ),
    (
        "nas-goes-silent",
        |m| log(m, &[(TroubleKind::ServerSilent, "")]),
        |m| {
            log(m, &[(TroubleKind::ServerSilent, "")]);
            let mut troubles = m.kernel_log.value().cloned().unwrap_or_default();
            troubles[0].times = 1;
            m.kernel_log = is(troubles);
        },
    ),
    ("much-unwritten", |m| m.memory.available_bytes = is(8 << 30), AS_IT_IS),
    ("no-zswap-in-kernel", |m| set(&mut m.kernel_config, "ZSWAP", "not set"), AS_IT_IS),
    ("no-btrfs-in-kernel", |m| set(&mut m.kernel_config, "BTRFS_FS", "not set"), AS_IT_IS),
    (
        "no-pressure-figures",
        |m| {
            set(&mut m.kernel_config, "PSI", "y");
            set(&mut m.kernel_config, "PSI_DEFAULT_DISABLED", "y");
        },
        |m| {
            set(&mut m.kernel_config, "PSI", "y");
            set(&mut m.kernel_config, "PSI_DEFAULT_DISABLED", "y");
            command_line(m, "psi=1");
        },
    ),
    (
        "memory-groups-off",
        |m| command_line(m, "cgroup_disable=memory"),
        |m| {
            command_line(m, "cgroup_disable=memory cgroup_enable=memory");
        },
    ),
    ("32-bit-programs-on-64-bit", |m| m.system.user_space_bits = is(32), AS_IT_IS),
    (
        "old-kernel",
        |m| m.system.kernel_release = text("5.4.83-v7+"),
        |m| m.system.kernel_release = text("5.10.0-33-armmp"),
    ),
    ("memory-pressure-now", |m| m.memory.pressure[2].full_avg10 = is(12.0), AS_IT_IS),
    ("disk-pressure-now", |m| m.memory.pressure[1].full_avg10 = is(40.0), AS_IT_IS),
];

fn fires(rule: &str, change: Change) -> bool {
    let mut machine = pi3_with_usb_ssd();
    change(&mut machine);
    of_machine(&machine).iter().any(|finding| finding.rule == rule)
}

#[test]
fn each_rule_speaks_of_one_machine_and_is_silent_on_another() {
    let mut wrong = Vec::new();
    for (rule, fire, calm) in CASES {
        if !fires(rule, *fire) {
            wrong.push(format!("{rule} says nothing where it should"));
        }
        if fires(rule, *calm) {
            wrong.push(format!("{rule} speaks where it has nothing to say"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn each_rule_is_tried_and_named_once() {
    let rules: Vec<&str> = all().map(|rule| rule.name).collect();
    let of_facts: Vec<&str> =
        all().filter(|rule| !rule.needs_figures()).map(|rule| rule.name).collect();
    let tried: Vec<&str> = CASES.iter().map(|case| case.0).collect();
    assert_eq!(of_facts, tried);
    let once: BTreeSet<&str> = rules.iter().copied().collect();
    assert_eq!(once.len(), rules.len());
    assert!(rules.len() >= 40);
}

#[test]
fn nothing_is_said_of_a_machine_that_does_not_tell() {
    let found = of_machine(&unreadable_machine());
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn every_finding_has_all_its_parts() {
    for (rule, fire, _) in CASES {
        let mut machine = pi3_with_usb_ssd();
        fire(&mut machine);
        for finding in of_machine(&machine).iter().filter(|finding| finding.rule == *rule) {
            for part in [
                &finding.about,
                &finding.evidence,
                &finding.read_from,
                &finding.consequence,
                &finding.fix,
                &finding.source,
            ] {
                assert!(!part.trim().is_empty(), "{finding:?}");
            }
            assert_eq!(commands::gap(finding), None, "{finding:?}");
            assert_eq!(commands::bare(finding), None, "{finding:?}");
            assert_eq!(commands::without_root(finding), None, "{finding:?}");
            let sentence = finding.consequence.trim_end();
            assert!(sentence.ends_with('.'), "{rule}: {sentence}");
        }
    }
}

#[test]
fn one_rule_alone_finds_what_it_finds_among_all() {
    for (rule, fire, _) in CASES {
        let mut machine = pi3_with_usb_ssd();
        fire(&mut machine);
        let mut among_all = of_machine(&machine);
        among_all.retain(|finding| finding.rule == *rule);
        assert_eq!(of_rule(rule, &machine), among_all);
    }
}

#[test]
fn dangers_come_first() {
    let mut machine = pi3_with_usb_ssd();
    option(&mut machine, "/", &["rw", "nobarrier"]);
    let weights: Vec<Weight> = of_machine(&machine).iter().map(|finding| finding.weight).collect();
    assert!(weights.is_sorted(), "{weights:?}");
    assert_eq!(weights.first(), Some(&Weight::Danger));
}

#[test]
fn in_a_container_the_host_is_told_what_to_do() {
    let mut machine = pi3_with_usb_ssd();
    swap_on(&mut machine, "/var/swap", "mmcblk0p2", -2);
    let is_planned = |found: &RuleFinding| {
        found.command.as_ref().is_some_and(|command| !command.starts_with("rubus checkup"))
    };
    assert!(of_machine(&machine).iter().any(is_planned));
    machine.system.container = Some("lxc".into());
    for finding in of_machine(&machine) {
        assert!(finding.fix.ends_with("This is a container: do it on its host."), "{finding:?}");
        let command = finding.command.unwrap_or_default();
        assert!(!command.contains("plan") && !command.contains("sudo"), "{command}");
    }
}
