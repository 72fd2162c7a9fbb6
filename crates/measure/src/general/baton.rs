//! One script for all threads of a copy: who holds the baton takes the next operation.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::places::Places;
use super::script::{Operation, Script, Step};

/// A script that several threads take their operations from.
#[derive(Debug)]
pub(crate) struct Baton {
    state: Mutex<State>,
    changed: Condvar,
    exclusive: Option<Exclusive>,
}

/// No two operations may touch one another.
#[derive(Clone, Debug)]
pub(crate) struct Exclusive {
    /// The places of all copies.
    pub(crate) places: Arc<Places>,
    /// Numbers in the session of the script's files.
    pub(crate) files: Vec<u32>,
}

#[derive(Debug)]
struct State {
    script: Script,
    /// An operation that cannot begin because another is under way at its place.
    held: Option<Operation>,
    in_flight: u32,
    waiting: u32,
}

impl Baton {
    /// A baton at the beginning of the script.
    pub(crate) fn new(script: Script, exclusive: Option<Exclusive>) -> Self {
        Baton {
            exclusive,
            state: Mutex::new(State { script, held: None, in_flight: 0, waiting: 0 }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked has left a whole number of steps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next step at `now_ns` after the start of the script. An operation counts as in flight
    /// until [`Baton::done`].
    pub(crate) fn next(&self, now_ns: u64) -> Step {
        let mut state = self.lock();
        let in_flight = state.in_flight;
        let step = match state.held.take() {
            Some(operation) => Step::Do(operation),
            None => state.script.next(now_ns, in_flight),
        };
        if let Step::Do(operation) = &step {
            let touches = self.exclusive.as_ref().is_some_and(|exclusive| {
                let file = exclusive.file(operation);
                !exclusive.places.take(file, operation.offset, operation.bytes)
            });
            if touches {
                state.held = Some(*operation);
                return Step::Drain;
            }
            state.in_flight += 1;
        }
        step
    }

    /// An operation has ended.
    pub(crate) fn done(&self, operation: &Operation) {
        if let Some(exclusive) = &self.exclusive {
            let file = exclusive.file(operation);
            exclusive.places.give_back(file, operation.offset, operation.bytes);
        }
        let mut state = self.lock();
        state.in_flight -= 1;
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// Waits until no more than `operations` are in flight, at most `most`; true when that is so.
    pub(crate) fn wait_for_others(&self, operations: u32, most: Duration) -> bool {
        let mut state = self.lock();
        state.waiting += 1;
        let wait =
            self.changed.wait_timeout_while(state, most, |state| state.in_flight > operations);
        let (mut state, _) = wait.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state.in_flight <= operations
    }

    /// Operations that have been handed out.
    pub(crate) fn handed_out(&self) -> u64 {
        let state = self.lock();
        state.script.handed_out() - u64::from(state.held.is_some())
    }
}

impl Exclusive {
    fn file(&self, operation: &Operation) -> u32 {
        let number = self.files.get(operation.file as usize);
        number.copied().unwrap_or(operation.file)
    }
}
