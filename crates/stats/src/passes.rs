//! The rate of work that can only be timed as a whole: passes that each end with a flush.

use super::quantile::student_t_95;
use crate::estimate::Estimate;

/// Operations per second of several passes, each given by its operations and its seconds, flush
/// included; nothing when no pass did anything.
///
/// The value is all operations over all seconds. The interval is Student's t on the logarithms of the
/// rates of the passes, each of which is one independent observation; one pass alone gives an
/// unbounded one.
pub fn rate(passes: &[(u64, f64)]) -> Option<Estimate> {
    let usable = |&&(operations, seconds): &&(u64, f64)| operations > 0 && seconds > 0.0;
    let passes: Vec<(u64, f64)> = passes.iter().filter(usable).copied().collect();
    let operations: u64 = passes.iter().map(|(operations, _)| operations).sum();
    let seconds: f64 = passes.iter().map(|(_, seconds)| seconds).sum();
    if passes.is_empty() {
        return None;
    }
    let value = operations as f64 / seconds;
    if passes.len() < 2 {
        return Some(Estimate::new(value, 0.0, f64::INFINITY));
    }
    let logs = passes.iter().map(|(operations, seconds)| (*operations as f64 / seconds).ln());
    let logs: Vec<f64> = logs.collect();
    let half = student_t_95(logs.len() as f64 - 1.0)
        * (super::interval::variance(&logs) / logs.len() as f64).sqrt();
    let middle = super::interval::mean(&logs);
    Some(Estimate::new(value, (middle - half).exp().min(value), (middle + half).exp().max(value)))
}

#[cfg(test)]
mod tests {
    use super::super::Rng;
    use super::*;

    #[test]
    fn one_pass_says_nothing_of_its_certainty_and_none_says_nothing() {
        assert_eq!(rate(&[]), None);
        assert_eq!(rate(&[(0, 1.0), (5, 0.0)]), None);
        let one = rate(&[(100, 2.0)]).expect("a pass");
        assert_eq!((one.value, one.low, one.high), (50.0, 0.0, f64::INFINITY));
        let even = rate(&[(100, 2.0); 3]).expect("three passes");
        assert!((even.value - 50.0).abs() < 1e-9 && even.relative_half_width() < 1e-9);
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let mut rng = Rng::from_seed(5);
        let mut held = 0;
        for _ in 0..2000 {
            let passes: Vec<(u64, f64)> =
                (0..4).map(|_| (1000, 2.0 * (0.15 * rng.normal()).exp())).collect();
            let estimate = rate(&passes).expect("four passes");
            held += u32::from(estimate.low <= 500.0 && 500.0 <= estimate.high);
        }
        assert!((1860..=1940).contains(&held), "{held} of 2000");
    }
}
