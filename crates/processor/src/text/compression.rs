//! Compression: a table for each data and each kind of pieces, and what it means.

use rubus_vocabulary::processor::ProcessorRun;
use rubus_vocabulary::processor::compression::{Compression, Cut, Method, Row, Sample, Source};
use rubus_vocabulary::units::{bytes_iec, percent, rate_si};

use super::mark;
use rubus_draw::layout::{heading, paragraph};
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::words::half_width;

/// "zstd:3 makes files 2.10 times smaller at 110 MB/s a core".
pub(super) fn headline(compression: &Compression) -> Option<String> {
    let sample = compression.samples.first()?;
    let usual = |row: &&Row| row.method == Method::Zstd(3);
    let row = sample.rows.iter().find(usual).or(sample.rows.first())?;
    let data = match sample.source {
        Source::Files { .. } => "files",
        Source::Corpus => "known data",
    };
    Some(format!(
        "{} makes {data} {:.2} times smaller at {} a core",
        row.method,
        row.ratio.value,
        rate_si(row.one.compress_bytes_per_second.value)
    ))
}

pub(super) fn parts(
    compression: &Compression,
    processor: &ProcessorRun,
    style: Style,
) -> Vec<Vec<String>> {
    let mut parts = Vec::new();
    for sample in &compression.samples {
        let mut cuts: Vec<Cut> = Vec::new();
        for row in &sample.rows {
            if !cuts.contains(&row.cut) {
                cuts.push(row.cut);
            }
        }
        for cut in cuts {
            let rows: Vec<&Row> = sample.rows.iter().filter(|row| row.cut == cut).collect();
            let mut lines = vec![heading(&title(sample, cut), style)];
            lines.extend(table(&rows, processor, style));
            lines.extend(paragraph(&said(&rows, sample, cut), "  "));
            parts.push(lines);
        }
    }
    parts.push(mark(rows(compression).any(is_disturbed)));
    let wrong: u64 = rows(compression).map(|row| row.wrong).sum();
    if wrong > 0 {
        let text = format!(
            "{wrong} pieces did not come back as they went in: this machine computes wrongly, and what it compresses is lost. \
             Test it with `rubus bench cpu linpack --stability 10m`."
        );
        let lines = paragraph(&text, "");
        let paint = |line: &String| style.paint(Tone::Bad, line);
        parts.push(lines.iter().map(paint).collect());
    }
    if rows(compression).next().is_some() {
        parts.push(legend(compression));
    }
    parts
}

/// Whether something disturbed a rate of it.
fn is_disturbed(row: &Row) -> bool {
    let mut both = [Some(&row.one), row.all.as_ref()].into_iter().flatten();
    both.any(|speed| !speed.doubts.is_empty())
}

fn rows(compression: &Compression) -> impl Iterator<Item = &Row> {
    compression.samples.iter().flat_map(|sample| &sample.rows)
}

fn title(sample: &Sample, cut: Cut) -> String {
    let data = match &sample.source {
        Source::Files { directory } => format!("Your files below {directory}"),
        Source::Corpus => "Known data, the same on every machine".into(),
    };
    match cut {
        Cut::Extents => format!("{data}, as on btrfs"),
        Cut::Pages { .. } => format!("{data}, as pages of swap"),
    }
}

fn table(rows: &[&Row], processor: &ProcessorRun, style: Style) -> Vec<String> {
    use Align::{Left, Right};
    let all = format!("all {}", processor.cores);
    let has_all = rows.iter().any(|row| row.all.is_some());
    let mut columns =
        vec![("", Left), ("ratio", Right), ("±", Right), ("compress", Right), ("±", Right)];
    let both = [("expand", Right), ("±", Right)];
    if has_all {
        columns.push((&all, Right));
        columns.extend(both);
        columns.push((&all, Right));
    } else {
        columns.extend(both);
    }
    let mut table = Table::new(&columns);
    for row in rows {
        let ratio_width = match row.ratio.largest_deviation() {
            0.0 => Cell::default(),
            _ => half_width(&row.ratio).into(),
        };
        let compress = row.one.compress_bytes_per_second;
        let expand = row.one.expand_bytes_per_second;
        let mut cells = vec![
            if is_disturbed(row) {
                Cell::toned(&format!("{} !", row.method), Tone::Bad)
            } else {
                Cell::from(row.method.to_string())
            },
            format!("{:.2}", row.ratio.value).into(),
            ratio_width,
            rate_si(compress.value).into(),
            half_width(&compress).into(),
        ];
        if has_all {
            let compress = row.all.as_ref().map(|all| all.compress_bytes_per_second.value);
            cells.push(rate(compress));
        }
        cells.push(rate(expand.map(|rate| rate.value)));
        cells.push(expand.map_or(Cell::default(), |rate| half_width(&rate).into()));
        if has_all {
            let expand = row.all.as_ref().and_then(|all| all.expand_bytes_per_second);
            cells.push(rate(expand.map(|rate| rate.value)));
        }
        table.row(cells);
    }
    table.lines(style)
}

fn rate(bytes_per_second: Option<f64>) -> Cell {
    bytes_per_second.map_or_else(|| "–".into(), |rate| rate_si(rate).into())
}

/// What becomes of pieces that do not shrink.
fn said(rows: &[&Row], sample: &Sample, cut: Cut) -> String {
    let shares = || rows.iter().map(|row| row.left_share);
    let least = percent(shares().fold(1.0, f64::min));
    let most = percent(shares().fold(0.0, f64::max));
    let share = if least == most { least } else { format!("{least} to {most}") };
    match cut {
        Cut::Extents => format!(
            "{} in {} pieces of at most 128 KiB. {share} of them stay as they are, since compressing would not save a block of \
             4 KiB; that is in the ratio.",
            bytes_iec(sample.bytes),
            sample.pieces
        ),
        Cut::Pages { bytes } => format!(
            "Pages of {}, packed as zsmalloc does. {share} of them do not shrink: zswap refuses those, and they go to the disk.",
            bytes_iec(u64::from(bytes))
        ),
    }
}

fn legend(compression: &Compression) -> Vec<String> {
    let mut text = String::from("Rates count the bytes before compressing.");
    if rows(compression).any(|row| row.cut == Cut::Extents && !row.method.is_of_btrfs()) {
        text.push_str(" btrfs has no lz4; it is there to compare with.");
    }
    text.push_str(
        " lzo is not measured: no maintained library of it has a permissive licence; lz4 is its nearest relative.",
    );
    if rows(compression).any(|row| matches!(row.cut, Cut::Pages { .. })) {
        text.push_str(" Pages are cut from files; memory of programs often shrinks more (`rubus zswap` says what yours does).");
    }
    paragraph(&text, "")
}
