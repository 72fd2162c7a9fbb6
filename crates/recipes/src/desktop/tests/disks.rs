//! Which disk the new root may be on.

use super::*;

#[test]
fn a_serial_number_that_two_disks_say_is_no_mark() {
    let machine = machine();
    let mut facts = facts(&machine);
    let disk = facts.disks.get_mut(Path::new("/dev/sda"));
    let Some(Ok(disk)) = disk else {
        panic!("there is one");
    };
    (disk.diskseq, disk.confirmation) = (Some(7), "/dev/sda".into());
    let plan = plan_of(&machine, &facts, &[]);
    let mut checks = plan.checks.iter();
    let mark = checks.find(|check| check.what == "the disk is uniquely identifiable");
    assert_eq!(
        mark.map(|check| check.found.as_str()),
        Some("number 7 of this boot alone: it has no serial number of its own")
    );
}

#[test]
fn a_plan_without_a_disk_names_those_that_are_empty_and_what_the_others_hold() {
    let mut machine = machine();
    let obstacle = |machine: &Machine| {
        let plan = RECIPE.plan(machine, &facts(machine), &Wishes::new(), "now");
        let plan = plan.expect("a plan with an obstacle");
        assert_eq!(plan.steps, []);
        obstacles(&plan).remove(0)
    };
    let full = obstacle(&machine);
    assert!(full.contains(" holds btrfs \"data\"; device=DISK erases that disk"), "{full}");
    assert!(!full.contains("device=/dev/sda"), "{full}");
    machine.block_devices.retain(|device| device.parent.as_deref() != Some("sda"));
    let empty = obstacle(&machine);
    assert!(empty.contains("empty here: device=/dev/sda"), "{empty}");
}

#[test]
fn a_network_disk_is_no_desktop_disk() {
    let mut machine = machine();
    let facts = facts(&machine);
    for device in &mut machine.block_devices {
        if device.name == "sda" {
            device.kind = rubus_vocabulary::machine::BlockKind::Nbd;
        }
    }
    let found = obstacles(&plan_of(&machine, &facts, &[]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("is a network disk"), "{found:?}");
}
