//! The lanes of a job as threads: starting them together, and emptying their mailboxes.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rubus_core::spec::{Content, Pattern};
use rubus_core::stats::{Histogram, Rng};
use std::os::fd::AsFd;

use crate::arena::Arena;
use crate::clock::now_ns;
use crate::engine::positional::{self, Commit, Read, SettledWrite, Write};
use crate::engine::ring::Queue;
use crate::harvest::Harvest;
use crate::lane::{LaneEnd, LaneOrder, LaneReport, Mailbox, Tally};
use crate::schedstat::Account;
use crate::walk::{Appending, Ascending, SharedAscending, Uniform, Walk};
use crate::work::{Engine, Work};

/// How long lanes may take to get ready: they allocate memory and make a ring, nothing else.
const GET_READY: Duration = Duration::from_secs(20);

/// A gate at which lanes wait for the start.
#[derive(Debug, Default)]
struct Gate {
    origin_ns: Mutex<Option<u64>>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) -> u64 {
        let origin_ns = now_ns();
        let mut guard = self
            .origin_ns
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *guard = Some(origin_ns);
        drop(guard);
        self.opened.notify_all();
        origin_ns
    }

    fn wait(&self) -> u64 {
        let mut guard = self
            .origin_ns
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        loop {
            match *guard {
                Some(origin_ns) => return origin_ns,
                None => {
                    guard = self
                        .opened
                        .wait(guard)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
    }
}

/// The running lanes of one job.
///
/// The threads are not joined: one that hangs in the kernel on a dead device must not take the
/// session with it. Each owns all that it uses.
pub(crate) struct Lanes {
    mailboxes: Vec<Arc<Mailbox>>,
    harvest: Harvest,
}

impl Lanes {
    /// Starts the threads of `work`; they begin together.
    ///
    /// # Errors
    /// The system's error, in words, when a thread cannot be made or a lane cannot get ready.
    pub(crate) fn start(work: &Work) -> Result<Self, String> {
        let gate = Arc::new(Gate::default());
        let shared = SharedAscending::new(work.region_bytes, u64::from(work.block_bytes));
        let mut mailboxes = Vec::new();
        for lane in 0..work.lanes() {
            let mailbox = Arc::new(Mailbox::default());
            let duty = Duty {
                work: work.clone(),
                lane,
                shared: shared.clone(),
                gate: Arc::clone(&gate),
                mailbox: Arc::clone(&mailbox),
            };
            mailboxes.push(mailbox);
            let spawned = std::thread::Builder::new()
                .name(format!("lane-{lane}"))
                .stack_size(256 << 10)
                .spawn(move || duty.run());
            if let Err(error) = spawned {
                // Lanes that already wait would wait for ever.
                for mailbox in &mailboxes {
                    mailbox.stop();
                }
                gate.open();
                return Err(format!(
                    "cannot start thread {} of {}: {error}",
                    lane + 1,
                    work.lanes()
                ));
            }
        }
        let is_ready = mailboxes
            .iter()
            .all(|mailbox| mailbox.wait_until(GET_READY, |news| news.ready || news.ended));
        if !is_ready {
            mailboxes.iter().for_each(|mailbox| mailbox.stop());
        }
        let origin_ns = gate.open();
        if !is_ready {
            return Err("the threads did not get ready in time".into());
        }
        let harvest = Harvest::new(origin_ns, mailboxes.len());
        Ok(Lanes { mailboxes, harvest })
    }

    /// Waits until all lanes have ended, at most `most`, and gathers what is new; true when all
    /// have ended.
    pub(crate) fn poll(&mut self, most: Duration) -> bool {
        let deadline_ns = now_ns().saturating_add(most.as_nanos() as u64);
        for mailbox in &self.mailboxes {
            let left = Duration::from_nanos(deadline_ns.saturating_sub(now_ns()));
            mailbox.wait_until(left, |news| news.ended);
        }
        self.harvest.gather(&self.mailboxes);
        self.harvest.all_ended()
    }

    /// Tells the lanes to end after their current operations.
    pub(crate) fn stop(&self) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.stop());
    }

    /// What has been gathered.
    pub(crate) fn harvest(&self) -> &Harvest {
        &self.harvest
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What one thread does.
struct Duty {
    work: Work,
    lane: u32,
    shared: SharedAscending,
    gate: Arc<Gate>,
    mailbox: Arc<Mailbox>,
}

/// Reports a failure if the thread ends without a report: a panic must not look like a hang.
struct LastWord(Arc<Mailbox>);

impl Drop for LastWord {
    fn drop(&mut self) {
        let ended = self.0.news().ended;
        if !ended {
            fail(
                &self.0,
                "the measuring thread broke off; this is a bug".into(),
            );
        }
    }
}

fn fail(mailbox: &Mailbox, error: String) {
    let report = LaneReport {
        end: LaneEnd::Failed(error),
        histogram: Histogram::new(),
        warm_slices: 0,
        operations: 0,
        last_ns: now_ns(),
        cpu_ns: 0,
        run_delay_ns: None,
    };
    mailbox.report(report);
}

impl Duty {
    fn run(self) {
        let _last_word = LastWord(Arc::clone(&self.mailbox));
        match self.work.engine {
            Engine::Ring => self.run_ring(),
            Engine::Positional | Engine::Threads => self.run_positional(),
        }
    }

    fn seed(&self) -> u64 {
        Rng::stream(self.work.seed, u64::from(self.lane)).next_u64()
    }

    /// Announces readiness, waits for the start and gives the empty account.
    fn begin(&self) -> Tally {
        self.mailbox.announce(|news| {
            // Room for what a job usually takes, so that the loop does not allocate.
            news.slices.reserve(4096);
            news.slow.reserve(1024);
            news.ready = true;
        });
        let account = Account::of_this_thread();
        let origin_ns = self.gate.wait();
        let order = LaneOrder {
            origin_ns,
            began_ns: now_ns(),
            most_operations: self.work.share_of(self.work.most_operations, self.lane),
            warm_up_ns: self.work.warm_up_ns,
            warm_up_operations: self.work.share_of(self.work.warm_up_operations, self.lane),
        };
        Tally::new(Arc::clone(&self.mailbox), order, account)
    }

    fn run_ring(&self) {
        let work = &self.work;
        let queue = Queue::new(
            work.file.as_fd(),
            work.queue_depth,
            work.block_bytes,
            work.is_write(),
            work.content,
            self.seed(),
        );
        let mut queue = match queue {
            Ok(queue) => queue,
            Err(errno) => {
                let error = std::io::Error::from(errno);
                return fail(&self.mailbox, format!("cannot make an io_uring: {error}"));
            }
        };
        let mut tally = self.begin();
        let (region, block) = (work.region_bytes, u64::from(work.block_bytes));
        let end = match work.pattern {
            Pattern::Sequential => queue.run(Ascending::new(region, block), &mut tally),
            Pattern::Random => {
                let random = Rng::from_seed(self.seed());
                queue.run(Uniform::new(region, block, random), &mut tally)
            }
        };
        tally.finish(end);
    }

    fn run_positional(&self) {
        let work = &self.work;
        let arena = Arena::new(1, work.block_bytes as usize, work.content, self.seed());
        let mut arena = match arena {
            Ok(arena) => arena,
            Err(error) => {
                let bytes = work.block_bytes;
                return fail(
                    &self.mailbox,
                    format!("cannot get {bytes} bytes of memory: {error}"),
                );
            }
        };
        let mut tally = self.begin();
        let (region, block) = (work.region_bytes, u64::from(work.block_bytes));
        let memory = arena.first_mut();
        let end = match (work.append_from, work.pattern) {
            (Some(start), _) => self.repeat(Appending::new(start, block), memory, &mut tally),
            (None, Pattern::Sequential) if work.lanes() > 1 => {
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

    fn repeat(&self, walk: impl Walk, memory: &mut [u8], tally: &mut Tally) -> LaneEnd {
        let work = &self.work;
        let fd = work.file.as_fd();
        let block_bytes = work.block_bytes as usize;
        if !work.is_write() {
            let read = Read { fd, block: memory };
            return positional::run(read, block_bytes, walk, tally);
        }
        let write = Write {
            fd,
            block: memory,
            stamps: (work.content != Content::Zeros).then(|| self.seed()),
        };
        if work.is_commit() {
            positional::run(Commit(write), block_bytes, walk, tally)
        } else if work.settles {
            positional::run(SettledWrite(write), block_bytes, walk, tally)
        } else {
            positional::run(write, block_bytes, walk, tally)
        }
    }
}
