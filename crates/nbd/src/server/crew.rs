//! Threads that serve busy clients, one each. An idle client has none.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::pool::lock;

/// A thread that has had no client for so long goes.
const IDLE: Duration = Duration::from_secs(5);
const STACK_BYTES: usize = 512 << 10;

/// The threads, and what they do with a client.
pub(super) struct Crew<C> {
    state: Mutex<State<C>>,
    wake: Condvar,
}

struct State<C> {
    waiting: VecDeque<C>,
    idle: usize,
    threads: usize,
}

impl<C: Send + 'static> Crew<C> {
    pub fn new() -> Arc<Crew<C>> {
        Arc::new(Crew {
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                idle: 0,
                threads: 0,
            }),
            wake: Condvar::new(),
        })
    }

    /// Threads that there are now.
    pub fn threads(&self) -> usize {
        lock(&self.state).threads
    }

    /// Has a client served by `serve`, at once.
    ///
    /// # Errors
    /// When the system gives no thread; the client comes back.
    pub fn take(
        self: &Arc<Self>,
        client: C,
        serve: impl Fn(C) + Send + 'static,
    ) -> Result<(), (C, io::Error)> {
        let mut state = lock(&self.state);
        if state.idle > state.waiting.len() {
            state.waiting.push_back(client);
            drop(state);
            self.wake.notify_one();
            return Ok(());
        }
        state.waiting.push_back(client);
        state.threads += 1;
        drop(state);
        let crew = Arc::clone(self);
        let begun = std::thread::Builder::new()
            .name("client".into())
            .stack_size(STACK_BYTES)
            .spawn(move || crew.work(serve));
        match begun {
            Ok(_) => Ok(()),
            Err(error) => {
                let mut state = lock(&self.state);
                state.threads -= 1;
                match state.waiting.pop_back() {
                    Some(client) => Err((client, error)),
                    // One of the others has taken it.
                    None => Ok(()),
                }
            }
        }
    }

    fn work(&self, serve: impl Fn(C)) {
        while let Some(client) = self.next() {
            serve(client);
        }
    }

    fn next(&self) -> Option<C> {
        let mut state = lock(&self.state);
        loop {
            if let Some(client) = state.waiting.pop_front() {
                return Some(client);
            }
            state.idle += 1;
            let (woken, waited) = self
                .wake
                .wait_timeout(state, IDLE)
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
