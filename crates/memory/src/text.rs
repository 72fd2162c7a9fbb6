//! What memory does: in order, load after load, and when there is more than fits. At most 80 columns.

#![deny(clippy::disallowed_methods)]

use rubus_vocabulary::memory::{Access, Carries, End, Memory, Pressure, Rung, SetUpKind, Work};
use rubus_vocabulary::result::Run;
use rubus_vocabulary::units::{bytes_iec, duration_ns, percent, rate_si};

use rubus_draw::csv::quoted;
use rubus_draw::layout::{board, heading, joined, paragraph};
use rubus_draw::markdown::{escape, fenced};
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::clean;
use rubus_draw::words::{half_width, moment, span};

use crate::cliff::{best, expected, mean_at_limit};

/// The run in a line, for the history.
pub fn headline(memory: &Memory) -> String {
    let carried = memory.pressure.iter().map(|pressure| {
        let times = pressure.carried(Access::Uniform).map_or("nothing known".into(), times);
        format!("{}: carries {times}", name(pressure))
    });
    let carried: Vec<String> = carried.collect();
    if !carried.is_empty() {
        return carried.join("; ");
    }
    let read = memory.bandwidth.iter().rev().find(|row| row.work == Work::Read);
    match read {
        Some(row) => format!("memory reads {}", rate_si(row.bytes_per_second.value)),
        None => "memory: nothing was measured".into(),
    }
}

/// The text, ending in a line feed.
pub fn render(run: &Run, memory: &Memory, style: Style) -> String {
    let mut parts = vec![title(run, style), answer(run, memory, style), bandwidth(memory, style)];
    parts.push(chase(memory, style));
    for pressure in &memory.pressure {
        parts.push(table(pressure, style));
        parts.push(said(pressure));
    }
    parts.push(legend(memory));
    parts.push(advice(memory, style));
    parts.push(disturbances(run, style));
    parts.push(left_out(memory, style));
    joined(parts)
}

fn title(run: &Run, style: Style) -> Vec<String> {
    let first = format!(
        "rubus {} · memory · {} · {}",
        clean(&run.rubus_version),
        moment(&run.started),
        span(run.elapsed_s)
    );
    let mut lines = vec![first];
    lines.extend(paragraph(&board(run), ""));
    lines.iter().map(|line| style.paint(Tone::Faint, line)).collect()
}

/// How a set-up is called.
fn name(pressure: &Pressure) -> String {
    if pressure.set_up.is_temporary {
        pressure.set_up.kind.name().to_string()
    } else {
        format!("own swap ({})", pressure.set_up.kind.name())
    }
}

/// "1.35 times (not 1.40)".
fn times(found: &Carries) -> String {
    match (found.within, found.beyond) {
        (Some(within), Some(beyond)) => format!("{} times (not {})", ratio(within), ratio(beyond)),
        (Some(within), None) => format!("at least {} times", ratio(within)),
        (None, Some(beyond)) => format!("less than {} times", ratio(beyond)),
        (None, None) => "something unknown".into(),
    }
}

fn ratio(times: f64) -> String {
    format!("{times:.2}")
}

/// The answer to the question, one sentence for each set-up.
fn answer(run: &Run, memory: &Memory, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (i, pressure) in memory.pressure.iter().enumerate() {
        let tone = if i == 0 { Tone::Strong } else { Tone::Plain };
        let wrapped = paragraph(&sentence(run, pressure), "");
        lines.extend(wrapped.iter().map(|line| style.paint(tone, line)));
    }
    lines
}

fn sentence(run: &Run, pressure: &Pressure) -> String {
    let way = match pressure.set_up.kind {
        SetUpKind::None => "Without swap".to_string(),
        _ => format!("With {}", pressure.set_up.title),
    };
    let Some(found) = pressure.carried(Access::Uniform) else {
        return format!("{way}: nothing was measured.");
    };
    let until = match &found.because {
        Some(End::OutOfMemory) => "; then there is none left".to_string(),
        Some(End::SwapFull) => {
            format!("; then the swap of {} is full", bytes_iec(pressure.set_up.swap_bytes))
        }
        Some(End::TooSlow) => "; more cannot be filled in a sensible time".to_string(),
        Some(end) => format!(" ({})", end.words()),
        None => format!(
            " before one touch in a hundred takes more than {}",
            duration_ns(pressure.limit_ns)
        ),
    };
    let mut text = format!("{way} this machine carries {} its memory{until}.", times(found));
    if let Some(slowdown) = slowdown(pressure, found) {
        text.push_str(&slowdown);
    }
    if let Some(zipf) = pressure.carried(Access::Zipf).filter(|zipf| zipf.within != found.within) {
        text.push_str(&format!(" Touched as programs do it is {}.", times(zipf)));
    }
    // What was measured on all of the machine needs no prediction for it.
    let predicts = pressure.group.version.is_some();
    if let Some(total) = run.machine.memory.total_bytes.get().filter(|_| predicts) {
        if let Some(bytes) = pressure.machine_carries(Access::Uniform, total) {
            text.push_str(&format!(
                " With {} of memory that would be {}.",
                bytes_iec(total),
                bytes_iec(bytes)
            ));
        }
    }
    text
}

/// " A touch then takes 300 times as long as within memory; speed halves between 1.00 and 1.05 times."
/// Only where it at least doubles: the limit in milliseconds says nothing about that.
fn slowdown(pressure: &Pressure, found: &Carries) -> Option<String> {
    let slowdown = pressure.slowdown(Access::Uniform, found.within?)?;
    let (within, beyond) = pressure.half_speed(Access::Uniform)?;
    let halves = format!("speed halves between {} and {} times", ratio(within), ratio(beyond));
    Some(match slowdown {
        factor if factor < 2.0 => {
            format!(" Up to there touches are nearly as fast as in memory; {halves}.")
        }
        factor => format!(
            " A touch then takes {} times as long as in memory; {halves}.",
            factor_words(factor)
        ),
    })
}

/// "2.4", "330".
fn factor_words(factor: f64) -> String {
    match factor {
        small if small < 9.95 => format!("{small:.1}"),
        large => format!("{large:.0}"),
    }
}

fn bandwidth(memory: &Memory, style: Style) -> Vec<String> {
    use Align::{Left, Right};
    if memory.bandwidth.is_empty() {
        return Vec::new();
    }
    let all = format!("all {}", memory.cores);
    let mut table = Table::new(&[
        ("In order", Left),
        ("one core", Right),
        ("±", Right),
        (&all, Right),
        ("±", Right),
    ]);
    for work in Work::ALL {
        let row = |all_cores: bool| {
            let mut rows = memory.bandwidth.iter();
            rows.find(|row| row.work == work && row.all_cores == all_cores)
        };
        let cells = |all_cores: bool| match row(all_cores) {
            Some(row) => [
                Cell::from(rate_si(row.bytes_per_second.value)),
                Cell::from(half_width(&row.bytes_per_second)),
            ],
            None => [Cell::default(), Cell::default()],
        };
        let mut line = vec![Cell::from(work.name())];
        line.extend(cells(false));
        line.extend(cells(true));
        table.row(line);
    }
    table.lines(style)
}

fn chase(memory: &Memory, style: Style) -> Vec<String> {
    const MAX_BAR: f64 = 40.0;
    let Some(slowest) = memory.chase.iter().map(|point| point.ns.value).max_by(f64::total_cmp)
    else {
        return Vec::new();
    };
    let mut table =
        Table::new(&[("Load after load", Align::Right), ("each", Align::Right), ("", Align::Left)]);
    for point in &memory.chase {
        let bar = "█".repeat((point.ns.value / slowest * MAX_BAR).round().max(1.0) as usize);
        table.row(vec![
            bytes_iec(point.working_set_bytes).into(),
            format!("{:.1} ns", point.ns.value).into(),
            Cell::toned(&bar, Tone::Faint),
        ]);
    }
    table.lines(style)
}

/// A row for each size, in ascending order.
fn table(pressure: &Pressure, style: Style) -> Vec<String> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("× memory", Right),
        ("uniform", Right),
        ("p99", Right),
        ("slow", Right),
        ("zipf", Right),
        ("p99", Right),
        ("slow", Right),
        ("pool", Right),
        ("", Left),
    ]);
    let mut rungs: Vec<&Rung> = pressure.rungs.iter().collect();
    rungs.sort_by(|a, b| a.overcommit.total_cmp(&b.overcommit));
    for rung in rungs {
        let mut cells = vec![Cell::from(ratio(rung.overcommit))];
        for access in Access::ALL {
            let phase = rung.phases.iter().find(|phase| phase.access == access);
            let Some(phase) = phase.filter(|phase| phase.touches > 0) else {
                cells.extend([Cell::from("–"), Cell::from("–"), Cell::from("–")]);
                continue;
            };
            let tone = if phase.is_beyond() { Tone::Bad } else { Tone::Plain };
            let mean = phase.latency_ns.mean.map(|ns| duration_ns(ns as u64));
            // Of few touches the longest is all that can be said.
            let p99 = phase.latency_ns.p99.map(duration_ns);
            let longest = || phase.latency_ns.max.map(|ns| format!("≤{}", duration_ns(ns)));
            cells.push(mean.unwrap_or_else(|| "–".into()).into());
            cells.push(p99.or_else(longest).unwrap_or_else(|| "–".into()).into());
            cells.push(Cell::toned(&percent(phase.slow as f64 / phase.touches as f64), tone));
        }
        cells.push(match rung.pool_bytes {
            0 => Cell::from("–"),
            bytes => bytes_iec(bytes).into(),
        });
        let ended = match &rung.ended_by {
            // Why, is said above; there is no room for it here.
            Some(End::Unsafe { .. }) => "unsafe".into(),
            Some(end) => end.words(),
            None => String::new(),
        };
        cells.push(Cell::toned(&ended, Tone::Faint));
        table.row(cells);
    }
    let mut lines = vec![heading(&capital(&name(pressure)), style)];
    lines.extend(paragraph(&pressure.set_up.title, "  "));
    lines.extend(table.lines(style));
    lines
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// How it was measured, and what limits what it says.
fn said(pressure: &Pressure) -> Vec<String> {
    let mut text = Vec::new();
    if let Some(ratio) = pressure.measured_ratio {
        text.push(format!("The pages compressed {ratio:.2} to 1."));
    }
    if let Some(times) = expected(pressure).filter(|_| pressure.set_up.kind != SetUpKind::Disk) {
        text.push(format!("Arithmetic expects {times:.2} times."));
    }
    match pressure.written_bytes {
        0 => {}
        bytes if pressure.budget_bytes == 0 => {
            text.push(format!("{} went to swap in memory.", bytes_iec(bytes)));
        }
        bytes => text.push(format!(
            "{} of at most {} were written to swap.",
            bytes_iec(bytes),
            bytes_iec(pressure.budget_bytes)
        )),
    }
    let sum = |pick: fn(&rubus_vocabulary::memory::Counters) -> Option<u64>| -> u64 {
        let phases = pressure.rungs.iter().flat_map(|rung| &rung.phases);
        phases.filter_map(|phase| pick(&phase.counters)).sum()
    };
    let refused = sum(|counters| counters.zswap_refused);
    let back = sum(|counters| counters.zswap_written_back);
    if refused + back > 0 {
        text.push(format!(
            "While pages were touched zswap refused {refused} and wrote {back} back."
        ));
    }
    for remark in &pressure.remarks {
        text.push(format!("{}.", capital(remark)));
    }
    if text.is_empty() { Vec::new() } else { paragraph(&text.join(" "), "  ") }
}

fn legend(memory: &Memory) -> Vec<String> {
    let Some(first) = memory.pressure.first() else {
        return Vec::new();
    };
    let memory = bytes_iec(first.group.memory_bytes);
    let held_in = match (first.group.version, first.group.reserve_bytes) {
        (Some(version), _) => {
            format!("Measured in a group of {memory} (version {version}): 1.00 is all of that.")
        }
        (None, reserve) => format!(
            "Measured on the whole machine, without a group: 1.00 is the {memory} that programs could have without \
             swapping, less {} for the others.",
            bytes_iec(reserve.unwrap_or(0))
        ),
    };
    paragraph(
        &format!(
            "{held_in} uniform: every page as often as any other, the mean of a touch; zipf: few often, most seldom, \
             as programs do. Half of the touches write. slow: took more than {}. Pages compress to {} %.",
            duration_ns(first.limit_ns),
            first.content_percent
        ),
        "",
    )
}

/// Which set-up carries most, where there are several.
fn advice(memory: &Memory, style: Style) -> Vec<String> {
    if memory.pressure.len() < 2 {
        return Vec::new();
    }
    let mut lines = vec![heading("What to have", style)];
    for access in Access::ALL {
        let Some(best) = best(&memory.pressure, access) else {
            continue;
        };
        let Some(found) = best.carried(access) else {
            continue;
        };
        let mean = mean_at_limit(best, access).map_or(String::new(), |ns| {
            format!(", a touch then takes {} on average", duration_ns(ns as u64))
        });
        let text = format!("{}: {} carries {}{mean}.", access.name(), name(best), times(found));
        lines.extend(paragraph(&text, "  "));
    }
    lines
}

fn disturbances(run: &Run, style: Style) -> Vec<String> {
    if run.doubts.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![heading("What disturbed it", style)];
    for doubt in &run.doubts {
        lines.extend(paragraph(&format!("{}.", capital(&doubt.what())), "  "));
    }
    lines
}

fn left_out(memory: &Memory, style: Style) -> Vec<String> {
    if memory.left_out.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![heading("Not measured", style)];
    for left in &memory.left_out {
        lines.extend(paragraph(&format!("{}: {}.", left.part.name(), left.what), "  "));
    }
    lines
}

/// The figures as CSV: one line each.
pub fn csv(runs: &[&Run]) -> String {
    let mut text = String::from("run,figure,value,unit,p50_ns,p99_ns\n");
    for (number, run) in runs.iter().enumerate() {
        let Some(memory) = run.memory() else { continue };
        for job in memory.jobs() {
            let unit = serde_json::to_value(job.unit).unwrap_or_default();
            let ns = |figure: Option<rubus_vocabulary::figure::Figure>| {
                figure.map_or(String::new(), |figure| figure.value.to_string())
            };
            text.push_str(&format!(
                "{},{},{},{},{},{}\n",
                number + 1,
                quoted(&job.title),
                job.throughput.value,
                unit.as_str().unwrap_or_default(),
                ns(job.p50_ns),
                ns(job.p99_ns)
            ));
        }
    }
    text
}

/// The text as markdown, for a forum.
pub fn markdown(run: &Run, memory: &Memory) -> String {
    let lines = render(run, memory, Style::PLAIN);
    format!("### {}\n\n{}", escape(&headline(memory)), fenced(&lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_the_history_and_one_for_each_figure() {
        let run = rubus_fixtures::memory_run();
        let memory = run.memory().expect("there is one");
        insta::assert_snapshot!(format!("{}\n\n{}", headline(memory), csv(&[&run])));
    }
}
