//! The page that the results make.

use std::fmt::Write as _;

use anyhow::Result;
use rubus_advise::seeds::{self, SeedCase};
use rubus_stats::estimate::Estimate;

use super::case::{Case, Purpose, Unit};
use super::marks::{CHOSEN, DISTURBED, title};
use super::reread;
use super::summary::{self, percent};
use super::{Report, Subject};

/// Everything as Markdown: how good it is, every case, and the published figures.
///
/// The summary is made from the digits in the tables, so that whoever has the page can make it again.
///
/// # Errors
/// When the tables cannot be read again.
pub fn markdown(report: &Report) -> Result<String> {
    let mut tables = String::new();
    for subject in Subject::ALL {
        let of_it = report.cases.iter();
        let cases: Vec<&Case> = of_it.filter(|case| case.forecast.subject == subject).collect();
        if !cases.is_empty() {
            table(&mut tables, subject, &cases);
        }
    }
    published(&mut tables, &seeds::cases());
    Ok(summary::head(&facts(report), &reread::scores(&tables)?) + &tables)
}

/// What no table holds.
fn facts(report: &Report) -> Vec<String> {
    let mut facts = vec![
        format!("Machine: {}", on_machine(report)),
        format!(
            "Predictions: each was written to `{}` before the whole that it predicts was measured, and is judged as it stands there.",
            report.predictions
        ),
    ];
    for (subject, reason) in &report.left_out {
        facts.push(format!("{}{} ({reason}).", summary::NOT_MEASURED, subject.name()));
    }
    let refused = report.refused.iter();
    facts.extend(refused.map(|why| summary::not_judged(why)));
    // One line each, as they are found again.
    facts.iter().map(|fact| fact.replace('\n', " ")).collect()
}

/// Where it was measured, and how long that took.
pub(super) fn on_machine(report: &Report) -> String {
    format!("{}; {:.0} s.", report.machine, report.elapsed_s)
}

fn table(page: &mut String, subject: Subject, cases: &[&Case]) {
    let _ = writeln!(page, "\n## {}\n\n{}\n", title(subject), subject.about());
    page.push_str("| case | kind | alternatives | predicted | measured | unit | error | holds | narrowest pipe | starved | |\n|---|---|---|---:|---:|---|---:|---|---|---:|---|\n");
    let mut notes: Vec<&str> = Vec::new();
    for case in cases {
        let note = case.note.map(|note| {
            let known = notes.iter().position(|other| *other == note);
            known.unwrap_or_else(|| {
                notes.push(note);
                notes.len() - 1
            }) + 1
        });
        let mut marks = Vec::new();
        let forecast = &case.forecast;
        if forecast.purpose == Purpose::Chosen {
            marks.push(CHOSEN.to_string());
        }
        if case.again > 0 {
            marks.push(format!("measured {} times", case.again + 1));
        }
        if let Some(note) = note {
            marks.push(format!("({note})"));
        }
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {:+.1} % | {} | {} | {:.0} %{} | {} |",
            forecast.name,
            forecast.kind.name(),
            forecast.group,
            estimate(&forecast.predicted, forecast.unit),
            estimate(&case.measured, forecast.unit),
            unit(forecast.unit),
            case.error() * 100.0,
            if case.overlaps() { "yes" } else { "no" },
            forecast.narrowest,
            case.starved * 100.0,
            if case.is_disturbed { DISTURBED } else { "" },
            marks.join(", ")
        );
    }
    for (i, note) in notes.iter().enumerate() {
        let _ = writeln!(page, "\n({}) {}.", i + 1, sentence(note));
    }
}

fn published(page: &mut String, cases: &[SeedCase]) {
    let agree = cases.iter().filter(|case| case.agrees()).count();
    let _ = writeln!(
        page,
        "\n## Figures that others published\n\n\
         Nothing was measured for these: the stages come from some figures of an article and another one is predicted. {agree} of {} agree: \
         they differ by less than {}, or the interval of the prediction holds the figure. For those that do not, the last column begins \
         with \"Misses\".\n",
        cases.len(),
        percent(seeds::AGREES_WITHIN)
    );
    page.push_str("| figure | stages from | predicted | published | unit | error | why |\n|---|---|---:|---:|---|---:|---|\n");
    for case in cases {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {:+.1} % | {} |",
            case.what,
            case.stages,
            number(case.predicted.value),
            number(case.published),
            case.unit,
            case.error() * 100.0,
            case.why
        );
    }
    let mut sources: Vec<&str> = cases.iter().map(|case| case.source).collect();
    sources.sort_unstable();
    sources.dedup();
    let _ = writeln!(page, "\nFrom {}.", sources.join("; "));
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Iops => "per s",
        Unit::BytesPerSecond => "MB/s",
        Unit::TouchesPerSecond => "touches/s",
    }
}

fn estimate(value: &Estimate, unit: Unit) -> String {
    match unit {
        Unit::BytesPerSecond => number(value.value / 1e6),
        Unit::Iops | Unit::TouchesPerSecond => number(value.value),
    }
}

/// Three digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::case::{Forecast, Kind};

    fn case(name: &str, predicted: f64, measured: f64) -> Case {
        Case {
            forecast: Forecast {
                subject: Subject::Stripes,
                name: name.into(),
                kind: Kind::Composition,
                group: "4 KiB".into(),
                purpose: Purpose::HeldOut,
                unit: Unit::BytesPerSecond,
                predicted: Estimate::exact(predicted),
                narrowest: "port".into(),
            },
            measured: Estimate::exact(measured),
            starved: 0.5,
            again: 0,
            is_disturbed: true,
            note: Some("the port was slow"),
        }
    }

    fn report() -> Report {
        let mut two = case("two", 2e6, 1e6);
        two.forecast.kind = Kind::Identity;
        two.forecast.purpose = Purpose::Chosen;
        Report {
            cases: vec![case("one", 1e6, 1.25e6), two],
            left_out: vec![(Subject::Swap, "needs\nroot".into())],
            refused: vec!["stripes, three: predicted and never measured".into()],
            predictions: "said.jsonl".into(),
            machine: "a small one".into(),
            elapsed_s: 9.0,
        }
    }

    #[test]
    fn each_row_has_its_kind_and_its_alternatives() {
        let page = markdown(&report()).unwrap();
        let rows: Vec<&str> = page.lines().filter(|line| line.contains("| 4 KiB |")).collect();
        assert_eq!(
            rows,
            [
                "| one | composition | 4 KiB | 1.00 | 1.25 | MB/s | -20.0 % | no | port | 50 % ! | (1) |",
                "| two | identity | 4 KiB | 2.00 | 1.00 | MB/s | +100.0 % | no | port | 50 % ! | chosen, (1) |",
            ]
        );
        for fact in [
            "\nMachine: a small one; 9 s.\n",
            "\nPredictions: each was written to `said.jsonl` before the whole that it predicts was measured, and is judged as it stands \
             there.\n",
            "\nNot measured: swap (needs root).\n",
            "\nNot judged: stripes, three: predicted and never measured.\n",
        ] {
            assert!(page.contains(fact), "{page}");
        }
    }

    #[test]
    fn a_page_that_is_judged_again_is_the_same() {
        let page = markdown(&report()).unwrap();
        assert_eq!(reread::judge(&page).unwrap(), page);
    }
}
