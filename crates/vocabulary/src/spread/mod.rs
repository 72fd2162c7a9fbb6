//! Where random operations go: uneven distributions over the blocks of a region.
//!
//! - *Zipf*: the block of rank k is visited with a probability proportional to k to the power of
//!   minus the exponent. Drawn by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to
//!   generate variates from monotone discrete distributions", ACM Transactions on Modeling and
//!   Computer Simulation 6, 1996), which needs no table and no sum over all blocks.
//! - *Pareto*: the self-similar distribution of Gray and others ("Quickly generating billion-record
//!   synthetic databases", SIGMOD 1994, after Knuth, *The Art of Computer Programming* 3): with the
//!   parameter h, a share of 1 - h of the operations goes to the share h of the blocks, and so on
//!   within these. 0.2 is the rule of 80 to 20.
//! - *Normal*: around the middle of the region; what falls outside is drawn again.
//!
//! The ranks of the first two are scattered over the region by a permutation, so that often
//! visited blocks are no neighbours.

mod permutation;

use crate::spec::{Distribution, Zone};
use rubus_stats::Rng;

pub use permutation::Permutation;

/// A distribution over `0..count` blocks.
#[derive(Clone, Debug)]
pub struct Spread {
    count: u64,
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    Uniform,
    Zipf(Zipf, Permutation),
    /// The power to which a uniform number is raised.
    Pareto(f64, Permutation),
    /// The deviation in blocks.
    Normal(f64),
    Zones(Vec<Stretch>),
}

/// A zone: its blocks, and the chance of it and all before it.
#[derive(Clone, Debug)]
struct Stretch {
    start: u64,
    blocks: u64,
    chance_so_far: f64,
}

impl Spread {
    /// The distribution over `count` (at least 1) blocks; `zones` go before it if there are any.
    pub fn new(count: u64, distribution: Distribution, zones: &[Zone], seed: u64) -> Self {
        let count = count.max(1);
        let scatter = || Permutation::new(count, seed);
        let law = match distribution {
            _ if !zones.is_empty() => Law::Zones(stretches(count, zones)),
            Distribution::Uniform => Law::Uniform,
            Distribution::Zipf(exponent) => Law::Zipf(Zipf::new(count, exponent), scatter()),
            Distribution::Pareto(h) => Law::Pareto(h.ln() / (1.0 - h).ln(), scatter()),
            Distribution::Normal(percent) => Law::Normal(count as f64 * percent / 100.0),
        };
        Spread { count, law }
    }

    /// The next block.
    pub fn draw(&self, random: &mut Rng) -> u64 {
        match &self.law {
            Law::Uniform => random.below(self.count),
            Law::Zipf(zipf, scatter) => scatter.at(zipf.draw(random) - 1),
            Law::Pareto(power, scatter) => {
                let rank = self.count as f64 * random.unit().powf(*power);
                scatter.at((rank as u64).min(self.count - 1))
            }
            Law::Normal(deviation) => self.draw_normal(*deviation, random),
            Law::Zones(stretches) => {
                let chance = random.unit();
                let found = stretches.iter().find(|zone| chance < zone.chance_so_far);
                match found.or(stretches.last()) {
                    Some(zone) => zone.start + random.below(zone.blocks),
                    None => random.below(self.count),
                }
            }
        }
    }

    fn draw_normal(&self, deviation: f64, random: &mut Rng) -> u64 {
        /// A deviation far beyond the region would draw for ever.
        const TRIES: u32 = 100;
        let middle = self.count as f64 / 2.0;
        for _ in 0..TRIES {
            let block = (middle + deviation * random.normal()).floor();
            if block >= 0.0 && block < self.count as f64 {
                return block as u64;
            }
        }
        random.below(self.count)
    }
}

/// The zones in blocks; one without a block or without a share is left out.
fn stretches(count: u64, zones: &[Zone]) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let (mut start, mut region_percent, mut chance) = (0_u64, 0.0, 0.0);
    for zone in zones {
        region_percent += zone.region_percent;
        chance += zone.operations_percent / 100.0;
        let end = ((count as f64 * region_percent / 100.0).round() as u64).min(count);
        if end > start && zone.operations_percent > 0.0 {
            stretches.push(Stretch { start, blocks: end - start, chance_so_far: chance });
        }
        start = end.max(start);
    }
    stretches
}

/// Zipf's law over the ranks `1..=count`.
#[derive(Clone, Debug)]
struct Zipf {
    count: f64,
    exponent: f64,
    h_first: f64,
    h_last: f64,
    /// Within so much of a rank nothing is rejected.
    squeeze: f64,
}

impl Zipf {
    fn new(count: u64, exponent: f64) -> Self {
        let count = count as f64;
        let mut zipf = Zipf { count, exponent, h_first: 0.0, h_last: 0.0, squeeze: 0.0 };
        zipf.h_first = zipf.integral(1.5) - 1.0;
        zipf.h_last = zipf.integral(count + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn draw(&self, random: &mut Rng) -> u64 {
        loop {
            let u = self.h_last + random.unit() * (self.h_first - self.h_last);
            let x = self.inverse(u);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.squeeze || u >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// The integral of the density, (x^(1-s) - 1) / (1-s), written so that s near 1 does no harm.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.exponent) * log;
        let quotient = if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 };
        quotient * log
    }

    fn inverse(&self, y: f64) -> f64 {
        let t = ((1.0 - self.exponent) * y).max(-1.0);
        let quotient = if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 };
        (quotient * y).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 200_000;

    fn visits(count: u64, distribution: Distribution, zones: &[Zone]) -> Vec<u32> {
        let spread = Spread::new(count, distribution, zones, 3);
        let mut random = Rng::from_seed(11);
        let mut visits = vec![0; count as usize];
        for _ in 0..DRAWS {
            visits[spread.draw(&mut random) as usize] += 1;
        }
        visits
    }

    /// Four deviations of the number of successes in all draws.
    fn tolerance(chance: f64) -> f64 {
        4.0 * (f64::from(DRAWS) * chance * (1.0 - chance)).sqrt() + 1.0
    }

    #[test]
    fn zipf_visits_each_rank_as_often_as_the_law_says() {
        for exponent in [0.5, 0.9, 1.2, 2.0] {
            let mut visits = visits(1000, Distribution::Zipf(exponent), &[]);
            visits.sort_unstable_by_key(|&n| std::cmp::Reverse(n));
            let zeta: f64 = (1..=1000).map(|k| f64::from(k).powf(-exponent)).sum();
            // The first ranks are far enough apart to be told by their order.
            for rank in [1_u32, 2, 3] {
                let chance = f64::from(rank).powf(-exponent) / zeta;
                let expected = f64::from(DRAWS) * chance;
                let seen = f64::from(visits[rank as usize - 1]);
                assert!(
                    (seen - expected).abs() < tolerance(chance),
                    "{exponent}: rank {rank} {seen} instead of {expected}"
                );
            }
            let tail: f64 = (101..=1000).map(|k| f64::from(k).powf(-exponent)).sum::<f64>() / zeta;
            let seen: u32 = visits[100..].iter().sum();
            let expected = f64::from(DRAWS) * tail;
            assert!(
                (f64::from(seen) / expected - 1.0).abs() < 0.06,
                "{exponent}: tail {seen} instead of {expected}"
            );
        }
    }

    #[test]
    fn pareto_is_self_similar() {
        let mut visits = visits(1000, Distribution::Pareto(0.2), &[]);
        visits.sort_unstable_by_key(|&n| std::cmp::Reverse(n));
        for (blocks, chance) in [(200, 0.8), (40, 0.64)] {
            let seen: u32 = visits[..blocks].iter().sum();
            let expected = f64::from(DRAWS) * chance;
            assert!(
                (f64::from(seen) - expected).abs() < tolerance(chance) + 0.004 * expected,
                "{blocks}: {seen} instead of {expected}"
            );
        }
    }

    #[test]
    fn popular_blocks_are_no_neighbours() {
        let visits = visits(1000, Distribution::Zipf(1.2), &[]);
        let mut hottest: Vec<usize> = (0..1000).collect();
        hottest.sort_unstable_by_key(|&block| std::cmp::Reverse(visits[block]));
        let close = hottest[..10].windows(2).filter(|pair| pair[0].abs_diff(pair[1]) <= 2).count();
        assert!(close <= 1, "{:?}", &hottest[..10]);
    }

    #[test]
    fn normal_lies_around_the_middle_and_inside() {
        let visits = visits(1000, Distribution::Normal(10.0), &[]);
        // One deviation is 100 blocks: 68.3 % lie within it.
        let near: u32 = visits[400..600].iter().sum();
        assert!((f64::from(near) - 0.6827 * f64::from(DRAWS)).abs() < tolerance(0.6827));
        let wide = Spread::new(1, Distribution::Normal(1e9), &[], 0);
        assert_eq!(wide.draw(&mut Rng::from_seed(0)), 0);
    }

    #[test]
    fn zones_get_their_shares() {
        let zone = |operations_percent, region_percent| Zone { operations_percent, region_percent };
        let zones = [zone(60.0, 10.0), zone(0.0, 20.0), zone(40.0, 70.0)];
        let visits = visits(1000, Distribution::Uniform, &zones);
        let first: u32 = visits[..100].iter().sum();
        assert!((f64::from(first) - 0.6 * f64::from(DRAWS)).abs() < tolerance(0.6));
        assert!(visits[100..300].iter().all(|&n| n == 0));
    }

    #[test]
    fn a_single_block_is_always_the_one() {
        for distribution in [
            Distribution::Uniform,
            Distribution::Zipf(1.1),
            Distribution::Pareto(0.5),
            Distribution::Normal(5.0),
        ] {
            let spread = Spread::new(1, distribution, &[], 1);
            let mut random = Rng::from_seed(1);
            assert!((0..100).all(|_| spread.draw(&mut random) == 0), "{distribution:?}");
        }
    }
}
