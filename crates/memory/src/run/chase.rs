//! One load after the other, each from where the one before it said: the time that memory takes to answer.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use rubus_stats::{Rng, passes};
use rubus_vocabulary::memory::Chase;

use super::region::Region;
use rubus_host::ticks::now_ns;

/// Bytes of a line: as much as caches move at once on all boards that are known here.
const LINE: usize = 64;
/// Timed passes of each size.
const PASSES: usize = 7;
/// Approximate length of a pass.
const PASS_NS: u64 = 15_000_000;
/// Loads between two looks at the clock.
const BATCH: u64 = 4096;

/// The chase through working sets of 4 KiB, 8 KiB and so on up to `max_bytes`.
///
/// # Errors
/// When there is not that much memory.
pub fn chase(max_bytes: u64, seed: u64, cancel: &AtomicBool) -> std::io::Result<Vec<Chase>> {
    let mut region = Region::reserve(max_bytes as usize)?;
    let mut points = Vec::new();
    let mut size = 4096_u64;
    while size <= max_bytes && !cancel.load(Ordering::Relaxed) {
        let lines = &mut region.all_mut()[..size as usize];
        lay(lines, seed);
        if let Some(ns) = walk(lines) {
            points.push(Chase { working_set_bytes: size, ns });
        }
        size *= 2;
    }
    Ok(points)
}

/// Writes into each line which one is next: one cycle through all, in random order (Sattolo's algorithm).
fn lay(bytes: &mut [u8], seed: u64) {
    let count = bytes.len() / LINE;
    let mut random = Rng::from_seed(seed);
    let mut order: Vec<u32> = (0..count as u32).collect();
    for i in (1..count).rev() {
        let j = random.below(i as u64) as usize;
        order.swap(i, j);
    }
    for (line, next) in order.iter().enumerate() {
        let at = line * LINE;
        bytes[at..at + 4].copy_from_slice(&next.to_ne_bytes());
    }
}

fn walk(bytes: &[u8]) -> Option<rubus_stats::estimate::Estimate> {
    let lines = (bytes.len() / LINE) as u64;
    // Once through all, so that what fits into a cache is there.
    let mut at = steps(bytes, 0, lines);
    let mut timed = Vec::new();
    for _ in 0..PASSES {
        let (start, mut loads) = (now_ns(), 0);
        let elapsed = loop {
            at = steps(bytes, at, BATCH);
            loads += BATCH;
            let elapsed = now_ns() - start;
            if elapsed >= PASS_NS {
                break elapsed;
            }
        };
        timed.push((loads, elapsed as f64 / 1e9));
    }
    black_box(at);
    let rate = passes::rate(&timed)?;
    let ns = |loads_per_second: f64| 1e9 / loads_per_second;
    Some(rubus_stats::estimate::Estimate::new(ns(rate.value), ns(rate.high), ns(rate.low)))
}

/// Follows `count` lines; returns where it arrived.
fn steps(bytes: &[u8], from: usize, count: u64) -> usize {
    let mut at = from;
    for _ in 0..count {
        let place = at * LINE;
        // The slice is as long as its lines, and each names a line of it.
        let word = bytes[place..].first_chunk::<4>().copied().unwrap_or_default();
        at = u32::from_ne_bytes(word) as usize;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cycle_goes_through_every_line() {
        let mut bytes = vec![0_u8; 512 * LINE];
        lay(&mut bytes, 3);
        let mut seen = vec![false; 512];
        let mut at = 0;
        for _ in 0..512 {
            assert!(!seen[at], "line {at} twice");
            seen[at] = true;
            at = steps(&bytes, at, 1);
        }
        assert_eq!(at, 0, "the cycle closes");
    }

    #[test]
    fn sizes_double_up_to_the_largest() {
        let points = chase(32 << 10, 1, &AtomicBool::new(false)).expect("memory");
        let sizes: Vec<u64> = points.iter().map(|point| point.working_set_bytes).collect();
        assert_eq!(sizes, [4096, 8192, 16384, 32768]);
        assert!(points.iter().all(|point| point.ns.value > 0.0));
    }
}
