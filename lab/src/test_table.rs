//! The table of tests in `tests.tsv`: what each proves, in which tier it runs, and how long it takes.
//!
//! The table is the only place that says so. The test script asks here which tests to run
//! ([`Table::filter`]), and a test of the lab's test program checks that every test has a row.
//!
//! A row names a test (`loop_copy::holes_stay_holes`) or a module, which stands for all of its tests
//! that have no row of their own.

use std::fs;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::ValueEnum;

use crate::cache::workspace_root;

/// When a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tier {
    /// With every change
    Change,
    /// Before a release, and in a rotating share of the runs on a change
    Full,
}

/// What may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Company {
    /// Nothing: the test judges a speed or a time, or changes the swap of the whole machine
    Alone,
    /// Other tests that are content with company
    Beside,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// A test, or a module of tests.
    pub name: String,
    /// When it runs.
    pub tier: Tier,
    /// What may run at the same time.
    pub company: Company,
    /// What a pass means, in words.
    pub proves: String,
    /// Duration in the run from which the table was made, in seconds.
    pub seconds: u32,
}

/// The test table: one row for each test.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Row>,
}

/// The first line of the table.
const HEADING: &str = "test\ttier\tcompany\tproves\tseconds";

/// By how much two processors do the work of several tests sooner than one after the other: each is slower
/// beside the others.
const GAIN_BESIDE: f64 = 1.8;

impl Table {
    /// The table in this source tree.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub fn of_this_tree() -> Result<Self> {
        let path = workspace_root().join("lab/tests.tsv");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
        Self::parse(&text).with_context(|| format!("in {path:?}"))
    }

    /// Reads the table: its heading, then a line for each row.
    ///
    /// # Errors
    /// When it has no rows, or a row is damaged or there twice.
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        ensure!(lines.next() == Some(HEADING), "the first line is not {HEADING:?}");
        let rows = lines
            .map(|line| row(line).with_context(|| format!("this row: {line}")))
            .collect::<Result<Vec<Row>>>()?;
        ensure!(!rows.is_empty(), "no rows");
        for (at, row) in rows.iter().enumerate() {
            ensure!(
                rows[..at].iter().all(|other| other.name != row.name),
                "two rows for {}",
                row.name
            );
        }
        Ok(Self { rows })
    }

    /// All rows, in the table's order.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The row of a test: its own, or else that of the innermost module with one.
    #[must_use]
    pub fn row_of(&self, test: &str) -> Option<&Row> {
        let rows = self.rows.iter().filter(|row| row.covers(test));
        rows.max_by_key(|row| row.name.len())
    }

    /// An expression in the language of nextest's filters for the tests of these rows; nothing when there
    /// are none.
    #[must_use]
    pub fn filter(&self, is_wanted: impl Fn(&Row) -> bool) -> Option<String> {
        let wanted: Vec<String> =
            self.rows.iter().filter(|row| is_wanted(row)).map(|row| self.filter_of(row)).collect();
        (!wanted.is_empty()).then(|| wanted.join(" + "))
    }

    /// The tests of a row without those that have a row of their own.
    fn filter_of(&self, row: &Row) -> String {
        let within = format!("{}::", row.name);
        let inner = self.rows.iter().filter(|other| other.name.starts_with(&within));
        let mut text = format!("test(/^{}($|::)/)", row.name);
        for other in inner {
            text += &format!(" - test(/^{}($|::)/)", other.name);
        }
        format!("({text})")
    }

    /// The rows of the full tier in as few shares as take at most `budget_s` seconds each; a row that takes
    /// longer has one of its own. Each row is in exactly one, and the same table gives the same shares.
    #[must_use]
    pub fn shares(&self, budget_s: f64) -> Vec<Vec<&Row>> {
        let mut rows: Vec<&Row> = self.rows.iter().filter(|row| row.tier == Tier::Full).collect();
        // The longest first, each to the share that is the fullest of those with room.
        rows.sort_by(|a, b| (b.seconds, &a.name).cmp(&(a.seconds, &b.name)));
        let mut shares: Vec<Vec<&Row>> = Vec::new();
        for row in rows {
            let with = |share: &[&Row]| wall_s(share.iter().copied().chain([row]));
            let fullest = shares
                .iter_mut()
                .filter(|share| with(share) <= budget_s)
                .max_by(|a, b| with(a).total_cmp(&with(b)));
            match fullest {
                Some(share) => share.push(row),
                None => shares.push(vec![row]),
            }
        }
        shares
    }
}

impl Row {
    fn covers(&self, test: &str) -> bool {
        test.strip_prefix(&self.name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    }
}

/// How long these rows take on two processors, in seconds: those that run alone one after the other, the others
/// beside each other, though never less than the longest of them.
pub fn wall_s<'a>(rows: impl IntoIterator<Item = &'a Row>) -> f64 {
    let (mut alone_s, mut beside_s, mut longest_s) = (0.0, 0.0, 0.0_f64);
    for row in rows {
        let seconds = f64::from(row.seconds);
        match row.company {
            Company::Alone => alone_s += seconds,
            Company::Beside => {
                beside_s += seconds;
                longest_s = longest_s.max(seconds);
            }
        }
    }
    alone_s + (beside_s / GAIN_BESIDE).max(longest_s)
}

/// The share for a commit, counted from 0.
///
/// # Errors
/// When the text does not begin with hexadecimal digits, as the hash of a commit does.
pub fn share_of_commit(hash: &str, shares: usize) -> Result<usize> {
    let digits = hash.get(..8).with_context(|| format!("'{hash}' is no hash"))?;
    let number = u32::from_str_radix(digits, 16).with_context(|| format!("'{hash}' is no hash"))?;
    Ok(number as usize % shares.max(1))
}

fn row(line: &str) -> Result<Row> {
    let cells: Vec<&str> = line.split('\t').collect();
    let [name, tier, company, proves, seconds] = cells[..] else {
        bail!("it has {} cells instead of 5", cells.len());
    };
    ensure!(
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_:".contains(&b)),
        "'{name}' is no name of a test or a module"
    );
    ensure!(!proves.is_empty(), "it does not say what is proved");
    Ok(Row {
        name: name.to_owned(),
        tier: word(tier)?,
        company: word(company)?,
        proves: proves.to_owned(),
        seconds: seconds.parse().with_context(|| format!("'{seconds}' is no number of seconds"))?,
    })
}

fn word<T: ValueEnum>(text: &str) -> Result<T> {
    T::from_str(text, false).map_err(|error| anyhow!("'{text}': {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "\
a\tchange\tbeside\tA\t10
a::slow\tfull\tbeside\tmore\t300
b\tfull\talone\tB\t400
c\tfull\tbeside\tC\t90
ab\tfull\talone\tD\t9
";

    fn text(rows: &str) -> String {
        format!("{HEADING}\n{rows}")
    }

    fn table() -> Table {
        Table::parse(&text(ROWS)).unwrap()
    }

    #[test]
    fn a_test_has_its_own_row_or_that_of_its_module() {
        let table = table();
        let name = |test: &str| table.row_of(test).map(|row| row.name.as_str());
        assert_eq!(name("a::quick"), Some("a"));
        assert_eq!(name("a::slow"), Some("a::slow"));
        assert_eq!(name("ab::x"), Some("ab"));
        assert_eq!(name("d::x"), None);
    }

    #[test]
    fn a_filter_leaves_out_what_has_a_row_of_its_own() {
        let table = table();
        assert_eq!(
            table.filter(|row| row.tier == Tier::Change).unwrap(),
            "(test(/^a($|::)/) - test(/^a::slow($|::)/))"
        );
        assert_eq!(
            table.filter(|row| row.company == Company::Alone).unwrap(),
            "(test(/^b($|::)/)) + (test(/^ab($|::)/))"
        );
        assert_eq!(table.filter(|_| false), None);
    }

    #[test]
    fn each_row_of_the_full_tier_is_in_one_share_and_no_share_is_too_long() {
        let table = table();
        for budget_s in [1.0, 400.0, 420.0, 1e9] {
            let shares = table.shares(budget_s);
            let mut names: Vec<&str> = shares.iter().flatten().map(|row| &*row.name).collect();
            names.sort_unstable();
            assert_eq!(names, ["a::slow", "ab", "b", "c"], "{budget_s}");
            let fits =
                |share: &Vec<&Row>| share.len() == 1 || wall_s(share.iter().copied()) <= budget_s;
            assert!(shares.iter().all(fits), "{budget_s}: {shares:?}");
        }
        assert_eq!(table.shares(1e9).len(), 1);
    }

    #[test]
    fn a_commit_always_has_the_same_share() {
        assert_eq!(share_of_commit("0000000a1b", 4).unwrap(), 2);
        assert!(share_of_commit("main", 4).is_err());
        assert!(share_of_commit("mainmain", 4).is_err());
    }

    #[test]
    fn damaged_rows_are_refused_with_the_row() {
        for (row, says) in [
            ("a\tnever\talone\tA\t1", "never"),
            ("a\tfull\talone\tA\tsoon", "soon"),
            ("a\tfull\talone\t\t1", "proved"),
            ("a\tfull\tA\t1", "4 cells"),
            ("a b\tfull\talone\tA\t1", "a b"),
        ] {
            let error = format!("{:#}", Table::parse(&text(row)).unwrap_err());
            assert!(error.contains(says) && error.contains(row), "{error}");
        }
        assert!(Table::parse(&text(&ROWS.replace("ab\t", "a\t"))).is_err());
        assert!(Table::parse(&text("")).is_err());
        assert!(Table::parse(ROWS).is_err());
    }
}
