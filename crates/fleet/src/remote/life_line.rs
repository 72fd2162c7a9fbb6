//! The life line of a rubus that measures for another one over ssh: its standard input.
//!
//! The other end sends a line every few seconds. When it sends `stop`, its user pressed Ctrl-C, and this one does as if
//! it had been pressed here. When the line is cut or silent, the result has no reader any more: the measurement ends,
//! so that no orphan keeps writing to a user's card.

use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rubus_command::message;
use rubus_host::clock;
use rubus_remote::script::{ABANDONED, STOP};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};

/// Timeout of the life line. Longer than the silence of a bad radio link or of a laptop lid closed for a moment.
const SILENCE: Duration = Duration::from_secs(90);
/// How long a measurement may take to end in order. Then the process ends: its file has no name and
/// vanishes with it.
const GRACE: Duration = Duration::from_secs(20);

static ABANDONED_BY_OTHERS: AtomicBool = AtomicBool::new(false);

/// Begins to listen.
pub fn hold() {
    let begin = || {
        listen(&std::io::stdin(), SILENCE, interrupt_ourselves);
        ABANDONED_BY_OTHERS.store(true, Ordering::Relaxed);
        interrupt_ourselves();
        clock::sleep(GRACE);
        std::process::exit(i32::from(ABANDONED));
    };
    let thread = std::thread::Builder::new().name("watchdog".into());
    if let Err(error) = thread.stack_size(256 << 10).spawn(begin) {
        message!(
            "rubus: cannot start a thread ({error}), so a lost connection will not be noticed"
        );
    }
}

/// The exit status of an abandoned measurement.
pub fn abandoned() -> Option<ExitCode> {
    let abandoned = ABANDONED_BY_OTHERS.load(Ordering::Relaxed);
    abandoned.then(|| ExitCode::from(ABANDONED))
}

/// Listens until the line is cut or silent for too long; calls `stop` whenever it is told so.
fn listen(input: &impl AsFd, silence: Duration, stop: impl Fn()) {
    let mut unread = Vec::new();
    let mut last_sign = clock::now();
    loop {
        let left = silence.saturating_sub(last_sign.elapsed());
        if left.is_zero() {
            return;
        }
        let timeout =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let mut waiting = [PollFd::new(input, PollFlags::IN)];
        match poll(&mut waiting, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return,
        }
        let mut chunk = [0_u8; 256];
        // Past the buffer of the standard library, which would hide from the poll what it has read.
        match rustix::io::read(input.as_fd(), &mut chunk) {
            Ok(0) => return,
            Ok(count) => unread.extend_from_slice(&chunk[..count]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => return,
        }
        last_sign = clock::now();
        if says_stop(&mut unread) {
            stop();
        }
    }
}

/// Takes the whole lines off; tells whether one of them was [`STOP`].
fn says_stop(unread: &mut Vec<u8>) -> bool {
    let Some(end) = unread.iter().rposition(|byte| *byte == b'\n') else {
        return false;
    };
    let rest = unread.split_off(end + 1);
    let lines = std::mem::replace(unread, rest);
    lines.split(|byte| *byte == b'\n').any(|line| line == STOP.as_bytes())
}

fn interrupt_ourselves() {
    // Only a process that is gone cannot be signalled.
    let _ = kill_process(getpid(), Signal::INT);
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// How often it was told to stop, and how long it listened.
    fn listened(silence: Duration, speak: impl FnOnce(UnixStream)) -> (u32, Duration) {
        let (reader, writer) = UnixStream::pair().unwrap();
        speak(writer);
        let (stops, since) = (std::cell::Cell::new(0), clock::now());
        listen(&reader, silence, || stops.set(stops.get() + 1));
        (stops.get(), since.elapsed())
    }

    #[test]
    fn a_cut_line_ends_it_at_once_and_a_stop_before_that_is_heard() {
        let long = Duration::from_secs(600);
        let (stops, _) = listened(long, |mut line| line.write_all(b"\nstop\n\n").unwrap());
        assert_eq!(stops, 1);
        let (stops, took) = listened(long, drop);
        assert!(stops == 0 && took < long);
    }

    #[test]
    fn a_silent_line_ends_it_after_its_time() {
        let silence = Duration::from_millis(200);
        let mut kept = None;
        let (stops, took) = listened(silence, |mut line| {
            line.write_all(b"\n").unwrap();
            kept = Some(line);
        });
        assert!(kept.is_some() && stops == 0);
        assert!(took >= silence, "{took:?}");
    }

    #[test]
    fn a_stop_is_a_whole_line() {
        let mut unread = b"\n\nst".to_vec();
        assert!(!says_stop(&mut unread));
        assert_eq!(unread, b"st");
        unread.extend_from_slice(b"op\nx");
        assert!(says_stop(&mut unread));
        assert_eq!(unread, b"x");
    }
}
