//! The depth from which on a sweep gives nearly all that it ever gave, without a model of the device.
//!
//! The knee of a fitted curve is where its asymptotes meet; a soft curve is at half of its ceiling there, and a device outside
//! the fitted family anywhere. What may be said of how many requests are enough comes from the measured points alone.

use crate::knee::Depth;

/// So much of the most that was measured is nearly all.
pub const NEARLY_ALL: f64 = 0.9;
/// A last step that still gains more than this shows no ceiling.
const STILL_GAINING: f64 = 1.05;

/// The smallest depth of a sweep, depths ascending, that reaches 90 % of the most that was measured and after which no depth up to
/// that most is surely below; nothing where throughput still rises at the deepest queue, or where the points are too uncertain to say.
pub fn enough(sweep: &[Depth]) -> Option<u32> {
    let sound = |depth: &&Depth| depth.iops.value > 0.0 && depth.iops.value.is_finite();
    let points: Vec<&Depth> = sweep.iter().filter(sound).collect();
    let (place, best) =
        points.iter().enumerate().max_by(|(_, a), (_, b)| a.iops.value.total_cmp(&b.iops.value))?;
    let is_last = place + 1 == points.len();
    if points.len() < 3 || best.iops.relative_half_width() > 0.07 {
        return None;
    }
    if is_last && best.iops.value > STILL_GAINING * points[place - 1].iops.value {
        return None;
    }
    // The best of several alike is too high by chance; their mean is not.
    let alike: Vec<f64> = points
        .iter()
        .filter(|depth| depth.iops.high >= best.iops.low)
        .filter(|depth| depth.iops.value >= best.iops.value / STILL_GAINING)
        .map(|depth| depth.iops.value.ln())
        .collect();
    let ceiling = (alike.iter().sum::<f64>() / alike.len() as f64).exp();
    let wanted = NEARLY_ALL * ceiling;
    // One that only looks short, by its noise, between others that are not, is no reason for a greater depth.
    let surely_short = points[..place].iter().rposition(|depth| depth.iops.high < wanted);
    let from = surely_short.map_or(0, |short| short + 1);
    let enough = points[from..=place].iter().find(|depth| depth.iops.value >= wanted)?;
    Some(enough.depth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::estimate::Estimate;

    const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

    fn sweep(noise: f64, rng: &mut Rng, iops: impl Fn(f64) -> f64) -> Vec<Depth> {
        let depth = |&depth: &u32| {
            let value = iops(f64::from(depth)) * (noise * rng.normal()).exp();
            let wide = (1.96 * noise).exp();
            Depth { depth, iops: Estimate::new(value, value / wide, value * wide) }
        };
        DEPTHS.iter().map(depth).collect()
    }

    type Curve = Box<dyn Fn(f64) -> f64>;

    /// Devices, inside and outside the family that the knee is fitted from.
    fn devices() -> Vec<(&'static str, Curve)> {
        let dies = |dies: f64, bus: f64| move |n: f64| (n * dies / (n + dies - 1.0)).min(bus);
        vec![
            ("one at a time", Box::new(|_| 1.0)),
            ("10 servers", Box::new(|n: f64| n.min(10.0))),
            ("16 dies", Box::new(dies(16.0, f64::INFINITY))),
            ("32 dies", Box::new(dies(32.0, f64::INFINITY))),
            ("16 dies behind a bus", Box::new(dies(16.0, 10.0))),
            ("32 dies behind a bus", Box::new(dies(32.0, 20.0))),
            // The seek to the nearest of n shrinks like their number; turning and transfer stay.
            ("an elevator", Box::new(|n: f64| 1.0 / (0.35 + 0.65 / n.sqrt()))),
            (
                "an elevator of 32 places",
                Box::new(|n: f64| 1.0 / (0.35 + 0.65 / n.min(32.0).sqrt())),
            ),
            // Half of the requests go to a part that is ten times as slow.
            ("two speeds", Box::new(|n: f64| (2.0 * n / (n + 1.0)).min(1.8) + (0.2 * n).min(4.0))),
            // A tenth misses the cache and waits for one of 8 slow ones.
            ("a cache in front", Box::new(|n: f64| (n / (1.0 + n / 20.0)).min(16.0))),
            (
                "a third is lost beyond 64",
                Box::new(|n: f64| n.min(12.0) * if n > 64.0 { 0.67 } else { 1.0 }),
            ),
        ]
    }

    #[test]
    fn the_depth_reaches_nine_tenths_within_one_step_or_none_is_told() {
        let mut rng = Rng::from_seed(12);
        for noise in [0.01, 0.02, 0.03] {
            for (name, iops) in devices() {
                let most = DEPTHS.iter().map(|&n| iops(f64::from(n))).fold(0.0, f64::max);
                let true_place =
                    DEPTHS.iter().position(|&n| iops(f64::from(n)) >= NEARLY_ALL * most).unwrap();
                let (mut told, mut wrong) = (0, 0);
                for _ in 0..400 {
                    let Some(depth) = enough(&sweep(noise, &mut rng, &iops)) else {
                        continue;
                    };
                    told += 1;
                    let place = DEPTHS.iter().position(|&d| d == depth).unwrap();
                    wrong += u32::from(place.abs_diff(true_place) > 1);
                }
                assert!(wrong * 20 <= told.max(1), "{name}, {noise}: {wrong} of {told}");
            }
        }
    }

    #[test]
    fn a_sharp_knee_is_told_and_a_rise_without_end_is_not() {
        let mut rng = Rng::from_seed(1);
        assert_eq!(enough(&sweep(0.01, &mut rng, |n| n.min(10.0))), Some(16));
        assert_eq!(enough(&sweep(0.01, &mut rng, |_| 100.0)), Some(1));
        assert_eq!(enough(&sweep(0.01, &mut rng, |n| n)), None);
        assert_eq!(enough(&sweep(0.01, &mut rng, f64::sqrt)), None);
        assert_eq!(enough(&sweep(0.05, &mut rng, |n| n.min(10.0))), None);
        assert_eq!(enough(&[]), None);
    }
}
