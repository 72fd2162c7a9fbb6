//! Lanes: how the depth of a job is divided over io_uring rings that have a thread each.
//!
//! One thread can keep a slow device busy, but not one that completes more operations per second than a
//! core can submit and reap. Each lane has a ring of its own and its share of the depth, so no two
//! threads meet in the kernel's locks of one ring.

/// How operations are given to the kernel: most of it is for queues deeper than 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queueing {
    /// Whether io_uring may be used; if not, threads are.
    pub may_use_ring: bool,
    /// Rings that share the depth of a job, each in a thread of its own; at least 1. A job with a smaller depth
    /// gets as many as its depth, and a job with a shape (a mix, a rate limit, a job file's) one for each copy.
    pub lanes: u32,
    /// Completions are polled for instead of waiting for interrupts, where a job goes past the page cache, makes
    /// nothing durable in between and has no shape. The session refuses a target where that cannot be.
    pub polled: bool,
    /// A job of depth 1 also goes through a ring where it can; otherwise it calls `pread` and `pwrite`, as most programs do.
    pub ring_for_one: bool,
}

impl Queueing {
    /// One ring, as every suite has it unless something else is asked for.
    pub const USUAL: Queueing =
        Queueing { may_use_ring: true, lanes: 1, polled: false, ring_for_one: false };
    /// Threads in place of io_uring.
    pub const THREADS: Queueing = Queueing { may_use_ring: false, ..Queueing::USUAL };
}

/// The share of `whole` that member number `member` of `members` (at least 1) has: as even as whole
/// numbers allow, with the larger shares first.
pub(crate) fn share(whole: u64, members: u32, member: u32) -> u64 {
    let members = u64::from(members);
    whole / members + u64::from(u64::from(member) < whole % members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_depth_is_divided_as_evenly_as_possible() {
        let shares = |depth, lanes| -> Vec<u64> {
            (0..lanes).map(|lane| share(depth, lanes, lane)).collect()
        };
        assert_eq!(shares(32, 4), [8, 8, 8, 8]);
        assert_eq!(shares(7, 3), [3, 2, 2]);
        assert_eq!(shares(5, 5), [1; 5]);
        assert_eq!(shares(256, 1), [256]);
        for lanes in 1..=64 {
            for depth in u64::from(lanes)..=300 {
                let all = shares(depth, lanes);
                assert_eq!(all.iter().sum::<u64>(), depth);
                assert!(all.first().is_some_and(|most| most - all[all.len() - 1] <= 1));
                assert!(!all.contains(&0), "{depth} over {lanes}");
            }
        }
    }
}
