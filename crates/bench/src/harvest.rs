//! What the lanes of a job have reported so far, joined into one series.

use std::sync::Arc;

use rubus_core::stats::{Bin, Histogram};

use crate::lane::{LaneEnd, LaneReport, Mailbox, SLICE_NS, Slice, SlowSpan};

/// With several lanes a gap must be at least two slices long to be told from chance.
const LEAST_GAP_NS: u64 = 2 * SLICE_NS;

/// The joined news of all lanes of one job.
#[derive(Debug)]
pub(crate) struct Harvest {
    /// When the job began, on the monotonic clock.
    pub(crate) origin_ns: u64,
    /// Slow spans of the lanes, in no particular order.
    slow: Vec<SlowSpan>,
    lanes: Vec<LaneHarvest>,
    slices: Vec<Slice>,
}

#[derive(Debug, Default)]
struct LaneHarvest {
    /// Slices of this lane that are not yet joined with those of the others.
    pending: Vec<Slice>,
    report: Option<LaneReport>,
}

impl Harvest {
    /// Nothing yet, from `lanes` lanes that began at `origin_ns`.
    pub(crate) fn new(origin_ns: u64, lanes: usize) -> Self {
        Harvest {
            origin_ns,
            slow: Vec::new(),
            lanes: (0..lanes).map(|_| LaneHarvest::default()).collect(),
            slices: Vec::new(),
        }
    }

    /// Empties the mailboxes, one per lane.
    pub(crate) fn gather(&mut self, mailboxes: &[Arc<Mailbox>]) {
        for (lane, mailbox) in self.lanes.iter_mut().zip(mailboxes) {
            let mut news = mailbox.news();
            lane.pending.append(&mut news.slices);
            self.slow.append(&mut news.slow);
            if let Some(report) = news.report.take() {
                lane.report = Some(report);
            }
        }
        self.join_slices();
    }

    /// Joins the slices that all lanes have reached; a lane that has ended does not hold up the others.
    fn join_slices(&mut self) {
        let running = self.lanes.iter().filter(|lane| lane.report.is_none());
        let reached = match running.map(|lane| lane.pending.len()).min() {
            Some(least) => least,
            None => self
                .lanes
                .iter()
                .map(|lane| lane.pending.len())
                .max()
                .unwrap_or(0),
        };
        let from = self.slices.len();
        self.slices.resize(from + reached, Slice::default());
        let single = self.lanes.len() == 1;
        for lane in &mut self.lanes {
            let upto = reached.min(lane.pending.len());
            for (joined, slice) in self.slices[from..]
                .iter_mut()
                .zip(lane.pending.drain(..upto))
            {
                joined.operations = joined.operations.saturating_add(slice.operations);
                if single {
                    joined.longest_gap_ns = slice.longest_gap_ns;
                }
            }
        }
        if !single {
            self.find_gaps(from);
        }
    }

    /// With several lanes a gap is a time in which none of them completed anything; all that can be
    /// told afterwards is the number of empty slices in a row.
    fn find_gaps(&mut self, from: usize) {
        let empty_before = self.slices[..from]
            .iter()
            .rev()
            .take_while(|s| s.operations == 0);
        let mut empty = empty_before.count() as u64;
        for slice in &mut self.slices[from..] {
            if slice.operations == 0 {
                empty += 1;
            } else {
                slice.longest_gap_ns = empty * SLICE_NS;
                empty = 0;
            }
        }
    }

    /// True when every lane has ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.lanes.iter().all(|lane| lane.report.is_some())
    }

    /// The reports of the lanes that have ended.
    pub(crate) fn reports(&self) -> impl Iterator<Item = &LaneReport> {
        self.lanes.iter().filter_map(|lane| lane.report.as_ref())
    }

    /// The first failure of a lane.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.reports().find_map(|report| match &report.end {
            LaneEnd::Failed(error) => Some(error.as_str()),
            LaneEnd::Stopped | LaneEnd::Spent => None,
        })
    }

    /// The latencies of all lanes that have ended.
    pub(crate) fn latencies(&self) -> Histogram {
        let mut all = Histogram::new();
        self.reports()
            .for_each(|report| all.merge(&report.histogram));
        all
    }

    /// Operations that completed, warm-up included, as far as known.
    pub(crate) fn operations(&self) -> u64 {
        let in_slices: u64 = self.slices.iter().map(|s| u64::from(s.operations)).sum();
        let in_reports: u64 = self.reports().map(|report| report.operations).sum();
        in_slices.max(in_reports)
    }

    /// When the last operation of a lane that has ended completed.
    pub(crate) fn last_ns(&self) -> Option<u64> {
        self.reports().map(|report| report.last_ns).max()
    }

    /// The times without any completion that lasted long.
    pub(crate) fn gaps(&self) -> Vec<SlowSpan> {
        if self.lanes.len() == 1 {
            return self
                .slow
                .iter()
                .filter(|span| span.is_gap)
                .copied()
                .collect();
        }
        let ends = self.slices.iter().enumerate();
        ends.filter(|(_, slice)| slice.longest_gap_ns >= LEAST_GAP_NS)
            .map(|(i, slice)| {
                let end_ns = self.origin_ns + i as u64 * SLICE_NS;
                self.joint_gap(end_ns - slice.longest_gap_ns, end_ns)
            })
            .collect()
    }

    /// The operations that took long while others completed.
    pub(crate) fn slow_operations(&self) -> Vec<SlowSpan> {
        let several = self.lanes.len() > 1;
        let alone = |span: &&SlowSpan| several || !span.is_gap;
        self.slow.iter().filter(alone).copied().collect()
    }

    /// A time in which no lane completed anything, with how long the lanes waited for a processor
    /// in it, on average over those that have something to say.
    fn joint_gap(&self, start_ns: u64, end_ns: u64) -> SlowSpan {
        let within = |span: &&SlowSpan| span.start_ns < end_ns && span.end_ns > start_ns;
        let waited = self
            .slow
            .iter()
            .filter(within)
            .filter_map(|span| span.run_delay_ns);
        let (mut sum_ns, mut lanes) = (0_u64, 0_u64);
        for waited_ns in waited {
            sum_ns += waited_ns.min(end_ns - start_ns);
            lanes += 1;
        }
        SlowSpan {
            start_ns,
            end_ns,
            is_gap: true,
            run_delay_ns: sum_ns.checked_div(lanes),
        }
    }

    /// How many slices at the start were warm-up in at least one lane.
    pub(crate) fn warm_slices(&self) -> usize {
        self.reports()
            .map(|report| report.warm_slices)
            .max()
            .unwrap_or(0)
    }

    /// The joined slices so far.
    pub(crate) fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// The whole bins of `slices_per_bin` slices, leaving out the first `skip` bins.
    pub(crate) fn bins(
        &self,
        slices_per_bin: usize,
        block_bytes: u32,
        skip: usize,
    ) -> impl Iterator<Item = Bin> + '_ {
        let bins = self.slices.chunks_exact(slices_per_bin).skip(skip);
        bins.map(move |slices| {
            let ops = slices.iter().map(|slice| u64::from(slice.operations)).sum();
            Bin {
                ops,
                bytes: ops * u64::from(block_bytes),
                longest_gap_ns: slices
                    .iter()
                    .map(|slice| slice.longest_gap_ns)
                    .max()
                    .unwrap_or(0),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(operations: &[u32]) -> Vec<Slice> {
        let slice = |&operations| Slice {
            operations,
            longest_gap_ns: 1,
        };
        operations.iter().map(slice).collect()
    }

    fn report(operations: u64, end: LaneEnd) -> LaneReport {
        LaneReport {
            end,
            histogram: Histogram::new(),
            warm_slices: 0,
            operations,
            last_ns: 0,
            cpu_ns: 0,
            run_delay_ns: None,
        }
    }

    #[test]
    fn a_slow_lane_holds_up_the_series_until_it_ends() {
        let boxes = [Arc::new(Mailbox::default()), Arc::new(Mailbox::default())];
        let mut harvest = Harvest::new(0, 2);
        boxes[0].announce(|news| news.slices = slices(&[3, 0, 0, 4]));
        boxes[1].announce(|news| news.slices = slices(&[2]));
        harvest.gather(&boxes);
        assert_eq!(harvest.slices().len(), 1);
        assert_eq!(harvest.slices()[0].operations, 5);
        boxes[1].report(report(2, LaneEnd::Spent));
        harvest.gather(&boxes);
        let operations: Vec<u32> = harvest.slices().iter().map(|s| s.operations).collect();
        assert_eq!(operations, [5, 0, 0, 4]);
        assert_eq!(harvest.slices()[3].longest_gap_ns, 2 * SLICE_NS);
        assert!(!harvest.all_ended());
        assert_eq!(harvest.operations(), 9);
    }

    #[test]
    fn bins_sum_slices_and_leave_the_incomplete_one_out() {
        let boxes = [Arc::new(Mailbox::default())];
        let mut harvest = Harvest::new(0, 1);
        boxes[0].announce(|news| news.slices = slices(&[1, 2, 3, 4, 5]));
        harvest.gather(&boxes);
        let bins: Vec<Bin> = harvest.bins(2, 10, 1).collect();
        assert_eq!(bins.len(), 1);
        assert_eq!(
            (bins[0].ops, bins[0].bytes, bins[0].longest_gap_ns),
            (7, 70, 1)
        );
    }

    #[test]
    fn the_failure_of_one_lane_is_the_failure_of_the_job() {
        let boxes = [Arc::new(Mailbox::default()), Arc::new(Mailbox::default())];
        let mut harvest = Harvest::new(0, 2);
        boxes[0].report(report(1, LaneEnd::Stopped));
        boxes[1].report(report(1, LaneEnd::Failed("gone".into())));
        harvest.gather(&boxes);
        assert!(harvest.all_ended());
        assert_eq!(harvest.failure(), Some("gone"));
    }
}
