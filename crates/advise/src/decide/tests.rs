//! Advice on machines whose answer is known.

use crate::advice::{ALIKE, Advice, Basis, Candidate, Known, MeasuredDisk, WORTH_A_CHANGE, Wish};
use rubus_draw::style::Style;
use rubus_fixtures as fixture;
use rubus_machine::purpose::{Purpose, What};
use rubus_machine::rules;
use rubus_runs::history::RunId;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::job_names;
use rubus_vocabulary::machine::Machine;

use super::*;

mod evidence;
mod order;
mod storage_node;

fn ask(machine: &Machine, known: &Known, purpose: Purpose, with: &[Wish]) -> Advice {
    let question = Question { machine, known, purpose, with };
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
    assert!(advice.because.len() == 4, "{:?}", advice.because);
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
fn a_disk_that_was_not_measured_is_to_be_measured_first() {
    let advice = pi3(Purpose::Desktop);
    let answer = &advice.because[0];
    assert!(answer.starts_with("Move the system to sda "), "{answer}");
    assert!(answer.ends_with("not measured here."), "{answer}");
    let text = crate::text::render(&advice, crate::text::Depth::default(), Style::PLAIN);
    assert!(text.contains("To do: rubus checkup /"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("(measure it first; then: rubus plan desktop"), "{text}");
}

#[test]
fn each_row_above_the_advised_one_has_its_reason() {
    let purposes = [Purpose::Desktop, Purpose::Server, Purpose::Logger, Purpose::StorageNode];
    let mut reasons = std::collections::BTreeSet::new();
    let machines = [fixture::pi3_with_usb_ssd(), fixture::slow_sd_card_run().machine];
    for machine in machines {
        let with = ["usb2-ssd", "a1-card"].map(|id| Wish::Class(id.into()));
        let with = [&with[..], &[Wish::Network(String::new())]].concat();
        for purpose in purposes {
            let advice = ask(&machine, &Known::default(), purpose, &with);
            let Some(best) = advice.candidates.first() else { continue };
            let passed_over = advice.passed_over();
            let above = crate::text::rows(&advice);
            let above = above.iter().filter(|row| row.time_s.value < best.time_s.value);
            for row in above {
                let found = passed_over.iter().find(|(other, _)| other.name == row.name);
                let (_, reason) = found.unwrap_or_else(|| panic!("no reason for {}", row.name));
                reasons.insert(*reason);
            }
        }
    }
    assert!(reasons.len() > 1, "{reasons:?}");
}

#[test]
fn what_is_there_is_measured_before_another_is_bought() {
    let machine = fixture::pi3_with_usb_ssd();
    let mut advice = ask(&machine, &Known::default(), Purpose::Desktop, &[]);
    let card = advice.candidates.iter().position(|candidate| candidate.is_now).expect("a card");
    let mut bought = advice.candidates[0].clone();
    (bought.name, bought.euros, bought.is_here) = ("a1-card".into(), (8, 20), false);
    advice.candidates = vec![bought, advice.candidates[card].clone()];
    advice.command = None;
    let step = advice.next_step();
    assert_eq!(step.words, "measure what you have before you buy");
    assert_eq!(step.command.expect("a measurement")[..2], ["rubus", "checkup"]);
}

#[test]
fn a_column_of_prices_has_prices() {
    let mut advice = pi3(Purpose::Desktop);
    let shown = |advice: &Advice| {
        crate::text::render(advice, crate::text::Depth::default(), Style::PLAIN).contains("~EUR")
    };
    for candidate in &mut advice.candidates {
        candidate.euros = (0, 0);
    }
    assert!(!shown(&advice));
    advice.candidates[0].euros = (25, 50);
    assert!(shown(&advice));
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
        let truth = if is_rate { result.bytes_per_second } else { result.iops };
        assert!((found / truth.value - 1.0).abs() < 0.02, "{name}: {found} is not {}", truth.value);
    };
    near(card.figures.random_write.value, job_names::RANDOM_WRITE, false);
    near(card.figures.random_read.value, job_names::RANDOM_READ, false);
    near(card.figures.commits.value, job_names::COMMIT, false);
    near(card.figures.sequential_read.value, job_names::SEQUENTIAL_READ, true);
    // And it needs no measuring again.
    let asks = |unknown: &crate::advice::Unknown| unknown.what.contains("mmcblk0");
    assert!(!advice.unknown.iter().any(asks), "{:?}", advice.unknown);
    let worst = card.largest().map(|demand| demand.what);
    assert_eq!(worst, Some(What::Commit));
}

/// A card that keeps up with a logger needs no change, though others are faster; one that may not keep up does.
#[test]
fn what_is_enough_comes_first_and_what_is_faster_is_still_listed() {
    let machine = fixture::pi3_with_usb_ssd();
    let with_commits = |commits: f64| {
        let card = MeasuredDisk {
            commits: Some(Estimate::new(commits, commits * 0.9, commits * 1.1)),
            sequential_write: Some(Estimate::exact(15e6)),
            ..MeasuredDisk::default()
        };
        let known = Known { disks: [("mmcblk0".to_string(), card)].into(), ..Known::default() };
        ask(&machine, &known, Purpose::Logger, &[])
    };
    let advice = with_commits(40.0);
    let (now, others) = advice.candidates.split_first().expect("there is a card");
    assert!(now.is_now, "{}", now.name);
    let is_faster = |other: &Candidate| other.time_s.value < now.time_s.value / WORTH_A_CHANGE;
    assert!(others.iter().any(is_faster));
    let said = &advice.because[1];
    assert!(said.contains("26 % of the time and 28 % at most: nothing to change."), "{said}");
    assert!(said.contains("The fastest that was weighed"), "{said}");
    assert_eq!(advice.command, None);
    // In the mean it keeps up, and perhaps it does not.
    let advice = with_commits(10.5);
    assert!(!advice.candidates[0].is_now, "{:?}", advice.because);
}

/// A disk that is enough for a logger, which only has to keep up, keeps a desktop's user waiting.
#[test]
fn what_is_enough_is_less_where_a_user_waits() {
    let advice = pi3(Purpose::Desktop);
    let mut candidate = advice.candidates[0].clone();
    let enough_for = |high: f64, candidate: &mut Candidate| {
        candidate.time_s = Estimate::new(high / 2.0, high / 4.0, high);
        Purpose::ALL.map(|purpose| candidate.is_enough(purpose))
    };
    // Desktop, server, logger, storage node, swap.
    assert_eq!(enough_for(0.3, &mut candidate), [true; 5]);
    assert_eq!(enough_for(0.4, &mut candidate), [false, true, true, true, false]);
    assert_eq!(enough_for(0.9, &mut candidate), [false, false, true, true, false]);
    assert_eq!(enough_for(1.1, &mut candidate), [false; 5]);
}

/// Only sequential reads were measured: that is said, and the rest is neither called measured nor forgotten.
#[test]
fn a_disk_that_is_partly_measured_says_what_was_and_what_was_not() {
    let mut run = fixture::slow_sd_card_run();
    run.results.retain(|result| result.job == job_names::SEQUENTIAL_READ);
    let machine = run.machine.clone();
    let known = Known::of(&machine, &[(RunId(7), run)]);
    let advice = ask(&machine, &known, Purpose::Desktop, &[]);
    let card = advice.now().expect("the root is on it");
    assert!(!card.is_measured);
    assert_eq!(card.basis.sequential_read, Basis::Measured);
    assert_ne!(card.basis.random_write, Basis::Measured);
    assert!(card.source.starts_with("reading in order measured on"));
    assert!(card.source.contains("the rest not measured"));
    let open = advice.unknown.iter();
    let mut open = open.filter(|unknown| unknown.what.starts_with("mmcblk0"));
    let words = &open.next().expect("the rest is open").what;
    assert!(
        words.contains("measured: reading in order; not: writing in order, random reads"),
        "{words}"
    );
}

#[test]
fn what_wins_on_assumed_figures_is_said_to_in_the_same_sentence() {
    let mut machines: Vec<Machine> = vec![fixture::pi3_with_usb_ssd()];
    machines.push(fixture::slow_sd_card_run().machine);
    let mut assumed_winners = 0;
    for machine in &machines {
        for purpose in Purpose::ALL {
            let with = [Wish::Network(String::new())];
            let advice = ask(machine, &Known::default(), purpose, &with);
            let best = &advice.candidates[0];
            let is_assumed = best.basis.time_s == Basis::Assumed;
            assumed_winners += usize::from(is_assumed);
            assert_eq!(
                is_assumed,
                advice.because[1].contains("assumed figures"),
                "{}",
                advice.because[1]
            );
        }
    }
    assert!(assumed_winners > 0, "nothing was tried");
}

/// A logger needs commits, for which there are no published figures.
#[test]
fn an_unmeasured_network_disk_is_assumed_but_for_its_link() {
    let machine = fixture::pi3_with_usb_ssd();
    let with = [Wish::Network("nbd://nas/root".into())];
    let advice = ask(&machine, &Known::default(), Purpose::Logger, &with);
    let disk = advice.candidates.iter();
    let mut disk = disk.filter(|candidate| candidate.name.starts_with("nbd://"));
    let basis = disk.next().expect("it was wished for").basis;
    assert_eq!(basis.commits, Basis::Assumed);
    assert_eq!(basis.time_s, Basis::Assumed);
    assert_eq!(basis.sequential_read, Basis::Published);
}

#[test]
fn what_the_processor_was_measured_to_do_is_what_ciphers_and_compression_go_by() {
    let run = fixture::processor_run();
    let machine = run.machine.clone();
    let before = ask(&machine, &Known::default(), Purpose::Desktop, &[]);
    let known = Known::of(&machine, &[(RunId(9), run.clone())]);
    let after = ask(&machine, &known, Purpose::Desktop, &[]);
    let curve = |advice: &Advice| advice.curve.clone().expect("there is a processor");
    assert_eq!(curve(&before).basis, Basis::Assumed);
    assert_eq!(curve(&after).basis, Basis::Measured);
    assert!(curve(&after).source.ends_with("run 9"));
    let subject = |advice: &Advice, name: &str| {
        let found = advice.subjects.iter().find(|subject| subject.name == name);
        found.expect("it is said").advice.clone()
    };
    assert!(subject(&before, "compression").contains("~"));
    assert!(!subject(&after, "compression").contains("if data shrinks to ~"));
    assert!(subject(&after, "cipher").contains("run 9"), "{}", subject(&after, "cipher"));
    // Of another processor nothing is taken.
    let mut other = machine.clone();
    other.cpu.model = Fact::known("Cortex-A76".into(), "a test");
    assert_eq!(Known::of(&other, &[(RunId(9), run)]).processor, None);
}

/// Each method's own end: beyond it plain is faster, before it compressed.
#[test]
fn the_break_even_is_where_the_curves_cross() {
    let curve = pi3(Purpose::Desktop).curve.expect("there is a processor");
    for pays in &curve.break_even {
        let end = pays.writes.expect("on a slow link it pays");
        for point in &curve.points {
            let rate = point.writes.iter().find(|rated| rated.method == pays.method);
            let rate = rate.expect("each method is in each row").bytes_per_second.value;
            let is_faster = rate > point.link_bytes_per_second;
            assert_eq!(is_faster, point.link_bytes_per_second < end, "{pays:?}");
        }
        assert!(pays.writes < pays.mix && pays.mix < pays.reads, "{pays:?}");
    }
}

#[test]
fn every_measurement_is_of_something_that_is_there() {
    for purpose in Purpose::ALL {
        for unknown in pi3(purpose).unknown {
            let Some(words) = unknown.measurement else {
                continue;
            };
            assert!(["bench", "checkup"].contains(&words[1].as_str()));
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
    assert!(targets.iter().any(|target| target == "/media/my disk"), "{targets:?}");
}

#[test]
fn two_disks_on_one_bus_are_said_to_gain_nothing() {
    let mut machine = fixture::pi3_with_usb_ssd();
    let mut second = machine.device("sda").cloned().expect("the example has a USB disk");
    second.name = "sdb".into();
    second.serial = Fact::known("other".into(), "a test");
    machine.block_devices.push(second);
    let with = [Wish::Stripe(vec!["sda".into(), "sdb".into()])];
    let advice = ask(&machine, &Known::default(), Purpose::StorageNode, &with);
    let find = |name: &str| {
        let mut all = advice.candidates.iter();
        all.find(|candidate| candidate.name == name).expect("it is weighed")
    };
    let gain = find("raid0:sda,sdb").figures.sequential_read.value
        / find("sda").figures.sequential_read.value;
    assert!(gain < 1.2, "{gain}");
    let raid = advice.subjects.iter().find(|subject| subject.name == "raid");
    let raid = raid.expect("there are two disks");
    assert!(raid.advice.contains("no gain"), "{}", raid.advice);
    assert_eq!(raid.command, None);
}

/// A machine with these spare disks beside its card: USB 3 SSDs by the bus that each is on.
fn with_spare_disks(buses: &[(&str, &str)]) -> Machine {
    let mut machine = fixture::pi3_with_usb_ssd();
    let disk = machine.device("sda").cloned().expect("a USB disk");
    machine.block_devices.retain(|device| device.name != "sda");
    for (name, bus) in buses {
        let mut spare = disk.clone();
        spare.name = (*name).into();
        spare.serial = Fact::known(format!("serial of {name}"), "a test");
        spare.rotational = Fact::known(false, "a test");
        for hop in &mut spare.path {
            hop.id = format!("{bus}-{}", hop.id);
        }
        machine.block_devices.push(spare);
    }
    machine
}

fn raid(machine: &Machine, known: &Known) -> crate::advice::Subject {
    let advice = ask(machine, known, Purpose::Desktop, &[]);
    let mut subjects = advice.subjects.into_iter();
    subjects.find(|subject| subject.name == "raid").expect("there are several disks")
}

/// The first two share a bus, the third has one of its own.
#[test]
fn of_three_spare_disks_those_are_taken_that_share_no_bus() {
    let machine = with_spare_disks(&[("sda", "one"), ("sdb", "one"), ("sdc", "two")]);
    let subject = raid(&machine, &Known::default());
    let command = subject.command.expect("it is worth it");
    assert!(command[3] == "devices=/dev/sda,/dev/sdc", "{command:?}");
    assert!(subject.advice.contains("share no bus"), "{}", subject.advice);
    assert!(subject.advice.contains("with sdb too"), "{}", subject.advice);
    let machine = with_spare_disks(&[("sda", "one"), ("sdb", "two"), ("sdc", "three")]);
    let command = raid(&machine, &Known::default()).command;
    assert_eq!(command.expect("it is worth it")[3], "devices=/dev/sda,/dev/sdb,/dev/sdc");
}

#[test]
fn what_was_measured_at_once_counts_more_than_what_buses_say() {
    let machine = with_spare_disks(&[("sda", "one"), ("sdb", "two")]);
    assert!(raid(&machine, &Known::default()).command.is_some());
    let at_once = |is_read| rubus_recipes::TogetherSpeed {
        disks: vec!["sda".into(), "sdb".into()],
        is_read,
        alone_bytes_per_second: vec![30e6, 30e6],
        together_bytes_per_second: vec![16e6, 16e6],
        source: "a test".into(),
    };
    let known = Known { together: vec![at_once(true), at_once(false)], ..Known::default() };
    let subject = raid(&machine, &known);
    assert_eq!(subject.command, None, "{}", subject.advice);
    assert!(subject.advice.contains("no gain"), "{}", subject.advice);
}

/// An SSD that takes small writes comes before zram, which has no place for what is over; a card does not.
#[test]
fn zswap_comes_first_where_a_disk_takes_it_and_zram_where_none_does() {
    let machine = with_spare_disks(&[("sda", "one")]);
    let advice = ask(&machine, &Known::default(), Purpose::Swap, &[]);
    assert_eq!(advice.candidates[0].name, "zswap+sda");
    let place = |name: &str| advice.candidates.iter().position(|one| one.name == name);
    assert!(place("zram") < place("zswap+mmcblk0"), "{:?}", advice.candidates);
    assert!(
        advice.because.iter().any(|why| why.contains("A pool of 30 %")),
        "{:?}",
        advice.because
    );
    let said = format!("{:?} {:?}", advice.command, advice.to_do);
    assert!(said.contains("swappiness=") && said.contains("max-pool-percent=30"), "{said}");
    let machine = with_spare_disks(&[]);
    let here = ask(&machine, &Known::default(), Purpose::Desktop, &[]);
    let swap = here.subjects.iter().find(|subject| subject.name == "swap");
    let swap = &swap.expect("it is said").advice;
    assert!(swap.starts_with("zram"), "{swap}");
}

/// Swap that stays in memory keeps its place and size; a finding that speaks of swappiness leads to a value.
#[test]
fn swappiness_that_a_finding_speaks_of_is_named() {
    let mut machine = with_spare_disks(&[]);
    for (now, is_named) in [("60", true), ("100", false)] {
        let setting = machine.vm.iter_mut().find(|setting| setting.name == "swappiness");
        setting.expect("it is set").value = Fact::known(now.into(), "a test");
        let found = !rules::of_rule("swappiness-for-disks", &machine).is_empty();
        assert_eq!(found, is_named, "{now}");
        let advice = ask(&machine, &Known::default(), Purpose::Swap, &[]);
        assert!(advice.candidates[0].is_now, "{:?}", advice.candidates[0]);
        let command = advice.command.unwrap_or_default().join(" ");
        let plan = "rubus plan swap to=zram size=906M swappiness=";
        assert_eq!(command.starts_with(plan), is_named, "{now}: {command}");
    }
}

/// Pages that shrink more need a smaller pool, and what pressure was seen to cost is what is counted.
#[test]
fn the_measured_ratio_and_the_measured_page_set_the_pool_and_the_time() {
    let machine = with_spare_disks(&[("sda", "one")]);
    let known = Known { page_ratio: Some(4.0), page_s: Some(50e-6), ..Known::default() };
    let advice = ask(&machine, &known, Purpose::Swap, &[]);
    let best = &advice.candidates[0];
    assert_eq!(best.name, "zswap+sda");
    assert!(
        advice.because.iter().any(|why| why.contains("A pool of 20 %")),
        "{:?}",
        advice.because
    );
    assert_eq!(best.basis.time_s, Basis::Measured);
    assert!((best.time_s.value - 4000.0 * 50e-6).abs() < 0.01, "{:?}", best.time_s);
}

/// An SSD for USB 3 that is put where there is only USB 2 is what it is there, in all that is said of it.
#[test]
fn what_is_wished_for_is_what_it_would_be_on_this_board() {
    let machine = fixture::pi3_with_usb_ssd();
    let wishes = ["usb3-ssd", "usb3-ssd-storage", "usb2-ssd", "nvme", "usb-disk"];
    let with = wishes.map(|id| Wish::Class(id.into()));
    let advice = ask(&machine, &Known::default(), Purpose::Desktop, &with);
    let of = |name: &str| {
        let mut all = advice.candidates.iter();
        all.find(|candidate| candidate.name == name)
            .unwrap_or_else(|| panic!("{name} is not weighed"))
    };
    for name in wishes {
        let read = of(name).figures.sequential_read.value;
        assert!(read <= 35e6, "{name}: {read}");
    }
    for name in ["usb3-ssd", "usb3-ssd-storage", "nvme"] {
        let (one, usb_2) = (of(name), of("usb2-ssd"));
        assert_eq!(one.figures, usb_2.figures, "{name}");
        assert!(one.what.starts_with("SSD on USB 2 ("), "{}", one.what);
    }
    assert!(of("usb3-ssd").what.contains("no USB 3 here"));
    assert!(of("nvme").what.contains("no PCIe here"));
    // With USB 3 it is what its name says.
    let mut machine = machine;
    let revision = Fact::known(
        rubus_vocabulary::machine::Revision {
            board_type: "4B".into(),
            processor: "BCM2711".into(),
            ..machine.board.revision.value().expect("it tells").clone()
        },
        "a test",
    );
    machine.board.revision = revision;
    let advice = ask(&machine, &Known::default(), Purpose::Desktop, &with[..1]);
    let mut all = advice.candidates.iter();
    let ssd = all.find(|candidate| candidate.name == "usb3-ssd");
    let ssd = ssd.expect("it is weighed");
    assert!(ssd.figures.sequential_read.value > 300e6);
    assert_eq!(ssd.what, "SSD on USB 3");
}

/// One row for one way to a network disk, and of a link that says nothing nothing is claimed.
#[test]
fn a_network_disk_is_weighed_once_over_the_link_that_leads_to_it() {
    let address = "nbd://nas/root";
    let names = |machine: &Machine, with: &[Wish]| -> Vec<Candidate> {
        let advice = ask(machine, &Known::default(), Purpose::Desktop, with);
        let all = advice.candidates.into_iter();
        all.filter(Candidate::is_network).collect()
    };
    let mut machine = fixture::pi3_with_usb_ssd();
    let with = [Wish::Network(address.into())];
    let one = |all: Vec<Candidate>| match &all[..] {
        [only] => only.clone(),
        _ => panic!("{all:?}"),
    };
    assert_eq!(one(names(&machine, &with)).name, address);
    assert_eq!(one(names(&machine, &[])).name, "nbd");
    let socket = "nbd+unix:///root?socket=/run/nbd";
    let local = one(names(&machine, &[Wish::Network(socket.into())]));
    assert_eq!(local.what, "network disk behind a Unix socket");
    assert_eq!(local.basis.sequential_read, Basis::Assumed);
    // A paravirtual link is up and tells no rate.
    machine.links[0].bits_per_second = Fact::unknown("it says -1", "a test");
    machine.links[0].path.clear();
    assert!(names(&machine, &[]).is_empty());
    let silent = one(names(&machine, &with));
    assert!(silent.what.ends_with("which does not tell its rate"), "{}", silent.what);
    assert_eq!(silent.basis.sequential_read, Basis::Assumed);
    assert_eq!(silent.basis.time_s, Basis::Assumed);
    // And without one there is no way.
    machine.links.clear();
    let question = Question {
        machine: &machine,
        known: &Known::default(),
        purpose: Purpose::Desktop,
        with: &with,
    };
    let error = advise(&question).expect_err("there is no link");
    assert!(error.contains("no network link that is up"), "{error}");
}

/// The times that rank come first, and the figures behind them are those with as many in flight as the purpose has.
#[test]
fn what_is_said_of_the_network_is_what_it_was_ranked_by() {
    let machine = fixture::pi3_with_usb_ssd();
    let known = Known::default();
    for (purpose, small) in [
        (Purpose::Desktop, "commits ~"),
        (Purpose::Server, "commits ~"),
        (Purpose::Logger, "commits ~"),
    ] {
        let advice = ask(&machine, &known, purpose, &[]);
        let mut all = advice.candidates.iter();
        let net = all.find(|one| one.name == "nbd").expect("it has a link");
        let now = advice.now().expect("there is a card");
        let mut subjects = advice.subjects.iter();
        let said = subjects.find(|subject| subject.name == "network");
        let said = &said.expect("it is weighed").advice;
        let (net_s, now_s) = (words::time(net), words::time(now));
        let times = format!(": {net_s} against {now_s} for one second of this work; ");
        assert!(said.contains(&times) && said.contains(small), "{said}");
        let is_faster = net.time_s.value < now.time_s.value;
        assert_eq!(said.starts_with("Faster"), is_faster, "{said}");
    }
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
    assert!(error.contains("no disk sdz") && error.contains("sda"), "{error}");
}

#[test]
fn of_a_machine_that_tells_nothing_nothing_is_made_up() {
    let machine = fixture::unreadable_machine();
    for purpose in Purpose::ALL {
        let advice = ask(&machine, &Known::default(), purpose, &[]);
        assert!(advice.command.is_none());
        assert!(advice.candidates.is_empty(), "{:?}", advice.candidates);
        assert!(advice.because[0].contains("no disk"), "{:?}", advice.because);
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
    assert!((carries.value - (1.0 + 0.3 * 1.7)).abs() < 1e-9, "{carries:?}");
    assert!(advice.candidates.iter().any(|candidate| candidate.is_now));
}

#[test]
fn more_link_never_wants_more_compression() {
    let advice = pi3(Purpose::Desktop);
    let curve = advice.curve.expect("there is a processor");
    let is_plain: Vec<bool> = curve.points.iter().map(|point| point.best == "none").collect();
    assert!(is_plain.windows(2).all(|pair| pair[0] <= pair[1]), "{is_plain:?}");
    for point in &curve.points {
        let plain = &point.writes[0];
        assert_eq!(plain.method, "none");
        assert_eq!(plain.bytes_per_second.value, point.link_bytes_per_second);
    }
}

#[test]
fn a_container_is_sent_to_its_host() {
    let mut machine = fixture::pi3_with_usb_ssd();
    for purpose in [Purpose::Desktop, Purpose::Swap] {
        machine.system.container = None;
        let outside = ask(&machine, &Known::default(), purpose, &[]);
        let plans = |advice: &Advice| {
            let typed = advice.command.as_ref().map(|command| command.join(" "));
            format!("{typed:?} {:?}", advice.to_do).contains("rubus plan")
        };
        assert!(plans(&outside), "{outside:?}");
        machine.system.container = Some("docker".into());
        let inside = ask(&machine, &Known::default(), purpose, &[]);
        assert_eq!(inside.command, None);
        assert!(inside.subjects.iter().all(|subject| subject.command.is_none()));
        let to_do = inside.to_do.expect("what is done on the host");
        assert!(to_do.starts_with("This is a container (docker). On its host: "), "{to_do}");
    }
}
