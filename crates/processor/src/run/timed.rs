//! Work that is done over and over by one thread or by all, and how fast.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use rubus_stats::passes;
use rubus_vocabulary::processor::{Rate, Rates, starved};

use rubus_host::process::schedstat::Account;
use rubus_host::ticks::now_ns;

/// Timed passes of a figure: enough for an interval.
const PASSES: f64 = 10.0;
/// Least duration of a pass, so that reading the clock does not count.
const MIN_PASS_NS: f64 = 5e6;

/// Something that one thread does again and again, with what it needs for that.
pub trait Work {
    /// Does it once; gives how much that was, in bytes or whatever the figure counts.
    fn once(&mut self) -> u64;
}

impl<F: FnMut() -> u64> Work for F {
    fn once(&mut self) -> u64 {
        self()
    }
}

/// What one thread has seen.
struct Seen {
    passes: Vec<(u64, f64)>,
    waited_ns: Option<u64>,
    elapsed_ns: u64,
}

/// The rate on one core and on all `cores`, each measured for `seconds`. `prepare` makes the work of one thread, on that
/// thread.
///
/// # Errors
/// The first error of `prepare`.
pub fn rates<W: Work, E: Send>(
    cores: u32,
    seconds: f64,
    cancel: &AtomicBool,
    prepare: &(dyn Fn() -> Result<W, E> + Sync),
) -> Result<Rates, E> {
    let mut rates = Rates { one_core: of(1, seconds, cancel, prepare)?, all_cores: None };
    if cores > 1 && !cancel.load(Ordering::Relaxed) {
        rates.all_cores = of(cores, seconds, cancel, prepare)?;
    }
    Ok(rates)
}

fn of<W: Work, E: Send>(
    threads: u32,
    seconds: f64,
    cancel: &AtomicBool,
    prepare: &(dyn Fn() -> Result<W, E> + Sync),
) -> Result<Option<Rate>, E> {
    let barrier = &Barrier::new(threads as usize);
    let all: Result<Vec<Seen>, E> = std::thread::scope(|scope| {
        let alone = || alone(prepare(), seconds, barrier, cancel);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(alone)).collect();
        let seen = threads.into_iter().map(|thread| match thread.join() {
            Ok(seen) => seen,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        // All are waited for, whatever the first says.
        let seen: Vec<Result<Seen, E>> = seen.collect();
        seen.into_iter().collect()
    });
    Ok(together(threads, &all?))
}

fn alone<W: Work, E>(
    work: Result<W, E>,
    seconds: f64,
    barrier: &Barrier,
    cancel: &AtomicBool,
) -> Result<Seen, E> {
    let account = Account::of_this_thread();
    let mut work = work;
    if let Ok(work) = &mut work {
        // Untimed: caches, page tables and the clock of the processor settle.
        let begun = now_ns();
        while ((now_ns() - begun) as f64) < (seconds * 1e9 / PASSES).min(5e7) {
            work.once();
        }
    }
    // Also one that has no work must let the others begin.
    barrier.wait();
    let mut work = work?;
    let pass_ns = (seconds * 1e9 / PASSES).max(MIN_PASS_NS);
    let (begun, waited) = (now_ns(), account.run_delay_ns());
    let mut passes = Vec::new();
    while ((now_ns() - begun) as f64) < seconds * 1e9 && !cancel.load(Ordering::Relaxed) {
        let (start, mut amount) = (now_ns(), 0);
        let elapsed = loop {
            amount += work.once();
            let elapsed = now_ns() - start;
            if elapsed as f64 >= pass_ns {
                break elapsed;
            }
        };
        passes.push((amount, elapsed as f64 / 1e9));
    }
    let elapsed_ns = now_ns() - begun;
    let waited_ns = account.run_delay_ns().zip(waited);
    Ok(Seen {
        passes,
        waited_ns: waited_ns.map(|(after, before)| after.saturating_sub(before)),
        elapsed_ns,
    })
}

/// Passes of all threads that ran at the same time are one observation.
fn together(threads: u32, seen: &[Seen]) -> Option<Rate> {
    let rounds = seen.iter().map(|seen| seen.passes.len()).min()?;
    let round = |number: usize| {
        let rates = seen.iter().map(|seen| {
            let (amount, seconds) = seen.passes[number];
            amount as f64 / seconds
        });
        // The unit is a thousandth, so that what is done once in a second is not rounded away.
        ((rates.sum::<f64>() * 1e3) as u64, 1.0)
    };
    let rounds: Vec<(u64, f64)> = (0..rounds).map(round).collect();
    let shares =
        seen.iter().filter_map(|seen| Some(seen.waited_ns? as f64 / seen.elapsed_ns.max(1) as f64));
    let share = shares.fold(0.0, f64::max);
    Some(Rate {
        threads,
        per_second: passes::rate(&rounds)?.scaled(1e-3),
        passes: seen.iter().map(|seen| seen.passes.len()).sum::<usize>() as u32,
        doubts: starved(share),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_vocabulary::doubt::Doubt;

    #[test]
    fn rates_of_threads_add_up_and_waiting_is_a_doubt() {
        let seen =
            |waited_ns| Seen { passes: vec![(1000, 0.5); 4], waited_ns, elapsed_ns: 2_000_000_000 };
        let rate = together(2, &[seen(Some(0)), seen(None)]).expect("passes");
        assert!((rate.per_second.value - 4000.0).abs() < 1e-6);
        assert_eq!((rate.passes, rate.doubts.len()), (8, 0));
        let starved = together(2, &[seen(Some(0)), seen(Some(500_000_000))]).expect("passes");
        assert_eq!(starved.doubts, [Doubt::CpuStarved { share: 0.25 }]);
    }

    #[test]
    fn one_that_cannot_begin_lets_the_others_end() {
        let turn = std::sync::atomic::AtomicU32::new(0);
        let prepare = || match turn.fetch_add(1, Ordering::Relaxed) {
            2 => Err("no more memory"),
            _ => Ok(|| 1_u64),
        };
        let cancel = AtomicBool::new(false);
        let failed = rates(2, 0.01, &cancel, &prepare);
        assert_eq!(failed.expect_err("the third fails"), "no more memory");
    }

    #[test]
    fn both_figures_are_there_and_a_single_core_has_one() {
        let prepare = || Ok::<_, ()>(|| std::hint::black_box(7_u64));
        let cancel = AtomicBool::new(false);
        let two = rates(2, 0.02, &cancel, &prepare).expect("no error");
        assert_eq!(two.all_cores.map(|rate| rate.threads), Some(2));
        let one = rates(1, 0.02, &cancel, &prepare).expect("no error");
        assert!(one.one_core.is_some() && one.all_cores.is_none());
    }
}
