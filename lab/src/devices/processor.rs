//! Keeps a processor from all other programs for a known time.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::time::{ClockId, clock_gettime};

use super::moment::{Moment, Span};
use super::programs;

/// The share of the time that the busy thread must have run itself.
const OCCUPIED: f64 = 0.95;

/// Keeps one core busy for this long with a real-time thread, so that no ordinary program
/// runs on it, and says when that was.
///
/// The kernel keeps 5 % of each second for ordinary programs, so one occupation should stay below
/// 0.9 s, and there should be a second between two of them.
///
/// # Errors
/// When the core or the scheduling class is refused, or something else ran on the core meanwhile.
pub fn occupy_processor(core: usize, length: Duration) -> Result<Span> {
    let thread = std::thread::spawn(move || -> Result<Span> {
        let mut cores = rustix::thread::CpuSet::new();
        cores.set(core);
        rustix::thread::sched_setaffinity(None, &cores).context("could not bind to the core")?;
        let id = rustix::thread::gettid().as_raw_nonzero().to_string();
        programs::run("chrt", &["--fifo", "--pid", "50", &id])?;
        let ran = ran_for();
        let began = Moment::now();
        let until = Instant::now() + length;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        let ended = Moment::now();
        let span = Span { began, ended };
        let ran = ran_for() - ran;
        if ran < span.length().mul_f64(OCCUPIED) {
            bail!("core {core} was busy for only {ran:?} of {:?}", span.length());
        }
        Ok(span)
    });
    thread.join().map_err(|_| anyhow::anyhow!("the busy thread panicked"))?
}

/// How long the calling thread has run.
fn ran_for() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
