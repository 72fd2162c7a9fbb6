//! From a run to a verdict in sentences: which pipe is the narrowest, why, and what follows.
//!
//! The yardstick is the *reference work*: six pieces of real work whose requests were counted
//! ([`rubus_machine::reference_work`]), once each. The time that each kind of operation takes for its share of that work is its
//! *demand* D_i = V_i · S_i (visits times service time at queue depth 1; Denning & Buzen, "The
//! Operational Analysis of Queueing Network Models", ACM Computing Surveys 10(3), 1978). The narrowest
//! pipe is the one with the largest demand. Demands are seconds: they add up and can be checked by
//! hand.

mod answer;
mod certainty;
mod device;
mod pipes;
mod purposes;
mod sentences;
pub mod so_far;
mod works;

use serde::{Deserialize, Serialize};

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::platters::has_platters;
use rubus_vocabulary::result::{Run, TargetKind};

use crate::nas::{self, NasVerdict, Sureness};
use answer::Answer;
use certainty::{certainty, disturbances};
use pipes::{bus_pipes, lowest_ceiling, mark_narrowest, operation_pipes};
use purposes::suitability;
use works::works;

/// A disk that does the reference work within this time, in seconds, has no narrow pipe: our choice.
pub const NARROW_ABOVE_S: f64 = 60.0;

/// A measured rate above this multiple of what a hop can carry cannot have come through it.
const IMPOSSIBLE: f64 = 1.25;

/// What a run means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// What kind of answer it is.
    pub conclusion: Conclusion,
    /// What holds the disk back, the figure that matters, and what it means for a piece of work: at most 25 words.
    pub headline: String,
    /// What could turn the answer round; absent where nothing could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// What to do next.
    pub next: NextStep,
    /// Every stage with its capacity: first the path of buses, then the kinds of operation.
    pub pipes: Vec<Pipe>,
    /// How long each piece of the reference work keeps the device busy; empty unless everything that they ask for was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub works: Vec<WorkTime>,
    /// What else there is to say, the most important first.
    pub sentences: Vec<String>,
    /// What the device is good for.
    pub good_for: Vec<Suitability>,
    /// What disturbed the run or limits what it says, with the remedy.
    pub disturbances: Vec<Disturbance>,
    /// How sure all this is, in one sentence.
    pub certainty: String,
    /// What holds a share of a file server back; absent for what is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nas: Option<NasVerdict>,
}

/// What kind of answer a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// One kind of operation holds the disk back.
    HeldBack,
    /// One probably does; the intervals, or what disturbed the run, leave room for another.
    ProbablyHeldBack,
    /// It does the reference work fast enough.
    FastEnough,
    /// It probably does.
    ProbablyFastEnough,
    /// What was measured is fast enough; some kinds of operation were not measured.
    FastInPart,
    /// Nothing settled, or what was read was not on the disk.
    NoAnswer,
    /// The run was stopped: figures, and no verdict.
    Stopped,
}

/// How long a piece of the reference work keeps the device busy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkTime {
    /// For people: "first start of Chromium".
    pub work: String,
    /// The same as the subject of a sentence: "starting Chromium".
    #[serde(default)]
    pub doing: String,
    /// Seconds, one operation after the other, which is an upper estimate: the processor works beside, and some commits have
    /// nothing to write; the upper end is unbounded where a rate is not known to be above 0.
    pub busy_s: Estimate,
    /// The name of the pipe that most of it is spent in.
    pub mostly: String,
    /// Seconds in that pipe.
    #[serde(default)]
    pub mostly_s: f64,
}

/// One stage of the storage path, with its capacity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pipe {
    /// For people: "USB 2 bus", "4 KiB random writes".
    pub name: String,
    /// Bus or operation.
    pub kind: PipeKind,
    /// Capacity in bytes per second, where that is its measure.
    pub bytes_per_second: Option<Estimate>,
    /// Capacity in operations per second, where that is its measure.
    pub operations_per_second: Option<Estimate>,
    /// Seconds that it needs for its part of the reference work.
    pub demand_s: Option<f64>,
    /// True if the capacity was measured here, false if it is what such a bus usually carries.
    pub measured: bool,
    /// True for exactly one pipe of a verdict, or for none if nothing was measured.
    pub narrowest: bool,
    /// Where the capacity comes from or what limits it.
    pub note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PipeKind {
    /// A hop on the path of buses.
    Bus,
    /// A kind of operation on the device.
    Operation,
}

/// Whether the device suits a purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Suitability {
    /// "logging", "desktop", "swap", "storage node".
    pub purpose: String,
    /// The answer.
    pub grade: Grade,
    /// The numbers behind it.
    pub reason: String,
}

/// An answer about a purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// It suits.
    Good,
    /// It works, with the limits in the reason.
    Limited,
    /// It does not suit.
    Poor,
    /// Not measured, or too uncertain to say.
    Unknown,
}

/// One doubt with the jobs that it concerns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disturbance {
    /// What happened.
    pub what: String,
    /// Which jobs; empty for the whole run.
    pub jobs: Vec<String>,
    /// What to do.
    pub remedy: String,
}

/// Adds the doubts that only the machine's facts can raise: results above what the path can carry, and
/// those of a small part of a disk.
/// Called once, before the run is stored.
pub fn doubt_the_impossible(run: &mut Run) {
    doubt_more_than_the_link(run);
    doubt_a_small_part(run);
    let Some((ceiling, what)) = lowest_ceiling(run).map(|(hop, rate)| (rate, hop.link.clone()))
    else {
        return;
    };
    for result in &mut run.results {
        let rate = result.bytes_per_second.low;
        if rate > ceiling * IMPOSSIBLE {
            let what = what.clone();
            result.doubts.push(Doubt::AboveCeiling { bytes_per_second: rate, ceiling, what });
        }
    }
}

/// A link carries its line rate and never more, and what belongs to the protocols comes off that.
fn doubt_more_than_the_link(run: &mut Run) {
    let Some(link) = run.target.link.clone() else {
        return;
    };
    for result in &mut run.results {
        let rate = result.bytes_per_second.low;
        if rate * 8.0 > link.bits_per_second as f64 {
            result.doubts.push(Doubt::AboveLink {
                bytes_per_second: rate,
                link_bits_per_second: link.bits_per_second,
                interface: link.interface.clone(),
            });
        }
    }
}

/// A user who names a device asks about all of it, and heads seek less in a small file than over the disk. A file on
/// flash is measured as files there are.
fn doubt_a_small_part(run: &mut Run) {
    const SMALL_PART: u64 = 10;
    let bytes = run.target.region_bytes;
    let Some(disk) = pipes::disk(run) else {
        return;
    };
    let has_platters = has_platters(disk) == Some(true);
    let is_asked_for = run.target.kind == TargetKind::Device || has_platters;
    let is_of_blocks = run.results.iter().any(|result| result.operation.is_block());
    let Some(disk_bytes) = disk.size_bytes.get() else {
        return;
    };
    if is_asked_for && is_of_blocks && bytes > 0 && bytes < disk_bytes / SMALL_PART {
        run.doubts.push(Doubt::PartOfDisk { bytes, disk_bytes, has_platters });
    }
}

/// What a run means.
pub fn verdict(run: &Run) -> Verdict {
    let mut pipes = bus_pipes(run);
    pipes.extend(operation_pipes(run));
    let is_stopped = run.doubts.contains(&Doubt::Interrupted);
    if !is_stopped {
        mark_narrowest(&mut pipes);
    }
    let works = if is_stopped { Vec::new() } else { works(&pipes) };
    // A share is asked which stage of the way to it is narrow, not what its disk is good for.
    let is_share = run.target.nas.is_some();
    let good_for = if is_stopped || is_share { Vec::new() } else { suitability(run) };
    let answer = Answer::of(run, &pipes, &works);
    let nas = nas::verdict(run).filter(|_| answer.can_name_a_stage());
    Verdict {
        conclusion: nas.as_ref().map_or(answer.conclusion, |nas| match nas.sureness {
            Sureness::Sure => Conclusion::HeldBack,
            Sureness::Probable => Conclusion::ProbablyHeldBack,
            Sureness::NotKnown => Conclusion::NoAnswer,
        }),
        headline: nas.as_ref().map_or_else(|| answer.headline(run), |nas| nas.headline.clone()),
        reservation: answer.reservation(),
        next: match (&nas, answer.reservation()) {
            (Some(nas), None) => nas.next.clone(),
            _ => answer.next(run, &good_for),
        },
        nas,
        works,
        good_for,
        disturbances: disturbances(run),
        certainty: certainty(run),
        sentences: sentences::all(run),
        pipes,
    }
}

#[cfg(test)]
mod tests {
    use super::purposes::logging;
    use super::sentences::class_in_words;
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::fact::Fact;
    use rubus_vocabulary::job_names;
    use rubus_vocabulary::result::JobResult;
    use rubus_vocabulary::spec::Direction;

    #[test]
    fn a_slow_card_is_narrowest_at_its_commits() {
        let verdict = verdict(&fixture::slow_sd_card_run());
        assert_eq!(
            verdict.headline,
            "Commits hold the SD card mmcblk0 back: 23.0 per second. Installing software waits about 17 min for it, 14 min \
             in commits."
        );
        let narrowest: Vec<&str> =
            verdict.pipes.iter().filter(|p| p.narrowest).map(|p| p.name.as_str()).collect();
        assert_eq!(narrowest, ["commits"]);
    }

    #[test]
    fn what_the_intervals_do_not_tell_apart_is_named_together() {
        let mut run = fixture::slow_sd_card_run();
        // Writing in order needs 1.9 GB by its rate: surely less, perhaps more, or of unknown length.
        let headline = |run: &mut Run, rate: Estimate| {
            let writes = run.results.iter_mut();
            let mut writes = writes.filter(|result| result.job == job_names::SEQUENTIAL_WRITE);
            writes.next().expect("it writes").bytes_per_second = rate;
            verdict(run).headline
        };
        let surely = headline(&mut run, Estimate::new(11.5e6, 11e6, 12e6));
        assert!(surely.starts_with("Commits hold "), "{surely}");
        let perhaps = headline(&mut run, Estimate::new(11.5e6, 2e6, 12e6));
        assert!(perhaps.starts_with("Commits, probably, hold "), "{perhaps}");
        assert!(perhaps.ends_with(" Perhaps sequential writes instead."), "{perhaps}");
        let unknown = headline(&mut run, Estimate::new(11.5e6, 0.0, 12e6));
        assert!(
            unknown.contains("How long installing software waits did not settle."),
            "{unknown}"
        );
    }

    #[test]
    fn no_narrow_pipe_is_claimed_only_where_the_whole_interval_says_so() {
        let begins = |low: f64| {
            let mut run = fixture::slow_sd_card_run();
            for result in &mut run.results {
                let bytes = f64::from(result.block_bytes);
                result.iops = Estimate::new(1000.0, low, 1001.0);
                result.bytes_per_second =
                    Estimate::new(1000.0 * bytes, low * bytes, 1001.0 * bytes);
            }
            verdict(&run).headline
        };
        // 21,000 commits at 1000 per second are 21 s, at 100 they are 210.
        assert!(begins(999.0).starts_with("Nothing holds "), "{}", begins(999.0));
        assert!(begins(100.0).starts_with("Probably nothing holds "), "{}", begins(100.0));
    }

    #[test]
    fn a_rate_near_the_slots_is_the_slots_limit() {
        let verdict = verdict(&fixture::slow_sd_card_run());
        let reads = verdict.pipes.iter().find(|p| p.name == "sequential reads");
        assert!(
            reads.is_some_and(|p| p.note.starts_with("the bus is the limit: 98 %")),
            "{reads:?}"
        );
    }

    #[test]
    fn a_fast_device_has_no_narrow_pipe() {
        let mut run = fixture::slow_sd_card_run();
        for result in &mut run.results {
            result.iops = Estimate::exact(100_000.0);
            result.bytes_per_second = Estimate::exact(100_000.0 * f64::from(result.block_bytes));
        }
        let verdict = verdict(&run);
        assert!(verdict.headline.starts_with("Nothing holds "), "{}", verdict.headline);
        assert_eq!(verdict.conclusion, Conclusion::FastEnough);
    }

    #[test]
    fn reads_alone_say_nothing_of_the_rest() {
        let mut run = fixture::slow_sd_card_run();
        for result in &mut run.results {
            result.iops = Estimate::exact(100_000.0);
            result.bytes_per_second = Estimate::exact(100_000.0 * f64::from(result.block_bytes));
        }
        run.results.retain(|result| result.direction == Direction::Read);
        let reads = verdict(&run);
        assert_eq!(reads.conclusion, Conclusion::FastInPart);
        assert!(reads.headline.contains("Not measured: commits and 2 more."), "{}", reads.headline);
        assert_eq!(reads.next.command.expect("a checkup"), ["rubus", "checkup", "/home/pi"]);
        assert_eq!(reads.next.words, "it measures the other kinds, too");
        // What is slow is slow, whatever the rest is.
        let mut slow = fixture::slow_sd_card_run();
        slow.results.retain(|result| result.job == job_names::COMMIT);
        assert!(
            verdict(&slow).headline.contains("hold the SD card"),
            "{}",
            verdict(&slow).headline
        );
    }

    #[test]
    fn nothing_measured_gives_no_figures_and_no_claims() {
        let mut run = fixture::slow_sd_card_run();
        run.results.clear();
        let verdict = verdict(&run);
        assert!(verdict.headline.starts_with("Nothing could be measured"), "{}", verdict.headline);
        assert!(verdict.good_for.iter().all(|s| s.grade == Grade::Unknown));
        assert_eq!(verdict.certainty, "Nothing was measured.");
    }

    #[test]
    fn more_than_the_slot_can_carry_is_doubted() {
        let mut run = fixture::slow_sd_card_run();
        run.results[0].bytes_per_second = Estimate::exact(200e6);
        doubt_the_impossible(&mut run);
        let doubted =
            |r: &JobResult| r.doubts.iter().any(|d| matches!(d, Doubt::AboveCeiling { .. }));
        assert!(doubted(&run.results[0]));
        assert!(!run.results[1..].iter().any(doubted));
    }

    #[test]
    fn a_small_part_of_a_named_device_or_a_hard_disk_is_doubted() {
        let doubts = |kind: TargetKind, platters: bool, region_bytes: u64| {
            let mut run = fixture::slow_sd_card_run();
            run.target.kind = kind;
            run.target.region_bytes = region_bytes;
            let turns = rubus_vocabulary::fact::Fact::known(platters, "test");
            for device in &mut run.machine.block_devices {
                device.rotational = turns.clone();
            }
            doubt_the_impossible(&mut run);
            let part = |doubt: &&Doubt| matches!(doubt, Doubt::PartOfDisk { .. });
            run.doubts.iter().filter(part).count()
        };
        assert_eq!(doubts(TargetKind::Directory, false, 256 << 20), 0);
        assert_eq!(doubts(TargetKind::Device, false, 256 << 20), 1);
        assert_eq!(doubts(TargetKind::Directory, true, 256 << 20), 1);
        assert_eq!(doubts(TargetKind::Device, false, 32 << 30), 0);
    }

    #[test]
    fn where_the_processor_is_the_limit_nothing_is_said_of_the_queue() {
        let mut run = fixture::slow_sd_card_run();
        let says = |run: &Run, words: &str| {
            let sentences = verdict(run).sentences;
            sentences.iter().any(|sentence| sentence.contains(words))
        };
        let one = run.job(job_names::RANDOM_READ).expect("it has one").iops;
        let bound = |result: &mut JobResult| result.doubts = vec![Doubt::CpuBound { share: 0.97 }];
        for result in &mut run.results {
            if result.job == job_names::RANDOM_READ_DEEP {
                result.iops = one;
                result.doubts.clear();
            }
        }
        assert!(says(&run, "It takes one request at a time"));
        let deep = |result: &&mut JobResult| result.job == job_names::RANDOM_READ_DEEP;
        run.results.iter_mut().filter(deep).for_each(bound);
        assert!(!says(&run, "It takes one request at a time"));
        assert!(says(&run, "this is the processor's limit"));
        assert!(says(&run, "`rubus bench --lanes N` asks with more cores"));
        run.machine.cpu.cores = Fact::known(1, "a test");
        assert!(!says(&run, "--lanes"));
        for result in run.results.iter_mut().filter(|r| r.queue_depth > 1) {
            result.doubts.clear();
            result.polled = true;
        }
        assert!(!says(&run, "It takes one request at a time"));
        assert!(says(&run, "a core polled for them all the time"));
    }

    /// 19 MB/s through a cable of 100 Mbit/s were once published as the speed of a network disk.
    #[test]
    fn more_than_the_link_carries_is_the_page_cache() {
        let mut run = fixture::network_run();
        run.target.link = Some(rubus_vocabulary::result::NetworkLink {
            interface: "eth0".into(),
            bits_per_second: 100_000_000,
        });
        run.results[0].bytes_per_second = Estimate::exact(19.156e6);
        run.results[1].bytes_per_second = Estimate::exact(9.798e6);
        doubt_the_impossible(&mut run);
        let what = |result: &JobResult| -> Vec<String> {
            let above = |d: &&Doubt| matches!(d, Doubt::AboveLink { .. });
            result.doubts.iter().filter(above).map(Doubt::what).collect()
        };
        assert_eq!(
            what(&run.results[0]),
            [
                "19.2 MB/s is more than the link eth0 carries (100 Mbit/s, 12.5 MB/s at best): this is a page cache, \
                 not the wire"
            ]
        );
        assert!(what(&run.results[1]).is_empty());
    }

    #[test]
    fn a_wide_interval_across_a_threshold_says_perhaps() {
        let fine = Estimate::exact(20e6);
        let across = Estimate::new(1600.0, 1200.0, 2000.0);
        assert_eq!(class_in_words(&across, &Estimate::exact(900.0), &fine), "perhaps like A1");
        assert_eq!(class_in_words(&across, &Estimate::exact(90.0), &fine), "below A1");
    }

    #[test]
    fn a_pipe_knows_its_job_and_how_uncertain_its_demand_is() {
        let verdict = verdict(&fixture::slow_sd_card_run());
        for pipe in &verdict.pipes {
            let is_bus = pipe.kind == PipeKind::Bus;
            assert_eq!(pipe.job().is_none(), is_bus, "{}", pipe.name);
            assert_eq!(pipe.demand_range().is_none(), is_bus, "{}", pipe.name);
        }
        let writes = verdict.pipes.iter().find(|pipe| pipe.narrowest);
        let writes = writes.expect("one is narrowest");
        assert_eq!(writes.job(), Some(job_names::COMMIT));
        let (short, long) = writes.demand_range().expect("it has a demand");
        let demand = writes.demand_s.expect("it has a demand");
        assert!(short < demand && demand < long, "{short} {demand} {long}");
    }

    #[test]
    fn the_worst_need_decides_about_a_purpose() {
        let mut run = fixture::slow_sd_card_run();
        run.results.retain(|r| r.job != job_names::COMMIT);
        let logging = logging(&run);
        assert_eq!(
            (logging.grade, logging.reason.as_str()),
            (Grade::Unknown, "commits were not measured")
        );
    }

    #[test]
    fn what_did_not_settle_is_said_to_be_uncertain_and_grades_nothing() {
        let mut run = fixture::slow_sd_card_run();
        for result in &mut run.results {
            result.outcome = rubus_vocabulary::result::Outcome::Inconclusive;
            result.iops = Estimate::new(result.iops.value, 0.0, result.iops.value * 20.0);
        }
        let verdict = verdict(&run);
        assert!(verdict.headline.starts_with("No answer: "), "{}", verdict.headline);
        let desktop = &verdict.good_for[1];
        assert_eq!(desktop.grade, Grade::Unknown);
        assert!(desktop.reason.starts_with("too uncertain: "), "{}", desktop.reason);
    }

    #[test]
    fn the_processor_is_the_limit_only_if_both_accounts_say_so() {
        let note = |busy: Vec<f64>| {
            let mut run = fixture::slow_sd_card_run();
            let result = run.results.iter_mut().find(|r| r.job == job_names::COMMIT);
            let result = result.expect("the fixture has it");
            result.doubts = vec![Doubt::CpuBound { share: 0.95 }];
            result.cpu.per_core_busy = busy;
            let verdict = verdict(&run);
            verdict.pipes.into_iter().find(|p| p.narrowest).map(|p| p.note)
        };
        assert_eq!(note(vec![0.95, 0.1, 0.0, 0.0]).as_deref(), Some("the processor is the limit"));
        assert_eq!(note(vec![0.03, 0.03, 0.02, 0.02]).as_deref(), Some("43.5 ms each on average"));
    }
}
