//! A comparison as text, CSV and markdown; its page is in `page/compare.rs`.

pub mod csv;
pub mod markdown;
mod scale;
#[cfg(test)]
mod tests;
mod text;
mod titles;

use crate::compare::{Comparison, Figure, Measure, Row, Source, Unit, Word};
use rubus_stats::compare::BETWEEN_RUNS;
use rubus_vocabulary::published::figures::{ASIDES, REFERENCES};
use rubus_vocabulary::units::{duration_ns, iops, rate_si};

use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{hang, wrap};
use rubus_draw::words;

pub use csv::csv;
pub use markdown::markdown;
pub use scale::Scale;
pub use text::render;

/// A quantity with its title and how its figures are said.
#[derive(Clone, Copy)]
pub struct Quantity {
    /// Title, such as "Throughput".
    pub title: &'static str,
    /// The quantity of a row.
    pub of: fn(&Row) -> &Measure,
    /// A figure in words.
    pub words: fn(&Row, f64) -> String,
}

/// Everything that is compared, in the order in which it is shown.
pub const QUANTITIES: [Quantity; 3] = [
    Quantity {
        title: "Throughput",
        of: |row| &row.throughput,
        words: |row, value| match row.unit {
            Unit::BytesPerSecond => rate_si(value),
            Unit::OperationsPerSecond => format!("{}/s", iops(value)),
            Unit::TimesMemory => format!("{value:.2} ×"),
        },
    },
    Quantity { title: "Median latency", of: |row| &row.p50_ns, words: |_, ns| nanoseconds(ns) },
    Quantity { title: "99 % latency", of: |row| &row.p99_ns, words: |_, ns| nanoseconds(ns) },
];

fn nanoseconds(ns: f64) -> String {
    duration_ns(ns.round() as u64)
}

/// What a ratio says, in a word or two.
pub fn word(word: Word) -> (&'static str, Tone) {
    match word {
        Word::Faster => ("faster", Tone::Good),
        Word::Slower => ("slower", Tone::Bad),
        Word::NoEvidence => ("no evidence", Tone::Faint),
        Word::NotJudged => ("no interval", Tone::Faint),
    }
}

/// A ratio with three digits: "0.97", "12.3", "140".
pub fn ratio(value: f64) -> String {
    match value {
        v if !v.is_finite() => "∞".into(),
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v if v > 0.0 && v < 0.0995 => format!("{v:.3}"),
        v => format!("{v:.2}"),
    }
}

/// The interval of a ratio: "0.96–1.04", with "≈" in front of a rough one; nothing without one.
pub fn interval(figure: &Figure) -> String {
    match figure.interval {
        None => String::new(),
        // Wider than a factor of ten to each side, it tells nothing.
        Some(interval) if interval.low * 100.0 < interval.high => "unknown".into(),
        Some(interval) => format!(
            "{}{}–{}",
            if interval.rough { "≈" } else { "" },
            ratio(interval.low),
            ratio(interval.high)
        ),
    }
}

/// "run 7 is faster in 3 of 10 jobs and slower in 1; no evidence of a difference in the other 6."
pub fn headline(comparison: &Comparison, place: usize) -> String {
    let name = &comparison.subjects[place].name;
    let of_this: Vec<Word> =
        comparison.rows.iter().filter_map(|row| Some(row.throughput.ratios[place]?.word)).collect();
    let count = |wanted: Word| of_this.iter().filter(|word| **word == wanted).count();
    let jobs = match of_this.len() {
        0 => {
            let is_in_common = comparison.rows.iter().any(|row| row.jobs[place].is_some());
            let why = if is_in_common {
                "jobs in common, but no rates of them"
            } else {
                "no job in common"
            };
            return format!("{name} and {} have {why}.", comparison.subjects[0].name);
        }
        1 => "1 job".to_string(),
        n => format!("{n} jobs"),
    };
    let parts: Vec<String> = [
        (Word::Faster, "faster in"),
        (Word::Slower, "slower in"),
        (Word::NoEvidence, "no evidence of a difference in"),
        (Word::NotJudged, "no interval to judge by in"),
    ]
    .into_iter()
    .filter(|(word, _)| count(*word) > 0)
    .map(|(word, words)| format!("{words} {}", count(word)))
    .collect();
    let most = match of_this.len() {
        1 => None,
        _ => {
            most(comparison, place, Word::Slower).or_else(|| most(comparison, place, Word::Faster))
        }
    };
    let most =
        most.map_or(String::new(), |(title, times)| format!("; most: {title}, ×{}", ratio(times)));
    format!(
        "{name} against {}, throughput of {jobs}: {}{most}.",
        comparison.subjects[0].name,
        parts.join(", ")
    )
}

/// The row of which this word is truest, with its ratio.
fn most(comparison: &Comparison, place: usize, wanted: Word) -> Option<(&str, f64)> {
    let of_word = comparison.rows.iter().filter_map(|row| {
        let ratio = row.throughput.ratios.get(place)?.as_ref()?;
        (ratio.word == wanted).then_some((row.title.as_str(), ratio.figure.value))
    });
    let apart = |times: f64| times.max(f64::MIN_POSITIVE).ln().abs();
    of_word.max_by(|a, b| apart(a.1).total_cmp(&apart(b.1)))
}

/// "run 3, 2026-11-21 01:02 UTC" with what a reader must know.
pub fn subject_line(comparison: &Comparison, place: usize) -> String {
    let subject = &comparison.subjects[place];
    let kind = match subject.source {
        Source::Run => "",
        Source::Fio => ", measured by fio",
        Source::Published => ", published",
        Source::Machine => ", a machine",
    };
    let when = match &subject.when {
        Some(when) => format!(", {}", words::moment(when)),
        None => String::new(),
    };
    let note = match &subject.note {
        Some(note) => format!(" ({note})"),
        None => String::new(),
    };
    format!("{}{kind}{when}{note}", subject.name)
}

/// Whether ratios with an interval are those of disks, which alone have a 99th percentile.
fn ratios_of_disks(comparison: &Comparison) -> bool {
    let mut rows = comparison.rows.iter();
    rows.any(|row| {
        let mut ratios = row.p99_ns.ratios.iter().flatten();
        ratios.any(|ratio| ratio.figure.interval.is_some())
    })
}

/// What the words and signs mean, as one paragraph.
pub fn legend(comparison: &Comparison) -> String {
    let ratios = || {
        comparison
            .rows
            .iter()
            .flat_map(|row| QUANTITIES.iter().flat_map(|q| &(q.of)(row).ratios))
            .flatten()
    };
    let mut text = format!("Ratio: to {}, with its 95 % interval.", comparison.subjects[0].name);
    if comparison.interleaved {
        text.push_str(" Measured in turns: the ratio of neighbouring rounds.");
    } else if ratios_of_disks(comparison) {
        text.push_str(&format!(
            " It allows for {:.0} % that may differ between runs{}; rounds in turns (--against) need no allowance.",
            comparison.between_runs * 100.0,
            if comparison.between_runs > BETWEEN_RUNS {
                " of a virtual machine"
            } else {
                ""
            }
        ));
    }
    if ratios().any(|ratio| ratio.word == Word::NoEvidence) {
        text.push_str(
            " No evidence: none of a difference; a smaller one than the interval may be there.",
        );
    }
    let alone = ratios().any(|ratio| {
        let leaves_1_out = |i: crate::compare::Interval| i.low > 1.0 || i.high < 1.0;
        ratio.word == Word::NoEvidence && ratio.figure.interval.is_some_and(leaves_1_out)
    });
    if comparison.judged > 1 {
        text.push_str(&format!(
            " Words are corrected for {} comparisons at once{}.",
            comparison.judged,
            if alone { ", so an interval that just leaves 1 out is not enough" } else { "" }
        ));
    }
    if ratios().any(|ratio| ratio.word == Word::NotJudged) {
        text.push_str(" No interval: at least one of the figures has none, so nothing is judged.");
    }
    if ratios().any(|ratio| interval(&ratio.figure) == "unknown") {
        text.push_str(" Unknown: the operations were too few or too uneven for an interval.");
    }
    if ratios().any(|ratio| ratio.figure.interval.is_some_and(|i| i.rough)) {
        text.push_str(" ≈: rough, from fio's samples.");
    }
    text
}

/// The list of the published references, ending in a line feed.
pub fn references(style: Style) -> String {
    const COLUMNS: usize = 80;
    let mut lines = vec![
        style.paint(Tone::Strong, "Published figures to compare with"),
        "  rubus compare RUN --reference=NAME; without a name the nearest in kind".into(),
        String::new(),
    ];
    for reference in &REFERENCES {
        lines.push(style.paint(Tone::Strong, reference.id));
        let about = format!(
            "{}, {}. {}; {}.",
            reference.board, reference.device, reference.tool, reference.source
        );
        lines.extend(hang("  ", &about, COLUMNS));
        let figures: Vec<String> = reference
            .figures
            .iter()
            .map(|f| format!("{} {}", f.job, rate_si(f.bytes_per_second).replace(' ', "\u{a0}")))
            .collect();
        lines.extend(hang("  ", &(figures.join(", ") + "."), COLUMNS));
        if !reference.note.is_empty() {
            lines.extend(hang("  ", &format!("Note: {}.", reference.note), COLUMNS));
        }
        lines.push(String::new());
    }
    lines.push(style.paint(Tone::Strong, "Other published figures, for reading"));
    for aside in &ASIDES {
        let line = format!("{}: {}: {}\u{a0}{}", aside.board, aside.what, aside.value, aside.unit);
        lines.extend(
            wrap(&line, COLUMNS - 2)
                .iter()
                .enumerate()
                .map(|(i, line)| format!("{}{line}", if i == 0 { "  " } else { "    " })),
        );
    }
    lines.join("\n") + "\n"
}
