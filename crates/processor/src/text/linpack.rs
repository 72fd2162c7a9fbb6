//! Linpack: block sizes, rates, whether the results were right, and what to do.

use rubus_vocabulary::processor::linpack::{Linpack, Rated, Stability, Verdict};
use rubus_vocabulary::result::Run;
use rubus_vocabulary::units::percent;

use super::{mark, width_cell};
use crate::solving::{advice, best_blocks, published};
use rubus_draw::layout::{heading, paragraph};
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::capitalized;
use rubus_draw::words::{half_width, plus_minus, span};

/// "Linpack 6.70 GFLOP/s, PASSED".
pub(super) fn headline(linpack: &Linpack) -> String {
    let rated = &linpack.all;
    let rate = giga(rated.flops_per_second.value);
    match &linpack.stability {
        Some(stability) => format!("Linpack {rate} GFLOP/s, {}", verdict(stability).0),
        None => format!("Linpack {rate} GFLOP/s, {}", word(rated)),
    }
}

fn giga(flops_per_second: f64) -> String {
    match flops_per_second / 1e9 {
        giga if giga < 10.0 => format!("{giga:.2}"),
        giga => format!("{giga:.1}"),
    }
}

fn word(rated: &Rated) -> &'static str {
    match (rated.failed, rated.different) {
        (0, 0) => "PASSED",
        (0, _) => "PASSED, but not each time the same",
        _ => "FAILED",
    }
}

fn verdict(stability: &Stability) -> (&'static str, Tone) {
    match stability.verdict() {
        Verdict::Stable => ("stable", Tone::Good),
        Verdict::RightSoFar => ("right so far", Tone::Plain),
        Verdict::Unstable => ("UNSTABLE", Tone::Bad),
    }
}

pub(super) fn parts(run: &Run, linpack: &Linpack, style: Style) -> Vec<Vec<String>> {
    let mut parts = vec![solved(linpack, style), sweep(linpack, style)];
    if let Some(stability) = &linpack.stability {
        parts.push(stable(stability, style));
    }
    let board = run.machine.board.model.text().unwrap_or_default();
    parts.push(beside(linpack, board));
    let is_raspberry = board.starts_with("Raspberry Pi");
    let todo = advice(&linpack.all, linpack.stability.as_ref(), is_raspberry);
    if !todo.is_empty() {
        let mut lines = vec![heading("What to do", style)];
        lines.extend(todo.iter().flat_map(|text| paragraph(text, "  ")));
        parts.push(lines);
    }
    parts
}

fn solved(linpack: &Linpack, style: Style) -> Vec<String> {
    use Align::{Left, Right};
    let title = "Linpack, dense equations in double precision";
    let columns = [
        ("", Left),
        ("unknowns", Right),
        ("block", Right),
        ("GFLOP/s", Right),
        ("±", Right),
        ("residual", Right),
        ("", Left),
    ];
    let passed = |is_passed: bool| if is_passed { Tone::Good } else { Tone::Bad };
    let mut table = Table::new(&columns).indented(2);
    for rated in linpack.on_one_core().chain([&linpack.all]) {
        let cores = match (rated.threads, &rated.core) {
            (1, Some(kind)) => format!("one {kind}"),
            (1, None) => "one core".to_string(),
            (all, _) => format!("all {all}"),
        };
        table.row(vec![
            cores.into(),
            rated.n.to_string().into(),
            rated.block.to_string().into(),
            giga(rated.flops_per_second.value).into(),
            width_cell(&rated.flops_per_second, &rated.doubts),
            residual(rated.residual).into(),
            Cell::toned(word(rated), passed(rated.is_right())),
        ]);
    }
    if let Some(hpl) = &linpack.hpl {
        let word = if hpl.is_passed { "PASSED" } else { "FAILED" };
        table.row(vec![
            "HPL (xhpl)".into(),
            hpl.n.to_string().into(),
            hpl.block.to_string().into(),
            giga(hpl.flops_per_second).into(),
            Cell::default(),
            residual(hpl.residual).into(),
            Cell::toned(word, passed(hpl.is_passed)),
        ]);
    }
    let mut lines = vec![heading(title, style)];
    lines.extend(table.lines(style));
    let mut shown = linpack.on_one_core().chain([&linpack.all]);
    lines.extend(mark(shown.any(|rated| !rated.doubts.is_empty())));
    let text = format!(
        "By {}. The residual is HPL's: below 16 is PASSED. Each was solved {} times.",
        linpack.by, linpack.all.times
    );
    lines.extend(paragraph(&text, "  "));
    lines
}

fn residual(scaled: f64) -> String {
    if !scaled.is_finite() {
        "no number".into()
    } else if scaled < 1000.0 {
        format!("{scaled:.4}")
    } else {
        format!("{scaled:.1e}")
    }
}

fn sweep(linpack: &Linpack, style: Style) -> Vec<String> {
    let Some(first) = linpack.sweep.first() else {
        return Vec::new();
    };
    let title = format!("Block sizes, at {} unknowns on all cores", first.n);
    let columns = [
        ("block", Align::Right),
        ("GFLOP/s", Align::Right),
        ("±", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&columns).indented(2);
    let best = best_blocks(&linpack.sweep);
    for swept in &linpack.sweep {
        let mark = match best.iter().position(|block| *block == swept.block) {
            Some(0) => Cell::toned("the best", Tone::Good),
            Some(_) => Cell::toned("not surely worse", Tone::Faint),
            None => Cell::default(),
        };
        table.row(vec![
            swept.block.to_string().into(),
            giga(swept.flops_per_second.value).into(),
            half_width(&swept.flops_per_second).into(),
            mark,
        ]);
    }
    let mut lines = vec![heading(&title, style)];
    lines.extend(table.lines(style));
    lines
}

fn stable(stability: &Stability, style: Style) -> Vec<String> {
    let (word, tone) = verdict(stability);
    let all = &stability.all;
    let mut text = format!(
        "{}: the same {} unknowns were solved {} times in {}",
        capitalized(word),
        all.n,
        all.times,
        span(stability.elapsed_s)
    );
    match (stability.verdict(), stability.first_wrong_s) {
        (Verdict::Unstable, first) => text.push_str(&format!(
            "; {} failed HPL's check, and {} gave other bits than the rest{}.",
            all.failed,
            all.different,
            first.map_or(String::new(), |at_s| {
                format!(", the first wrong one after {}", span(at_s))
            })
        )),
        _ => text.push_str("; every result was right, and the same to the last bit."),
    }
    if stability.is_interrupted {
        let wanted = span(stability.wanted_s);
        text.push_str(&format!(" It was to go on for {wanted}."));
    }
    let mut lines = vec![heading("Stability", style)];
    let said = paragraph(&text, "  ");
    lines.extend(said.iter().map(|line| style.paint(tone, line)));
    let mut text = format!(
        "{} GFLOP/s {}",
        giga(all.flops_per_second.value),
        plus_minus(&all.flops_per_second)
    );
    if let Some(ratio) = stability.last_over_first {
        let share = percent(ratio);
        text.push_str(&format!("; the last quarter {share} of the first"));
    }
    text.push_str(match stability.undervoltage {
        Some(true) => "; the supply was too low",
        Some(false) => "; the supply held",
        None => "; nothing here says whether the supply held",
    });
    if let Some(hottest) = stability.hottest_millicelsius {
        text.push_str(&format!("; {} °C at most", hottest / 1000));
    }
    if let Some((lowest, highest)) = stability.clock_hz {
        let ghz = |hz: u64| hz as f64 / 1e9;
        let (lowest, highest) = (ghz(lowest), ghz(highest));
        text.push_str(&format!("; clock {lowest:.2} to {highest:.2} GHz"));
    }
    lines.extend(paragraph(&format!("{text}."), "  "));
    lines
}

/// What others measured.
fn beside(linpack: &Linpack, board: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for aside in published(board) {
        let share = linpack.all.flops_per_second.value / (aside.value * 1e9);
        let text = format!(
            "Published: {} {} on a {} ({}; {}). This is {} of it; HPL had a tuned library and a larger system.",
            aside.value,
            aside.unit,
            aside.board,
            aside.what,
            aside.source,
            percent(share)
        );
        lines.extend(paragraph(&text, ""));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_core_has_a_row_with_its_name() {
        let run = rubus_fixtures::processor_run();
        let fixture = run.processor().and_then(|found| found.linpack.clone());
        let mut linpack = fixture.expect("the fixture has one");
        let rows = |linpack: &Linpack| {
            let lines = solved(linpack, Style::PLAIN);
            let names = lines.iter().map(|line| line.trim_start());
            let names = names.filter(|line| line.starts_with("one ") || line.starts_with("all "));
            let names = names.map(|line| line.split("  ").next().unwrap_or_default().to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(rows(&linpack), ["one core", "all 4"]);
        let one = linpack.one.as_mut().expect("the fixture has one");
        one.core = Some("Cortex-A76".into());
        let little = Rated { core: Some("Cortex-A55 (CPUs 0-3)".into()), ..one.clone() };
        linpack.other_kinds.push(little);
        let expected = ["one Cortex-A76", "one Cortex-A55 (CPUs 0-3)", "all 4"];
        assert_eq!(rows(&linpack), expected);
        let widths = solved(&linpack, Style::PLAIN);
        let widths = widths.iter().map(|line| rubus_draw::text::width(line));
        assert!(widths.max() <= Some(rubus_draw::layout::COLUMNS));
    }
}
