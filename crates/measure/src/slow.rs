//! The slow moments of a job, kept in bounded memory: the longest as they are, of the others only
//! how many there were of which length.

use rubus_stats::Histogram;

use crate::mailbox::SlowSpan;

/// Maximum number of spans kept.
pub(crate) const MAX_SPANS: usize = 4096;

/// Slow spans of one kind.
#[derive(Debug, Default)]
pub(crate) struct SlowSpans {
    spans: Vec<SlowSpan>,
    forgotten: Option<Histogram>,
}

impl SlowSpans {
    /// Takes one more; when there are too many, the shorter half is forgotten.
    pub(crate) fn push(&mut self, span: SlowSpan) {
        self.spans.push(span);
        if self.spans.len() <= MAX_SPANS {
            return;
        }
        self.spans.sort_unstable_by_key(|span| std::cmp::Reverse(span.length_ns()));
        let forgotten = self.forgotten.get_or_insert_default();
        for span in self.spans.drain(MAX_SPANS / 2..) {
            forgotten.record(span.length_ns());
        }
    }

    /// Those that are kept, in no particular order.
    pub(crate) fn spans(&self) -> &[SlowSpan] {
        &self.spans
    }

    /// The lengths of those that were forgotten, in nanoseconds.
    pub(crate) fn forgotten(&self) -> Option<&Histogram> {
        self.forgotten.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_stay_and_the_others_are_counted() {
        let mut slow = SlowSpans::default();
        for i in 0..100_000_u64 {
            let length_ns = if i % 1000 == 7 { 5_000_000_000 + i } else { 98_000_000 };
            slow.push(SlowSpan {
                start_ns: i * 100_000_000,
                end_ns: i * 100_000_000 + length_ns,
                is_gap: true,
                run_delay_ns: None,
            });
        }
        assert!(slow.spans().len() <= MAX_SPANS);
        let long = slow.spans().iter().filter(|span| span.length_ns() > 4_000_000_000);
        assert_eq!(long.count(), 100);
        let forgotten = slow.forgotten().expect("there were too many").count();
        assert_eq!(forgotten + slow.spans().len() as u64, 100_000);
    }
}
