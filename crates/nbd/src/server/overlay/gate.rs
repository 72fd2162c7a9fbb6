//! Flushes that share work: callers that arrive during one flush share the next.

use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Debug, Default)]
struct State {
    /// Flushes that have begun.
    begun: u64,
    /// The last that has ended, and whether it went well.
    ended: u64,
    failed: Option<(u64, i32)>,
    is_running: bool,
}

/// Lets one through at a time, for all that came before it began.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    ended: Condvar,
}

impl Gate {
    /// Does the work, or waits for another caller whose work began after this call. Returns that
    /// result.
    ///
    /// # Errors
    /// If the work failed.
    pub fn pass(&self, work: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = state.begun + 1;
        loop {
            if state.ended >= wanted {
                // A failure is never forgotten, so that of a later one is as good.
                return match state.failed {
                    Some((failed, number)) if failed >= wanted => Err(error(number)),
                    _ => Ok(()),
                };
            }
            if !state.is_running {
                break;
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_running = true;
        state.begun += 1;
        let number = state.begun;
        drop(state);
        let done = work();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_running = false;
        state.ended = number;
        if let Err(error) = &done {
            state.failed = Some((number, error.raw_os_error().unwrap_or(EIO)));
        }
        drop(state);
        self.ended.notify_all();
        done
    }
}

const EIO: i32 = 5;

fn error(number: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(number)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn those_that_wait_share_the_next() {
        let (gate, works) = (Gate::default(), AtomicU64::new(0));
        let (began, begins) = mpsc::channel();
        let (go, goes) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let (gate, works) = (&gate, &works);
            scope.spawn(move || {
                gate.pass(|| {
                    began.send(()).unwrap();
                    goes.recv().unwrap();
                    Ok(())
                })
                .unwrap();
            });
            begins.recv().unwrap();
            let waiting: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(move || {
                        gate.pass(|| {
                            works.fetch_add(1, Ordering::SeqCst);
                            Err(error(28))
                        })
                    })
                })
                .collect();
            // They all wait, or come later; none may take the first's success for its own.
            go.send(()).unwrap();
            for waiter in waiting {
                let failed = waiter.join().unwrap().unwrap_err();
                assert_eq!(failed.raw_os_error(), Some(28));
            }
        });
        assert!((1..=4).contains(&works.load(Ordering::SeqCst)));
        gate.pass(|| Ok(())).unwrap();
    }
}
