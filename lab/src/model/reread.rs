//! The page, made again from the table of its cases.

use anyhow::Result;

use super::summary;
use super::table::{self, Row};

/// The page as these cases make it. What it tells of the run stays.
///
/// # Errors
/// When a row has something else than a number where one belongs.
pub fn judge(page: &str, rows: &[Row]) -> Result<String> {
    Ok(summary::page(&facts(page), &table::scores(rows)?))
}

/// What a page tells of the run.
pub(super) fn facts(page: &str) -> Vec<String> {
    let is_fact = |line: &&str| summary::FACTS.iter().any(|begin| line.starts_with(begin));
    page.lines().filter(is_fact).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::judge::Judgement;
    use crate::model::{case::Kind, page};

    /// The page of the repository, and its cases.
    const PAGE: &str = include_str!("../../../MODEL.md");
    const CASES: &str = include_str!("../../../MODEL.cases.tsv");

    #[test]
    fn the_page_is_what_its_cases_say() {
        let rows = table::read(CASES).unwrap();
        assert!(judge(PAGE, &rows).unwrap() == PAGE, "run `rubus-lab model --judge MODEL.md`");
        assert!(table::text(&rows) == CASES, "the table reads back as it was written");
    }

    #[test]
    fn another_kind_changes_the_judgement() {
        let mut rows = table::read(CASES).unwrap();
        let before = Judgement::that_counts(&table::scores(&rows).unwrap());
        let of_it = |row: &&mut Row| row.kind == Kind::Identity;
        for row in rows.iter_mut().filter(of_it).take(30) {
            row.kind = Kind::Blind;
        }
        let after = Judgement::that_counts(&table::scores(&rows).unwrap());
        assert_eq!(after.cases, before.cases + 30);
        assert!(judge(PAGE, &rows).unwrap() != PAGE);
    }

    #[test]
    fn every_case_is_shown() {
        let rows = table::read(CASES).unwrap();
        let shown = page::every_case(&rows);
        let is_case = |line: &&str| line.contains(" % | yes | ") || line.contains(" % | no | ");
        let of_cases = shown.lines().filter(is_case);
        assert_eq!(of_cases.count(), rows.len());
    }
}
