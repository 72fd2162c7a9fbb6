//! Two measurements of a fleet as text: what changed, one table of ratios, who surely became slower
//! or faster, and what is not compared. At most 80 columns wide.

use rubus_draw::next_step;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, clean, hang, shorten, width, wrap};
use rubus_draw::words::moment;
use rubus_runs::compare::Word;
use rubus_runs::text::compare as words;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::units::counted;

use crate::changes::Change;
use crate::compare::{FleetComparison, FleetLine, Row};
use crate::figures::Column;
use crate::text::{
    COLUMNS, MAX_DIFFERENCES, MAX_NAME, MAX_VALUE, confidence, in_sentence, item, names, place,
    with_unit,
};

/// Up to this many boards of one figure have a line each; more share one.
const MAX_EACH: usize = 4;

/// The whole comparison.
pub fn render(comparison: &FleetComparison, style: Style) -> String {
    let parts = [
        heading(comparison, style),
        next_step::lines(&comparison.next, Style { columns: COLUMNS, ..style }),
        changes(&comparison.changes, style),
        table(comparison, style),
        sure(comparison, style),
        overall(comparison, style),
        missing(comparison, style),
    ];
    let parts = parts.iter().filter(|lines| !lines.is_empty());
    let parts: Vec<String> = parts.map(|lines| lines.join("\n") + "\n").collect();
    parts.join("\n")
}

fn heading(comparison: &FleetComparison, style: Style) -> Vec<String> {
    let mut boards: Vec<&str> = comparison.rows.iter().map(|row| &*row.board).collect();
    boards.dedup();
    let count = counted(boards.len() as u64, "board", "boards");
    let title = format!("Fleet comparison: {count} measured in both");
    let mut lines = vec![style.paint(Tone::Strong, &title)];
    let sides = ["before", "after"].into_iter().zip(&comparison.fleets);
    for (side, fleet) in sides {
        lines.extend(hang(&format!("  {side:6}  "), &fleet_line(fleet), COLUMNS));
    }
    lines
}

fn fleet_line(fleet: &FleetLine) -> String {
    let when = fleet.when.as_ref().map(|when| format!(", {}", moment(when)));
    let boards = counted(fleet.boards as u64, "board", "boards");
    let command = clean(&fleet.command);
    format!("{}: {command} of {boards}{}", clean(&fleet.name), clean(&when.unwrap_or_default()))
}

fn changes(all: &[Change], style: Style) -> Vec<String> {
    if all.is_empty() {
        return vec!["No setting is known to have changed.".into()];
    }
    let mut lines = vec![style.paint(Tone::Strong, "Changed settings")];
    let shown = &all[..all.len().min(MAX_DIFFERENCES)];
    let longest = shown.iter().map(|one| width(&one.what)).max().unwrap_or(0);
    let column = longest.min(MAX_NAME);
    let value = |value: &Option<String>| match value {
        Some(value) => shorten(&clean(value), MAX_VALUE),
        None => "not known".into(),
    };
    for one in shown {
        let what = shorten(&clean(&one.what), column);
        let first = format!("  {what}{}  ", " ".repeat(column - width(&what)));
        let change =
            format!("{} → {} ({})", value(&one.before), value(&one.after), of_boards(&one.boards));
        lines.extend(hang(&first, &change, COLUMNS));
    }
    if all.len() > shown.len() {
        let more = (all.len() - shown.len()) as u64;
        let more = counted(more, "more change", "more changes");
        lines.push(format!("  and {more}; --json lists all"));
    }
    lines
}

/// A few by name, many by number.
fn of_boards(boards: &[String]) -> String {
    match boards.len() {
        0..=MAX_EACH => names(boards),
        more => format!("{more} boards: {}", names(boards)),
    }
}

fn table(comparison: &FleetComparison, style: Style) -> Vec<String> {
    let mut columns = vec![("board", Align::Left)];
    let headings = comparison.columns.iter();
    columns.extend(headings.map(|one| (one.heading.as_str(), Align::Right)));
    columns.push(("", Align::Left));
    let mut drawn = Table::new(&columns);
    for row in &comparison.rows {
        drawn.row(cells(row));
    }
    let mut lines = drawn.lines(style);
    let each = comparison.columns.iter();
    let each = each.map(|one| format!("{}: {}", one.heading, in_sentence(&one.title)));
    let legend = format!(
        "Ratios: after over before. *: surely faster or slower. ?: did not settle. –: not measured \
         in both. !: disturbed. {}.",
        each.collect::<Vec<_>>().join("; ")
    );
    let legend = wrap(&bind_units(&legend), COLUMNS);
    lines.extend(legend.iter().map(|line| style.paint(Tone::Faint, line)));
    lines
}

fn cells(row: &Row) -> Vec<Cell> {
    let name = place(&row.board, row.target.as_deref());
    let mut cells = vec![Cell::from(shorten(&name, MAX_NAME))];
    for figure in &row.figures {
        let Some(figure) = figure else {
            cells.push(Cell::toned("–", Tone::Faint));
            continue;
        };
        let vague = if figure.is_settled { "" } else { "?" };
        // A blank keeps the digits below one another.
        let (mark, tone) = match figure.word {
            Word::Faster => ("*", Tone::Good),
            Word::Slower => ("*", Tone::Bad),
            Word::NoEvidence | Word::NotJudged => (" ", Tone::Plain),
        };
        let ratio = words::ratio(figure.ratio.value);
        cells.push(Cell::toned(&format!("{vague}{ratio}{mark}"), tone));
    }
    let has = |wanted: Word| row.figures.iter().flatten().any(|one| one.word == wanted);
    cells.push(match (has(Word::Slower), has(Word::Faster)) {
        (true, true) => Cell::toned("slower and faster", Tone::Warn),
        (true, false) => Cell::toned("slower", Tone::Bad),
        (false, true) => Cell::toned("faster", Tone::Good),
        (false, false) if row.doubts.iter().any(|count| *count > 0) => Cell::toned("!", Tone::Warn),
        (false, false) => Cell::from(""),
    });
    cells
}

/// Who surely became slower, then who became faster, with the evidence.
fn sure(comparison: &FleetComparison, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (wanted, title) in [(Word::Slower, "Slower boards"), (Word::Faster, "Faster boards")] {
        let items = evidence(comparison, wanted);
        if !items.is_empty() {
            lines.push(style.paint(Tone::Strong, title));
            lines.extend(items);
        }
    }
    let count = comparison.comparisons;
    let level = confidence(comparison.confidence);
    let basis = match (count, lines.is_empty()) {
        (0, _) => "No figure was measured in both.".into(),
        (_, true) => format!(
            "No board is surely slower or faster: the interval of each of {count} ratios reaches \
             across 1 ({level} intervals, which allow for {count} comparisons)."
        ),
        (_, false) => format!(
            "Intervals: {level}, which allow for {count} comparisons and for ±10 % between runs. \
             If nothing changed, 95 % of comparisons name nothing."
        ),
    };
    lines.extend(wrap(&bind_units(&basis), COLUMNS));
    lines
}

/// By figure: a few boards with a line each, the clearest first, more of them in one line.
fn evidence(comparison: &FleetComparison, wanted: Word) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, column) in comparison.columns.iter().enumerate() {
        let figures = comparison.rows.iter().filter_map(|row| {
            let figure = row.figures[number].filter(|one| one.word == wanted)?;
            Some((row, figure))
        });
        let mut figures: Vec<_> = figures.collect();
        figures.sort_by(|(_, a), (_, b)| {
            let distance = |ratio: Estimate| ratio.value.ln().abs();
            distance(b.ratio).total_cmp(&distance(a.ratio))
        });
        if figures.len() > MAX_EACH {
            lines.extend(item(&many(&figures, column)));
            continue;
        }
        for (row, figure) in figures {
            let words = format!(
                "{}: {} {} times (interval {}), {} before, {} after",
                place(&row.board, row.target.as_deref()),
                in_sentence(&column.title),
                words::ratio(figure.ratio.value),
                interval(figure.ratio),
                with_unit(figure.before.value, column.unit),
                with_unit(figure.after.value, column.unit),
            );
            lines.extend(item(&words));
        }
    }
    lines
}

/// "sequential read: 18 boards, 0.45 to 0.52 times: pi03, pi07, … and 13 more".
fn many(figures: &[(&Row, crate::compare::FigureChange)], column: &Column) -> String {
    let ratios = figures.iter().map(|(_, figure)| figure.ratio.value);
    let (low, high) = ratios
        .fold((f64::INFINITY, 0.0_f64), |(low, high), ratio| (low.min(ratio), high.max(ratio)));
    let boards: Vec<String> =
        figures.iter().map(|(row, _)| place(&row.board, row.target.as_deref())).collect();
    format!(
        "{}: {} boards, {} to {} times: {}",
        in_sentence(&column.title),
        figures.len(),
        words::ratio(low),
        words::ratio(high),
        names(&boards)
    )
}

fn interval(ratio: Estimate) -> String {
    format!("{} to {}", words::ratio(ratio.low), words::ratio(ratio.high))
}

/// How the boards together changed.
fn overall(comparison: &FleetComparison, style: Style) -> Vec<String> {
    let mut lines = vec![style.paint(Tone::Strong, "The fleet as a whole")];
    if comparison.overall.is_empty() {
        let none = "  Not judged: that needs three boards with the same suite and target.";
        lines.push(none.into());
        return lines;
    }
    use Align::{Left, Right};
    let columns =
        [("figure", Left), ("boards", Right), ("median", Right), ("interval", Left), ("", Left)];
    let mut drawn = Table::new(&columns).indented(2);
    for one in &comparison.overall {
        let target = one.target.as_ref().map(|target| format!("{target}: "));
        let title = format!("{}{}", target.unwrap_or_default(), in_sentence(&one.figure));
        let (word, tone) = words::word(one.word);
        drawn.row(vec![
            Cell::from(shorten(&clean(&title), 2 * MAX_NAME - 12)),
            Cell::from(one.boards.to_string()),
            Cell::toned(&words::ratio(one.ratio.value), tone),
            Cell::from(interval(one.ratio)),
            Cell::toned(word, tone),
        ]);
    }
    lines.extend(drawn.lines(style));
    let basis = format!(
        "  Intervals: {}, for boards that drift independently; boards on one server do not.",
        confidence(comparison.overall_confidence)
    );
    let basis = wrap(&bind_units(basis.trim_start()), COLUMNS - 2);
    lines.extend(basis.iter().map(|line| style.paint(Tone::Faint, &format!("  {line}"))));
    lines
}

/// What is not compared; boards with the same reason together.
fn missing(comparison: &FleetComparison, style: Style) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in &comparison.missing {
        match groups.iter_mut().find(|(reason, _)| *reason == one.reason) {
            Some((_, boards)) => boards.push(&one.board),
            None => groups.push((&one.reason, vec![&one.board])),
        }
    }
    if groups.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![style.paint(Tone::Strong, "Not compared")];
    for (reason, boards) in groups {
        lines.extend(item(&format!("{}: {}", names(&boards), clean(reason))));
    }
    lines
}

#[cfg(test)]
#[path = "compare_text/tests.rs"]
mod tests;
