//! Signals: Ctrl-C and friends end a measurement cleanly; a closed pipe ends the program quietly.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use rubus_host::process::signals;
use rubus_host::process::standard_error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A flag that Ctrl-C, `kill` and a lost terminal raise. The second signal ends the program at
/// once: whatever was being written has no name and vanishes with the process.
pub fn cancel_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .context("cannot install the handler for Ctrl-C")?;
    }
    Ok(flag)
}

/// How long work may take to end in order, by the longest time in which its disk has done nothing: a card that stalled for eight
/// seconds may do so again. One that hangs does not end at all.
fn grace(longest_stall: Duration) -> Duration {
    const MIN: Duration = Duration::from_secs(5);
    const MAX: Duration = Duration::from_secs(30);
    longest_stall.saturating_mul(2).clamp(MIN, MAX)
}

/// The longest stall that work has seen so far.
#[derive(Clone, Debug, Default)]
pub struct LongestStall {
    milliseconds: Arc<AtomicU64>,
}

impl LongestStall {
    /// Records that nothing was done for `stall`.
    pub fn saw(&self, stall: Duration) {
        let milliseconds = u64::try_from(stall.as_millis()).unwrap_or(u64::MAX);
        self.milliseconds.fetch_max(milliseconds, Ordering::Relaxed);
    }

    fn grace(&self) -> Duration {
        grace(Duration::from_millis(self.milliseconds.load(Ordering::Relaxed)))
    }
}

/// Does work that looks at the [flag](cancel_flag). If it has not ended some seconds after the first signal, twice the longest
/// stall that it has seen, the program ends; so this is for work that may be cut off anywhere, and `left` says what the user has
/// to know then.
pub fn within_grace<T>(
    left: &'static str,
    stalls: &LongestStall,
    work: impl FnOnce() -> T,
) -> anyhow::Result<T> {
    let mut asked_for = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
        .context("cannot install the handler for Ctrl-C")?;
    let (handle, is_over) = (asked_for.handle(), Arc::new(AtomicBool::new(false)));
    let (has_ended, stalls) = (Arc::clone(&is_over), stalls.clone());
    let wait = move || {
        let Some(signal) = asked_for.forever().next() else {
            return asked_for;
        };
        // What is seen from now on may be a disk that hangs.
        let grace = stalls.grace();
        std::thread::sleep(grace);
        if !has_ended.load(Ordering::Relaxed) {
            standard_error::write_line(&format!(
                "rubus: interrupted; a disk or a server did not answer within {} s: {left}",
                grace.as_secs()
            ));
            std::process::exit(128 + signal);
        }
        asked_for
    };
    let thread = std::thread::Builder::new().name("grace".into()).stack_size(256 << 10);
    // What the thread returns is the reading end of a socket that `close` writes to. Without a reader, that write would
    // end the program by SIGPIPE, so it lives until after it.
    let waiting = thread.spawn(wait).context("cannot begin a thread")?;
    let worked = work();
    is_over.store(true, Ordering::Relaxed);
    handle.close();
    drop(waiting);
    Ok(worked)
}

/// A flag that the same signals raise, however often: for who decides himself whether to end.
pub fn asked_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&flag))
            .context("cannot install the handler for Ctrl-C")?;
    }
    Ok(flag)
}

/// Calls `end` when Ctrl-C, `kill` or a lost terminal ask the program to end. The second time it ends
/// at once.
pub fn on_end(end: impl Fn() + Send + 'static) -> anyhow::Result<()> {
    let asked = [SIGINT, SIGTERM, SIGHUP];
    let mut asked_for = signal_hook::iterator::Signals::new(asked)
        .context("cannot install the handler for Ctrl-C")?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            let mut again = false;
            for signal in asked_for.forever() {
                if again {
                    std::process::exit(128 + signal);
                }
                again = true;
                end();
            }
        })
        .context("cannot begin a thread")?;
    Ok(())
}

/// Ignores SIGPIPE again: a program that writes to another one must survive its end.
pub fn survive_closed_pipes() {
    signals::ignore(&[libc::SIGPIPE]);
}

/// Lets a write beyond the largest file that this user may make (`ulimit -f`) fail like any other, with words, instead of
/// killing the program.
pub fn survive_large_files() {
    signals::ignore(&[libc::SIGXFSZ]);
}

/// Lets `rubus … | head` end without an error message, as other tools do.
pub fn die_quietly_on_a_closed_pipe() {
    signals::restore(libc::SIGPIPE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_work_ends_without_a_signal() {
        die_quietly_on_a_closed_pipe();
        for number in 0..6_000 {
            // Some of these end just when the thread that waits begins to.
            let work = || {
                let begun = std::time::Instant::now();
                while begun.elapsed() < Duration::from_micros(number % 150) {}
                number
            };
            assert_eq!(within_grace("", &LongestStall::default(), work).expect("a thread"), number);
        }
    }

    #[test]
    fn work_has_twice_its_longest_stall_to_end() {
        for (stall, limit) in [(0, 5), (2, 5), (8, 16), (15, 30), (600, 30)] {
            let stalls = LongestStall::default();
            stalls.saw(Duration::from_secs(stall));
            stalls.saw(Duration::from_millis(3));
            assert_eq!(stalls.grace(), Duration::from_secs(limit), "{stall}");
        }
        assert_eq!(grace(Duration::MAX), Duration::from_secs(30));
    }
}
