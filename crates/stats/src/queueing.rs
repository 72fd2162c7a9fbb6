//! How long an operation takes in a path where others are under way: the law that the pipe model, the advice on compression and the
//! sweeps of queue depths share.

pub mod mean_value;

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use mean_value::Station;

/// How far a path stays below its bounds where they meet.
///
/// With N operations in flight a lone operation's time L and the largest demand M bound the response time from both sides:
///
/// ```text
/// max(L, N M)  ≤  R(N)  ≤  L + (N - 1) M
/// ```
///
/// the asymptotic bound (Denning and Buzen 1978) and the bound of a balanced network (Zahorjan et al. 1982).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Bend {
    /// Nothing was measured of how the curve goes round the knee: the stations of the path say it, by [`mean_value`] analysis. It takes
    /// their work to be spread by chance, so the interval goes from work that takes the same time every time (the asymptotic bound) to
    /// that of balanced jobs.
    Stations,
    /// 1/p of a curve between both bounds:
    ///
    /// ```text
    /// R(N) = (L^p + (N^p - 1) M^p)^(1/p),    1 ≤ p ≤ ∞
    /// ```
    ///
    /// which gives L at depth 1 whatever p is, and is what the sweeps of queue depths are fitted to. A path of even service times follows the
    /// left bound (0), one whose work piles up by chance comes near the right one (1).
    ///
    /// Where it was measured, or is known from how the path works, this is better than [`Bend::Stations`]: mean value analysis cannot know
    /// that a link's rate limit or a delay takes the same time every time, and puts a queue before it that is not there. On such paths it
    /// is up to a quarter too slow at the knee (`MODEL.md`, network disks).
    Known(Estimate),
}

/// Which share of the waiting of mean value analysis there is: 0 as at the asymptotic bound, 1 all of it, 2 as with balanced jobs.
const CHANCE: Estimate = Estimate { value: 1.0, low: 0.0, high: 2.0 };

/// With more in flight than this, chance evens out: compared with the square root of this number, the bend is
/// negligible.
const MANY: u32 = 1024;

impl Bend {
    /// As a sweep of queue depths found it, 0 to 1.
    pub fn measured(softness: f64) -> Bend {
        let softness = softness.clamp(0.0, 1.0);
        Bend::Known(Estimate::new(softness, (softness - 0.1).max(0.0), (softness + 0.1).min(1.0)))
    }

    /// R(N): seconds of an operation that takes `alone_s` by itself, with `depth` of them in flight. `pick` chooses the number that stands
    /// for an estimate.
    ///
    /// What a lone operation spends besides its work at the `stations` is a delay. Work at some that goes on while it is at others
    /// (the bus beside a disk, the members of a stripe) makes the sum of all larger than `alone_s`; then the stations say how long it
    /// waits, and nothing of how long it is served.
    pub fn response_s(
        &self,
        alone_s: f64,
        stations: &[Station],
        depth: u32,
        pick: &mut dyn FnMut(&Estimate) -> f64,
    ) -> f64 {
        let max_s = stations.iter().map(Station::min_s).fold(0.0, f64::max);
        let alone_s = alone_s.max(max_s);
        let depth = depth.max(1);
        match self {
            Bend::Known(softness) => bent(alone_s, max_s, f64::from(depth), pick(softness)),
            Bend::Stations => by_stations(alone_s, stations, depth, pick(&CHANCE)),
        }
    }
}

/// R(N) as [`Bend::Known`] has it.
fn bent(alone_s: f64, max_s: f64, depth: f64, softness: f64) -> f64 {
    // Sharper than this no number of ours could tell from the lines, and the powers would overflow.
    if softness < 0.02 {
        return alone_s.max(depth * max_s);
    }
    let power = 1.0 / softness.min(1.0);
    let (queue, one) = (depth * max_s / alone_s, max_s / alone_s);
    alone_s * (1.0 + queue.powf(power) - one.powf(power)).powf(softness.min(1.0))
}

/// R(N) as [`Bend::Stations`] has it.
fn by_stations(alone_s: f64, stations: &[Station], depth: u32, chance: f64) -> f64 {
    let served_s: f64 = stations.iter().map(|station| station.seconds).sum();
    let delay_s = (alone_s - served_s).max(0.0);
    let rates =
        if depth <= MANY { mean_value::rates(delay_s, stations, depth) } else { Vec::new() };
    // What the sum of all is too long for a lone operation.
    let beside_s = (delay_s + served_s - alone_s).max(0.0);
    let bounds = mean_value::bounds(delay_s, stations, depth);
    let max_s = stations.iter().map(Station::min_s).fold(0.0, f64::max);
    let min_s = alone_s.max(f64::from(depth) * max_s);
    let above = |seconds: f64| (seconds - beside_s).max(min_s);
    let Some(rate) = rates.last() else {
        return min_s;
    };
    let expected_s = above(f64::from(depth) / rate);
    if chance <= 1.0 {
        min_s + chance.max(0.0) * (expected_s - min_s)
    } else {
        expected_s + (chance - 1.0) * (above(bounds.max_s) - expected_s).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response_s(bend: Bend, alone_s: f64, stations: &[Station], depth: u32) -> Estimate {
        crate::propagation::carry(|pick| bend.response_s(alone_s, stations, depth, pick))
    }

    #[test]
    fn without_a_measured_bend_the_stations_say_it() {
        // Two equal stations of a millisecond: R(N) = D (N + 1).
        let stations = [Station::one(0.001); 2];
        let found = response_s(Bend::Stations, 0.002, &stations, 7);
        assert!((found.value - 0.008).abs() < 1e-12, "{found:?}");
        // Even work at best, balanced jobs at worst; here the jobs are balanced.
        assert!((found.low - 0.007).abs() < 1e-12, "{found:?}");
        assert!((found.high - 0.008).abs() < 1e-12, "{found:?}");
        // A lone operation does not queue.
        let alone = response_s(Bend::Stations, 0.005, &stations, 1);
        assert_eq!(alone, Estimate::exact(0.005));
    }

    #[test]
    fn balanced_jobs_are_the_slow_end() {
        let stations = [Station::one(0.003), Station::one(0.001)];
        let found = response_s(Bend::Stations, 0.004, &stations, 4);
        assert!(found.low < found.value && found.value < found.high);
        assert!((found.low - 0.012).abs() < 1e-12, "{found:?}");
        assert!((found.high - (0.004 + 3.0 * 0.003)).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn work_that_goes_on_beside_other_work_makes_nothing_slower_alone() {
        // A disk of 3 ms, and a bus that is busy for 2 ms of them.
        let stations = [Station::one(0.003), Station::one(0.002)];
        let alone = response_s(Bend::Stations, 0.003, &stations, 1);
        assert_eq!(alone, Estimate::exact(0.003));
        let deep = response_s(Bend::Stations, 0.003, &stations, 100);
        assert!((deep.value / 0.3 - 1.0).abs() < 1e-9, "{deep:?}");
    }

    #[test]
    fn a_very_deep_queue_follows_the_lines() {
        let stations = [Station::one(0.003)];
        let found = response_s(Bend::Stations, 0.004, &stations, 1_000_000);
        assert!((found.value - 3000.0).abs() < 1e-9, "{found:?}");
        // What is not known to end does not end.
        let value = &mut |estimate: &Estimate| estimate.value;
        let beyond = Bend::Stations.response_s(f64::INFINITY, &stations, 4, value);
        assert_eq!(beyond, f64::INFINITY);
    }

    #[test]
    fn a_known_bend_lies_between_the_bounds() {
        let stations = [Station::one(0.001)];
        let at = |softness: f64| {
            let bend = Bend::Known(Estimate::exact(softness));
            response_s(bend, 0.004, &stations, 4).value
        };
        assert!((at(0.0) - 0.004).abs() < 1e-12);
        assert!((at(1.0) - 0.007).abs() < 1e-12);
        assert!(at(0.1) < at(0.4) && at(0.4) < at(0.9));
    }
}
