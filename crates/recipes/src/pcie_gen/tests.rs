//! Plans for the connector: on trial and without, there already, and every obstacle.

use std::path::Path;

use super::super::testing::{after, facts, obstacles, plan, shown, text};
use super::super::{DiskSpeed, Facts, PathState};
use super::*;
use rubus_change::plan::Plan;
use rubus_change::plan::verify::{Found, PromiseState, verify};
use rubus_host::capture::Captured;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::kernel_log::{KernelTrouble, TroubleKind};
use rubus_vocabulary::machine::Origin;

const CONFIG: &str = "# mine\ndtparam=audio=on\nauto_initramfs=1\n[all]\ndtoverlay=disable-bt\n";
const PLAIN: [(&str, &str); 0] = [];
const AT_ONCE: [(&str, &str); 1] = [("trial", "no")];
const POINT: &str = "/boot/firmware";

/// A Raspberry Pi 5 that starts from its NVMe disk, at generation 2 of 3.
fn machine() -> Machine {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures/pi5-nvme");
    let captured = Captured::open(&place).expect("it is in the repository");
    let origin = Origin::Capture { path: "pi5-nvme".into(), label: String::new() };
    let mut machine = rubus_machine::probe::survey(&captured, captured.recorded_at(), origin);
    machine.kernel_log = Fact::known(Vec::new(), "/dev/kmsg");
    machine
}

fn facts_of(machine: &Machine, config: &str) -> Facts {
    let names = ["config.txt", "cmdline.txt", "kernel_2712.img", "initramfs_2712"];
    let seen = [
        (POINT, PathState::Directory(names.map(String::from).to_vec())),
        ("/boot/firmware/config.txt", text(config)),
        ("/boot/firmware/cmdline.txt", text("root=PARTUUID=4e639091-02 rootwait\n")),
        (
            tryboot::BOOTLOADER_NODE,
            PathState::Directory(["boot-mode", "tryboot"].map(String::from).to_vec()),
        ),
    ];
    facts(&RECIPE, machine, &PLAIN, &seen)
}

fn link(machine: &mut Machine) -> &mut Hop {
    let mut disks = machine.block_devices.iter_mut().filter(|disk| disk.name == "nvme0n1");
    let disk = disks.next().expect("the capture has it");
    disk.path.iter_mut().find(|hop| hop.kind == HopKind::Pcie).expect("it is at a link")
}

fn repeated_transfers(machine: &mut Machine, times: u64) {
    let trouble = KernelTrouble {
        kind: TroubleKind::PcieCorrected,
        part: "0001:00:00.0".into(),
        times,
        first_s: None,
        last_s: None,
    };
    machine.kernel_log = Fact::known(vec![trouble], "/dev/kmsg");
}

/// On trial and at once.
pub(crate) fn usual_plans() -> Vec<Plan> {
    let machine = machine();
    let facts = facts_of(&machine, CONFIG);
    [&PLAIN[..], &AT_ONCE].map(|wished| plan(&RECIPE, &machine, &facts, wished)).into()
}

#[test]
fn it_is_first_tried_in_one_start() {
    let machine = machine();
    let plan = plan(&RECIPE, &machine, &facts_of(&machine, CONFIG), &PLAIN);
    let trial = plan.trial.clone().expect("it has one");
    assert_eq!(trial.before_step, 1);
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn at_once_it_says_how_to_come_back() {
    let machine = machine();
    let plan = plan(&RECIPE, &machine, &facts_of(&machine, CONFIG), &AT_ONCE);
    assert!(plan.trial.is_none());
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn made_once_it_is_not_made_again() {
    let machine = machine();
    let before = facts_of(&machine, CONFIG);
    let first = plan(&RECIPE, &machine, &before, &AT_ONCE);
    let again = plan(&RECIPE, &machine, &after(&before, &first), &AT_ONCE);
    assert!(again.is_empty() && again.obstacles().count() == 0, "{again:?}");
    assert!(again.notes[0].contains("disk, adapter and cable cannot"), "{:?}", again.notes);
}

#[test]
fn a_disk_slower_than_the_link_gains_nothing() {
    let machine = machine();
    let mut facts = facts_of(&machine, CONFIG);
    let speed = DiskSpeed {
        read_bytes_per_second: Some(2e8),
        source: "measured here on 2026-11-20, run 3".into(),
        ..DiskSpeed::default()
    };
    facts.speeds.insert("nvme0n1".into(), speed);
    let plan = plan(&RECIPE, &machine, &facts, &PLAIN);
    let words = plan.gains_unknown.expect("the gain is unknown");
    assert!(plan.gains.is_empty() && words.starts_with("Probably nothing"), "{words}");
}

#[test]
fn the_promise_is_rate_and_no_errors() {
    let mut machine = machine();
    let plan = plan(&RECIPE, &machine, &facts_of(&machine, CONFIG), &PLAIN);
    let state = |machine: &Machine, started: bool| {
        verify(&plan.promises, machine, &Found::default(), started)[0].standing
    };
    assert_eq!(state(&machine, false), PromiseState::AfterStart);
    assert_eq!(state(&machine, true), PromiseState::Broken);
    let rate = generation("3").expect("it is one").line_bits_per_second();
    link(&mut machine).line_bits_per_second = Fact::known(rate, "sysfs");
    assert_eq!(state(&machine, true), PromiseState::Holds);
    repeated_transfers(&mut machine, 3);
    assert_eq!(state(&machine, true), PromiseState::Broken);
    machine.kernel_log = Fact::unknown("only root may read it", "/dev/kmsg");
    assert_eq!(state(&machine, true), PromiseState::Unknown);
}

#[test]
fn every_obstacle_says_what_to_do() {
    let mut all = Vec::new();
    let mut meet = |name: &str, machine: &Machine, facts: &Facts| {
        let plan = plan(&RECIPE, machine, facts, &PLAIN);
        let found = obstacles(&plan);
        assert!(!found.is_empty() && plan.trial.is_none(), "{name}");
        all.push(format!("{name}\n{}", found.join("\n")));
    };
    let usual = machine();
    let with = |act: fn(&mut Machine)| {
        let mut machine = machine();
        act(&mut machine);
        machine
    };
    let other = rubus_fixtures::pi3_with_usb_ssd();
    meet("another board", &other, &facts(&RECIPE, &other, &PLAIN, &[]));
    let without = with(|machine| machine.block_devices.retain(|disk| disk.name != "nvme0n1"));
    meet("no disk", &without, &facts_of(&without, CONFIG));
    let slow = with(|machine| {
        let now = link(machine).line_bits_per_second.clone();
        link(machine).max_line_bits_per_second = now;
    });
    meet("a disk of generation 2", &slow, &facts_of(&slow, CONFIG));
    let errors = with(|machine| repeated_transfers(machine, 40));
    meet("errors now", &errors, &facts_of(&errors, CONFIG));
    let included = facts_of(&usual, "include more.txt\n");
    let mut facts = included.clone();
    let more = Path::new(POINT).join("more.txt");
    facts.seen.insert(more, text("dtparam=pciex1_gen=2\n"));
    meet("an included file", &usual, &facts);
    let mut facts = facts_of(&usual, CONFIG);
    let names = ["config.txt", "cmdline.txt", "kernel_2712.img", tryboot::FILE];
    let names = names.map(String::from).to_vec();
    facts.seen.insert(POINT.into(), PathState::Directory(names));
    meet("a trial of something else", &usual, &facts);
    let mut facts = facts_of(&usual, CONFIG);
    facts.seen.insert(tryboot::BOOTLOADER_NODE.into(), PathState::Absent);
    meet("a bootloader without trials", &usual, &facts);
    insta::assert_snapshot!(all.join("\n\n"));
}

/// The owner of the board was told to mount a partition that is mounted.
#[test]
fn a_capture_without_boot_files_is_no_board_without_them() {
    let machine = machine();
    let seen = [(POINT, PathState::Absent), ("/boot/firmware/config.txt", PathState::Absent)];
    let facts = facts(&RECIPE, &machine, &PLAIN, &seen);
    let plan = plan(&RECIPE, &machine, &facts, &PLAIN);
    let mut checks = plan.checks.iter();
    let check = checks.find(|check| check.what == "how the board starts is known");
    let check = check.expect("it is checked");
    assert!(!check.is_met && check.is_unknown, "{check:?}");
    assert_eq!(check.found, "/boot/firmware/config.txt is not in the capture");
    let remedy = check.remedy.as_deref().unwrap_or_default();
    assert!(remedy.starts_with("make the plan on the machine itself"), "{remedy}");
}
