//! A page of which some subjects were measured again, in a run of their own.

use anyhow::{Result, ensure};

use super::ledger::Line;
use super::reread::facts;
use super::summary::{self, MEASURED_AGAIN, NOT_JUDGED, NOT_MEASURED};
use super::table::{self, Row};
use super::{Report, Subject};

/// The page and the table of its cases with this report's in the place of all older ones of its subjects. All others are as they were,
/// those that could not be measured now among them.
///
/// # Errors
/// When nothing was measured, or a row cannot be judged.
pub fn page(before: &str, rows: Vec<Row>, report: &Report) -> Result<(String, Vec<Row>)> {
    ensure!(!report.cases.is_empty(), "nothing was measured");
    let rows = table::replaced(rows, report.rows());
    Ok((summary::page(&told(before, report), &table::scores(&rows)?), rows))
}

/// The lines of the file of predictions, with the new ones of the subjects that were measured again.
pub fn predictions(before: Vec<Line>, again: Vec<Line>) -> Vec<Line> {
    let is_again =
        |line: &Line| again.iter().any(|new| new.forecast.subject == line.forecast.subject);
    let kept: Vec<Line> = before.into_iter().filter(|line| !is_again(line)).collect();
    kept.into_iter().chain(again).collect()
}

/// What no table holds: as it was, unless it is about what was measured now; and which subjects are of this run.
fn told(page: &str, report: &Report) -> Vec<String> {
    let is_again = |subject: &Subject| {
        let mut cases = report.cases.iter();
        cases.any(|case| case.forecast.subject == *subject)
    };
    let again: Vec<String> = Subject::ALL
        .iter()
        .filter(|subject| is_again(subject))
        .map(|subject| subject.name())
        .collect();
    let mut all: Vec<String> =
        facts(page).into_iter().filter_map(|fact| still_true(fact, &again)).collect();
    all.push(format!("{MEASURED_AGAIN}{}: {}", again.join(", "), summary::on_machine(report)));
    let refused = report.refused.iter();
    all.extend(refused.map(|why| summary::not_judged(&why.replace('\n', " "))));
    all
}

/// A fact without what it says of these subjects; nothing where that is all.
fn still_true(fact: String, again: &[String]) -> Option<String> {
    let is_again = |name: &str| again.iter().any(|subject| subject == name);
    if let Some((names, run)) =
        fact.strip_prefix(MEASURED_AGAIN).and_then(|fact| fact.split_once(": "))
    {
        let left: Vec<&str> = names.split(", ").filter(|name| !is_again(name)).collect();
        return (!left.is_empty()).then(|| format!("{MEASURED_AGAIN}{}: {run}", left.join(", ")));
    }
    let of_one = [NOT_MEASURED, NOT_JUDGED]
        .iter()
        .find_map(|begin| fact.strip_prefix(begin))
        .and_then(|fact| fact.split([' ', ',']).next());
    if of_one.is_some_and(is_again) { None } else { Some(fact) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::case::{Case, Forecast, Kind, Purpose, Unit};
    use rubus_stats::estimate::Estimate;

    fn forecast(subject: Subject, predicted: f64) -> Forecast {
        Forecast {
            subject,
            name: "one".into(),
            kind: Kind::Blind,
            group: "all".into(),
            purpose: Purpose::HeldOut,
            unit: Unit::Iops,
            predicted: Estimate::exact(predicted),
            narrowest: "port".into(),
        }
    }

    fn report(of: &[(Subject, f64)], elapsed_s: f64) -> Report {
        let case = |&(subject, predicted): &(Subject, f64)| Case {
            forecast: forecast(subject, predicted),
            measured: Estimate::exact(100.0),
            starved: 0.0,
            again: 0,
            is_disturbed: false,
            note: None,
        };
        Report {
            cases: of.iter().map(case).collect(),
            left_out: Vec::new(),
            refused: Vec::new(),
            predictions: "said.jsonl".into(),
            machine: "a small one".into(),
            elapsed_s,
        }
    }

    #[test]
    fn what_was_measured_again_takes_the_place_of_what_was_there() {
        let all = [(Subject::Kernel, 110.0), (Subject::Swap, 120.0)];
        let first = report(&all, 9.0);
        let before = summary::of_report(&first).unwrap();
        let again = report(&[(Subject::Kernel, 130.0)], 5.0);
        let (after, rows) = page(&before, first.rows(), &again).unwrap();
        let errors = |rows: &[Row]| -> Vec<f64> {
            table::scores(rows).unwrap().iter().map(|score| score.error).collect()
        };
        assert_eq!(errors(&first.rows()), [0.1, 0.2]);
        assert_eq!(errors(&rows), [0.3, 0.2]);
        let facts = "\nMachine: a small one; 9 s.\n";
        assert!(after.contains(facts), "{after}");
        assert!(after.contains("\nMeasured again: kernel: a small one; 5 s.\n"), "{after}");
        // Once more is no second line.
        assert_eq!(page(&after, rows.clone(), &again).unwrap(), (after.clone(), rows.clone()));
        // One that was not there before has its place.
        let (_, more) = page(&after, rows, &report(&[(Subject::Buses, 140.0)], 2.0)).unwrap();
        assert_eq!(errors(&more), [0.3, 0.4, 0.2]);
    }

    #[test]
    fn a_subject_that_failed_stays_as_it_was() {
        let first = report(&[(Subject::Kernel, 110.0), (Subject::Swap, 120.0)], 9.0);
        let before = summary::of_report(&first).unwrap();
        let mut failed = report(&[], 1.0);
        failed.left_out.push((Subject::Swap, "needs root".into()));
        assert!(page(&before, first.rows(), &failed).is_err());
        let mut half = report(&[(Subject::Kernel, 130.0)], 1.0);
        half.left_out = failed.left_out;
        let (_, rows) = page(&before, first.rows(), &half).unwrap();
        let predicted: Vec<&str> = rows.iter().map(|row| &*row.predicted).collect();
        assert_eq!(predicted, ["130", "120"]);
    }

    #[test]
    fn facts_of_what_was_measured_again_are_gone() {
        let again = ["kernel".to_string()];
        let left = |fact: &str| still_true(fact.into(), &again);
        assert_eq!(left("Measured again: kernel: here; 1 s."), None);
        assert_eq!(
            left("Measured again: buses, kernel: here; 1 s.").unwrap(),
            "Measured again: buses: here; 1 s."
        );
        assert_eq!(left("Not measured: kernel (needs root)."), None);
        assert_eq!(left("Not judged: kernel, one: late."), None);
        for other in ["Not measured: swap (needs root).", "Machine: a small one; 9 s."] {
            assert_eq!(left(other).unwrap(), other);
        }
    }

    #[test]
    fn predictions_of_what_was_measured_again_are_the_new_ones() {
        let line = |subject: Subject, predicted: f64| Line {
            unix_ms: 1,
            forecast: forecast(subject, predicted),
        };
        let before = vec![line(Subject::Kernel, 1.0), line(Subject::Swap, 2.0)];
        let again = vec![line(Subject::Kernel, 3.0)];
        assert_eq!(
            predictions(before, again),
            [line(Subject::Swap, 2.0), line(Subject::Kernel, 3.0)]
        );
    }
}
