//! The plan for zswap on example machines.

use super::*;
use crate::{Facts, PathState, Seen, Wishes};
use rubus_change::plan::{Action, Plan, TextFile};
use rubus_change::steps::WriteFile;
use rubus_fixtures as fixture;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::Setting;

fn knob(text: &str) -> PathState {
    PathState::Text(TextFile::public(text))
}

fn seen() -> Seen {
    Seen::from([
        (BOOT_FILE.into(), PathState::Absent),
        ("/etc/tmpfiles.d".into(), PathState::Something),
        (PAGE_CLUSTER_FILE.into(), PathState::Absent),
        ("/etc/sysctl.d".into(), PathState::Absent),
        (PAGE_CLUSTER.into(), knob("3\n")),
        ("/usr/bin/systemd-tmpfiles".into(), PathState::Something),
    ])
}

fn parameter(name: &str, value: &str) -> Setting {
    Setting { name: name.into(), value: Fact::known(value.into(), "test") }
}

/// A machine with a swap partition on a USB disk and this zswap.
fn machine(parameters: &[(&str, &str)]) -> Machine {
    let mut machine = fixture::pi3_with_usb_ssd();
    let area = &mut machine.swap.areas[0];
    area.path = "/dev/sda2".into();
    area.device = Fact::known("sda2".into(), "test");
    machine.swap.areas.truncate(1);
    machine.swap.zswap.parameters =
        parameters.iter().map(|(name, value)| parameter(name, value)).collect();
    machine
}

const USUAL: [(&str, &str); 4] = [
    ("compressor", "lzo"),
    ("enabled", "N"),
    ("max_pool_percent", "20"),
    ("shrinker_enabled", "N"),
];

fn plan(machine: &Machine, seen: &Seen, wishes: &[(&str, &str)]) -> Plan {
    let wishes: Wishes =
        wishes.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    RECIPE
        .plan(machine, &facts(seen), &wishes, "2026-11-21T01:02:03Z")
        .expect("the wishes make sense")
}

fn titles(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| step.action.title()).collect()
}

fn facts(seen: &Seen) -> Facts {
    Facts { seen: seen.clone(), ..Facts::default() }
}

/// Unasked, a pool that was given more room is not made smaller.
#[test]
fn a_larger_pool_stays_and_a_smaller_one_grows() {
    for (now, becomes) in [("25", "25"), ("10", "20"), ("90", "50")] {
        let mut parameters = USUAL;
        parameters[2] = ("max_pool_percent", now);
        let plan = plan(&machine(&parameters), &seen(), &[]);
        let title = format!("max_pool_percent from {now} to {becomes}");
        let sets_it = titles(&plan).iter().any(|said| said.ends_with(&title));
        assert_eq!(sets_it, now != becomes, "{:?}", titles(&plan));
    }
}

#[test]
fn what_is_wished_is_set_now_and_at_each_boot() {
    let wishes = [("max-pool-percent", "25"), ("compressor", "zstd")];
    let plan = plan(&machine(&USUAL), &seen(), &wishes);
    assert_eq!(plan.obstacles().count(), 0, "{:?}", plan.checks);
    assert_eq!(
        titles(&plan),
        [
            "make /etc/tmpfiles.d/rubus-zswap.conf",
            "make the directory /etc/sysctl.d",
            "make /etc/sysctl.d/90-rubus-zswap.conf",
            "set /sys/module/zswap/parameters/compressor from lzo to zstd",
            "set /sys/module/zswap/parameters/max_pool_percent from 20 to 25",
            "set /sys/module/zswap/parameters/shrinker_enabled from N to Y",
            "set /sys/module/zswap/parameters/enabled from N to Y",
            "set /proc/sys/vm/page-cluster from 3 to 0",
        ]
    );
    let Action::WriteFile(WriteFile { becomes, .. }) = &plan.steps[0].action else {
        panic!("the first step writes a file");
    };
    insta::assert_snapshot!(becomes.text, @r"
    # Made by rubus (zswap): settings of the compressed cache in front of the swap.
    # `rubus undo` removes this file.
    w /sys/module/zswap/parameters/compressor - - - - zstd
    w /sys/module/zswap/parameters/max_pool_percent - - - - 25
    w /sys/module/zswap/parameters/shrinker_enabled - - - - Y
    w /sys/module/zswap/parameters/enabled - - - - Y
    ");
}

#[test]
fn an_older_kernel_is_not_asked_for_what_it_does_not_have() {
    let old = [("compressor", "lzo"), ("enabled", "N"), ("max_pool_percent", "20")];
    let plan = plan(&machine(&old), &seen(), &[]);
    assert!(!format!("{plan:?}").contains("shrinker"));
}

#[test]
fn a_machine_that_is_as_wished_needs_nothing() {
    let first = plan(&machine(&USUAL), &seen(), &[]);
    let mut seen = seen();
    for step in &first.steps {
        if let Action::WriteFile(WriteFile { path, becomes, .. }) = &step.action {
            seen.insert(path.clone(), PathState::Text(becomes.clone()));
        }
    }
    seen.insert("/etc/sysctl.d".into(), PathState::Something);
    seen.insert(PAGE_CLUSTER.into(), knob("0\n"));
    let on = [
        ("compressor", "lzo"),
        ("enabled", "Y"),
        ("max_pool_percent", "20"),
        ("shrinker_enabled", "Y"),
    ];
    let again = plan(&machine(&on), &seen, &[]);
    assert!(again.is_empty(), "{:?}", titles(&again));
}

#[test]
fn without_a_disk_swap_there_is_an_obstacle_with_a_remedy() {
    let mut none = machine(&USUAL);
    none.swap.areas.clear();
    let mut zram = machine(&USUAL);
    zram.swap.areas[0].path = "/dev/zram0".into();
    zram.swap.areas[0].device = Fact::unknown("none", "test");
    for machine in [none, zram] {
        let plan = plan(&machine, &seen(), &[]);
        let obstacles: Vec<_> = plan.obstacles().collect();
        assert_eq!(obstacles.len(), 1, "{obstacles:?}");
        assert!(obstacles[0].remedy.is_some());
    }
    let mut both = machine(&USUAL);
    let mut zram = both.swap.areas[0].clone();
    zram.path = "/dev/zram0".into();
    zram.device = Fact::unknown("none", "test");
    both.swap.areas.push(zram);
    assert_eq!(plan(&both, &seen(), &[]).obstacles().count(), 1);
}

#[test]
fn a_kernel_without_zswap_is_told_so() {
    let plan = plan(&machine(&[]), &seen(), &[]);
    assert!(plan.is_empty());
    let what: Vec<&str> = plan.obstacles().map(|check| check.what.as_str()).collect();
    assert_eq!(what, ["the kernel has zswap"]);
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("max-pool-percent", "0"),
        ("max-pool-percent", "99"),
        ("max-pool-percent", "many"),
        ("compressor", "; rm"),
        ("compressor", ""),
        ("colour", "red"),
    ] {
        let wishes = Wishes::from([(name.to_string(), value.to_string())]);
        let error = RECIPE.plan(&machine(&USUAL), &facts(&seen()), &wishes, "now").unwrap_err();
        assert!(!error.to_string().is_empty());
    }
}

/// The survey does not ask for it there either.
#[test]
fn the_shrinker_stays_as_it_is_before_swap_on_a_card() {
    let mut on_a_card = machine(&USUAL);
    assert!(format!("{:?}", plan(&on_a_card, &seen(), &[])).contains("shrinker"));
    on_a_card.swap.areas[0].device = Fact::known("mmcblk0p2".into(), "test");
    assert!(!format!("{:?}", plan(&on_a_card, &seen(), &[])).contains("shrinker"));
}
