//! A fleet as text: what differs, one table, and who stands apart. At most 80 columns wide.

use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, clean, hang, shorten, width, wrap};
use rubus_runs::gallery::Shown;
use rubus_vocabulary::figure::Unit;
use rubus_vocabulary::units::{counted, iops, rate_si};
use serde::Serialize;

use crate::figures::{self, Outlier, Outliers};
use crate::settings::{Difference, Value};

/// No line is wider.
pub const COLUMNS: usize = 80;
/// Differing settings that are shown.
pub(crate) const MAX_DIFFERENCES: usize = 16;
/// Values of one setting that are shown.
const MAX_VALUES: usize = 4;
/// Boards of a list that are named.
pub(crate) const MAX_NAMED: usize = 6;
pub(crate) const MAX_NAME: usize = 24;
pub(crate) const MAX_VALUE: usize = 44;

/// A board and why it has no result, if it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Board<'a> {
    pub name: &'a str,
    pub failure: Option<&'a str>,
}

/// A board's facts at a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surveyed {
    /// Number of the board.
    pub board: usize,
    pub model: String,
    pub kernel: String,
    pub memory: String,
    /// The disks, by name and model.
    pub disks: String,
    /// How many findings the survey has.
    pub findings: usize,
}

/// What a board is advised.
#[derive(Clone, Debug, PartialEq)]
pub struct Advised {
    /// Number of the board.
    pub board: usize,
    /// What it works from now.
    pub now: String,
    /// Seconds for one second of the purpose's work.
    pub now_s: Option<f64>,
    /// What would be best.
    pub best: String,
    pub best_s: f64,
    /// Whether it is measured on this board rather than assumed.
    pub is_measured: bool,
    /// What to do; the same text for boards with the same advice.
    pub to_do: String,
}

/// The heading: how many boards, and how many of them gave nothing.
pub fn heading(verb: &str, boards: &[Board<'_>], style: Style) -> String {
    let failed = boards.iter().filter(|board| board.failure.is_some()).count();
    let count = counted(boards.len() as u64, "board", "boards");
    let failed = match failed {
        0 => String::new(),
        some => format!(", {some} without a result"),
    };
    style.paint(Tone::Strong, &format!("{verb}: {count}{failed}")) + "\n"
}

/// What differs; empty where nothing does.
pub fn differences(all: &[Difference], style: Style) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut lines = vec![String::new(), style.paint(Tone::Strong, "Differing settings")];
    let shown = &all[..all.len().min(MAX_DIFFERENCES)];
    let longest = shown.iter().map(|one| width(&one.what)).max().unwrap_or(0);
    let column = longest.min(MAX_NAME);
    for one in shown {
        let what = shorten(&clean(&one.what), column);
        let first = format!("  {what}{}  ", " ".repeat(column - width(&what)));
        let parts = one.values.iter().take(MAX_VALUES).enumerate();
        let mut parts: Vec<String> = parts.map(|(at, value)| value_words(value, at == 0)).collect();
        if one.values.len() > MAX_VALUES {
            let more = (one.values.len() - MAX_VALUES) as u64;
            parts.push(counted(more, "other value", "other values"));
        }
        lines.extend(hang(&first, &parts.join("; "), COLUMNS));
    }
    if all.len() > shown.len() {
        let more = (all.len() - shown.len()) as u64;
        lines.push(format!(
            "  and {}; --json lists all",
            counted(more, "more setting", "more settings")
        ));
    }
    lines.join("\n") + "\n"
}

/// "6.12 (17 boards)", "6.6 (pi07, pi09)". Only the usual value is counted, the others are named.
fn value_words(value: &Value, is_usual: bool) -> String {
    let words = match &value.value {
        Some(value) => shorten(&clean(value), MAX_VALUE),
        None => "not known".into(),
    };
    if is_usual && value.boards.len() > 1 {
        format!("{words} ({} boards)", value.boards.len())
    } else {
        format!("{words} ({})", names(&value.boards))
    }
}

/// "pi01, pi02, pi03 and 14 more".
pub fn names<Name: AsRef<str>>(boards: &[Name]) -> String {
    let all = boards.iter().map(|name| clean(name.as_ref()));
    if boards.len() <= MAX_NAMED {
        return all.collect::<Vec<_>>().join(", ");
    }
    let first: Vec<String> = all.take(MAX_NAMED - 1).collect();
    format!("{} and {} more", first.join(", "), boards.len() - first.len())
}

/// Failed boards below a table, the reason beside each.
fn failures(table: &mut Table, boards: &[Board<'_>], before: usize) {
    let board = &boards[before];
    if let Some(why) = board.failure {
        let name = shorten(&clean(board.name), MAX_NAME);
        let line = format!("{name}  no result: {}", clean(why));
        table.heading(&shorten(&line, COLUMNS));
    }
}

/// The figures of every board, in the order of the boards.
pub fn figures(
    table: &figures::Table,
    outliers: &Outliers,
    boards: &[Board<'_>],
    style: Style,
) -> String {
    let mut columns = vec![("board", Align::Left)];
    columns.extend(table.columns.iter().map(|one| (one.heading.as_str(), Align::Right)));
    columns.extend([("run", Align::Right), ("", Align::Left)]);
    let mut drawn = Table::new(&columns);
    let mut rows = table.rows.iter().enumerate().peekable();
    let mut apart = outliers.outliers.iter().peekable();
    for (number, board) in boards.iter().enumerate() {
        failures(&mut drawn, boards, number);
        while let Some((at, row)) = rows.next_if(|(_, row)| row.board == number) {
            let mut marks = vec![None; table.columns.len()];
            while let Some(one) = apart.next_if(|one| one.row == at) {
                marks[one.column] = Some(one.ratio.value < 1.0);
            }
            drawn.row(row_cells(table, row, board.name, &marks));
        }
    }
    let mut lines = vec![String::new()];
    lines.extend(drawn.lines(style));
    lines.extend(legend(table, style));
    lines.join("\n") + "\n"
}

fn row_cells(
    table: &figures::Table,
    row: &figures::Row,
    name: &str,
    marks: &[Option<bool>],
) -> Vec<Cell> {
    let name = place(name, row.target.as_deref());
    let mut cells = vec![Cell::from(shorten(&name, MAX_NAME))];
    for ((cell, column), mark) in row.cells.iter().zip(&table.columns).zip(marks) {
        let words = cell.map_or("–".into(), |shown| figure(shown, column.unit));
        let tone = match (mark, cell) {
            (Some(true), _) => Tone::Bad,
            (Some(false), _) => Tone::Strong,
            (None, Some(_)) => Tone::Plain,
            (None, None) => Tone::Faint,
        };
        cells.push(Cell::toned(&words, tone));
    }
    let number = row.number.map_or(String::new(), |number| number.to_string());
    cells.push(Cell::toned(&number, Tone::Faint));
    let is_slow = marks.contains(&Some(true));
    let mark = match (is_slow, marks.contains(&Some(false))) {
        (true, _) => Cell::toned("slow", Tone::Bad),
        (false, true) => Cell::toned("fast", Tone::Strong),
        (false, false) if row.doubts > 0 => Cell::toned("!", Tone::Warn),
        (false, false) => Cell::from(""),
    };
    cells.push(mark);
    cells
}

fn figure(shown: Shown, unit: Unit) -> String {
    let value = match unit {
        Unit::BytesPerSecond => rate_si(shown.rate.value).replace(" MB/s", ""),
        _ => iops(shown.rate.value),
    };
    if shown.is_settled { value } else { format!("?{value}") }
}

fn legend(table: &figures::Table, style: Style) -> Vec<String> {
    let is_usual = table.columns.iter().all(|column| !column.heading.starts_with("job "));
    let mut words = if is_usual {
        "read, write: sequential, MB/s. 4k rd, 4k wr: random, one in flight, per second. \
             commit: per second."
            .to_string()
    } else {
        let each = table.columns.iter().map(|one| format!("{}: {}.", one.heading, one.title));
        format!("MB/s or per second. {}", each.collect::<Vec<_>>().join(" "))
    };
    words += " ?: did not settle. –: not measured. !: disturbed. run: number in the history \
     (`rubus history show N`).";
    let lines = wrap(&words, COLUMNS);
    lines.iter().map(|line| style.paint(Tone::Faint, line)).collect()
}

/// Who stands apart, with the evidence.
pub fn outliers(found: &Outliers, style: Style) -> String {
    let mut lines = vec![String::new()];
    if !found.outliers.is_empty() {
        lines.push(style.paint(Tone::Strong, "Outliers"));
        lines.extend(found.outliers.iter().flat_map(|one| item(&evidence(one))));
    }
    let basis = outliers_basis(found);
    lines.extend(wrap(&bind_units(&basis), COLUMNS));
    if found.comparisons > 0 && !found.alone.is_empty() {
        let alone = format!("Not compared, too few of their kind: {}.", names(&found.alone));
        lines.extend(wrap(&alone, COLUMNS));
    }
    lines.join("\n") + "\n"
}

/// What "stands apart" means here, or why none does.
pub fn outliers_basis(found: &Outliers) -> String {
    let confidence = confidence(found.confidence);
    match (found.comparisons, found.outliers.is_empty()) {
        (0, _) => "No outliers looked for: that needs three boards of one kind.".to_string(),
        (count, true) => format!(
            "No outliers: none of {count} figures stands apart from the median of its kind of \
             board ({confidence} \
             intervals, which allow for {count} comparisons)."
        ),
        (count, false) => format!(
            "Intervals: {confidence}, which allow for {count} comparisons. In 95 % of fleets of \
             boards that are alike, no \
             board is named."
        ),
    }
}

/// As many digits as tell it from certainty: "99.95 %".
pub(crate) fn confidence(share: f64) -> String {
    let parts = |digits: i32| 100.0 * 10_f64.powi(digits);
    let is_enough = |digits: &i32| (share * parts(*digits)).round() < parts(*digits);
    let digits = (0..=6).find(is_enough).unwrap_or(6);
    format!("{:.1$} %", share * 100.0, digits.unsigned_abs() as usize)
}

/// "22.6 MB/s", "1609 /s".
pub(crate) fn with_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::BytesPerSecond => rate_si(value),
        _ => format!("{} /s", iops(value)),
    }
}

/// A figure's title within a sentence.
pub(crate) fn in_sentence(title: &str) -> String {
    title.to_lowercase().replace("kib", "KiB")
}

/// "pi01", "pi01:/srv".
pub fn place(board: &str, target: Option<&str>) -> String {
    match target {
        Some(target) => format!("{}:{}", clean(board), clean(target)),
        None => clean(board),
    }
}

/// "pi07: sequential read 10.3 MB/s, 0.47 times the median 22.0 MB/s of 6 boards (interval …)".
pub fn evidence(one: &Outlier) -> String {
    format!(
        "{}: {} {}, {:.2} times the median {} of {} boards (interval {:.2} to {:.2})",
        place(&one.board, one.target.as_deref()),
        in_sentence(&one.figure),
        with_unit(one.value.value, one.unit),
        one.ratio.value,
        with_unit(one.median, one.unit),
        one.boards,
        one.ratio.low,
        one.ratio.high,
    )
}

/// An item of a list, its further lines indented.
pub(crate) fn item(words: &str) -> Vec<String> {
    let lines = wrap(&bind_units(words), COLUMNS - 4);
    let indent = |at: usize| if at == 0 { "  " } else { "    " };
    let lines = lines.iter().enumerate();
    lines.map(|(at, line)| format!("{}{line}", indent(at))).collect()
}

/// The facts of every board at a glance.
pub fn surveys(all: &[Surveyed], boards: &[Board<'_>], style: Style) -> String {
    use Align::{Left, Right};
    let columns = [
        ("board", Left),
        ("model", Left),
        ("kernel", Left),
        ("memory", Right),
        ("disks", Left),
        ("findings", Right),
    ];
    let mut table = Table::new(&columns);
    let mut rows = all.iter().peekable();
    for (number, board) in boards.iter().enumerate() {
        failures(&mut table, boards, number);
        if let Some(one) = rows.next_if(|one| one.board == number) {
            let cell = |text: &str, columns| Cell::from(shorten(&clean(text), columns));
            table.row(vec![
                cell(board.name, 12),
                cell(one.model.trim_start_matches("Raspberry "), 16),
                cell(&one.kernel, 16),
                cell(&one.memory, 8),
                cell(&one.disks, 10),
                Cell::from(one.findings.to_string()),
            ]);
        }
    }
    let mut lines = vec![String::new()];
    lines.extend(table.lines(style));
    if all.is_empty() {
        return lines.join("\n") + "\n";
    }
    let legend = "The findings of a board: `rubus survey --on BOARD`.";
    lines.push(style.paint(Tone::Faint, legend));
    lines.join("\n") + "\n"
}

/// What every board is advised, and which boards get the same advice.
pub fn advice(purpose: &str, all: &[Advised], boards: &[Board<'_>], style: Style) -> String {
    use Align::{Left, Right};
    let columns =
        [("board", Left), ("now", Left), ("needs", Right), ("best", Left), ("would need", Right)];
    let mut table = Table::new(&columns);
    let mut rows = all.iter().peekable();
    for (number, board) in boards.iter().enumerate() {
        failures(&mut table, boards, number);
        if let Some(one) = rows.next_if(|one| one.board == number) {
            let seconds = |value| rubus_draw::words::seconds(value);
            let cell = |text: &str, columns| Cell::from(shorten(&clean(text), columns));
            let mark = if one.is_measured { "" } else { "~" };
            table.row(vec![
                cell(board.name, 18),
                cell(&one.now, 16),
                Cell::from(one.now_s.map_or("–".into(), seconds)),
                cell(&one.best, 18),
                Cell::from(format!("{mark}{}", seconds(one.best_s))),
            ]);
        }
    }
    let mut lines = vec![String::new()];
    lines.extend(table.lines(style));
    if all.is_empty() {
        return lines.join("\n") + "\n";
    }
    let legend = format!(
        "Time for one second of the work of a {purpose}. ~: not measured on this board; measure \
         it with `rubus bench \
         --on` first."
    );
    let legend = wrap(&bind_units(&legend), COLUMNS);
    lines.extend(legend.iter().map(|line| style.paint(Tone::Faint, line)));
    lines.push(String::new());
    lines.push(style.paint(Tone::Strong, "What to do"));
    for (to_do, numbers) in same_advice(all) {
        let of: Vec<&str> = numbers.iter().map(|number| boards[*number].name).collect();
        let text = format!("{}: {}", names(&of), clean(to_do));
        lines.extend(hang("  ", &text, COLUMNS));
    }
    lines.join("\n") + "\n"
}

/// Each advice with the boards that get it, the most frequent first.
fn same_advice(all: &[Advised]) -> Vec<(&str, Vec<usize>)> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for one in all {
        let place = *places.entry(one.to_do.as_str()).or_insert(groups.len());
        if place == groups.len() {
            groups.push((&one.to_do, Vec::new()));
        }
        groups[place].1.push(one.board);
    }
    groups.sort_by_key(|(_, boards)| std::cmp::Reverse(boards.len()));
    groups
}

#[cfg(test)]
mod tests;
