//! Comparison: two or more runs side by side, job by job, with what differs around them.
//!
//! The first subject is the baseline; every ratio is "the other over the baseline". How the
//! intervals and words are made is written in `docs/explanation/statistics.md`. Everything here is a pure
//! function of its arguments; drawing is in `text`.

#![deny(clippy::disallowed_methods)]

pub mod alike;
mod copies;
pub mod facts;
pub mod fio;
mod judge;
pub mod latency;
mod matching;
mod modes;
mod next;
mod stages;
mod stated;
pub mod subject;
#[cfg(test)]
mod tests;
pub mod turns;

use serde::{Deserialize, Serialize};

use rubus_verdict::pipes::Picture;

pub use judge::Word;
pub use rubus_vocabulary::figure::{Figure, Interval, Named, Unit};
pub use rubus_vocabulary::paired::{PairedJob, Round};
pub use subject::{Source, Subject, SubjectJob};

use rubus_stats::compare::{BETWEEN_RUNS, BETWEEN_RUNS_OF_GUESTS, between_runs, ratio};
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::units::bytes_iec;

/// Several subjects side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// What to do next.
    #[serde(default)]
    pub next: NextStep,
    /// What was compared; the first is the baseline.
    pub subjects: Vec<SubjectLine>,
    /// What differs around them, in the order of importance.
    pub differences: Vec<Difference>,
    /// Doubts of kinds that only some of them have, and then those of kinds that all have.
    pub doubts: Vec<DoubtOfSome>,
    /// The jobs that the baseline and at least one other have in common.
    pub rows: Vec<Row>,
    /// Jobs without a counterpart.
    pub alone: Vec<Alone>,
    /// How many words "faster" or "slower" could have been said; what the correction for many
    /// comparisons is made for.
    pub judged: usize,
    /// Measured in turns, so that a drift of the machine hits all alike; the ratios are those of
    /// neighbouring rounds.
    pub interleaved: bool,
    /// How far the disks of two runs that were not measured in turns may differ, being the same, beyond the runs' own
    /// intervals: a share. Every such ratio's interval allows for it.
    pub between_runs: f64,
}

/// A subject without its jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubjectLine {
    /// How it is called.
    pub name: String,
    /// Where its figures come from.
    pub source: Source,
    /// When it was measured, RFC 3339 in UTC.
    pub when: Option<String>,
    /// What a reader must know about its figures.
    pub note: Option<String>,
    /// Its stages as a picture, where what applications do was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<Picture>,
}

/// A fact that is not the same for all subjects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// "board", "kernel", …
    pub what: String,
    /// One value per subject; absent where it is not known.
    pub values: Vec<Option<String>>,
}

/// A doubt of a subject, once for each kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DoubtOfSome {
    /// The subject, by its place.
    pub subject: usize,
    /// Its kind, as in the JSON of a run.
    pub kind: String,
    /// Whether every subject has a doubt of this kind.
    pub is_of_all: bool,
    /// The doubt in words; of several of a kind, the first.
    pub what: String,
    /// The jobs that it concerns, in words; empty for the whole subject.
    pub jobs: Vec<String>,
}

/// A job that the baseline and at least one other have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// What it does, in words.
    pub title: String,
    /// Name of the job in each subject; absent where it has none.
    pub jobs: Vec<Option<String>>,
    /// Throughput; more is faster.
    pub throughput: Measure,
    /// What the throughput counts.
    pub unit: Unit,
    /// Median latency in nanoseconds; less is faster.
    pub p50_ns: Measure,
    /// 99th percentile of the latency in nanoseconds; less is faster.
    pub p99_ns: Measure,
    /// In what the jobs of a row are not quite the same.
    pub remarks: Vec<String>,
}

/// One quantity of one job in all subjects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measure {
    /// The figure of each subject.
    pub figures: Vec<Option<Figure>>,
    /// The ratio of each to the baseline; absent for the baseline itself.
    pub ratios: Vec<Option<Ratio>>,
}

/// A subject's figure over the baseline's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratio {
    /// The ratio and its 95 % interval, if both figures have one.
    pub figure: Figure,
    /// What it says.
    pub word: Word,
    /// How probable a ratio as far from 1 would be if there were no difference; absent without an
    /// interval.
    pub chance: Option<f64>,
}

/// A job without a counterpart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Alone {
    /// The subject, by its place.
    pub subject: usize,
    /// The job in words.
    pub title: String,
}

/// Compares the first subject with each of the others. With fewer than two subjects nothing is
/// compared. Where two were measured in turns, the ratios are those of the rounds.
pub fn compare(subjects: &[Subject]) -> Comparison {
    let joined = copies::joined(subjects);
    let subjects = &joined[..];
    let between = if subjects.iter().any(|subject| subject.is_of_guest) {
        BETWEEN_RUNS_OF_GUESTS
    } else {
        BETWEEN_RUNS
    };
    let (mut rows, alone) = match subjects.split_first() {
        Some((baseline, others)) => rows(baseline, others, between),
        None => (Vec::new(), Vec::new()),
    };
    let interleaved =
        subjects.iter().skip(1).any(|subject| !subject.rounds_against(&subjects[0]).is_empty());
    let judged = judge::judge_all(&mut rows, interleaved);
    let mut comparison = Comparison {
        next: NextStep::default(),
        subjects: subjects.iter().map(SubjectLine::of).collect(),
        differences: differences(subjects),
        doubts: doubts_of_some(subjects),
        rows,
        alone,
        judged,
        interleaved,
        between_runs: between,
    };
    comparison.next = next::next(&comparison);
    comparison
}

impl SubjectLine {
    fn of(subject: &Subject) -> Self {
        SubjectLine {
            name: subject.name.clone(),
            source: subject.source,
            when: subject.when.clone(),
            note: subject.note.clone(),
            picture: subject.picture.clone(),
        }
    }
}

impl Comparison {
    /// The pictures of the subjects that have one, with their names.
    pub fn pictures(&self) -> Vec<(&str, &Picture)> {
        let subjects = self.subjects.iter();
        subjects
            .filter_map(|subject| Some((subject.name.as_str(), subject.picture.as_ref()?)))
            .collect()
    }

    /// The rows in which a subject is slower than the baseline in throughput or in one of the
    /// latencies, by more than `tolerance` (0.05 is 5 %) over the whole interval.
    pub fn regressions(&self, tolerance: f64) -> Vec<Regression<'_>> {
        let mut found = Vec::new();
        for row in &self.rows {
            let measures = [
                ("throughput", &row.throughput, true),
                ("median latency", &row.p50_ns, false),
                ("99th percentile of the latency", &row.p99_ns, false),
            ];
            for (what, measure, more_is_faster) in measures {
                for (subject, ratio) in measure.ratios.iter().enumerate() {
                    let Some(ratio) = ratio else { continue };
                    let Some(interval) = ratio.figure.interval else {
                        continue;
                    };
                    let beyond = if more_is_faster {
                        interval.high < 1.0 - tolerance
                    } else {
                        interval.low > 1.0 + tolerance
                    };
                    if ratio.word == Word::Slower && beyond {
                        found.push(Regression {
                            subject,
                            title: &row.title,
                            what,
                            ratio: ratio.figure.value,
                        });
                    }
                }
            }
        }
        found
    }
}

/// A job that became slower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regression<'a> {
    /// The subject, by its place.
    pub subject: usize,
    /// The job in words.
    pub title: &'a str,
    /// "throughput", "median latency", …
    pub what: &'static str,
    /// The subject's figure over the baseline's.
    pub ratio: f64,
}

/// The rows, and the jobs that are in none.
fn rows(baseline: &Subject, others: &[Subject], between: f64) -> (Vec<Row>, Vec<Alone>) {
    let in_turns: Vec<Vec<PairedJob>> =
        others.iter().map(|other| other.rounds_against(baseline)).collect();
    let pairings: Vec<Vec<Option<usize>>> =
        others.iter().map(|other| matching::counterparts(&baseline.jobs, &other.jobs)).collect();
    let mut rows = Vec::new();
    let mut alone = Vec::new();
    for (index, job) in baseline.jobs.iter().enumerate() {
        let counterparts: Vec<Option<&SubjectJob>> = pairings
            .iter()
            .zip(others)
            .map(|(pairing, other)| Some(&other.jobs[pairing[index]?]))
            .collect();
        if counterparts.iter().all(Option::is_none) {
            if !others.is_empty() {
                alone.push(Alone { subject: 0, title: job.title.clone() });
            }
            continue;
        }
        let rounds: Vec<Option<&PairedJob>> =
            in_turns.iter().map(|jobs| jobs.iter().find(|paired| paired.job == job.name)).collect();
        rows.push(row(job, &counterparts, &rounds, between));
    }
    for (place, (pairing, other)) in pairings.iter().zip(others).enumerate() {
        for (index, job) in other.jobs.iter().enumerate() {
            if !pairing.contains(&Some(index)) {
                alone.push(Alone { subject: place + 1, title: job.title.clone() });
            }
        }
    }
    (rows, alone)
}

fn row(
    job: &SubjectJob,
    others: &[Option<&SubjectJob>],
    rounds: &[Option<&PairedJob>],
    between: f64,
) -> Row {
    let jobs: Vec<Option<&SubjectJob>> =
        std::iter::once(Some(job)).chain(others.iter().copied()).collect();
    // Processors and memory have no state that changes between runs as a disk's does.
    let allowance = match job.block_bytes {
        Some(_) => between,
        None => 0.0,
    };
    let by = |pick: fn(&SubjectJob) -> Option<Figure>,
              of_rounds: fn(&PairedJob) -> Option<rubus_vocabulary::paired::Paired>| {
        let figures: Vec<Option<Figure>> = jobs.iter().map(|job| job.and_then(pick)).collect();
        let paired: Vec<_> = rounds.iter().map(|job| job.and_then(of_rounds)).collect();
        measure(figures, &paired, allowance)
    };
    Row {
        title: job.title.clone(),
        jobs: jobs.iter().map(|job| Some(job.as_ref()?.name.clone())).collect(),
        unit: job.unit,
        throughput: by(|job| Some(job.throughput), PairedJob::throughput),
        p50_ns: by(|job| job.p50_ns, PairedJob::p50),
        p99_ns: by(|job| job.p99_ns, PairedJob::p99),
        remarks: remarks(job, others),
    }
}

/// `paired` has the ratios of those that were measured in turns with the baseline; the others get the allowance for what
/// differs between runs.
fn measure(
    figures: Vec<Option<Figure>>,
    paired: &[Option<rubus_vocabulary::paired::Paired>],
    allowance: f64,
) -> Measure {
    let baseline = figures.first().copied().flatten();
    let ratios = figures.iter().enumerate().map(|(place, figure)| {
        if place == 0 {
            return None;
        }
        // What is no figure to compare, such as a median between two modes, is none in rounds either.
        let (figure, baseline) = ((*figure)?, baseline?);
        if let Some(paired) = paired.get(place - 1).copied().flatten() {
            return Some(Ratio {
                figure: Figure::of(paired.ratio),
                word: Word::NotJudged,
                chance: Some(paired.chance),
            });
        }
        let sound = |x: f64| x > 0.0 && x.is_finite();
        if !sound(figure.value) || !sound(baseline.value) {
            return None;
        }
        let joined = figure
            .estimate()
            .zip(baseline.estimate())
            .and_then(|(figure, baseline)| ratio(figure, baseline))
            .map(|ratio| between_runs(ratio, allowance));
        let rough =
            [figure, baseline].iter().any(|f| f.interval.is_some_and(|interval| interval.rough));
        Some(Ratio {
            figure: match joined {
                None => Figure::bare(figure.value / baseline.value),
                Some(estimate) => Figure {
                    value: estimate.value,
                    interval: Some(Interval { low: estimate.low, high: estimate.high, rough }),
                },
            },
            word: Word::NotJudged,
            chance: joined.map(judge::chance),
        })
    });
    Measure { ratios: ratios.collect(), figures }
}

/// In what the jobs of a row differ, though they are compared.
fn remarks(job: &SubjectJob, others: &[Option<&SubjectJob>]) -> Vec<String> {
    let mut remarks = Vec::new();
    let has_rate = |job: &SubjectJob| job.throughput.value > 0.0;
    if !has_rate(job) || !others.iter().flatten().all(|other| has_rate(other)) {
        remarks.push("no rate: a job did nothing, or took no time".into());
    }
    for other in others.iter().flatten() {
        remarks.extend(stated::remarks(job, other));
        match (job.block_bytes, other.block_bytes) {
            (Some(here), Some(there)) if here != there => remarks.push(format!(
                "blocks of {} against {}",
                bytes_iec(here.into()),
                bytes_iec(there.into())
            )),
            (Some(_), None) | (None, Some(_)) => {
                remarks.push("the size of the blocks is known of one only".into());
            }
            _ => {}
        }
        if let (Some(here), Some(there)) = (job.beside, other.beside)
            && here != there
        {
            remarks.push(format!("other jobs at the same time: {here} against {there}"));
        }
        if job.queue_depth.is_some() != other.queue_depth.is_some() {
            remarks.push("the queue depth is known of one only".into());
        }
        if job.access.is_some() && other.access.is_some() && job.access != other.access {
            remarks.push("past the page cache against through it".into());
        }
    }
    remarks.sort();
    remarks.dedup();
    remarks
}

/// The facts that are not the same everywhere, in the baseline's order, then those that only
/// others have. A fact that a subject's source does not speak of at all is no difference.
fn differences(subjects: &[Subject]) -> Vec<Difference> {
    let mut names: Vec<&str> = Vec::new();
    for fact in subjects.iter().flat_map(|subject| &subject.facts) {
        if !names.contains(&fact.name.as_str()) {
            names.push(&fact.name);
        }
    }
    let mut found = Vec::new();
    for name in names {
        let values: Vec<Option<&str>> = subjects.iter().map(|s| s.fact(name)).collect();
        let mut known: Vec<&str> = values.iter().flatten().copied().collect();
        let some_lack_it = known.len() < subjects.len();
        known.dedup();
        // Between machines a missing mount or device says something; between runs it is only unknown.
        let bare = subjects.iter().all(|s| s.source == Source::Machine);
        if known.len() > 1 || (bare && some_lack_it && !known.is_empty()) {
            found.push(Difference {
                what: name.to_string(),
                values: values.iter().map(|v| v.map(str::to_string)).collect(),
            });
        }
    }
    found
}

/// The doubts of every subject, once for each kind, with the jobs that they concern. What only some
/// have comes first, since it may explain a difference.
fn doubts_of_some(subjects: &[Subject]) -> Vec<DoubtOfSome> {
    let mut all: Vec<DoubtOfSome> = Vec::new();
    for (place, subject) in subjects.iter().enumerate() {
        let of_whole = subject.doubts.iter().map(|doubt| (doubt, None));
        let of_jobs = subject
            .jobs
            .iter()
            .flat_map(|job| job.doubts.iter().map(move |doubt| (doubt, Some(&job.title))));
        for (doubt, job) in of_whole.chain(of_jobs) {
            let known =
                all.iter_mut().find(|known| known.subject == place && known.kind == doubt.kind);
            match known {
                Some(known) => known.jobs.extend(job.cloned()),
                None => all.push(DoubtOfSome {
                    subject: place,
                    kind: doubt.kind.clone(),
                    is_of_all: false,
                    what: doubt.what.clone(),
                    jobs: job.cloned().into_iter().collect(),
                }),
            }
        }
    }
    let has = |place: usize, kind: &str| all.iter().any(|d| d.subject == place && d.kind == kind);
    let of_all: Vec<bool> =
        all.iter().map(|doubt| (0..subjects.len()).all(|place| has(place, &doubt.kind))).collect();
    for (doubt, of_all) in all.iter_mut().zip(of_all) {
        doubt.is_of_all = of_all;
    }
    all.sort_by_key(|doubt| doubt.is_of_all);
    all
}
