//! A worker: one thread that keeps its part of the queue full, counts, and reports to a mailbox.
//!
//! The [`Tally`] is the accounting of the hot loop: one histogram entry, one counter and three
//! comparisons per operation. Everything else happens in [`Tally::turn`], a few hundred times a
//! second. What the numbers mean is decided elsewhere, by the reader of the mailbox.

use std::sync::Arc;

use rubus_stats::{Batches, Histogram};

use crate::mailbox::SLICES_PER_BIN;
use crate::mailbox::{Mailbox, SLICE_NS, Slice, SlowSpan, WorkerEnd, WorkerReport};
use rubus_host::process::schedstat::Account;

/// Gaps and operations longer than this are noted one by one at first: 10 ms.
const FIRST_NOTE_NS: u64 = 10_000_000;
/// Beyond this number of notes, the threshold doubles and the shorter ones are forgotten.
const MAX_NOTES: usize = 512;
/// Number of slices between two readings of the scheduler's account, so that a gap can be compared
/// with it.
const SLICES_PER_ACCOUNT: usize = 10;

/// What a worker may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerOrder {
    /// When the job began, on the monotonic clock; slices are counted from here.
    pub(crate) origin_ns: u64,
    /// When this worker began: later, if its thread did not get a processor at once.
    pub(crate) began_ns: u64,
    /// Operations that may be issued, at least 1.
    pub(crate) max_operations: u64,
    /// Bytes of each operation; 0 where they differ and are told with each.
    pub(crate) block_bytes: u32,
    /// The warm-up is over after this time ...
    pub(crate) warm_up_ns: u64,
    /// ... or after this many operations, whichever comes first.
    pub(crate) warm_up_operations: u64,
}

/// The accounting of one worker.
///
/// The hot fields first. A peak is the longest of the current slice so far: only a new one is worth
/// a look, and there are few of those, so the longest of all and the slow ones cost one comparison
/// together.
pub(crate) struct Tally {
    histogram: Histogram,
    last_ns: u64,
    edge_ns: u64,
    /// The longest time between two completions in this slice.
    peak_gap_ns: u64,
    /// The longest latency in this slice, where it is not the same thing.
    peak_latency_ns: u64,
    /// Operations that may still complete.
    left: u64,
    /// How long the last completion came after the one before.
    gap_ns: u64,
    cold: Box<Cold>,
}

/// What only the cold paths look at.
struct Cold {
    mailbox: Arc<Mailbox>,
    order: WorkerOrder,
    note_ns: u64,
    /// The longest latency since the warm-up.
    longest_ns: u64,
    /// Operations before the current slice.
    done_before: u64,
    /// Bytes of operations that differ in size, those of the last group, and those before the
    /// current slice.
    bytes: u64,
    group_bytes: u64,
    bytes_before: u64,
    slices: usize,
    batches: Batches,
    /// From when operations were due by a limit to their ends, and the last of these times.
    responses: Option<Box<Histogram>>,
    response_ns: u64,
    warm_slices: Option<usize>,
    account: Account,
    delay_at_start: Option<u64>,
    delay_last: Option<u64>,
    cpu_at_start_ns: u64,
}

impl Tally {
    /// An empty tally of a worker; `account` is that of the worker's own thread.
    pub(crate) fn new(mailbox: Arc<Mailbox>, order: WorkerOrder, account: Account) -> Self {
        let delay_now = account.run_delay_ns();
        let cpu_at_start_ns = account.cpu_ns();
        Tally {
            histogram: Histogram::new(),
            last_ns: order.began_ns,
            edge_ns: order.origin_ns + SLICE_NS,
            peak_gap_ns: 0,
            peak_latency_ns: 0,
            left: order.max_operations,
            gap_ns: 0,
            cold: Box::new(Cold {
                mailbox,
                order,
                note_ns: FIRST_NOTE_NS,
                longest_ns: 0,
                done_before: 0,
                bytes: 0,
                group_bytes: 0,
                bytes_before: 0,
                slices: 0,
                batches: Batches::new(),
                responses: None,
                response_ns: 0,
                // Without a warm-up everything counts from the first moment on.
                warm_slices: (order.warm_up_ns == 0).then_some(0),
                account,
                delay_at_start: delay_now,
                delay_last: delay_now,
                cpu_at_start_ns,
            }),
        }
    }

    /// Counts an operation that began when the one before it ended, and ended at `now_ns`. When
    /// this gives true, call [`Tally::turn_one`].
    #[inline(always)]
    pub(crate) fn one(&mut self, now_ns: u64) -> bool {
        self.histogram.record_inner(now_ns.wrapping_sub(self.last_ns));
        self.group(now_ns, 1)
    }

    /// Counts the latency of one operation of a group; [`Tally::group`] follows. When this gives
    /// true, call [`Tally::look_at`].
    #[inline(always)]
    pub(crate) fn latency(&mut self, latency_ns: u64) -> bool {
        self.histogram.record_inner(latency_ns);
        latency_ns > self.peak_latency_ns
    }

    /// Counts how long after it was due one operation of a group ended; [`Tally::group_of`] follows.
    pub(crate) fn response(&mut self, response_ns: u64) {
        let cold = &mut *self.cold;
        cold.response_ns = response_ns;
        let responses = cold.responses.get_or_insert_with(Default::default);
        responses.record(response_ns);
    }

    /// Counts `operations` (at least 1) that were seen to have completed at `now_ns`. When this
    /// gives true, call [`Tally::turn`].
    #[inline(always)]
    pub(crate) fn group(&mut self, now_ns: u64, operations: u32) -> bool {
        self.gap_ns = now_ns.wrapping_sub(self.last_ns);
        self.last_ns = now_ns;
        self.left = self.left.wrapping_sub(u64::from(operations));
        now_ns >= self.edge_ns || self.gap_ns > self.peak_gap_ns || self.left == 0
    }

    /// Counts a group of operations of any size, whose latencies have been counted; gives whether
    /// to go on. `latency_ns` is that of the only one, if it is one.
    pub(crate) fn group_of(
        &mut self,
        now_ns: u64,
        operations: u32,
        bytes: u64,
        latency_ns: Option<u64>,
    ) -> bool {
        let cold = &mut *self.cold;
        cold.bytes += bytes;
        cold.group_bytes = bytes;
        cold.longest_ns = cold.longest_ns.max(latency_ns.unwrap_or(0));
        !self.group(now_ns, operations) || self.turn_of(operations, latency_ns)
    }

    /// Time passes in which nothing of this account completed though nothing stood still: the worker
    /// rested, or something else completed.
    pub(crate) fn pass(&mut self, now_ns: u64) {
        self.last_ns = self.last_ns.max(now_ns);
        if now_ns >= self.edge_ns {
            self.cold.group_bytes = 0;
            self.close_slices(0, None);
        }
    }

    /// The worker's orders.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.cold.mailbox
    }

    /// Looks at the longest operation of the slice so far, one of a group.
    #[cold]
    pub(crate) fn look_at(&mut self, start_ns: u64, end_ns: u64) {
        self.peak_latency_ns = end_ns.saturating_sub(start_ns);
        self.longest(start_ns, end_ns, false);
    }

    /// [`Tally::turn`] for a worker with one operation in flight, whose latency is the gap.
    #[cold]
    pub(crate) fn turn_one(&mut self) -> bool {
        let latency_ns = self.gap_ns;
        let longest_ns = &mut self.cold.longest_ns;
        *longest_ns = latency_ns.max(*longest_ns);
        self.turn_of(1, Some(latency_ns))
    }

    /// Looks up from the counting of a group: closes slices, notes a long gap, and says whether to
    /// go on.
    #[cold]
    pub(crate) fn turn(&mut self, operations: u32) -> bool {
        self.turn_of(operations, None)
    }

    fn turn_of(&mut self, operations: u32, latency_ns: Option<u64>) -> bool {
        let (now_ns, gap_ns) = (self.last_ns, self.gap_ns);
        if gap_ns >= self.cold.note_ns {
            self.note(now_ns.saturating_sub(gap_ns), now_ns, true);
        }
        if now_ns >= self.edge_ns {
            self.close_slices(operations, latency_ns);
        }
        self.peak_gap_ns = self.peak_gap_ns.max(gap_ns);
        self.left > 0 && !self.cold.mailbox.is_stopped()
    }

    /// Operations that have completed.
    pub(crate) fn done(&self) -> u64 {
        self.cold.order.max_operations - self.left
    }

    /// Operations that may be issued in all.
    pub(crate) fn most(&self) -> u64 {
        self.cold.order.max_operations
    }

    /// Why the worker ends after [`Tally::turn`] gave false.
    pub(crate) fn why_over(&self) -> WorkerEnd {
        if self.left == 0 { WorkerEnd::Spent } else { WorkerEnd::Stopped }
    }

    fn longest(&mut self, start_ns: u64, end_ns: u64, is_gap: bool) {
        let latency_ns = end_ns.saturating_sub(start_ns);
        self.cold.longest_ns = latency_ns.max(self.cold.longest_ns);
        if latency_ns >= self.cold.note_ns {
            self.note(start_ns, end_ns, is_gap);
        }
    }

    /// Notes a slow span, with what the scheduler says about it.
    fn note(&mut self, start_ns: u64, end_ns: u64, is_gap: bool) {
        let cold = &mut *self.cold;
        let delay_now = cold.account.run_delay_ns();
        let waited = delay_now.zip(cold.delay_last);
        let span = SlowSpan {
            start_ns,
            end_ns,
            is_gap,
            run_delay_ns: waited.map(|(now, before)| now.saturating_sub(before)),
        };
        cold.delay_last = delay_now;
        let mut news = cold.mailbox.news();
        news.slow.push(span);
        while news.slow.len() > MAX_NOTES {
            cold.note_ns = cold.note_ns.saturating_mul(2);
            let least = cold.note_ns;
            news.slow.retain(|span| span.end_ns - span.start_ns >= least);
        }
    }

    /// Closes the slices that ended before the group of `operations` that was just counted, which
    /// belongs to the slice in which it completed.
    fn close_slices(&mut self, operations: u32, latency_ns: Option<u64>) {
        let before_group = self.done() - u64::from(operations);
        let cold = &mut *self.cold;
        let in_slice = before_group - cold.done_before;
        let bytes_before_group = cold.bytes - cold.group_bytes;
        let mut slice = Slice {
            operations: u32::try_from(in_slice).unwrap_or(u32::MAX),
            bytes: match cold.order.block_bytes {
                0 => bytes_before_group - cold.bytes_before,
                block_bytes => in_slice * u64::from(block_bytes),
            },
            longest_gap_ns: self.peak_gap_ns,
        };
        let slices_before = cold.slices;
        let mut news = cold.mailbox.news();
        while self.last_ns >= self.edge_ns {
            news.slices.push(std::mem::take(&mut slice));
            cold.slices += 1;
            self.edge_ns += SLICE_NS;
        }
        drop(news);
        for _ in slices_before / SLICES_PER_BIN..cold.slices / SLICES_PER_BIN {
            cold.batches.cut(&self.histogram);
        }
        cold.done_before = before_group;
        cold.bytes_before = bytes_before_group;
        self.peak_gap_ns = 0;
        self.peak_latency_ns = 0;
        if cold.slices % SLICES_PER_ACCOUNT == 0 {
            cold.delay_last = cold.account.run_delay_ns();
        }
        if cold.warm_slices.is_none() {
            self.end_warm_up(latency_ns);
        }
    }

    fn end_warm_up(&mut self, latency_ns: Option<u64>) {
        let cold = &mut *self.cold;
        let lasted_ns = self.last_ns.saturating_sub(cold.order.origin_ns);
        if lasted_ns < cold.order.warm_up_ns && cold.done_before < cold.order.warm_up_operations {
            return;
        }
        // With nothing to come, what there is must do.
        if self.left == 0 {
            return;
        }
        cold.warm_slices = Some(cold.slices);
        cold.longest_ns = 0;
        self.histogram.clear();
        cold.batches.clear();
        if let Some(responses) = &mut cold.responses {
            responses.clear();
        }
        // The operation that was just counted completed after the warm-up. Of a group the
        // latencies cannot be told apart any more; at most one queue's worth is lost.
        if let Some(latency_ns) = latency_ns {
            self.histogram.record_inner(latency_ns);
            cold.longest_ns = latency_ns;
            if let Some(responses) = &mut cold.responses {
                responses.record(cold.response_ns);
            }
        }
    }

    /// Ends the account and puts the report into the mailbox.
    pub(crate) fn finish(mut self, end: WorkerEnd) {
        let operations = self.done();
        let cold = *self.cold;
        self.histogram.close(cold.longest_ns);
        let delay_now = cold.account.run_delay_ns();
        let report = WorkerReport {
            end,
            histogram: self.histogram,
            batches: cold.batches,
            responses: cold.responses,
            warm_slices: cold.warm_slices.unwrap_or(0),
            operations,
            bytes: match cold.order.block_bytes {
                0 => cold.bytes,
                block_bytes => operations * u64::from(block_bytes),
            },
            last_ns: self.last_ns,
            cpu_ns: cold.account.cpu_ns().saturating_sub(cold.cpu_at_start_ns),
            run_delay_ns: delay_now
                .zip(cold.delay_at_start)
                .map(|(now, start)| now.saturating_sub(start)),
        };
        cold.mailbox.report(report);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn order(max_operations: u64) -> WorkerOrder {
        WorkerOrder {
            origin_ns: 1000 * MS,
            began_ns: 1000 * MS,
            max_operations,
            block_bytes: 4096,
            warm_up_ns: u64::MAX,
            warm_up_operations: u64::MAX,
        }
    }

    fn tally(mailbox: &Arc<Mailbox>, order: WorkerOrder) -> Tally {
        Tally::new(Arc::clone(mailbox), order, Account::of_nobody())
    }

    /// Completes one operation after each of the gaps, in nanoseconds; gives the report.
    fn complete(mailbox: &Arc<Mailbox>, order: WorkerOrder, gaps_ns: &[u64]) -> WorkerReport {
        let mut tally = tally(mailbox, order);
        let mut now_ns = order.origin_ns;
        for &gap_ns in gaps_ns {
            now_ns += gap_ns;
            if tally.one(now_ns) && !tally.turn_one() {
                break;
            }
        }
        let end = tally.why_over();
        tally.finish(end);
        let report = mailbox.news().report.take();
        report.expect("the tally reported")
    }

    #[test]
    fn an_operation_counts_where_it_completes() {
        let mailbox = Arc::new(Mailbox::default());
        // At 1, 2, 17 and 18 ms; slices end every 5 ms.
        let report = complete(&mailbox, order(100), &[MS, MS, 15 * MS, MS]);
        let news = mailbox.news();
        let operations: Vec<u32> = news.slices.iter().map(|slice| slice.operations).collect();
        assert_eq!(operations, [2, 0, 0], "the fourth slice is not over");
        assert_eq!(news.slices[0].longest_gap_ns, MS);
        assert_eq!(report.operations, 4);
        assert_eq!(report.end, WorkerEnd::Stopped);
        assert_eq!(report.histogram.max_ns(), Some(15 * MS));
        let span =
            SlowSpan { start_ns: 1002 * MS, end_ns: 1017 * MS, is_gap: true, run_delay_ns: None };
        assert_eq!(news.slow, [span]);
    }

    #[test]
    fn a_late_start_is_no_slow_operation() {
        let mailbox = Arc::new(Mailbox::default());
        let late = WorkerOrder { began_ns: 1900 * MS, ..order(100) };
        let mut tally = tally(&mailbox, late);
        assert!(tally.one(1901 * MS) && tally.turn_one());
        tally.finish(WorkerEnd::Stopped);
        let news = mailbox.news();
        assert_eq!(news.slow, []);
        assert_eq!(news.slices.len(), 180);
        let report = news.report.as_ref().expect("the tally reported");
        assert_eq!(report.histogram.max_ns(), Some(MS));
    }

    #[test]
    fn a_spent_budget_ends_the_lane_at_once() {
        let mailbox = Arc::new(Mailbox::default());
        let report = complete(&mailbox, order(3), &[1, 1, 1, 1, 1]);
        assert_eq!((report.operations, report.end), (3, WorkerEnd::Spent));
    }

    #[test]
    fn an_order_to_stop_is_seen_at_the_end_of_a_slice() {
        let mailbox = Arc::new(Mailbox::default());
        mailbox.stop();
        let report = complete(&mailbox, order(100), &[MS, MS, 4 * MS, MS]);
        // The first operation is a new longest one and so worth a look already.
        assert_eq!(report.operations, 1);
    }

    #[test]
    fn the_warm_up_ends_by_time_or_by_operations() {
        let by_time = WorkerOrder { warm_up_ns: 10 * MS, ..order(100) };
        let mailbox = Arc::new(Mailbox::default());
        let report = complete(&mailbox, by_time, &[3 * MS; 7]);
        // The edge at 10 ms is noticed by the operation that completes at 12 ms.
        assert_eq!(report.warm_slices, 2);
        assert_eq!(report.histogram.count(), 4);
        let by_operations = WorkerOrder { warm_up_operations: 4, ..order(100) };
        let mailbox = Arc::new(Mailbox::default());
        let report = complete(&mailbox, by_operations, &[MS; 20]);
        assert_eq!(report.warm_slices, 1);
        assert_eq!(report.histogram.count(), 16);
    }

    #[test]
    fn slow_spans_do_not_grow_without_bound() {
        let mailbox = Arc::new(Mailbox::default());
        let mut gaps_ns = vec![11 * MS; 2000];
        gaps_ns[777] = 900 * MS;
        complete(&mailbox, order(10_000), &gaps_ns);
        let news = mailbox.news();
        assert!(news.slow.len() <= MAX_NOTES);
        let longest = news.slow.iter().map(|span| span.end_ns - span.start_ns).max();
        assert_eq!(longest, Some(900 * MS));
    }

    #[test]
    fn a_group_counts_its_operations_and_its_gap_once() {
        let mailbox = Arc::new(Mailbox::default());
        let mut tally = tally(&mailbox, order(100));
        for latency_ns in [5 * MS, 6 * MS, 7 * MS] {
            if tally.latency(latency_ns) {
                tally.look_at(1007 * MS - latency_ns, 1007 * MS);
            }
        }
        assert!(tally.group(1007 * MS, 3) && tally.turn(3));
        assert_eq!(tally.done(), 3);
        tally.finish(WorkerEnd::Stopped);
        let news = mailbox.news();
        // All three completed after the first slice had ended.
        assert_eq!(news.slices, [Slice::default()]);
        let report = news.report.as_ref().expect("the tally reported");
        assert_eq!(report.histogram.max_ns(), Some(7 * MS));
        assert_eq!(report.histogram.count(), 3);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_whenever_operations_complete(
            gaps_ns in prop::collection::vec(1_u64..40 * MS, 1..300)
        ) {
            let mailbox = Arc::new(Mailbox::default());
            let report = complete(&mailbox, order(1 << 40), &gaps_ns);
            let news = mailbox.news();
            let elapsed_ns: u64 = gaps_ns.iter().sum();
            prop_assert_eq!(report.operations, gaps_ns.len() as u64);
            prop_assert_eq!(report.histogram.count(), gaps_ns.len() as u64);
            prop_assert_eq!(news.slices.len() as u64, elapsed_ns / SLICE_NS);
            // Each operation lies in the slice of its moment.
            let mut now_ns = 0;
            let mut expected = vec![0_u32; news.slices.len() + 1];
            for gap_ns in &gaps_ns {
                now_ns += gap_ns;
                expected[(now_ns / SLICE_NS) as usize] += 1;
            }
            expected.pop();
            let counted: Vec<u32> = news.slices.iter().map(|slice| slice.operations).collect();
            prop_assert_eq!(counted, expected);
            let noted = gaps_ns.iter().filter(|&&gap_ns| gap_ns >= FIRST_NOTE_NS).count();
            prop_assert!(news.slow.len() <= noted);
        }
    }
}
