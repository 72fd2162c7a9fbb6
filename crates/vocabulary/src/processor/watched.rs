//! What clock, heat and supply did while a processor was measured, and which doubts that raises.

use serde::{Deserialize, Serialize};

use crate::doubt::Doubt;
use crate::heat::Heat;
use crate::machine::Throttling;

/// A clock below this share of its highest was held down, or a higher one was never requested.
const SLOW_CLOCK: f64 = 0.9;

/// What was seen, several times a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Watched {
    /// How often it was looked.
    pub looks: u32,
    /// Clocks, one entry per group of cores that share one; empty where the kernel does not tell.
    pub clocks: Vec<ClockSeen>,
    /// Temperatures; empty where nothing tells.
    pub temperatures: Vec<HeatSeen>,
}

/// One clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockSeen {
    /// Cores that have it ("0-3").
    pub cores: String,
    /// The lowest that was seen.
    pub lowest_hz: u64,
    /// The mean of all looks.
    pub mean_hz: u64,
    /// The highest that was seen.
    pub highest_hz: u64,
    /// The most that it can be.
    pub most_hz: Option<u64>,
}

/// One temperature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeatSeen {
    /// "cpu-thermal".
    pub zone: String,
    /// At the first look, in thousandths of a degree Celsius.
    pub first_millicelsius: i64,
    /// The highest.
    pub highest_millicelsius: i64,
}

impl Watched {
    /// What the looks say, in their order.
    pub fn of(looks: &[Heat]) -> Watched {
        let Some(first) = looks.first() else {
            return Watched::default();
        };
        let clock = |known: &crate::heat::Clock| {
            let clocks = looks.iter().flat_map(|look| &look.clocks);
            let seen = clocks.filter(|clock| clock.cores == known.cores);
            let seen: Vec<u64> = seen.map(|clock| clock.hz).collect();
            ClockSeen {
                cores: known.cores.clone(),
                lowest_hz: seen.iter().copied().min().unwrap_or_default(),
                mean_hz: seen.iter().sum::<u64>() / seen.len().max(1) as u64,
                highest_hz: seen.iter().copied().max().unwrap_or_default(),
                most_hz: known.max_hz,
            }
        };
        let zone = |known: &crate::heat::Zone| {
            let zones = looks.iter().flat_map(|look| &look.zones);
            let seen = zones.filter(|zone| zone.name == known.name);
            HeatSeen {
                zone: known.name.clone(),
                first_millicelsius: known.millicelsius,
                highest_millicelsius: seen
                    .map(|zone| zone.millicelsius)
                    .max()
                    .unwrap_or(known.millicelsius),
            }
        };
        Watched {
            looks: looks.len() as u32,
            clocks: first.clocks.iter().map(clock).collect(),
            temperatures: first.zones.iter().map(zone).collect(),
        }
    }

    /// The hottest zone.
    pub fn hottest(&self) -> Option<&HeatSeen> {
        let zones = self.temperatures.iter();
        zones.max_by_key(|zone| zone.highest_millicelsius)
    }

    /// Clocks that stayed clearly below their highest: the governor did not raise them, or something held them down.
    pub fn slow_clocks(&self) -> impl Iterator<Item = &ClockSeen> {
        self.clocks.iter().filter(|clock| {
            let most = clock.most_hz.unwrap_or(0) as f64;
            (clock.highest_hz as f64) < most * SLOW_CLOCK
        })
    }
}

/// Doubts from throttling and supply between the first look and the last.
pub fn doubts(looks: &[Heat]) -> Vec<Doubt> {
    let words = looks.iter().filter_map(|look| look.throttled);
    let words: Vec<Throttling> = words.map(Throttling::decode).collect();
    let happened = |now: fn(&Throttling) -> bool, seen: fn(&Throttling) -> bool| {
        let is_new =
            words.first().is_some_and(|word| !seen(word)) && words.last().is_some_and(seen);
        is_new || words.iter().any(now)
    };
    let alarm: Vec<bool> = looks.iter().filter_map(|look| look.undervoltage).collect();
    let is_raised = alarm.first() == Some(&false) && alarm.last() == Some(&true);
    let mut doubts = Vec::new();
    if is_raised || happened(|word| word.undervoltage_now, |word| word.undervoltage_seen) {
        doubts.push(Doubt::Undervoltage);
    }
    let mut what = Vec::new();
    if happened(|word| word.throttled_now, |word| word.throttled_seen) {
        what.push("throttled".to_string());
    }
    if happened(|word| word.capped_now, |word| word.capped_seen) {
        what.push("frequency capped".to_string());
    }
    if happened(|word| word.soft_limit_now, |word| word.soft_limit_seen) {
        what.push("soft temperature limit".to_string());
    }
    let watched = Watched::of(looks);
    if let (false, Some(hottest)) = (what.is_empty(), watched.hottest()) {
        what.push(format!("{} °C", hottest.highest_millicelsius / 1000));
    }
    if !what.is_empty() {
        doubts.push(Doubt::Throttled { what: what.join(", ") });
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::{Clock, Zone};

    fn look(mhz: u64, millicelsius: i64, throttled: u32) -> Heat {
        Heat {
            zones: vec![Zone { name: "cpu-thermal".into(), millicelsius }],
            clocks: vec![Clock {
                cores: "0-3".into(),
                hz: mhz * 1_000_000,
                max_hz: Some(1_400_000_000),
            }],
            throttled: Some(throttled),
            undervoltage: None,
        }
    }

    #[test]
    fn what_was_seen_is_summed_up() {
        let watched = Watched::of(&[look(600, 48_000, 0), look(1200, 61_000, 0)]);
        assert_eq!(watched.looks, 2);
        let clock = &watched.clocks[0];
        let hz = (clock.lowest_hz, clock.mean_hz, clock.highest_hz);
        assert_eq!(hz, (600_000_000, 900_000_000, 1_200_000_000));
        assert_eq!(watched.slow_clocks().count(), 1);
        let heat = watched.hottest().expect("a zone");
        let heat = (heat.first_millicelsius, heat.highest_millicelsius);
        assert_eq!(heat, (48_000, 61_000));
        let fast = Watched::of(&[look(600, 0, 0), look(1400, 0, 0)]);
        assert_eq!(fast.slow_clocks().count(), 0);
        assert_eq!(Watched::of(&[]), Watched::default());
    }

    #[test]
    fn only_what_happened_meanwhile_is_a_doubt() {
        assert_eq!(doubts(&[]), []);
        // It was so before, but not now.
        let before = look(1400, 50_000, 0x5_0000);
        assert_eq!(doubts(&[before.clone(), before]), []);
        let capped =
            doubts(&[look(1400, 50_000, 0), look(600, 81_500, 0x2), look(1400, 79_000, 0x2_0000)]);
        let what = "frequency capped, 81 °C".into();
        assert_eq!(capped, [Doubt::Throttled { what }]);
        let between = doubts(&[look(1400, 0, 0), look(1400, 0, 0x1_0000)]);
        assert_eq!(between, [Doubt::Undervoltage]);
    }
}
