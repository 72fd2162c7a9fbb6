//! Who moved how much between two walks over all processes, each byte counted once.
//!
//! When a process ends and its parent waits for it, the kernel adds the child's counters to the parent's
//! (`wait_task_zombie` in kernel/exit.c). What was seen of a child while it lived has been counted by then, and must not be
//! counted again as the parent's.

use std::collections::BTreeMap;

use super::programs::{ProgramCounters, Traffic};

/// The first process, which takes over those whose parents have ended.
const INIT: u32 = 1;
/// The parent of the kernel's threads. They end without anybody waiting for them.
pub(super) const KTHREADD: u32 = 2;

/// What is known of the processes as of the last walk.
#[derive(Debug, Default)]
pub struct Ledger {
    known: BTreeMap<u32, Known>,
    has_begun: bool,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    parent: u32,
    totals: Traffic,
}

impl Ledger {
    /// What each process moved since the walk before, those that moved nothing left out, in the order of process numbers.
    /// `now` has every process once. Nothing comes of the first walk. A process that was not there before, or whose number
    /// was given again, counts from its start. What a child moved after it was last seen is its parent's. `parent_of` is
    /// asked for the parent of a process that is there now, once for each unless its parent ends.
    pub fn walk(
        &mut self,
        now: &[ProgramCounters],
        mut parent_of: impl FnMut(u32) -> Option<u32>,
    ) -> Vec<ProgramCounters> {
        let mut gone = std::mem::take(&mut self.known);
        let mut moved: BTreeMap<u32, Traffic> = BTreeMap::new();
        for program in now {
            let earlier = gone.get(&program.pid).copied();
            let since = earlier.and_then(|earlier| program.traffic.since(earlier.totals));
            let parent = match (earlier, since) {
                (Some(earlier), Some(_)) => {
                    gone.remove(&program.pid);
                    Some(earlier.parent)
                }
                _ => None,
            };
            let known = Known {
                parent: parent
                    .or_else(|| parent_of(program.pid))
                    .unwrap_or_default(),
                totals: program.traffic,
            };
            self.known.insert(program.pid, known);
            moved.insert(program.pid, since.unwrap_or(program.traffic));
        }
        self.take_back(&gone, &mut moved);
        for (pid, known) in &mut self.known {
            if gone.contains_key(&known.parent) {
                known.parent = parent_of(*pid).unwrap_or_default();
            }
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            return Vec::new();
        }
        let moved = moved.into_iter();
        moved
            .filter(|(_, traffic)| !traffic.is_nothing())
            .map(|(pid, traffic)| ProgramCounters { pid, traffic })
            .collect()
    }

    /// Whether it is one of the kernel's threads.
    pub fn is_kernel_thread(&self, pid: u32) -> bool {
        pid == KTHREADD
            || self
                .known
                .get(&pid)
                .is_some_and(|known| known.parent == KTHREADD)
    }

    /// Takes what was counted of those that have ended from the nearest ancestor that got it. A parent that does not care
    /// for its children (SIGCHLD ignored) gets nothing; then no ancestor grew by as much, but for chance.
    fn take_back(&self, gone: &BTreeMap<u32, Known>, moved: &mut BTreeMap<u32, Traffic>) {
        for ended in gone.values().filter(|ended| !ended.totals.is_nothing()) {
            for ancestor in self.ancestors(ended.parent, gone) {
                let Some(traffic) = moved.get_mut(&ancestor) else {
                    continue;
                };
                if let Some(left) = traffic.since(ended.totals) {
                    *traffic = left;
                    break;
                }
            }
        }
    }

    /// Those of the ancestors that still live, the nearest first, and at last the process that takes over orphans.
    fn ancestors(&self, parent: u32, gone: &BTreeMap<u32, Known>) -> Vec<u32> {
        let mut living = Vec::new();
        let mut at = parent;
        // Numbers that were given again could make a circle.
        for _ in 0..gone.len() + self.known.len() {
            if at == KTHREADD {
                return Vec::new();
            }
            let known = match (gone.get(&at), self.known.get(&at)) {
                (Some(ended), _) => ended,
                (None, Some(lives)) => {
                    living.push(at);
                    lives
                }
                (None, None) => break,
            };
            at = known.parent;
        }
        if !living.contains(&INIT) {
            living.push(INIT);
        }
        living
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Processes with their parents, as the kernel keeps them.
    #[derive(Clone, Debug, Default)]
    struct Kernel {
        alive: BTreeMap<u32, (u32, u64)>,
    }

    impl Kernel {
        fn walk(&self, ledger: &mut Ledger) -> Vec<(u32, u64)> {
            let now: Vec<ProgramCounters> = self
                .alive
                .iter()
                .map(|(&pid, &(_, written_bytes))| ProgramCounters {
                    pid,
                    traffic: Traffic {
                        written_bytes,
                        ..Traffic::default()
                    },
                })
                .collect();
            let moved = ledger.walk(&now, |pid| self.alive.get(&pid).map(|alive| alive.0));
            let moved = moved.iter();
            moved.map(|p| (p.pid, p.traffic.written_bytes)).collect()
        }

        fn start(&mut self, pid: u32, parent: u32) {
            self.alive.insert(pid, (parent, 0));
        }

        fn write(&mut self, pid: u32, bytes: u64) {
            self.alive.get_mut(&pid).unwrap().1 += bytes;
        }

        /// Its parent waits for it, and init takes its children over.
        fn end(&mut self, pid: u32) {
            let (parent, written) = self.alive.remove(&pid).unwrap();
            if parent != KTHREADD {
                self.write(parent, written);
            }
            for child in self.alive.values_mut().filter(|child| child.0 == pid) {
                child.0 = INIT;
            }
        }
    }

    fn kernel() -> Kernel {
        let mut kernel = Kernel::default();
        kernel.start(INIT, 0);
        kernel.start(KTHREADD, 0);
        kernel
    }

    #[test]
    fn the_first_walk_has_nothing_to_compare_with_and_new_ones_count_from_their_start() {
        let (mut kernel, mut ledger) = (kernel(), Ledger::default());
        kernel.write(INIT, 500);
        assert_eq!(kernel.walk(&mut ledger), []);
        kernel.write(INIT, 30);
        kernel.start(10, INIT);
        kernel.write(10, 7);
        assert_eq!(kernel.walk(&mut ledger), [(INIT, 30), (10, 7)]);
        assert_eq!(kernel.walk(&mut ledger), []);
    }

    #[test]
    fn a_child_that_ends_is_not_counted_again_as_its_parent_s() {
        let (mut kernel, mut ledger) = (kernel(), Ledger::default());
        kernel.start(10, INIT);
        kernel.start(11, 10);
        kernel.write(11, 1_000);
        kernel.walk(&mut ledger);
        kernel.write(11, 40);
        assert_eq!(kernel.walk(&mut ledger), [(11, 40)]);
        // What it wrote after it was seen last is all that its parent has moved now.
        kernel.write(11, 5);
        kernel.end(11);
        assert_eq!(kernel.walk(&mut ledger), [(10, 5)]);
        kernel.end(10);
        assert_eq!(kernel.walk(&mut ledger), []);
    }

    #[test]
    fn a_family_that_ends_together_is_taken_from_the_one_that_is_left() {
        let (mut kernel, mut ledger) = (kernel(), Ledger::default());
        kernel.start(10, INIT);
        kernel.start(11, 10);
        kernel.start(12, 11);
        kernel.walk(&mut ledger);
        kernel.write(12, 300);
        assert_eq!(kernel.walk(&mut ledger), [(12, 300)]);
        kernel.end(12);
        kernel.write(11, 20);
        kernel.end(11);
        assert_eq!(kernel.walk(&mut ledger), [(10, 20)]);
    }

    #[test]
    fn an_orphan_is_taken_from_the_one_that_took_it_over() {
        let (mut kernel, mut ledger) = (kernel(), Ledger::default());
        kernel.start(10, INIT);
        kernel.start(11, 10);
        kernel.walk(&mut ledger);
        kernel.write(11, 90);
        kernel.end(10);
        assert_eq!(kernel.walk(&mut ledger), [(11, 90)]);
        kernel.end(11);
        assert_eq!(kernel.walk(&mut ledger), []);
    }

    #[test]
    fn what_the_kernel_s_threads_wrote_is_taken_from_nobody() {
        let (mut kernel, mut ledger) = (kernel(), Ledger::default());
        kernel.start(30, KTHREADD);
        kernel.walk(&mut ledger);
        kernel.write(30, 8);
        assert_eq!(kernel.walk(&mut ledger), [(30, 8)]);
        assert!(ledger.is_kernel_thread(30) && !ledger.is_kernel_thread(INIT));
        kernel.end(30);
        kernel.write(INIT, 100);
        assert_eq!(kernel.walk(&mut ledger), [(INIT, 100)]);
    }

    #[test]
    fn a_parent_that_got_nothing_keeps_what_it_moved_itself() {
        let (mut kernel, mut ledger) = (kernel(), Ledger::default());
        kernel.start(10, INIT);
        kernel.start(11, 10);
        kernel.write(11, 1_000);
        kernel.walk(&mut ledger);
        // It ignores SIGCHLD: nobody waits.
        kernel.alive.remove(&11);
        kernel.write(10, 7);
        assert_eq!(kernel.walk(&mut ledger), [(10, 7)]);
    }

    #[test]
    fn a_number_that_was_given_again_is_another_process() {
        let (mut kernel, mut ledger) = (kernel(), Ledger::default());
        kernel.start(10, INIT);
        kernel.write(10, 900);
        kernel.walk(&mut ledger);
        kernel.end(10);
        kernel.start(10, INIT);
        kernel.write(10, 60);
        assert_eq!(kernel.walk(&mut ledger), [(10, 60)]);
    }

    proptest! {
        /// Whoever starts, writes and ends: in the end each byte written since the first walk was counted once.
        #[test]
        fn each_byte_is_counted_once(
            steps in prop::collection::vec((0..4_u8, any::<prop::sample::Index>(), 1..1_000_u64), 1..120),
        ) {
            let (mut kernel, mut ledger) = (kernel(), Ledger::default());
            kernel.walk(&mut ledger);
            let (mut written, mut counted, mut next) = (0, 0, 10);
            for (what, whom, bytes) in steps {
                let pids: Vec<u32> = kernel.alive.keys().copied().filter(|&pid| pid != KTHREADD).collect();
                let pid = *whom.get(&pids);
                match what {
                    0 => {
                        kernel.start(next, pid);
                        next += 1;
                    }
                    1 => {
                        kernel.write(pid, bytes);
                        written += bytes;
                    }
                    2 if pid != INIT => kernel.end(pid),
                    _ => counted += kernel.walk(&mut ledger).iter().map(|moved| moved.1).sum::<u64>(),
                }
            }
            counted += kernel.walk(&mut ledger).iter().map(|moved| moved.1).sum::<u64>();
            prop_assert_eq!(counted, written);
        }
    }
}
