//! The list of earlier runs.

use crate::history::RunSummary;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::units::iops;

use rubus_draw::next_step;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{clean, hang, shorten, width};
use rubus_draw::words;

/// No line is wider.
const COLUMNS: usize = 100;

/// The runs as a table, in the order given, ending in a line feed. One line per run, at most 100
/// columns.
pub fn render(runs: &[RunSummary], style: Style) -> String {
    if runs.is_empty() {
        return "no runs yet\n".into();
    }
    use Align::{Left, Right};
    // What is never cut is measured first; the path gets what is left.
    let with_suite = runs.iter().any(|run| run.suite != "quick");
    let mut columns = vec![("run", Right), ("when", Left), ("disk", Left), ("where", Left)];
    if with_suite {
        columns.push(("suite", Left));
    }
    columns.extend([
        ("read", Right),
        ("write", Right),
        ("4k rd", Right),
        ("4k wr", Right),
        ("commit", Right),
        ("", Left),
    ]);
    let fixed: usize = FIXED
        + widest(runs, |run| run.id.to_string()).max(3)
        + widest(runs, disk).max(4)
        + if with_suite { 2 + widest(runs, suite).max(5) } else { 0 };
    let room = COLUMNS.saturating_sub(fixed).max(MIN_PLACE);
    let mut table = Table::new(&columns);
    for run in runs {
        let figures = run.figures;
        let rate = |value: Option<f64>| Cell::from(value.map_or("–".into(), megabytes));
        let operations = |value: Option<f64>| Cell::from(value.map_or("–".into(), iops));
        let mut cells = vec![
            run.id.to_string().into(),
            words::moment(&run.started).trim_end_matches(" UTC").into(),
            disk(run).into(),
            Cell::from(place(run, room)),
        ];
        if with_suite {
            cells.push(suite(run).into());
        }
        cells.extend([
            rate(figures.sequential_read_bytes_per_second),
            rate(figures.sequential_write_bytes_per_second),
            operations(figures.random_read_iops),
            operations(figures.random_write_iops),
            operations(figures.commits_per_second),
            Cell::toned(if run.doubts > 0 { "!" } else { "" }, Tone::Warn),
        ]);
        table.row(cells);
    }
    let mut lines = table.lines(style);
    let legend = hang("", &legend(runs), COLUMNS);
    lines.extend(legend.iter().map(|line| style.paint(Tone::Faint, line)));
    lines.extend(next_step::lines(&next(runs), style));
    lines.join("\n") + "\n"
}

/// What a list of runs, the newest first, is for: to compare the two newest of one place, or to look at the newest.
fn next(runs: &[RunSummary]) -> NextStep {
    let Some(newest) = runs.first() else {
        return NextStep::command(&["rubus"], "it measures the disk under this directory");
    };
    let is_like = |run: &&RunSummary| run.suite == newest.suite && run.target == newest.target;
    match runs.iter().skip(1).find(is_like) {
        Some(before) => NextStep::command(
            &["rubus", "compare", &before.id.to_string(), &newest.id.to_string()],
            "what changed between the newest runs of one disk",
        ),
        None => NextStep::command(
            &["rubus", "history", "show", &newest.id.to_string()],
            "the newest run again, with every figure",
        ),
    }
}

/// Columns of everything but the numbers, the disks, the suites and the places: the moment, the
/// figures, the mark, and the gaps.
const FIXED: usize = 16 + 5 + 5 + 6 + 6 + 6 + 1 + 9 * 2;
/// A place gets no less than this, and a disk and a suite no more than that.
const MIN_PLACE: usize = 6;
const MAX_DISK: usize = 12;
const MAX_SUITE: usize = 11;

fn widest(runs: &[RunSummary], text: impl Fn(&RunSummary) -> String) -> usize {
    runs.iter().map(|run| width(&text(run))).max().unwrap_or(0)
}

fn suite(run: &RunSummary) -> String {
    shorten(&clean(&run.suite), MAX_SUITE)
}

/// The model of the device, or its name; a dash where there is none, as in memory.
fn disk(run: &RunSummary) -> String {
    let model = run.device_model.as_deref().map(str::trim);
    let device = model.filter(|model| !model.is_empty()).or(run.device.as_deref());
    shorten(&clean(device.unwrap_or("–")), MAX_DISK)
}

/// The label in quotes, or the end of the path.
fn place(run: &RunSummary, room: usize) -> String {
    if let Some(label) = &run.label {
        return format!("\"{}\"", shorten(&clean(label), room.saturating_sub(2)));
    }
    let path = clean(&run.target);
    if width(&path) <= room {
        return path;
    }
    let mut end = String::new();
    for c in path.chars().rev() {
        if width(&end) + width(&c.to_string()) + 1 > room {
            break;
        }
        end.insert(0, c);
    }
    format!("…{end}")
}

/// Megabytes per second with three digits: "22.6", "0.34", "3250".
pub(super) fn megabytes(bytes_per_second: f64) -> String {
    let value = bytes_per_second / 1e6;
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn legend(runs: &[RunSummary]) -> String {
    let mut text =
        "Times in UTC. read, write: in order, MB/s. 4k rd, 4k wr: random, one at a time, per \
         second. commit: per second."
            .to_string();
    let lacks = |run: &RunSummary| {
        let f = run.figures;
        f.sequential_read_bytes_per_second.is_none()
            || f.sequential_write_bytes_per_second.is_none()
            || f.random_read_iops.is_none()
            || f.random_write_iops.is_none()
            || f.commits_per_second.is_none()
    };
    if runs.iter().any(lacks) {
        text.push_str(" –: not measured, or it did not settle.");
    }
    if runs.iter().any(|run| run.doubts > 0) {
        text.push_str(" !: disturbed.");
    }
    if runs.iter().any(|run| run.label.is_some()) {
        text.push_str(" In quotes: the label.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::RunId;
    use rubus_fixtures as fixture;

    fn runs() -> Vec<RunSummary> {
        vec![
            RunSummary::of(RunId(12), &fixture::failed_run(), "failed"),
            RunSummary::of(RunId(3), &fixture::slow_sd_card_run(), "slow"),
        ]
    }

    #[test]
    fn runs_as_a_table() {
        insta::assert_snapshot!(render(&runs(), Style::PLAIN));
    }

    #[test]
    fn two_runs_of_one_place_are_compared_next() {
        let mut runs = runs();
        runs[1].target = "/elsewhere".into();
        assert_eq!(next(&runs).command.expect("a command")[..3], ["rubus", "history", "show"]);
        runs[1].target = runs[0].target.clone();
        runs[1].suite = runs[0].suite.clone();
        assert_eq!(next(&runs).command.expect("a command"), ["rubus", "compare", "3", "12"]);
        assert_eq!(next(&[]).command.expect("a command"), ["rubus"]);
    }

    #[test]
    fn other_suites_and_labels_in_the_table() {
        let mut runs = runs();
        runs[0].suite = "queue-depth".into();
        runs[0].label = Some("before the new cable".into());
        runs[1].target = "/media/pi/backup/of/everything/since/2019".into();
        insta::assert_snapshot!(render(&runs, Style::PLAIN));
    }

    #[test]
    fn no_runs_is_said() {
        assert_eq!(render(&[], Style::PLAIN), "no runs yet\n");
    }

    #[test]
    fn no_line_is_wider_than_100_columns() {
        let mut runs = runs();
        runs[1].target = "/a/long/path".repeat(20);
        runs[1].suite = "a-suite-of-many-words".into();
        runs[1].device_model = Some("A disk whose name is a sentence".into());
        runs[0].label = Some("before the new cable and the new supply".into());
        runs[0].id = RunId(123_456);
        for line in render(&runs, Style::PLAIN).lines() {
            assert!(rubus_draw::text::width(line) <= COLUMNS, "{line}");
        }
    }
}
