//! `rubus compare`: runs, fio's results, captures and published figures side by side.

mod fleets;

use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::Args;
use rubus_command::{Exit, General, Json, Terminal, message, places};
use rubus_runs::compare::{Comparison, compare};
use rubus_runs::reference;
use rubus_runs::shown::shown;
use rubus_vocabulary::published::{Reference, figures::REFERENCES};
use rubus_vocabulary::verb::{MISTAKE, Page};
use rubus_watch::live::terminal;

use super::Pages;
use crate::subjects::{self, Found, Thing};

/// Exit statuses and examples.
pub(super) const PAGE: Page = Page {
    name: "rubus-compare",
    statuses: &[
        (0, "compared"),
        (1, "slower than the baseline (only with --fail-on-regression)"),
        MISTAKE,
    ],
    examples: &[
        (
            "rubus compare last~1 last",
            "Say what became faster or slower between the last two runs.",
        ),
        (
            "rubus compare before.json after.json --fail-on-regression=5",
            "Fail when something is more than 5 % slower.",
        ),
        (
            "rubus compare fleet-monday.json fleet-friday.json",
            "Say which boards of a fleet became faster or slower, and which settings changed.",
        ),
        (
            "rubus compare last --reference",
            "Compare the last run with published figures of a similar disk.",
        ),
    ],
};

/// Compare runs, fio's results, captures or published figures.
///
/// Each is a run in the history (its number, its label, last, last~1), a JSON file of rubus or fio
/// (`-` is standard input), or a captured machine. The first is the baseline. Jobs are matched by
/// what they do. A ratio counts as faster or slower only if its interval excludes 1.
///
/// Two fleet documents (of `rubus bench --on @FILE --json FILE`, or checkup) are compared board by
/// board: changed settings, a table of ratios, and which boards became faster or slower.
#[derive(Debug, Args)]
pub struct Compare {
    /// What to compare, the baseline first
    #[arg(value_name = "RUN", required_unless_present = "list_references")]
    pub subjects: Vec<String>,
    /// Use published figures as the baseline: those named, or the most similar to the first run
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true,
        default_missing_value = "")]
    pub reference: Option<String>,
    /// List the published figures
    #[arg(long)]
    pub list_references: bool,
    #[command(flatten)]
    pub json: Json,
    /// Write CSV to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write markdown to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write a page to a file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Keep serial numbers, addresses, and names of users and servers in the page and the markdown
    #[arg(long)]
    pub with_serials: bool,
    /// Exit with status 1 when anything is slower than the baseline, by more than PERCENT over the
    /// whole interval
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true,
        default_missing_value = "0", value_parser = percentage)]
    pub fail_on_regression: Option<f64>,
}

fn percentage(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("write a percentage from 0 to below 100".into()),
    }
}

/// Compares and shows.
pub fn run(general: &General, args: &Compare, pages: &dyn Pages) -> anyhow::Result<Exit> {
    if args.list_references {
        return list_references(general, args);
    }
    let mut singles = Vec::new();
    let mut fleets = Vec::new();
    for name in &args.subjects {
        for thing in subjects::things(name)? {
            match thing {
                Thing::Single(found) => singles.push(*found),
                Thing::Fleet(name, fleet) => fleets.push((name, fleet)),
            }
        }
    }
    if !fleets.is_empty() {
        return fleets::run(general, args, &singles, &fleets);
    }
    let found = singles;
    let mut all: Vec<_> = found.iter().map(|found| found.subject.clone()).collect();
    if let Some(wanted) = &args.reference {
        all.insert(0, reference::subject(reference(wanted, &found)?));
    }
    if all.len() < 2 {
        bail!(
            "there is nothing to compare {} with: name a second run, or --reference for published figures",
            all[0].name
        );
    }
    if args.reference.is_none() {
        must_differ(&found)?;
    }
    let comparison = compare(&all);
    show(general, args, &comparison, pages)?;
    Ok(match args.fail_on_regression {
        Some(percent) => regressions(&comparison, percent),
        None => Exit::Fine,
    })
}

/// That not all of them are one run, whose every ratio is 1.
fn must_differ(found: &[Found]) -> anyhow::Result<()> {
    let [first, others @ ..] = found else {
        return Ok(());
    };
    let is_first = |other: &Found| match (&first.run, &other.run) {
        (Some(run), Some(other)) => run == other,
        (None, None) => first.subject.name == other.subject.name,
        (Some(_), None) | (None, Some(_)) => false,
    };
    ensure!(
        others.is_empty() || !others.iter().all(is_first),
        "there is nothing to compare {} with: {}\nName another one: `rubus history` lists the runs",
        first.subject.name,
        same_as(&first.subject.name, &others[0].subject.name)
    );
    Ok(())
}

/// What is said of two names of one thing.
fn same_as(first: &str, other: &str) -> String {
    if first == other {
        "it is named twice".into()
    } else {
        format!("{other} has the same content")
    }
}

fn list_references(general: &General, args: &Compare) -> anyhow::Result<Exit> {
    if args.json.wanted {
        places::say(&(serde_json::to_string_pretty(&REFERENCES)? + "\n"))?;
    } else {
        let style = Terminal::of(general).style();
        places::say(&rubus_runs::text::compare::references(style))?;
    }
    Ok(Exit::Fine)
}

/// The named reference, or the nearest to the first run.
fn reference(wanted: &str, found: &[Found]) -> anyhow::Result<&'static Reference> {
    if !wanted.is_empty() {
        let known: Vec<&str> = REFERENCES.iter().map(|r| r.id).collect();
        return match reference::by_id(wanted) {
            Some(reference) => Ok(reference),
            None => {
                bail!("there are no published figures '{wanted}'; there are: {}", known.join(", "))
            }
        };
    }
    match found.iter().find_map(|found| found.run.as_ref()) {
        Some(run) => Ok(reference::nearest(&run.machine, run.target.device.as_deref())),
        None => bail!(
            "which published figures are nearest can only be told of a run of rubus; name them \
             (--reference=NAME, `rubus compare --list-references` lists them)"
        ),
    }
}

/// Prints and writes the comparison in the forms that were asked for.
pub fn show(
    general: &General,
    args: &Compare,
    comparison: &Comparison,
    pages: &dyn Pages,
) -> anyhow::Result<()> {
    let mut printed = false;
    let keeps = args.with_serials;
    // A table of numbers is for its owner.
    let page = |shown: &Comparison| pages.of_comparison(shown);
    let csv: &dyn Fn(&Comparison) -> String = &rubus_runs::text::compare::csv;
    let outputs = [
        (&args.csv, true, csv),
        (&args.markdown, keeps, &rubus_runs::text::compare::markdown),
        (&args.html, keeps, &page),
    ];
    for (path, with_serials, form) in outputs {
        if let Some(path) = path {
            printed |= path.as_os_str() == "-";
            places::write_whole(path, &form(&shown(comparison, with_serials)?))?;
        }
    }
    if args.json.wanted {
        places::say(&(serde_json::to_string_pretty(comparison)? + "\n"))?;
    } else if !printed {
        let style = Terminal::of(general).style();
        let columns = terminal::size().0.into();
        places::say(&rubus_runs::text::compare::render(comparison, style, columns))?;
    }
    Ok(())
}

/// Names on standard error what became slower.
fn regressions(comparison: &Comparison, percent: f64) -> Exit {
    let found = comparison.regressions(percent / 100.0);
    for regression in &found {
        message!(
            "rubus: regression: {}: {} of {} is {:.2} times that of {}",
            comparison.subjects[regression.subject].name,
            regression.what,
            regression.title,
            regression.ratio,
            comparison.subjects[0].name
        );
    }
    if found.is_empty() { Exit::Fine } else { Exit::AnswerIsNo }
}
