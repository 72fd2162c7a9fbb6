//! Who moved how much between two walks over all processes, each byte counted once.
//!
//! When a process ends and its parent waits for it, the kernel adds the child's counters to the parent's
//! (`wait_task_zombie` in kernel/exit.c). What was seen of a child while it lived has been counted by then, and must not be
//! counted again as the parent's. What was not seen of it is the parent's, unless the kernel tells of tasks that end: then it
//! is the child's.

use std::collections::BTreeMap;

use rubus_host::process::ended_tasks::EndedTask;

use super::programs::{ProgramCounters, Traffic};

/// The first process, which starts all units and takes over those whose parents have ended.
pub(crate) const INIT: u32 = 1;
/// The parent of the kernel's threads. They end without anybody waiting for them.
const KTHREADD: u32 = 2;

/// What a process moved between two walks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Process id.
    pub pid: u32,
    /// Bytes read, written and cancelled.
    pub traffic: Traffic,
    /// Name of one that has ended, and the nearest process that it came from and that lives.
    pub ended: Option<(String, u32)>,
}

/// What is known of the processes as of the last walk.
#[derive(Debug, Default)]
pub struct Ledger {
    known: BTreeMap<u32, Known>,
    /// Of processes of which a task has ended: what all those tasks moved.
    tasks: BTreeMap<u32, Tasks>,
    /// Traffic of ended processes that had not reached a living process at the last walk.
    owed: Vec<Moved>,
    has_begun: bool,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    parent: u32,
    totals: Traffic,
    /// Of these what is its ended children's; unknown for one that was there before the first walk.
    of_children: Option<Traffic>,
}

#[derive(Clone, Debug, Default)]
struct Tasks {
    parent: u32,
    name: String,
    traffic: Traffic,
}

impl Ledger {
    /// What each process moved since the walk before, those that moved nothing left out, in the order of process numbers.
    /// `now` has every process once, `ended` what the kernel told of ended tasks until then, nothing if it does not tell.
    /// Nothing comes of the first walk. A process that was not there before, or whose number was given again, counts from
    /// its start. `parent_of` is asked for the parent of a process that is there now, once for each unless its parent ends.
    pub fn walk(
        &mut self,
        now: &[ProgramCounters],
        ended: &[EndedTask],
        mut parent_of: impl FnMut(u32) -> Option<u32>,
    ) -> Vec<Moved> {
        let mut gone = std::mem::take(&mut self.known);
        let mut moved: BTreeMap<u32, Traffic> = BTreeMap::new();
        for program in now {
            let earlier = gone.get(&program.pid).copied();
            let since = earlier.and_then(|earlier| program.traffic.since(earlier.totals));
            let known = match (earlier, since) {
                (Some(earlier), Some(_)) => {
                    gone.remove(&program.pid);
                    Known { totals: program.traffic, ..earlier }
                }
                _ => Known {
                    parent: parent_of(program.pid).unwrap_or_default(),
                    totals: program.traffic,
                    of_children: self.has_begun.then(Traffic::default),
                },
            };
            self.known.insert(program.pid, known);
            moved.insert(program.pid, since.unwrap_or(program.traffic));
        }
        let all_gone = self.note(&gone, ended);
        self.take_back(&gone, &all_gone, &mut moved);
        let of_ended = self.of_ended(&gone, &all_gone, &mut moved);
        for (pid, known) in &mut self.known {
            if all_gone.contains_key(&known.parent) {
                known.parent = parent_of(*pid).unwrap_or_default();
            }
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            self.owed.clear();
            return Vec::new();
        }
        let alive = moved.into_iter().map(|(pid, traffic)| Moved { pid, traffic, ended: None });
        let mut all: Vec<Moved> = alive.chain(of_ended).collect();
        all.retain(|moved| !moved.traffic.is_nothing());
        all.sort_by_key(|moved| moved.pid);
        all
    }

    /// Whether it is one of the kernel's threads.
    pub fn is_kernel_thread(&self, pid: u32) -> bool {
        pid == KTHREADD || self.known.get(&pid).is_some_and(|known| known.parent == KTHREADD)
    }

    /// Takes note of the tasks that ended; gives the parents of all processes that are gone, seen or not.
    fn note(&mut self, gone: &BTreeMap<u32, Known>, ended: &[EndedTask]) -> BTreeMap<u32, u32> {
        for task in ended {
            let tasks = self.tasks.entry(task.process).or_default();
            tasks.parent = task.parent;
            // The first thread has the name of the process.
            if task.task == task.process || tasks.name.is_empty() {
                tasks.name.clone_from(&task.name);
            }
            tasks.traffic = tasks.traffic.and(Traffic {
                read_bytes: task.read_bytes,
                written_bytes: task.written_bytes,
                cancelled_bytes: task.cancelled_bytes,
            });
        }
        let told = self.tasks.iter().map(|(pid, tasks)| (*pid, tasks.parent));
        let told = told.filter(|(pid, _)| !self.known.contains_key(pid));
        let seen = gone.iter().map(|(pid, known)| (*pid, known.parent));
        // The kernel names the parent that was there at the end, which need not be the one of the last walk.
        seen.chain(told).collect()
    }

    /// Takes what was counted of those that have ended from the nearest ancestor that got it. A parent that does not care
    /// for its children (SIGCHLD ignored) gets nothing; then no ancestor grew by as much, but for chance.
    fn take_back(
        &mut self,
        gone: &BTreeMap<u32, Known>,
        all_gone: &BTreeMap<u32, u32>,
        moved: &mut BTreeMap<u32, Traffic>,
    ) {
        let mut all: Vec<(&u32, &Known)> = gone.iter().collect();
        all.retain(|(_, ended)| !ended.totals.is_nothing());
        // What fits in few places goes first.
        all.sort_by_key(|(pid, ended)| (std::cmp::Reverse(ended.totals.written_bytes), **pid));
        for (pid, ended) in all {
            let parent = all_gone.get(pid).copied().unwrap_or(ended.parent);
            let ancestors = self.ancestors(parent, all_gone);
            self.take(ended.totals, &ancestors, moved);
        }
    }

    /// Takes it from the first of the ancestors that moved as much; whether there was one.
    fn take(
        &mut self,
        traffic: Traffic,
        ancestors: &[u32],
        moved: &mut BTreeMap<u32, Traffic>,
    ) -> bool {
        for ancestor in ancestors {
            let Some(theirs) = moved.get_mut(ancestor) else {
                continue;
            };
            if let Some(left) = theirs.since(traffic) {
                *theirs = left;
                if let Some(known) = self.known.get_mut(ancestor) {
                    known.of_children = known.of_children.map(|sum| sum.and(traffic));
                }
                return true;
            }
        }
        false
    }

    /// What the processes that have ended moved after they were seen last, or ever, taken from the ancestors that got it.
    /// An ancestor that has not waited yet gets it until the next walk; one that never waits has nothing to give.
    fn of_ended(
        &mut self,
        gone: &BTreeMap<u32, Known>,
        all_gone: &BTreeMap<u32, u32>,
        moved: &mut BTreeMap<u32, Traffic>,
    ) -> Vec<Moved> {
        let mut counted = Vec::new();
        for mut owed in std::mem::take(&mut self.owed) {
            let parent = owed.ended.as_ref().map_or(0, |(_, parent)| *parent);
            let ancestors = self.ancestors(parent, all_gone);
            self.take(owed.traffic, &ancestors, moved);
            if let (Some((_, from)), Some(nearest)) = (&mut owed.ended, ancestors.first()) {
                *from = *nearest;
            }
            counted.push(owed);
        }
        let over: Vec<u32> =
            self.tasks.keys().copied().filter(|pid| !self.known.contains_key(pid)).collect();
        for pid in over {
            let Some(tasks) = self.tasks.remove(&pid) else {
                continue;
            };
            let seen = match gone.get(&pid) {
                None => Some(Traffic::default()),
                // What was its own when it was seen last.
                Some(known) => {
                    known.of_children.and_then(|of_children| known.totals.since(of_children))
                }
            };
            let unseen = seen.and_then(|seen| tasks.traffic.since(seen));
            let Some(traffic) = unseen.filter(|traffic| !traffic.is_nothing()) else {
                continue;
            };
            let ancestors = self.ancestors(tasks.parent, all_gone);
            let is_taken = self.take(traffic, &ancestors, moved);
            let nearest = ancestors.first().copied().unwrap_or(INIT);
            let one = Moved { pid, traffic, ended: Some((tasks.name, nearest)) };
            if is_taken { counted.push(one) } else { self.owed.push(one) }
        }
        counted
    }

    /// Those of the ancestors that still live, the nearest first, and at last the process that takes over orphans.
    fn ancestors(&self, parent: u32, gone: &BTreeMap<u32, u32>) -> Vec<u32> {
        let mut living = Vec::new();
        let mut at = parent;
        // Numbers that were given again could make a circle.
        for _ in 0..=gone.len() + self.known.len() {
            if at == KTHREADD {
                return Vec::new();
            }
            at = match (gone.get(&at), self.known.get(&at)) {
                (Some(parent), _) => *parent,
                (None, Some(lives)) => {
                    living.push(at);
                    lives.parent
                }
                (None, None) => break,
            };
        }
        if !living.contains(&INIT) {
            living.push(INIT);
        }
        living
    }
}

/// Those that moved most, the busiest first.
pub fn busiest(moved: &[Moved], most: usize) -> Vec<&Moved> {
    let read_or_written = |moved: &Moved| {
        let traffic = moved.traffic;
        traffic.read_bytes.saturating_add(traffic.written_bytes)
    };
    let mut all: Vec<&Moved> = moved.iter().collect();
    all.retain(|moved| read_or_written(moved) > 0);
    all.sort_by_key(|moved| (std::cmp::Reverse(read_or_written(moved)), moved.pid));
    all.truncate(most);
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Processes with their parents, as the kernel keeps them.
    #[derive(Clone, Debug, Default)]
    struct Kernel {
        alive: BTreeMap<u32, Process>,
        /// What it tells of those that end, if it does.
        ended: Option<Vec<EndedTask>>,
        /// A parent ended before its child, without a report of that; or before it waited for a zombie child. Which
        /// ancestor got the child's bytes can then only be guessed.
        is_unclear: bool,
    }

    #[derive(Clone, Copy, Debug, Default)]
    struct Process {
        parent: u32,
        own: u64,
        of_children: u64,
        is_zombie: bool,
    }

    fn written(written_bytes: u64) -> Traffic {
        Traffic { written_bytes, ..Traffic::default() }
    }

    impl Kernel {
        fn walk(&mut self, ledger: &mut Ledger) -> Vec<(u32, u64)> {
            let now = self.alive.iter().map(|(&pid, process)| ProgramCounters {
                pid,
                traffic: written(process.own + process.of_children),
            });
            let now: Vec<ProgramCounters> = now.collect();
            let ended = self.ended.as_mut().map(std::mem::take).unwrap_or_default();
            let moved =
                ledger.walk(&now, &ended, |pid| self.alive.get(&pid).map(|alive| alive.parent));
            let moved = moved.iter();
            moved.map(|p| (p.pid, p.traffic.written_bytes)).collect()
        }

        fn start(&mut self, pid: u32, parent: u32) {
            let process = Process { parent, ..Process::default() };
            self.alive.insert(pid, process);
        }

        fn write(&mut self, pid: u32, bytes: u64) {
            self.alive.get_mut(&pid).unwrap().own += bytes;
        }

        /// Makes it a zombie: it has not been waited for. Init adopts its children.
        fn die(&mut self, pid: u32) {
            let process = self.alive.get_mut(&pid).unwrap();
            process.is_zombie = true;
            let process = *process;
            if let Some(ended) = &mut self.ended {
                ended.push(EndedTask {
                    task: pid,
                    process: pid,
                    parent: process.parent,
                    name: pid.to_string(),
                    read_bytes: 0,
                    written_bytes: process.own,
                    cancelled_bytes: 0,
                });
            }
            for child in self.alive.values_mut().filter(|child| child.parent == pid) {
                child.parent = INIT;
                self.is_unclear |= child.is_zombie || self.ended.is_none();
            }
        }

        /// Its parent waits for it.
        fn bury(&mut self, pid: u32) {
            let process = self.alive.remove(&pid).unwrap();
            if process.parent != KTHREADD {
                let parent = self.alive.get_mut(&process.parent).unwrap();
                parent.of_children += process.own + process.of_children;
            }
        }

        fn end(&mut self, pid: u32) {
            self.die(pid);
            self.bury(pid);
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
    fn what_the_kernel_s_threads_wrote_is_taken_from_no_process() {
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
        // The parent ignores SIGCHLD and does not wait.
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

    fn telling() -> Kernel {
        Kernel { ended: Some(Vec::new()), ..kernel() }
    }

    #[test]
    fn where_the_kernel_tells_of_those_that_end_they_are_named_and_not_their_parent() {
        let (mut kernel, mut ledger) = (telling(), Ledger::default());
        kernel.start(10, INIT);
        kernel.walk(&mut ledger);
        // Seen for a while, and never seen at all.
        kernel.start(11, 10);
        kernel.write(11, 100);
        assert_eq!(kernel.walk(&mut ledger), [(11, 100)]);
        kernel.write(11, 30);
        kernel.end(11);
        kernel.start(12, 10);
        kernel.start(13, 12);
        kernel.write(13, 500);
        kernel.end(13);
        kernel.end(12);
        kernel.write(10, 7);
        assert_eq!(kernel.walk(&mut ledger), [(10, 7), (11, 30), (13, 500)]);
        assert_eq!(kernel.walk(&mut ledger), []);
    }

    #[test]
    fn a_zombie_is_counted_once() {
        let (mut kernel, mut ledger) = (telling(), Ledger::default());
        kernel.start(10, INIT);
        kernel.walk(&mut ledger);
        kernel.start(11, 10);
        kernel.write(11, 100);
        kernel.die(11);
        assert_eq!(kernel.walk(&mut ledger), [(11, 100)]);
        kernel.bury(11);
        assert_eq!(kernel.walk(&mut ledger), []);
    }

    #[test]
    fn one_whose_parent_never_waits_is_counted_at_the_next_walk() {
        let (mut kernel, mut ledger) = (telling(), Ledger::default());
        kernel.start(10, INIT);
        kernel.walk(&mut ledger);
        kernel.start(11, 10);
        kernel.write(11, 100);
        kernel.die(11);
        kernel.alive.remove(&11);
        assert_eq!(kernel.walk(&mut ledger), []);
        assert_eq!(kernel.walk(&mut ledger), [(11, 100)]);
        assert_eq!(kernel.walk(&mut ledger), []);
    }

    #[test]
    fn threads_that_end_are_part_of_their_process() {
        let (mut kernel, mut ledger) = (telling(), Ledger::default());
        kernel.start(10, INIT);
        kernel.walk(&mut ledger);
        kernel.start(11, 10);
        let thread = EndedTask {
            task: 99,
            process: 11,
            parent: 10,
            name: "worker".into(),
            read_bytes: 0,
            written_bytes: 60,
            cancelled_bytes: 0,
        };
        kernel.ended.as_mut().unwrap().push(thread);
        kernel.alive.get_mut(&11).unwrap().own = 60;
        assert_eq!(kernel.walk(&mut ledger), [(11, 60)]);
        // The task of the process itself moved nothing more.
        kernel.die(11);
        kernel.ended.as_mut().unwrap()[0].written_bytes = 0;
        kernel.bury(11);
        assert_eq!(kernel.walk(&mut ledger), []);
    }

    proptest! {
        /// Whatever processes start, write and end: in the end each byte written since the first walk was counted once,
        /// and where the kernel reports ended tasks, for the process that wrote it.
        #[test]
        fn each_byte_is_counted_once(
            is_telling: bool,
            steps in prop::collection::vec((0..5_u8, any::<prop::sample::Index>(), 1..1_000_u64), 1..120),
        ) {
            let mut kernel = if is_telling { telling() } else { kernel() };
            let mut ledger = Ledger::default();
            kernel.walk(&mut ledger);
            let mut next = 10;
            let (mut truth, mut told): (BTreeMap<u32, u64>, BTreeMap<u32, u64>) = Default::default();
            let mut count = |told: &mut BTreeMap<u32, u64>, kernel: &mut Kernel| {
                for (pid, bytes) in kernel.walk(&mut ledger) {
                    *told.entry(pid).or_default() += bytes;
                }
            };
            for (what, whom, bytes) in steps {
                let alive = kernel.alive.iter().filter(|(pid, process)| **pid != KTHREADD && !process.is_zombie);
                let alive: Vec<u32> = alive.map(|(pid, _)| *pid).collect();
                let pid = *whom.get(&alive);
                match what {
                    0 => {
                        kernel.start(next, pid);
                        next += 1;
                    }
                    1 => {
                        kernel.write(pid, bytes);
                        *truth.entry(pid).or_default() += bytes;
                    }
                    2 if pid != INIT => kernel.end(pid),
                    3 if pid != INIT => kernel.die(pid),
                    _ => count(&mut told, &mut kernel),
                }
                // A zombie is waited for some time later.
                let dead = kernel.alive.iter().find(|(_, process)| process.is_zombie).map(|(pid, _)| *pid);
                if let (Some(dead), true) = (dead, bytes % 3 == 0) {
                    kernel.bury(dead);
                }
            }
            count(&mut told, &mut kernel);
            count(&mut told, &mut kernel);
            let sum = |of: &BTreeMap<u32, u64>| of.values().sum::<u64>();
            if !kernel.is_unclear {
                prop_assert_eq!(sum(&told), sum(&truth));
            }
            if is_telling && !kernel.is_unclear {
                told.retain(|_, bytes| *bytes > 0);
                prop_assert_eq!(told, truth);
            }
        }
    }
}
