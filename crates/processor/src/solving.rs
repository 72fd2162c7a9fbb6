//! Systems of equations that were solved: how large they may be, how right a solution is, and what several of them say.
//!
//! The measure is that of HPL (Petitet, Whaley, Dongarra, Cleary, *HPL: a portable implementation of the High-Performance
//! Linpack benchmark for distributed-memory computers*): operations are counted by its formula, and a result passes when its
//! scaled residual is below 16. A right processor gives the same bits each time that it solves the same system in the same way;
//! one that does not is unstable, even where every single result passes.

use rubus_stats::passes;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::heat::Heat;
use rubus_vocabulary::processor::linpack::{Rated, Stability, Swept};
use rubus_vocabulary::processor::starved;
use rubus_vocabulary::processor::watched::{self, Watched};
use rubus_vocabulary::published::figures::ASIDES;
use rubus_vocabulary::published::{Aside, board_likeness};

/// A scaled residual from here on is a failure.
pub const THRESHOLD: f64 = 16.0;
/// Half the distance from 1 to the next larger number: what HPL calls the relative machine precision.
pub const EPSILON: f64 = f64::EPSILON / 2.0;
/// Block sizes that are tried: those of the published sweep, every second one.
pub const BLOCKS: [u32; 8] = [32, 64, 96, 128, 160, 192, 224, 256];
/// The least system that says anything.
pub const MIN_SIZE: u32 = 64;
/// The largest; its matrix has 79 GiB.
pub const MAX_SIZE: u32 = 100_000;

/// Operations that solving takes, as HPL counts them: 2/3 n³ + 3/2 n².
pub fn operations(n: u32) -> f64 {
    let n = f64::from(n);
    (2.0 / 3.0 * n + 1.5) * n * n
}

/// Bytes of the matrix and what is solved beside it: two panels of the largest block.
pub fn bytes(n: u32) -> u64 {
    let n = u64::from(n);
    let panel = n.min(u64::from(BLOCKS[BLOCKS.len() - 1]));
    8 * (n + 16) * (n + 1 + 2 * panel)
}

/// The largest system whose matrix takes at most `most` bytes, in whole blocks of 8.
pub fn size_for_bytes(most: u64) -> u32 {
    let n = ((most / 8) as f64).sqrt() as u32;
    let mut n = n.min(MAX_SIZE) / 8 * 8;
    while n > MIN_SIZE && bytes(n) > most {
        n -= 8;
    }
    n.max(MIN_SIZE)
}

/// The system that takes about `seconds` at this rate, in whole blocks of 8.
pub fn size_for_seconds(seconds: f64, flops_per_second: f64) -> u32 {
    let n = (seconds * flops_per_second * 1.5).max(0.0).cbrt() as u32;
    (n / 8 * 8).clamp(MIN_SIZE, MAX_SIZE)
}

/// The norms that say how right a solution is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norms {
    /// ‖Ax − b‖∞.
    pub residual: f64,
    /// ‖A‖∞, the largest sum of magnitudes of a row.
    pub matrix: f64,
    /// ‖x‖∞, the largest magnitude in the solution.
    pub solution: f64,
    /// ‖b‖∞, the largest magnitude on the right side.
    pub right_side: f64,
}

impl Norms {
    /// HPL's scaled residual, ‖Ax − b‖∞ / (ε (‖A‖∞ ‖x‖∞ + ‖b‖∞) n). Infinite where it is not a number, since that is no solution.
    pub fn scaled(&self, n: u32) -> f64 {
        let scale = EPSILON * (self.matrix * self.solution + self.right_side) * f64::from(n);
        let scaled = self.residual / scale;
        if scaled.is_nan() { f64::INFINITY } else { scaled }
    }
}

/// One solution of a system, with its times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solved {
    /// Number of unknowns.
    pub n: u32,
    /// Columns that are eliminated at once.
    pub block: u32,
    /// Number of threads.
    pub threads: u32,
    /// Seconds for eliminating and for solving.
    pub seconds: f64,
    /// Of these, those in which the first thread was ready to run and had no processor.
    pub waited_s: f64,
    /// The scaled residual; infinite where the result is not made of numbers.
    pub residual: f64,
    /// What the bits of the solution were, in short.
    pub fingerprint: u64,
}

impl Solved {
    /// Operations per second.
    pub fn flops_per_second(&self) -> f64 {
        operations(self.n) / self.seconds.max(1e-9)
    }

    /// Whether HPL would have said PASSED.
    pub fn is_passed(&self) -> bool {
        self.residual < THRESHOLD
    }
}

/// From all times that the same system was solved in the same way; nothing from none.
pub fn rated(solved: &[Solved]) -> Option<Rated> {
    let first = solved.first()?;
    let counted: Vec<(u64, f64)> =
        solved.iter().map(|one| (operations(one.n) as u64, one.seconds)).collect();
    let usual = usual_fingerprint(solved);
    let waited_s: f64 = solved.iter().map(|one| one.waited_s).sum();
    let elapsed_s: f64 = solved.iter().map(|one| one.seconds).sum();
    Some(Rated {
        n: first.n,
        block: first.block,
        threads: first.threads,
        core: None,
        times: solved.len() as u32,
        flops_per_second: passes::rate(&counted)?,
        residual: solved.iter().map(|one| one.residual).fold(0.0, f64::max),
        failed: solved.iter().filter(|one| !one.is_passed()).count() as u32,
        different: solved.iter().filter(|one| one.fingerprint != usual).count() as u32,
        doubts: starved(waited_s / elapsed_s),
    })
}

/// What most of the results were; of equally many the first.
fn usual_fingerprint(solved: &[Solved]) -> u64 {
    let count = |of: u64| solved.iter().filter(|one| one.fingerprint == of).count();
    let mut best = (0, 0);
    for one in solved {
        let times = count(one.fingerprint);
        if times > best.1 {
            best = (one.fingerprint, times);
        }
    }
    best.0
}

/// The best block size of a sweep, and those that are not surely worse: their intervals overlap with its.
pub fn best_blocks(sweep: &[Swept]) -> Vec<u32> {
    let best =
        sweep.iter().max_by(|a, b| a.flops_per_second.value.total_cmp(&b.flops_per_second.value));
    let Some(best) = best else {
        return Vec::new();
    };
    let mut blocks = vec![best.block];
    let as_good = |one: &&Swept| {
        one.block != best.block && one.flops_per_second.high >= best.flops_per_second.low
    };
    blocks.extend(sweep.iter().filter(as_good).map(|one| one.block));
    blocks
}

/// From what was solved (with the seconds at which each ended) until it was over.
pub fn stability(
    solved: &[(f64, Solved)],
    wanted_s: f64,
    elapsed_s: f64,
    is_interrupted: bool,
) -> Option<Stability> {
    let all: Vec<Solved> = solved.iter().map(|(_, one)| *one).collect();
    let usual = usual_fingerprint(&all);
    let is_wrong = |one: &Solved| !one.is_passed() || one.fingerprint != usual;
    let quarter = all.len() / 4;
    let mean =
        |part: &[Solved]| part.iter().map(|one| one.seconds).sum::<f64>() / part.len() as f64;
    Some(Stability {
        wanted_s,
        elapsed_s,
        all: rated(&all)?,
        last_over_first: (quarter >= 1)
            .then(|| mean(&all[..quarter]) / mean(&all[all.len() - quarter..])),
        first_wrong_s: solved.iter().find(|(_, one)| is_wrong(one)).map(|(at_s, _)| *at_s),
        hottest_millicelsius: None,
        clock_hz: None,
        undervoltage: None,
        throttled: None,
        is_interrupted,
    })
}

/// Adds what was seen of heat, clock and supply meanwhile.
pub fn add_looks(stability: &mut Stability, looks: &[Heat]) {
    let seen = Watched::of(looks);
    stability.hottest_millicelsius = seen.hottest().map(|zone| zone.highest_millicelsius);
    let clock = seen.clocks.first();
    stability.clock_hz = clock.map(|clock| (clock.lowest_hz, clock.highest_hz));
    let doubts = watched::doubts(looks);
    let has = |wanted: fn(&Doubt) -> bool| doubts.iter().any(wanted);
    let says_clock = looks.iter().any(|look| look.throttled.is_some());
    let says_supply = says_clock || looks.iter().any(|look| look.undervoltage.is_some());
    let is_low = has(|doubt| matches!(doubt, Doubt::Undervoltage));
    let is_held = has(|doubt| matches!(doubt, Doubt::Throttled { .. }));
    stability.undervoltage = says_supply.then_some(is_low);
    stability.throttled = says_clock.then_some(is_held);
}

/// What was published of HPL on the same generation of boards, the same model first; empty for other machines.
pub fn published(board: &str) -> Vec<&'static Aside> {
    let likeness = |aside: &Aside| board_likeness(board, aside.board);
    let is_hpl = |aside: &&'static Aside| aside.unit == "GFLOP/s" && likeness(aside) >= 2;
    let mut found: Vec<&'static Aside> = ASIDES.iter().filter(is_hpl).collect();
    found.sort_by_key(|aside| std::cmp::Reverse(likeness(aside)));
    found
}

/// What to do about a machine, as sentences; empty where nothing is to be done. `is_raspberry` is whether config.txt governs it.
pub fn advice(rated: &Rated, stability: Option<&Stability>, is_raspberry: bool) -> Vec<String> {
    let mut advice = Vec::new();
    let undervoltage = stability.and_then(|seen| seen.undervoltage) == Some(true);
    let throttled = stability.and_then(|seen| seen.throttled) == Some(true);
    let is_wrong = !rated.is_right() || stability.is_some_and(|seen| !seen.all.is_right());
    if undervoltage {
        advice.push(
            "The supply was too low under load. Use a stronger power supply and a shorter, thicker cable; nothing else can be judged before."
                .into(),
        );
    }
    if is_wrong && !undervoltage && is_raspberry {
        advice.push(
            "Put over_voltage=2 into config.txt and repeat this test: a little more voltage for the processor cures boards whose results are \
             wrong though they are neither hot nor badly supplied. Take out arm_freq and other overclocking first, if there is any."
                .into(),
        );
    } else if is_wrong && !undervoltage {
        advice.push(
            "Take back any overclocking or undervolting of processor and memory, test the memory (memtest86+), and repeat this test.".into(),
        );
    }
    if is_wrong {
        advice.push(
            "Until then do not trust what this machine writes: the same faults corrupt files."
                .into(),
        );
    }
    if throttled && !is_wrong {
        advice.push("The clock was held down. With better cooling or supply the machine would have been faster for longer.".into());
    }
    advice
}

#[cfg(test)]
mod tests {
    use rubus_stats::estimate::Estimate;
    use rubus_vocabulary::processor::linpack::Verdict;

    use super::*;

    fn solved(seconds: f64, residual: f64, fingerprint: u64) -> Solved {
        Solved { n: 1000, block: 64, threads: 4, seconds, waited_s: 0.0, residual, fingerprint }
    }

    #[test]
    fn operations_and_sizes_agree() {
        // As HPL counts for N = 20000.
        assert!((operations(20_000) - 5.333_933e12).abs() / 5.3e12 < 1e-6);
        let n = size_for_bytes(1 << 30);
        assert!(bytes(n) <= 1 << 30 && bytes(n + 8) > 1 << 30, "{n}");
        assert_eq!(size_for_bytes(0), MIN_SIZE);
        assert_eq!(size_for_bytes(u64::MAX), MAX_SIZE);
        let n = size_for_seconds(10.0, 1e9);
        assert!((operations(n) / 1e10 - 1.0).abs() < 0.02, "{n}");
        assert_eq!(size_for_seconds(0.0, 1e9), MIN_SIZE);
    }

    #[test]
    fn a_residual_is_scaled_as_hpl_scales_it() {
        let norms = Norms { residual: 1e-11, matrix: 250.0, solution: 10.0, right_side: 0.5 };
        let scaled = norms.scaled(1000);
        assert!((scaled - 1e-11 / (1.110_223e-16 * 2500.5 * 1000.0)).abs() / scaled < 1e-6);
        let broken = Norms { residual: f64::NAN, ..norms };
        assert_eq!(broken.scaled(1000), f64::INFINITY);
        assert!(!solved(1.0, broken.scaled(1000), 0).is_passed());
        assert!(!solved(1.0, 16.0, 0).is_passed() && solved(1.0, 15.9, 0).is_passed());
    }

    #[test]
    fn a_result_that_differs_is_seen_though_it_passes() {
        let rated =
            super::rated(&[solved(1.0, 0.003, 7), solved(1.1, 0.004, 9), solved(1.0, 0.003, 7)])
                .expect("some");
        assert_eq!((rated.failed, rated.different, rated.times), (0, 1, 3));
        assert!(!rated.is_right());
        let rated = super::rated(&[solved(1.0, 20.0, 7), solved(1.1, 20.0, 7)]).expect("some");
        assert_eq!((rated.failed, rated.different), (2, 0));
        assert_eq!(super::rated(&[]), None);
    }

    #[test]
    fn waiting_for_a_processor_is_a_doubt_of_the_rate() {
        let mut three = [solved(1.0, 0.1, 7), solved(1.0, 0.1, 7), solved(2.0, 0.1, 7)];
        assert!(super::rated(&three).expect("three").doubts.is_empty());
        three[2].waited_s = 0.4;
        let doubts = super::rated(&three).expect("three").doubts;
        assert_eq!(doubts, [Doubt::CpuStarved { share: 0.1 }]);
    }

    #[test]
    fn stability_says_when_it_went_wrong_and_how_much_slower_it_became() {
        let runs: Vec<(f64, Solved)> = (0..8)
            .map(|i| {
                (f64::from(i + 1), solved(if i < 4 { 1.0 } else { 1.25 }, 0.003, u64::from(i == 5)))
            })
            .collect();
        let stability = super::stability(&runs, 10.0, 10.2, false).expect("runs");
        assert_eq!(stability.first_wrong_s, Some(6.0));
        assert_eq!(stability.verdict(), Verdict::Unstable);
        assert!((stability.last_over_first.expect("enough") - 0.8).abs() < 1e-12);
        let fine = super::stability(&runs[..5], 10.0, 5.0, true).expect("runs");
        assert_eq!(fine.verdict(), Verdict::RightSoFar);
        let fine = super::stability(&runs[..5], 5.0, 5.0, false).expect("runs");
        assert_eq!(fine.verdict(), Verdict::Stable);
    }

    #[test]
    fn advice_follows_what_was_seen() {
        let wrong = super::rated(&[solved(1.0, 20.0, 7)]).expect("one");
        let right = super::rated(&[solved(1.0, 0.003, 7)]).expect("one");
        assert_eq!(advice(&right, None, true), Vec::<String>::new());
        assert!(advice(&wrong, None, true)[0].contains("over_voltage=2"));
        assert!(!advice(&wrong, None, false).join(" ").contains("over_voltage"));
        let mut seen =
            super::stability(&[(1.0, solved(1.0, 20.0, 7))], 1.0, 1.0, false).expect("one");
        seen.undervoltage = Some(true);
        let all = advice(&wrong, Some(&seen), true).join(" ");
        assert!(all.contains("power supply") && !all.contains("over_voltage"), "{all}");
    }

    #[test]
    fn boards_find_what_was_published_of_them() {
        let four = published("Raspberry Pi 4 Model B Rev 1.4");
        assert_eq!(four.len(), 2);
        assert!(four.iter().all(|aside| aside.board == "Raspberry Pi 4B"));
        assert_eq!(published("Raspberry Pi 3 Model B Plus Rev 1.3").len(), 2);
        assert!(published("QEMU").is_empty());
    }

    #[test]
    fn what_is_not_surely_worse_is_named_beside_the_best() {
        let swept = |block, value: f64| Swept {
            block,
            n: 1000,
            flops_per_second: Estimate::new(value, value * 0.95, value * 1.05),
        };
        assert_eq!(best_blocks(&[swept(32, 1e9), swept(64, 2e9), swept(96, 1.95e9)]), [64, 96]);
        assert_eq!(best_blocks(&[]), Vec::<u32>::new());
    }
}
