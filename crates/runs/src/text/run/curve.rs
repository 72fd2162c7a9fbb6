//! The course of a long write in one line of text for each job.

use rubus_vocabulary::result::{JobResult, Run, Series};
use rubus_vocabulary::units::{bytes_si, rate_si};

use rubus_draw::style::{Style, Tone};
use rubus_draw::text::clean;
use rubus_draw::words::span;

const CURVE_COLUMNS: usize = 64;
/// The levels of a column, from nothing to all.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A curve for each job that has a series, on one scale.
pub(super) fn lines(run: &Run, style: Style) -> Vec<String> {
    let curves: Vec<(&JobResult, Vec<f64>)> = run
        .results
        .iter()
        .filter_map(|result| Some((result, columns(result.series.as_ref()?))))
        .filter(|(_, columns)| !columns.is_empty())
        .collect();
    let most =
        curves.iter().flat_map(|(_, columns)| columns).fold(0.0_f64, |most, &rate| most.max(rate));
    if most <= 0.0 {
        return Vec::new();
    }
    let mut lines = Vec::new();
    for (result, columns) in curves {
        let bytes =
            result.series.iter().flat_map(|s| &s.bytes).copied().fold(0, u64::saturating_add);
        let about = format!(
            "{}: {} in {}, the highest column is {}",
            clean(&result.job),
            bytes_si(bytes),
            span(result.elapsed_s),
            rate_si(most)
        );
        let bars = columns.iter().map(|rate| level(rate / most));
        lines.push(style.paint(Tone::Faint, &about));
        lines.push(format!("  {}", bars.collect::<String>()));
    }
    lines
}

/// Bytes per second in each of up to [`CURVE_COLUMNS`] columns of equal length.
fn columns(series: &Series) -> Vec<f64> {
    let bins = series.bytes.len();
    let count = bins.min(CURVE_COLUMNS);
    let column = |i: usize| {
        let part = &series.bytes[i * bins / count..(i + 1) * bins / count];
        part.iter().sum::<u64>() as f64 / (part.len() as f64 * series.bin_s)
    };
    (0..count).map(column).collect()
}

/// A rate that is not nothing always shows.
fn level(share: f64) -> char {
    let steps = (LEVELS.len() - 1) as f64;
    let level = (share.clamp(0.0, 1.0) * steps).round() as usize;
    LEVELS[if share > 0.0 { level.max(1) } else { 0 }]
}
