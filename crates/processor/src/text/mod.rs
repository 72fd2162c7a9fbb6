//! What a processor does: ciphers, ssh, compression, arithmetic. At most 80 columns.
//!
//! One file per part draws its table; here is what surrounds them.

#![deny(clippy::disallowed_methods)]

mod ciphers;
mod compression;
mod linpack;
mod published;
mod ssh;

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::processor::{ProcessorRun, Rate};
use rubus_vocabulary::result::Run;
use rubus_vocabulary::units::rate_si;

use rubus_draw::csv::quoted;
use rubus_draw::layout::{board, heading, joined, paragraph};
use rubus_draw::markdown::{escape, fenced};
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::Cell;
use rubus_draw::text::{capitalized, clean};
use rubus_draw::words::{half_width, moment, span};

/// The run in a line, for the history.
pub fn headline(processor: &ProcessorRun) -> String {
    let parts = [
        processor.ciphers.as_ref().and_then(ciphers::headline),
        processor.ssh.as_ref().and_then(ssh::headline),
        processor.compression.as_ref().and_then(compression::headline),
        processor.linpack.as_ref().map(linpack::headline),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "processor: nothing was measured".into() } else { parts.join("; ") }
}

/// The text, ending in a line feed.
pub fn render(run: &Run, processor: &ProcessorRun, style: Style) -> String {
    let mut parts = vec![title(run, processor, style)];
    if let Some(ciphers) = &processor.ciphers {
        parts.extend(ciphers::parts(ciphers, processor, style));
    }
    if let Some(ssh) = &processor.ssh {
        parts.push(ssh::part(ssh, style));
    }
    parts.push(published::part(run, processor, style));
    if let Some(compression) = &processor.compression {
        parts.extend(compression::parts(compression, processor, style));
    }
    if let Some(linpack) = &processor.linpack {
        parts.extend(linpack::parts(run, linpack, style));
    }
    parts.push(meanwhile(processor, style));
    parts.push(disturbances(run, style));
    parts.push(left_out(processor, style));
    joined(parts)
}

fn title(run: &Run, processor: &ProcessorRun, style: Style) -> Vec<String> {
    let mut lines = vec![format!(
        "rubus {} · processor · {} · {}",
        clean(&run.rubus_version),
        moment(&run.started),
        span(run.elapsed_s)
    )];
    let user_space = format!(
        "{}, {}-bit user space ({})",
        board(run),
        processor.pointer_bits,
        processor.architecture
    );
    lines.extend(paragraph(&user_space, ""));
    let paint = |line: &String| style.paint(Tone::Faint, line);
    lines.iter().map(paint).collect()
}

/// Clock and heat.
fn meanwhile(processor: &ProcessorRun, style: Style) -> Vec<String> {
    let watched = &processor.watched;
    let ghz = |hz: u64| format!("{:.2}", hz as f64 / 1e9);
    let mut text = Vec::new();
    for clock in &watched.clocks {
        text.push(format!(
            "Cores {}: {} GHz on average (from {} to {}{}).",
            clock.cores,
            ghz(clock.mean_hz),
            ghz(clock.lowest_hz),
            ghz(clock.highest_hz),
            clock.most_hz.map_or(String::new(), |most| format!(", at most {}", ghz(most)))
        ));
    }
    for clock in watched.slow_clocks() {
        text.push(format!(
            "Cores {} never came near their {} GHz: look at the governor, and at the supply.",
            clock.cores,
            ghz(clock.most_hz.unwrap_or_default())
        ));
    }
    if let Some(heat) = watched.hottest() {
        text.push(format!(
            "{}: {} °C at the start, {} °C at most.",
            heat.zone,
            heat.first_millicelsius / 1000,
            heat.highest_millicelsius / 1000
        ));
    }
    if text.is_empty() {
        text.push("Neither the clock nor the heat of this processor can be read.".into());
    }
    let mut lines = vec![heading("Clock and heat meanwhile", style)];
    lines.extend(text.iter().flat_map(|text| paragraph(text, "  ")));
    lines
}

fn disturbances(run: &Run, style: Style) -> Vec<String> {
    if run.doubts.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![heading("What disturbed it", style)];
    for doubt in &run.doubts {
        let text = format!("{}: {}.", capitalized(&doubt.what()), doubt.remedy());
        lines.extend(paragraph(&text, "  "));
    }
    lines
}

fn left_out(processor: &ProcessorRun, style: Style) -> Vec<String> {
    if processor.left_out.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![heading("Not measured", style)];
    for left in &processor.left_out {
        let text = format!("{}: {}.", left.part.name(), left.what);
        lines.extend(paragraph(&text, "  "));
    }
    lines
}

/// What a table shows of a rate in bytes per second: the rate, and its interval.
pub(crate) fn rate_cells(rate: Option<&Rate>) -> [Cell; 2] {
    let Some(rate) = rate else {
        return [Cell::from("–"), Cell::default()];
    };
    let shown = rate_si(rate.per_second.value);
    [shown.into(), width_cell(&rate.per_second, &rate.doubts)]
}

/// The width of an interval, with a mark if something disturbed the figure.
fn width_cell(figure: &Estimate, doubts: &[Doubt]) -> Cell {
    let width = half_width(figure);
    if doubts.is_empty() { width.into() } else { Cell::toned(&format!("{width} !"), Tone::Bad) }
}

/// What the mark behind a figure means, if any has one.
fn mark(is_disturbed: bool) -> Vec<String> {
    if is_disturbed {
        paragraph(
            "!: other programs took the processor meanwhile, so this is less than it can do.",
            "  ",
        )
    } else {
        Vec::new()
    }
}

/// The figures as CSV: one line each.
pub fn csv(runs: &[&Run]) -> String {
    let mut text = String::from("run,figure,value,low,high,unit\n");
    for (number, run) in runs.iter().enumerate() {
        let Some(processor) = run.processor() else {
            continue;
        };
        for job in processor.jobs() {
            let unit = serde_json::to_value(job.unit).unwrap_or_default();
            let bound = |bound: Option<f64>| bound.map_or(String::new(), |bound| bound.to_string());
            let interval = job.throughput.interval;
            text.push_str(&format!(
                "{},{},{},{},{},{}\n",
                number + 1,
                quoted(&job.title),
                job.throughput.value,
                bound(interval.map(|interval| interval.low)),
                bound(interval.map(|interval| interval.high).filter(|high| high.is_finite())),
                unit.as_str().unwrap_or_default(),
            ));
        }
    }
    text
}

/// The text as markdown, for a forum.
pub fn markdown(run: &Run, processor: &ProcessorRun) -> String {
    let lines = render(run, processor, Style::PLAIN);
    format!("### {}\n\n{}", escape(&headline(processor)), fenced(&lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_the_history_and_one_for_each_figure() {
        let run = rubus_fixtures::processor_run();
        let processor = run.processor().expect("there is one");
        insta::assert_snapshot!(format!("{}\n\n{}", headline(processor), csv(&[&run])));
    }
}
