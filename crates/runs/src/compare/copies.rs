//! Copies of a job that have results of their own (`numjobs` without `group_reporting`), as one job.
//!
//! Which copy got how much of a device is chance: compared one by one, one is "faster" and another
//! "slower" where all together did the same.

use super::subject::{Subject, distinct};
use rubus_vocabulary::figure::{Figure, Interval};
use rubus_vocabulary::spec::Direction;
use rubus_vocabulary::subject_job::{Scope, SubjectJob};

/// The subjects, with the copies of a job as one wherever all that have the job had as many. What was
/// measured in turns stays as it is, since its rounds are those of each copy.
pub(super) fn joined(subjects: &[Subject]) -> Vec<Subject> {
    let mut others = subjects.iter().skip(1);
    if others.any(|other| !other.rounds_against(&subjects[0]).is_empty()) {
        return subjects.to_vec();
    }
    let all: Vec<Sets<'_>> = subjects.iter().map(|subject| sets(&subject.jobs)).collect();
    let is_alike = |key: &Key<'_>| {
        let of_key = all.iter().flatten().filter(|(other, _)| other == key);
        let counts: Vec<Option<u32>> = of_key.map(|(_, count)| *count).collect();
        let are_several = counts.first().copied().flatten().is_some_and(|first| first > 1);
        counts.len() > 1 && are_several && counts.windows(2).all(|pair| pair[0] == pair[1])
    };
    let join = |subject: &Subject| join(&subject.jobs, is_alike);
    subjects.iter().map(|subject| Subject { jobs: join(subject), ..subject.clone() }).collect()
}

/// What the copies of a job have in common with those in other subjects.
#[derive(Clone, Copy, PartialEq)]
struct Key<'a> {
    section: &'a str,
    direction: Direction,
    scope: Scope,
    on: Option<&'a str>,
}

impl Key<'_> {
    fn of(job: &SubjectJob) -> Option<Key<'_>> {
        Some(Key {
            section: job.section.as_deref()?,
            direction: job.direction,
            scope: job.scope,
            on: job.on.as_deref(),
        })
    }
}

/// Each job of a subject once, with the number of its copies.
type Sets<'a> = Vec<(Key<'a>, Option<u32>)>;

/// The number of copies of each job; none where jobs of one section are not copies that ran at the same time.
fn sets(jobs: &[SubjectJob]) -> Sets<'_> {
    let mut sets = Sets::new();
    for key in jobs.iter().filter_map(Key::of) {
        if !sets.iter().any(|(other, _)| *other == key) {
            let of_key = jobs.iter().filter(|job| Key::of(job) == Some(key));
            sets.push((key, copies(&of_key.collect::<Vec<_>>())));
        }
    }
    sets
}

fn copies(jobs: &[&SubjectJob]) -> Option<u32> {
    let (first, others) = jobs.split_first()?;
    let has_beside = |job: &SubjectJob| job.beside.is_some_and(|n| n as usize >= others.len());
    let are_copies = others.is_empty()
        || first.stated.is_some()
            && others.iter().all(|other| is_same_work(first, other))
            && jobs.iter().all(|job| has_beside(job));
    are_copies.then(|| jobs.iter().map(|job| job.copies).sum())
}

fn is_same_work(a: &SubjectJob, b: &SubjectJob) -> bool {
    let of = |job: &SubjectJob| (job.pattern, job.operation, job.unit, job.commit, job.is_shared);
    let how = |job: &SubjectJob| (job.block_bytes, job.queue_depth, job.sync, job.access);
    of(a) == of(b) && how(a) == how(b) && a.content == b.content && a.stated == b.stated
}

fn join(jobs: &[SubjectJob], is_joined: impl Fn(&Key<'_>) -> bool) -> Vec<SubjectJob> {
    let mut all: Vec<SubjectJob> = Vec::new();
    let mut grown: Vec<usize> = Vec::new();
    for job in jobs {
        let key = Key::of(job).filter(|key| is_joined(key));
        let first = key.and_then(|key| all.iter().position(|other| Key::of(other) == Some(key)));
        match first {
            Some(at) => {
                add(&mut all[at], job);
                if !grown.contains(&at) {
                    grown.push(at);
                }
            }
            None => all.push(job.clone()),
        }
    }
    for at in grown {
        let job = &mut all[at];
        job.title = format!("{}, {} copies", without_name(&job.title, &job.name), job.copies);
    }
    distinct(all)
}

/// Of a title what the job does: "4 KiB random reads" of "4 KiB random reads (log #1)".
fn without_name<'a>(title: &'a str, name: &str) -> &'a str {
    let named = title.strip_suffix(')').and_then(|title| title.rsplit_once(" ("));
    let is_name = |inner: &str| {
        inner.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(" #"))
    };
    named.filter(|(_, inner)| is_name(inner)).map_or(title, |(does, _)| does)
}

/// Adds a copy's figures to those of others.
fn add(sum: &mut SubjectJob, copy: &SubjectJob) {
    let weights = (sum.throughput.value, copy.throughput.value);
    sum.p50_ns = sum.p50_ns.zip(copy.p50_ns).map(|pair| between(pair, weights));
    sum.p99_ns = sum.p99_ns.zip(copy.p99_ns).map(|pair| between(pair, weights));
    sum.throughput = total(sum.throughput, copy.throughput);
    sum.copies += copy.copies;
    sum.beside = sum.beside.map(|others| others.saturating_sub(1));
    for doubt in &copy.doubts {
        if !sum.doubts.iter().any(|known| known.kind == doubt.kind) {
            sum.doubts.push(doubt.clone());
        }
    }
}

/// Copies on one device slow down together, so that their intervals add up.
fn total(a: Figure, b: Figure) -> Figure {
    let interval = a.interval.zip(b.interval).map(|(a, b)| Interval {
        low: a.low + b.low,
        high: a.high + b.high,
        rough: a.rough || b.rough,
    });
    Figure { value: a.value + b.value, interval }
}

/// A percentile of all operations together: it is never outside of those of the parts. Within, their
/// mean by the operations stands for it.
fn between((a, b): (Figure, Figure), (of_a, of_b): (f64, f64)) -> Figure {
    let share = of_b / (of_a + of_b);
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 };
    let interval = a.interval.zip(b.interval).map(|(a, b)| Interval {
        low: a.low.min(b.low),
        high: a.high.max(b.high),
        rough: a.rough || b.rough,
    });
    Figure { value: a.value + (b.value - a.value) * share, interval }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::compare::{Comparison, Subject, compare, fio};

    /// fio's results of one section with these operations per second.
    fn by_fio(rates: &[u32], options: Value) -> Subject {
        let jobs: Vec<Value> = rates
            .iter()
            .map(|rate| {
                let (rate, total) = (f64::from(*rate), rate * 60);
                let side = json!({"io_bytes": u64::from(total) * 4096, "io_kbytes": total * 4,
                    "bw_bytes": rate * 4096.0, "iops": rate, "runtime": 60_000,
                    "total_ios": total, "iops_mean": rate, "iops_stddev": rate / 50.0,
                    "iops_samples": 120,
                    "clat_ns": {"percentile": {"50.000000": 1e9 / rate, "99.000000": 2e9 / rate}}});
                json!({"jobname": "a", "groupid": 0, "error": 0, "job options": options,
                    "read": side, "job_runtime": 60_000})
            })
            .collect();
        fio::subject("x", &json!({"fio version": "fio-3.33", "jobs": jobs})).expect("fio's")
    }

    fn options(copies: usize) -> Value {
        json!({"rw": "randread", "bs": "4k", "direct": "1", "numjobs": copies.to_string()})
    }

    fn of(rates: &[u32]) -> Subject {
        by_fio(rates, options(rates.len()))
    }

    fn titles(comparison: &Comparison) -> Vec<&str> {
        comparison.rows.iter().map(|row| row.title.as_str()).collect()
    }

    #[test]
    fn copies_are_compared_as_their_sum() {
        let compared = compare(&[of(&[900, 1100, 1000]), of(&[1100, 900, 1000])]);
        assert_eq!(titles(&compared), ["4 KiB random reads, 3 copies"]);
        assert!(compared.alone.is_empty() && compared.judged <= 1, "{compared:?}");
        let throughput = &compared.rows[0].throughput;
        let figure = throughput.figures[0].expect("a figure");
        assert!((figure.value - 3000.0 * 4096.0).abs() < 1.0, "{figure:?}");
        let one = of(&[1000]).jobs[0].throughput;
        let width = |figure: super::Figure| {
            figure.interval.map(|interval| (interval.high - interval.low) / figure.value)
        };
        let (width_of_all, width_of_one) = (width(figure).unwrap(), width(one).unwrap());
        assert!((width_of_all - width_of_one).abs() < 1e-6, "they slow down together");
        let ratio = throughput.ratios[1].expect("a ratio").figure.value;
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
        assert!(compared.rows[0].remarks.is_empty(), "{:?}", compared.rows[0].remarks);
        let p50 = compared.rows[0].p50_ns.figures[0].expect("a median").value;
        assert!((1e9 / 1100.0..=1e9 / 900.0).contains(&p50), "{p50}");
    }

    #[test]
    fn copies_with_one_result_are_like_those_with_results_of_their_own() {
        let mut grouped = options(3);
        grouped["group_reporting"] = json!("1");
        let together = by_fio(&[3000], grouped);
        assert_eq!(together.jobs[0].copies, 3);
        let apart = of(&[900, 1100, 1000]);
        for pair in [[together.clone(), apart.clone()], [apart, together]] {
            let compared = compare(&pair);
            assert_eq!(titles(&compared), ["4 KiB random reads, 3 copies"]);
            assert!(compared.alone.is_empty(), "{:?}", compared.alone);
        }
    }

    #[test]
    fn other_numbers_and_other_work_stay_apart() {
        let compared = compare(&[of(&[1000, 1000]), of(&[900, 900, 900])]);
        assert_eq!(titles(&compared), ["4 KiB random reads (a #1)", "4 KiB random reads (a #2)"]);
        assert_eq!(compared.alone.len(), 1);
        // Sections of one name that were told to do something else are no copies.
        let mut mixed = of(&[1000, 1000]);
        let stated = mixed.jobs[1].stated.as_mut().expect("options");
        stated.insert("offset".into(), "1048576".into());
        let compared = compare(&[mixed.clone(), mixed]);
        assert_eq!(compared.rows.len(), 2);
        // So are those that ran one after the other.
        let mut later = of(&[1000, 1000]);
        later.jobs.iter_mut().for_each(|job| job.beside = Some(0));
        assert_eq!(compare(&[later.clone(), later]).rows.len(), 2);
    }

    #[test]
    fn a_title_keeps_what_is_no_name() {
        let cases = [
            ("4 KiB random reads (a #1)", "4 KiB random reads"),
            ("4 KiB random reads (a)", "4 KiB random reads"),
            ("4 KiB commits (fsync)", "4 KiB commits (fsync)"),
            ("4 KiB commits (fsync) (a #12)", "4 KiB commits (fsync)"),
            ("a", "a"),
        ];
        for (title, does) in cases {
            assert_eq!(super::without_name(title, "a"), does);
        }
    }
}
