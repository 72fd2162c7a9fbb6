//! What the workers of a job have reported so far, joined into one series, in bounded memory.
//!
//! Of the slices only the first seconds are kept, for a job that is over before there are bins, and
//! the last one, for the rate of the moment; the others are summed in bins and forgotten.

use std::collections::VecDeque;
use std::sync::Arc;

use rubus_stats::{Batches, Bin, Histogram};
use rubus_vocabulary::result::LatencyIntervals;

use crate::mailbox::{Mailbox, SLICE_NS, SLICES_PER_BIN, Slice, SlowSpan, WorkerEnd, WorkerReport};
use crate::slow::SlowSpans;

/// With several workers a gap must be at least two slices long to be told from chance.
const MIN_GAP_NS: u64 = 2 * SLICE_NS;
/// Number of slices kept from the start: 5 s.
const EARLY_SLICES: usize = 1000;
/// Number of slices kept at the end: 1 s.
const RECENT_SLICES: usize = 200;

/// The joined news of all workers of one job.
#[derive(Debug)]
pub(crate) struct Completions {
    /// When the job began, on the monotonic clock.
    pub(crate) origin_ns: u64,
    workers: Vec<WorkerCompletions>,
    /// Slow spans of the workers.
    slow: SlowSpans,
    /// Times in which several workers completed nothing, or the one there is.
    gaps: SlowSpans,
    early: Vec<Slice>,
    recent: VecDeque<Slice>,
    /// Slices joined so far.
    slices: u64,
    /// Without any operation, up to the last.
    empty_slices: u64,
    /// The slices that are not yet in a bin, summed.
    open_bin: Bin,
    /// Bins not taken yet.
    bins: Vec<Bin>,
    operations: u64,
    bytes: u64,
    rests_until_ns: u64,
}

#[derive(Debug, Default)]
struct WorkerCompletions {
    /// Slices of this worker that are not yet joined with those of the others.
    pending: VecDeque<Slice>,
    report: Option<WorkerReport>,
}

impl Completions {
    /// Nothing yet, from `workers` workers that began at `origin_ns`.
    pub(crate) fn new(origin_ns: u64, workers: usize) -> Self {
        Completions {
            origin_ns,
            workers: (0..workers).map(|_| WorkerCompletions::default()).collect(),
            slow: SlowSpans::default(),
            gaps: SlowSpans::default(),
            early: Vec::new(),
            recent: VecDeque::new(),
            slices: 0,
            empty_slices: 0,
            open_bin: Bin::default(),
            bins: Vec::new(),
            operations: 0,
            bytes: 0,
            rests_until_ns: 0,
        }
    }

    /// Empties the mailboxes, one per worker.
    pub(crate) fn gather(&mut self, mailboxes: &[Arc<Mailbox>]) {
        let is_single = self.workers.len() == 1;
        for (worker, mailbox) in self.workers.iter_mut().zip(mailboxes) {
            self.rests_until_ns = self.rests_until_ns.max(mailbox.rests_until_ns());
            let mut news = mailbox.news();
            worker.pending.extend(news.slices.drain(..));
            for span in news.slow.drain(..) {
                if is_single && span.is_gap { self.gaps.push(span) } else { self.slow.push(span) }
            }
            if let Some(report) = news.report.take() {
                worker.report = Some(report);
            }
        }
        self.join_slices();
    }

    /// Joins the slices that all workers have reached; a worker that has ended does not hold up the others.
    fn join_slices(&mut self) {
        let running = self.workers.iter().filter(|worker| worker.report.is_none());
        let reached = match running.map(|worker| worker.pending.len()).min() {
            Some(least) => least,
            None => self.workers.iter().map(|worker| worker.pending.len()).max().unwrap_or(0),
        };
        for _ in 0..reached {
            let mut joined = Slice::default();
            let of_workers =
                self.workers.iter_mut().filter_map(|worker| worker.pending.pop_front());
            for slice in of_workers {
                joined.operations = joined.operations.saturating_add(slice.operations);
                joined.bytes += slice.bytes;
                joined.longest_gap_ns = slice.longest_gap_ns;
            }
            if self.workers.len() > 1 {
                joined.longest_gap_ns = self.joint_gap(&joined);
            }
            self.take(joined);
        }
    }

    /// With several workers a gap is a time in which none of them completed anything; all that can be
    /// told is the number of empty slices in a row. Gives its length if it ends in this slice.
    fn joint_gap(&mut self, slice: &Slice) -> u64 {
        if slice.operations == 0 {
            self.empty_slices += 1;
            return 0;
        }
        let gap_ns = std::mem::take(&mut self.empty_slices) * SLICE_NS;
        if gap_ns >= MIN_GAP_NS {
            let end_ns = self.origin_ns + self.slices * SLICE_NS;
            let span = self.describe_gap(end_ns - gap_ns, end_ns);
            self.gaps.push(span);
        }
        gap_ns
    }

    fn take(&mut self, slice: Slice) {
        self.slices += 1;
        self.operations += u64::from(slice.operations);
        self.bytes += slice.bytes;
        if self.early.len() < EARLY_SLICES {
            self.early.push(slice);
        }
        if self.recent.len() == RECENT_SLICES {
            self.recent.pop_front();
        }
        self.recent.push_back(slice);
        add(&mut self.open_bin, &slice);
        if self.slices % SLICES_PER_BIN as u64 == 0 {
            self.bins.push(std::mem::take(&mut self.open_bin));
        }
    }

    /// Until when a worker does nothing of its own will.
    pub(crate) fn rests_until_ns(&self) -> u64 {
        self.rests_until_ns
    }

    /// True when every worker has ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.workers.iter().all(|worker| worker.report.is_some())
    }

    /// The reports of the workers that have ended.
    pub(crate) fn reports(&self) -> impl Iterator<Item = &WorkerReport> {
        self.workers.iter().filter_map(|worker| worker.report.as_ref())
    }

    /// The first failure of a worker.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.reports().find_map(|report| match &report.end {
            WorkerEnd::Failed(error) => Some(error.as_str()),
            WorkerEnd::Stopped | WorkerEnd::Spent => None,
        })
    }

    /// The latencies of all workers that have ended.
    pub(crate) fn latencies(&self) -> Histogram {
        let mut all = Histogram::new();
        self.reports().for_each(|report| all.merge(&report.histogram));
        all
    }

    /// From when operations were due by a limit to their ends, where there is one.
    pub(crate) fn responses(&self) -> Option<Histogram> {
        let mut all: Option<Histogram> = None;
        for responses in self.reports().filter_map(|report| report.responses.as_deref()) {
            all.get_or_insert_with(Histogram::new).merge(responses);
        }
        all
    }

    /// The intervals of quantiles of the latencies, from how they varied over time.
    pub(crate) fn latency_intervals(&self) -> Option<LatencyIntervals> {
        let mut all = Batches::new();
        self.reports().for_each(|report| all.merge(&report.batches));
        all.intervals()
    }

    /// Operations that completed, warm-up included, as far as known.
    pub(crate) fn operations(&self) -> u64 {
        let in_reports: u64 = self.reports().map(|report| report.operations).sum();
        self.operations.max(in_reports)
    }

    /// Bytes that they moved.
    pub(crate) fn bytes(&self) -> u64 {
        let in_reports: u64 = self.reports().map(|report| report.bytes).sum();
        self.bytes.max(in_reports)
    }

    /// When the last operation of a worker that has ended completed.
    pub(crate) fn last_ns(&self) -> Option<u64> {
        self.reports().map(|report| report.last_ns).max()
    }

    /// The times without any completion that lasted long.
    pub(crate) fn gaps(&self) -> &SlowSpans {
        &self.gaps
    }

    /// The operations that took long while others completed.
    pub(crate) fn slow_operations(&self) -> &[SlowSpan] {
        self.slow.spans()
    }

    /// A time in which no worker completed anything, with how long the workers waited for a processor
    /// in it, on average over those that have something to say.
    fn describe_gap(&self, start_ns: u64, end_ns: u64) -> SlowSpan {
        let within = |span: &&SlowSpan| span.start_ns < end_ns && span.end_ns > start_ns;
        let waited = self.slow.spans().iter().filter(within).filter_map(|span| span.run_delay_ns);
        let (mut sum_ns, mut workers) = (0_u64, 0_u64);
        for waited_ns in waited {
            sum_ns += waited_ns.min(end_ns - start_ns);
            workers += 1;
        }
        SlowSpan { start_ns, end_ns, is_gap: true, run_delay_ns: sum_ns.checked_div(workers) }
    }

    /// How many slices at the start were warm-up in at least one worker.
    pub(crate) fn warm_slices(&self) -> usize {
        self.reports().map(|report| report.warm_slices).max().unwrap_or(0)
    }

    /// How many slices were joined so far.
    pub(crate) fn slices(&self) -> u64 {
        self.slices
    }

    /// The last second.
    pub(crate) fn recent(&self) -> impl ExactSizeIterator<Item = &Slice> {
        self.recent.iter()
    }

    /// The bins of a tenth of a second that are whole and were not taken before.
    pub(crate) fn take_bins(&mut self) -> Vec<Bin> {
        std::mem::take(&mut self.bins)
    }

    /// The whole bins of `slices_per_bin` slices in the first seconds of the job.
    pub(crate) fn early_bins(&self, slices_per_bin: usize) -> impl Iterator<Item = Bin> + '_ {
        self.early.chunks_exact(slices_per_bin).map(|slices| {
            let mut bin = Bin::default();
            slices.iter().for_each(|slice| add(&mut bin, slice));
            bin
        })
    }

    /// How many values are kept in memory, for tests of its bounds.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        let pending: usize = self.workers.iter().map(|worker| worker.pending.len()).sum();
        let slices = self.early.len() + self.recent.len() + pending;
        slices + self.bins.len() + self.slow.spans().len() + self.gaps.spans().len()
    }
}

fn add(bin: &mut Bin, slice: &Slice) {
    bin.ops += u64::from(slice.operations);
    bin.bytes += slice.bytes;
    bin.longest_gap_ns = bin.longest_gap_ns.max(slice.longest_gap_ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(operations: &[u32]) -> Vec<Slice> {
        let slice = |&operations| Slice {
            operations,
            bytes: 10 * u64::from(operations),
            longest_gap_ns: 1,
        };
        operations.iter().map(slice).collect()
    }

    fn report(operations: u64, end: WorkerEnd) -> WorkerReport {
        WorkerReport {
            end,
            histogram: Histogram::new(),
            batches: Batches::new(),
            responses: None,
            warm_slices: 0,
            operations,
            bytes: 10 * operations,
            last_ns: 0,
            cpu_ns: 0,
            run_delay_ns: None,
        }
    }

    #[test]
    fn a_slow_lane_holds_up_the_series_until_it_ends() {
        let boxes = [Arc::new(Mailbox::default()), Arc::new(Mailbox::default())];
        let mut completions = Completions::new(0, 2);
        boxes[0].announce(|news| news.slices = slices(&[3, 0, 0, 4]));
        boxes[1].announce(|news| news.slices = slices(&[2]));
        completions.gather(&boxes);
        assert_eq!(completions.slices(), 1);
        assert_eq!(completions.early[0].operations, 5);
        boxes[1].report(report(2, WorkerEnd::Spent));
        completions.gather(&boxes);
        let operations: Vec<u32> = completions.recent().map(|s| s.operations).collect();
        assert_eq!(operations, [5, 0, 0, 4]);
        assert_eq!(completions.early[3].longest_gap_ns, 2 * SLICE_NS);
        assert_eq!(completions.gaps().spans().len(), 1);
        assert!(!completions.all_ended());
        assert_eq!((completions.operations(), completions.bytes()), (9, 90));
    }

    #[test]
    fn bins_sum_slices_and_leave_the_incomplete_one_out() {
        let boxes = [Arc::new(Mailbox::default())];
        let mut completions = Completions::new(0, 1);
        boxes[0].announce(|news| news.slices = slices(&[1, 2, 3, 4, 5]));
        completions.gather(&boxes);
        let bins: Vec<Bin> = completions.early_bins(2).collect();
        assert_eq!(bins.len(), 2);
        assert_eq!((bins[1].ops, bins[1].bytes, bins[1].longest_gap_ns), (7, 70, 1));
        assert_eq!(completions.take_bins(), []);
    }

    #[test]
    fn bins_are_given_once_and_nothing_is_lost() {
        let boxes = [Arc::new(Mailbox::default())];
        let mut completions = Completions::new(0, 1);
        let mut operations = 0;
        for round in 0..7 {
            boxes[0].announce(|news| news.slices = slices(&[round; 13]));
            completions.gather(&boxes);
            operations += completions.take_bins().iter().map(|bin| bin.ops).sum::<u64>();
        }
        // 91 slices are four bins and eleven slices more, of the last round.
        assert_eq!(operations, 13 * (1 + 2 + 3 + 4 + 5) + 2 * 6);
        assert_eq!(completions.operations(), 13 * 21);
    }

    #[test]
    fn ten_hours_are_kept_in_little_memory() {
        let boxes = [Arc::new(Mailbox::default()), Arc::new(Mailbox::default())];
        let mut completions = Completions::new(0, 2);
        let mut most = 0;
        for round in 0..36_000_u64 {
            for mailbox in &boxes {
                mailbox.announce(|news| {
                    // 40 ms without anything in every 100.
                    news.slices = slices(&[[5; 12].as_slice(), &[0; 8]].concat().repeat(10));
                    news.slow.push(SlowSpan {
                        start_ns: round * 1_000_000_000,
                        end_ns: round * 1_000_000_000 + 15_000_000,
                        is_gap: false,
                        run_delay_ns: None,
                    });
                });
            }
            completions.gather(&boxes);
            completions.take_bins();
            most = most.max(completions.kept());
        }
        assert_eq!(completions.slices(), 7_200_000);
        assert!(most < 12_000, "{most}");
    }

    #[test]
    fn the_failure_of_one_lane_is_the_failure_of_the_job() {
        let boxes = [Arc::new(Mailbox::default()), Arc::new(Mailbox::default())];
        let mut completions = Completions::new(0, 2);
        boxes[0].report(report(1, WorkerEnd::Stopped));
        boxes[1].report(report(1, WorkerEnd::Failed("gone".into())));
        completions.gather(&boxes);
        assert!(completions.all_ended());
        assert_eq!(completions.failure(), Some("gone"));
    }
}
