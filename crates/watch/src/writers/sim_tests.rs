//! Weeks of known truth: the interval of a day's bytes holds the truth 95 times in 100.

use super::account::per_day;

/// Pseudo-random numbers (SplitMix64; Steele, Lea and Flood, 2014).
struct Dice(u64);

impl Dice {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

/// Bytes of consecutive hours that resemble their neighbours, with more by day than by night, as shares of their mean.
fn hours(dice: &mut Dice, count: usize, likeness: f64, spread: f64, by_day: f64) -> Vec<f64> {
    let mut level = dice.normal();
    (0..count)
        .map(|hour| {
            level = likeness * level + (1.0 - likeness * likeness).sqrt() * dice.normal();
            let random = (spread * level - spread * spread / 2.0).exp();
            let angle = std::f64::consts::TAU * hour as f64 / 24.0;
            random * (1.0 + by_day * angle.sin())
        })
        .collect()
}

#[test]
fn the_interval_of_a_day_holds_the_truth_95_times_in_100() {
    const ROUNDS: usize = 2_000;
    let mut dice = Dice(7);
    // Hours that are alike, spread (standard deviation of the logarithm), more by day.
    let kinds = [(0.0, 0.3, 0.0), (0.0, 0.8, 0.5), (0.3, 0.5, 0.5), (0.5, 0.3, 0.8)];
    for days in [1, 2, 7] {
        for (likeness, spread, by_day) in kinds {
            let held = (0..ROUNDS).filter(|_| {
                let bytes = hours(&mut dice, days * 24, likeness, spread, by_day);
                let day = per_day(&bytes).expect("enough hours");
                day.low <= 24.0 && 24.0 <= day.high
            });
            let held = held.count() as f64 / ROUNDS as f64;
            assert!(
                held >= 0.94,
                "{days} days, likeness {likeness}, spread {spread}, by day {by_day}: {held}"
            );
        }
    }
}
