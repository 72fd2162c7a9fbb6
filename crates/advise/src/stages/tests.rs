//! Stages whose capacity is known by hand or was measured.

use crate::advice::Figures;
use crate::device_classes::DeviceClass;
use rubus_machine::purpose::What;
use rubus_stats::estimate::Estimate;

use super::network::Link;
use super::raid::Member;
use super::*;
use crate::predict::{Bend, Operation, Prediction, predict};

fn operation(what: What, depth: u32) -> Operation {
    Operation { bytes: what.bytes(), depth, bend: Bend::Known(Estimate::exact(0.0)) }
}

fn figures(id: &str) -> Figures {
    Figures::of_class(DeviceClass::by_id(id).expect("a kind"))
}

fn give(steps: &[Step], what: What, depth: u32) -> Prediction {
    predict(steps, &operation(what, depth))
}

fn near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{found} is not {expected}");
}

#[test]
fn a_device_gives_what_its_figures_say() {
    let ssd = figures("usb3-ssd");
    let at = |what, depth| give(&device::steps("sda", &ssd, what, depth), what, depth);
    near(at(What::RandomRead, 1).iops.value, 5000.0, 1e-9);
    near(at(What::RandomRead, 32).iops.value, 30_000.0, 1e-9);
    near(at(What::RandomWrite, 1).iops.value, 7000.0, 1e-9);
    near(at(What::SequentialRead, 4).bytes_per_second.value, 380e6, 1e-9);
    near(at(What::Commit, 1).iops.value, 500.0, 1e-9);
    // In between more is never less, and never more than the best.
    let middle = at(What::RandomRead, 4).iops.value;
    assert!((5000.0..=30_000.0).contains(&middle), "{middle}");
}

#[test]
fn a_bus_caps_a_device_that_could_do_more() {
    let mut path = device::steps("sda", &figures("usb3-ssd"), What::SequentialRead, 4);
    path.push(bus("USB 2", 35e6));
    let seen = give(&path, What::SequentialRead, 4);
    near(seen.bytes_per_second.value, 35e6, 1e-9);
    assert_eq!(seen.pipes[0].name, "USB 2");
}

#[test]
fn a_cable_of_100_mbit_is_narrower_than_any_card_and_beats_its_small_writes() {
    let link = Link::cable("eth0", 100_000_000, Some(("USB".into(), 35e6)));
    let large = give(&network::steps(&link, What::SequentialRead), What::SequentialRead, 4);
    near(large.bytes_per_second.value, 11.77e6, 0.02);
    assert_eq!(large.pipes[0].name, "eth0");
    let writes = give(&network::steps(&link, What::RandomWrite), What::RandomWrite, 1);
    assert!(writes.iops.low > 500.0, "{:?}", writes.iops);
}

#[test]
fn a_gigabit_behind_usb_2_is_no_gigabit() {
    let behind = Link::cable("eth0", 1_000_000_000, Some(("USB".into(), 35e6)));
    let free = Link::cable("eth0", 1_000_000_000, None);
    let rate = |link: &Link| {
        let steps = network::steps(link, What::SequentialRead);
        give(&steps, What::SequentialRead, 4).bytes_per_second.value
    };
    near(rate(&behind), 35e6, 0.02);
    near(rate(&free), 117.7e6, 0.02);
}

#[test]
fn two_disks_on_one_bus_gain_nothing_and_on_two_everything() {
    let member = |name: &str, bus: &str| Member {
        name: name.into(),
        figures: figures("usb2-ssd"),
        buses: vec![(bus.into(), 35e6)],
    };
    let rate = |members: &[Member]| {
        let steps = raid::steps(members, 65536, What::SequentialRead, 8);
        give(&steps, What::SequentialRead, 8).bytes_per_second.value
    };
    let shared = rate(&[member("sda", "USB 2"), member("sdb", "USB 2")]);
    near(shared, 35e6, 1e-9);
    let apart = rate(&[member("sda", "a"), member("sdb", "b")]);
    near(apart, 60e6, 1e-9);
    // One small operation after the other waits for one disk all the same.
    let steps = raid::steps(&[member("sda", "a"), member("sdb", "b")], 65536, What::RandomRead, 1);
    near(give(&steps, What::RandomRead, 1).iops.value, 2400.0, 1e-9);
}

#[test]
fn swap_in_tiers_is_what_its_shares_are() {
    let set_up = swap::SetUp {
        memory_bytes: 1e9,
        pool_share: 0.2,
        writes_on: true,
        ratio: Estimate::exact(3.0),
        page_s: Estimate::exact(20e-6),
        cores: 4,
    };
    near(set_up.carries().value, 1.4, 1e-9);
    assert_eq!(set_up.hits(1.4).value, 1.0);
    near(set_up.hits(1.6).value, 0.6 / 0.8, 1e-9);
    let card = figures("a1-card");
    let steps = set_up.steps(1.6, "mmcblk0", &card, What::RandomRead, 1);
    let expected = 1.0 / (0.75 * 20e-6 + 0.25 / 2300.0);
    near(give(&steps, What::RandomRead, 1).iops.value, expected, 1e-6);
}

#[test]
fn a_cipher_without_instructions_is_narrower_than_a_usb_3_disk_and_adiantum_less_so() {
    let machine = rubus_fixtures::pi3_with_usb_ssd();
    let known = crate::advice::Known::default();
    let aes = cipher::aes(&machine, &known).expect("the example tells its processor");
    // Of four cores.
    assert!(aes.bytes_per_second.high < 4.0 * 100e6, "{aes:?}");
    let adiantum = cipher::adiantum(&aes, &known);
    assert!(adiantum.bytes_per_second.low > aes.bytes_per_second.value);
}
