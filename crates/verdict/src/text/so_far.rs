//! A checkup while it runs: the rows of its table as they are measured, the provisional answer, and how far it is. Pure
//! formatting; the roof decides who draws it and when.

use rubus_draw::style::Style;
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, hang, shorten};
use rubus_draw::words;
use rubus_vocabulary::result::Run;
use rubus_vocabulary::units::{iops, rate_si};

use super::checkup::Legend;
use super::progress::{self, Progress};
use crate::verdict::Pipe;
use crate::verdict::so_far::{Row, Running, rows, so_far};

/// From this age of a run on, in seconds, it has a provisional answer.
const ANSWER_FROM_S: f64 = 15.0;

/// Texts are as wide as the narrowest terminal that they are for: so a terminal that gets narrower reflows none of them, and what
/// was drawn can be cleared.
const COLUMNS: usize = 59;

/// What a terminal of `columns` shows: the table, the provisional answer, and what is measured now with the time that is left.
pub fn screen(
    run: &Run,
    running: Option<&Running>,
    at: &Progress,
    columns: usize,
    style: Style,
) -> Vec<String> {
    let style = Style { columns: columns.min(COLUMNS), ..style };
    let mut lines = table(run, running, style);
    lines.push(String::new());
    if at.elapsed_s >= ANSWER_FROM_S
        && let Some(answer) = so_far(run, running)
    {
        lines.extend(hang("", &bind_units(&answer), style.columns));
    }
    lines.push(progress::status(at, style.columns));
    lines.iter().map(|line| shorten(line, columns)).collect()
}

/// A row for each kind of operation; what is to come has dashes, so that no row moves.
fn table(run: &Run, running: Option<&Running>, style: Style) -> Vec<String> {
    use Align::{Left, Right};
    let columns = [("", Left), ("rate", Right), ("±", Right), ("real work", Right), ("", Left)];
    let mut table = Table::new(&columns);
    let mut legend = Legend::of(run);
    for row in rows(run, running) {
        let cells: [String; 5] = match row {
            Row::Done(pipe) => {
                let result = pipe.job().and_then(|job| run.job(job));
                let width = result.map(|result| words::half_width(&result.iops));
                let flags = result.map(|result| legend.flags(result));
                cells(&pipe, width.unwrap_or_default(), flags.unwrap_or_default())
            }
            Row::Running(pipe, own) => {
                cells(&pipe, words::half_width(&own.operations_per_second), "…".into())
            }
            Row::ToCome(title) => [title, "–", "–", "–", ""].map(String::from),
        };
        table.row(cells.iter().map(Cell::from).collect());
    }
    let mut lines = table.lines(style);
    lines.extend(legend.after("", style).into_iter().filter(|line| !line.is_empty()));
    lines
}

fn cells(pipe: &Pipe, half_width: String, mark: String) -> [String; 5] {
    let rate = match (pipe.bytes_per_second, pipe.operations_per_second) {
        (Some(bytes), _) => rate_si(bytes.value),
        (None, Some(operations)) => format!("{} /s", iops(operations.value)),
        (None, None) => String::new(),
    };
    let demand = pipe.demand_s.map(words::roughly).unwrap_or_default();
    [pipe.name.clone(), rate, half_width, demand, mark]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::progress::Phase;
    use rubus_draw::text::width;
    use rubus_fixtures::slow_sd_card_run;
    use rubus_stats::estimate::Estimate;
    use rubus_vocabulary::job_names;

    fn at(elapsed_s: f64) -> Progress {
        Progress {
            phase: Phase::Measuring,
            job: "4 KiB commits".into(),
            job_number: 8,
            jobs: 9,
            live_bytes_per_second: None,
            so_far: None,
            live_files_per_second: None,
            files_so_far: None,
            elapsed_s,
            left_s: Some(21.0),
            bytes_written: 301 << 20,
        }
    }

    fn without_commits() -> (Run, Running) {
        let mut run = slow_sd_card_run();
        run.results.retain(|result| result.job != job_names::COMMIT);
        let running = Running {
            job: job_names::COMMIT.into(),
            bytes_per_second: Estimate::new(94e3, 80e3, 110e3),
            operations_per_second: Estimate::new(23.0, 19.5, 26.9),
        };
        (run, running)
    }

    #[test]
    fn rows_appear_as_they_are_measured_and_the_answer_from_15_s_on() {
        let (run, running) = without_commits();
        let mut first = run.clone();
        first.results.clear();
        let shown = [
            screen(&first, None, &at(2.0), 80, Style::PLAIN),
            screen(&run, None, &at(14.0), 80, Style::PLAIN),
            screen(&run, Some(&running), &at(31.0), 80, Style::PLAIN),
            screen(&slow_sd_card_run(), None, &at(52.0), 80, Style::PLAIN),
        ];
        let shown = shown.map(|lines| lines.join("\n"));
        assert!(!shown[1].contains("So far") && shown[2].contains("So far"));
        insta::assert_snapshot!(shown.join("\n\n"));
    }

    #[test]
    fn no_line_is_wider_than_60_columns_or_than_the_terminal() {
        let (run, running) = without_commits();
        for columns in [20, 40, 60, 80, 200] {
            for line in screen(&run, Some(&running), &at(31.0), columns, Style::PLAIN) {
                assert!(width(&line) <= columns.min(60), "{columns}: {line}");
            }
        }
    }
}
