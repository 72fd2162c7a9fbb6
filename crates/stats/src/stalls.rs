//! Stalls: times in which the target did nothing, far beyond its usual latency.
//!
//! [`find`] decides, with the whole latency distribution at hand, which slow operations and gaps of a
//! job are stalls. [`lost_time`] says how much time stalls take in the long run when only a few
//! were seen. Who is to blame is not decided here.

use super::histogram::Histogram;
use super::quantile;

/// Nothing shorter than this is a stall, in nanoseconds: 50 ms is where a person begins to notice.
pub const MIN_NS: u64 = 50_000_000;

/// A stretch of time, in nanoseconds of the job's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode {
    /// When it began, counted from the start of the job.
    pub start_ns: u64,
    /// How long it lasted.
    pub length_ns: u64,
}

impl Episode {
    /// When it ended.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }

    /// When it began, in seconds from the start of the job.
    pub fn start_s(&self) -> f64 {
        self.start_ns as f64 / 1e9
    }

    /// How long it lasted, in milliseconds.
    pub fn length_ms(&self) -> f64 {
        self.length_ns as f64 / 1e6
    }
}

/// How long something must take to be a stall, in nanoseconds, given the usual latencies: 50 ms,
/// ten times the median, and three times the 90th percentile, whichever is the longest.
///
/// The last keeps a device whose every fifth operation is slow from being called stalling: that is
/// how it is, not an interruption.
pub fn threshold_ns(latencies: &Histogram) -> u64 {
    let median = latencies.percentile_ns(0.5).unwrap_or(0);
    let p90 = if latencies.count() < super::histogram::P90_OPERATIONS {
        0
    } else {
        latencies.percentile_ns(0.9).unwrap_or(0)
    };
    MIN_NS.max(median.saturating_mul(10)).max(p90.saturating_mul(3))
}

/// The stalls among the candidates of `window_ns` of measuring, joined where they overlap, in the
/// order in which they began.
///
/// In a deep queue one stall makes every waiting operation slow: all those overlap and are one
/// episode, from the beginning of the first to the end of the last. What is only the device's pace
/// is left out (`without_pace` below). Of the rest, episodes that are less than a tenth of the threshold
/// apart are joined too.
pub fn find(candidates: &[Episode], threshold_ns: u64, window_ns: u64) -> Vec<Episode> {
    find_among(candidates, None, threshold_ns, window_ns)
}

/// [`find`] for a long job of which only the longest candidates were kept, and of the others only their lengths, in
/// `forgotten`.
pub fn find_among(
    candidates: &[Episode],
    forgotten: Option<&Histogram>,
    threshold_ns: u64,
    window_ns: u64,
) -> Vec<Episode> {
    let mut long: Vec<Episode> = candidates
        .iter()
        .copied()
        .filter(|candidate| candidate.length_ns >= threshold_ns)
        .collect();
    long.sort_unstable_by_key(|episode| (episode.start_ns, episode.length_ns));
    let separate = join(&long, 0);
    let interruptions = match forgotten {
        None => without_pace(separate, window_ns),
        Some(lengths) => without_pace_among(separate, lengths, threshold_ns, window_ns),
    };
    join(&interruptions, threshold_ns / 10)
}

/// [`without_pace`] where the lengths of further episodes are known, and nothing else of them.
fn without_pace_among(
    mut episodes: Vec<Episode>,
    forgotten: &Histogram,
    threshold_ns: u64,
    window_ns: u64,
) -> Vec<Episode> {
    let mut lengths = Histogram::new();
    let (mut count, mut total_ns) = (0_u64, 0_u64);
    let kept = episodes.iter().map(|episode| (episode.length_ns, 1));
    let others = forgotten.buckets().filter(|bucket| bucket.0 >= threshold_ns);
    for (length_ns, n) in kept.chain(others) {
        lengths.record_n(length_ns, n);
        count += n;
        total_ns = total_ns.saturating_add(length_ns.saturating_mul(n));
    }
    if count >= PACE && total_ns > window_ns / 4 * 3 {
        let usual_ns = lengths.percentile_ns(0.5).unwrap_or(0);
        episodes.retain(|episode| episode.length_ns > 2 * usual_ns);
    }
    episodes
}

/// Minimum number of episodes that count as the pace of the device when they take most of the time.
const PACE: u64 = 8;

/// Episodes that are no interruption but the way in which a device works are left out: when eight
/// or more of them take more than three quarters of the time, only those twice as long as the
/// usual one are interruptions.
///
/// A volume with a limited rate works like this: it takes as many operations at once as it may do
/// in a tenth of a second, and then none until that time is over.
pub(crate) fn without_pace(mut episodes: Vec<Episode>, window_ns: u64) -> Vec<Episode> {
    let total_ns = episodes.iter().fold(0u64, |total, e| total.saturating_add(e.length_ns));
    if episodes.len() as u64 >= PACE && total_ns > window_ns / 4 * 3 {
        let mut lengths_ns: Vec<u64> = episodes.iter().map(|e| e.length_ns).collect();
        lengths_ns.sort_unstable();
        let usual_ns = lengths_ns[lengths_ns.len() / 2];
        episodes.retain(|episode| episode.length_ns > 2 * usual_ns);
    }
    episodes
}

/// Joins episodes, sorted by their start, that are at most `slack_ns` apart.
pub(crate) fn join(sorted: &[Episode], slack_ns: u64) -> Vec<Episode> {
    let mut joined: Vec<Episode> = Vec::new();
    for episode in sorted {
        match joined.last_mut() {
            Some(last) if episode.start_ns <= last.end_ns().saturating_add(slack_ns) => {
                let end_ns = last.end_ns().max(episode.end_ns());
                last.length_ns = end_ns - last.start_ns;
            }
            _ => joined.push(*episode),
        }
    }
    joined
}

/// The rule of three: when nothing happened in `seconds`, then with 95 % confidence it happens
/// less often than once per this many seconds (a third of them; Hanley and Lippman-Hand, JAMA 249,
/// 1983).
pub fn rarer_than_s(seconds: f64) -> f64 {
    seconds / 3.0
}

/// The share of the time that stalls may take although a window of `window_s` seconds showed none:
/// 0.3 / sqrt(window_s), at most 1.
///
/// This is the rule of three for stalls of sqrt(window_s) / 10 seconds: a third of a second in ten, one second in a
/// hundred. The length of an unseen stall is an assumption, not a measurement; that it grows with the window says that
/// the longer one looks, the rarer and longer are the stalls that can still hide.
pub fn unseen_share(window_s: f64) -> f64 {
    (0.3 / window_s.max(0.0).sqrt()).min(1.0)
}

/// The 95 % bounds of the time in seconds that stalls take on average in a window like the one in
/// which stalls of these lengths (in seconds) were seen; nothing is known (0 to infinity) without
/// any.
///
/// The sum of a random number of stalls is a weighted Poisson sum. The bounds are the gamma
/// intervals of Fay and Feuer (Statistics in Medicine 16, 1997): exact for equal lengths, on the
/// safe side for unequal ones.
pub fn lost_time(lengths_s: &[f64]) -> (f64, f64) {
    let sum: f64 = lengths_s.iter().sum();
    if sum <= 0.0 {
        return (0.0, f64::INFINITY);
    }
    let squares: f64 = lengths_s.iter().map(|x| x * x).sum();
    let longest = lengths_s.iter().copied().fold(0.0, f64::max);
    let low = quantile::gamma(0.025, sum * sum / squares) * squares / sum;
    let (sum_1, squares_1) = (sum + longest, squares + longest * longest);
    let high = quantile::gamma(0.975, sum_1 * sum_1 / squares_1) * squares_1 / sum_1;
    (low.min(sum), high.max(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const WINDOW_NS: u64 = 10_000 * MS;

    fn at(start_ms: u64, length_ms: u64) -> Episode {
        Episode { start_ns: start_ms * MS, length_ns: length_ms * MS }
    }

    fn latencies(parts: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::new();
        for &(ns, n) in parts {
            histogram.record_n(ns, n);
        }
        histogram
    }

    #[test]
    fn the_threshold_follows_the_device() {
        // A fast device: 50 ms. A slow one: ten times its median.
        assert_eq!(threshold_ns(&latencies(&[(100_000, 1000)])), 50 * MS);
        assert_eq!(threshold_ns(&latencies(&[(20 * MS, 1000)])), 200 * MS);
        // Every fifth operation takes 100 ms: that is how it is, so 100 ms is no stall.
        let bimodal = latencies(&[(MS, 800), (100 * MS, 200)]);
        assert!(threshold_ns(&bimodal) > 290 * MS);
        // One in a hundred: it is.
        let rare = latencies(&[(MS, 990), (100 * MS, 10)]);
        assert_eq!(threshold_ns(&rare), 50 * MS);
        assert_eq!(threshold_ns(&Histogram::new()), MIN_NS);
    }

    #[test]
    fn operations_of_a_deep_queue_are_one_stall() {
        let waiting: Vec<Episode> = (0..32).map(|i| at(1000 + i, 340 - i)).collect();
        assert_eq!(find(&waiting, 50 * MS, WINDOW_NS), [at(1000, 340)]);
    }

    #[test]
    fn stalls_come_in_order_and_short_ones_are_left_out() {
        let candidates = [at(5000, 80), at(100, 60), at(2000, 49), at(300, 400)];
        let expected = [at(100, 60), at(300, 400), at(5000, 80)];
        assert_eq!(find(&candidates, 50 * MS, WINDOW_NS), expected);
        // 160 to 163 ms is less than a tenth of the threshold: the same stall.
        let near = [at(100, 60), at(163, 100)];
        assert_eq!(find(&near, 50 * MS, WINDOW_NS), [at(100, 163)]);
        assert_eq!(find(&[], 50 * MS, WINDOW_NS), []);
    }

    #[test]
    fn a_limited_rate_is_a_pace_and_not_a_row_of_stalls() {
        // 2 ms of work in every 100, and once a real stall.
        let mut gaps: Vec<Episode> = (0..100).map(|i| at(100 * i + 2, 98)).collect();
        assert_eq!(find(&gaps, 50 * MS, WINDOW_NS), []);
        gaps[40].length_ns = 598 * MS;
        assert_eq!(find(&gaps, 50 * MS, WINDOW_NS), [at(4002, 598)]);
        // A device that hangs for most of the time is no pace: it did not do it often.
        let hung = [at(1000, 9000)];
        assert_eq!(find(&hung, 50 * MS, WINDOW_NS), hung);
        // One that stalls for half of the time is none either.
        let often: Vec<Episode> = (0..10).map(|i| at(1000 * i, 500)).collect();
        assert_eq!(find(&often, 50 * MS, WINDOW_NS), often);
    }

    #[test]
    fn a_pace_is_known_from_lengths_alone() {
        // An hour of 98 ms in every 100, of which the longest few were kept, and one real stall.
        let forgotten = latencies(&[(98 * MS, 35_000)]);
        let mut kept: Vec<Episode> = (0..500).map(|i| at(7000 * i, 98)).collect();
        kept.push(at(3_550_000, 700));
        let hour_ns = 3_600_000 * MS;
        let found = find_among(&kept, Some(&forgotten), 50 * MS, hour_ns);
        assert_eq!(found, [at(3_550_000, 700)]);
        // The same stalls alone are no pace.
        assert_eq!(find_among(&kept, None, 50 * MS, hour_ns).len(), 501);
    }

    #[test]
    fn equal_lengths_give_the_poisson_bounds() {
        let (low, high) = lost_time(&[0.5; 5]);
        assert!((low - 0.5 * 1.6235).abs() < 1e-4);
        assert!((high - 0.5 * 11.6683).abs() < 1e-4);
        assert_eq!(lost_time(&[]), (0.0, f64::INFINITY));
    }

    #[test]
    fn unequal_lengths_give_wider_bounds() {
        let (low, high) = lost_time(&[0.1, 0.1, 0.1, 0.1, 2.1]);
        let (equal_low, equal_high) = lost_time(&[0.5; 5]);
        assert!(low < equal_low && high > equal_high);
    }

    #[test]
    fn the_rule_of_three() {
        assert_eq!(rarer_than_s(30.0), 10.0);
        assert!((unseen_share(9.0) - 0.1).abs() < 1e-12);
        assert_eq!(unseen_share(0.0), 1.0);
    }
}
