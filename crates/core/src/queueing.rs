//! How long an operation takes in a path where others are under way: the law that the pipe model and its sweeps share.

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;

/// How far a path stays below its bounds where they meet.
///
/// With N operations in flight a lone operation's time L and the largest demand M bound the response time from both sides:
///
/// ```text
/// max(L, N M)  ≤  R(N)  ≤  L + (N - 1) M
/// ```
///
/// the asymptotic bound (Denning and Buzen 1978) and the bound of a balanced network (Zahorjan et al. 1982). A path of even
/// service times follows the left one, one whose work piles up by chance comes near the right one. In between
///
/// ```text
/// R(N) = (L^p + (N^p - 1) M^p)^(1/p),    1 ≤ p ≤ ∞
/// ```
///
/// gives L at depth 1 whatever p is, and is what the sweeps of queue depths are fitted to; the bend is 1/p.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bend(pub Estimate);

impl Bend {
    /// Nothing is known of it: a station behind a delay, and anything from the sharp lines to nearly a balanced network.
    pub fn unknown() -> Bend {
        Bend(Estimate::new(0.4, 0.0, 0.8))
    }

    /// As a sweep of queue depths found it, 0 to 1.
    pub fn measured(softness: f64) -> Bend {
        let softness = softness.clamp(0.0, 1.0);
        Bend(Estimate::new(
            softness,
            (softness - 0.1).max(0.0),
            (softness + 0.1).min(1.0),
        ))
    }
}

/// R(N) as [`Bend`] has it: seconds of an operation that takes `alone_s` by itself and keeps the busiest resource busy for `most_s`,
/// with `depth` of them in flight.
pub fn response_s(alone_s: f64, most_s: f64, depth: f64, bend: f64) -> f64 {
    let alone_s = alone_s.max(most_s);
    // Sharper than this no number of ours could tell from the lines, and the powers would overflow.
    if bend < 0.02 {
        return alone_s.max(depth * most_s);
    }
    let power = 1.0 / bend.min(1.0);
    let (queue, one) = (depth * most_s / alone_s, most_s / alone_s);
    alone_s * (1.0 + queue.powf(power) - one.powf(power)).powf(bend.min(1.0))
}
