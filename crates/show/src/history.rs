//! The list of earlier runs.

use rubus_core::history::RunSummary;
use rubus_core::units::{iops, rate_si};

use crate::style::{Style, Tone};
use crate::table::{Align, Cell, Table};
use crate::text::{hang, shorten};
use crate::words;

/// No line is wider.
const COLUMNS: usize = 100;

/// The runs as a table, in the order given, ending in a line feed. One line per run, at most 100
/// columns.
pub fn render(runs: &[RunSummary], style: Style) -> String {
    if runs.is_empty() {
        return "no runs yet\n".into();
    }
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("run", Right),
        ("when", Left),
        ("where", Left),
        ("read", Right),
        ("write", Right),
        ("read/s", Right),
        ("write/s", Right),
        ("commit/s", Right),
        ("", Left),
    ]);
    for run in runs {
        let figures = run.figures;
        let rate = |value: Option<f64>| Cell::from(value.map_or("–".into(), rate_si));
        let operations = |value: Option<f64>| Cell::from(value.map_or("–".into(), iops));
        table.row(vec![
            run.id.to_string().into(),
            words::moment(&run.started).trim_end_matches(" UTC").into(),
            shorten(&place(run), 24).into(),
            rate(figures.sequential_read_bytes_per_second),
            rate(figures.sequential_write_bytes_per_second),
            operations(figures.random_read_iops),
            operations(figures.random_write_iops),
            operations(figures.commits_per_second),
            Cell::toned(if run.doubts > 0 { "!" } else { "" }, Tone::Warn),
        ]);
    }
    let mut lines = table.lines(style);
    let mut legend = "Times in UTC. read/s, write/s: random, 4 KiB, one at a time.".to_string();
    if runs.iter().any(|run| run.doubts > 0) {
        legend.push_str(" ! disturbed.");
    }
    legend.push_str(" One run again: rubus history show RUN");
    let legend = hang("", &legend, COLUMNS);
    lines.extend(legend.iter().map(|line| style.paint(Tone::Faint, line)));
    lines.join("\n") + "\n"
}

/// "/home/pi (SC64G)", "/tmp".
fn place(run: &RunSummary) -> String {
    match run
        .device_model
        .as_deref()
        .map(str::trim)
        .or(run.device.as_deref())
    {
        Some(device) if !device.is_empty() => format!("{} ({device})", run.target),
        _ => run.target.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_core::fixture;
    use rubus_core::history::RunId;

    fn runs() -> Vec<RunSummary> {
        vec![
            RunSummary::of(RunId(12), &fixture::failed_run(), "failed"),
            RunSummary::of(RunId(3), &fixture::slow_sd_card_run(), "slow"),
        ]
    }

    #[test]
    fn runs_as_a_table() {
        insta::assert_snapshot!(render(&runs(), Style::PLAIN), @r#"
        run  when              where                          read      write  read/s  write/s  commit/s
         12  2026-11-21 01:10  /mnt/<b>old "stick" & c…          –          –       –        –         –  !
          3  2026-11-21 01:02  /home/pi (SC64G)          22.6 MB/s  11.4 MB/s    1609     83.3      23.0  !
        Times in UTC. read/s, write/s: random, 4 KiB, one at a time. ! disturbed. One run again: rubus
        history show RUN
        "#);
    }

    #[test]
    fn no_runs_is_said() {
        assert_eq!(render(&[], Style::PLAIN), "no runs yet\n");
    }

    #[test]
    fn no_line_is_wider_than_100_columns() {
        let mut runs = runs();
        runs[1].target = "/a/long/path".repeat(20);
        for line in render(&runs, Style::PLAIN).lines() {
            assert!(crate::text::width(line) <= COLUMNS, "{line}");
        }
    }
}
