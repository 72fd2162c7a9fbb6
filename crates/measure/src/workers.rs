//! The workers of a job as threads: starting them together, and emptying their mailboxes.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rubus_stats::{Batches, Histogram, Rng};
use rubus_vocabulary::spec::Pattern;
use std::os::fd::AsFd;

use crate::completions::Completions;
use crate::engine::positional::{self, Commit, Read, SettledWrite, Write};
use crate::engine::ring::Queue;
use crate::engine::wire::Line;
use crate::general::{self, Baton, Exclusive, General, Ledger, Places, READS, WRITES};
use crate::mailbox::{Mailbox, WorkerEnd, WorkerReport};
use crate::walk::{Appending, Ascending, SharedAscending, Uniform, Walk};
use crate::work::{Engine, Work};
use crate::worker::{Tally, WorkerOrder};
use rubus_host::block::buffers::Buffers;
use rubus_host::process::schedstat::Account;
use rubus_host::ticks::now_ns;

/// How long workers may take to get ready: they allocate memory and make a ring, nothing else.
const GET_READY: Duration = Duration::from_secs(20);

/// A gate at which workers wait for the start.
#[derive(Debug, Default)]
struct Gate {
    origin_ns: Mutex<Option<u64>>,
    opened: Condvar,
}

impl Gate {
    /// Lets the workers begin `delay_ns` from now; returns when that is.
    fn open(&self, delay_ns: u64) -> u64 {
        let origin_ns = now_ns().saturating_add(delay_ns);
        let mut guard = self.origin_ns.lock().unwrap_or_else(PoisonError::into_inner);
        *guard = Some(origin_ns);
        drop(guard);
        self.opened.notify_all();
        origin_ns
    }

    fn wait(&self) -> u64 {
        let mut guard = self.origin_ns.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *guard {
                Some(origin_ns) => return origin_ns,
                None => guard = self.opened.wait(guard).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// The running workers of one job.
///
/// The threads are not joined: one that hangs in the kernel on a dead device must not take the
/// session with it. Each owns all that it uses.
pub(crate) struct Workers {
    /// One, or two of a mix: reads, then writes.
    accounts: Vec<Mailboxes>,
    completions: Vec<Completions>,
    batons: Vec<Arc<Baton>>,
}

/// The mailboxes of all workers for one kind of operation.
type Mailboxes = Vec<Arc<Mailbox>>;

impl Workers {
    /// Starts the threads of `work`; they begin together.
    ///
    /// # Errors
    /// The system's error, in words, when a thread cannot be made or a worker cannot get ready.
    pub(crate) fn start(work: &Work) -> Result<Self, String> {
        let shared = match work.general {
            Some(_) => SharedAscending::new(1, 1),
            None => SharedAscending::new(work.region_bytes, u64::from(work.block_bytes)),
        };
        let batons = batons(work);
        let group = Group {
            workers: work.workers(),
            accounts: work.sides().len(),
            delay_ns: work.delay_ns,
        };
        let mut workers = Workers::start_group(group, |worker, start| {
            let copy = (worker / work.workers_per_copy()) as usize;
            let duty = Duty {
                work: work.clone(),
                worker,
                shared: shared.clone(),
                baton: batons.get(copy).cloned(),
                start,
            };
            Box::new(move || duty.run())
        })?;
        workers.batons = batons;
        Ok(workers)
    }

    /// Starts `count` threads that do what `duty` makes for each by its number; each must end with a
    /// report, and one that does not has failed.
    ///
    /// # Errors
    /// As for [`Workers::start`].
    pub(crate) fn start_each(
        count: u32,
        duty: impl FnMut(u32, WorkerStart) -> Box<dyn FnOnce() + Send>,
    ) -> Result<Self, String> {
        let group = Group { workers: count, accounts: 1, delay_ns: 0 };
        Workers::start_group(group, duty)
    }

    fn start_group(
        group: Group,
        mut duty: impl FnMut(u32, WorkerStart) -> Box<dyn FnOnce() + Send>,
    ) -> Result<Self, String> {
        let gate = Arc::new(Gate::default());
        let mut accounts: Vec<Mailboxes> = vec![Vec::new(); group.accounts];
        for worker in 0..group.workers {
            let of_worker: Mailboxes = (0..group.accounts).map(|_| Arc::default()).collect();
            for (mailboxes, mailbox) in accounts.iter_mut().zip(&of_worker) {
                mailboxes.push(Arc::clone(mailbox));
            }
            let last_word = LastWord(of_worker.clone());
            let start = WorkerStart { gate: Arc::clone(&gate), mailboxes: of_worker };
            let duty = duty(worker, start);
            let spawned = std::thread::Builder::new()
                .name(format!("lane-{worker}"))
                .stack_size(256 << 10)
                .spawn(move || {
                    let _last_word = last_word;
                    duty();
                });
            if let Err(error) = spawned {
                // Workers that already wait would wait for ever.
                for mailbox in accounts.iter().flatten() {
                    mailbox.stop();
                }
                gate.open(0);
                return Err(format!(
                    "cannot start thread {} of {}: {error}",
                    worker + 1,
                    group.workers
                ));
            }
        }
        let is_ready = accounts
            .iter()
            .flatten()
            .all(|mailbox| mailbox.wait_until(GET_READY, |news| news.ready || news.ended));
        if !is_ready {
            accounts.iter().flatten().for_each(|mailbox| mailbox.stop());
        }
        let origin_ns = gate.open(group.delay_ns);
        if !is_ready {
            return Err("the threads did not get ready in time".into());
        }
        let completions =
            accounts.iter().map(|mailboxes| Completions::new(origin_ns, mailboxes.len())).collect();
        Ok(Workers { accounts, completions, batons: Vec::new() })
    }

    /// Waits until all workers have ended, at most `most`, and gathers what is new; true when all
    /// have ended.
    pub(crate) fn poll(&mut self, most: Duration) -> bool {
        let deadline_ns = now_ns().saturating_add(most.as_nanos() as u64);
        for mailbox in self.accounts.iter().flatten() {
            let left = Duration::from_nanos(deadline_ns.saturating_sub(now_ns()));
            mailbox.wait_until(left, |news| news.ended);
        }
        for (completions, mailboxes) in self.completions.iter_mut().zip(&self.accounts) {
            completions.gather(mailboxes);
        }
        self.completions.iter().all(Completions::all_ended)
    }

    /// Tells the workers to end after their current operations.
    pub(crate) fn stop(&self) {
        self.accounts.iter().flatten().for_each(|mailbox| mailbox.stop());
    }

    /// How many operations the scripts of a shaped job have handed out, for each copy.
    pub(crate) fn handed_out(&self) -> Vec<u64> {
        self.batons.iter().map(|baton| baton.handed_out()).collect()
    }

    /// What has been gathered: one, or two of a mix, reads first.
    pub(crate) fn completions(&self) -> &[Completions] {
        &self.completions
    }

    /// The same, for taking bins out.
    pub(crate) fn completions_mut(&mut self) -> &mut [Completions] {
        &mut self.completions
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How many threads are started, and when they begin.
#[derive(Clone, Copy)]
struct Group {
    workers: u32,
    /// Accounts of each: one, or two of a mix.
    accounts: usize,
    delay_ns: u64,
}

/// What a worker's thread has in hand before it begins.
pub(crate) struct WorkerStart {
    gate: Arc<Gate>,
    /// One, or two of a mix: reads, then writes.
    mailboxes: Mailboxes,
}

/// How much a worker may do, before it is known when it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerShare {
    /// See [`WorkerOrder::max_operations`].
    pub(crate) max_operations: u64,
    /// See [`WorkerOrder::block_bytes`].
    pub(crate) block_bytes: u32,
    /// See [`WorkerOrder::warm_up_ns`].
    pub(crate) warm_up_ns: u64,
    /// See [`WorkerOrder::warm_up_operations`].
    pub(crate) warm_up_operations: u64,
}

impl WorkerStart {
    /// Announces readiness, waits for the start and gives the empty account.
    pub(crate) fn begin(&self, share: WorkerShare) -> Tally {
        let account = Account::of_this_thread();
        let origin_ns = self.wait();
        let mailbox = Arc::clone(&self.mailboxes[0]);
        Tally::new(mailbox, share.order(origin_ns), account)
    }

    /// The same for each account; gives the time of the start, too.
    fn begin_all(&self, shares: &[WorkerShare]) -> (u64, Vec<Tally>) {
        let with_account = |mailbox| (Arc::clone(mailbox), Account::of_this_thread());
        let accounts: Vec<_> = self.mailboxes.iter().map(with_account).collect();
        let origin_ns = self.wait();
        let tallies = accounts.into_iter().zip(shares);
        let tally = |((mailbox, account), share): ((_, _), &WorkerShare)| {
            Tally::new(mailbox, share.order(origin_ns), account)
        };
        (origin_ns, tallies.map(tally).collect())
    }

    /// Announces readiness, waits for the start and gives its time.
    fn wait(&self) -> u64 {
        for mailbox in &self.mailboxes {
            mailbox.announce(|news| {
                // Room for what a job usually takes, so that the loop does not allocate.
                news.slices.reserve(512);
                news.slow.reserve(512);
                news.ready = true;
            });
        }
        let origin_ns = self.gate.wait();
        let is_stopped = || self.mailboxes.iter().any(|mailbox| mailbox.is_stopped());
        let mut now = now_ns();
        while now < origin_ns && !is_stopped() {
            const NAP_NS: u64 = 20_000_000;
            std::thread::sleep(Duration::from_nanos((origin_ns - now).min(NAP_NS)));
            now = now_ns();
        }
        origin_ns
    }

    /// The last act of a worker that cannot begin.
    pub(crate) fn fail(&self, error: String) {
        for mailbox in &self.mailboxes {
            fail(mailbox, error.clone());
        }
    }
}

impl WorkerShare {
    fn order(&self, origin_ns: u64) -> WorkerOrder {
        WorkerOrder {
            origin_ns,
            began_ns: now_ns(),
            max_operations: self.max_operations,
            block_bytes: self.block_bytes,
            warm_up_ns: self.warm_up_ns,
            warm_up_operations: self.warm_up_operations,
        }
    }
}

/// What one thread does.
struct Duty {
    work: Work,
    worker: u32,
    shared: SharedAscending,
    /// Where a shaped job's operations come from.
    baton: Option<Arc<Baton>>,
    start: WorkerStart,
}

/// Reports a failure if the thread ends without a report: a panic must not look like a hang.
struct LastWord(Mailboxes);

impl Drop for LastWord {
    fn drop(&mut self) {
        for mailbox in &self.0 {
            let ended = mailbox.news().ended;
            if !ended {
                let error = "the measuring thread broke off; this is a bug";
                fail(mailbox, error.into());
            }
        }
    }
}

fn fail(mailbox: &Mailbox, error: String) {
    let report = WorkerReport {
        end: WorkerEnd::Failed(error),
        histogram: Histogram::new(),
        batches: Batches::new(),
        responses: None,
        warm_slices: 0,
        operations: 0,
        bytes: 0,
        last_ns: now_ns(),
        cpu_ns: 0,
        run_delay_ns: None,
    };
    mailbox.report(report);
}

/// One baton for each copy of a shaped job.
fn batons(work: &Work) -> Vec<Arc<Baton>> {
    let copies = work.general.iter().flat_map(|general| &general.copies);
    let places = Arc::new(Places::default());
    let exclusive = |copy: &general::Copy| {
        let checks = copy.checks.as_ref()?;
        Some(Exclusive { places: Arc::clone(&places), files: checks.files.clone() })
    };
    copies.map(|copy| Arc::new(Baton::new(copy.script(), exclusive(copy)))).collect()
}

impl Duty {
    fn run(self) {
        match (&self.work.general, self.work.engine) {
            (Some(_), Engine::Ring { .. }) => self.run_general_queue(),
            (Some(_), Engine::Positional | Engine::Threads | Engine::Mapped) => {
                self.run_general_blocking();
            }
            (None, Engine::Ring { .. }) => self.run_ring(),
            (_, Engine::Wire) => self.run_wire(),
            // Only shaped jobs ask for mapped files.
            (None, Engine::Positional | Engine::Threads | Engine::Mapped) => self.run_positional(),
        }
    }

    fn seed(&self) -> u64 {
        Rng::stream(self.work.seed, u64::from(self.worker)).next_u64()
    }

    fn begin(&self) -> Tally {
        self.start.begin(WorkerShare {
            max_operations: self.work.share_of(self.work.max_operations, self.worker),
            block_bytes: self.work.block_bytes,
            warm_up_ns: self.work.warm_up_ns,
            warm_up_operations: self.work.share_of(self.work.warm_up_operations, self.worker),
        })
    }

    /// Announces readiness, waits for the start and gives its time and the empty accounts.
    fn begin_general(&self, general: &General) -> (u64, Ledger) {
        let sides = [READS, WRITES].into_iter().filter(|&side| general.has(side));
        let share = |side| WorkerShare {
            max_operations: u64::MAX,
            block_bytes: 0,
            warm_up_ns: self.work.warm_up_ns,
            warm_up_operations: general.warm_up_operations(side, self.work.workers()),
        };
        let shares: Vec<WorkerShare> = sides.clone().map(share).collect();
        let (origin_ns, begun) = self.start.begin_all(&shares);
        let mut tallies = [None, None];
        for (side, tally) in sides.zip(begun) {
            tallies[side] = Some(tally);
        }
        let is_single = !matches!(self.work.engine, Engine::Ring { .. });
        (origin_ns, Ledger::new(tallies, is_single, origin_ns))
    }

    fn run_general_queue(&self) {
        let Some((general, copy, baton)) = self.general_part() else {
            return;
        };
        let work = &self.work;
        let queue = general::Queue::new(copy, work.queue_depth, work.content, self.seed());
        let mut queue = match queue {
            Ok(queue) => queue,
            Err(errno) => {
                let error = std::io::Error::from(errno);
                return self.start.fail(format!("cannot make an io_uring: {error}"));
            }
        };
        let (origin_ns, mut ledger) = self.begin_general(general);
        let end = general::run_queued(&mut queue, baton, &mut ledger, origin_ns);
        ledger.finish(&end);
    }

    fn run_general_blocking(&self) {
        let Some((general, copy, baton)) = self.general_part() else {
            return;
        };
        let (work, longest) = (&self.work, copy.plan.longest() as usize);
        let bytes = longest.next_multiple_of(4096);
        let buffers = match Buffers::new(copy.blocks(), bytes, work.content, self.seed()) {
            Ok(buffers) => buffers,
            Err(error) => return self.start.fail(no_memory(bytes, &error)),
        };
        let maps = match (work.engine == Engine::Mapped).then(|| copy.mapped()).transpose() {
            Ok(maps) => maps,
            Err(error) => return self.start.fail(error),
        };
        let hands = general::Hands {
            files: &copy.files,
            maps,
            buffers,
            content: work.content,
            stamps: self.seed(),
            settles: work.settles,
            checks: copy.checks.as_ref(),
            write_block: copy.blocks() - 1,
        };
        let (origin_ns, mut ledger) = self.begin_general(general);
        let end = general::run_blocking(hands, baton, &mut ledger, origin_ns);
        ledger.finish(&end);
    }

    fn general_part(&self) -> Option<(&General, &general::Copy, &Baton)> {
        let general = self.work.general.as_deref()?;
        let copy = (self.worker / self.work.workers_per_copy()) as usize;
        Some((general, general.copies.get(copy)?, self.baton.as_deref()?))
    }

    fn run_ring(&self) {
        let work = &self.work;
        let queue = Queue::new(
            work.file.as_fd(),
            work.depth_of(self.worker),
            work.block_bytes,
            work.is_write(),
            work.content,
            self.seed(),
            work.is_polled(),
        );
        let mut queue = match queue {
            Ok(queue) => queue,
            Err(errno) => {
                let error = std::io::Error::from(errno);
                return self.start.fail(format!("cannot make an io_uring: {error}"));
            }
        };
        let mut tally = self.begin();
        let (region, block) = (work.region_bytes, u64::from(work.block_bytes));
        let end = match work.pattern {
            Pattern::Sequential if work.workers() > 1 => queue.run(self.shared.clone(), &mut tally),
            Pattern::Sequential => queue.run(Ascending::new(region, block), &mut tally),
            Pattern::Random => {
                let random = Rng::from_seed(self.seed());
                queue.run(Uniform::new(region, block, random), &mut tally)
            }
        };
        tally.finish(end);
    }

    fn run_wire(&self) {
        let work = &self.work;
        let Some(remote) = &work.remote else {
            let error = "no network disk to send to; this is a bug".into();
            return self.start.fail(error);
        };
        let depth = work.depth_of(self.worker);
        let line = match Line::new(remote, work, depth, self.seed()) {
            Ok(line) => line,
            Err(error) => return self.start.fail(error),
        };
        let mut tally = self.begin();
        let (region, block) = (work.region_bytes, u64::from(work.block_bytes));
        let end = match work.pattern {
            Pattern::Sequential if work.workers() > 1 => line.run(self.shared.clone(), &mut tally),
            Pattern::Sequential => line.run(Ascending::new(region, block), &mut tally),
            Pattern::Random => {
                let random = Rng::from_seed(self.seed());
                line.run(Uniform::new(region, block, random), &mut tally)
            }
        };
        tally.finish(end);
    }

    fn run_positional(&self) {
        let work = &self.work;
        let buffers = Buffers::new(1, work.block_bytes as usize, work.content, self.seed());
        let mut buffers = match buffers {
            Ok(buffers) => buffers,
            Err(error) => {
                return self.start.fail(no_memory(work.block_bytes as usize, &error));
            }
        };
        let mut tally = self.begin();
        let (region, block) = (work.region_bytes, u64::from(work.block_bytes));
        let memory = buffers.first_mut();
        let end = match (work.append_from, work.pattern) {
            (Some(start), _) => self.repeat(Appending::new(start, block), memory, &mut tally),
            (None, Pattern::Sequential) if work.workers() > 1 => {
                self.repeat(self.shared.clone(), memory, &mut tally)
            }
            (None, Pattern::Sequential) => {
                self.repeat(Ascending::new(region, block), memory, &mut tally)
            }
            (None, Pattern::Random) => {
                let random = Rng::from_seed(self.seed());
                self.repeat(Uniform::new(region, block, random), memory, &mut tally)
            }
        };
        tally.finish(end);
    }

    fn repeat(&self, walk: impl Walk, memory: &mut [u8], tally: &mut Tally) -> WorkerEnd {
        let work = &self.work;
        let fd = work.file.as_fd();
        let block_bytes = work.block_bytes as usize;
        if !work.is_write() {
            let read = Read { fd, block: memory };
            return positional::run(read, block_bytes, walk, tally);
        }
        let write =
            Write { fd, block: memory, stamps: work.content.differs().then(|| self.seed()) };
        if work.is_commit() {
            positional::run(Commit(write), block_bytes, walk, tally)
        } else if work.settles {
            positional::run(SettledWrite(write), block_bytes, walk, tally)
        } else {
            positional::run(write, block_bytes, walk, tally)
        }
    }
}

fn no_memory(bytes: usize, error: &std::io::Error) -> String {
    format!("cannot get {bytes} bytes of memory: {error}")
}
