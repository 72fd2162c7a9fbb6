//! Threads that come when there is work and go when there has been none for a while: for busy
//! clients, one each, for what waits for disks, and for handshakes that do.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the threads are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// Their name in process listings.
    pub name: &'static str,
    /// Memory for each of their stacks.
    pub stack_bytes: usize,
    /// A thread ends after this long without work.
    pub idle: Duration,
    /// Maximum number of threads; more work waits.
    pub most: usize,
}

/// Work that waits, and the threads that do it.
pub(super) struct ThreadPool<W> {
    kind: Kind,
    state: Mutex<State<W>>,
    wake: Condvar,
}

struct State<W> {
    waiting: VecDeque<W>,
    idle: usize,
    threads: usize,
}

impl<W: Send + 'static> ThreadPool<W> {
    pub fn new(kind: Kind) -> Arc<ThreadPool<W>> {
        Arc::new(ThreadPool {
            kind,
            state: Mutex::new(State { waiting: VecDeque::new(), idle: 0, threads: 0 }),
            wake: Condvar::new(),
        })
    }

    /// Threads that there are now.
    pub fn threads(&self) -> usize {
        lock(&self.state).threads
    }

    /// Has something done by `run`, at once unless there are as many threads as there may be.
    ///
    /// # Errors
    /// When the system gives no thread; the work comes back.
    pub fn take(
        self: &Arc<Self>,
        work: W,
        run: impl Fn(W) + Send + 'static,
    ) -> Result<(), (W, io::Error)> {
        let is_enough = {
            let mut state = lock(&self.state);
            state.waiting.push_back(work);
            state.idle >= state.waiting.len()
        };
        let Err(error) = self.wake(is_enough, run) else {
            return Ok(());
        };
        // One of the others may have taken it.
        match lock(&self.state).waiting.pop_back() {
            Some(work) => Err((work, error)),
            None => Ok(()),
        }
    }

    /// Has it done by a thread that is there, behind what waits.
    pub fn again(&self, work: W) {
        lock(&self.state).waiting.push_back(work);
        self.wake.notify_one();
    }

    /// Another thread looks for work, a new one if none is idle and there may be more.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn one_more(self: &Arc<Self>, run: impl Fn(W) + Send + 'static) -> io::Result<()> {
        let is_enough = lock(&self.state).idle > 0;
        self.wake(is_enough, run)
    }

    fn wake(self: &Arc<Self>, is_enough: bool, run: impl Fn(W) + Send + 'static) -> io::Result<()> {
        {
            let mut state = lock(&self.state);
            if is_enough || state.threads >= self.kind.most {
                drop(state);
                self.wake.notify_one();
                return Ok(());
            }
            state.threads += 1;
        }
        let thread_pool = Arc::clone(self);
        let begun = std::thread::Builder::new()
            .name(self.kind.name.into())
            .stack_size(self.kind.stack_bytes)
            .spawn(move || thread_pool.work(run));
        if begun.is_err() {
            lock(&self.state).threads -= 1;
        }
        begun.map(drop)
    }

    fn work(&self, run: impl Fn(W)) {
        while let Some(work) = self.next() {
            run(work);
        }
    }

    fn next(&self) -> Option<W> {
        let mut state = lock(&self.state);
        loop {
            if let Some(work) = state.waiting.pop_front() {
                return Some(work);
            }
            state.idle += 1;
            let (woken, waited) = self
                .wake
                .wait_timeout(state, self.kind.idle)
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() && state.waiting.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }
}

/// Nothing that is kept under these locks is ever half done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
