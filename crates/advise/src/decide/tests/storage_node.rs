//! What a storage node gives through its port.

use super::*;

/// What is read from a disk on USB and sent passes the bus twice: `survey` says so by a rule, and advice counts it.
#[test]
fn a_storage_node_gives_what_its_link_and_the_shared_bus_let_through() {
    let cables = [
        (
            100_000_000,
            11.8e6,
            "while eth0 is full (11.8 MB/s), 11.5 MB/s are left",
            "a full eth0 (11.8 MB/s): 8.3 MB read",
        ),
        (
            1_000_000_000,
            17.5e6,
            "17.5 MB/s at most",
            "a full eth0 (35.0 MB/s behind the USB 2 bus usb1): 25 MB read",
        ),
    ];
    for (bits, most, consequence, unit) in cables {
        let mut machine = fixture::pi3_with_usb_ssd();
        machine.links[0].bits_per_second = Fact::known(bits, "a test");
        let rules = rules::of_machine(&machine).into_iter();
        let mut rules = rules.filter(|found| found.rule == "network-and-disk-share-usb");
        let rule = rules.next().expect("they share it").consequence;
        assert!(rule.contains(consequence), "{rule}");
        let with = [Wish::Class("usb3-ssd".into())];
        let advice = ask(&machine, &Known::default(), Purpose::StorageNode, &with);
        assert!(advice.unit.contains(unit), "{}", advice.unit);
        let in_order = |name: &str| {
            let mut all = advice.candidates.iter();
            let candidate = all.find(|candidate| candidate.name == name);
            let demand = candidate.and_then(|one| one.demand(What::SequentialRead));
            demand.expect("it is weighed").per_second.value
        };
        for on_the_bus in ["sda", "usb3-ssd"] {
            let rate = in_order(on_the_bus);
            assert!(rate <= most && rate > most * 0.85, "{on_the_bus}: {rate} {most}");
        }
        // The card slot is a way of its own.
        let card = in_order("mmcblk0");
        assert!(card >= in_order("sda") && card < 23.1e6, "{card}");
        let mut subjects = advice.subjects.iter();
        let network = subjects.find(|subject| subject.name == "network");
        let network = &network.expect("it has a link").advice;
        let best = advice.candidates[0].name.as_str();
        let is_shared = best != "mmcblk0";
        let says_twice = network.contains("passes the USB 2 bus usb1 twice");
        assert_eq!(is_shared, says_twice, "{network}");
        let is_slower = card > in_order(best) * ALIKE;
        let says_card = network.contains("; mmcblk0, which is not on it, gives");
        assert_eq!(is_slower, says_card, "{network}");
    }
}

/// A port of 1 Gbit/s of its own lets through less than an SSD on USB 3 gives, and so nothing more is worth a change.
#[test]
fn a_storage_node_whose_port_is_full_needs_no_faster_disk() {
    let mut machine = fixture::pi3_with_usb_ssd();
    machine.links[0].bits_per_second = Fact::known(1_000_000_000, "a test");
    machine.links[0].path.clear();
    let fast = MeasuredDisk {
        sequential_read: Some(Estimate::exact(20e6)),
        random_read_deep: Some(Estimate::exact(100e3)),
        random_write_deep: Some(Estimate::exact(100e3)),
        ..MeasuredDisk::default()
    };
    let faster = MeasuredDisk { sequential_read: Some(Estimate::exact(900e6)), ..fast.clone() };
    let now = MeasuredDisk { sequential_read: Some(Estimate::exact(300e6)), ..fast.clone() };
    let known = |card: &MeasuredDisk| Known {
        disks: [("mmcblk0".into(), card.clone()), ("sda".into(), faster.clone())].into(),
        ..Known::default()
    };
    let advice = ask(&machine, &known(&now), Purpose::StorageNode, &[]);
    let best = &advice.candidates[0];
    assert!(best.is_now, "{:?}", advice.because);
    assert!((best.time_s.value - 1.0).abs() < 0.15, "{:?}", best.time_s);
    assert_eq!(best.pipes[0].name, "the link eth0");
    let advice = ask(&machine, &known(&fast), Purpose::StorageNode, &[]);
    assert_eq!(advice.candidates[0].name, "sda", "{:?}", advice.because);
}
