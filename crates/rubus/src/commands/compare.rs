//! `rubus compare`: runs, fio's results, captures and published figures side by side.

use anyhow::bail;
use rubus_runs::compare::{Comparison, compare};
use rubus_runs::reference;
use rubus_runs::shown::shown;
use rubus_vocabulary::published::{Reference, figures::REFERENCES};
use rubus_watch::live::terminal;

use super::compare_fleets;
use crate::args::{Compare, General};
use crate::exit::Exit;
use crate::subjects::{self, Found, Thing};
use rubus_command::Terminal;
use rubus_command::places;

/// Compares and shows.
pub fn run(general: &General, args: &Compare) -> anyhow::Result<Exit> {
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
        return compare_fleets::run(general, args, &singles, &fleets);
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
    let comparison = compare(&all);
    show(general, args, &comparison)?;
    Ok(match args.fail_on_regression {
        Some(percent) => regressions(&comparison, percent),
        None => Exit::Fine,
    })
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
pub fn show(general: &General, args: &Compare, comparison: &Comparison) -> anyhow::Result<()> {
    let mut printed = false;
    let keeps = args.with_serials;
    // A table of numbers is for its owner.
    let outputs = [
        (&args.csv, true, rubus_runs::text::compare::csv as fn(&Comparison) -> String),
        (&args.markdown, keeps, rubus_runs::text::compare::markdown),
        (&args.html, keeps, rubus_page::compare::render),
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
        eprintln!(
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
