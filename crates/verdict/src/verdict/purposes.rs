//! What a device is good for, with the thresholds of `docs/explanation/verdict.md`.

use super::pipes::disk;
use super::{Grade, Suitability};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::application_class::{A1, Met, met};
use rubus_vocabulary::job_names;
use rubus_vocabulary::result::{JobResult, Run};
use rubus_vocabulary::units::{duration_ns, iops, rate_si};

pub(super) fn suitability(run: &Run) -> Vec<Suitability> {
    vec![logging(run), desktop(run), swap(run), storage_node(run)]
}

/// An interval wider than this share of its value does not tell one grade from the next.
const TOO_WIDE: f64 = 0.25;

/// A figure that a purpose needs, with its threshold and how to say it.
struct Need<'a> {
    estimate: Option<&'a Estimate>,
    good: f64,
    limited: f64,
    words: String,
}

/// The worst need decides; its words are the reason.
fn grade(purpose: &str, needs: Vec<Need>) -> Suitability {
    let mut worst = (Grade::Good, String::new());
    for need in needs {
        let grade = match need.estimate {
            None => Grade::Unknown,
            Some(e) if met(e, need.good) == Met::Yes => Grade::Good,
            Some(e) if e.low >= need.limited => Grade::Limited,
            Some(e) if e.high < need.limited => Grade::Poor,
            // Too uncertain to tell limited from good or from poor.
            Some(e) if e.relative_half_width() > TOO_WIDE => Grade::Unknown,
            Some(e) if e.value >= need.limited => Grade::Limited,
            Some(_) => Grade::Poor,
        };
        let rank = |grade: Grade| match grade {
            Grade::Good => 0,
            Grade::Limited => 1,
            Grade::Unknown => 2,
            Grade::Poor => 3,
        };
        if worst.1.is_empty() || rank(grade) > rank(worst.0) {
            worst = match (grade, need.estimate) {
                (Grade::Unknown, Some(_)) => (grade, format!("too uncertain: {}", need.words)),
                _ => (grade, need.words),
            };
        }
    }
    Suitability { purpose: purpose.into(), grade: worst.0, reason: worst.1 }
}

/// A job's result, if anything of it was measured.
fn measured<'a>(run: &'a Run, name: &str) -> Option<&'a JobResult> {
    run.job(name).filter(|result| result.operations > 0)
}

fn rate_need<'a>(run: &'a Run, name: &str, good: f64, limited: f64, what: &str) -> Need<'a> {
    let estimate = measured(run, name).map(|result| &result.iops);
    let words = match estimate {
        // Without its interval the figure would contradict the grade.
        Some(e) if e.value >= good && met(e, good) != Met::Yes => format!(
            "{} {what} per second, but perhaps only {}; {good:.0} are comfortable",
            iops(e.value),
            iops(e.low)
        ),
        Some(e) if e.relative_half_width() > TOO_WIDE && e.high.is_finite() => format!(
            "{} to {} {what} per second; {good:.0} are comfortable",
            iops(e.low),
            iops(e.high)
        ),
        Some(e) => format!("{} {what} per second; {good:.0} are comfortable", iops(e.value)),
        None => format!("{what} were not measured"),
    };
    Need { estimate, good, limited, words }
}

/// Longest wait of a job against two limits in seconds, worded as a rate so that more is better.
fn capped_by_stalls(
    run: &Run,
    jobs: &[&str],
    good_s: f64,
    mut suitability: Suitability,
) -> Suitability {
    let longest_ns =
        jobs.iter().filter_map(|name| run.job(name)?.latency_ns.max).max().unwrap_or(0);
    if longest_ns as f64 > good_s * 1e9 && suitability.grade == Grade::Good {
        suitability.grade = Grade::Limited;
        suitability.reason = format!("one operation took {}", duration_ns(longest_ns));
    }
    suitability
}

pub(super) fn logging(run: &Run) -> Suitability {
    // One entry per second is the seed of all Pi loggers; ten times that is comfortable.
    let needs = vec![rate_need(run, job_names::COMMIT, 10.0, 2.0, "commits")];
    capped_by_stalls(run, &[job_names::COMMIT], 1.0, grade("logging", needs))
}

fn desktop(run: &Run) -> Suitability {
    let needs = vec![
        rate_need(run, job_names::RANDOM_READ, A1.read_iops, 700.0, "random reads"),
        rate_need(run, job_names::RANDOM_WRITE, A1.write_iops, 200.0, "random writes"),
        rate_need(run, job_names::COMMIT, 50.0, 15.0, "commits"),
    ];
    capped_by_stalls(
        run,
        &[job_names::BYSTANDER_READ, job_names::RANDOM_WRITE],
        0.5,
        grade("desktop", needs),
    )
}

fn swap(run: &Run) -> Suitability {
    let flash_card = disk(run).is_some_and(|disk| disk.mmc.is_some());
    let needs = vec![
        rate_need(run, job_names::RANDOM_READ, 2000.0, 1000.0, "random reads"),
        rate_need(run, job_names::RANDOM_WRITE, 2000.0, 500.0, "random writes"),
    ];
    let mut suitability = capped_by_stalls(
        run,
        &[job_names::RANDOM_READ, job_names::RANDOM_WRITE],
        0.2,
        grade("swap", needs),
    );
    if flash_card && matches!(suitability.grade, Grade::Good | Grade::Limited) {
        suitability.grade = Grade::Limited;
        suitability.reason.push_str("; swapping wears a flash card out");
    }
    suitability
}

fn storage_node(run: &Run) -> Suitability {
    // A 1 Gbit/s port carries about 117 MB/s or 16 000 requests of 8 KiB per second.
    let sequential =
        measured(run, job_names::SEQUENTIAL_READ).map(|result| &result.bytes_per_second);
    let words = match sequential {
        Some(e) => format!("{} in order; a 1 Gbit/s port carries 117 MB/s", rate_si(e.value)),
        None => "sequential reads were not measured".into(),
    };
    let needs = vec![
        rate_need(run, job_names::RANDOM_READ_DEEP, 8000.0, 3000.0, "random reads at depth 32"),
        rate_need(run, job_names::RANDOM_WRITE_DEEP, 4000.0, 1000.0, "random writes at depth 32"),
        Need { estimate: sequential, good: 117e6, limited: 40e6, words },
    ];
    grade("storage node", needs)
}

#[cfg(test)]
mod tests {
    use rubus_fixtures as fixture;

    use super::*;

    #[test]
    fn a_figure_above_its_threshold_that_is_not_good_says_why() {
        let mut run = fixture::slow_sd_card_run();
        let reads = run.results.iter_mut();
        let mut reads = reads.filter(|result| result.job == job_names::RANDOM_READ);
        let iops = &mut reads.next().expect("it was measured").iops;
        (iops.value, iops.low, iops.high) = (1575.0, 1450.0, 1700.0);
        let need = rate_need(&run, job_names::RANDOM_READ, 1500.0, 700.0, "random reads");
        assert!(need.words.contains("perhaps only 1450"), "{}", need.words);
        let suitability = grade("desktop", vec![need]);
        assert_eq!(suitability.grade, Grade::Limited);
    }
}
