//! Axes: where a value stands, and which values are written beside the axis.

/// One axis of a drawing, with its title and the values that are written on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is on it, with the unit.
    pub title: String,
    /// The values that have a line, ascending.
    pub ticks: Vec<Tick>,
    scale: Scale,
}

/// A value with a line across the drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Where, from 0 to 1.
    pub at: f64,
    /// The value in words; empty where only the line is drawn.
    pub label: String,
    /// May be left out where there is little room.
    pub spare: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    Linear { low: f64, high: f64 },
    Log { low: f64, high: f64 },
}

impl Scale {
    fn share(self, value: f64) -> f64 {
        let share = match self {
            Scale::Linear { low, high } => (value - low) / (high - low),
            Scale::Log { .. } if value <= 0.0 => 0.0,
            Scale::Log { low, high } => (value / low).ln() / (high / low).ln(),
        };
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }
}

/// The least and the greatest of the values that an axis can show.
fn ends(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let mut ends: Option<(f64, f64)> = None;
    for value in values.into_iter().filter(|v| v.is_finite() && *v > 0.0) {
        let (low, high) = ends.unwrap_or((value, value));
        ends = Some((low.min(value), high.max(value)));
    }
    ends
}

impl Axis {
    /// From zero to a round value that holds `most`, with about five values written beside it.
    pub fn linear(title: &str, most: f64, words: impl Fn(f64) -> String) -> Axis {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let step = round_step(most / 5.5);
        let high = (most / step - 1e-9).ceil() * step;
        Axis::up_to(title, high, step, words)
    }

    /// From zero to exactly `length`, for time: what was measured fills the whole width.
    pub fn time(title: &str, length_s: f64) -> Axis {
        let high = length_s.max(1e-3);
        let step = round_step(high / 7.0);
        Axis::up_to(title, high, step, |s| short_number(s).to_string())
    }

    fn up_to(title: &str, high: f64, step: f64, words: impl Fn(f64) -> String) -> Axis {
        let scale = Scale::Linear { low: 0.0, high };
        let count = (high / step + 1e-9).floor() as u32;
        let ticks = (0..=count).map(|i| {
            let value = f64::from(i) * step;
            Tick { at: scale.share(value), label: words(value), spare: count > 3 && i % 2 == 1 }
        });
        Axis { title: title.into(), ticks: ticks.collect(), scale }
    }

    /// A logarithmic axis that holds all positive values with a little room beside them, with
    /// 1, 2, 5 or only the decades written; none where there is no positive value.
    pub fn log(
        title: &str,
        values: impl IntoIterator<Item = f64>,
        words: impl Fn(f64) -> String,
    ) -> Option<Axis> {
        let (least, greatest) = ends(values)?;
        let (low, high) = (round_down(least * 0.85), round_up(greatest * 1.18));
        let scale = Scale::Log { low, high };
        let decades = (high / low).log10();
        let mut ticks = Vec::new();
        let mut value = low;
        while value <= high * 1.000_1 {
            let leading = leading_digit(value);
            let written = match leading {
                1 => decades <= 5.0 || decade(value) % 2 == 0,
                _ => decades <= 2.0,
            };
            if written || decades <= 4.0 {
                ticks.push(Tick {
                    at: scale.share(value),
                    label: if written { words(value) } else { String::new() },
                    spare: leading != 1,
                });
            }
            value *= if leading == 2 { 2.5 } else { 2.0 };
        }
        Some(Axis { title: title.into(), ticks, scale })
    }

    /// A logarithmic axis of powers of two with half a step of room at both ends; `None` where there
    /// is no positive value. At most nine of them are written.
    pub fn powers_of_two(
        title: &str,
        values: impl IntoIterator<Item = f64>,
        words: impl Fn(f64) -> String,
    ) -> Option<Axis> {
        let (least, greatest) = ends(values)?;
        let (first, last) = (least.log2().floor() as i32, greatest.log2().ceil() as i32);
        let scale = Scale::Log { low: 2_f64.powi(first) * 0.707, high: 2_f64.powi(last) * 1.414 };
        let every = (last - first) / 9 + 1;
        let ticks = (first..=last).map(|power| {
            let value = 2_f64.powi(power);
            let written = (power - first) % every == 0;
            Tick {
                at: scale.share(value),
                label: if written { words(value) } else { String::new() },
                spare: every > 1 && (power - first) / every % 2 == 1,
            }
        });
        Some(Axis { title: title.into(), ticks: ticks.collect(), scale })
    }

    /// Where a value stands, from 0 to 1; values beyond an end stand at it.
    pub fn at(&self, value: f64) -> f64 {
        self.scale.share(value)
    }

    /// Whether a value lies on the axis.
    pub fn holds(&self, value: f64) -> bool {
        let (Scale::Linear { low, high } | Scale::Log { low, high }) = self.scale;
        value >= low && value <= high
    }

    /// The value at the far end.
    pub fn end(&self) -> f64 {
        let (Scale::Linear { high, .. } | Scale::Log { high, .. }) = self.scale;
        high
    }

    /// The value at the near end.
    pub fn start(&self) -> f64 {
        let (Scale::Linear { low, .. } | Scale::Log { low, .. }) = self.scale;
        low
    }
}

/// Pixels that a letter of a label takes, and the space between two labels.
const LETTER_PX: f64 = 6.6;
const BETWEEN_PX: f64 = 8.0;

impl Axis {
    /// The written values for which there is room on `width_px`, those that are not spare first.
    pub fn labels_within(&self, width_px: f64) -> Vec<&Tick> {
        let mut placed: Vec<&Tick> = Vec::new();
        let written = || self.ticks.iter().filter(|tick| !tick.label.is_empty());
        let half_px = |tick: &Tick| tick.label.chars().count() as f64 * LETTER_PX / 2.0;
        for spare in [false, true] {
            for tick in written().filter(|tick| tick.spare == spare) {
                let free = placed.iter().all(|other| {
                    let apart_px = (tick.at - other.at).abs() * width_px;
                    apart_px >= half_px(tick) + half_px(other) + BETWEEN_PX
                });
                if free {
                    placed.push(tick);
                }
            }
        }
        placed.sort_by(|a, b| a.at.total_cmp(&b.at));
        placed
    }
}

/// 1, 2 or 5 times a power of ten that is at least `least`.
fn round_step(least: f64) -> f64 {
    round_up(least)
}

fn decade(value: f64) -> i32 {
    (value.log10() + 1e-9).floor() as i32
}

fn leading_digit(value: f64) -> u32 {
    (value / 10_f64.powi(decade(value)) + 1e-6).floor() as u32
}

fn round_down(value: f64) -> f64 {
    let unit = 10_f64.powi(decade(value));
    match value / unit + 1e-9 {
        v if v >= 5.0 => 5.0 * unit,
        v if v >= 2.0 => 2.0 * unit,
        _ => unit,
    }
}

fn round_up(value: f64) -> f64 {
    let unit = 10_f64.powi(decade(value));
    match value / unit - 1e-9 {
        v if v <= 1.0 => unit,
        v if v <= 2.0 => 2.0 * unit,
        v if v <= 5.0 => 5.0 * unit,
        _ => 10.0 * unit,
    }
}

/// A round value without needless digits: "0", "0.5", "20".
pub fn short_number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() { "0".into() } else { text.into() }
}

/// 10, 200, 5 k, 1 M: a round count, short.
pub fn short_count(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{} G", short_number(v / 1e9)),
        v if v >= 1e6 => format!("{} M", short_number(v / 1e6)),
        v if v >= 1e4 => format!("{} k", short_number(v / 1e3)),
        v => short_number(v),
    }
}

/// 100 ns, 20 µs, 1 ms, 5 s: a round time, short.
pub fn short_duration(ns: f64) -> String {
    match ns {
        v if v >= 1e9 => format!("{} s", short_number(v / 1e9)),
        v if v >= 1e6 => format!("{} ms", short_number(v / 1e6)),
        v if v >= 1e3 => format!("{} µs", short_number(v / 1e3)),
        v => format!("{} ns", short_number(v)),
    }
}

/// 500 B/s, 20 kB/s, 5 MB/s: a round rate, short.
pub fn short_rate(bytes_per_second: f64) -> String {
    match bytes_per_second {
        v if v >= 1e9 => format!("{} GB/s", short_number(v / 1e9)),
        v if v >= 1e6 => format!("{} MB/s", short_number(v / 1e6)),
        v if v >= 1e3 => format!("{} kB/s", short_number(v / 1e3)),
        v => format!("{} B/s", short_number(v)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks
            .iter()
            .map(|tick| tick.label.as_str())
            .filter(|label| !label.is_empty())
            .collect()
    }

    #[test]
    fn a_linear_axis_has_round_values_and_holds_the_greatest() {
        let axis = Axis::linear("", 22.6e6, short_rate);
        let words = ["0 B/s", "5 MB/s", "10 MB/s", "15 MB/s", "20 MB/s", "25 MB/s"];
        assert_eq!(labels(&axis), words);
        assert!((axis.at(12.5e6) - 0.5).abs() < 1e-9);
        assert_eq!(labels(&Axis::linear("", 0.0, short_number)).len(), 6);
        assert_eq!(labels(&Axis::time("", 4.2)), ["0", "1", "2", "3", "4"]);
        assert_eq!(labels(&Axis::time("", 120.0)), ["0", "20", "40", "60", "80", "100", "120"]);
    }

    #[test]
    fn a_logarithmic_axis_writes_what_there_is_room_for() {
        let near = Axis::log("", [120.0, 800.0], short_count).expect("positive values");
        assert_eq!(labels(&near), ["100", "200", "500", "1000"]);
        let far = Axis::log("", [3e4, 4e8], short_duration).expect("positive values");
        assert_eq!(labels(&far), ["100 µs", "1 ms", "10 ms", "100 ms"]);
        assert_eq!(Axis::log("", [0.0, f64::INFINITY, f64::NAN], short_count), None);
        let ends = [near.at(0.0), near.at(-5.0), near.at(f64::INFINITY)];
        assert_eq!(ends, [0.0, 0.0, 1.0]);
    }

    #[test]
    fn labels_in_a_narrow_column_do_not_touch() {
        let axis = Axis::linear("", 27.0e6, short_rate);
        let within = |px: f64| -> Vec<String> {
            let labels = axis.labels_within(px).into_iter();
            labels.map(|tick| tick.label.clone()).collect()
        };
        assert_eq!(within(2000.0).len(), 7);
        assert_eq!(within(240.0), ["0 B/s", "10 MB/s", "20 MB/s", "30 MB/s"]);
        assert_eq!(within(100.0), ["0 B/s", "20 MB/s"]);
    }

    #[test]
    fn depths_are_all_written_and_sizes_in_part() {
        let depths = Axis::powers_of_two("", [1.0, 256.0], short_count).expect("depths");
        assert_eq!(labels(&depths), ["1", "2", "4", "8", "16", "32", "64", "128", "256"]);
        let sizes = Axis::powers_of_two("", [64.0, 16_777_216.0], short_count).expect("sizes");
        assert_eq!(labels(&sizes).len(), 7);
        assert!(sizes.at(64.0) > 0.0 && sizes.at(16_777_216.0) < 1.0);
    }

    #[test]
    fn round_values_are_short() {
        let words = [
            short_number(0.0),
            short_number(0.5),
            short_count(20_000.0),
            short_count(5_000.0),
            short_duration(2e5),
            short_rate(5e5),
        ];
        assert_eq!(words, ["0", "0.5", "20 k", "5000", "200 µs", "500 kB/s"]);
    }
}
