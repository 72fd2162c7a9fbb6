//! A comparison as CSV (RFC 4180): one row per job and subject that is compared with the baseline.

use crate::compare::{Comparison, Measure, Unit, Word};

use super::QUANTITIES;
use crate::text::run::csv::{line, number};

/// What the columns of a quantity are called.
const NAMES: [&str; 3] = ["throughput", "latency_p50_ns", "latency_p99_ns"];

/// The comparison, with a line of column names.
pub fn csv(comparison: &Comparison) -> String {
    let mut columns: Vec<String> =
        ["title", "baseline", "baseline_job", "subject", "subject_job", "throughput_unit"]
            .map(String::from)
            .to_vec();
    for name in NAMES {
        columns.push(format!("baseline_{name}"));
        columns.push(format!("subject_{name}"));
        for column in ["ratio", "ratio_low", "ratio_high", "word"] {
            columns.push(format!("{name}_{column}"));
        }
    }
    let mut text = line(&columns);
    for place in 1..comparison.subjects.len() {
        for row in comparison.rows.iter().filter(|row| row.jobs[place].is_some()) {
            let job = |place: usize| row.jobs[place].clone().unwrap_or_default();
            let mut cells = vec![
                row.title.clone(),
                comparison.subjects[0].name.clone(),
                job(0),
                comparison.subjects[place].name.clone(),
                job(place),
                match row.unit {
                    Unit::BytesPerSecond => "bytes_per_second".into(),
                    Unit::OperationsPerSecond => "operations_per_second".into(),
                    Unit::TimesMemory => "times_memory".into(),
                },
            ];
            for quantity in &QUANTITIES {
                cells.extend(measure((quantity.of)(row), place));
            }
            text.push_str(&line(&cells));
        }
    }
    text
}

fn measure(measure: &Measure, place: usize) -> [String; 6] {
    let figure = |place: usize| match measure.figures.get(place).copied().flatten() {
        Some(figure) => number(figure.value),
        None => String::new(),
    };
    let ratio = measure.ratios.get(place).copied().flatten();
    let interval = ratio.and_then(|ratio| ratio.figure.interval);
    [
        figure(0),
        figure(place),
        ratio.map_or(String::new(), |ratio| number(ratio.figure.value)),
        interval.map_or(String::new(), |interval| number(interval.low)),
        interval.map_or(String::new(), |interval| number(interval.high)),
        match ratio.map(|ratio| ratio.word) {
            None => String::new(),
            Some(Word::Faster) => "faster".into(),
            Some(Word::Slower) => "slower".into(),
            Some(Word::NoEvidence) => "no_evidence".into(),
            Some(Word::NotJudged) => "not_judged".into(),
        },
    ]
}
