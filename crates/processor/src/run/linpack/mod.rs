//! Measuring how fast a dense system of linear equations is solved, and whether rightly.

mod kernels;
mod lu;
mod products;

use std::sync::atomic::{AtomicBool, Ordering};

use rubus_stats::passes;
use rubus_vocabulary::processor::linpack::{Linpack, Rated, Stability, Swept};

use rubus_host::process::schedstat::Account;
use rubus_host::ticks::now_ns;
use rubus_machine::probe::core_kinds::CoreKind;

use crate::solving::{self, Solved, best_blocks};

pub use lu::{Matrix, System, Team};

/// Unknowns of the first system, from which it is guessed how long others take.
const TRIAL: u32 = 512;
/// Rounds of the sweep: all blocks in turn, so that a disturbance meets all of them.
const ROUNDS: usize = 3;
/// Times that the large system is solved.
const TIMES: usize = 3;
/// Shares of the time: for the sweep, on one core, on all.
const SHARES: (f64, f64, f64) = (0.35, 0.25, 0.4);
/// One system of a stability test takes about this time.
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
    /// The kinds of cores that may be used, the fastest first. Threads are pinned to their CPUs; they float where this names fewer CPUs
    /// than there are threads.
    pub kinds: Vec<CoreKind>,
    /// What numbers are drawn from.
    pub seed: u64,
    /// How long to repeat the same system, in seconds.
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
    let largest = solving::size_for_bytes(plan.max_bytes);
    let fits = |seconds: f64, rate: f64| {
        plan.n.unwrap_or_else(|| solving::size_for_seconds(seconds, rate).min(largest))
    };
    let solves = (plan.blocks.len() * ROUNDS).max(1) as f64;
    let sweep_n = solving::size_for_seconds(plan.seconds * SHARES.0 / solves, rate)
        .min(fits(f64::INFINITY, rate))
        .min(largest);
    let (sweep, blocks) = course.sweep(sweep_n, says)?;
    let Some(&block) = blocks.first() else {
        return Ok(None);
    };
    let rate = sweep.iter().map(|swept| swept.flops_per_second.value).fold(rate, f64::max);
    let one_rate = rate / f64::from(plan.threads);
    let one_n = fits(plan.seconds * SHARES.1 / TIMES as f64, one_rate);
    let mut singles = Vec::new();
    // One that was asked for by its size may take very long on one core.
    let is_too_long = |n| solving::operations(n) / one_rate > plan.seconds;
    if plan.threads > 1 && !plan.n.is_some_and(is_too_long) {
        for single in course.singles() {
            singles.extend(course.several(one_n, block, &single, says)?);
        }
    }
    let mut singles = singles.into_iter();
    let all_n = fits(plan.seconds * SHARES.2 / TIMES as f64, rate);
    let Some(all) = course.several(all_n, block, &course.all(), says)? else {
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
        by: format!("rubus's kernel for {}", kernels::kernels()[0].name),
        sweep,
        block,
        one: singles.next(),
        other_kinds: singles.collect(),
        all,
        stability,
        hpl: None,
    }))
}

/// Threads, and what they are.
struct Cores {
    team: Team,
    threads: u32,
    /// For the words on the way, such as "4 cores".
    words: String,
    /// The kind of a single one, where there are several.
    kind: Option<String>,
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
        Matrix::reserve(System { n: n as usize, seed: self.plan.seed })
    }

    /// All cores, a panel on the fastest; pinned if that many CPUs are known.
    fn all(&self) -> Cores {
        let threads = self.plan.threads;
        let cpus = self.plan.kinds.iter().flat_map(|kind| &kind.cpus);
        let cpus: Vec<usize> = cpus.copied().take(threads as usize).collect();
        Cores {
            team: if cpus.len() == threads as usize {
                Team::pinned(&cpus)
            } else {
                Team::floating(threads as usize)
            },
            threads,
            words: match threads {
                1 => "one core".into(),
                _ => format!("{threads} cores"),
            },
            kind: None,
        }
    }

    /// A core of each kind. The last CPU of it: the first ones of a machine have the most interrupts.
    fn singles(&self) -> Vec<Cores> {
        let kinds = &self.plan.kinds;
        let of_kind = |kind: &CoreKind| Cores {
            team: Team::pinned(kind.cpus.last().copied().as_slice()),
            threads: 1,
            words: match kinds.len() {
                0 | 1 => "one core".into(),
                _ => format!("one {}", kind.name),
            },
            kind: (kinds.len() > 1).then(|| kind.name.clone()),
        };
        if kinds.is_empty() {
            vec![of_kind(&CoreKind::default())]
        } else {
            kinds.iter().map(of_kind).collect()
        }
    }

    /// Operations per second, roughly.
    fn trial(&self) -> std::io::Result<Option<f64>> {
        let mut matrix = self.reserve(TRIAL)?;
        let cores = self.all();
        // Once untimed: caches, page tables and the clock of the processor settle.
        let mut best: Option<f64> = None;
        for _ in 0..3 {
            let Some(solved) = self.once(&mut matrix, TRIAL, 64, &cores) else {
                return Ok(None);
            };
            best = Some(best.unwrap_or(0.0).max(solved.flops_per_second()));
        }
        Ok(best)
    }

    fn once(&self, matrix: &mut Matrix, n: u32, block: u32, cores: &Cores) -> Option<Solved> {
        let system = System { n: n as usize, seed: self.plan.seed };
        matrix.fill(self.plan.threads as usize);
        // This thread works as long as any other.
        let account = Account::of_this_thread();
        let (begun_ns, before_ns) = (now_ns(), account.run_delay_ns());
        let x = matrix.solve(block as usize, &cores.team, &|_, _| {}, self.cancel)?;
        let seconds = (now_ns() - begun_ns) as f64 / 1e9;
        let waited_ns = account.run_delay_ns().zip(before_ns);
        let waited_ns = waited_ns.map_or(0, |(after, before)| after.saturating_sub(before));
        Some(Solved {
            n,
            block,
            threads: cores.threads,
            seconds,
            waited_s: waited_ns as f64 / 1e9,
            residual: lu::norms(system, &x).scaled(n),
            fingerprint: lu::fingerprint(&x),
        })
    }

    /// All blocks in turn on all cores, and the best of them first.
    fn sweep(&self, n: u32, says: &mut dyn FnMut(&str)) -> std::io::Result<(Vec<Swept>, Vec<u32>)> {
        let blocks: Vec<u32> =
            self.plan.blocks.iter().copied().filter(|block| *block <= n).collect();
        if let ([block], true) = (&blocks[..], self.plan.blocks.len() == 1) {
            return Ok((Vec::new(), vec![*block]));
        }
        let (mut matrix, cores) = (self.reserve(n)?, self.all());
        let mut timed: Vec<Vec<(u64, f64)>> = vec![Vec::new(); blocks.len()];
        for round in 1..=ROUNDS {
            for (block, timed) in blocks.iter().zip(&mut timed) {
                says(&format!("{n} unknowns in blocks of {block}, round {round} of {ROUNDS}"));
                match self.once(&mut matrix, n, *block, &cores) {
                    Some(solved) => timed.push((solving::operations(n) as u64, solved.seconds)),
                    None => return Ok((Vec::new(), Vec::new())),
                }
            }
        }
        let swept = blocks.iter().zip(&timed).filter_map(|(block, timed)| {
            Some(Swept { block: *block, n, flops_per_second: passes::rate(timed)? })
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
        cores: &Cores,
        says: &mut dyn FnMut(&str),
    ) -> std::io::Result<Option<Rated>> {
        let mut matrix = self.reserve(n)?;
        let mut solved = Vec::new();
        for time in 1..=TIMES {
            let words = &cores.words;
            says(&format!("{n} unknowns on {words}, {time} of {TIMES}"));
            solved.extend(self.once(&mut matrix, n, block.min(n), cores));
        }
        let rated = solving::rated(&solved);
        Ok(rated.map(|rated| Rated { core: cores.kind.clone(), ..rated }))
    }

    /// The same system until the time is over.
    fn stability(
        &self,
        n: u32,
        block: u32,
        wanted_s: f64,
        says: &mut dyn FnMut(&str),
    ) -> std::io::Result<Option<Stability>> {
        let (mut matrix, cores) = (self.reserve(n)?, self.all());
        let (begun_ns, mut solved, mut wrong) = (now_ns(), Vec::new(), 0);
        let elapsed_s = || (now_ns() - begun_ns) as f64 / 1e9;
        let mut first: Option<Solved> = None;
        while elapsed_s() < wanted_s && !self.is_cancelled() {
            let left_s = (wanted_s - elapsed_s()).max(0.0);
            says(&format!(
                "stability: {n} unknowns, {} times, {wrong} wrong, {left_s:.0} s left",
                solved.len()
            ));
            let Some(one) = self.once(&mut matrix, n, block.min(n), &cores) else {
                break;
            };
            let expected = first.get_or_insert(one).fingerprint;
            wrong += u32::from(!one.is_passed() || one.fingerprint != expected);
            solved.push((elapsed_s(), one));
        }
        let elapsed_s = elapsed_s();
        Ok(solving::stability(&solved, wanted_s, elapsed_s, elapsed_s < wanted_s))
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
            kinds: Vec::new(),
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
        assert!(found.one.is_some_and(|one| one.is_right() && one.threads == 1));
        let stability = found.stability.expect("it was asked for");
        assert!(stability.all.is_right() && !stability.is_interrupted);
        assert!(stability.all.times >= 1);
    }

    #[test]
    fn a_core_of_each_kind_is_measured_and_named_and_all_kinds_solve_together() {
        let cpus = rubus_host::process::affinity::allowed();
        let kind = |name: &str| CoreKind { name: name.into(), cpus: cpus.clone() };
        let plan = LinpackPlan {
            kinds: vec![kind("Cortex-A76"), kind("Cortex-A55")],
            threads: 2,
            stability_s: None,
            ..plan()
        };
        let found = linpack(&plan, &mut |_| {}, &AtomicBool::new(false)).expect("memory");
        let found = found.expect("a result");
        let names: Vec<_> = found.on_one_core().map(|one| one.core.as_deref()).collect();
        assert_eq!(names, [Some("Cortex-A76"), Some("Cortex-A55")]);
        assert!(found.on_one_core().all(|one| one.threads == 1 && one.is_right()));
        assert_eq!((found.all.threads, found.all.core.as_ref()), (2, None));
        // Where all are alike, the one core has no name.
        let plan = LinpackPlan { kinds: vec![kind("Cortex-A72")], ..plan };
        let found = linpack(&plan, &mut |_| {}, &AtomicBool::new(false)).expect("memory");
        let one = found.expect("a result").one.expect("one core");
        assert_eq!(one.core, None);
    }

    #[test]
    fn threads_have_the_fastest_cpus_and_a_single_one_the_last_of_its_kind() {
        let kind = |name: &str, cpus: [usize; 2]| CoreKind { name: name.into(), cpus: cpus.into() };
        let mut plan = LinpackPlan {
            kinds: vec![kind("big", [4, 5]), kind("little", [0, 1])],
            threads: 3,
            ..plan()
        };
        let cancel = AtomicBool::new(false);
        let cpus = |plan: &LinpackPlan| {
            let course = LinpackRun { plan, cancel: &cancel };
            let singles = course.singles().into_iter();
            let singles: Vec<_> = singles.map(|cores| cores.team.cpus().to_vec()).collect();
            (course.all().team.cpus().to_vec(), singles)
        };
        assert_eq!(cpus(&plan), (vec![4, 5, 0], vec![vec![5], vec![1]]));
        // More threads than CPUs are known: no two of them share one.
        plan.threads = 5;
        assert_eq!(cpus(&plan).0, Vec::<usize>::new());
        plan.kinds.clear();
        assert_eq!(cpus(&plan), (Vec::new(), vec![Vec::new()]));
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
