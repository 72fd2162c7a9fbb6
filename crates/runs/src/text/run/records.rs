//! The table of records as iozone prints it: a row per record size, a column per operation.

use rubus_vocabulary::result::{JobResult, Run};
use rubus_vocabulary::suite_jobs::RECORD_OPERATIONS;

use rubus_draw::layout::heading;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::words::{block, half_width};
use rubus_verdict::text::checkup::Legend;

/// What iozone calls a kB.
const IOZONE_KB: f64 = 1024.0;

/// The table in MB/s, with the widest interval of each row, and again as iozone prints it.
pub(super) fn tables(run: &Run, style: Style) -> Vec<Vec<String>> {
    let mut sizes: Vec<u32> = run.results.iter().map(|r| r.block_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let row = |size: u32| RECORD_OPERATIONS.map(|operation| result(run, operation, size));
    let rows: Vec<(u32, [Option<&JobResult>; 6])> =
        sizes.into_iter().map(|size| (size, row(size))).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let (in_mb, legend) = in_mb(run, &rows);
    let mut first = vec![heading("MB/s (10^6 bytes per second)", style)];
    first.extend(in_mb.lines(style));
    let mut second = vec![heading("The same in kB/s as iozone prints it (1024 bytes)", style)];
    second.extend(as_iozone(run, &rows).lines(style));
    let legend = legend.after(
        "±: the widest of the row, to the farther end of the 95 % interval. One operation at a time, a fresh file for \
         each record size, flushes included: iozone -e -I -a -i 0 -i 1 -i 2.",
        style,
    );
    let faint = legend.iter().map(|line| style.paint(Tone::Faint, line));
    vec![first, second, faint.collect()]
}

/// The result of an operation, whose jobs are named "random-read-512k".
fn result<'a>(run: &'a Run, operation: &str, size: u32) -> Option<&'a JobResult> {
    run.results.iter().find(|result| {
        let name = result.job.rsplit_once('-').map(|(name, _)| name);
        result.block_bytes == size && name == Some(operation)
    })
}

fn columns<'a>(first: &[(&'a str, Align)], last: &[(&'a str, Align)]) -> Vec<(&'a str, Align)> {
    const TITLES: [&str; 6] = ["write", "rewrite", "read", "reread", "rnd read", "rnd write"];
    let operations = TITLES.map(|title| (title, Align::Right));
    [first, &operations, last].concat()
}

type Row<'a> = (u32, [Option<&'a JobResult>; 6]);

fn in_mb<'r>(run: &'r Run, rows: &[Row<'r>]) -> (Table, Legend<'r>) {
    let mut table = Table::new(&columns(
        &[("record", Align::Right)],
        &[("±", Align::Right), ("", Align::Left)],
    ));
    let mut legend = Legend::of(run);
    for (size, results) in rows {
        let mut cells = vec![Cell::from(block(*size))];
        cells.extend(results.iter().map(|result| figure(*result, 1e6)));
        let widest = results
            .iter()
            .flatten()
            .map(|result| &result.bytes_per_second)
            .max_by(|a, b| a.largest_deviation().total_cmp(&b.largest_deviation()));
        cells.push(widest.map_or(Cell::default(), |widest| half_width(widest).into()));
        let mut flags: Vec<char> = Vec::new();
        for result in results.iter().flatten() {
            flags.extend(legend.flags(result).chars());
        }
        flags.sort_unstable();
        flags.dedup();
        cells.push(Cell::toned(&flags.iter().collect::<String>(), Tone::Warn));
        table.row(cells);
    }
    (table, legend)
}

fn as_iozone(run: &Run, rows: &[Row<'_>]) -> Table {
    let mut table = Table::new(&columns(&[("kB", Align::Right), ("reclen", Align::Right)], &[]));
    for (size, results) in rows {
        let mut cells = vec![
            Cell::from((run.target.region_bytes / 1024).to_string()),
            Cell::from((size / 1024).to_string()),
        ];
        cells.extend(results.iter().map(|result| match result {
            Some(result) => {
                let rate = result.bytes_per_second.value / IOZONE_KB;
                Cell::from(format!("{rate:.0}"))
            }
            None => Cell::from("–"),
        }));
        table.row(cells);
    }
    table
}

/// A rate in multiples of `unit` bytes per second, with three digits or more.
fn figure(result: Option<&JobResult>, unit: f64) -> Cell {
    let Some(result) = result else {
        return "–".into();
    };
    let value = result.bytes_per_second.value / unit;
    Cell::from(match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    })
}
