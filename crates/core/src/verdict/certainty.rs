//! How sure a verdict is: doubts gathered over the jobs, and one sentence.

use super::Disturbance;
use crate::doubt::Doubt;
use crate::result::{Access, Outcome, Run};
use crate::title::job_title;
use crate::units::{bytes_iec, percent};

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
    let mut sentence = if inconclusive.len() == run.results.len() {
        "No figure settled in the time and bytes allowed.".to_string()
    } else if widest.is_finite() {
        format!(
            "The figures hold within ±{} or better (95 % confidence)",
            percent(widest)
        )
    } else {
        "The figures hold within the intervals given (95 % confidence)".to_string()
    };
    if !inconclusive.is_empty() && inconclusive.len() < run.results.len() {
        // More names than this are no sentence; the tables mark them.
        const MOST_NAMES: usize = 4;
        let which = match inconclusive.len() <= MOST_NAMES {
            true => inconclusive.join(", "),
            false => format!("{} of {}", inconclusive.len(), run.results.len()),
        };
        sentence.push_str(&format!(", except {which}, which did not settle"));
    }
    if !sentence.ends_with('.') {
        sentence.push('.');
    }
    if run.target.access == Access::Buffered {
        sentence.push_str(" They include the page cache.");
    }
    if run.bytes_written > 0 {
        sentence.push_str(&format!(" {} were written.", bytes_iec(run.bytes_written)));
    }
    sentence
}
