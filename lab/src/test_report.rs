//! What a run of the test script says at its end: its sections with their times, the slowest tests, and what could not run.
//!
//! It is read from what nextest writes about each group of tests (JUnit's XML) and from the list of sections that the
//! script keeps, a line each with a time in seconds and a name, parted by a tab.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// How many of the slowest tests are named.
pub const SLOWEST: usize = 20;

/// A test that has run.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// Its program and name, as `rubus-lab::lab loop_copy::holes_stay_holes`.
    pub name: String,
    /// Seconds from its start to its end.
    pub seconds: f64,
    /// Whether it passed.
    pub passed: bool,
    /// Of one that failed, the first and the last lines of what it said.
    pub why: Vec<String>,
    /// Lines in which it says that something could not be tried on this machine.
    pub skipped: Vec<String>,
}

/// A part of the script.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The section's heading in the script's output.
    pub name: String,
    /// Seconds that it took.
    pub seconds: f64,
}

/// The tests in one of nextest's reports.
///
/// # Errors
/// When it is no such report.
pub fn tests_in(xml: &str) -> Result<Vec<Ran>> {
    let document = roxmltree::Document::parse(xml).context("no XML")?;
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    cases
        .map(|case| {
            let text = |key| case.attribute(key).with_context(|| format!("a test without {key}"));
            let said = case
                .children()
                .filter(|node| node.has_tag_name("system-out") || node.has_tag_name("system-err"))
                .filter_map(|node| node.text())
                .flat_map(str::lines);
            let passed = !case
                .children()
                .any(|node| node.has_tag_name("failure") || node.has_tag_name("error"));
            Ok(Ran {
                name: format!("{} {}", text("classname")?, text("name")?),
                seconds: text("time")?.parse().context("a time that is no number")?,
                passed,
                why: if passed { Vec::new() } else { ends_of_what_it_said(said.clone()) },
                skipped: said
                    .filter(|line| line.starts_with("SKIPPED"))
                    .map(str::to_owned)
                    .collect(),
            })
        })
        .collect()
}

/// From the panic on, the first and the last lines, cut to the width of a terminal: the place and the values are there.
fn ends_of_what_it_said<'a>(said: impl Iterator<Item = &'a str>) -> Vec<String> {
    const LINES: usize = 8;
    const WIDTH: usize = 200;
    let from_the_panic = said.skip_while(|line| !line.contains("panicked at"));
    let from_the_panic = from_the_panic.take_while(|line| !line.ends_with("tack backtrace:"));
    let lines: Vec<&str> = from_the_panic.filter(|line| !line.is_empty()).collect();
    let cut = |line: &&str| line.chars().take(WIDTH).collect();
    if lines.len() > 2 * LINES {
        lines[..LINES]
            .iter()
            .chain(&["[…]"])
            .chain(&lines[lines.len() - LINES..])
            .map(cut)
            .collect()
    } else {
        lines.iter().map(cut).collect()
    }
}

/// The sections in the script's list.
///
/// # Errors
/// When a line has no time.
pub fn sections_in(list: &str) -> Result<Vec<Section>> {
    list.lines()
        .map(|line| {
            let (seconds, name) = line.split_once('\t').context("a section without a name")?;
            Ok(Section {
                name: name.to_owned(),
                seconds: seconds.parse().with_context(|| format!("no time: {line}"))?,
            })
        })
        .collect()
}

/// The report of a run whose files are in these places. A file that is not there belongs to a part that has not run.
///
/// # Errors
/// When a file cannot be read.
pub fn of_files(sections: &Path, reports: &[PathBuf]) -> Result<String> {
    let read = |path: &Path| match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {path:?}")),
    };
    let mut tests = Vec::new();
    for path in reports {
        if let Some(xml) = read(path)? {
            tests.extend(tests_in(&xml).with_context(|| format!("in {path:?}"))?);
        }
    }
    let sections = sections_in(&read(sections)?.unwrap_or_default())?;
    Ok(markdown(&sections, tests))
}

/// The report as a page.
#[must_use]
pub fn markdown(sections: &[Section], mut tests: Vec<Ran>) -> String {
    let mut page = String::from("| section | seconds |\n|---|---:|\n");
    let mut all_s = 0.0;
    for section in sections {
        page += &format!("| {} | {:.0} |\n", section.name, section.seconds);
        all_s += section.seconds;
    }
    page += &format!("| all | {all_s:.0} |\n\n");

    tests.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.name.cmp(&b.name)));
    page += &format!(
        "The {} slowest of {} tests:\n\n| test | seconds |\n|---|---:|\n",
        SLOWEST.min(tests.len()),
        tests.len()
    );
    for test in tests.iter().take(SLOWEST) {
        page += &format!("| `{}` | {:.1} |\n", test.name, test.seconds);
    }
    let list = |heading: &str, lines: Vec<String>| {
        if lines.is_empty() { String::new() } else { format!("\n{heading}:\n\n{}", lines.concat()) }
    };
    let skipped = tests.iter().flat_map(|test| {
        let line = |why: &String| format!("- `{}`: {why}\n", test.name);
        test.skipped.iter().map(line)
    });
    page += &list("Not run on this machine", skipped.collect());
    let failed = tests.iter().filter(|test| !test.passed);
    let with_reason = |test: &Ran| {
        let why = test.why.iter().map(|line| format!("      {line}\n"));
        format!("- `{}`\n{}", test.name, why.collect::<String>())
    };
    page += &list("Failed", failed.map(with_reason).collect());
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3">
  <testsuite name="rubus-lab::lab" tests="2">
    <testcase name="a::one" classname="rubus-lab::lab" time="1.500">
      <system-out>hello
SKIPPED: a: no fio
</system-out>
    </testcase>
    <testcase name="a::two" classname="rubus-lab::lab" time="20.000">
      <failure message="x" type="test failure">x</failure>
      <system-err>the board starts
thread 'a::two' panicked at lab/tests/a.rs:3:5:

left is not right
stack backtrace:
   0: one</system-err>
    </testcase>
  </testsuite>
  <testsuite name="rubus-stats" tests="1"><testcase name="t" classname="rubus-stats" time="0.010"/></testsuite>
</testsuites>"#;

    #[test]
    fn report_names_the_slowest_and_what_was_skipped_or_failed() {
        let sections = sections_in("12\tpackages\n30.4\tboards\n").unwrap();
        insta::assert_snapshot!(markdown(&sections, tests_in(XML).unwrap()), @r"
        | section | seconds |
        |---|---:|
        | packages | 12 |
        | boards | 30 |
        | all | 42 |

        The 3 slowest of 3 tests:

        | test | seconds |
        |---|---:|
        | `rubus-lab::lab a::two` | 20.0 |
        | `rubus-lab::lab a::one` | 1.5 |
        | `rubus-stats t` | 0.0 |

        Not run on this machine:

        - `rubus-lab::lab a::one`: SKIPPED: a: no fio

        Failed:

        - `rubus-lab::lab a::two`
              thread 'a::two' panicked at lab/tests/a.rs:3:5:
              left is not right
        ");
    }

    #[test]
    fn a_long_reason_is_shown_by_its_ends() {
        let said: Vec<String> = (0..100).map(|number| format!("{number} panicked at")).collect();
        let shown = ends_of_what_it_said(said.iter().map(String::as_str));
        assert_eq!(shown.len(), 17);
        assert_eq!((shown[0].as_str(), shown[16].as_str()), ("0 panicked at", "99 panicked at"));
    }

    #[test]
    fn what_is_no_report_is_an_error() {
        assert!(tests_in("<a").is_err());
        assert!(tests_in("<testcase name='a'/>").is_err());
        assert!(sections_in("soon\tpackages").is_err());
    }
}
