//! The answer: what holds the disk back, the figure that matters, what it means for something that people do, and what to do next.

use super::device::device_in_words;
use super::pipes::{KINDS, rivals};
use super::{Conclusion, Grade, NARROW_ABOVE_S, Pipe, PipeKind, Suitability, WorkTime};
use rubus_draw::text::{capitalized, listed};
use rubus_draw::words::roughly;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::result::{JobResult, Outcome, Run, TargetKind};
use rubus_vocabulary::rule_finding::Weight;
use rubus_vocabulary::spec::Direction;
use rubus_vocabulary::units::{counted, iops, rate_si};

/// From this share of what was read on, holes decide the rate.
const MANY_HOLES: f64 = 0.1;

/// What a run answers, with what it is told by.
pub(super) struct Answer<'a> {
    pub conclusion: Conclusion,
    narrowest: Option<&'a Pipe>,
    rivals: Vec<&'a Pipe>,
    /// The kinds of operation that were not measured, the most often narrow first.
    unmeasured: Vec<&'static str>,
    /// What people do that waits longest for the narrowest pipe.
    felt: Option<&'a WorkTime>,
    /// What may have turned the answer round, the weightiest first.
    doubts: Vec<&'a Doubt>,
}

impl<'a> Answer<'a> {
    pub fn of(run: &'a Run, pipes: &'a [Pipe], works: &'a [WorkTime]) -> Answer<'a> {
        let narrowest = pipes.iter().find(|pipe| pipe.narrowest);
        let rivals = narrowest.map_or(Vec::new(), |narrowest| rivals(narrowest, pipes));
        let doubts = doubts(run, narrowest);
        let unmeasured = unmeasured(pipes);
        Answer {
            conclusion: conclusion(run, pipes, narrowest, &rivals, &doubts, &unmeasured),
            felt: narrowest.and_then(|narrowest| felt(works, narrowest)),
            narrowest,
            rivals,
            unmeasured,
            doubts,
        }
    }

    pub fn headline(&self, run: &Run) -> String {
        let device = device_in_words(run);
        let Some(pipe) = self.narrowest else {
            return match self.conclusion {
                Conclusion::Stopped => "Stopped before the end: figures, and no verdict.".into(),
                _ if self.is_of_another_question(run) => {
                    let figures = counted(run.results.len() as u64, "figure", "figures");
                    format!("{figures} of {device}, and no verdict: a checkup gives one.")
                }
                _ => format!("Nothing could be measured on {device}."),
            };
        };
        let (name, rate) = (short(pipe), rate(pipe));
        let also = self.which_else(run, pipe);
        match self.conclusion {
            Conclusion::Stopped => "Stopped before the end: figures, and no verdict.".into(),
            Conclusion::NoAnswer => match self.doubts.first() {
                Some(doubt) => format!("No answer: {}.", doubt.what()),
                None => "No answer: no figure settled in the time and bytes allowed.".into(),
            },
            Conclusion::HeldBack => {
                let share = self.felt.map(|work| (work.mostly_s, &name));
                let felt = self.waits(share);
                format!("{} hold {device} back: {rate}.{felt}", capitalized(&name))
            }
            Conclusion::ProbablyHeldBack => {
                let felt = self.waits(None);
                format!("{}, probably, hold {device} back: {rate}.{felt}{also}", capitalized(&name))
            }
            Conclusion::FastEnough => {
                let felt = self.waits(None);
                format!("Nothing holds {device} back.{felt} Tightest: {name}, {rate}.")
            }
            Conclusion::ProbablyFastEnough => {
                let felt = self.waits(None);
                format!("Probably nothing holds {device} back.{felt} Tightest: {name}, {rate}.")
            }
            Conclusion::FastInPart => {
                let left = match &self.unmeasured[..] {
                    [first, more @ ..] if !more.is_empty() => {
                        format!("{first} and {} more", more.len())
                    }
                    left => left.concat(),
                };
                format!(
                    "What was measured of {device} is fast enough. Tightest: {name}, {rate}. Not measured: {left}."
                )
            }
        }
    }

    /// " Installing software waits about 17 min for it, 15 min of that in commits."
    fn waits(&self, share: Option<(f64, &String)>) -> String {
        let Some(work) = self.felt else {
            return String::new();
        };
        let doing = capitalized(&work.doing);
        if !work.busy_s.is_known() {
            return format!(" How long {} waits did not settle.", work.doing);
        }
        let time = roughly(work.busy_s.value);
        match share {
            // Where it is nearly all of it, once is enough.
            Some((share_s, name)) if share_s < 0.95 * work.busy_s.value => {
                format!(" {doing} waits about {time} for it, {} in {name}.", roughly(share_s))
            }
            _ => format!(" {doing} waits about {time} for it."),
        }
    }

    /// What else it may be, or what did not settle.
    fn which_else(&self, run: &Run, narrowest: &Pipe) -> String {
        let result = narrowest.job().and_then(|job| run.job(job));
        let is_unsettled = result.is_some_and(|one| one.outcome == Outcome::Inconclusive);
        match &self.rivals[..] {
            [] if is_unsettled => " They did not settle.".into(),
            [] => String::new(),
            [one] => format!(" Perhaps {} instead.", short(one)),
            [one, other] => format!(" Perhaps {} or {} instead.", short(one), short(other)),
            _ => " Perhaps other operations instead.".into(),
        }
    }

    /// Whether what was measured is none of what a checkup judges.
    fn is_of_another_question(&self, run: &Run) -> bool {
        self.narrowest.is_none() && run.results.iter().any(|result| result.operations > 0)
    }

    /// Whether the figures say where a share is narrow: unsettled ones do, with less certainty.
    pub fn can_name_a_stage(&self) -> bool {
        let is_hole = |doubt: &&Doubt| matches!(doubt, Doubt::Holes { .. });
        self.conclusion != Conclusion::Stopped && !self.doubts.iter().any(is_hole)
    }

    pub fn reservation(&self) -> Option<String> {
        let is_said = matches!(self.conclusion, Conclusion::Stopped | Conclusion::NoAnswer);
        let doubt = self.doubts.first().filter(|_| !is_said)?;
        Some(format!("But {}.", doubt.what()))
    }

    pub fn next(&self, run: &Run, good_for: &[Suitability]) -> NextStep {
        if run.doubts.iter().any(|doubt| matches!(doubt, Doubt::TargetFailed { .. })) {
            let words = "it reads what the kernel's log says of the disk; look at the cable, too";
            return NextStep::command(&["rubus", "survey"], words);
        }
        if self.conclusion == Conclusion::NoAnswer && self.is_of_another_question(run) {
            return NextStep::by_hand("nothing: these figures answer a question of their own");
        }
        let again = match (self.conclusion, self.doubts.first()) {
            (Conclusion::Stopped, _) => Some("let it run to its end"),
            (_, Some(doubt)) => Some(doubt.remedy()),
            (Conclusion::NoAnswer, None) if run.results.is_empty() => Some("nothing was measured"),
            (Conclusion::NoAnswer, None) => Some("when the machine and the disk are quiet"),
            _ => None,
        };
        if let Some(words) = again {
            return NextStep { command: same_again(run), words: words.into() };
        }
        match self.conclusion {
            Conclusion::FastEnough | Conclusion::ProbablyFastEnough => nothing(good_for),
            Conclusion::FastInPart => the_rest(run),
            Conclusion::HeldBack
            | Conclusion::ProbablyHeldBack
            | Conclusion::NoAnswer
            | Conclusion::Stopped => danger(run).unwrap_or_else(|| {
                let words = "what another disk, port or setting would give";
                NextStep::command(&["rubus", "advise"], words)
            }),
        }
    }
}

fn conclusion(
    run: &Run,
    pipes: &[Pipe],
    narrowest: Option<&Pipe>,
    rivals: &[&Pipe],
    doubts: &[&Doubt],
    unmeasured: &[&str],
) -> Conclusion {
    if run.doubts.contains(&Doubt::Interrupted) {
        return Conclusion::Stopped;
    }
    let Some(narrowest) = narrowest else {
        return Conclusion::NoAnswer;
    };
    let operations = || pipes.iter().filter(|pipe| pipe.kind == PipeKind::Operation);
    let results = || operations().filter_map(|pipe| run.job(pipe.job()?));
    let is_unsettled = |result: &JobResult| result.outcome == Outcome::Inconclusive;
    let is_of_holes = doubts.iter().any(|doubt| matches!(doubt, Doubt::Holes { .. }));
    if results().all(is_unsettled) || is_of_holes {
        return Conclusion::NoAnswer;
    }
    let (low_s, high_s) = operations()
        .filter_map(Pipe::demand_range)
        .fold((0.0, 0.0), |(low, high), (short, long)| (low + short, high + long));
    let own = narrowest.job().and_then(|job| run.job(job));
    let is_sure = rivals.is_empty() && !own.is_some_and(is_unsettled);
    match (high_s <= NARROW_ABOVE_S, low_s <= NARROW_ABOVE_S) {
        (_, true) if !unmeasured.is_empty() => Conclusion::FastInPart,
        (true, _) => Conclusion::FastEnough,
        (false, true) => Conclusion::ProbablyFastEnough,
        (false, false) if is_sure => Conclusion::HeldBack,
        (false, false) => Conclusion::ProbablyHeldBack,
    }
}

/// The kinds of operation without a figure, the most often narrow first.
fn unmeasured(pipes: &[Pipe]) -> Vec<&'static str> {
    let is_missing = |title: &&str| !pipes.iter().any(|pipe| pipe.name == *title);
    KINDS.iter().rev().map(|(_, _, title)| *title).filter(is_missing).collect()
}

/// The longest of the works that wait mostly for a pipe.
fn felt<'a>(works: &'a [WorkTime], narrowest: &Pipe) -> Option<&'a WorkTime> {
    let for_it = works.iter().filter(|work| work.mostly == narrowest.name);
    for_it.max_by(|a, b| a.busy_s.value.total_cmp(&b.busy_s.value))
}

/// The doubts of the whole run and of the job that decides that may have turned the answer round.
fn doubts<'a>(run: &'a Run, narrowest: Option<&Pipe>) -> Vec<&'a Doubt> {
    let own = narrowest.and_then(|pipe| run.job(pipe.job()?));
    let holes = run.results.iter().flat_map(|result| &result.doubts).filter(|doubt| is_hole(doubt));
    let of_own = own.into_iter().flat_map(|result| &result.doubts);
    let mut found: Vec<&Doubt> = run.doubts.iter().chain(of_own).chain(holes).collect();
    // The answer about a share counts with the server's cache.
    let is_counted =
        |doubt: &Doubt| run.target.nas.is_some() && matches!(doubt, Doubt::DirectIsBuffered { .. });
    found.retain(|doubt| weight(doubt).is_some() && !is_counted(doubt));
    found.sort_by_key(|doubt| weight(doubt));
    found
}

fn is_hole(doubt: &Doubt) -> bool {
    matches!(doubt, Doubt::Holes { share } if *share >= MANY_HOLES)
}

/// How far up a doubt stands that may turn an answer round, 0 first; none where it changes a figure only.
fn weight(doubt: &Doubt) -> Option<u8> {
    /// A share of the time, or of the traffic, from which on another program may be what holds the disk back.
    const MUCH: f64 = 0.25;
    match doubt {
        Doubt::Holes { .. } => is_hole(doubt).then_some(0),
        Doubt::AboveCeiling { .. }
        | Doubt::AboveLink { .. }
        | Doubt::ThroughPageCache { .. }
        | Doubt::DirectIsBuffered { .. }
        | Doubt::LoopThroughCache { .. }
        | Doubt::StillInMemory { .. }
        | Doubt::NoFlush => Some(1),
        Doubt::CpuStarved { share } | Doubt::CpuStolen { share } => (*share >= MUCH).then_some(2),
        Doubt::OtherTraffic { share, .. } => (*share >= MUCH).then_some(3),
        Doubt::Stopped { .. } | Doubt::ClusterTroubled { .. } => Some(4),
        Doubt::CpuBound { .. }
        | Doubt::Throttled { .. }
        | Doubt::Undervoltage
        | Doubt::Drift { .. }
        | Doubt::NotPrecise { .. }
        | Doubt::SmallRegion { .. }
        | Doubt::PartOfDisk { .. }
        | Doubt::FewOperations { .. }
        | Doubt::NoRing { .. }
        | Doubt::LongFlush { .. }
        | Doubt::Interrupted
        | Doubt::TargetFailed { .. }
        | Doubt::ServerSilent { .. }
        | Doubt::NotWatched { .. } => None,
    }
}

/// "commits", "random writes".
fn short(pipe: &Pipe) -> String {
    pipe.name.trim_start_matches("4 KiB ").into()
}

pub(super) fn rate(pipe: &Pipe) -> String {
    match (&pipe.bytes_per_second, &pipe.operations_per_second) {
        (Some(bytes), _) => rate_si(bytes.value),
        (_, Some(operations)) => format!("{} per second", iops(operations.value)),
        _ => "no rate".into(),
    }
}

/// The command that measures the same once more; none where it takes a confirmation, or is not about this machine.
fn same_again(run: &Run) -> Option<Vec<String>> {
    let target = match run.target.kind {
        TargetKind::Directory | TargetKind::File => &run.target.path,
        TargetKind::Device | TargetKind::Network | TargetKind::Ram | TargetKind::Pool => {
            &run.target.named
        }
    };
    let writes = run.results.iter().any(|result| result.direction == Direction::Write);
    let mut words: Vec<&str> = match (run.suite.as_str(), run.target.kind) {
        ("quick", TargetKind::Directory) => vec!["rubus", "checkup", target],
        (suite, TargetKind::Directory) => vec!["rubus", "bench", target, "--suite", suite],
        (_, TargetKind::File | TargetKind::Device | TargetKind::Network) if writes => return None,
        (suite, TargetKind::File | TargetKind::Device | TargetKind::Network) => {
            vec!["rubus", "bench", target, "--suite", suite, "--read-only"]
        }
        (_, TargetKind::Ram | TargetKind::Pool) => return None,
    };
    if let Some(on) = &run.on {
        words.extend(["--on", &on.destination]);
    }
    Some(words.into_iter().map(str::to_string).collect())
}

/// What measures the kinds of operation that were not measured.
fn the_rest(run: &Run) -> NextStep {
    match (run.target.kind, &run.on) {
        (TargetKind::Directory, None) => NextStep::command(
            &["rubus", "checkup", &run.target.path],
            "it measures the other kinds, too",
        ),
        _ => NextStep::by_hand("a checkup of a directory on it measures the other kinds, too"),
    }
}

/// That nothing is to be done, and what for.
fn nothing(good_for: &[Suitability]) -> NextStep {
    let good = good_for.iter().filter(|one| one.grade == Grade::Good);
    let good: Vec<&str> = good.map(|one| one.purpose.as_str()).collect();
    NextStep::by_hand(&if good.is_empty() {
        "nothing: no piece of the reference work waits long for it.".to_string()
    } else {
        format!("nothing: fast enough for {}.", listed(&good))
    })
}

/// What the rules call dangerous about the disk that was measured.
fn danger(run: &Run) -> Option<NextStep> {
    let device = run.machine.measured_device(run.target.device.as_deref()?)?;
    let findings = run.rule_findings();
    let is_it = |weight: Weight, about: &str| weight == Weight::Danger && about == device.name;
    let found = findings.iter().find(|found| is_it(found.weight, &found.about))?;
    let command = found.command.as_ref().map(|text| text.split(' ').map(str::to_string).collect());
    Some(NextStep { command, words: found.fix.clone() })
}

#[cfg(test)]
mod tests {
    use super::super::verdict;
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_stats::estimate::Estimate;

    /// The rule for every answer, whatever holds the disk back.
    const MAX_WORDS: usize = 25;

    fn slow_at(job: &str, factor: f64) -> Run {
        let mut run = fixture::slow_sd_card_run();
        for result in &mut run.results {
            result.doubts.clear();
            let scale = if result.job == job { factor } else { 50.0 };
            for rate in [&mut result.iops, &mut result.bytes_per_second] {
                *rate = Estimate::new(rate.value * scale, rate.low * scale, rate.high * scale);
            }
        }
        run
    }

    #[test]
    fn an_answer_has_at_most_25_words_and_no_bound_inside_its_interval() {
        for (_, job, name) in super::super::pipes::KINDS {
            let run = slow_at(job, 0.05);
            let headline = verdict(&run).headline;
            let words = headline.split_whitespace().count();
            assert!(words <= MAX_WORDS, "{words} words: {headline}");
            let first = capitalized(name.trim_start_matches("4 KiB "));
            assert!(headline.starts_with(&first), "{headline}");
            assert!(!headline.contains("up to"), "{headline}");
        }
        let fast = verdict(&slow_at("nothing", 1.0)).headline;
        assert!(fast.split_whitespace().count() <= MAX_WORDS, "{fast}");
    }

    #[test]
    fn a_run_that_was_stopped_has_figures_and_no_verdict() {
        let mut run = fixture::slow_sd_card_run();
        run.doubts.push(Doubt::Interrupted);
        let verdict = verdict(&run);
        assert_eq!(verdict.headline, "Stopped before the end: figures, and no verdict.");
        assert_eq!((verdict.works.len(), verdict.good_for.len()), (0, 0));
        assert!(verdict.pipes.iter().all(|pipe| !pipe.narrowest));
        let again = verdict.next.command.expect("a command");
        assert_eq!(again, ["rubus", "checkup", "/home/pi"]);
    }

    #[test]
    fn holes_are_no_answer_and_a_disk_that_others_used_has_one_with_a_but() {
        let mut run = slow_at("random-read", 1.0);
        run.results[0].doubts.push(Doubt::Holes { share: 1.0 });
        let holes = verdict(&run);
        assert!(
            holes.headline.starts_with("No answer: 100 % of what was read"),
            "{}",
            holes.headline
        );
        assert_eq!(holes.next.words, "fill the export with data, then measure again");

        let mut run = fixture::slow_sd_card_run();
        run.doubts = vec![Doubt::OtherTraffic { bytes: 1 << 30, share: 0.6 }];
        let disturbed = verdict(&run);
        let but = disturbed.reservation.expect("a reservation");
        assert!(but.starts_with("But other programs moved"), "{but}");
        assert_eq!(disturbed.next.words, "stop the other programs and measure again");
    }

    #[test]
    fn figures_that_no_checkup_asks_for_are_not_called_none() {
        let verdict = verdict(&fixture::sustained_run());
        assert!(verdict.headline.contains("and no verdict"), "{}", verdict.headline);
        assert!(verdict.next.command.is_none(), "{:?}", verdict.next);
    }

    #[test]
    fn where_nothing_settled_the_processor_that_was_missing_is_the_reason() {
        let mut run = fixture::slow_sd_card_run();
        for result in &mut run.results {
            result.outcome = Outcome::Inconclusive;
            result.doubts = vec![Doubt::CpuStarved { share: 0.97 }];
        }
        let none = verdict(&run);
        assert_eq!(none.headline, "No answer: the test waited for a processor 97 % of the time.");
        assert_eq!(none.next.words, "stop other programs and measure again");
    }
}
