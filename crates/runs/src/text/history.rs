//! The list of earlier runs.

use crate::history::{KeyFigures, RunSummary};
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::units::iops;

use rubus_draw::next_step;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{clean, hang, shorten, width};
use rubus_draw::words;

/// Columns of the table with two spaces between its columns and the whole moment in each row.
const WIDE: usize = 100;

/// The runs as a table, in the order given, ending in a line feed. One line per run where the terminal has 80 columns. What a run
/// measured that did not settle stands at its place in `unsettled`.
pub fn render(runs: &[RunSummary], unsettled: &[KeyFigures], style: Style) -> String {
    if runs.is_empty() {
        return "no runs yet\n".into();
    }
    use Align::{Left, Right};
    // What is never cut is measured first; the path gets what is left.
    let with_suite = runs.iter().any(|run| run.suite != "quick");
    let is_wide = style.columns >= WIDE;
    let moments = Moments::of(runs, is_wide);
    let when = moments.title();
    let mut columns = vec![("run", Right), (when.as_str(), Left), ("disk", Left), ("where", Left)];
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
    let (gap, longest_disk, widest_line) =
        if is_wide { (2, MAX_DISK, WIDE) } else { (1, MAX_DISK_OF_NARROW, style.columns) };
    let disk = |run: &RunSummary| disk(run, longest_disk);
    let fixed: usize = FIGURES
        + gap * (columns.len() - 1)
        + widest(runs, |run| moments.of_run(run)).max(when.len())
        + widest(runs, |run| run.id.to_string()).max(3)
        + widest(runs, disk).max(4)
        + if with_suite { widest(runs, suite).max(5) } else { 0 };
    let room = widest_line.saturating_sub(fixed).max(MIN_PLACE);
    let table = Table::new(&columns);
    let mut table = if is_wide { table } else { table.close() };
    for (at, run) in runs.iter().enumerate() {
        let figures = run.figures;
        let open = unsettled.get(at).copied().unwrap_or_default();
        let rate = |value, open| figure(value, open, megabytes);
        let operations = |value, open| figure(value, open, iops);
        let mut cells = vec![
            run.id.to_string().into(),
            moments.of_run(run).into(),
            disk(run).into(),
            Cell::from(place(run, room)),
        ];
        if with_suite {
            cells.push(suite(run).into());
        }
        cells.extend([
            rate(figures.sequential_read_bytes_per_second, open.sequential_read_bytes_per_second),
            rate(figures.sequential_write_bytes_per_second, open.sequential_write_bytes_per_second),
            operations(figures.random_read_iops, open.random_read_iops),
            operations(figures.random_write_iops, open.random_write_iops),
            operations(figures.commits_per_second, open.commits_per_second),
            Cell::toned(if run.doubts > 0 { "!" } else { "" }, Tone::Warn),
        ]);
        table.row(cells);
    }
    let mut lines = table.lines(style);
    let legend = hang("", &legend(runs, unsettled), widest_line);
    lines.extend(legend.iter().map(|line| style.paint(Tone::Faint, line)));
    lines.extend(next_step::lines(&next(runs), style));
    lines.join("\n") + "\n"
}

/// A figure; with its mark where it did not settle.
fn figure(settled: Option<f64>, open: Option<f64>, words: impl Fn(f64) -> String) -> Cell {
    Cell::from(match (settled, open) {
        (Some(value), _) => words(value),
        (None, Some(value)) => format!("?{}", words(value)),
        (None, None) => "–".into(),
    })
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

/// How moments are shown. Where there is not room for all of them, the year of all runs stands in the title; where they are of several
/// years, the time of day is left out.
enum Moments {
    Whole,
    OfYear(String),
    Days,
}

impl Moments {
    fn of(runs: &[RunSummary], is_wide: bool) -> Moments {
        let year = |run: &RunSummary| words::moment(&run.started).get(..4).map(str::to_string);
        let first = runs.first().and_then(year);
        match first {
            _ if is_wide => Moments::Whole,
            Some(first) if runs.iter().all(|run| year(run).as_ref() == Some(&first)) => {
                Moments::OfYear(first)
            }
            _ => Moments::Days,
        }
    }

    fn title(&self) -> String {
        match self {
            Moments::Whole | Moments::Days => "when".into(),
            Moments::OfYear(year) => format!("when, {year}"),
        }
    }

    fn of_run(&self, run: &RunSummary) -> String {
        let moment = words::moment(&run.started);
        let moment = moment.trim_end_matches(" UTC");
        let part = match self {
            Moments::Whole => Some(moment),
            Moments::OfYear(_) => moment.get(5..),
            Moments::Days => moment.get(..10),
        };
        part.unwrap_or(moment).into()
    }
}

/// Columns of the figures and the mark, without gaps.
const FIGURES: usize = 5 + 5 + 6 + 6 + 6 + 1;
/// A place gets no less than this, and a disk and a suite no more than that.
const MIN_PLACE: usize = 6;
const MAX_DISK: usize = 12;
const MAX_DISK_OF_NARROW: usize = 9;
const MAX_SUITE: usize = 11;

fn widest(runs: &[RunSummary], text: impl Fn(&RunSummary) -> String) -> usize {
    runs.iter().map(|run| width(&text(run))).max().unwrap_or(0)
}

fn suite(run: &RunSummary) -> String {
    shorten(&clean(&run.suite), MAX_SUITE)
}

/// The model of the device, or its name; a dash where there is none, as in memory.
fn disk(run: &RunSummary, longest: usize) -> String {
    let model = run.device_model.as_deref().map(str::trim);
    let device = model.filter(|model| !model.is_empty()).or(run.device.as_deref());
    shorten(&clean(device.unwrap_or("–")), longest)
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

fn legend(runs: &[RunSummary], unsettled: &[KeyFigures]) -> String {
    let mut text =
        "Times in UTC. read, write: in order, MB/s. 4k rd, 4k wr: random, one at a time, per \
         second. commit: per second."
            .to_string();
    let is_open = |open: &KeyFigures| all(open).iter().any(Option::is_some);
    if unsettled.iter().any(is_open) {
        text.push_str(" ?: did not settle.");
    }
    let lacks = |(at, run): (usize, &RunSummary)| {
        let open = unsettled.get(at).copied().unwrap_or_default();
        let mut both = all(&run.figures).into_iter().zip(all(&open));
        both.any(|(settled, open)| settled.or(open).is_none())
    };
    if runs.iter().enumerate().any(lacks) {
        text.push_str(" –: not measured.");
    }
    if runs.iter().any(|run| run.doubts > 0) {
        text.push_str(" !: disturbed.");
    }
    if runs.iter().any(|run| run.label.is_some()) {
        text.push_str(" In quotes: the label.");
    }
    text
}

fn all(figures: &KeyFigures) -> [Option<f64>; 5] {
    [
        figures.sequential_read_bytes_per_second,
        figures.sequential_write_bytes_per_second,
        figures.random_read_iops,
        figures.random_write_iops,
        figures.commits_per_second,
    ]
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
        insta::assert_snapshot!(render(&runs(), &[], Style::PLAIN));
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
        insta::assert_snapshot!(render(&runs, &[], Style::PLAIN));
    }

    #[test]
    fn what_did_not_settle_has_the_mark_of_a_gallery() {
        let mut runs = runs();
        runs[1].figures.commits_per_second = None;
        runs[1].figures.random_write_iops = None;
        let open = KeyFigures { commits_per_second: Some(47.1), ..KeyFigures::default() };
        let text = render(&runs, &[KeyFigures::default(), open], Style::PLAIN);
        assert!(text.contains(" 1609     –  ?47.1 !"), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("?: did not settle. –: not measured. !: disturbed."), "{words}");
    }

    #[test]
    fn no_runs_is_said() {
        assert_eq!(render(&[], &[], Style::PLAIN), "no runs yet\n");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut runs = runs();
        runs[1].target = "/a/long/path".repeat(20);
        runs[1].suite = "a-suite-of-many-words".into();
        runs[1].device_model = Some("A disk whose name is a sentence".into());
        runs[0].label = Some("before the new cable and the new supply".into());
        // An id of six digits, such a disk and such a suite do not fit 80 columns together.
        for (columns, longest, id) in
            [(80, 80, 1_234), (99, 99, 123_456), (100, WIDE, 123_456), (200, WIDE, 123_456)]
        {
            runs[0].id = RunId(id);
            for line in render(&runs, &[], Style { columns, ..Style::PLAIN }).lines() {
                assert!(rubus_draw::text::width(line) <= longest, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn narrow_moments_are_told_apart() {
        let mut runs = runs();
        let shown = |runs: &[RunSummary], columns: usize| {
            render(runs, &[], Style { columns, ..Style::PLAIN })
        };
        (runs[0].started, runs[1].started) =
            ("2026-11-21T01:02:03Z".into(), "2026-11-20T23:50:00Z".into());
        let of_a_year = shown(&runs, 80);
        assert!(of_a_year.contains("when, 2026"), "{of_a_year}");
        assert!(of_a_year.contains(" 11-21 01:02 ") && of_a_year.contains(" 11-20 23:50 "));
        runs[1].started = "2025-12-31T23:50:00Z".into();
        let of_two = shown(&runs, 80);
        assert!(of_two.contains(" 2026-11-21 ") && of_two.contains(" 2025-12-31 "), "{of_two}");
        assert!(shown(&runs, 100).contains(" 2025-12-31 23:50 "));
    }
}
