//! A random order of the numbers below some bound, without a list of them in memory.
//!
//! A balanced Feistel network is a bijection of the numbers of an even number of bits, whatever its
//! round function (Luby and Rackoff, "How to construct pseudorandom permutations", SIAM Journal on
//! Computing 17, 1988). Where it leads out of the wanted range it is applied again until it does not
//! ("cycle walking"; Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002): that
//! is a bijection of the range. At most three numbers in four lie outside, so it takes four turns
//! on average at worst. This is an order that looks random, not a cipher.

use rubus_stats::Rng;

/// Rounds of the network; four are enough to look random in every bit.
const ROUNDS: usize = 4;

/// A random order of `0..count`.
#[derive(Clone, Debug)]
pub struct Permutation {
    count: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The order of `0..count` (at least 1) that belongs to the seed.
    pub fn new(count: u64, seed: u64) -> Self {
        let count = count.max(1);
        let bits = 64 - (count - 1).leading_zeros();
        let mut random = Rng::from_seed(seed);
        Permutation {
            count,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| random.next_u64()),
        }
    }

    /// The number at place `place`, which must be below the count.
    pub fn at(&self, place: u64) -> u64 {
        debug_assert!(place < self.count);
        let mut number = place;
        loop {
            number = self.once(number);
            if number < self.count {
                return number;
            }
        }
    }

    fn once(&self, number: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        left << self.half_bits | right
    }
}

/// The finishing function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_number_comes_exactly_once(count in 1_u64..5000, seed in any::<u64>()) {
            let order = Permutation::new(count, seed);
            let mut seen = vec![false; count as usize];
            for place in 0..count {
                let number = order.at(place) as usize;
                prop_assert!(!seen[number]);
                seen[number] = true;
            }
        }

        #[test]
        fn huge_ranges_stay_in_range(count in 1_u64..=u64::MAX, seed in any::<u64>()) {
            let order = Permutation::new(count, seed);
            for place in [0, count / 2, count - 1] {
                prop_assert!(order.at(place) < count);
            }
        }
    }

    #[test]
    fn neighbours_are_scattered_evenly() {
        // Chi-square of the distances between neighbours over 16 classes; 37.7 is the 99.9 % point
        // with 15 degrees of freedom.
        let count = 1 << 16;
        let order = Permutation::new(count, 5);
        let mut classes = [0_u32; 16];
        for place in 1..count {
            let step = order.at(place).wrapping_sub(order.at(place - 1)) % count;
            classes[(step >> 12) as usize] += 1;
        }
        let expected = (count - 1) as f64 / 16.0;
        let chi2: f64 = classes.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
        assert!(chi2 < 37.7, "{chi2}: {classes:?}");
    }
}
