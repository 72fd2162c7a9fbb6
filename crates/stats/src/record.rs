//! The bins of a job, kept in bounded memory however long it runs.
//!
//! For the first minutes every bin is kept as it came. After that the older ones are joined two by
//! two, again and again, so that a few thousand bins always cover the whole job; the stalls in them are
//! found before they are joined, at the full resolution, and kept apart. Rates, intervals and
//! drift of a long job so stand on longer bins, which only makes them steadier, and its stalls on the
//! same bins as those of a short one.

use std::borrow::Cow;

use super::series::Bin;
use super::stalls::Episode;
use super::window::Window;

/// Maximum number of bins before the older ones are joined; even.
pub const MAX_BINS: usize = 2400;
/// Number of the latest bins that always keep their full resolution, so that stalls and pace can be told apart.
const FRESH_BINS: usize = 600;
/// When more stalls than this were seen, the series itself shows how they vary, and where they were is of
/// no further use.
const MAX_STALLS: usize = 1000;

/// The bins of one job, warm-up included until it can be forgotten.
#[derive(Clone, Debug)]
pub struct Record {
    bin_s: f64,
    warm_up_bins: usize,
    /// Bins that came.
    pushed: usize,
    /// Bins of the warm-up that were forgotten.
    forgotten: usize,
    /// Each `factor` bins long. As long as that is 1, all that came; else the older ones.
    bins: Vec<Bin>,
    factor: usize,
    /// As they came, when the older ones are longer.
    fresh: Vec<Bin>,
    /// In `bins`, when they are longer; counted from the end of the warm-up.
    stalls: Vec<Episode>,
    has_many_stalls: bool,
}

/// The part of a record that counts, in bins of one length.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// The bins, in order of time.
    pub bins: Cow<'a, [Bin]>,
    /// Length of a bin in seconds.
    pub bin_s: f64,
    /// The stalls in it, in order.
    pub stalls: Vec<Episode>,
    /// There were too many stalls to list; `stalls` is empty.
    pub has_many_stalls: bool,
}

impl View<'_> {
    /// The bins as a window.
    pub fn window(&self) -> Window<'_> {
        Window { bins: &self.bins, bin_s: self.bin_s }
    }
}

impl Record {
    /// An empty record of bins of `bin_s` seconds, of which the first `warm_up_bins` do not count.
    pub fn new(bin_s: f64, warm_up_bins: usize) -> Self {
        Record {
            bin_s,
            warm_up_bins,
            pushed: 0,
            forgotten: 0,
            bins: Vec::new(),
            factor: 1,
            fresh: Vec::new(),
            stalls: Vec::new(),
            has_many_stalls: false,
        }
    }

    /// How many bins came, warm-up included.
    pub fn len(&self) -> usize {
        self.pushed
    }

    /// Whether none came.
    pub fn is_empty(&self) -> bool {
        self.pushed == 0
    }

    /// How many values are kept in memory: bins and stalls.
    pub fn kept(&self) -> usize {
        self.bins.len() + self.fresh.len() + self.stalls.len()
    }

    /// How many bins at the start do not count.
    pub fn warm_up_bins(&self) -> usize {
        self.warm_up_bins.min(self.pushed)
    }

    /// Changes the length of the warm-up. Of no effect once bins have been joined.
    pub fn set_warm_up_bins(&mut self, warm_up_bins: usize) {
        if self.factor == 1 {
            self.warm_up_bins = warm_up_bins.max(self.forgotten);
        }
    }

    /// The bins that came so far, as long as nothing of them was joined or forgotten.
    pub fn all(&self) -> &[Bin] {
        &self.bins
    }

    /// Seconds that count so far.
    pub fn measured_s(&self) -> f64 {
        (self.pushed - self.warm_up_bins()) as f64 * self.bin_s
    }

    /// Takes the next bin.
    pub fn push(&mut self, bin: Bin) {
        self.pushed += 1;
        if self.factor > 1 {
            self.fresh.push(bin);
            if self.fresh.len() >= (2 * FRESH_BINS).max(FRESH_BINS + 2 * self.factor) {
                self.settle();
            }
            return;
        }
        self.bins.push(bin);
        if self.bins.len() >= MAX_BINS {
            let warm = (self.warm_up_bins - self.forgotten).min(self.bins.len());
            self.bins.drain(..warm);
            self.forgotten += warm;
        }
        if self.bins.len() >= MAX_BINS {
            self.fresh = std::mem::take(&mut self.bins);
            self.factor = 2;
            self.settle();
        }
    }

    /// What counts, warm-up excluded.
    pub fn view(&self) -> View<'_> {
        if self.factor == 1 {
            let warm = self.warm_up_bins() - self.forgotten;
            let bins = &self.bins[warm..];
            let window = Window { bins, bin_s: self.bin_s };
            return View {
                stalls: window.stalls(),
                bins: Cow::Borrowed(bins),
                bin_s: self.bin_s,
                has_many_stalls: false,
            };
        }
        let mut bins = self.bins.clone();
        bins.extend(joined(&self.fresh, self.factor));
        let mut stalls = self.stalls.clone();
        stalls.extend(self.fresh_stalls());
        View {
            bins: Cow::Owned(bins),
            bin_s: self.bin_s * self.factor as f64,
            has_many_stalls: self.has_many_stalls,
            stalls: if self.has_many_stalls { Vec::new() } else { stalls },
        }
    }

    /// When the fresh bins begin, in nanoseconds from the end of the warm-up.
    fn fresh_start_ns(&self) -> u64 {
        ((self.bins.len() * self.factor) as f64 * self.bin_s * 1e9) as u64
    }

    fn fresh_stalls(&self) -> Vec<Episode> {
        let window = Window { bins: &self.fresh, bin_s: self.bin_s };
        let start_ns = self.fresh_start_ns();
        let later = |stall: Episode| Episode { start_ns: stall.start_ns + start_ns, ..stall };
        window.stalls().into_iter().map(later).collect()
    }

    /// Joins the older of the fresh bins to the others, and those two by two when there are too many.
    fn settle(&mut self) {
        // As many as make the number of the others even, so that each has a partner to be joined with.
        let groups = self.fresh.len().saturating_sub(FRESH_BINS) / self.factor;
        let old = (groups - (self.bins.len() + groups) % 2) * self.factor;
        let cut_ns = self.fresh_start_ns() + (old as f64 * self.bin_s * 1e9) as u64;
        for stall in self.fresh_stalls() {
            if stall.start_ns >= cut_ns {
                continue;
            }
            self.stalls.push(stall);
            // One that reaches beyond the cut counts here, and so not there again.
            let beyond_s = stall.end_ns().saturating_sub(cut_ns) as f64 / 1e9;
            let touched = (beyond_s / self.bin_s).ceil() as usize;
            for bin in self.fresh[old..].iter_mut().take(touched) {
                bin.longest_gap_ns = 0;
            }
        }
        if self.stalls.len() > MAX_STALLS {
            self.has_many_stalls = true;
        }
        if self.has_many_stalls {
            self.stalls = Vec::new();
        }
        self.bins.extend(joined(&self.fresh[..old], self.factor));
        self.fresh.drain(..old);
        if self.bins.len() >= MAX_BINS {
            self.bins = joined(&self.bins, 2).collect();
            self.factor *= 2;
        }
    }
}

/// Sums groups of `factor` neighbours; an incomplete group at the end is left out, and so are the
/// gaps, whose stalls are kept apart.
fn joined(bins: &[Bin], factor: usize) -> impl Iterator<Item = Bin> + '_ {
    bins.chunks_exact(factor).map(|group| Bin {
        ops: group.iter().fold(0, |sum, bin| sum.saturating_add(bin.ops)),
        bytes: group.iter().fold(0, |sum, bin| sum.saturating_add(bin.bytes)),
        longest_gap_ns: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn bin(ops: u64, gap_ms: u64) -> Bin {
        Bin { ops, bytes: ops * 4096, longest_gap_ns: gap_ms * MS }
    }

    /// A record of `bins` bins of 0.1 s after a warm-up of 5.
    fn record(bins: usize, next: impl Fn(usize) -> Bin) -> Record {
        let mut record = Record::new(0.1, 5);
        (0..bins).for_each(|i| record.push(next(i)));
        record
    }

    #[test]
    fn a_short_record_is_kept_as_it_is() {
        let record = record(2000, |i| bin(i as u64, 1));
        let view = record.view();
        assert_eq!(view.bins.len(), 1995);
        assert_eq!(view.bins[0].ops, 5);
        assert!((view.bin_s - 0.1).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_lost_by_joining() {
        for bins in [2399, 2405, 2406, 5000, 36_005, 360_001] {
            let record = record(bins, |i| bin(i as u64 % 7, 1));
            let view = record.view();
            let counted = view.bins.len() * (view.bin_s / 0.1).round() as usize;
            let expected: u64 = (5..5 + counted).map(|i| i as u64 % 7).sum();
            assert_eq!(view.window().operations(), expected, "{bins}");
            let left_out = bins - 5 - counted;
            assert!(left_out * 500 < bins, "{left_out} of {bins}");
            assert!((1000..4000).contains(&view.bins.len()), "{}", view.bins.len());
        }
    }

    #[test]
    fn ten_hours_take_no_more_than_a_few_thousand_values() {
        let mut record = Record::new(0.1, 5);
        let mut most = 0;
        for i in 0..360_000_usize {
            // A stall of 300 ms every 20 s, and thus more than are listed.
            record.push(match i % 200 {
                100 | 101 => bin(0, 0),
                102 => bin(800, 300),
                _ => bin(1000, 1),
            });
            most = most.max(record.kept());
        }
        assert!(most <= MAX_BINS + 2 * FRESH_BINS + MAX_STALLS + 600, "{most}");
        let view = record.view();
        assert!(view.has_many_stalls);
        assert!((view.window().seconds() - 36_000.0).abs() < 60.0);
    }

    #[test]
    fn stalls_are_found_where_they_were_before_the_bins_were_joined() {
        let at = [700_usize, 1800, 1805, 2399, 4000, 9999];
        let record = record(10_005, |i| match i.checked_sub(5) {
            Some(i) if at.contains(&i) => bin(900, 80),
            _ => bin(1000, 1),
        });
        let stalls = record.view().stalls;
        let found: Vec<u64> = stalls.iter().map(|stall| stall.end_ns() / (100 * MS)).collect();
        assert_eq!(found, at.map(|place| place as u64 + 1));
        assert!(stalls.iter().all(|stall| stall.length_ns == 80 * MS));
    }

    #[test]
    fn a_stall_across_the_seam_counts_once() {
        // The first joining happens at bin 2405 and cuts 600 bins before the end.
        for from in 1780..1830 {
            let record = record(6000, |i| match i {
                i if (from..from + 20).contains(&i) => bin(0, 0),
                i if i == from + 20 => bin(500, 2050),
                _ => bin(1000, 1),
            });
            let lost: u64 = record.view().stalls.iter().map(|stall| stall.length_ns).sum();
            assert!((2000 * MS..2200 * MS).contains(&lost), "{from}: {lost}");
        }
    }

    #[test]
    fn the_pace_of_a_limited_device_stays_no_stall() {
        let record = record(50_000, |_| bin(50, 98));
        assert_eq!(record.view().stalls, []);
    }

    #[test]
    fn a_long_warm_up_is_forgotten_as_it_passes() {
        let mut record = Record::new(0.1, 36_000);
        let mut most = 0;
        for i in 0..40_000 {
            record.push(bin(u64::from(i >= 36_000), 1));
            most = most.max(record.kept());
        }
        assert!(most <= MAX_BINS + 2 * FRESH_BINS, "{most}");
        assert_eq!(record.warm_up_bins(), 36_000);
        let view = record.view();
        assert!((view.window().operations() as usize).abs_diff(4000) < 4);
    }
}
