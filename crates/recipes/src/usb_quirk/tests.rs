//! Plans for bridges: before a disk, named by their ids, on Debian, and every obstacle.

use super::super::testing::{after, facts, obstacles, plan, shown, text};
use super::super::{Facts, PathState};
use super::*;
use rubus_change::steps::WriteFile;
use rubus_fixtures as fixture;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::HopKind;

const CMDLINE: &str = "console=tty1 root=PARTUUID=1f3c5a77-02 rootfstype=ext4 rootwait quiet\n";
const DEVICE: [(&str, &str); 1] = [("device", "/dev/sda")];

/// A Raspberry Pi whose SSD is behind a JMicron bridge under uas.
fn machine() -> Machine {
    let mut machine = fixture::pi3_with_usb_ssd();
    let mut hops = machine.block_devices.iter_mut().flat_map(|disk| &mut disk.path);
    let bridge = hops.find(|hop| hop.kind == HopKind::UsbDevice);
    let bridge = bridge.expect("the fixture has one");
    bridge.chip = Some("152d:0578".into());
    bridge.driver = Fact::known("uas".into(), "test");
    machine
}

fn seen(cmdline: &str) -> Vec<(&'static str, PathState)> {
    let names = ["config.txt", "cmdline.txt", "kernel8.img", "initramfs8"];
    vec![
        ("/boot/firmware", PathState::Directory(names.map(String::from).to_vec())),
        ("/boot/firmware/config.txt", text("auto_initramfs=1\n")),
        ("/boot/firmware/cmdline.txt", text(cmdline)),
        ("/etc/default", PathState::Directory(Vec::new())),
    ]
}

fn facts_of(machine: &Machine, cmdline: &str) -> Facts {
    facts(&RECIPE, machine, &DEVICE, &seen(cmdline))
}

#[test]
fn the_bridge_before_a_disk() {
    let machine = machine();
    let plan = plan(&RECIPE, &machine, &facts_of(&machine, CMDLINE), &DEVICE);
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn other_bridges_and_other_flags_stay() {
    for (old, new) in [
        ("quiet", "quiet usb-storage.quirks=152d:0578:u"),
        ("usb-storage.quirks=0bc2:ab28:u", "usb-storage.quirks=0bc2:ab28:u,152d:0578:u"),
        ("usb-storage.quirks=152D:0578:fk x", "usb-storage.quirks=152D:0578:fku x"),
        ("usb_storage.quirks=152d:0578:u x", "usb_storage.quirks=152d:0578:u x"),
        ("usb-storage.quirks= x", "usb-storage.quirks=152d:0578:u x"),
    ] {
        let line = with_quirk(old, "152d:0578").expect("it can be written");
        assert_eq!(line.text().trim_end(), new, "{old}");
    }
}

/// The firmware hands on the first line alone, and a kernel without root= in it does not start.
#[test]
fn a_quirk_is_only_put_into_the_line_with_the_root() {
    for (text, words) in [
        (format!("\n{CMDLINE}"), "begins with an empty line"),
        (format!("# old: root=/dev/sda2\n{CMDLINE}"), "begins with a comment"),
        (format!("console=tty1\n{CMDLINE}"), "begins with a line without root="),
    ] {
        let machine = machine();
        let plan = plan(&RECIPE, &machine, &facts_of(&machine, &text), &DEVICE);
        assert!(obstacles(&plan).join("\n").contains(words), "{text:?}: {:?}", obstacles(&plan));
        assert!(plan.is_empty(), "{text:?}");
    }
    // What stands behind it is not read, and a system may find its root by other words.
    for text in [format!("{CMDLINE}usb-storage.quirks=0bc2:ab28:u\n"), "disk=LABEL=x\n".into()] {
        let machine = machine();
        let plan = plan(&RECIPE, &machine, &facts_of(&machine, &text), &DEVICE);
        assert_eq!(obstacles(&plan), [""; 0], "{text:?}");
    }
}

#[test]
fn made_once_it_is_not_made_again() {
    let machine = machine();
    let before = facts_of(&machine, CMDLINE);
    let first = plan(&RECIPE, &machine, &before, &DEVICE);
    let again = plan(&RECIPE, &machine, &after(&before, &first), &DEVICE);
    assert!(again.is_empty() && again.obstacles().count() == 0, "{again:?}");
    assert!(again.notes[0].contains("already"), "{:?}", again.notes);
    assert_eq!(again.promises.len(), 1);
}

#[test]
fn on_debian_the_next_update_keeps_it() {
    let machine = machine();
    let mut facts = facts_of(&machine, CMDLINE);
    let hook = "#!/bin/sh\ncat >/boot/firmware/cmdline.txt <<EOF\n";
    facts.seen.insert(raspi_firmware::HOOK.into(), text(hook));
    facts.seen.insert(DEBIAN_WORDS.into(), text("cma=128M\n"));
    let plan = plan(&RECIPE, &machine, &facts, &DEVICE);
    let words = plan.steps.iter().find_map(|step| match &step.action {
        rubus_change::plan::Action::WriteFile(WriteFile { path, becomes, .. })
            if path == Path::new(DEBIAN_WORDS) =>
        {
            Some(becomes.text.clone())
        }
        _ => None,
    });
    assert_eq!(words.as_deref(), Some("cma=128M usb-storage.quirks=152d:0578:u\n"));
}

#[test]
fn every_obstacle_says_what_to_do() {
    let machine = machine();
    let mut all = Vec::new();
    let mut meet = |name: &str, wished: &[(&str, &str)], facts: &Facts| {
        let found = obstacles(&plan(&RECIPE, &machine, facts, wished));
        assert!(!found.is_empty(), "{name}");
        all.push(format!("{name}\n{}", found.join("\n")));
    };
    let usual = facts_of(&machine, CMDLINE);
    meet("nothing is named", &[], &usual);
    meet("a card", &[("device", "/dev/mmcblk0")], &usual);
    meet("not there", &[("device", "/dev/sdz")], &usual);
    meet("both", &[("device", "/dev/sda"), ("bridge", "152d:0578")], &usual);
    let mut without = usual.clone();
    let config = Path::new("/boot/firmware/config.txt");
    without.seen.insert(config.into(), PathState::Absent);
    meet("another way to start", &DEVICE, &without);
    let long = format!("{} {}", "x".repeat(2000), CMDLINE);
    meet("a full command line", &DEVICE, &facts_of(&machine, &long));
    insta::assert_snapshot!(all.join("\n\n"));
}

/// usb-storage does not serve it, so that its disk, and a system on it, would not be there after the next start.
#[test]
fn a_bridge_that_speaks_uas_alone_is_refused() {
    let drawn = |speaks: Option<bool>, wished: &[(&str, &str)]| {
        let mut machine = machine();
        let hops = machine.block_devices.iter_mut().flat_map(|disk| &mut disk.path);
        hops.filter(|hop| hop.kind == HopKind::UsbDevice)
            .for_each(|hop| hop.speaks_bulk_only = speaks);
        plan(&RECIPE, &machine, &facts_of(&machine, CMDLINE), wished)
    };
    for wished in [DEVICE, [("bridge", "152d:0578")]] {
        let refused = obstacles(&drawn(Some(false), &wished)).join("\n");
        assert!(refused.contains("UAS alone"), "{refused}");
        let warns = |plan: &rubus_change::plan::Plan| {
            plan.risks.iter().any(|risk| risk.contains("UAS alone"))
        };
        let unknown = drawn(None, &wished);
        assert!(obstacles(&unknown).is_empty() && warns(&unknown));
        let both = drawn(Some(true), &wished);
        assert!(obstacles(&both).is_empty() && !warns(&both));
    }
}

#[test]
fn a_bridge_that_is_not_plugged_in_can_be_named() {
    let machine = machine();
    let wished = [("bridge", "174C:55AA")];
    let facts = facts_of(&machine, CMDLINE);
    let plan = plan(&RECIPE, &machine, &facts, &wished);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    assert!(shown(&plan).contains("usb-storage.quirks=174c:55aa:u"));
    for wrong in ["174c", "174c:55a", "174c:55ag", "174c:55aa:u"] {
        assert!(bridge(wrong).is_err(), "{wrong}");
    }
}
