//! What it costs this machine to start a short program. Installing software, making an initial RAM filesystem and the like
//! are mostly that: hundreds or thousands of programs, each of which is made, linked and ended again within milliseconds.

use std::time::Duration;

use crate::process::programs::{self, Waited};
use crate::ticks;

/// Programs that a round starts: the shell, and one that is linked when it starts and does nothing, eight times.
const STARTS: u32 = 9;
const ROUND: &str = "for i in 1 2 3 4 5 6 7 8; do /bin/cat /dev/null; done";
/// Most rounds that count. The middle one of them is the answer, so that a moment's disturbance does not matter.
const ROUNDS: usize = 9;
/// No round begins later than this.
const BUDGET: Duration = Duration::from_millis(1_500);
/// A machine that needs longer for one round says nothing.
const LIMIT: Duration = Duration::from_secs(20);

/// Seconds for starting a short program and waiting for its end, by the clock, with its files in memory. Takes at most two
/// seconds, on very slow machines two rounds of nine programs. Nothing where there is no shell, or a round fails.
pub fn short_program_s() -> Option<f64> {
    let begun_ns = ticks::now_ns();
    // The first one finds its files on the disk.
    round_s()?;
    let mut rounds = Vec::new();
    while rounds.is_empty()
        || rounds.len() < ROUNDS && u128::from(ticks::now_ns() - begun_ns) < BUDGET.as_nanos()
    {
        rounds.push(round_s()?);
    }
    Some(middle(rounds) / f64::from(STARTS))
}

fn round_s() -> Option<f64> {
    let begun_ns = ticks::now_ns();
    match programs::output_within("sh", &["-c", ROUND], LIMIT) {
        Waited::Ended(Ok(_)) => Some((ticks::now_ns() - begun_ns) as f64 / 1e9),
        Waited::Ended(Err(_)) | Waited::Missing | Waited::TooLong => None,
    }
}

/// The middle one, of two the lower.
fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_a_program_takes_time_and_not_for_ever() {
        let start_s = short_program_s().expect("there is a shell");
        // Less than 20 µs would be no program; more than the limit is no answer.
        assert!(start_s > 2e-5, "{start_s}");
        assert!(start_s < LIMIT.as_secs_f64(), "{start_s}");
    }

    #[test]
    fn one_slow_round_is_not_the_answer() {
        assert_eq!(middle(vec![0.2, 9.0, 0.1]), 0.2);
        assert_eq!(middle(vec![0.2, 0.1]), 0.1);
        assert_eq!(middle(vec![0.3]), 0.3);
    }
}
