//! Reading, writing and copying memory in order.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use rubus_stats::passes;
use rubus_vocabulary::memory::{Bandwidth, Work};

use super::region::Region;
use rubus_host::ticks::now_ns;

/// Time for one figure, in seconds.
const SECONDS: f64 = 0.6;
/// Minimum length of a timed pass, so that reading the clock does not count.
const PASS_NS: u64 = 20_000_000;
/// Passes of each thread at least.
const MIN_PASSES: usize = 5;

/// The rates of all kinds of work by `threads` threads at once, each on `buffer_bytes` of its own.
///
/// # Errors
/// When there is not that much memory.
pub fn bandwidth(
    threads: u32,
    all_cores: bool,
    buffer_bytes: u64,
    cancel: &AtomicBool,
) -> std::io::Result<Vec<Bandwidth>> {
    let mut buffers = Vec::new();
    for _ in 0..threads {
        let mut region = Region::reserve(buffer_bytes as usize)?;
        // Every page must be there, and be a page of its own and not the kernel's page of zeros.
        region.all_mut().fill(1);
        buffers.push(region);
    }
    let mut rows = Vec::new();
    for work in Work::ALL {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        let timed = together(&mut buffers, work);
        let passes_done: usize = timed.iter().map(Vec::len).sum();
        if let Some(bytes_per_second) = of_all(&timed) {
            rows.push(Bandwidth {
                work,
                threads,
                all_cores,
                buffer_bytes,
                bytes_per_second,
                passes: passes_done as u32,
            });
        }
    }
    Ok(rows)
}

/// The passes of each thread: bytes and seconds. All begin at the same time.
fn together(buffers: &mut [Region], work: Work) -> Vec<Vec<(u64, f64)>> {
    let barrier = Barrier::new(buffers.len());
    let barrier = &barrier;
    std::thread::scope(|scope| {
        let threads: Vec<_> = buffers
            .iter_mut()
            .map(|buffer| scope.spawn(move || alone(buffer.all_mut(), work, barrier)))
            .collect();
        let timed = threads.into_iter().map(|thread| thread.join());
        timed.map(|passes| passes.unwrap_or_default()).collect()
    })
}

fn alone(buffer: &mut [u8], work: Work, barrier: &Barrier) -> Vec<(u64, f64)> {
    // Once untimed: caches, page tables and the clock of the processor settle.
    pass(buffer, work);
    barrier.wait();
    let (begun, mut timed) = (now_ns(), Vec::new());
    while timed.len() < MIN_PASSES || (now_ns() - begun) as f64 / 1e9 < SECONDS {
        let (start, mut bytes) = (now_ns(), 0);
        let elapsed = loop {
            bytes += pass(buffer, work);
            let elapsed = now_ns() - start;
            if elapsed >= PASS_NS {
                break elapsed;
            }
        };
        timed.push((bytes, elapsed as f64 / 1e9));
    }
    timed
}

/// Goes through the buffer once; gives the bytes that count.
fn pass(buffer: &mut [u8], work: Work) -> u64 {
    match work {
        Work::Read => {
            black_box(sum(black_box(buffer)));
            buffer.len() as u64
        }
        Work::Write => {
            black_box(&mut *buffer).fill(black_box(7));
            buffer.len() as u64
        }
        Work::Copy => {
            let (from, to) = buffer.split_at_mut(buffer.len() / 2);
            let length = from.len().min(to.len());
            black_box(&mut *to)[..length].copy_from_slice(&black_box(from)[..length]);
            length as u64
        }
    }
}

/// Reads every byte, with enough independent sums that the additions are never the bottleneck.
fn sum(buffer: &[u8]) -> u64 {
    const LANES: usize = 16;
    let mut sums = [0_u64; LANES];
    for block in buffer.chunks_exact(LANES * 8) {
        for (lane, word) in block.chunks_exact(8).enumerate() {
            if let Ok(word) = word.try_into() {
                sums[lane] = sums[lane].wrapping_add(u64::from_ne_bytes(word));
            }
        }
    }
    sums.iter().fold(0, |all, one| all.wrapping_add(*one))
}

/// The rate of all threads together: rounds of passes that ran at the same time are one observation.
fn of_all(timed: &[Vec<(u64, f64)>]) -> Option<rubus_stats::estimate::Estimate> {
    let rounds = timed.iter().map(Vec::len).min()?;
    let round = |number: usize| {
        let rate: f64 = timed.iter().map(|passes| passes[number].0 as f64 / passes[number].1).sum();
        (rate as u64, 1.0)
    };
    let rounds: Vec<(u64, f64)> = (0..rounds).map(round).collect();
    passes::rate(&rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_read_and_half_of_them_are_copied() {
        let mut buffer = vec![0_u8; 64 << 10];
        for (i, word) in buffer.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&(i as u64).to_ne_bytes());
        }
        let words = (64 << 10) / 8;
        assert_eq!(sum(&buffer), words * (words - 1) / 2);
        assert_eq!(pass(&mut buffer, Work::Copy), 32 << 10);
        assert_eq!(buffer[..32 << 10], buffer[32 << 10..]);
        assert_eq!(pass(&mut buffer, Work::Write), 64 << 10);
        assert!(buffer.iter().all(|&byte| byte == 7));
    }

    #[test]
    fn rates_of_threads_add_up() {
        let even = vec![(1000_u64, 1.0); 6];
        let rate = of_all(&[even.clone(), even]).expect("a rate");
        assert!((rate.value - 2000.0).abs() < 1.0);
    }

    #[test]
    fn each_kind_of_work_has_its_figure() {
        let rows = bandwidth(2, true, 1 << 20, &AtomicBool::new(false)).expect("memory");
        let works: Vec<Work> = rows.iter().map(|row| row.work).collect();
        assert_eq!(works, Work::ALL);
        assert!(rows.iter().all(|row| row.bytes_per_second.value > 0.0));
        assert!(rows.iter().all(|row| row.passes >= 10 && row.threads == 2));
    }
}
