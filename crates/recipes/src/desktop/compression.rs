//! Which compression the new root gets: chosen from how this processor compresses and what the link to the disk
//! carries. What comes through is computed where advice computes it too ([`rubus_processor::compression`]).

use super::super::PlanInput;
use super::super::moving::is_slow_processor;
use super::filesystem::RootFilesystem;
use super::options::{Choice, Compress};
use rubus_machine::purpose::Purpose;
use rubus_processor::compression::{self, Method, Mix, Way, cheapest_first};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::units::rate_si;

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

/// The compression for a link, on the filesystem that was chosen.
pub(super) fn choose(choice: &Choice, link: &Link, situation: &PlanInput<'_>) -> Chosen {
    match choice.filesystem {
        RootFilesystem::Btrfs => choose_for_btrfs(&choice.compress, link, situation),
        other => {
            let with = choose_for_btrfs(&Compress::Auto, link, situation);
            without(other.name(), &with, link)
        }
    }
}

/// None, and what a btrfs would have given.
fn without(name: &str, with: &Chosen, link: &Link) -> Chosen {
    let gives = match (&with.method, &with.forecast) {
        (Some(method), Some(there)) => format!(
            " A btrfs with {method} would read {} instead of {} and write {} instead of {}, and its files \
             would take {:.0} % of the space.",
            rate_si(there.read),
            rate_si(link.read),
            rate_si(there.write),
            rate_si(link.write),
            100.0 / there.ratio
        ),
        _ => {
            " What a btrfs would save was not measured here: `rubus bench cpu` measures it.".into()
        }
    };
    Chosen {
        method: None,
        forecast: None,
        why: format!("{name} has none here.{gives}"),
        table: Vec::new(),
    }
}

fn choose_for_btrfs(wish: &Compress, link: &Link, situation: &PlanInput<'_>) -> Chosen {
    let cores = situation.machine.cpu.cores.get().unwrap_or(1).max(1);
    let measured = situation.facts.compression.iter();
    let methods = measured.filter_map(|speed| Method::measured(speed, cores));
    let methods = cheapest_first(methods.collect());
    let mut table: Vec<String> =
        methods.iter().map(|method| line(&forecast(method, link), link)).collect();
    let find = |name: &str| {
        let method = methods.iter().find(|method| method.name == name)?;
        Some(forecast(method, link))
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
        Compress::Auto if methods.is_empty() => by_processor(situation),
        Compress::Auto => {
            table.push(format!(
                "(processor and disk side by side: the smaller of ratio × link and cores × one core, a little less where they are \
                 alike; {cores} cores; link: {})",
                link.source
            ));
            measured_best(&methods, link, table)
        }
    }
}

/// The best of those that were measured for what a desktop reads and writes. That none at all would be faster is said; it is not
/// chosen, since compression also saves space and wear, and what a bus carries a disk seldom does.
fn measured_best(methods: &[Method], link: &Link, table: Vec<String>) -> Chosen {
    let mix = Mix::of(Purpose::Desktop);
    let carried = link.carried();
    let best = mix.best_method(methods, &carried);
    let is_faster = mix.seconds(best, &carried) <= mix.seconds(None, &carried);
    let best = best.map_or(forecast_plain(link), |method| forecast(method, link));
    let method = best.method.clone().unwrap_or_default();
    let numbers = format!(
        "reads {}, writes {}, {:.2} times smaller",
        rate_si(best.read),
        rate_si(best.write),
        best.ratio
    );
    Chosen {
        why: if is_faster {
            format!("{method} is expected to be the fastest here: {numbers}.")
        } else {
            format!(
                "{method} costs the least speed here ({numbers}); it saves space and wear. compress=none would be faster if \
                 the disk is as fast as what connects it ({}).",
                rate_si(link.read)
            )
        },
        method: best.method.clone(),
        forecast: Some(best),
        table,
    }
}

/// Where nothing was measured: the fastest level for processors that are slow, else the default.
fn by_processor(situation: &PlanInput<'_>) -> Chosen {
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
    let is_32_bit = machine.system.user_space_bits.get() == Some(32);
    let is_slow = is_slow_processor(machine);
    let (method, kind) = if is_slow { ("zstd:1", "a small one") } else { ("zstd:3", "a fast one") };
    Chosen {
        method: Some(method.into()),
        forecast: None,
        why: format!(
            "{method}: nothing was measured, and {model}{} is {kind}.",
            if is_32_bit { " with a 32-bit system" } else { "" }
        ),
        table: Vec::new(),
    }
}

fn forecast(method: &Method, link: &Link) -> Forecast {
    let through = |rate: f64, way| method.through(Estimate::exact(rate), way).value;
    Forecast {
        method: Some(method.name.clone()),
        ratio: method.ratio.value,
        read: through(link.read, Way::Read),
        write: through(link.write, Way::Write),
    }
}

fn forecast_plain(link: &Link) -> Forecast {
    Forecast { method: None, ratio: 1.0, read: link.read, write: link.write }
}

impl Link {
    fn carried(&self) -> compression::Link {
        compression::Link { read: Estimate::exact(self.read), write: Estimate::exact(self.write) }
    }
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
    use rubus_vocabulary::compression_speed::CompressionSpeed;

    fn link(rate: f64) -> Link {
        Link { read: rate, write: rate, source: "test".into() }
    }

    /// Single-core speeds and ratios of a test bed with two cores.
    fn bed() -> Vec<Method> {
        let speed = |(method, compress, expand, ratio): (&str, f64, f64, f64)| CompressionSpeed {
            method: method.into(),
            compress_bytes_per_second: compress,
            expand_bytes_per_second: expand,
            ratio,
        };
        let speeds = [
            ("zstd:3", 123e6, 600e6, 3.18),
            ("zstd:1", 130e6, 600e6, 3.03),
            ("zstd:9", 23.9e6, 600e6, 3.41),
        ];
        let methods = speeds.into_iter().filter_map(|one| Method::measured(&speed(one), 2));
        cheapest_first(methods.collect())
    }

    #[test]
    fn a_slow_link_wants_a_higher_level_and_a_fast_one_the_quickest() {
        let pick = |rate: f64| measured_best(&bed(), &link(rate), Vec::new()).method;
        assert_eq!(pick(1e6).as_deref(), Some("zstd:9"));
        assert_eq!(pick(3e9).as_deref(), Some("zstd:1"));
        let chosen = measured_best(&bed()[..1], &link(3e9), Vec::new());
        assert!(chosen.why.contains("compress=none would be faster"), "{chosen:?}");
    }
}
