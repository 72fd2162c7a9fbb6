//! The knee of a queue-depth sweep, from a closed-queue model.
//!
//! With N operations in flight the throughput is bounded by X(N) ≤ min(N / S, C): S is the time of a
//! lone operation, C what the narrowest stage lets through; the two lines meet at N* = S C (Denning
//! and Buzen, ACM Computing Surveys 10(3), 1978; Lazowska et al., *Quantitative System Performance*,
//! 1984, chapter 5). How far a device stays below the lines around N* depends on how evenly its work
//! is spread. The response time is taken to be
//!
//! ```text
//! R(N) = (S^p + (N^p - 1) / C^p)^(1/p),    X(N) = N / R(N)
//! ```
//!
//! which is exact for both ends of what there is: K servers of a fixed delay that share one queue
//! follow the lines (p → ∞), a balanced network of K stations, each with a queue of its own, has
//! p = 1 (mean value analysis: R(N) = D (N + K - 1); Reiser and Lavenberg, JACM 27, 1980). One station
//! behind a delay lies between; its own curve is tried too. p is fitted with S and N*.

use crate::estimate::Estimate;
use crate::fit::{Family, Fitted, Point, interval};
use crate::queueing::mean_value::{self, Station};

/// Minimum number of depths for a fit.
const MIN_DEPTHS: usize = 3;
/// The knee is searched for up to this multiple of the deepest queue.
const BEYOND: f64 = 8.0;
/// Steps of the knee's depth, as a share.
const STEP: f64 = 0.04;
/// The bends that are tried, from the sharp lines to the balanced network.
const BENDS: [Bend; 11] = [
    Bend::Softness(0.0),
    Bend::Softness(0.1),
    Bend::Softness(0.2),
    Bend::Softness(0.3),
    Bend::Station,
    Bend::Softness(0.5),
    Bend::Softness(0.6),
    Bend::Softness(0.7),
    Bend::Softness(0.8),
    Bend::Softness(0.9),
    Bend::Softness(1.0),
];
/// A best gain of surely less than this is none: one operation at a time.
const NO_GAIN: f64 = 1.25;

/// How the curve goes round the knee.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bend {
    /// 1/p of the formula above.
    Softness(f64),
    /// One station behind a delay, by mean value analysis.
    Station,
}

/// A depth with what was measured at it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Depth {
    /// Operations in flight, at least 1.
    pub depth: u32,
    /// Operations per second.
    pub iops: Estimate,
}

/// What the model says of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Seconds of a lone operation.
    pub service_s: Estimate,
    /// Operations per second that are never exceeded.
    pub ceiling_iops: Estimate,
    /// N*, the queue depth of the knee.
    pub depth: Estimate,
    /// What the deepest queue gives over depth 1.
    pub gain: Estimate,
    /// The knee lies surely within the sweep.
    pub is_reached: bool,
    /// How softly the curve bends, 0 to 1: 1/p; absent: as one station behind a delay.
    pub softness: Option<f64>,
    /// Depth gives nothing.
    pub is_one_at_a_time: bool,
    /// Largest distance of a point from the curve, as a share of it.
    pub misfit: f64,
}

/// Fits the model to a sweep with ascending depths. Fewer than three usable depths say nothing.
///
/// Depths beyond the best at which the throughput has surely fallen again are left out: there the
/// device, or the processor, is busy with the queue itself, which the model does not know.
pub fn fit(sweep: &[Depth]) -> Option<Fit> {
    let usable: Vec<(f64, Point)> = without_decline(sweep)
        .iter()
        .filter(|depth| depth.depth >= 1)
        .filter_map(|depth| Some((f64::from(depth.depth), Point::of(&depth.iops)?)))
        .collect();
    if usable.len() < MIN_DEPTHS {
        return None;
    }
    let (depths, points): (Vec<f64>, Vec<Point>) = usable.into_iter().unzip();
    let deepest = depths.iter().copied().fold(1.0, f64::max);
    if deepest <= 1.0 {
        return None;
    }
    let family = family(&depths, deepest);
    let best = family.fit(&points);
    let others = family.resampled(&points, &best, 0x6b6e_6565);
    let figures = |of: fn(&Fitted, f64) -> f64| {
        let values = others.iter().map(|fitted| of(fitted, deepest)).collect();
        interval(of(&best, deepest), values)
    };
    let mut depth = figures(|fitted, _| knee(fitted));
    let mut ceiling_iops = figures(|fitted, _| knee(fitted) * fitted.ln_factor.exp());
    let gain = figures(|fitted, deepest| shape(deepest, knee(fitted), bend(fitted)).exp());
    // What reaches the end of what was tried has no end that is known.
    if depth.high >= deepest * BEYOND * (1.0 - STEP) {
        depth.high = f64::INFINITY;
        ceiling_iops.high = f64::INFINITY;
    }
    let misfit = depths.iter().zip(&points).map(|(&depth, point)| {
        let curve = shape(depth, knee(&best), bend(&best)) + best.ln_factor;
        ((point.ln - curve).exp() - 1.0).abs()
    });
    Some(Fit {
        service_s: figures(|fitted, _| (-fitted.ln_factor).exp()),
        ceiling_iops,
        depth,
        gain,
        is_reached: depth.high <= deepest,
        softness: match bend(&best) {
            Bend::Softness(softness) => Some(softness),
            Bend::Station => None,
        },
        is_one_at_a_time: gain.high < NO_GAIN,
        misfit: misfit.fold(0.0, f64::max),
    })
}

/// Operations per second that a fitted curve gives with `depth` in flight, at least 1: `service_s`, `knee` and `softness` are those
/// of its [`Fit`].
pub fn curve_iops(service_s: f64, knee: f64, softness: Option<f64>, depth: u32) -> f64 {
    let bend = softness.map_or(Bend::Station, Bend::Softness);
    shape(f64::from(depth.max(1)), knee.max(1.0), bend).exp() / service_s
}

/// The sweep up to the best depth, and beyond it what is not surely worse.
fn without_decline(sweep: &[Depth]) -> Vec<Depth> {
    let best =
        sweep.iter().enumerate().max_by(|(_, a), (_, b)| a.iops.value.total_cmp(&b.iops.value));
    let Some((place, best)) = best else {
        return Vec::new();
    };
    let after = &sweep[place + 1..];
    let kept = after.iter().take_while(|depth| depth.iops.high >= best.iops.low);
    sweep[..=place].iter().chain(kept).copied().collect()
}

/// Every shape that is tried.
fn family(depths: &[f64], deepest: f64) -> Family {
    let along = ((deepest * BEYOND).ln() / STEP) as usize + 1;
    let mut shapes = Vec::with_capacity(along * BENDS.len());
    for bend in BENDS {
        for place in 0..along {
            let knee = (place as f64 * STEP).exp();
            let row = depths.iter().map(|&depth| shape(depth, knee, bend));
            shapes.push(row.collect());
        }
    }
    Family { shapes, along }
}

/// Logarithm of X(N) S: how many lone operations N in flight are worth.
fn shape(depth: f64, knee: f64, bend: Bend) -> f64 {
    let softness = match bend {
        Bend::Softness(softness) => softness,
        Bend::Station => return station(depth, knee).ln(),
    };
    if softness <= 0.0 {
        return depth.min(knee).ln();
    }
    let p = 1.0 / softness;
    let waiting = (p * (depth / knee).ln()).exp() - (-p * knee.ln()).exp();
    depth.ln() - softness * waiting.ln_1p()
}

/// X(N) S of one station behind a delay, the two together 1, by mean value analysis.
fn station(depth: f64, knee: f64) -> f64 {
    let busy = 1.0 / knee;
    let rates = mean_value::rates((1.0 - busy).max(0.0), &[Station::one(busy)], depth as u32);
    rates.last().copied().unwrap_or(0.0)
}

fn knee(fitted: &Fitted) -> f64 {
    (fitted.place * STEP).exp().max(1.0)
}

fn bend(fitted: &Fitted) -> Bend {
    BENDS[fitted.row.min(BENDS.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

    fn sweep(depths: &[u32], half_width: f64, iops: impl Fn(f64) -> f64) -> Vec<Depth> {
        let depth = |&depth: &u32| {
            let value = iops(f64::from(depth));
            let iops = Estimate::new(value, value * (1.0 - half_width), value * (1.0 + half_width));
            Depth { depth, iops }
        };
        depths.iter().map(depth).collect()
    }

    #[test]
    fn servers_with_a_fixed_delay_follow_the_lines() {
        let fit = fit(&sweep(&DEPTHS, 0.02, |n| n.min(10.0) * 500.0)).unwrap();
        assert!((fit.depth.value / 10.0 - 1.0).abs() < 0.02, "{fit:?}");
        assert!((fit.ceiling_iops.value / 5000.0 - 1.0).abs() < 0.01);
        assert!((fit.service_s.value / 0.002 - 1.0).abs() < 0.01);
        assert!(fit.is_reached && !fit.is_one_at_a_time && fit.misfit < 0.02);
    }

    #[test]
    fn a_balanced_network_has_the_knee_of_its_stations() {
        // 8 banks of 2 ms, addressed at random.
        let fit = fit(&sweep(&DEPTHS, 0.02, |n| n / (0.002 / 8.0 * (n + 7.0)))).unwrap();
        assert!((fit.depth.value / 8.0 - 1.0).abs() < 0.03, "{fit:?}");
        assert!((fit.ceiling_iops.value / 4000.0 - 1.0).abs() < 0.03);
    }

    #[test]
    fn a_bridge_that_takes_one_at_a_time_is_called_so() {
        let fit = fit(&sweep(&DEPTHS, 0.08, |_| 2400.0)).unwrap();
        assert!(fit.is_one_at_a_time && fit.is_reached, "{fit:?}");
        assert!(fit.depth.value < 1.1 && (fit.gain.value - 1.0).abs() < 0.05);
        // A gain of a half is a gain.
        let half = sweep(&DEPTHS, 0.08, |n| if n > 1.0 { 3600.0 } else { 2400.0 });
        assert!(!super::fit(&half).unwrap().is_one_at_a_time);
    }

    #[test]
    fn a_ceiling_that_was_not_seen_is_only_a_lower_bound() {
        let fit = fit(&sweep(&DEPTHS, 0.05, |n| n * 100.0)).unwrap();
        assert!(!fit.is_reached, "{fit:?}");
        assert!(fit.depth.high.is_infinite() && fit.depth.low > 150.0);
        assert!(fit.ceiling_iops.low > 15_000.0);
    }

    #[test]
    fn a_decline_at_high_depths_does_not_move_the_knee() {
        let falling = |n: f64| n.min(10.0) * 500.0 * if n > 60.0 { 0.6 } else { 1.0 };
        let fit = fit(&sweep(&DEPTHS, 0.03, falling)).unwrap();
        assert!((fit.depth.value / 10.0 - 1.0).abs() < 0.05, "{fit:?}");
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(fit(&sweep(&[1, 32], 0.02, |n| n)), None);
        assert_eq!(fit(&[]), None);
        let mut points = sweep(&[1, 2, 4], 0.02, |n| n);
        points[1].iops = Estimate::new(0.0, 0.0, f64::INFINITY);
        assert_eq!(fit(&points), None);
        // A point of which nothing is known has no say.
        let mut points = sweep(&DEPTHS, 0.02, |n| n.min(10.0) * 500.0);
        points[5].iops = Estimate::new(50.0, 0.0, f64::INFINITY);
        let fit = fit(&points).unwrap();
        assert!((fit.ceiling_iops.value / 5000.0 - 1.0).abs() < 0.02, "{fit:?}");
    }
}
