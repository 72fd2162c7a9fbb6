//! The plan for another swap on example machines.

use super::*;
use crate::testing::{after, disk, facts, obstacles, plan, shown, text, wishes};
use crate::{DiskSpeed, Facts, PathState};
use rubus_change::plan::Plan;
use rubus_change::plan::volume::DiskIdentity;
use rubus_change::steps::{Format, SwapOff, SwapOn};
use rubus_change::unseen::Unseen;
use rubus_fixtures as fixture;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{BlockKind, Setting, SwapArea, SwapManager};

const TABLE: &str = "proc            /proc           proc    defaults          0       0\n\
                     PARTUUID=1f3c5a77-02  /  ext4  defaults,noatime  0  1\n";

fn known(text: &str) -> Fact<String> {
    Fact::known(text.into(), "test")
}

/// A Pi 3 with a second, empty stick; zram swap of rpi-swap is in use.
fn machine() -> Machine {
    let mut machine = fixture::pi3_with_usb_ssd();
    let ssd = machine.device("sda").cloned();
    let mut stick = ssd.expect("the fixture has it");
    stick.name = "sdb".into();
    stick.major_minor = "8:16".into();
    stick.content = Fact::unknown("nothing found", "/dev/sdb");
    machine.block_devices.push(stick);
    machine
}

/// The same with an SD-card file of dphys-swapfile instead.
fn with_dphys() -> Machine {
    let mut machine = machine();
    machine.swap.areas = vec![area("/var/swap", "file", "mmcblk0p2", 36 << 20)];
    machine.swap.zram.clear();
    machine.swap.managers = vec![SwapManager {
        name: "dphys-swapfile".into(),
        settings: Fact::known(vec!["CONF_SWAPSIZE = 100".into()], "/etc/dphys-swapfile"),
    }];
    machine
}

/// The same with a swap partition on the stick, not in use.
fn with_swap_partition() -> Machine {
    let mut machine = with_dphys();
    let part = machine.device("sda1").cloned();
    let mut part = part.expect("the fixture has it");
    part.name = "sdb1".into();
    part.parent = Some("sdb".into());
    part.content = known("swap");
    part.identity.uuid = Some("7d1d2c9e-30f4-4f0a-8b7e-5a1f6c2d3e44".into());
    part.identity.partuuid = Some("3b0a02d1-01".into());
    machine.block_devices.push(part);
    machine
}

fn area(path: &str, kind: &str, device: &str, used_bytes: u64) -> SwapArea {
    SwapArea {
        path: path.into(),
        kind: kind.into(),
        size_bytes: 100 << 20,
        used_bytes,
        priority: -2,
        device: known(device),
    }
}

fn knobs() -> Vec<(&'static str, PathState)> {
    vec![
        (FSTAB, text(TABLE)),
        (SWAPPINESS, text("60\n")),
        (PAGE_CLUSTER, text("3\n")),
        ("/etc/dphys-swapfile", text("CONF_SWAPSIZE=100\n")),
    ]
}

fn looked(machine: &Machine, wished: &[(&str, &str)]) -> Facts {
    let mut facts = facts(&RECIPE, machine, wished, &knobs());
    let mut stick = disk("/dev/sdb", "4C53-1");
    stick.contents = vec!["a FAT32 filesystem 'PHOTOS'".into()];
    facts.disks.insert("/dev/sdb".into(), Ok(stick));
    let busy = "/dev/sda1 is mounted at /srv/data.".to_string();
    facts.disks.insert("/dev/sda".into(), Err(busy.into()));
    facts
}

fn drawn(machine: &Machine, wished: &[(&str, &str)]) -> Plan {
    plan(&RECIPE, machine, &looked(machine, wished), wished)
}

fn measured(facts: &mut Facts) {
    let speed = |iops| DiskSpeed {
        random_read_iops: Some(iops),
        random_write_iops: Some(iops),
        source: "measured here on 2026-11-20".into(),
        ..DiskSpeed::default()
    };
    facts.speeds.insert("mmcblk0".into(), speed(800.0));
    facts.speeds.insert("sdb".into(), speed(2400.0));
}

/// OpenRC does not use the swap of fstab by itself.
#[test]
fn alpine_is_told_which_service_uses_the_swap() {
    let told = |id: &str| {
        let mut machine = machine();
        machine.system.os_ids = vec![id.into()];
        let plan = drawn(&machine, &[("to", "disk:/dev/sdb")]);
        plan.risks.iter().any(|risk| risk.contains("rc-update add swap"))
    };
    assert!(told("alpine") && !told("debian"));
}

#[test]
fn a_whole_stick_becomes_swap_in_the_place_of_zram() {
    let plan = drawn(&machine(), &[("to", "disk:/dev/sdb"), ("priority", "10")]);
    assert_eq!(obstacles(&plan), [""; 0]);
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn a_swap_partition_that_is_there_is_used_as_it_is() {
    let wished = [("to", "disk:/dev/sdb1")];
    let machine = with_swap_partition();
    let mut facts = looked(&machine, &wished);
    measured(&mut facts);
    let plan = plan(&RECIPE, &machine, &facts, &wished);
    assert_eq!(obstacles(&plan), [""; 0]);
    assert!(plan.disks_lost().is_empty());
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn a_file_on_btrfs_takes_the_place_of_one_on_the_card() {
    let wished = [("to", "file:/srv/data/swap/file"), ("size", "1G"), ("swappiness", "100")];
    insta::assert_snapshot!(shown(&drawn(&with_dphys(), &wished)));
}

#[test]
fn compressed_memory_in_the_words_of_who_makes_it() {
    let mut generator = with_dphys();
    generator.swap.managers.push(SwapManager {
        name: "zram-generator".into(),
        settings: Fact::known(Vec::new(), "/etc/systemd/zram-generator.conf (absent: defaults)"),
    });
    let wished = [("to", "zram"), ("size", "512M")];
    let with_generator = shown(&drawn(&generator, &wished));
    let mut rpi = generator.clone();
    rpi.swap.managers[1].name = "rpi-swap".into();
    let with_rpi = shown(&drawn(&rpi, &wished));
    insta::assert_snapshot!(format!("{with_generator}\n----\n{with_rpi}"));
}

#[test]
fn zram_that_is_there_stays_and_the_rest_goes() {
    let mut machine = machine();
    machine.swap.areas.push(area("/var/swap", "file", "mmcblk0p2", 0));
    let plan = drawn(&machine, &[("to", "zram")]);
    assert_eq!(obstacles(&plan), [""; 0]);
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn a_file_below_a_place_that_the_next_start_mounts_is_refused() {
    let wished = [("to", "file:/mnt/disk/swap"), ("size", "1G")];
    let refused = |line: &str| {
        let mut facts = looked(&machine(), &wished);
        facts.seen.insert(FSTAB.into(), text(&format!("{TABLE}{line}")));
        let plan = plan(&RECIPE, &machine(), &facts, &wished);
        plan.checks.iter().any(|check| !check.is_met && check.what.contains("hidden"))
    };
    assert!(!refused(""));
    assert!(refused("UUID=0d0d-1 /mnt/disk ext4 nofail 0 2\n"));
}

#[test]
fn a_system_without_systemd_is_not_told_to_install_its_generator() {
    let remedy = |id: &str| {
        let mut machine = machine();
        machine.swap.managers.clear();
        machine.system.os_ids = vec![id.into()];
        let plan = drawn(&machine, &[("to", "zram")]);
        let check = plan.checks.iter().find(|check| check.what.starts_with("a program makes"));
        check.and_then(|check| check.remedy.clone()).expect("it fails")
    };
    assert!(remedy("debian").contains("systemd-zram-generator"), "{}", remedy("debian"));
    assert!(remedy("alpine").starts_with("take to=file:"), "{}", remedy("alpine"));
}

#[test]
fn none_at_all() {
    let mut facts = looked(&with_dphys(), &[("to", "none")]);
    let table = format!("{TABLE}/var/swap none swap sw 0 0\n");
    facts.seen.insert(FSTAB.into(), text(&table));
    let plan = plan(&RECIPE, &with_dphys(), &facts, &[("to", "none")]);
    assert_eq!(obstacles(&plan), [""; 0]);
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn what_is_done_is_not_done_again() {
    for (before, to) in [
        (with_dphys(), "disk:/dev/sdb"),
        (with_swap_partition(), "disk:/dev/sdb1"),
        (with_dphys(), "file:/srv/data/swap"),
        (with_dphys(), "none"),
    ] {
        let wished = [("to", to), ("swappiness", "80")];
        let mut facts = looked(&before, &wished);
        let first = plan(&RECIPE, &before, &facts, &wished);
        assert_eq!(obstacles(&first), [""; 0], "{to}");
        facts = after(&facts, &first);
        let machine = applied(&before, &first);
        let again = plan(&RECIPE, &machine, &facts, &wished);
        assert_eq!(obstacles(&again), [""; 0], "{to}");
        assert!(again.is_empty(), "{to}: {:#?}", again.steps);
    }
}

/// The machine as a survey would find it after the plan.
fn applied(before: &Machine, plan: &Plan) -> Machine {
    let mut machine = before.clone();
    for step in &plan.steps {
        match &step.action {
            Action::Format(Format { filesystem, .. }) => {
                let mut part = before.device("sda1").cloned().expect("in the fixture");
                part.name = "sdb1".into();
                part.parent = Some("sdb".into());
                part.content = known("swap");
                part.identity.uuid = Some(filesystem.uuid.clone());
                machine.block_devices.push(part);
            }
            Action::SwapOn(SwapOn { what, .. }) => {
                let (path, kind) = if what.starts_with('/') {
                    (what.as_str(), "file")
                } else {
                    ("/dev/sdb1", "partition")
                };
                machine.swap.areas.push(area(path, kind, disks::name(path), 0));
            }
            Action::SwapOff(SwapOff { what, .. }) => {
                machine.swap.areas.retain(|area| area.path != *what);
            }
            _ => {}
        }
    }
    for manager in &mut machine.swap.managers {
        manager.settings = Fact::known(vec!["CONF_SWAPSIZE = 0".into()], "/etc/dphys-swapfile");
    }
    machine
}

#[test]
fn what_is_kept_stays_with_who_makes_it() {
    let wished = [("to", "disk:/dev/sdb"), ("keep", "/dev/zram0")];
    let plan = drawn(&machine(), &wished);
    let said = shown(&plan);
    assert!(!said.contains("rpi-swap"), "{said}");
    assert!(!said.contains("stop using"), "{said}");
}

#[test]
fn every_obstacle_says_what_to_do() {
    let mut full = with_dphys();
    full.memory.available_bytes = Fact::known(1 << 20, "test");
    let mut network = machine();
    network.block_devices[6].name = "nbd0".into();
    network.block_devices[6].kind = BlockKind::Nbd;
    let mut on_network = machine();
    for device in &mut on_network.block_devices {
        if device.name == "sda" || device.parent.as_deref() == Some("sda") {
            device.kind = BlockKind::Nbd;
        }
    }
    let mut several = machine();
    several.block_devices[6].identity = several.block_devices[4].identity.clone();
    several.system.kernel_release = known("4.19.0");
    let mut no_zram = with_dphys();
    no_zram.kernel_config = vec![Setting { name: "ZRAM".into(), value: known("not set") }];
    let mut no_id = with_swap_partition();
    let part = no_id.block_devices.last_mut().expect("it was pushed");
    part.content = known("ext4");
    part.identity.partuuid = None;
    type Case<'a> = (&'a str, &'a Machine, &'a [(&'a str, &'a str)]);
    let cases: [Case<'_>; 14] = [
        ("nothing said", &machine(), &[]),
        ("no such disk", &machine(), &[("to", "disk:/dev/sdz")]),
        ("in use", &machine(), &[("to", "disk:/dev/sda")]),
        ("mounted partition", &machine(), &[("to", "disk:/dev/sda1")]),
        ("memory", &machine(), &[("to", "disk:/dev/zram0")]),
        ("network", &network, &[("to", "disk:/dev/nbd0")]),
        ("file on the network", &on_network, &[("to", "file:/srv/data/swap")]),
        ("full memory", &full, &[("to", "none")]),
        ("no PARTUUID", &no_id, &[("to", "disk:/dev/sdb1")]),
        ("on FAT", &machine(), &[("to", "file:/boot/firmware/swap")]),
        ("no room", &machine(), &[("to", "file:/srv/data/swap"), ("size", "100G")]),
        ("old btrfs", &several, &[("to", "file:/srv/data/swap")]),
        ("no zram", &no_zram, &[("to", "zram")]),
        ("something there", &machine(), &[("to", "file:/etc")]),
    ];
    let mut said = String::new();
    for (name, machine, wished) in cases {
        let obstacles = obstacles(&drawn(machine, wished));
        assert!(!obstacles.is_empty(), "{name}");
        said += &format!("{name}\n  {}\n", obstacles.join("\n  "));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn risks_are_said() {
    let card = drawn(&with_dphys(), &[("to", "file:/swapfile")]);
    assert!(shown(&card).contains("risk: /swapfile is on an SD card"), "{}", shown(&card));
    let mut pi5 = with_dphys();
    pi5.system.page_bytes = Fact::known(16_384, "test");
    pi5.system.command_line = known("root=/dev/x resume=/dev/y");
    let said = shown(&drawn(&pi5, &[("to", "disk:/dev/sdb")]));
    assert!(said.contains("pages of 16.0 KiB"), "{said}");
    assert!(said.contains("resume="), "{said}");
    let lost: Vec<DiskIdentity> =
        drawn(&pi5, &[("to", "disk:/dev/sdb")]).disks_lost().into_iter().cloned().collect();
    assert_eq!(lost.len(), 1);
}

#[test]
fn nothing_known_is_no_reason_to_break() {
    let nothing = fixture::unreadable_machine();
    for to in ["disk:/dev/sda", "file:/swap", "zram", "none"] {
        drawn(&nothing, &[("to", to)]);
    }
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("to", "sda"),
        ("to", "disk:sda"),
        ("to", "disk:/dev/../sda"),
        ("to", "file:swap"),
        ("size", "1M"),
        ("priority", "-5"),
        ("swappiness", "201"),
        ("keep", "zram0"),
    ] {
        let wished = wishes(&[(name, value)]);
        let error = RECIPE.plan(&machine(), &Facts::default(), &wished, "now");
        assert!(error.is_err(), "{name}={value}");
    }
}

proptest::proptest! {
    #[test]
    fn no_table_and_no_wish_makes_it_panic(table in "[ -~\\n\\t]{0,200}", to in "[a-z:/.]{0,20}") {
        let wished = [("to", to.as_str())];
        if To::parse(&to).is_ok() {
            let machine = with_swap_partition();
            let mut facts = looked(&machine, &wished);
            facts.seen.insert(FSTAB.into(), text(&table));
            plan(&RECIPE, &machine, &facts, &wished);
        }
    }
}

#[test]
fn an_eager_swap_on_a_disk_is_told_to_be_compressed_first() {
    let mut machine = machine();
    let notes = |machine: &Machine, to: &str, swappiness: &str| {
        format!("{:?}", drawn(machine, &[("to", to), ("swappiness", swappiness)]).notes)
    };
    assert!(notes(&machine, "disk:/dev/sdb", "190").contains("Then at once: `rubus plan zswap`"));
    assert!(!notes(&machine, "disk:/dev/sdb", "60").contains("plan zswap"));
    assert!(!notes(&machine, "zram", "190").contains("plan zswap"));
    machine.swap.zswap.enabled = Fact::known(true, "test");
    assert!(!notes(&machine, "disk:/dev/sdb", "190").contains("plan zswap"));
}

#[test]
fn a_table_that_a_capture_does_not_hold_is_not_taken_for_empty() {
    let (machine, wished) = (machine(), [("to", "disk:/dev/sdb")]);
    let mut facts = looked(&machine, &wished);
    facts
        .seen
        .insert(FSTAB.into(), PathState::Hidden(Unseen::NotCaptured("not in the capture".into())));
    let plan = plan(&RECIPE, &machine, &facts, &wished);
    let what = "what /etc/fstab says stays in it";
    let check = plan.checks.iter().find(|check| check.what == what).expect("it is asked");
    assert!(check.is_unknown && check.found.contains("cannot be seen"), "{check:?}");
}
