//! Measuring how fast a dense system of linear equations is solved, and whether rightly.

mod lu;

use std::sync::atomic::{AtomicBool, Ordering};

use rubus_vocabulary::processor::linpack::{
    self, Linpack, Rated, Solved, Stability, Swept, best_blocks,
};
use rubus_vocabulary::stats::passes;

use lu::{Matrix, System};
use rubus_host::schedstat::Account;
use rubus_host::ticks::now_ns;

/// Unknowns of the first system, from which it is guessed how long others take.
const TRIAL: u32 = 512;
/// Rounds of the sweep: all blocks in turn, so that a disturbance meets all of them.
const ROUNDS: usize = 3;
/// Times that the large system is solved.
const TIMES: usize = 3;
/// Shares of the time: for the sweep, on one core, on all.
const SHARES: (f64, f64, f64) = (0.35, 0.25, 0.4);
/// One system of a stability test takes about so long.
const STABILITY_S: f64 = 15.0;
/// And at most this share of the wanted time, so that there are several to compare.
const STABILITY_SHARE: f64 = 0.05;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct LinpackPlan {
    /// Unknowns; without, as many as memory and time allow.
    pub n: Option<u32>,
    /// Most bytes that matrices may take.
    pub max_bytes: u64,
    /// About how long it may take, the stability test not included.
    pub seconds: f64,
    /// Blocks to try.
    pub blocks: Vec<u32>,
    /// Threads that are all cores.
    pub threads: u32,
    /// What numbers are drawn from.
    pub seed: u64,
    /// How long to go on with the same system, in seconds.
    pub stability_s: Option<f64>,
}

/// Measures, and says what is done now. Nothing when it was cancelled before there was a result.
///
/// # Errors
/// When there is not that much memory.
pub fn linpack(
    plan: &LinpackPlan,
    says: &mut dyn FnMut(&str),
    cancel: &AtomicBool,
) -> std::io::Result<Option<Linpack>> {
    let course = LinpackRun { plan, cancel };
    says("solving a small system, to see how fast it goes");
    let Some(rate) = course.trial()? else {
        return Ok(None);
    };
    let largest = linpack::size_for_bytes(plan.max_bytes);
    let fits = |seconds: f64, rate: f64| {
        plan.n
            .unwrap_or_else(|| linpack::size_for_seconds(seconds, rate).min(largest))
    };
    let solves = (plan.blocks.len() * ROUNDS).max(1) as f64;
    let sweep_n = linpack::size_for_seconds(plan.seconds * SHARES.0 / solves, rate)
        .min(fits(f64::INFINITY, rate))
        .min(largest);
    let (sweep, blocks) = course.sweep(sweep_n, says)?;
    let Some(&block) = blocks.first() else {
        return Ok(None);
    };
    let rate = sweep
        .iter()
        .map(|swept| swept.flops_per_second.value)
        .fold(rate, f64::max);
    let one_rate = rate / f64::from(plan.threads);
    let one_n = fits(plan.seconds * SHARES.1 / TIMES as f64, one_rate);
    let one = match plan.threads {
        1 => None,
        // One that was asked for by its size may take very long on one core.
        _ if plan
            .n
            .is_some_and(|n| linpack::operations(n) / one_rate > plan.seconds) =>
        {
            None
        }
        _ => course.several(one_n, block, 1, says)?,
    };
    let all_n = fits(plan.seconds * SHARES.2 / TIMES as f64, rate);
    let Some(all) = course.several(all_n, block, plan.threads, says)? else {
        return Ok(None);
    };
    let stability = match plan.stability_s {
        Some(wanted_s) => {
            let each_s = STABILITY_S.min(wanted_s * STABILITY_SHARE);
            let n = fits(each_s, all.flops_per_second.value);
            course.stability(n, block, wanted_s, says)?
        }
        None => None,
    };
    Ok(Some(Linpack {
        by: kernel().into(),
        sweep,
        block,
        one,
        all,
        stability,
        hpl: None,
    }))
}

/// What multiplies the matrices.
pub fn kernel() -> &'static str {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    {
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            return "matrixmultiply with AVX2 and FMA";
        }
        if std::arch::is_x86_feature_detected!("avx") {
            return "matrixmultiply with AVX";
        }
        "matrixmultiply with SSE2"
    }
    #[cfg(target_arch = "aarch64")]
    {
        "matrixmultiply with NEON"
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
    {
        "matrixmultiply without vectors (32-bit ARM has none for double precision)"
    }
}

struct LinpackRun<'a> {
    plan: &'a LinpackPlan,
    cancel: &'a AtomicBool,
}

impl LinpackRun<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    fn reserve(&self, n: u32) -> std::io::Result<Matrix> {
        Matrix::reserve(System {
            n: n as usize,
            seed: self.plan.seed,
        })
    }

    /// Operations per second, roughly.
    fn trial(&self) -> std::io::Result<Option<f64>> {
        let mut matrix = self.reserve(TRIAL)?;
        // Once untimed: caches, page tables and the clock of the processor settle.
        let mut best: Option<f64> = None;
        for _ in 0..3 {
            let Some(solved) = self.once(&mut matrix, TRIAL, 64, self.plan.threads) else {
                return Ok(None);
            };
            best = Some(best.unwrap_or(0.0).max(solved.flops_per_second()));
        }
        Ok(best)
    }

    fn once(&self, matrix: &mut Matrix, n: u32, block: u32, threads: u32) -> Option<Solved> {
        let system = System {
            n: n as usize,
            seed: self.plan.seed,
        };
        matrix.fill(self.plan.threads as usize);
        // This thread works as long as any other.
        let account = Account::of_this_thread();
        let (begun_ns, before_ns) = (now_ns(), account.run_delay_ns());
        let x = matrix.solve(block as usize, threads as usize, &|_, _| {}, self.cancel)?;
        let seconds = (now_ns() - begun_ns) as f64 / 1e9;
        let waited_ns = account.run_delay_ns().zip(before_ns);
        let waited_ns = waited_ns.map_or(0, |(after, before)| after.saturating_sub(before));
        Some(Solved {
            n,
            block,
            threads,
            seconds,
            waited_s: waited_ns as f64 / 1e9,
            residual: lu::norms(system, &x).scaled(n),
            fingerprint: lu::fingerprint(&x),
        })
    }

    /// All blocks in turn on all cores, and the best of them first.
    fn sweep(&self, n: u32, says: &mut dyn FnMut(&str)) -> std::io::Result<(Vec<Swept>, Vec<u32>)> {
        let blocks: Vec<u32> = self
            .plan
            .blocks
            .iter()
            .copied()
            .filter(|block| *block <= n)
            .collect();
        if let ([block], true) = (&blocks[..], self.plan.blocks.len() == 1) {
            return Ok((Vec::new(), vec![*block]));
        }
        let mut matrix = self.reserve(n)?;
        let mut timed: Vec<Vec<(u64, f64)>> = vec![Vec::new(); blocks.len()];
        for round in 1..=ROUNDS {
            for (block, timed) in blocks.iter().zip(&mut timed) {
                says(&format!(
                    "{n} unknowns in blocks of {block}, round {round} of {ROUNDS}"
                ));
                match self.once(&mut matrix, n, *block, self.plan.threads) {
                    Some(solved) => timed.push((linpack::operations(n) as u64, solved.seconds)),
                    None => return Ok((Vec::new(), Vec::new())),
                }
            }
        }
        let swept = blocks.iter().zip(&timed).filter_map(|(block, timed)| {
            Some(Swept {
                block: *block,
                n,
                flops_per_second: passes::rate(timed)?,
            })
        });
        let sweep: Vec<Swept> = swept.collect();
        let best = best_blocks(&sweep);
        Ok((sweep, best))
    }

    /// The same system several times.
    fn several(
        &self,
        n: u32,
        block: u32,
        threads: u32,
        says: &mut dyn FnMut(&str),
    ) -> std::io::Result<Option<Rated>> {
        let mut matrix = self.reserve(n)?;
        let mut solved = Vec::new();
        for time in 1..=TIMES {
            let cores = if threads == 1 {
                "one core".into()
            } else {
                format!("{threads} cores")
            };
            says(&format!("{n} unknowns on {cores}, {time} of {TIMES}"));
            solved.extend(self.once(&mut matrix, n, block.min(n), threads));
        }
        Ok(Rated::of(&solved))
    }

    /// The same system until the time is over.
    fn stability(
        &self,
        n: u32,
        block: u32,
        wanted_s: f64,
        says: &mut dyn FnMut(&str),
    ) -> std::io::Result<Option<Stability>> {
        let mut matrix = self.reserve(n)?;
        let (begun_ns, mut solved, mut wrong) = (now_ns(), Vec::new(), 0);
        let elapsed_s = || (now_ns() - begun_ns) as f64 / 1e9;
        let mut first: Option<Solved> = None;
        while elapsed_s() < wanted_s && !self.is_cancelled() {
            let left_s = (wanted_s - elapsed_s()).max(0.0);
            says(&format!(
                "stability: {n} unknowns, {} times, {wrong} wrong, {left_s:.0} s left",
                solved.len()
            ));
            let Some(one) = self.once(&mut matrix, n, block.min(n), self.plan.threads) else {
                break;
            };
            let expected = first.get_or_insert(one).fingerprint;
            wrong += u32::from(!one.is_passed() || one.fingerprint != expected);
            solved.push((elapsed_s(), one));
        }
        let elapsed_s = elapsed_s();
        Ok(Stability::of(
            &solved,
            wanted_s,
            elapsed_s,
            elapsed_s < wanted_s,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> LinpackPlan {
        LinpackPlan {
            n: Some(200),
            max_bytes: 1 << 24,
            seconds: 1.0,
            blocks: vec![32, 64],
            threads: 2,
            seed: 1,
            stability_s: Some(0.3),
        }
    }

    #[test]
    fn all_parts_are_measured_and_right() {
        let found = linpack(&plan(), &mut |_| {}, &AtomicBool::new(false)).expect("memory");
        let found = found.expect("a result");
        assert_eq!(found.sweep.len(), 2);
        assert!(found.all.is_right() && found.all.n == 200 && found.all.threads == 2);
        assert!(
            found
                .one
                .is_some_and(|one| one.is_right() && one.threads == 1)
        );
        let stability = found.stability.expect("it was asked for");
        assert!(stability.all.is_right() && !stability.is_interrupted);
        assert!(stability.all.times >= 1);
    }

    #[test]
    fn size_follows_memory_and_time() {
        let plan = LinpackPlan {
            n: None,
            max_bytes: 200 * 200 * 8,
            blocks: vec![32],
            stability_s: None,
            ..plan()
        };
        let found = linpack(&plan, &mut |_| {}, &AtomicBool::new(false)).expect("memory");
        let found = found.expect("a result");
        assert!(found.all.n < 200 && found.all.n >= 64, "{}", found.all.n);
        assert_eq!((found.sweep.len(), found.block), (0, 32));
    }

    #[test]
    fn nothing_comes_of_what_is_cancelled() {
        let found = linpack(&plan(), &mut |_| {}, &AtomicBool::new(true)).expect("memory");
        assert_eq!(found, None);
    }
}
