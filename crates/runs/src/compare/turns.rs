//! Two programs that measured the same on one machine in turns, each several times: as two subjects of a comparison.

use super::{Figure, Subject, SubjectJob};
use rubus_stats::passes;
use rubus_vocabulary::paired::{PairedJob, Round};
use rubus_vocabulary::result::{Against, Run};

/// Both as subjects, the baseline first, from the runs of each round. Only what every run has is a job; its figure is that
/// of all rounds, with Student's t. Absent without a round.
pub fn subjects(names: [&str; 2], rounds: &[[Run; 2]]) -> Option<[Subject; 2]> {
    let of_side = |side: usize| {
        let each = rounds.iter().map(|round| Subject::of_run(names[side], &round[side]));
        each.collect::<Vec<Subject>>()
    };
    let (baselines, others) = (of_side(0), of_side(1));
    let seconds = rounds.first()?[0].processor()?.seconds;
    let jobs = baselines.first()?.jobs.iter().filter_map(|job| {
        let pairs = baselines.iter().zip(&others);
        let rounds = pairs.map(|(baseline, other)| {
            let both = [rate(baseline, job)?, rate(other, job)?];
            Some(Round {
                throughput: both,
                operations: both.map(|rate| (rate * seconds) as u64),
                p50_ns: [None; 2],
                p99_ns: [None; 2],
            })
        });
        Some(PairedJob { job: job.name.clone(), rounds: rounds.collect::<Option<_>>()? })
    });
    let jobs: Vec<PairedJob> = jobs.collect();
    let baseline = together(&baselines)?;
    let mut other = together(&others)?;
    other.against = Some(Against {
        started: baseline.when.clone()?,
        target: rounds.first()?[0].target.path.clone(),
        jobs,
    });
    Some([baseline, other])
}

fn rate(subject: &Subject, job: &SubjectJob) -> Option<f64> {
    let found = subject.jobs.iter().find(|other| other.name == job.name)?;
    Some(found.throughput.value)
}

/// One subject of several that are the same.
fn together(subjects: &[Subject]) -> Option<Subject> {
    let (first, others) = subjects.split_first()?;
    let mut whole = first.clone();
    for doubt in others.iter().flat_map(|subject| &subject.doubts) {
        if whole.doubts.iter().all(|known| known.kind != doubt.kind) {
            whole.doubts.push(doubt.clone());
        }
    }
    whole.jobs.retain_mut(|job| {
        let rates = subjects.iter().map(|subject| rate(subject, job));
        let Some(rates) = rates.collect::<Option<Vec<f64>>>() else {
            return false;
        };
        // The unit is a thousandth, so that what is done once in a second is not rounded away.
        let passes: Vec<(u64, f64)> = rates.iter().map(|rate| ((rate * 1e3) as u64, 1.0)).collect();
        match passes::rate(&passes) {
            Some(rate) => job.throughput = Figure::of(rate.scaled(1e-3)),
            None => return false,
        }
        true
    });
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Word, compare};
    use rubus_stats::Rng;
    use rubus_vocabulary::doubt::Doubt;
    use rubus_vocabulary::result::Figures;

    /// The machine drifts by a fifth from the first turn to the last, and each turn differs by 1 %.
    fn rounds(times: f64) -> Vec<[Run; 2]> {
        let mut rng = Rng::from_seed(5);
        let mut turn = 0;
        let mut run = |factor: f64, started: &str| {
            turn += 1;
            let mut run = rubus_fixtures::processor_run();
            run.started = started.into();
            let Figures::Processor(processor) = &mut run.figures else {
                panic!("it is of a processor");
            };
            let ciphers = processor.ciphers.as_mut().expect("there are some");
            for row in &mut ciphers.rows {
                for rate in [&mut row.rates.one_core, &mut row.rates.all_cores] {
                    let rate = rate.as_mut().expect("measured");
                    let noise = (0.01 * rng.normal()).exp() * (1.0 - 0.015 * f64::from(turn));
                    rate.per_second = rate.per_second.scaled(factor * noise);
                }
            }
            run
        };
        let round = |number: usize| {
            let (baseline, other) = ("2026-11-21T01:00:00Z", "2026-11-21T01:00:09Z");
            match number % 2 {
                0 => {
                    let first = run(1.0, baseline);
                    [first, run(times, other)]
                }
                _ => {
                    let second = run(times, other);
                    [run(1.0, baseline), second]
                }
            }
        };
        (0..6).map(round).collect()
    }

    fn ratios(rounds: &[[Run; 2]]) -> Vec<(String, crate::compare::Ratio)> {
        let subjects = subjects(["32 bits", "64 bits"], rounds).expect("rounds");
        let comparison = compare(&subjects);
        assert!(comparison.interleaved);
        let rows = comparison.rows.iter();
        let ciphers =
            rows.filter(|row| row.title.contains("kernel") || row.title.contains("program"));
        ciphers.map(|row| (row.title.clone(), row.throughput.ratios[1].expect("a ratio"))).collect()
    }

    #[test]
    fn a_difference_is_found_through_a_drift_that_is_larger() {
        let ratios = ratios(&rounds(1.1));
        assert_eq!(ratios.len(), 16);
        let mut holding = 0;
        for (title, ratio) in &ratios {
            assert_eq!(ratio.word, Word::Faster, "{title}: {ratio:?}");
            let interval = ratio.figure.interval.expect("an interval");
            holding += usize::from(interval.low < 1.1 && 1.1 < interval.high);
        }
        assert!(holding >= 13, "{holding} of {}", ratios.len());
    }

    #[test]
    fn equals_are_not_told_apart() {
        for (title, ratio) in ratios(&rounds(1.0)) {
            assert_eq!(ratio.word, Word::NoEvidence, "{title}: {ratio:?}");
        }
    }

    #[test]
    fn what_one_run_lacks_is_no_job_and_what_disturbed_one_is_a_doubt_of_all() {
        let mut rounds = rounds(1.0);
        rounds[3][1].doubts.push(Doubt::Undervoltage);
        let Figures::Processor(processor) = &mut rounds[2][0].figures else {
            panic!("it is of a processor");
        };
        processor.linpack = None;
        let [baseline, other] = subjects(["a", "b"], &rounds).expect("rounds");
        assert!(!baseline.jobs.iter().any(|job| job.name.contains("linpack")));
        assert!(other.doubts.iter().any(|doubt| doubt.kind == "undervoltage"));
        assert!(subjects(["a", "b"], &[]).is_none());
    }
}
