//! A series in equal bins: what the loop counts while it runs.
//!
//! Here is the cutting into bins and the coarsening of bins that hold too few operations. What a
//! series says about its mean is in `interval`, when it is long enough in `stop`.

use serde::{Deserialize, Serialize};

/// A measured series in equal bins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Length of a bin in seconds.
    #[serde(deserialize_with = "length_of_a_bin")]
    pub bin_s: f64,
    /// Bytes moved in each bin, warm-up excluded. Together they fit into 64 bits.
    #[serde(deserialize_with = "bytes_that_add_up")]
    pub bytes: Vec<u64>,
}

fn bytes_that_add_up<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<u64>, D::Error> {
    let bytes = Vec::<u64>::deserialize(deserializer)?;
    let sum = bytes.iter().try_fold(0_u64, |sum, bin| sum.checked_add(*bin));
    sum.map(|_| bytes)
        .ok_or_else(|| serde::de::Error::custom("its bins add up to more than 64 bits hold"))
}

fn length_of_a_bin<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let bin_s = f64::deserialize(deserializer)?;
    if (1e-9..=1e9).contains(&bin_s) {
        Ok(bin_s)
    } else {
        Err(serde::de::Error::custom(format!("a bin of {bin_s} s")))
    }
}

/// Length of a bin in nanoseconds: 100 ms.
pub const BIN_NS: u64 = 100_000_000;

/// What happened in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Operations that completed in the bin.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// The longest time without any completion, in nanoseconds, of those that *ended* in this bin;
    /// it may have begun many bins ago. 0 in a bin without completions.
    pub longest_gap_ns: u64,
}

/// Cuts completions into bins. All times are nanoseconds of one monotonic clock.
///
/// Each bin goes to the closure exactly once and in order, the empty ones included: a device that
/// does nothing for a second gives ten empty bins.
#[derive(Clone, Debug)]
pub struct Binner {
    bin_ns: u64,
    edge_ns: u64,
    last_ns: u64,
    current: Bin,
}

impl Binner {
    /// Starts the first bin at `start_ns`, with bins of [`BIN_NS`].
    pub fn new(start_ns: u64) -> Self {
        Binner::with_bin_ns(start_ns, BIN_NS)
    }

    /// Starts the first bin at `start_ns`, with bins of `bin_ns` (at least 1) nanoseconds.
    pub fn with_bin_ns(start_ns: u64, bin_ns: u64) -> Self {
        let bin_ns = bin_ns.max(1);
        Binner {
            bin_ns,
            edge_ns: start_ns.saturating_add(bin_ns),
            last_ns: start_ns,
            current: Bin::default(),
        }
    }

    /// Counts `ops` completions of together `bytes` that were seen at `now_ns`, after closing the
    /// bins that ended before.
    #[inline(always)]
    pub fn add(&mut self, now_ns: u64, ops: u64, bytes: u64, closed: impl FnMut(Bin)) {
        if now_ns >= self.edge_ns {
            self.advance(now_ns, closed);
        }
        let gap_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = now_ns;
        self.current.ops += ops;
        self.current.bytes += bytes;
        if gap_ns > self.current.longest_gap_ns {
            self.current.longest_gap_ns = gap_ns;
        }
    }

    /// Closes the bins that have ended by `now_ns`; for the times when nothing completes.
    #[cold]
    pub fn advance(&mut self, now_ns: u64, mut closed: impl FnMut(Bin)) {
        while now_ns >= self.edge_ns {
            closed(std::mem::take(&mut self.current));
            match self.edge_ns.checked_add(self.bin_ns) {
                Some(edge_ns) => self.edge_ns = edge_ns,
                // The end of time: 584 years after the clock began.
                None => return,
            }
        }
    }

    /// The time at which the current bin ends.
    pub fn edge_ns(&self) -> u64 {
        self.edge_ns
    }

    /// How long nothing has completed, at `now_ns`, in nanoseconds.
    pub fn idle_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.last_ns)
    }
}

/// Sums groups of `factor` neighbours; an incomplete group at the end is left out.
pub fn coarsen(series: &[f64], factor: usize) -> Vec<f64> {
    let groups = series.chunks_exact(factor.max(1));
    groups.map(|group| group.iter().sum()).collect()
}

/// How many bins to join so that a bin holds at least four operations on average, as long as at
/// least ten bins remain.
///
/// Below that a bin counts 0 or 1 and its variance says more about the clock than about the
/// device: a perfectly regular device of 5 operations per second has a coefficient of variation of
/// 100 % in bins of 100 ms.
pub fn coarsening(operations: u64, bins: usize) -> usize {
    const MIN_PER_BIN: u64 = 4;
    const MIN_BINS: usize = 10;
    if operations == 0 || bins < 2 * MIN_BINS {
        return 1;
    }
    let wanted = (MIN_PER_BIN * bins as u64).div_ceil(operations);
    usize::try_from(wanted).unwrap_or(usize::MAX).clamp(1, bins / MIN_BINS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(ops: u64, longest_gap_ns: u64) -> Bin {
        Bin { ops, bytes: ops * 512, longest_gap_ns }
    }

    #[test]
    fn completions_fall_into_their_bins() {
        let mut bins = Vec::new();
        let mut binner = Binner::with_bin_ns(1000, 100);
        for now_ns in [1010, 1040, 1099, 1100, 1420] {
            binner.add(now_ns, 1, 512, |bin| bins.push(bin));
        }
        binner.advance(1500, |bin| bins.push(bin));
        let expected = [bin(3, 59), bin(1, 1), bin(0, 0), bin(0, 0), bin(1, 320)];
        assert_eq!(bins, expected);
        assert_eq!(binner.edge_ns(), 1600);
        assert_eq!(binner.idle_ns(1500), 80);
    }

    #[test]
    fn a_clock_that_stands_or_goes_back_does_no_harm() {
        let mut binner = Binner::new(50);
        binner.add(40, 1, 1, |_| panic!("no bin has ended"));
        binner.add(40, 1, 1, |_| panic!("no bin has ended"));
        assert_eq!(binner.idle_ns(0), 0);
    }

    #[test]
    fn the_end_of_time_ends_the_bins() {
        let mut binner = Binner::with_bin_ns(u64::MAX - 10, 7);
        let mut closed = 0;
        binner.advance(u64::MAX, |_| closed += 1);
        assert_eq!(closed, 1);
    }

    #[test]
    fn coarsening_joins_only_what_is_too_thin() {
        // 1000 operations in 100 bins: as they are. 50 in 100: 8 bins give four each.
        assert_eq!(coarsening(1000, 100), 1);
        assert_eq!(coarsening(50, 100), 8);
        // Ten bins remain, however few operations there are.
        assert_eq!(coarsening(1, 100), 10);
        assert_eq!(coarsening(3, 15), 1);
        assert_eq!(coarsening(0, 100), 1);
        assert_eq!(coarsen(&[1.0, 2.0, 3.0, 4.0, 5.0], 2), [3.0, 7.0]);
        assert_eq!(coarsen(&[1.0, 2.0], 0), [1.0, 2.0]);
    }
}
