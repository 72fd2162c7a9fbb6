//! Counters of a client's requests, for status output and the log.

use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets of times: four to each doubling, from 1 µs to over an hour.
pub const BUCKETS: usize = 4 * 32;

/// Counters of one connection. Its thread writes them, others read them at any time.
#[derive(Debug)]
pub struct Tally {
    reads: AtomicU64,
    writes: AtomicU64,
    flushes: AtomicU64,
    others: AtomicU64,
    errors: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    times: [AtomicU64; BUCKETS],
}

/// The counters at one moment, of one connection or of several together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Reads that were answered.
    pub reads: u64,
    /// Writes that were answered.
    pub writes: u64,
    /// Flushes that were answered.
    pub flushes: u64,
    /// Everything else that was answered.
    pub others: u64,
    /// Those of all these that were answered with an error.
    pub errors: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// How many requests took how long, from the moment in which they were there to that in which
    /// the answer was sent; the bounds are [`bound_us`].
    pub times: [u64; BUCKETS],
}

impl Default for Counts {
    fn default() -> Self {
        Counts {
            reads: 0,
            writes: 0,
            flushes: 0,
            others: 0,
            errors: 0,
            read_bytes: 0,
            written_bytes: 0,
            times: [0; BUCKETS],
        }
    }
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            others: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            times: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }
}

/// What one turn of a connection adds.
#[derive(Debug, Default)]
pub(super) struct Added {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub others: u64,
    pub errors: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Of these, how many were answered at once.
    pub at_once: u64,
}

impl Tally {
    /// Adds the counts and resets them. Only one thread adds, so no lock is needed.
    #[inline]
    pub(super) fn add(&self, added: &mut Added) {
        let pairs = [
            (&self.reads, added.reads),
            (&self.writes, added.writes),
            (&self.flushes, added.flushes),
            (&self.others, added.others),
            (&self.errors, added.errors),
            (&self.read_bytes, added.read_bytes),
            (&self.written_bytes, added.written_bytes),
        ];
        for (counter, more) in pairs {
            if more > 0 {
                plus(counter, more);
            }
        }
        *added = Added::default();
    }

    /// Counts `requests` requests that took `ns` each.
    #[inline]
    pub(super) fn took(&self, requests: u64, ns: u64) {
        if requests > 0 {
            plus(&self.times[bucket(ns)], requests);
        }
    }

    /// The counters now.
    pub fn counts(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            reads: of(&self.reads),
            writes: of(&self.writes),
            flushes: of(&self.flushes),
            others: of(&self.others),
            errors: of(&self.errors),
            read_bytes: of(&self.read_bytes),
            written_bytes: of(&self.written_bytes),
            times: std::array::from_fn(|at| of(&self.times[at])),
        }
    }
}

/// There is one writer: this need not be one instruction, and so it is cheap.
#[inline]
fn plus(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

fn bucket(ns: u64) -> usize {
    let us = ns / 1000;
    if us < 4 {
        return us as usize;
    }
    // The two bits behind the highest.
    let octave = us.ilog2() as usize;
    let quarter = (us >> (octave - 2)) as usize & 3;
    (4 * (octave - 1) + quarter).min(BUCKETS - 1)
}

/// The first time in microseconds that is beyond a bucket.
pub fn bound_us(bucket: usize) -> u64 {
    let next = bucket + 1;
    if next < 4 {
        return next as u64;
    }
    let (octave, quarter) = (next / 4 + 1, next as u64 % 4);
    (4 + quarter) << (octave - 2)
}

impl Counts {
    /// The number of requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.flushes + self.others
    }

    /// Adds those of another connection.
    pub fn add(&mut self, other: &Counts) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.flushes += other.flushes;
        self.others += other.others;
        self.errors += other.errors;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        for (all, more) in self.times.iter_mut().zip(other.times) {
            *all += more;
        }
    }

    /// The time within which this share of the requests was answered, in microseconds and rounded up
    /// by a quarter at most; none without requests.
    pub fn percentile_us(&self, share: f64) -> Option<u64> {
        let all: u64 = self.times.iter().sum();
        let wanted = (all as f64 * share).ceil() as u64;
        let mut below = 0;
        for (bucket, count) in self.times.iter().enumerate() {
            below += count;
            if below >= wanted && below > 0 {
                return Some(bound_us(bucket));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_bucket_and_every_bucket_its_bound() {
        let mut before = 0;
        for us in (0..5000).chain([1 << 20, (1 << 33) - 1, u64::MAX / 1000]) {
            let bucket = bucket(us * 1000);
            assert!(bucket >= before && bucket < BUCKETS, "{us}");
            before = bucket;
            if bucket < BUCKETS - 1 {
                assert!(us < bound_us(bucket), "{us} in {bucket}");
                assert!(bucket == 0 || us >= bound_us(bucket - 1), "{us} in {bucket}");
                let most = us + us / 4 + 1;
                assert!(bound_us(bucket) <= most, "{us} in {bucket}");
            }
        }
    }

    #[test]
    fn half_of_the_requests_is_the_median() {
        let tally = Tally::default();
        tally.took(90, 10_000);
        tally.took(10, 1_000_000);
        let counts = tally.counts();
        assert_eq!(counts.percentile_us(0.5), Some(12));
        assert_eq!(counts.percentile_us(0.9), Some(12));
        assert_eq!(counts.percentile_us(0.99), Some(1024));
        assert_eq!(Counts::default().percentile_us(0.5), None);
    }
}
