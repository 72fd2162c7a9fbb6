//! How sure a verdict is: doubts gathered over the jobs, and one sentence.

use super::Disturbance;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{Access, Accesses, Outcome, Run};
use rubus_vocabulary::title::job_title;
use rubus_vocabulary::units::{bytes_iec, percent};

pub(super) fn disturbances(run: &Run) -> Vec<Disturbance> {
    let mut list: Vec<Disturbance> = Vec::new();
    for doubt in &run.doubts {
        push_disturbance(&mut list, doubt, None);
    }
    for result in &run.results {
        for doubt in &result.doubts {
            push_disturbance(&mut list, doubt, Some(&result.job));
        }
    }
    list
}

fn push_disturbance(list: &mut Vec<Disturbance>, doubt: &Doubt, job: Option<&str>) {
    let what = doubt.what();
    match list.iter_mut().find(|known| known.what == what) {
        Some(known) => known.jobs.extend(job.map(str::to_string)),
        None => list.push(Disturbance {
            what,
            jobs: job.map(str::to_string).into_iter().collect(),
            remedy: doubt.remedy().to_string(),
        }),
    }
}

pub(super) fn certainty(run: &Run) -> String {
    if run.results.is_empty() {
        return "Nothing was measured.".into();
    }
    let inconclusive: Vec<String> = run
        .results
        .iter()
        .filter(|result| result.outcome == Outcome::Inconclusive)
        .map(job_title)
        .collect();
    let widest = run
        .results
        .iter()
        .filter(|result| result.outcome != Outcome::Inconclusive)
        .map(|result| result.iops.largest_deviation())
        .fold(0.0_f64, f64::max);
    // More names than this are no sentence; the tables mark them.
    const MAX_NAMES: usize = 4;
    let (all, out) = (run.results.len(), inconclusive.len());
    let mut sentence = if out == all {
        "No figure settled in the time and bytes allowed.".to_string()
    } else if out > MAX_NAMES || 2 * out > all {
        let settled = all - out;
        let hold = match settled {
            1 => "1 figure holds".to_string(),
            count => format!("{count} figures hold"),
        };
        let within = if widest.is_finite() {
            format!("within ±{} or better (95 % confidence)", percent(widest))
        } else {
            "within the interval given (95 % confidence)".into()
        };
        format!("Only {hold} {within}; the other {out} of {all} did not settle")
    } else if widest.is_finite() {
        format!("The figures hold within ±{} or better (95 % confidence)", percent(widest))
    } else {
        "The figures hold within the intervals given (95 % confidence)".to_string()
    };
    if sentence.starts_with("The figures") && !inconclusive.is_empty() {
        let which = inconclusive.join(", ");
        sentence.push_str(&format!(", except {which}, which did not settle"));
    }
    if !sentence.ends_with('.') {
        sentence.push('.');
    }
    if let Some(noise) = noise_apart(run, widest) {
        sentence.push_str(&format!(
            " Noise alone is ±{} or less; the rest allows for stalls and slow changes that a short run may miss.",
            percent(noise)
        ));
    }
    if run.accesses() == Accesses::All(Access::Buffered) {
        sentence.push_str(" They include the page cache.");
    }
    if run.bytes_written > 0 {
        sentence.push_str(&format!(" {} were written.", bytes_iec(run.bytes_written)));
    }
    sentence
}

/// The largest noise of the figures that settled, where the interval of the widest is much more than that.
fn noise_apart(run: &Run, widest: f64) -> Option<f64> {
    /// Of an interval that is mostly noise there is nothing to tell apart.
    const MAX_SHARE: f64 = 0.75;
    let settled = run.results.iter().filter(|result| result.outcome != Outcome::Inconclusive);
    let noises: Option<Vec<f64>> = settled.map(|result| result.noise).collect();
    let noise = noises?.into_iter().reduce(f64::max)?;
    (widest.is_finite() && noise <= MAX_SHARE * widest).then_some(noise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::result::JobResult;

    #[test]
    fn noise_is_told_apart_from_what_the_interval_allows_for() {
        let mut run = fixture::slow_sd_card_run();
        for (at, result) in run.results.iter_mut().enumerate() {
            result.noise = Some(0.01 * at as f64);
        }
        let settled = |result: &&JobResult| result.outcome != Outcome::Inconclusive;
        let noises = run.results.iter().filter(settled);
        let largest = noises.filter_map(|result| result.noise).fold(0.0, f64::max);
        let words = certainty(&run);
        let expected =
            format!(". Noise alone is ±{} or less; the rest allows for", percent(largest));
        assert!(words.contains(&expected), "{words}");
        // Where all is noise, and in older runs, nothing is.
        for noise in [Some(1.0), None] {
            run.results[0].noise = noise;
            assert!(!certainty(&run).contains("Noise"), "{noise:?}");
        }
    }

    /// "±20 % or better, except 7 of 10" praised what hardly anything was.
    #[test]
    fn where_most_did_not_settle_the_sentence_begins_with_that() {
        let mut run = fixture::slow_sd_card_run();
        let all = run.results.len();
        assert!(all > 4);
        for result in &mut run.results {
            result.outcome = Outcome::Converged;
        }
        assert!(certainty(&run).starts_with("The figures hold within"));
        for result in run.results.iter_mut().skip(2) {
            result.outcome = Outcome::Inconclusive;
        }
        let words = certainty(&run);
        assert!(words.starts_with("Only 2 figures hold within ±"), "{words}");
        let others = format!("the other {} of {all} did not settle.", all - 2);
        assert!(words.contains(&others), "{words}");
    }
}
