//! Which compression the new root gets: chosen from how this processor compresses and what the link to the disk
//! carries.
//!
//! The formulas fit measurements of btrfs within 12 %: reads run at the smaller of ratio × link and cores ×
//! expanding; writes at the harmonic sum of ratio × link and cores × compressing.

use super::super::{CompressionSpeed, Situation};
use super::options::Compress;
use crate::units::rate_si;

/// The kernel's ratio by that of a sample that was compressed in one piece after the other: it splits ranges,
/// skips what looks hopeless, and leaves the ends of files as they are.
const KERNEL_RATIO: f64 = 0.88;
/// What is less than this better is not better.
const MARGIN: f64 = 1.03;
/// Share of the space that is expected to be taken where nothing was measured.
const UNKNOWN_SHARE: f64 = 1.0;

/// What the link to a disk carries, bytes per second, and how that is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Link {
    pub(super) read: f64,
    pub(super) write: f64,
    pub(super) source: String,
}

/// What a compression is expected to give on a link.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Forecast {
    /// As btrfs names it; absent: none.
    pub(super) method: Option<String>,
    /// Original size by size on the disk.
    pub(super) ratio: f64,
    /// Bytes of the original per second.
    pub(super) read: f64,
    /// Bytes of the original per second.
    pub(super) write: f64,
}

/// The compression that is taken.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chosen {
    /// As btrfs names it; absent: none.
    pub(super) method: Option<String>,
    /// What it gives, where it was measured.
    pub(super) forecast: Option<Forecast>,
    /// Why it is this one, as a sentence.
    pub(super) why: String,
    /// What others would give, one line each.
    pub(super) table: Vec<String>,
}

impl Chosen {
    /// Share of the original size that is expected to be taken on the disk.
    pub(super) fn share(&self) -> f64 {
        let ratio = self.forecast.as_ref().map(|forecast| forecast.ratio);
        ratio.map_or(UNKNOWN_SHARE, |ratio| (1.0 / ratio).min(1.0))
    }
}

/// The compression for a link.
pub(super) fn choose(wish: &Compress, link: &Link, situation: &Situation<'_>) -> Chosen {
    let cores = situation.machine.cpu.cores.get().unwrap_or(1).max(1);
    let measured = &situation.facts.compression;
    let forecasts: Vec<Forecast> = measured
        .iter()
        .filter_map(|speed| forecast(speed, link, f64::from(cores)))
        .collect();
    let mut table: Vec<String> = forecasts.iter().map(|one| line(one, link)).collect();
    let find = |method: &str| {
        let is_it = |one: &&Forecast| one.method.as_deref() == Some(method);
        forecasts.iter().find(is_it).cloned()
    };
    match wish {
        Compress::None => Chosen {
            method: None,
            forecast: None,
            why: "You asked for no compression.".into(),
            table,
        },
        Compress::Method(method) => Chosen {
            forecast: find(method),
            method: Some(method.clone()),
            why: format!("You asked for {method}."),
            table,
        },
        Compress::Auto if forecasts.is_empty() => by_processor(situation),
        Compress::Auto => {
            table.push(format!(
                "(reads: the smaller of ratio × link and cores × expanding; writes: 1/(1/(ratio × link) + 1/(cores × \
                 compressing)); {cores} cores; link: {})",
                link.source
            ));
            measured_best(&forecasts, link, table)
        }
    }
}

/// The best of those that were measured. That none at all would be faster is said; it is not chosen, since
/// compression also saves space and wear, and what a bus carries a disk seldom does.
fn measured_best(forecasts: &[Forecast], link: &Link, table: Vec<String>) -> Chosen {
    let best = best(forecasts);
    let method = best.method.clone().unwrap_or_default();
    let plain = Forecast {
        method: None,
        ratio: 1.0,
        read: link.read,
        write: link.write,
    };
    let numbers = format!(
        "reads {}, writes {}, {:.2} times smaller",
        rate_si(best.read),
        rate_si(best.write),
        best.ratio
    );
    Chosen {
        why: match worth(&best) >= worth(&plain) {
            true => format!("{method} is expected to be the fastest here: {numbers}."),
            false => format!(
                "{method} costs the least speed here ({numbers}); it saves space and wear. compress=none would be faster if \
                 the disk is as fast as what connects it ({}).",
                rate_si(link.read)
            ),
        },
        method: best.method.clone(),
        forecast: Some(best),
        table,
    }
}

/// Where nothing was measured: the fastest level for processors that are slow, else the default.
fn by_processor(situation: &Situation<'_>) -> Chosen {
    let machine = situation.machine;
    if situation.facts.image.is_some() {
        return Chosen {
            method: Some("zstd:3".into()),
            forecast: None,
            why: "zstd:3, as btrfs takes it by itself: this machine's processor says nothing about the board's. For a slow \
                  board (Zero, 2, 3) compress=zstd:1 costs less when writing."
                .into(),
            table: Vec::new(),
        };
    }
    let model = machine.cpu.model.text().unwrap_or("an unknown processor");
    const SLOW: [&str; 6] = [
        "ARM1176",
        "ARMv6",
        "ARMv7",
        "Cortex-A7",
        "Cortex-A53",
        "Cortex-A9",
    ];
    let is_32_bit = machine.system.user_space_bits.get() == Some(32);
    // "Cortex-A7" is also how the names of two fast ones begin.
    let is_fast = ["Cortex-A72", "Cortex-A76"]
        .iter()
        .any(|fast| model.contains(fast));
    let is_slow = is_32_bit || !is_fast && SLOW.iter().any(|slow| model.contains(slow));
    let (method, kind) = match is_slow {
        true => ("zstd:1", "a small one"),
        false => ("zstd:3", "a fast one"),
    };
    Chosen {
        method: Some(method.into()),
        forecast: None,
        why: format!(
            "{method}: nothing was measured, and {model}{} is {kind}.",
            if is_32_bit {
                " with a 32-bit system"
            } else {
                ""
            }
        ),
        table: Vec::new(),
    }
}

fn forecast(speed: &CompressionSpeed, link: &Link, cores: f64) -> Option<Forecast> {
    let ratio = (speed.ratio * KERNEL_RATIO).max(1.0);
    let (compress, expand) = (
        speed.compress_bytes_per_second,
        speed.expand_bytes_per_second,
    );
    let all = [ratio, compress, expand, link.read, link.write];
    if !all.iter().all(|value| value.is_finite() && *value > 0.0) {
        return None;
    }
    Some(Forecast {
        method: Some(speed.method.clone()),
        ratio,
        read: (ratio * link.read).min(cores * expand),
        write: 1.0 / (1.0 / (ratio * link.write) + 1.0 / (cores * compress)),
    })
}

/// How good a forecast is. A root is read far more than it is written, so that reading counts twice.
fn worth(one: &Forecast) -> f64 {
    (one.read.powi(2) * one.write).cbrt()
}

/// The one that is worth most; of nearly equal ones that with the smaller ratio, which is the cheapest.
fn best(forecasts: &[Forecast]) -> Forecast {
    let mut ordered: Vec<&Forecast> = forecasts.iter().collect();
    ordered.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let best = ordered
        .into_iter()
        .reduce(|best, one| match worth(one) > worth(best) * MARGIN {
            true => one,
            false => best,
        });
    best.cloned().unwrap_or(Forecast {
        method: None,
        ratio: 1.0,
        read: 0.0,
        write: 0.0,
    })
}

fn line(one: &Forecast, link: &Link) -> String {
    format!(
        "{}: {:.2} times smaller, reads {} (plain {}), writes {} (plain {})",
        one.method.as_deref().unwrap_or("none"),
        one.ratio,
        rate_si(one.read),
        rate_si(link.read),
        rate_si(one.write),
        rate_si(link.write)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(rate: f64) -> Link {
        Link {
            read: rate,
            write: rate,
            source: "test".into(),
        }
    }

    fn speed(method: &str, compress: f64, expand: f64, ratio: f64) -> CompressionSpeed {
        CompressionSpeed {
            method: method.into(),
            compress_bytes_per_second: compress,
            expand_bytes_per_second: expand,
            ratio,
        }
    }

    /// Single-core speeds and ratios of a test bed with two cores behind a throttled link.
    fn bed() -> [CompressionSpeed; 4] {
        [
            speed("zstd:1", 115e6, 600e6, 3.03),
            speed("zstd:3", 123e6, 600e6, 3.18),
            speed("zstd:9", 23.9e6, 600e6, 3.41),
            speed("zstd:15", 2.6e6, 600e6, 3.66),
        ]
    }

    #[test]
    fn the_formulas_say_what_was_measured_on_the_test_bed() {
        // Uncompressed 19.9 MB/s of writes and 32.2 of reads; measured with compression: writes, reads.
        let link = Link {
            read: 32.2e6,
            write: 19.9e6,
            source: "test".into(),
        };
        let measured = [(46.1, 91.5), (46.7, 92.6), (27.7, 101.2), (5.45, 99.4)];
        for (speed, (write, read)) in bed().iter().zip(measured) {
            let one = forecast(speed, &link, 2.0).expect("whole numbers");
            assert!((one.read / 1e6 / read - 1.0).abs() < 0.1, "{one:?}");
            assert!((one.write / 1e6 / write - 1.0).abs() < 0.15, "{one:?}");
        }
    }

    #[test]
    fn a_slow_link_wants_a_middle_level_and_a_fast_one_the_quickest() {
        let pick = |rate: f64| {
            let link = link(rate);
            let all: Vec<Forecast> = bed()
                .iter()
                .filter_map(|speed| forecast(speed, &link, 2.0))
                .collect();
            best(&all).method
        };
        assert_eq!(pick(30e6).as_deref(), Some("zstd:3"));
        assert_eq!(pick(1e6).as_deref(), Some("zstd:9"));
        // On a very fast link they differ only by the processor's speed.
        assert_eq!(pick(3e9).as_deref(), Some("zstd:1"));
        let fast = link(3e9);
        let one = forecast(&bed()[0], &fast, 2.0).expect("whole numbers");
        let chosen = measured_best(&[one], &fast, Vec::new());
        assert!(
            chosen.why.contains("compress=none would be faster"),
            "{chosen:?}"
        );
    }
}
