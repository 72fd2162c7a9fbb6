//! Threads for what takes long: reads from a device, flushes, zeros, whatever waits.
//!
//! Each connection has a queue of its own, and the threads serve the queues in turn, so that a client
//! with a hundred requests does not keep one with a single request waiting. Threads come when there
//! is work and go when there is none.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rubus_host::clock::monotonic_ns;
use rubus_host::net::listening::{Bell, Came, first_of};

use super::disk::{Disk, Extent};
use super::orphans::{Abandoned, Connection, Writing, written_by};
pub(super) use super::thread_pool::lock;
use super::thread_pool::{Kind, ThreadPool};
use super::transmission::{Request, Work};

/// Threads for what waits for the disk of one export.
const DISK_THREADS: usize = 16;
/// Threads reserved for other clients, however many one client uses.
const KEPT_THREADS: usize = 4;
/// An idle thread ends after this long.
const IDLE: Duration = Duration::from_secs(10);
/// What runs in these threads needs little.
const STACK_BYTES: usize = 256 << 10;

/// What is to be done.
pub(super) struct Job {
    pub disk: Arc<dyn Disk>,
    /// Where it comes from, if others may write to the disk.
    pub connection: Option<Arc<Connection>>,
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

/// The queue of requests of one connection.
pub(super) struct RequestQueue {
    work: Mutex<QueuedWork>,
    done: Mutex<Vec<Done>>,
    bell: Bell,
    rings: AtomicBool,
}

/// What a queue has still to do.
#[derive(Default)]
struct QueuedWork {
    jobs: VecDeque<Job>,
    /// Number of threads working on it.
    running: usize,
    /// It waits for another one.
    is_queued: bool,
}

impl QueuedWork {
    /// Whether it has to wait for another thread, which it does from now on.
    fn queues(&mut self, max_running: usize) -> bool {
        let queues = !self.is_queued && !self.jobs.is_empty() && self.running < max_running;
        self.is_queued |= queues;
        queues
    }
}

impl RequestQueue {
    pub fn new() -> io::Result<Arc<RequestQueue>> {
        Ok(Arc::new(RequestQueue {
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
            // From here on a finished request rings again; what finished before is collected.
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
    /// Queues with work wait for them, each once.
    thread_pool: Arc<ThreadPool<Arc<RequestQueue>>>,
    /// Maximum number of threads for one queue.
    max_of_one: usize,
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
    pub fn new(max_threads: usize, max_of_one: usize) -> Pool {
        Pool {
            thread_pool: ThreadPool::new(Kind {
                name: "disk",
                stack_bytes: STACK_BYTES,
                idle: IDLE,
                most: max_threads,
            }),
            max_of_one,
        }
    }

    /// Has it done; the queue says when.
    ///
    /// # Errors
    /// When the system gives no thread at all.
    pub fn submit(&self, queue: &Arc<RequestQueue>, job: Job) -> io::Result<()> {
        let max_of_one = self.max_of_one;
        let (queues, is_full) = {
            let mut work = lock(&queue.work);
            work.jobs.push_back(job);
            (work.queues(max_of_one), work.running >= max_of_one)
        };
        let thread_pool = Arc::clone(&self.thread_pool);
        let run = move |queue| serve(&thread_pool, queue, max_of_one);
        // A queue that waits already is served again after its first job.
        let begun = if queues {
            self.thread_pool.take(Arc::clone(queue), run)
        } else if is_full {
            return Ok(());
        } else {
            self.thread_pool.one_more(run).map_err(|error| (Arc::clone(queue), error))
        };
        match begun {
            Err((_, error)) if self.thread_pool.threads() == 0 => Err(error),
            // Those that there are get to it.
            Err((queue, _)) if queues => {
                self.thread_pool.again(queue);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Does the first job of a queue; the next is behind those of other queues.
fn serve(thread_pool: &ThreadPool<Arc<RequestQueue>>, queue: Arc<RequestQueue>, max_of_one: usize) {
    let (job, queues) = {
        let mut work = lock(&queue.work);
        work.is_queued = false;
        let job = work.jobs.pop_front();
        work.running += usize::from(job.is_some());
        (job, work.queues(max_of_one))
    };
    if queues {
        thread_pool.again(Arc::clone(&queue));
    }
    let Some(job) = job else {
        return;
    };
    let done = run(job);
    let queues = {
        let mut work = lock(&queue.work);
        work.running -= 1;
        work.queues(max_of_one)
    };
    queue.finish(done);
    if queues {
        thread_pool.again(queue);
    }
}

/// Does it, whatever it takes.
fn run(job: Job) -> Done {
    let Job { disk, connection, request, payload, mut memory, begun_ns } = job;
    let begun = connection.as_ref().zip(written_by(&request.work));
    let begun = begun.map(|(connection, range)| connection.begin(range)).transpose();
    let writing = match begun {
        Ok(writing) => writing,
        Err(Abandoned) => {
            let result = Err(io::ErrorKind::ConnectionAborted.into());
            return Done { request, result, begun_ns };
        }
    };
    let made_durable = |durable: bool, done: io::Result<()>| {
        if durable { done.and_then(|()| disk.flush()) } else { done }
    };
    if let Some(writing) = writing.as_ref().filter(|writing| writing.is_overtaken()) {
        let result = run_parts(&*disk, &request.work, payload.as_deref(), writing);
        return Done { request, result: result.map(|()| Outcome::Nothing), begun_ns };
    }
    let result = match request.work {
        Work::Read { offset, .. } => disk.read(offset, &mut memory).map(|()| Outcome::Data(memory)),
        Work::Write { offset, durable, .. } => match payload {
            Some(payload) if durable => disk.write_durably(offset, &payload),
            Some(payload) => disk.write(offset, &payload),
            None => disk.flush(),
        }
        .map(|()| Outcome::Nothing),
        Work::Flush => disk.flush().map(|()| Outcome::Nothing),
        Work::Trim { offset, length, durable } => {
            made_durable(durable, disk.trim(offset, length)).map(|()| Outcome::Nothing)
        }
        Work::Zero { offset, length, how, durable } => {
            made_durable(durable, disk.zero(offset, length, how)).map(|()| Outcome::Nothing)
        }
        Work::Prefetch { offset, length } => {
            disk.prefetch(offset, length).map(|()| Outcome::Nothing)
        }
        Work::Extents { offset, length, only_one, .. } => {
            disk.extents(offset, length, only_one).map(Outcome::Extents)
        }
        Work::Nothing => Ok(Outcome::Nothing),
    };
    Done { request, result, begun_ns }
}

/// Does what others have not done later.
#[cold]
pub(super) fn run_parts(
    disk: &dyn Disk,
    work: &Work,
    payload: Option<&[u8]>,
    writing: &Writing<'_>,
) -> io::Result<()> {
    let mut is_durable = false;
    for part in writing.parts() {
        let length = part.end - part.start;
        match *work {
            Work::Write { offset, durable, .. } => {
                is_durable = durable;
                if let Some(payload) = payload {
                    let from = (part.start - offset) as usize;
                    disk.write(part.start, &payload[from..from + length as usize])?;
                }
            }
            Work::Trim { durable, .. } => {
                is_durable = durable;
                disk.trim(part.start, length)?;
            }
            Work::Zero { how, durable, .. } => {
                is_durable = durable;
                disk.zero(part.start, length, how)?;
            }
            Work::Read { .. }
            | Work::Flush
            | Work::Prefetch { .. }
            | Work::Extents { .. }
            | Work::Nothing => {}
        }
    }
    if is_durable { disk.flush() } else { Ok(()) }
}

/// Memory that all connections share.
#[derive(Debug)]
pub(super) struct Budget {
    free: AtomicUsize,
}

impl Budget {
    pub fn new(bytes: usize) -> Budget {
        Budget { free: AtomicUsize::new(bytes) }
    }

    /// Takes `bytes` bytes if they are free, and returns whether they were.
    pub fn take(&self, bytes: usize) -> bool {
        let less = |free: usize| free.checked_sub(bytes);
        self.free.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok()
    }

    pub fn give_back(&self, bytes: usize) {
        self.free.fetch_add(bytes, Ordering::AcqRel);
    }
}

/// Now, for how long something took.
pub(super) fn now_ns() -> u64 {
    monotonic_ns()
}
