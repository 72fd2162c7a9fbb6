//! The summary of a page, made again from its tables.

use anyhow::{Context, Result, bail, ensure};

use super::Subject;
use super::case::Kind;
use super::judge::Score;
use super::{marks, summary};

/// The page with its head as the tables below have it. What tells of the run stays.
///
/// # Errors
/// When a table cannot be read.
pub fn judge(page: &str) -> Result<String> {
    let (head, tables) = split(page)?;
    Ok(summary::head(&facts(head), &scores(tables)?) + tables)
}

/// The head of a page, and its tables.
///
/// # Errors
/// When it has none.
pub(super) fn split(page: &str) -> Result<(&str, &str)> {
    let tables = page.find("\n## ").context("a page without tables")?;
    Ok(page.split_at(tables))
}

/// What a head tells of the run.
pub(super) fn facts(head: &str) -> Vec<String> {
    let is_fact = |line: &&str| summary::FACTS.iter().any(|begin| line.starts_with(begin));
    head.lines().filter(is_fact).map(String::from).collect()
}

/// The cases in the tables of the subjects, in digits as they are printed.
///
/// # Errors
/// When a table cannot be read.
pub fn scores(page: &str) -> Result<Vec<Score>> {
    let mut scores = Vec::new();
    let mut subject = None;
    let mut columns: Option<Vec<&str>> = None;
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            let of_title = |subject: &Subject| marks::title(*subject) == title;
            subject = Subject::ALL.into_iter().find(of_title);
            columns = None;
        }
        let (Some(subject), Some(cells)) = (subject, cells(line)) else {
            continue;
        };
        match &columns {
            None => columns = Some(cells),
            Some(_) if cells.iter().all(|cell| cell.trim_matches(['-', ':']).is_empty()) => {}
            Some(columns) => {
                let found = score(subject, columns, &cells);
                scores.push(found.with_context(|| format!("in the row {line:?}"))?);
            }
        }
    }
    Ok(scores)
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

fn score(subject: Subject, columns: &[&str], cells: &[&str]) -> Result<Score> {
    ensure!(columns.len() == cells.len(), "{} cells below {} columns", cells.len(), columns.len());
    let cell = |name: &str| {
        let at = columns.iter().position(|column| *column == name);
        at.map(|at| cells[at]).with_context(|| format!("there is no column {name:?}"))
    };
    let number = |name: &str| -> Result<f64> {
        let text = cell(name)?.trim_end_matches(" %");
        text.parse().with_context(|| format!("{text:?} in the column {name:?} is no number"))
    };
    let kind = cell("kind")?;
    let known = Kind::ALL.into_iter().find(|known| known.name() == kind);
    Ok(Score {
        subject,
        kind: known.with_context(|| format!("{kind:?} is no kind"))?,
        group: cell("alternatives")?.into(),
        predicted: number("predicted")?,
        measured: number("measured")?,
        error: number("error")? / 100.0,
        overlaps: match cell("holds")? {
            "yes" => true,
            "no" => false,
            other => bail!("{other:?} in the column \"holds\" is neither yes nor no"),
        },
        is_held_out: !cell("")?.split(", ").any(|mark| mark == marks::CHOSEN),
        is_disturbed: cell("starved")?.ends_with(marks::DISTURBED),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::judge::Judgement;

    /// The page of the repository.
    const PAGE: &str = include_str!("../../../MODEL.md");

    #[test]
    fn the_head_of_the_page_is_what_its_tables_say() {
        assert!(judge(PAGE).unwrap() == PAGE, "run `rubus-lab model --judge MODEL.md`");
    }

    #[test]
    fn another_kind_changes_the_judgement() {
        let before = Judgement::that_counts(&scores(PAGE).unwrap());
        let altered = PAGE.replacen("| identity |", "| blind |", 30);
        let after = Judgement::that_counts(&scores(&altered).unwrap());
        assert!(after.cases > before.cases);
        assert!(judge(&altered).unwrap() != altered);
    }

    #[test]
    fn a_table_that_cannot_be_read_is_an_error_and_no_case_less() {
        let row = "| a | blind | b | 1.00 | 2.00 | per s | -50.0 % | no | c | 3 % | |";
        let page = |row: &str| {
            format!(
                "# A\n\nMachine: one.\n\n## Swap\n\n\
                 | case | kind | alternatives | predicted | measured | unit | error | holds | narrowest pipe | starved | |\n\
                 |---|---|---|---:|---:|---|---:|---|---|---:|---|\n{row}\n"
            )
        };
        let found = scores(&page(row)).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].error, found[0].overlaps), (-0.5, false));
        assert!(found[0].is_held_out && !found[0].is_disturbed);
        let marked = row.replace("3 % | |", "3 % ! | chosen, (1) |");
        let found = scores(&page(&marked)).unwrap();
        assert!(!found[0].is_held_out && found[0].is_disturbed);
        for (from, to, why) in [
            ("blind", "sure", "\"sure\" is no kind"),
            ("| a ", "", "10 cells below 11 columns"),
            ("1.00", "one", "\"one\" in the column \"predicted\" is no number"),
            ("| no ", "| maybe ", "is neither yes nor no"),
        ] {
            let error = judge(&page(&row.replace(from, to))).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(why), "{error}");
        }
    }
}
