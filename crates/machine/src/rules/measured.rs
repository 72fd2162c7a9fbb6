//! What the figures of a run say about the disk, with the machine's facts beside them.

use super::Look::Figures;
use super::{Rule, Seen, Weight, is_card, narrowest_hop};
use crate::kernel_log::BETTER_SUPPLY;
use rubus_draw::quote::typed;
use rubus_vocabulary::application_class::A1;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::job_names;
use rubus_vocabulary::machine::{BlockDevice, SdStatus};
use rubus_vocabulary::result::{JobResult, Outcome, Run, StallCause, TargetKind};
use rubus_vocabulary::units::{bytes_si, duration_ns, iops, percent, rate_si};

const REPEATED: &str =
    "Stop all other programs and measure again: more than the limit, and they were in the way.";

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "bytes-missing",
        weight: Weight::Danger,
        when: "a capacity test did not get all bytes back as they were written",
        source: "the test itself: each block carries its own address",
        disproof: "Repeat the test in another machine: all bytes come back, and it is memory, cable or reader here.",
        look: Figures(bytes_missing),
    },
    Rule {
        name: "device-failed",
        weight: Weight::Danger,
        when: "the target gave an error while it was measured",
        source: "the kernel's answer to a read or write",
        disproof: "Repeat the run with another cable and port: no error, and the disk is sound.",
        look: Figures(failed),
    },
    Rule {
        name: "undervoltage-while-measuring",
        weight: Weight::Danger,
        when: "the supply voltage fell too low during a run, and had not before",
        source: "Raspberry Pi documentation, get_throttled: bits 0-3 now, 16-19 since the start",
        disproof: "Measure again with another supply: the same rates, and the voltage did not hold the disk back.",
        look: Figures(sagged),
    },
    Rule {
        name: "card-below-its-class",
        weight: Weight::Cost,
        when: "a card gives surely less than half of what the class on it promises",
        source: "SD Physical Layer Simplified Specification, sections 4.13 and 4.15; worn, nearly full and counterfeit cards fall below their class",
        disproof: "Trim the card (`fstrim`), let it rest for an hour and measure again: it reaches its class, and it \
        was only full of old blocks.",
        look: Figures(below_class),
    },
    Rule {
        name: "slow-small-writes",
        weight: Weight::Cost,
        when: "fewer than 100 random writes of 4 KiB per second were measured",
        source: "SD Physical Layer Simplified Specification, section 4.15: A1, made for running applications, promises 500 per second",
        disproof: REPEATED,
        look: Figures(slow_writes),
    },
    Rule {
        name: "slow-commits",
        weight: Weight::Cost,
        when: "fewer than 20 commits per second were measured",
        source: "SQLite documentation: a transaction waits for the medium once or more; WAL with synchronous=NORMAL does not wait at each",
        disproof: REPEATED,
        look: Figures(slow_commits),
    },
    Rule {
        name: "long-stalls",
        weight: Weight::Cost,
        when: "the device stood still for a second or more while it was measured",
        source: "the run's own record of stalls, those of the processor left out",
        disproof: "Trim the disk, let it rest for an hour and measure again: no stall, and it was clearing old \
        blocks.",
        look: Figures(stalled),
    },
    Rule {
        name: "reads-starve-beside-writes",
        weight: Weight::Cost,
        when: "beside a writer surely less than a tenth of the random reads get done",
        source: "Linux documentation, block/bfq-iosched: it serves reads before a stream of writes",
        disproof: "Set the scheduler bfq and measure again: no better, and it is the disk itself that lets reads \
        wait.",
        look: Figures(starved),
    },
    Rule {
        name: "queue-gains-nothing",
        weight: Weight::Cost,
        when: "an SSD behind USB does surely less than 1.2 times as many random reads with 32 at once",
        source: "Linux documentation of usb-storage and uas: bulk-only transport has one command at a time, UAS queues them",
        disproof: "Put the SSD behind another bridge, or on SATA: no better there, and it is the SSD.",
        look: Figures(no_gain),
    },
    Rule {
        name: "bus-is-the-limit",
        weight: Weight::Hint,
        when: "long reads reach 90 % of what the narrowest bus on the way carries",
        source: "operational analysis: behind a full stage a faster one gains nothing",
        disproof: "Put a faster disk on the same plug: it reads faster, and the bus carries more than the finding \
        says.",
        look: Figures(full_bus),
    },
];

/// The disk that was measured; none where that was an array, a loop device or an encrypted volume.
fn disk(run: &Run) -> Option<&BlockDevice> {
    run.machine.measured_disk(run.target.device.as_deref()?)
}

/// The name of the device that was measured, or the target's where the kernel shows none.
fn about(run: &Run) -> String {
    let device = run.target.device.as_deref().and_then(|name| run.machine.measured_device(name));
    device.map_or_else(|| run.target.path.clone(), |device| device.name.clone())
}

/// A suite in the directory that was measured.
fn command_on(run: &Run, suite: &str) -> Option<String> {
    let is_directory = run.target.kind == TargetKind::Directory && run.on.is_none();
    is_directory.then(|| typed(&["rubus", "bench", &run.target.path, "--suite", suite]))
}

/// A job that settled well enough to build on.
fn settled<'a>(run: &'a Run, name: &str) -> Option<&'a JobResult> {
    let result = run.job(name)?;
    (result.outcome != Outcome::Inconclusive && result.operations > 0).then_some(result)
}

fn bytes_missing(run: &Run) -> Vec<Seen> {
    let short = run.findings.iter().filter_map(|finding| match finding {
        Finding::Capacity(capacity) if capacity.is_short() => Some(capacity),
        _ => None,
    });
    short
        .map(|capacity| Seen {
            about: about(run),
            evidence: format!(
                "{} of the {} that were tried came back as they were written",
                bytes_si(capacity.good_bytes),
                bytes_si(capacity.tested_bytes)
            ),
            read_from: "the suite capacity".into(),
            consequence: format!(
                "It says that it has {}. What is written to the rest is lost, or written over something else, without an error.",
                bytes_si(capacity.announced_bytes)
            ),
            fix: "Give it back. Copy what is on it, and check the copies: they may be damaged already.".into(),
            command: None,
        })
        .collect()
}

fn failed(run: &Run) -> Vec<Seen> {
    let of_jobs = run.results.iter().flat_map(|result| &result.doubts);
    let error = run.doubts.iter().chain(of_jobs).find_map(|doubt| match doubt {
        Doubt::TargetFailed { error } => Some(error),
        _ => None,
    });
    error
        .map(|error| Seen {
            about: about(run),
            evidence: format!("it failed while it was measured: {error}"),
            read_from: "the kernel's answer".into(),
            consequence: "A disk that fails once under load fails again; a filesystem on it goes read-only then, or loses files.".into(),
            fix: "Copy what matters away first; then look at `dmesg`, try another cable, port, reader or supply, and measure again.".into(),
            command: None,
        })
        .into_iter()
        .collect()
}

fn sagged(run: &Run) -> Vec<Seen> {
    let of_jobs = run.results.iter().flat_map(|result| &result.doubts);
    let low = run.doubts.iter().chain(of_jobs).any(|doubt| *doubt == Doubt::Undervoltage);
    let power = &run.machine.power;
    if !low || power.has_sagged() {
        return Vec::new();
    }
    vec![Seen {
        about: "the power supply".into(),
        evidence: "the supply voltage fell too low while the disk was measured".into(),
        read_from: power.throttling.source().into(),
        consequence: "It does so whenever the disk works hard. USB disks drop off the bus, cards lose writes, and the clock is held down meanwhile.".into(),
        fix: BETTER_SUPPLY.into(),
        command: None,
    }]
}

/// Bytes per second that a card's class promises for writing in order, with the class that promises most.
fn promised_writing(promises: &SdStatus) -> Option<(String, f64)> {
    let classes = [
        ("V", promises.video_class, f64::from(promises.video_class)),
        ("U", promises.uhs_grade, f64::from(promises.uhs_grade) * 10.0),
        ("C", promises.speed_class, f64::from(promises.speed_class)),
    ];
    let best = classes.into_iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    (best.2 > 0.0).then(|| (format!("{}{}", best.0, best.1), best.2 * 1e6))
}

fn below_class(run: &Run) -> Vec<Seen> {
    let Some((disk, promises)) = disk(run)
        .filter(|disk| is_card(disk))
        .and_then(|disk| Some((disk, disk.mmc.as_ref()?.promises.value()?)))
    else {
        return Vec::new();
    };
    let mut missed = Vec::new();
    if promises.application_class > 0 {
        let random = [
            (job_names::RANDOM_READ, "random reads", A1.read_iops),
            (job_names::RANDOM_WRITE, "random writes", A1.write_iops),
        ];
        for (name, what, least) in random {
            if let Some(result) = settled(run, name).filter(|result| result.iops.high < least / 2.0)
            {
                let got = iops(result.iops.value);
                missed.push(format!(
                    "{got} {what} per second (A{}: {least})",
                    promises.application_class
                ));
            }
        }
    }
    if let Some((class, least)) = promised_writing(promises) {
        let writing = settled(run, job_names::SEQUENTIAL_WRITE);
        if let Some(result) = writing.filter(|result| result.bytes_per_second.high < least / 2.0) {
            let got = rate_si(result.bytes_per_second.value);
            missed.push(format!("{got} written in order ({class}: {})", rate_si(least)));
        }
    }
    if missed.is_empty() {
        return Vec::new();
    }
    let source = disk.mmc.as_ref().map(|mmc| mmc.promises.source());
    vec![Seen {
        about: disk.name.clone(),
        evidence: format!("less than half of what the card promises: {}", missed.join(", ")),
        read_from: format!("{} and this run", source.unwrap_or_default()),
        consequence: "The card is worn, nearly full, counterfeit, or in a slot too slow for it. A worn card gets slower until it refuses writes; a counterfeit loses what is written beyond its real size.".into(),
        fix: "Measure it in another slot. An empty card: test its capacity (that overwrites it). If it stays slow, replace it while it can still be copied.".into(),
        command: Some(format!("sudo rubus bench /dev/{} --suite capacity", disk.name)),
    }]
}

/// Below this many random writes per second a desktop is felt to wait.
const SLOW_WRITES: f64 = 100.0;

fn slow_writes(run: &Run) -> Vec<Seen> {
    settled(run, job_names::RANDOM_WRITE)
        // Another card for the system changes nothing on a share.
        .filter(|_| run.target.nas.is_none())
        .filter(|result| result.block_bytes == 4096 && result.iops.high < SLOW_WRITES)
        .map(|result| Seen {
            about: about(run),
            evidence: format!("{} random writes of 4 KiB per second", iops(result.iops.value)),
            read_from: "this run".into(),
            consequence: format!(
                "The 500 that class A1 asks for in one second take {}: programs wait while anything is installed, logged or synchronised.",
                duration_ns((A1.write_iops / result.iops.value * 1e9) as u64)
            ),
            fix: "Move the system to a USB SSD, or to a card of class A1 that is what it says.".into(),
            command: Some("rubus advise desktop".into()),
        })
        .into_iter()
        .collect()
}

/// Below this many commits per second package installations and databases crawl.
const SLOW_COMMITS: f64 = 20.0;

fn slow_commits(run: &Run) -> Vec<Seen> {
    settled(run, job_names::COMMIT)
        .filter(|result| result.iops.high < SLOW_COMMITS)
        .map(|result| Seen {
            about: about(run),
            evidence: format!("{} commits per second", iops(result.iops.value)),
            read_from: "this run".into(),
            consequence: format!(
                "Each takes {}. A package manager or a database that commits 500 times waits {}.",
                duration_ns((1e9 / result.iops.value) as u64),
                duration_ns((500e9 / result.iops.value) as u64)
            ),
            fix: "Commit less often: many changes in one transaction, SQLite in WAL mode with synchronous=NORMAL; or data that must be durable on an SSD.".into(),
            command: None,
        })
        .into_iter()
        .collect()
}

/// Every user notices a stall of this length.
const LONG_STALL_MS: f64 = 1000.0;

fn stalled(run: &Run) -> Vec<Seen> {
    let stalls: Vec<f64> = run
        .results
        .iter()
        .flat_map(|result| &result.stalls)
        .filter(|stall| stall.cause == StallCause::Device && stall.length_ms >= LONG_STALL_MS)
        .map(|stall| stall.length_ms)
        .collect();
    let longest = stalls.iter().copied().fold(0.0, f64::max);
    let is_remote = run.target.network.is_some();
    if stalls.is_empty() {
        return Vec::new();
    }
    vec![Seen {
        about: about(run),
        evidence: match stalls.len() {
            1 => "it stood still for a second or more once".into(),
            count => format!("it stood still for a second or more {count} times"),
        },
        read_from: "this run".into(),
        consequence: format!(
            "Up to {} in which everything that needs the disk waits. {}",
            duration_ns((longest * 1e6) as u64),
            if is_remote {
                "The disk behind the server, the server itself or the network between may do that."
            } else {
                "Cards and sticks do that while they make room for new data."
            }
        ),
        fix: if is_remote { "Measure the disk on the server itself, and look at both while it happens." } else { "Keep a fifth of it free and trimmed (fstrim), and little unwritten data in memory (vm.dirty_bytes of two seconds of the disk); a good card or an SSD does not do it." }
        .into(),
        command: Some("rubus watch".into()),
    }]
}

fn starved(run: &Run) -> Vec<Seen> {
    let (Some(alone), Some(beside)) =
        (settled(run, job_names::RANDOM_READ), run.job(job_names::BYSTANDER_READ))
    else {
        return Vec::new();
    };
    let share = beside.iops.value / alone.iops.value.max(f64::MIN_POSITIVE);
    if beside.operations == 0 || beside.iops.high >= alone.iops.low * 0.1 {
        return Vec::new();
    }
    let disk = disk(run);
    let scheduler = disk.and_then(|disk| disk.scheduler.text());
    vec![Seen {
        about: about(run),
        evidence: format!(
            "beside a program that writes, {} random reads per second instead of {} ({})",
            iops(beside.iops.value),
            iops(alone.iops.value),
            percent(share)
        ),
        read_from: "this run".into(),
        consequence: format!(
            "While something is copied or updated, a program that starts in 2 s takes {} or so.",
            duration_ns((2e9 / share.max(1e-4)) as u64)
        ),
        fix: match (disk, scheduler) {
            // Without a scheduler of its own, as a loop device or an array, the disks below decide.
            (None, _) | (Some(_), Some("bfq")) => "Copy with less at once (ionice -c3, rsync --bwlimit), and keep vm.dirty_bytes at two seconds of the disk.".into(),
            (Some(disk), _) => format!(
                "Try the scheduler bfq (echo bfq into /sys/block/{}/queue/scheduler) and vm.dirty_bytes of two seconds of the disk, and measure again.",
                disk.name
            ),
        },
        command: None,
    }]
}

fn no_gain(run: &Run) -> Vec<Seen> {
    let Some((disk, hop)) = disk(run).and_then(|disk| Some((disk, disk.usb_device()?))) else {
        return Vec::new();
    };
    let is_ssd = disk.rotational.get() == Some(false) && disk.removable.get() != Some(true);
    let (Some(one), Some(deep)) =
        (settled(run, job_names::RANDOM_READ), settled(run, job_names::RANDOM_READ_DEEP))
    else {
        return Vec::new();
    };
    // Where a core is busy or polls, a missing gain is perhaps the processor's, not the bridge's.
    let is_busy = deep.is_cpu_bound() || deep.polled;
    if !is_ssd || is_busy || deep.iops.high / one.iops.low >= 1.2 {
        return Vec::new();
    }
    let driver = hop.driver.text().unwrap_or("its driver");
    vec![Seen {
        about: disk.name.clone(),
        evidence: format!(
            "{} random reads per second one at a time, {} with 32 at once, behind {} ({driver})",
            iops(one.iops.value),
            iops(deep.iops.value),
            hop.name
        ),
        read_from: "this run".into(),
        consequence: "The bridge takes one command at a time. An SSD that may queue does three to ten times as many: several programs then do not wait for each other.".into(),
        fix: "A bridge with UAS (JMS583, ASM2362, RTL9210), at a USB 3 port where the board has one.".into(),
        command: command_on(run, "queue-depth"),
    }]
}

fn full_bus(run: &Run) -> Vec<Seen> {
    let Some((disk, (hop, carries))) =
        disk(run).and_then(|disk| Some((disk, narrowest_hop(disk)?)))
    else {
        return Vec::new();
    };
    settled(run, job_names::SEQUENTIAL_READ)
        .filter(|result| result.bytes_per_second.low >= 0.9 * carries && result.bytes_per_second.value <= 1.25 * carries)
        .map(|result| Seen {
            about: disk.name.clone(),
            evidence: format!(
                "long reads at {}, {} of what {} carries",
                rate_si(result.bytes_per_second.value),
                percent(result.bytes_per_second.value / carries),
                hop.link
            ),
            read_from: "this run".into(),
            consequence: "A faster disk on this bus reads long files no faster. Small random operations can still gain.".into(),
            fix: "A wider bus (a USB 3 port, another slot or board), or data that is compressed before it comes this way.".into(),
            command: None,
        })
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::commands::{bare, gap};
    use crate::rules::{all, of_run};
    use rubus_fixtures::{capacity_run, slow_sd_card_run};
    use rubus_stats::estimate::Estimate;
    use rubus_vocabulary::fact::Fact;
    use rubus_vocabulary::machine::{BlockKind, HopKind, Throttling};
    use rubus_vocabulary::rule_finding::RuleFinding;

    type Change = fn(&mut Run);
    const AS_IT_IS: Change = |_| {};

    fn result<'a>(run: &'a mut Run, name: &str) -> &'a mut JobResult {
        let found = run.results.iter_mut().find(|result| result.job == name);
        found.expect("a job of the example")
    }

    fn rate(run: &mut Run, name: &str, iops: f64) {
        let result = result(run, name);
        result.iops = Estimate::exact(iops);
        result.bytes_per_second = Estimate::exact(iops * f64::from(result.block_bytes));
        result.outcome = Outcome::Converged;
    }

    /// The same figures on the SSD behind the USB bridge.
    fn on_the_ssd(run: &mut Run) {
        run.target.device = Some("sda1".into());
        let ssd = run.machine.block_devices.iter_mut().find(|device| device.name == "sda");
        let ssd = ssd.expect("the SSD of the example");
        ssd.rotational = Fact::known(false, "a test");
        assert!(ssd.path.iter().any(|hop| hop.kind == HopKind::UsbDevice));
    }

    fn never_low(run: &mut Run) {
        run.machine.power.throttling = Fact::known(Throttling::decode(0), "a test");
        run.machine.power.undervoltage_alarm = Fact::known(false, "a test");
    }

    /// A rule, what makes the example a run that it speaks of, and what makes it one that it does not.
    const CASES: &[(&str, Change, Change)] = &[
        ("bytes-missing", |run| run.findings = capacity_run().findings, AS_IT_IS),
        (
            "device-failed",
            |run| run.doubts.push(Doubt::TargetFailed { error: "Input/output error".into() }),
            AS_IT_IS,
        ),
        ("undervoltage-while-measuring", never_low, AS_IT_IS),
        ("card-below-its-class", AS_IT_IS, |run| {
            for (job, iops) in [
                (job_names::RANDOM_READ, 1600.0),
                (job_names::RANDOM_WRITE, 510.0),
                (job_names::SEQUENTIAL_WRITE, 31.0),
            ] {
                rate(run, job, iops);
            }
        }),
        ("slow-small-writes", AS_IT_IS, |run| rate(run, job_names::RANDOM_WRITE, 510.0)),
        (
            "slow-commits",
            |run| rate(run, job_names::COMMIT, 12.0),
            |run| rate(run, job_names::COMMIT, 200.0),
        ),
        ("long-stalls", AS_IT_IS, |run| {
            run.results.iter_mut().for_each(|result| result.stalls.clear());
        }),
        ("reads-starve-beside-writes", AS_IT_IS, |run| rate(run, job_names::BYSTANDER_READ, 400.0)),
        ("queue-gains-nothing", on_the_ssd, |run| {
            on_the_ssd(run);
            rate(run, job_names::RANDOM_READ_DEEP, 9000.0);
        }),
        ("bus-is-the-limit", AS_IT_IS, |run| rate(run, job_names::SEQUENTIAL_READ, 12.0)),
    ];

    fn fires(rule: &str, change: Change) -> bool {
        let mut run = slow_sd_card_run();
        change(&mut run);
        let found = of_run(&run);
        for finding in &found {
            assert_eq!(gap(finding), None, "{finding:?}");
            assert_eq!(bare(finding), None, "{finding:?}");
        }
        found.iter().any(|finding| finding.rule == rule)
    }

    /// Its file is on the card; what the run says is of the loop device, whose scheduler and bus the card's are not.
    fn on_a_loop_device(run: &mut Run) {
        let card = run.target.device.replace("loop1".into());
        let mut device = run.machine.block_devices[0].clone();
        (device.name, device.kind, device.parent) = ("loop1".into(), BlockKind::Loop, None);
        device.below = card.into_iter().collect();
        device.path.clear();
        device.mmc = None;
        run.machine.block_devices.push(device);
    }

    #[test]
    fn a_run_on_a_loop_device_says_nothing_of_the_disk_below() {
        let mut run = slow_sd_card_run();
        on_a_loop_device(&mut run);
        let names: Vec<&str> =
            all().filter(|rule| rule.needs_figures()).map(|rule| rule.name).collect();
        let found = of_run(&run);
        let found: Vec<&RuleFinding> =
            found.iter().filter(|finding| names.contains(&finding.rule.as_str())).collect();
        assert!(found.len() > 2, "{found:?}");
        assert!(found.iter().all(|finding| finding.about == "loop1"), "{found:?}");
        assert!(!found.iter().any(|finding| finding.fix.contains("bfq")), "{found:?}");
    }

    #[test]
    fn each_rule_speaks_of_one_run_and_is_silent_on_another() {
        let wrong: Vec<String> = CASES
            .iter()
            .filter(|(rule, fire, calm)| !fires(rule, *fire) || fires(rule, *calm))
            .map(|(rule, fire, calm)| {
                format!("{rule}: {} and {}", fires(rule, *fire), fires(rule, *calm))
            })
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn each_rule_about_figures_is_tried() {
        let rules: Vec<&str> =
            all().filter(|rule| rule.needs_figures()).map(|rule| rule.name).collect();
        let tried: Vec<&str> = CASES.iter().map(|case| case.0).collect();
        assert_eq!(rules, tried);
    }

    #[test]
    fn where_a_core_is_busy_the_bridge_is_not_blamed() {
        assert!(fires("queue-gains-nothing", on_the_ssd));
        assert!(!fires("queue-gains-nothing", |run| {
            on_the_ssd(run);
            let bound = rubus_vocabulary::doubt::Doubt::CpuBound { share: 0.97 };
            result(run, job_names::RANDOM_READ_DEEP).doubts.push(bound);
        }));
        assert!(!fires("queue-gains-nothing", |run| {
            on_the_ssd(run);
            result(run, job_names::RANDOM_READ_DEEP).polled = true;
        }));
    }

    #[test]
    fn what_did_not_settle_and_what_was_not_measured_say_nothing() {
        let mut run = slow_sd_card_run();
        never_low(&mut run);
        run.doubts.clear();
        for result in &mut run.results {
            result.outcome = Outcome::Inconclusive;
            result.stalls.clear();
            result.doubts.clear();
        }
        let measured = |run: &Run| -> Vec<String> {
            let names: Vec<&str> =
                all().filter(|rule| rule.needs_figures()).map(|rule| rule.name).collect();
            let found = of_run(run).into_iter().map(|finding| finding.rule);
            found.filter(|rule| names.contains(&rule.as_str())).collect()
        };
        assert!(measured(&run).is_empty(), "{:?}", measured(&run));
        run.results.clear();
        assert!(measured(&run).is_empty(), "{:?}", measured(&run));
    }

    #[test]
    fn of_one_weight_what_was_measured_comes_first() {
        let found = of_run(&slow_sd_card_run());
        let weights: Vec<Weight> = found.iter().map(|finding| finding.weight).collect();
        assert!(weights.is_sorted(), "{weights:?}");
        let costs = found.iter().find(|finding| finding.weight == Weight::Cost);
        assert_eq!(costs.map(|finding| finding.rule.as_str()), Some("card-below-its-class"));
    }
}
