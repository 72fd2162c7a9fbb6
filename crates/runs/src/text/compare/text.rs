//! The text of a comparison: what differs, then throughput and latency job by job.

use crate::compare::{Alone, Comparison, Difference, DoubtOfSome, Row};

use super::titles::{Line, lay_out};
use super::{QUANTITIES, Quantity, Scale, headline, interval, legend, ratio, subject_line, word};
use rubus_draw::layout::joined;
use rubus_draw::next_step;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, clean, hang, pad_right, shorten, width};
use rubus_verdict::text::picture;

/// No line of running text is wider, and no table is made for a narrower terminal.
const COLUMNS: usize = 80;
/// Columns of a figure, and of the drawn scale (odd).
const FIGURE: usize = 9;
const DRAWN: usize = 51;
/// Columns between a title and the drawn scale.
const GAP: usize = 2;
/// Lines for what differs between runs; the page and the JSON have all.
const DIFFERENCES: usize = 20;

/// The text for a terminal with `columns` columns, 80 at least, ending in a line feed. Only tables use more than 80.
pub fn render(comparison: &Comparison, style: Style, columns: usize) -> String {
    let columns = columns.max(COLUMNS);
    let mut parts = vec![subjects(comparison, style), answer(comparison, style)];
    for place in 1..comparison.subjects.len() {
        parts.extend(against(comparison, place, style, columns));
    }
    parts.push(differences(comparison, style, columns));
    parts.push(doubts(comparison, style));
    parts.push(pipes(comparison, style));
    parts.push(alone(comparison, style));
    parts.push(remarks(comparison, style));
    joined(parts)
}

/// What came out for each against the baseline, and what to do next.
fn answer(comparison: &Comparison, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    if comparison.rows.is_empty() {
        let text = hang("", &without_figures(comparison), COLUMNS);
        lines.extend(text.iter().map(|line| style.paint(Tone::Strong, line)));
    }
    for place in 1..comparison.subjects.len() {
        if !comparison.rows.is_empty() {
            lines.extend(said(comparison, place, style));
        }
    }
    lines.extend(next_step::lines(&comparison.next, Style { columns: COLUMNS, ..style }));
    lines
}

/// "14 facts differ. Nothing was measured on both."
fn without_figures(comparison: &Comparison) -> String {
    let differing =
        comparison.differences.iter().filter(|difference| !is_setting_of_one(difference)).count();
    let facts = match differing {
        0 => "No fact differs, as far as known.".to_string(),
        1 => "One fact differs.".into(),
        several => format!("{several} facts differ."),
    };
    let jobs = if comparison.alone.is_empty() {
        "Surveys hold no measurements, so which is faster is not known."
    } else {
        "They have no job in common, so which is faster is not known."
    };
    format!("{facts} {jobs}")
}

fn said(comparison: &Comparison, place: usize, style: Style) -> Vec<String> {
    let lines = hang("", &clean(&headline(comparison, place)), COLUMNS);
    lines.iter().map(|line| style.paint(Tone::Strong, line)).collect()
}

fn heading(text: &str, style: Style) -> String {
    style.paint(Tone::Strong, text)
}

fn subjects(comparison: &Comparison, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for place in 0..comparison.subjects.len() {
        let role = if place == 0 { "baseline  " } else { "against   " };
        let line = bind_units(&clean(&subject_line(comparison, place)));
        let mut wrapped = hang(role, &line, COLUMNS);
        if let Some(first) = wrapped.first_mut() {
            *first = first.replacen(role, &style.paint(Tone::Faint, role), 1);
        }
        lines.extend(wrapped);
    }
    lines
}

/// The pipes of all on one scale, where there are two or more to be held beside one another.
fn pipes(comparison: &Comparison, style: Style) -> Vec<String> {
    let pictures = comparison.pictures();
    if pictures.len() < 2 || comparison.rows.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![heading("The pipes, on one scale", style)];
    lines.extend(picture::beside(&pictures, style));
    lines
}

fn differences(comparison: &Comparison, style: Style, terminal: usize) -> Vec<String> {
    if comparison.differences.is_empty() {
        return vec!["Board, device, settings and versions are the same, as far as known.".into()];
    }
    let (of_one, of_several): (Vec<&Difference>, Vec<&Difference>) =
        comparison.differences.iter().partition(|difference| is_setting_of_one(difference));
    let has_rows = !comparison.rows.is_empty();
    let most = if has_rows { DIFFERENCES } else { usize::MAX };
    let shown = &of_several[..of_several.len().min(most)];
    let mut lines = Vec::new();
    if !shown.is_empty() {
        lines.push(heading("What differs", style));
        lines.extend(differences_table(comparison, shown, terminal).lines(style));
    }
    let left = of_several.len() - shown.len();
    if left > 0 {
        lines.push(format!("  and {left} more, on the page and in the JSON"));
    }
    lines.extend(known_of_one(comparison, &of_one, style));
    lines
}

/// A value that does not fit its column goes on in the next line.
fn differences_table(
    comparison: &Comparison,
    differences: &[&Difference],
    terminal: usize,
) -> Table {
    let count = comparison.subjects.len();
    let names = differences.iter().map(|difference| width(&difference.what));
    let first = names.max().unwrap_or(0).min(30);
    let each = ((terminal - 2 - first - 2 * count) / count).max(8);
    let titles: Vec<String> = without_shared_directory(comparison)
        .into_iter()
        .map(|name| shorten(&clean(name), each))
        .collect();
    let mut columns = vec![("", Align::Left)];
    columns.extend(titles.iter().map(|title| (title.as_str(), Align::Left)));
    let mut table = Table::new(&columns).indented(2);
    for difference in differences {
        let values: Vec<Vec<String>> = difference
            .values
            .iter()
            .map(|value| value.as_deref().map_or_else(Vec::new, |value| cell_lines(value, each)))
            .collect();
        let lines = values.iter().map(Vec::len).max().unwrap_or(0).max(1);
        for line in 0..lines {
            let what = if line == 0 { shorten(&clean(&difference.what), first) } else { "".into() };
            let mut cells = vec![Cell::from(what)];
            cells.extend(values.iter().map(|value| match (value.get(line), value.is_empty()) {
                (Some(text), _) => Cell::from(text.clone()),
                (None, true) if line == 0 => Cell::toned("–", Tone::Faint),
                (None, _) => Cell::from(""),
            }));
            table.row(cells);
        }
    }
    table
}

fn cell_lines(value: &str, columns: usize) -> Vec<String> {
    let lines = hang("", &bind_units(&clean(value)), columns);
    lines.iter().map(|line| shorten(line, columns)).collect()
}

/// The names without the directories that all of them begin with: they stand whole above.
fn without_shared_directory(comparison: &Comparison) -> Vec<&str> {
    let names: Vec<&str> =
        comparison.subjects.iter().map(|subject| subject.name.as_str()).collect();
    let Some(first) = names.first() else { return names };
    let ends = first.rmatch_indices('/').map(|(place, _)| place + 1);
    let shared = ends
        .into_iter()
        .find(|end| names.iter().all(|name| name.starts_with(&first[..*end]) && name.len() > *end));
    names.iter().map(|name| &name[shared.unwrap_or(0)..]).collect()
}

/// Whether it is a setting that only one of them tells: one gap in what was recorded, not one difference each. A disk or mount
/// that only one has is a difference.
fn is_setting_of_one(difference: &Difference) -> bool {
    let mut known = difference.values.iter().flatten();
    let first = known.next();
    difference.values.iter().any(Option::is_none)
        && known.all(|value| Some(value) == first)
        && ["CONFIG_", "vm.", "governor ", "highest clock "]
            .iter()
            .any(|start| difference.what.starts_with(start))
}

/// Settings of one are told with their values, many of a kernel's configuration only counted.
const SETTINGS_OF_ONE: usize = 4;

fn known_of_one(comparison: &Comparison, differences: &[&Difference], style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, subject) in comparison.subjects.iter().enumerate() {
        let known = differences.iter().filter_map(|difference| {
            Some((difference.what.as_str(), difference.values.get(place)?.as_deref()?))
        });
        let (of_kernel, others): (Vec<_>, Vec<_>) =
            known.partition(|(what, _)| what.starts_with("CONFIG_"));
        let mut said: Vec<String> =
            others.iter().map(|(what, value)| format!("{what} {value}")).collect();
        if of_kernel.len() > SETTINGS_OF_ONE {
            said.push(format!("{} options of its kernel, in the JSON", of_kernel.len()));
        } else {
            said.extend(of_kernel.iter().map(|(what, value)| format!("{what} {value}")));
        }
        if !said.is_empty() {
            let text = format!("{}: {}", subject.name, said.join("; "));
            lines.extend(hang("  ", &clean(&text), COLUMNS));
        }
    }
    if !lines.is_empty() {
        let title = heading("Known of some only", style);
        lines.splice(0..0, [String::new(), title]);
    }
    lines
}

/// Doubts of some come first, those of all after them.
fn doubts(comparison: &Comparison, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (of_all, title) in
        [(false, "What disturbed only some of them"), (true, "What disturbed all of them")]
    {
        // Of what all have, one is enough to be told; the page has the others.
        let mut told: Vec<&str> = Vec::new();
        for doubt in comparison.doubts.iter().filter(|d| d.is_of_all == of_all) {
            if of_all && told.contains(&doubt.kind.as_str()) {
                continue;
            }
            if told.is_empty() {
                lines.push(heading(title, style));
            }
            told.push(&doubt.kind);
            let mut text = doubt_line(comparison, doubt);
            if of_all {
                text.push_str("; likewise the other");
            }
            lines.extend(hang("  ", &bind_units(&clean(&text)), COLUMNS));
        }
    }
    lines
}

/// "run 3: the clock was held down (4 KiB random writes and 2 more jobs)".
fn doubt_line(comparison: &Comparison, doubt: &DoubtOfSome) -> String {
    let jobs = match doubt.jobs.as_slice() {
        [] => String::new(),
        [one] => format!(" ({one})"),
        [first, rest @ ..] => format!(
            " ({first} and {} more job{})",
            rest.len(),
            if rest.len() == 1 { "" } else { "s" }
        ),
    };
    let name = &comparison.subjects[doubt.subject].name;
    format!("{name}: {}{jobs}", doubt.what)
}

/// Everything about one subject against the baseline.
fn against(
    comparison: &Comparison,
    place: usize,
    style: Style,
    columns: usize,
) -> Vec<Vec<String>> {
    if comparison.rows.is_empty() {
        return Vec::new();
    }
    let mut parts = Vec::new();
    // Of one alone, the answer says whose figures follow.
    if comparison.subjects.len() > 2 {
        parts.push(said(comparison, place, style));
    }
    for quantity in &QUANTITIES {
        parts.push(table(comparison, place, quantity, style, columns));
    }
    parts.push(drawing(comparison, place, style, columns));
    if place + 1 == comparison.subjects.len() {
        parts.push(
            hang("", &bind_units(&clean(&legend(comparison))), COLUMNS)
                .iter()
                .map(|line| style.paint(Tone::Faint, line))
                .collect(),
        );
    }
    parts
}

fn table(
    comparison: &Comparison,
    place: usize,
    quantity: &Quantity,
    style: Style,
    columns: usize,
) -> Vec<String> {
    use Align::{Left, Right};
    let (mut titles, mut figures) = (Vec::new(), Vec::new());
    for row in &comparison.rows {
        if let Some(cells) = cells(row, place, quantity) {
            titles.push(clean(&row.title));
            figures.push(cells);
        }
    }
    if titles.is_empty() {
        return Vec::new();
    }
    // The names stand above; one that does not fit is not cut here.
    let name = |place: usize, role: &str| match clean(&comparison.subjects[place].name) {
        name if width(&name) <= FIGURE => name,
        _ => role.to_string(),
    };
    let (baseline, other) = (name(0, "baseline"), name(place, "against"));
    let empty = Table::new(&[
        (quantity.title, Left),
        (&baseline, Right),
        (&other, Right),
        ("ratio", Right),
        ("95 %", Left),
        ("", Left),
    ]);
    let with = |table: &mut Table, title: &str, index: usize| {
        let title = Cell::from(title);
        table.row([title].into_iter().chain(figures[index].clone()).collect());
    };
    let mut untitled = empty.clone();
    (0..figures.len()).for_each(|index| with(&mut untitled, "", index));
    let mut table = empty;
    for line in lay_out(&titles, untitled.room_of_first(columns)) {
        match line {
            Line::Heading(shared) => table.heading(&shared),
            Line::Row { index, title } => with(&mut table, &title, index),
        }
    }
    table.lines(style)
}

/// What stands behind the title of a row, where both have a figure.
fn cells(row: &Row, place: usize, quantity: &Quantity) -> Option<[Cell; 5]> {
    let measure = (quantity.of)(row);
    let ratio_of = measure.ratios.get(place).copied().flatten()?;
    let ours = measure.figures.first().copied().flatten()?;
    let theirs = measure.figures.get(place).copied().flatten()?;
    let (said, tone) = word(ratio_of.word);
    Some([
        (quantity.words)(row, ours.value).into(),
        (quantity.words)(row, theirs.value).into(),
        ratio(ratio_of.figure.value).into(),
        Cell::toned(&interval(&ratio_of.figure), Tone::Faint),
        Cell::toned(said, tone),
    ])
}

/// The ratios of the throughput, all on one scale.
fn drawing(comparison: &Comparison, place: usize, style: Style, columns: usize) -> Vec<String> {
    let scale = Scale::of(comparison);
    let (mut titles, mut ratios) = (Vec::new(), Vec::new());
    for row in &comparison.rows {
        if let Some(ratio) = row.throughput.ratios.get(place).copied().flatten() {
            titles.push(clean(&row.title));
            ratios.push(ratio);
        }
    }
    if titles.is_empty() {
        return Vec::new();
    }
    let laid_out = lay_out(&titles, columns - GAP - DRAWN);
    let widths = laid_out.iter().map(|line| match line {
        Line::Heading(_) => 0,
        Line::Row { title, .. } => width(title),
    });
    let title = "Ratio of the throughput";
    let column = widths.max().unwrap_or(0).max(width(title)) + GAP;
    let labels = pad_right(title, column) + &scale.labels(DRAWN);
    let mut lines = vec![style.paint(Tone::Faint, &labels)];
    lines.extend(laid_out.into_iter().map(|line| match line {
        Line::Heading(shared) => shared,
        Line::Row { index, title } => {
            let (_, tone) = word(ratios[index].word);
            let drawn = style.paint(tone, &scale.line(&ratios[index].figure, DRAWN));
            pad_right(&title, column) + &drawn
        }
    }));
    lines
}

/// Jobs named before the others are only counted.
const NAMED: usize = 4;

fn alone(comparison: &Comparison, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, subject) in comparison.subjects.iter().enumerate() {
        let titles: Vec<&str> = comparison
            .alone
            .iter()
            .filter(|Alone { subject, .. }| *subject == place)
            .map(|alone| alone.title.as_str())
            .collect();
        if !titles.is_empty() {
            let text = format!("{}: {}", subject.name, some_of(&titles));
            lines.extend(hang("  ", &clean(&text), COLUMNS));
        }
    }
    if !lines.is_empty() {
        lines.insert(0, heading("Without a counterpart", style));
    }
    lines
}

/// "a, b, c, d and 3 more"; with semicolons where a title has a comma of its own.
fn some_of(titles: &[&str]) -> String {
    let between = if titles.iter().any(|title| title.contains(',')) { "; " } else { ", " };
    if titles.len() <= NAMED + 1 {
        return titles.join(between);
    }
    let rest = titles.len() - NAMED;
    format!("{} and {rest} more", titles[..NAMED].join(between))
}

fn remarks(comparison: &Comparison, style: Style) -> Vec<String> {
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in &comparison.rows {
        for remark in &row.remarks {
            match said.iter_mut().find(|(known, _)| known == remark) {
                Some((_, titles)) => titles.push(&row.title),
                None => said.push((remark, vec![&row.title])),
            }
        }
    }
    let mut lines = Vec::new();
    for (remark, titles) in said {
        let of = if titles.len() == comparison.rows.len() {
            "all jobs".to_string()
        } else {
            some_of(&titles)
        };
        let text = bind_units(&clean(&format!("{remark}: {of}")));
        lines.extend(hang("  ", &text, COLUMNS));
    }
    if !lines.is_empty() {
        lines.insert(0, heading("Not quite the same job", style));
    }
    lines
}
