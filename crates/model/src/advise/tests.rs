//! Advice on machines whose answer is known.

use rubus_core::advice::{Advice, Known, Purpose, What, Wish};
use rubus_core::fact::Fact;
use rubus_core::fixture;
use rubus_core::history::RunId;
use rubus_core::machine::Machine;
use rubus_core::verdict::job;

use super::*;

fn ask(machine: &Machine, known: &Known, purpose: Purpose, with: &[Wish]) -> Advice {
    let question = Question {
        machine,
        known,
        purpose,
        with,
    };
    advise(&question).expect("the wishes are there")
}

fn pi3(purpose: Purpose) -> Advice {
    let machine = fixture::pi3_with_usb_ssd();
    ask(&machine, &Known::default(), purpose, &[])
}

#[test]
fn an_ssd_on_usb_2_beats_the_card_for_a_desktop() {
    let advice = pi3(Purpose::Desktop);
    let now = advice.now().expect("the root is on the card");
    assert_eq!(now.name, "mmcblk0");
    let best = &advice.candidates[0];
    assert!(best.time_s.value < now.time_s.value);
    assert!(advice.because.len() == 3, "{:?}", advice.because);
    for pair in advice.candidates.windows(2) {
        assert!(
            pair[0].time_s.value <= pair[1].time_s.value * ALIKE,
            "{} before {}",
            pair[0].name,
            pair[1].name
        );
    }
}

#[test]
fn what_was_measured_is_what_is_said() {
    let run = fixture::slow_sd_card_run();
    let machine = run.machine.clone();
    let known = Known::of(&machine, &[(RunId(7), run.clone())]);
    let advice = ask(&machine, &known, Purpose::Desktop, &[]);
    let card = advice
        .candidates
        .iter()
        .find(|candidate| candidate.name == "mmcblk0")
        .expect("the card is there");
    assert!(card.is_measured);
    let near = |found: f64, name: &str, is_rate: bool| {
        let result = run.job(name).expect("it was measured");
        let truth = if is_rate {
            result.bytes_per_second
        } else {
            result.iops
        };
        assert!(
            (found / truth.value - 1.0).abs() < 0.02,
            "{name}: {found} is not {}",
            truth.value
        );
    };
    near(card.figures.random_write.value, job::RANDOM_WRITE, false);
    near(card.figures.random_read.value, job::RANDOM_READ, false);
    near(card.figures.commits.value, job::COMMIT, false);
    near(
        card.figures.sequential_read.value,
        job::SEQUENTIAL_READ,
        true,
    );
    // And it needs no measuring again.
    let asks = |unknown: &rubus_core::advice::Unknown| unknown.what.contains("mmcblk0");
    assert!(!advice.unknown.iter().any(asks), "{:?}", advice.unknown);
    let worst = card.largest().map(|demand| demand.what);
    assert_eq!(worst, Some(What::RandomWrite));
}

#[test]
fn every_measurement_is_of_something_that_is_there() {
    for purpose in Purpose::ALL {
        for unknown in pi3(purpose).unknown {
            let Some(words) = unknown.measurement else {
                continue;
            };
            assert_eq!(words[..2], ["rubus", "bench"]);
            let is_there = words[2] == "memory" || words[2].starts_with('/');
            assert!(is_there, "{words:?}");
        }
    }
}

#[test]
fn a_directory_with_a_space_stays_one_word() {
    let mut machine = fixture::pi3_with_usb_ssd();
    for mount in &mut machine.mounts {
        if mount.point != "/" && !mount.point.starts_with("/boot") {
            mount.point = "/media/my disk".into();
        }
    }
    let advice = ask(&machine, &Known::default(), Purpose::Logger, &[]);
    let targets: Vec<String> = advice
        .unknown
        .iter()
        .filter_map(|unknown| unknown.measurement.as_ref()?.get(2).cloned())
        .collect();
    assert!(
        targets.iter().any(|target| target == "/media/my disk"),
        "{targets:?}"
    );
}

#[test]
fn two_disks_on_one_bus_are_said_to_gain_nothing() {
    let mut machine = fixture::pi3_with_usb_ssd();
    let mut second = machine
        .device("sda")
        .cloned()
        .expect("the example has a USB disk");
    second.name = "sdb".into();
    second.serial = Fact::known("other".into(), "a test");
    machine.block_devices.push(second);
    let with = [Wish::Stripe(vec!["sda".into(), "sdb".into()])];
    let advice = ask(&machine, &Known::default(), Purpose::StorageNode, &with);
    let find = |name: &str| {
        let mut all = advice.candidates.iter();
        all.find(|candidate| candidate.name == name)
            .expect("it is weighed")
    };
    let gain = find("raid0:sda,sdb").figures.sequential_read.value
        / find("sda").figures.sequential_read.value;
    assert!(gain < 1.2, "{gain}");
    let raid = advice
        .subjects
        .iter()
        .find(|subject| subject.name == "raid");
    let raid = raid.expect("there are two disks");
    assert!(raid.advice.contains("no gain"), "{}", raid.advice);
    assert_eq!(raid.command, None);
}

#[test]
fn a_disk_that_is_not_there_is_no_disk() {
    let machine = fixture::pi3_with_usb_ssd();
    let question = Question {
        machine: &machine,
        known: &Known::default(),
        purpose: Purpose::Desktop,
        with: &[Wish::Stripe(vec!["sda".into(), "sdz".into()])],
    };
    let error = advise(&question).expect_err("there is no sdz");
    assert!(
        error.contains("no disk sdz") && error.contains("sda"),
        "{error}"
    );
}

#[test]
fn of_a_machine_that_tells_nothing_nothing_is_made_up() {
    let machine = fixture::unreadable_machine();
    for purpose in Purpose::ALL {
        let advice = ask(&machine, &Known::default(), purpose, &[]);
        assert!(advice.command.is_none());
        assert!(advice.candidates.is_empty(), "{:?}", advice.candidates);
        assert!(
            advice.because[0].contains("no disk"),
            "{:?}",
            advice.because
        );
    }
}

#[test]
fn the_swap_that_carries_more_is_ranked_by_what_it_does_at_the_same_load() {
    let advice = pi3(Purpose::Swap);
    let zswap = advice
        .candidates
        .iter()
        .find(|candidate| candidate.name.starts_with("zswap+sda"))
        .expect("there is a disk");
    let carries = zswap.swap.expect("it is swap").carries;
    assert!(
        (carries.value - (1.0 + 0.2 * 1.7)).abs() < 1e-9,
        "{carries:?}"
    );
    assert!(advice.candidates.iter().any(|candidate| candidate.is_now));
}

#[test]
fn more_link_never_wants_more_compression() {
    let advice = pi3(Purpose::Desktop);
    let curve = advice.curve.expect("there is a processor");
    let is_plain: Vec<bool> = curve
        .points
        .iter()
        .map(|point| point.best == "none")
        .collect();
    assert!(
        is_plain.windows(2).all(|pair| pair[0] <= pair[1]),
        "{is_plain:?}"
    );
    for point in &curve.points {
        let plain = &point.writes[0];
        assert_eq!(plain.method, "none");
        assert_eq!(plain.bytes_per_second.value, point.link_bytes_per_second);
    }
}
