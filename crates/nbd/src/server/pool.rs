//! Threads for what takes long: reads from a device, flushes, zeros, whatever waits.
//!
//! Each connection has a lane of its own, and the threads serve the lanes in turn, so that a client
//! with a hundred requests does not keep one with a single request waiting. Threads come when there
//! is work and go when there is none.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rubus_host::clock::monotonic_ns;
use rubus_host::listening::{Bell, Came, first_of};

use super::crew::{Crew, Kind};
use super::disk::{Disk, Extent};
use super::transmission::{Request, Work};

/// Threads for what waits for the disk of one export.
const DISK_THREADS: usize = 16;
/// So many of them are left to other clients, whatever one asks for.
const KEPT_THREADS: usize = 4;
/// A thread that has had nothing to do for so long goes.
const IDLE: Duration = Duration::from_secs(10);
/// What runs in these threads needs little.
const STACK_BYTES: usize = 256 << 10;

/// What is to be done.
pub(super) struct Job {
    pub disk: Arc<dyn Disk>,
    pub request: Request,
    /// What is to be written; a write without has been written, and is to be made durable.
    pub payload: Option<Vec<u8>>,
    /// Memory for what is read, as long as that, to be used again.
    pub memory: Vec<u8>,
    /// When the request came.
    pub begun_ns: u64,
}

/// What came of it.
pub(super) struct Done {
    pub request: Request,
    pub result: io::Result<Outcome>,
    pub begun_ns: u64,
}

/// What a job gives.
pub(super) enum Outcome {
    Nothing,
    Data(Vec<u8>),
    Extents(Vec<Extent>),
}

/// The work of one connection.
pub(super) struct Lane {
    work: Mutex<LaneWork>,
    done: Mutex<Vec<Done>>,
    bell: Bell,
    rings: AtomicBool,
}

/// What a lane has still to do.
#[derive(Default)]
struct LaneWork {
    jobs: VecDeque<Job>,
    /// So many threads are at it.
    running: usize,
    /// It waits for another one.
    is_queued: bool,
}

impl LaneWork {
    /// Whether it has to wait for another thread, which it does from now on.
    fn queues(&mut self, most_running: usize) -> bool {
        let queues = !self.is_queued && !self.jobs.is_empty() && self.running < most_running;
        self.is_queued |= queues;
        queues
    }
}

impl Lane {
    pub fn new() -> io::Result<Arc<Lane>> {
        Ok(Arc::new(Lane {
            work: Mutex::default(),
            done: Mutex::default(),
            bell: Bell::new()?,
            rings: AtomicBool::new(false),
        }))
    }

    /// Takes what is done.
    pub fn collect(&self, into: &mut Vec<Done>) {
        into.append(&mut lock(&self.done));
    }

    /// Forgets what no thread has begun yet; gives how much that is.
    pub fn abandon(&self) -> usize {
        let jobs = std::mem::take(&mut lock(&self.work).jobs);
        jobs.len()
    }

    /// Waits until something is done or something comes from the socket.
    pub fn wait(&self, socket: Option<BorrowedFd<'_>>, most: Duration) -> io::Result<Came> {
        let came = first_of(socket, &self.bell, Some(most))?;
        if came.bell {
            self.bell.silence();
            // After this whoever has done something rings again; what was done before is collected.
            self.rings.store(false, Ordering::SeqCst);
        }
        Ok(came)
    }

    fn finish(&self, done: Done) {
        lock(&self.done).push(done);
        if !self.rings.swap(true, Ordering::SeqCst) {
            self.bell.ring();
        }
    }
}

/// The threads of one export: another one that hangs has none of them.
pub(super) struct Pool {
    /// Lanes with work wait for them, each once.
    crew: Arc<Crew<Arc<Lane>>>,
    /// So many of them one lane may have.
    most_of_one: usize,
}

/// The pools of all exports that were opened.
#[derive(Default)]
pub(super) struct Pools(Mutex<BTreeMap<String, Arc<Pool>>>);

impl Pools {
    /// The pool of an export.
    pub fn of(&self, export: &str) -> Arc<Pool> {
        let mut pools = lock(&self.0);
        if let Some(pool) = pools.get(export) {
            return Arc::clone(pool);
        }
        let pool = Arc::new(Pool::new(DISK_THREADS, DISK_THREADS - KEPT_THREADS));
        pools.insert(export.into(), Arc::clone(&pool));
        pool
    }
}

impl Pool {
    pub fn new(most_threads: usize, most_of_one: usize) -> Pool {
        Pool {
            crew: Crew::new(Kind {
                name: "disk",
                stack_bytes: STACK_BYTES,
                idle: IDLE,
                most: most_threads,
            }),
            most_of_one,
        }
    }

    /// Has it done; the lane says when.
    ///
    /// # Errors
    /// When the system gives no thread at all.
    pub fn submit(&self, lane: &Arc<Lane>, job: Job) -> io::Result<()> {
        let most_of_one = self.most_of_one;
        let (queues, is_full) = {
            let mut work = lock(&lane.work);
            work.jobs.push_back(job);
            (work.queues(most_of_one), work.running >= most_of_one)
        };
        let crew = Arc::clone(&self.crew);
        let run = move |lane| serve(&crew, lane, most_of_one);
        // A lane that waits already is served again after its first job.
        let begun = match queues {
            true => self.crew.take(Arc::clone(lane), run),
            false if is_full => return Ok(()),
            false => self
                .crew
                .one_more(run)
                .map_err(|error| (Arc::clone(lane), error)),
        };
        match begun {
            Err((_, error)) if self.crew.threads() == 0 => Err(error),
            // Those that there are get to it.
            Err((lane, _)) if queues => {
                self.crew.again(lane);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Does the first job of a lane; the next is behind those of other lanes.
fn serve(crew: &Crew<Arc<Lane>>, lane: Arc<Lane>, most_of_one: usize) {
    let (job, queues) = {
        let mut work = lock(&lane.work);
        work.is_queued = false;
        let job = work.jobs.pop_front();
        work.running += usize::from(job.is_some());
        (job, work.queues(most_of_one))
    };
    if queues {
        crew.again(Arc::clone(&lane));
    }
    let Some(job) = job else {
        return;
    };
    let done = run(job);
    let queues = {
        let mut work = lock(&lane.work);
        work.running -= 1;
        work.queues(most_of_one)
    };
    lane.finish(done);
    if queues {
        crew.again(lane);
    }
}

/// Does it, whatever it takes.
fn run(job: Job) -> Done {
    let Job {
        disk,
        request,
        payload,
        mut memory,
        begun_ns,
    } = job;
    let made_durable = |durable: bool, done: io::Result<()>| match durable {
        true => done.and_then(|()| disk.flush()),
        false => done,
    };
    let result = match request.work {
        Work::Read { offset, .. } => disk
            .read(offset, &mut memory)
            .map(|()| Outcome::Data(memory)),
        Work::Write {
            offset, durable, ..
        } => match payload {
            Some(payload) if durable => disk.write_durably(offset, &payload),
            Some(payload) => disk.write(offset, &payload),
            None => disk.flush(),
        }
        .map(|()| Outcome::Nothing),
        Work::Flush => disk.flush().map(|()| Outcome::Nothing),
        Work::Trim {
            offset,
            length,
            durable,
        } => made_durable(durable, disk.trim(offset, length)).map(|()| Outcome::Nothing),
        Work::Zero {
            offset,
            length,
            how,
            durable,
        } => made_durable(durable, disk.zero(offset, length, how)).map(|()| Outcome::Nothing),
        Work::Prefetch { offset, length } => {
            disk.prefetch(offset, length).map(|()| Outcome::Nothing)
        }
        Work::Extents {
            offset,
            length,
            only_one,
            ..
        } => disk.extents(offset, length, only_one).map(Outcome::Extents),
        Work::Nothing => Ok(Outcome::Nothing),
    };
    Done {
        request,
        result,
        begun_ns,
    }
}

/// Memory that all connections share.
#[derive(Debug)]
pub(super) struct Budget {
    free: AtomicUsize,
}

impl Budget {
    pub fn new(bytes: usize) -> Budget {
        Budget {
            free: AtomicUsize::new(bytes),
        }
    }

    /// Takes so many bytes, if there are.
    pub fn take(&self, bytes: usize) -> bool {
        let less = |free: usize| free.checked_sub(bytes);
        self.free
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less)
            .is_ok()
    }

    pub fn give_back(&self, bytes: usize) {
        self.free.fetch_add(bytes, Ordering::AcqRel);
    }
}

/// Nothing that is kept under these locks is ever half done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Now, for how long something took.
pub(super) fn now_ns() -> u64 {
    monotonic_ns()
}
