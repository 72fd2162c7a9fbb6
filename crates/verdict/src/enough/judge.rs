//! The answer, from the tail of the commits: pure.
//!
//! In this order: a wait beyond the workload's limit is a no, whatever the percentiles; then the 95 % interval of the 99th
//! percentile decides, as far as it lies on one side of a limit; else nothing is decided.

use rubus_stats::estimate::Estimate;
use rubus_stats::histogram::P99_OPERATIONS;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::result::{Stall, StallCause};
use rubus_vocabulary::units::{counted, duration_ns};
use serde::Serialize;

use rubus_draw::words::span;

use super::evidence::Evidence;
use super::{Limits, SECONDS, USUAL_S, Workload};

/// If they are rarer than one in this number, commits beyond the edge are not worth a word.
const RARE: u64 = 1000;
/// Commits come at random times: a share that is missing by chance.
const MIN_PACE: f64 = 0.97;
/// From this number of commits on, the fastest of them says what all need at least.
const FEW: u64 = 10;

/// The answer in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is fast enough.
    Yes,
    /// It is, with a reservation: at the edge, or with slow commits now and then.
    YesBut,
    /// It is not.
    No,
    /// What was seen does not decide it.
    Undecided,
}

impl Answer {
    /// Whether the storage can be used.
    pub fn is_yes(self) -> bool {
        matches!(self, Answer::Yes | Answer::YesBut)
    }
}

/// What was asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The program whose commits are judged.
    pub workload: &'a Workload,
    /// The directory, as it is typed.
    pub place: &'a str,
    /// How long it was to be measured, in seconds.
    pub seconds: f64,
}

/// What an answer asks its reader to do.
enum Follow {
    /// The storage will do.
    Nothing,
    /// It will not, however it is measured.
    Advise,
    /// Measure again, for `seconds`; the words say what is to be different.
    Again { seconds: f64, words: String },
    /// What no command does.
    ByHand(String),
}

/// Is it fast enough, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judgement {
    /// For what.
    pub workload: String,
    /// The answer in a word.
    pub answer: Answer,
    /// The answer with its reason, as a sentence.
    pub sentence: String,
    /// What to do next.
    pub next: NextStep,
    /// Commits that were measured.
    pub commits: u64,
    /// Seconds of measuring.
    pub measured_s: f64,
    /// The median, in milliseconds; null: there was no commit.
    pub median_ms: Option<f64>,
    /// The 99th percentile in milliseconds with its 95 % interval; null: too few commits.
    pub p99_ms: Option<Estimate>,
    /// The longest, in milliseconds.
    pub longest_ms: f64,
    /// Commits that took longer than the edge.
    pub beyond_edge: u64,
    /// Stalls beyond the limit.
    pub stalls: Vec<Stall>,
    /// 99 % of the commits shall take no longer, in milliseconds.
    pub good_ms: f64,
    /// Up to this the storage is at the edge, in milliseconds.
    pub edge_ms: f64,
    /// A single wait of this length is too long, in milliseconds.
    pub stall_ms: f64,
    /// Where the limits come from.
    pub source: String,
}

impl Judgement {
    /// The longest wait, in milliseconds: a commit that finished, or a stall that none of them measured to its end.
    pub fn longest_wait_ms(&self) -> f64 {
        self.stalls.iter().map(|stall| stall.length_ms).fold(self.longest_ms, f64::max)
    }

    /// Whether stalls took so much of the time that percentiles of the commits say little of it.
    pub fn stood_still(&self) -> bool {
        is_much(&self.stalls, self.measured_s)
    }
}

/// Whether stalls are a tenth of the time or more.
fn is_much(stalls: &[Stall], measured_s: f64) -> bool {
    let stalled_s: f64 = stalls.iter().map(|stall| stall.length_ms / 1e3).sum();
    stalled_s > 0.1 * measured_s
}

/// Whether what was seen is fast enough for the workload.
pub fn judge(question: &Question<'_>, seen: &Evidence) -> Judgement {
    let workload = question.workload;
    let limits = &workload.limits;
    let stall_ms = ms(limits.stall_ns);
    let stalls = seen.stalls.iter();
    let stalls: Vec<Stall> = stalls.copied().filter(|stall| stall.length_ms >= stall_ms).collect();
    let (answer, why, follow) = decide(question, seen, &stalls);
    let sentence = match answer {
        Answer::Yes => format!("yes: {why}"),
        Answer::YesBut => format!("yes, but {why}"),
        Answer::No => format!("no, because {why}"),
        Answer::Undecided => format!("undecided: {why}"),
    };
    Judgement {
        workload: workload.name.into(),
        answer,
        sentence,
        next: next(question, follow),
        commits: seen.commits,
        measured_s: seen.seconds,
        median_ms: seen.median_ns.map(ms),
        p99_ms: seen
            .p99_ns
            .map(|p99| Estimate::new(p99.value / 1e6, p99.low / 1e6, p99.high / 1e6)),
        longest_ms: ms(seen.longest_ns),
        beyond_edge: seen.at_least(limits.edge_ns),
        stalls,
        good_ms: ms(limits.good_ns),
        edge_ms: ms(limits.edge_ns),
        stall_ms,
        source: workload.source.into(),
    }
}

/// What to do, as a command where one does it.
fn next(question: &Question<'_>, follow: Follow) -> NextStep {
    let Question { workload, place, .. } = question;
    match follow {
        Follow::Nothing => {
            NextStep::by_hand(&format!("nothing: it is fast enough for {}", workload.title))
        }
        Follow::Advise => NextStep::command(
            &["rubus", "advise", "server"],
            "what another disk, port or setting would give",
        ),
        Follow::Again { seconds, words } => {
            let time = match (seconds / 60.0).ceil() {
                _ if seconds <= USUAL_S => None,
                minutes => Some(format!("{minutes:.0}m")),
            };
            let time = time.iter().flat_map(|time| ["--time", time]);
            let command = ["rubus", "enough", workload.name, place].into_iter().chain(time);
            NextStep::command(&command.collect::<Vec<_>>(), &words)
        }
        Follow::ByHand(words) => NextStep::by_hand(&words),
    }
}

/// The answer, what follows it in the sentence, and what to do.
fn decide(question: &Question<'_>, seen: &Evidence, stalls: &[Stall]) -> (Answer, String, Follow) {
    let workload = question.workload;
    let again = |words: &str| Follow::Again { seconds: question.seconds, words: words.into() };
    if let Some(no) = stalled(workload, seen, stalls) {
        return (Answer::No, no, Follow::Advise);
    }
    if let Some(no) = slow(workload, seen) {
        return match &seen.held_up {
            None => (Answer::No, no, Follow::Advise),
            Some(held_up) => {
                let words = format!("{no}; but {}", held_up.what());
                (Answer::Undecided, words, again(held_up.remedy()))
            }
        };
    }
    if let Some((undecided, remedy)) = disturbed(stalls) {
        return (Answer::Undecided, undecided, again(remedy));
    }
    if seen.is_cached {
        let words = "this filesystem keeps writes in memory, even those of direct I/O, so the storage itself was not seen";
        let follow = "measure a directory of another filesystem on it";
        return (Answer::Undecided, words.into(), Follow::ByHand(follow.into()));
    }
    let limits = &workload.limits;
    let Some(p99) = seen.p99_ns else {
        let (words, follow) = too_few(question, seen);
        return (Answer::Undecided, words, follow);
    };
    if p99.high > limits.edge_ns as f64 {
        let follow = longer(seen, 4.0 * seen.seconds);
        return (Answer::Undecided, too_wide(limits, &p99), follow);
    }
    if seen.is_cut_short {
        let words = format!("the measurement was stopped after {}", span(seen.seconds));
        return (Answer::Undecided, words, again("let it run to its end"));
    }
    if p99.high > limits.good_ns as f64 {
        let words = at_the_edge(workload, &p99);
        return match &seen.held_up {
            Some(held_up) => {
                let words = format!("{words}; but {}", held_up.what());
                (Answer::YesBut, words, again(held_up.remedy()))
            }
            None => {
                let below = limit(limits.edge_ns);
                let follow =
                    format!("nothing: it stays below {below}, which {} bears", workload.title);
                (Answer::YesBut, words, Follow::ByHand(follow))
            }
        };
    }
    match rare_tail(limits, seen) {
        Some(words) => (Answer::YesBut, words, Follow::Nothing),
        None => (Answer::Yes, within(workload, &p99), Follow::Nothing),
    }
}

/// A wait that is too long, if the storage is to blame for one.
fn stalled(workload: &Workload, seen: &Evidence, stalls: &[Stall]) -> Option<String> {
    let stall_ns = workload.limits.stall_ns;
    let of_device = || {
        let stalls = stalls.iter();
        stalls.filter(|stall| stall.cause == StallCause::Device)
    };
    let longest_ns = of_device().map(|stall| (stall.length_ms * 1e6) as u64).max();
    // A commit that took this long is a wait, even where all are slow and none is a stall.
    let longest_ns = match (longest_ns, stalls.is_empty()) {
        (None, true) => Some(seen.longest_ns).filter(|&ns| ns >= stall_ns)?,
        (longest_ns, _) => longest_ns?,
    };
    let times = match of_device().count() {
        0 | 1 => format!("the storage stalled for {}", duration_ns(longest_ns)),
        count => {
            format!("the storage stalled {count} times, for up to {}", duration_ns(longest_ns))
        }
    };
    let rest = match seen.p99_ns {
        Some(p99)
            if p99.high <= workload.limits.good_ns as f64 && !is_much(stalls, seen.seconds) =>
        {
            format!(
                "; otherwise it is fast: 99 % of the commits take {} or less",
                duration(p99.value)
            )
        }
        _ => String::new(),
    };
    Some(format!(
        "{times}, and a stall of {} or longer {}{rest}",
        limit(stall_ns),
        workload.stall_means
    ))
}

/// Commits that are surely too slow.
fn slow(workload: &Workload, seen: &Evidence) -> Option<String> {
    let edge_ns = workload.limits.edge_ns;
    let title = workload.title;
    if let Some(behind) = falls_behind(workload, seen) {
        return Some(behind);
    }
    if let Some(p99) = seen.p99_ns.filter(|p99| p99.low > edge_ns as f64) {
        return Some(format!(
            "the slowest 1 % of the commits take {} or longer{}, and {title} needs 99 % within {}",
            duration(p99.value),
            interval(&p99),
            limit(edge_ns)
        ));
    }
    let shortest_ns = seen.shortest_ns.filter(|&ns| ns > edge_ns)?;
    (seen.commits >= FEW).then(|| {
        format!(
            "even the fastest of {} commits took {}, and {title} needs 99 % within {}",
            seen.commits,
            duration_ns(shortest_ns),
            limit(edge_ns)
        )
    })
}

/// Fewer commits than come, surely.
fn falls_behind(workload: &Workload, seen: &Evidence) -> Option<String> {
    let needed = workload.limits.keeps_pace?;
    let done = seen.per_second?;
    (seen.commits >= FEW && done.high < needed * MIN_PACE).then(|| {
        format!(
            "it falls behind: {:.1} commits per second ({:.1} to {:.1} at 95 % confidence) of {needed:.0} that come",
            done.value, done.low, done.high
        )
    })
}

/// A wait that was too long and not the storage's fault, and what to do about it.
fn disturbed(stalls: &[Stall]) -> Option<(String, &'static str)> {
    let stall = stalls.iter().max_by(|a, b| a.length_ms.total_cmp(&b.length_ms))?;
    let (because, remedy) = match stall.cause {
        StallCause::Device => ("the storage stood still", "to see whether it does so again"),
        StallCause::CpuStarvation => {
            ("the processor was busy with other programs", "stop other programs first")
        }
        StallCause::Throttling => (
            "the board was throttled or its voltage was low",
            "give it a better supply or cooling first",
        ),
        StallCause::OtherWriters => {
            ("other programs kept the storage busy", "stop other programs first")
        }
        StallCause::Stopped => ("this program was stopped", "let it run to its end"),
    };
    let waited = duration(stall.length_ms * 1e6);
    Some((format!("commits waited for {waited} because {because}"), remedy))
}

fn too_few(question: &Question<'_>, seen: &Evidence) -> (String, Follow) {
    if seen.commits == 0 {
        let follow =
            Follow::Again { seconds: question.seconds, words: "stop other programs first".into() };
        return ("no commit was finished while it was measured".into(), follow);
    }
    let commits = counted(seen.commits, "commit", "commits");
    let per_second = seen.commits as f64 / seen.seconds.max(1e-9);
    let needed_s = 1.5 * P99_OPERATIONS as f64 / per_second.max(1e-9);
    let words =
        format!("only {commits} in {}, too few for the 99th percentile", span(seen.seconds));
    (words, longer(seen, needed_s))
}

fn too_wide(limits: &Limits, p99: &Estimate) -> String {
    let other = if p99.value <= limits.edge_ns as f64 { "more" } else { "less" };
    format!(
        "99 % of the commits took {} or less, and {} is the limit; but so few commits leave room for {other} than that",
        duration(p99.value),
        limit(limits.edge_ns)
    )
}

/// What would decide it: more commits, as long as that is possible.
fn longer(seen: &Evidence, seconds: f64) -> Follow {
    let max_s = *SECONDS.end();
    if seen.seconds > 0.9 * max_s {
        let words = "do not rely on this storage: no longer measurement is possible";
        return Follow::ByHand(words.into());
    }
    // Whole minutes read better.
    let minutes = (seconds.min(max_s) / 60.0).ceil().max(1.0);
    let minutes = minutes.max((seen.seconds / 60.0).floor() + 1.0);
    Follow::Again { seconds: minutes * 60.0, words: "a longer measurement decides".into() }
}

fn at_the_edge(workload: &Workload, p99: &Estimate) -> String {
    format!(
        "it is at the edge: 99 % of the commits take {} or less{}, and {} wants {}",
        duration(p99.value),
        interval(p99),
        workload.title,
        limit(workload.limits.good_ns)
    )
}

/// Slow commits that are too few to show in the 99th percentile.
fn rare_tail(limits: &Limits, seen: &Evidence) -> Option<String> {
    let slow = seen.at_least(limits.edge_ns);
    if slow == 0 || seen.commits / slow > RARE {
        return None;
    }
    let one_in = (seen.commits as f64 / slow as f64).round();
    Some(format!(
        "1 commit in {one_in} takes {} or longer, up to {}",
        limit(limits.edge_ns),
        duration_ns(seen.longest_ns)
    ))
}

fn within(workload: &Workload, p99: &Estimate) -> String {
    format!(
        "99 % of the commits take {} or less{}, and {} wants {}",
        duration(p99.value),
        interval(p99),
        workload.title,
        limit(workload.limits.good_ns)
    )
}

/// " (2.9 to 3.6 ms at 95 % confidence)".
fn interval(estimate: &Estimate) -> String {
    if estimate.high.is_finite() {
        format!(" ({} to {} at 95 % confidence)", duration(estimate.low), duration(estimate.high))
    } else {
        format!(" (at least {} at 95 % confidence)", duration(estimate.low))
    }
}

fn duration(ns: f64) -> String {
    duration_ns(ns as u64)
}

/// A limit, which is a round number: "10 ms", "1 s".
pub(super) fn limit(ns: u64) -> String {
    match ns / 1_000_000 {
        ms if ms >= 1000 && ms % 1000 == 0 => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use rubus_vocabulary::doubt::Doubt;
    use rubus_vocabulary::result::LatencyBins;

    use super::*;
    use crate::enough::by_name;

    fn etcd() -> &'static Workload {
        by_name("etcd").expect("it is listed")
    }

    /// A minute in which all commits took about `typical_ms`.
    fn steady(typical_ms: f64) -> Evidence {
        let ns = |ms: f64| (ms * 1e6) as u64;
        Evidence {
            commits: 12_000,
            seconds: 60.0,
            shortest_ns: Some(ns(typical_ms * 0.8)),
            median_ns: Some(ns(typical_ms)),
            p99_ns: Some(around(typical_ms * 1.2, typical_ms * 1.1, typical_ms * 1.3)),
            longest_ns: ns(typical_ms * 1.4),
            bins: bins(&[(typical_ms * 1.4, 12_000)]),
            ..Evidence::default()
        }
    }

    fn around(value_ms: f64, low_ms: f64, high_ms: f64) -> Estimate {
        Estimate::new(value_ms * 1e6, low_ms * 1e6, high_ms * 1e6)
    }

    fn bins(bins: &[(f64, u64)]) -> LatencyBins {
        LatencyBins {
            up_to_ns: bins.iter().map(|bin| (bin.0 * 1e6) as u64).collect(),
            operations: bins.iter().map(|bin| bin.1).collect(),
        }
    }

    fn stall(length_ms: f64, cause: StallCause) -> Stall {
        Stall { start_s: 12.0, length_ms, cause }
    }

    fn judged(seen: &Evidence) -> Judgement {
        judge(&Question { workload: etcd(), place: "/srv/my data", seconds: 60.0 }, seen)
    }

    fn answer(seen: &Evidence) -> (Answer, String) {
        let found = judged(seen);
        (found.answer, found.sentence)
    }

    /// The command that comes next, without what is always in it; else the words.
    fn next(seen: &Evidence) -> String {
        let next = judged(seen).next;
        match next.command {
            Some(command) => command.join(" ").replace("rubus enough etcd /srv/my data", "again"),
            None => next.words,
        }
    }

    #[test]
    fn each_answer_ends_in_what_to_do() {
        assert_eq!(next(&steady(2.0)), "nothing: it is fast enough for etcd");
        assert_eq!(next(&steady(30.0)), "rubus advise server");
        let cut = Evidence { is_cut_short: true, ..steady(2.0) };
        assert_eq!(next(&cut), "again");
        assert_eq!(judged(&cut).next.words, "let it run to its end");
        let cached = Evidence { is_cached: true, ..steady(2.0) };
        assert_eq!(next(&cached), "measure a directory of another filesystem on it");
    }

    #[test]
    fn fast_commits_are_a_yes() {
        let (answer, words) = answer(&steady(2.0));
        assert_eq!(answer, Answer::Yes, "{words}");
        assert_eq!(
            words,
            "yes: 99 % of the commits take 2.40 ms or less (2.20 ms to 2.60 ms at 95 % confidence), and etcd wants 10 ms"
        );
    }

    #[test]
    fn between_the_limits_is_the_edge() {
        let (answer, words) = answer(&steady(12.0));
        assert_eq!(answer, Answer::YesBut, "{words}");
        assert!(words.starts_with("yes, but it is at the edge: 99 %"), "{words}");
        assert_eq!(next(&steady(12.0)), "nothing: it stays below 20 ms, which etcd bears");
        let held_up = Some(Doubt::CpuStarved { share: 0.65 });
        let busy = Evidence { held_up, ..steady(12.0) };
        let (answer, words) = super::tests::answer(&busy);
        assert_eq!(answer, Answer::YesBut, "{words}");
        assert!(words.contains("; but the test waited for a processor"), "{words}");
        assert_eq!(next(&busy), "again");
    }

    #[test]
    fn beyond_the_edge_is_a_no() {
        let (answer, words) = answer(&steady(30.0));
        assert_eq!(answer, Answer::No, "{words}");
        assert!(words.contains("36.0 ms or longer"), "{words}");
        assert!(words.contains("needs 99 % within 20 ms"), "{words}");
    }

    #[test]
    fn a_rare_tail_is_told() {
        let mut seen = steady(2.0);
        seen.bins = bins(&[(2.8, 11_940), (80.0, 60)]);
        seen.longest_ns = 80_000_000;
        let (answer, words) = answer(&seen);
        assert_eq!(answer, Answer::YesBut);
        assert_eq!(words, "yes, but 1 commit in 200 takes 20 ms or longer, up to 80.0 ms");
        // One in more than a thousand is not worth a word.
        seen.bins = bins(&[(2.8, 11_990), (80.0, 10)]);
        assert_eq!(self::answer(&seen).0, Answer::Yes);
    }

    #[test]
    fn a_stall_is_a_no_although_the_percentile_is_good() {
        let mut seen = steady(2.0);
        seen.stalls = vec![stall(80.0, StallCause::Device)];
        assert_eq!(answer(&seen).0, Answer::Yes);
        seen.stalls.push(stall(1400.0, StallCause::Device));
        let (answer, words) = answer(&seen);
        assert_eq!(answer, Answer::No);
        assert!(words.contains("stalled for 1.40 s"), "{words}");
        assert!(words.contains("otherwise it is fast"), "{words}");
    }

    /// A stall that outlasts the measurement leaves a few fast commits before it.
    #[test]
    fn a_stall_of_most_of_the_time_leaves_nothing_that_is_otherwise_fast() {
        let mut seen = steady(2.0);
        seen.stalls = vec![stall(75_000.0, StallCause::Device)];
        let found = judged(&seen);
        assert_eq!(found.answer, Answer::No);
        assert!(!found.sentence.contains("otherwise"), "{}", found.sentence);
        assert!(found.stood_still());
        assert_eq!(found.longest_wait_ms(), 75_000.0);
    }

    #[test]
    fn a_commit_as_long_as_a_stall_is_one() {
        let mut seen = steady(900.0);
        seen.longest_ns = 1_200_000_000;
        let (answer, words) = answer(&seen);
        assert_eq!(answer, Answer::No);
        assert!(words.contains("stalled for 1.20 s"), "{words}");
    }

    #[test]
    fn a_wait_that_others_caused_decides_nothing() {
        let mut seen = steady(2.0);
        seen.stalls = vec![stall(3000.0, StallCause::CpuStarvation)];
        seen.longest_ns = 3_000_000_000;
        let (answer, words) = answer(&seen);
        assert_eq!(answer, Answer::Undecided);
        assert!(words.contains("the processor was busy"), "{words}");
        // What is too slow without it stays so.
        seen.p99_ns = steady(30.0).p99_ns;
        assert_eq!(self::answer(&seen).0, Answer::No);
    }

    #[test]
    fn slow_commits_of_a_busy_machine_decide_nothing() {
        let mut seen = steady(30.0);
        seen.held_up = Some(Doubt::CpuStarved { share: 0.65 });
        let (answer, words) = answer(&seen);
        assert_eq!(answer, Answer::Undecided);
        assert!(words.contains("but the test waited for a processor 65 %"), "{words}");
        assert_eq!(next(&seen), "again");
        // What is fast on a busy machine is fast.
        let fast = Evidence { held_up: seen.held_up, ..steady(2.0) };
        assert_eq!(self::answer(&fast).0, Answer::Yes);
    }

    #[test]
    fn too_few_commits_decide_nothing_and_a_longer_time_would() {
        let mut seen = steady(2.0);
        (seen.commits, seen.p99_ns) = (100, None);
        let (answer, words) = answer(&seen);
        assert_eq!(answer, Answer::Undecided);
        // 450 commits take 270 s.
        assert!(words.ends_with("too few for the 99th percentile"), "{words}");
        assert_eq!(next(&seen), "again --time 5m");
        let (answer, words) = self::answer(&Evidence::default());
        assert_eq!(answer, Answer::Undecided);
        assert!(words.contains("no commit was finished"), "{words}");
    }

    #[test]
    fn a_few_commits_that_are_all_too_slow_are_a_no() {
        let mut seen = steady(400.0);
        (seen.commits, seen.p99_ns) = (100, None);
        let (answer, words) = answer(&seen);
        assert_eq!(answer, Answer::No);
        assert!(words.contains("even the fastest of 100 commits took 320 ms"), "{words}");
        seen.commits = 5;
        assert_eq!(self::answer(&seen).0, Answer::Undecided);
    }

    #[test]
    fn an_interval_across_the_edge_decides_nothing() {
        let mut seen = steady(2.0);
        seen.p99_ns = Some(around(15.0, 3.0, 70.0));
        let (answer, words) = answer(&seen);
        assert_eq!(answer, Answer::Undecided);
        let why = "20 ms is the limit; but so few commits leave room for more than that";
        assert!(words.ends_with(why), "{words}");
        seen.p99_ns = Some(around(30.0, 3.0, 70.0));
        let (_, words) = self::answer(&seen);
        assert!(words.ends_with("leave room for less than that"), "{words}");
        assert_eq!(next(&seen), "again --time 4m");
        seen.seconds = 3600.0;
        assert!(next(&seen).starts_with("do not rely on this storage"));
    }

    #[test]
    fn a_measurement_cut_short_says_yes_to_nothing() {
        let mut seen = steady(2.0);
        seen.is_cut_short = true;
        assert_eq!(answer(&seen).0, Answer::Undecided);
        seen.p99_ns = steady(30.0).p99_ns;
        assert_eq!(answer(&seen).0, Answer::No);
    }

    #[test]
    fn writes_that_end_in_memory_are_no_yes() {
        let mut seen = steady(2.0);
        seen.is_cached = true;
        let (answer, words) = answer(&seen);
        assert_eq!(answer, Answer::Undecided);
        assert!(words.contains("keeps writes in memory"), "{words}");
        seen.p99_ns = steady(30.0).p99_ns;
        assert_eq!(self::answer(&seen).0, Answer::No);
    }
}
