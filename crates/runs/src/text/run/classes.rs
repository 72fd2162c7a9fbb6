//! The classes of a run as a table: what each asks for, what was measured, the answer.

use rubus_vocabulary::finding::{Finding, SpeedClass, Threshold};
use rubus_vocabulary::result::Run;

use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::words::half_width;
use rubus_verdict::text::findings::value;

/// A row per threshold that says something; the answer stands in the first row of its class.
pub(super) fn table(run: &Run, style: Style) -> Vec<String> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("class", Left),
        ("asks for", Left),
        ("at least", Right),
        ("here", Right),
        ("±", Right),
        ("behaves like it", Left),
    ]);
    for finding in &run.findings {
        let Finding::SpeedClass(class) = finding else {
            continue;
        };
        let (word, tone) = match class.is_met {
            Some(true) => ("yes", Tone::Good),
            Some(false) => ("no", Tone::Bad),
            None => ("undecided", Tone::Warn),
        };
        for (i, threshold) in told(class).enumerate() {
            let (name, answer) = match i {
                0 => (class.class.as_str(), Cell::toned(word, tone)),
                _ => ("", Cell::default()),
            };
            table.row(vec![
                name.into(),
                threshold.what.as_str().into(),
                value(threshold, threshold.least).into(),
                measured(threshold),
                half_width(&threshold.measured).into(),
                answer,
            ]);
        }
    }
    table.lines(style)
}

/// The thresholds of a class that say something new: all of an application class; of a speed class,
/// all of which look at the same writing, the slowest second only where it decides.
fn told(class: &SpeedClass) -> impl Iterator<Item = &Threshold> {
    let is_application = class.class.starts_with('A');
    let decides = |threshold: &Threshold| threshold.measured.low < threshold.least;
    let first_fails = class.thresholds.first().is_some_and(decides);
    let is_told = move |(i, threshold): &(usize, &Threshold)| {
        *i == 0 || is_application || (decides(threshold) && !first_fails)
    };
    let numbered = class.thresholds.iter().enumerate();
    numbered.filter(is_told).map(|(_, threshold)| threshold)
}

/// What was measured, in colour where it is surely too little.
fn measured(threshold: &Threshold) -> Cell {
    let tone = if threshold.measured.high < threshold.least { Tone::Bad } else { Tone::Plain };
    Cell::toned(&value(threshold, threshold.measured.value), tone)
}
