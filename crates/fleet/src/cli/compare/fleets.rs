//! `rubus compare` of two documents of a fleet, before and after.

use std::collections::HashSet;

use anyhow::{bail, ensure};
use rubus_command::{Exit, General, Terminal, message, places};

use super::{Compare, same_as};
use crate::compare::{Document, Fleet, FleetComparison, compare};
use crate::compare_text;
use crate::subjects::Found;

/// Reasons that an error names.
const MAX_REASONS: usize = 3;

/// Compares and shows.
pub fn run(
    general: &General,
    args: &Compare,
    singles: &[Found],
    fleets: &[(String, Document)],
) -> anyhow::Result<Exit> {
    check_options(args)?;
    let [before, after] = two(singles, fleets)?;
    for fleet in [before, after] {
        check(fleet)?;
    }
    ensure!(
        before.document != after.document,
        "there is nothing to compare {} with: {}\nName the document of the same fleet at another time",
        before.name,
        same_as(before.name, after.name)
    );
    let comparison = compare(before, after);
    if comparison.rows.is_empty() {
        bail!(
            "cannot compare {} with {}: no board has a run in both with the same suite and target\n{}",
            before.name,
            after.name,
            reasons(&comparison)
        );
    }
    if args.json.wanted {
        places::say(&(serde_json::to_string_pretty(&comparison)? + "\n"))?;
    } else {
        let style = Terminal::of(general).style();
        places::say(&compare_text::render(&comparison, style))?;
    }
    Ok(match args.fail_on_regression {
        Some(percent) => regressions(&comparison, percent),
        None => Exit::Fine,
    })
}

/// What a comparison of runs can do and one of fleets cannot.
fn check_options(args: &Compare) -> anyhow::Result<()> {
    let refused = [
        ("--csv", args.csv.is_some()),
        ("--markdown", args.markdown.is_some()),
        ("--html", args.html.is_some()),
    ];
    if let Some((option, _)) = refused.iter().find(|(_, is_given)| *is_given) {
        bail!(
            "{option} is for comparisons of runs, and these are fleets\nLeave it out for a table, or \
             give --json: it has every figure of every board"
        );
    }
    ensure!(
        args.reference.is_none(),
        "--reference compares a single run with published figures, and these are fleets\nGive two \
         fleet documents, before and after"
    );
    Ok(())
}

/// The two fleets.
fn two<'a>(singles: &[Found], fleets: &'a [(String, Document)]) -> anyhow::Result<[Fleet<'a>; 2]> {
    if let Some(single) = singles.first() {
        bail!(
            "cannot compare {}, a fleet, with {}, which is none\nGive two fleet documents, or take the \
             run of one board out of the fleet: \
             jq '.boards[] | select(.name == \"BOARD\") | .runs[0]' FILE",
            fleets[0].0,
            single.subject.name
        );
    }
    match fleets {
        [before, after] => Ok([before, after].map(|(name, document)| Fleet { name, document })),
        [only] => bail!(
            "there is nothing to compare {} with: name the document of the same fleet at another time",
            only.0
        ),
        more => bail!(
            "cannot compare {} fleets at once\nGive two documents, before and after",
            more.len()
        ),
    }
}

/// A fleet has runs, and no board twice.
fn check(fleet: Fleet<'_>) -> anyhow::Result<()> {
    let Document { command, boards } = fleet.document;
    let name = fleet.name;
    let mut seen = HashSet::new();
    if let Some(twice) = boards.iter().find(|board| !seen.insert(&board.name)) {
        bail!("cannot compare {name}: it has the board {} twice", twice.name);
    }
    if boards.iter().any(|board| !board.runs.is_empty()) {
        return Ok(());
    }
    if matches!(command.as_str(), "survey" | "advise") {
        bail!(
            "cannot compare {name}: it is from `rubus {command}`, which measures nothing\nMeasure the \
             fleet: rubus bench --on @FILE --json fleet.json"
        );
    }
    match boards.iter().find_map(|board| Some((board, board.failure.as_ref()?))) {
        Some((board, failure)) => {
            bail!("cannot compare {name}: no board has a run\n{}: {failure}", board.name)
        }
        None => bail!("cannot compare {name}: no board has a run"),
    }
}

fn reasons(comparison: &FleetComparison) -> String {
    let all = &comparison.missing;
    let named = all.iter().take(MAX_REASONS);
    let mut lines: Vec<String> =
        named.map(|one| format!("{}: {}", one.board, one.reason)).collect();
    if all.len() > MAX_REASONS {
        lines.push(format!("and {} more", all.len() - MAX_REASONS));
    }
    lines.join("\n")
}

/// Names on standard error what became slower.
fn regressions(comparison: &FleetComparison, percent: f64) -> Exit {
    let found = comparison.regressions(percent / 100.0);
    for one in &found {
        let of = one.board.unwrap_or("the fleet as a whole");
        let target = one.target.map(|target| format!(" on {target}"));
        message!(
            "rubus: regression: {of}{}: {} is {:.2} times that of {}",
            target.unwrap_or_default(),
            one.figure,
            one.ratio,
            comparison.fleets[0].name
        );
    }
    if found.is_empty() { Exit::Fine } else { Exit::AnswerIsNo }
}
