//! The terminal taken over for a while: its second screen, keys as they are pressed, no cursor; and everything put back
//! however the program ends, a panic included.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGWINCH};

use super::keys::{Key, keys};

/// The terminal's attributes before it was taken over; restoring them takes them out.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Second screen, no cursor, no line feed at the end of a row (xterm control sequences; every terminal of today).
const TAKE: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l";
const GIVE_BACK: &[u8] = b"\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The terminal, ours until this is dropped.
pub struct Taken {
    woken: UnixStream,
}

/// Why the waiting ended.
pub enum Woken {
    /// Keys were pressed.
    Keys(Vec<Key>),
    /// A signal came: the flag of the end may be up, the size may be another.
    Signal,
    /// The time is over.
    Time,
    /// The terminal is gone.
    Gone,
}

/// Columns and rows; 80 by 24, the usual assumption, where the terminal does not say.
pub fn size() -> (u16, u16) {
    match tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => (80, 24),
    }
}

impl Taken {
    /// Takes it over.
    ///
    /// # Errors
    /// When it does not let itself be taken.
    pub fn take() -> anyhow::Result<Taken> {
        let (woken, waker) = UnixStream::pair().context("cannot make a pair of sockets")?;
        woken.set_nonblocking(true)?;
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT] {
            let waker = waker.try_clone()?;
            signal_hook::low_level::pipe::register(signal, waker)
                .context("cannot install the handler for signals")?;
        }
        // Before the terminal changes: a panic from here on puts it back before it speaks.
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let speak = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                speak(panic);
            }));
        });
        enter()?;
        Ok(Taken { woken })
    }

    /// Writes to the terminal; false if that is gone.
    pub fn tell(&self, told: &str) -> bool {
        let mut out = std::io::stdout().lock();
        told.is_empty() || (out.write_all(told.as_bytes()).and_then(|()| out.flush())).is_ok()
    }

    /// Waits for a key, a signal or the end of the time.
    pub fn wait(&self, most: Duration) -> Woken {
        let stdin = std::io::stdin();
        let mut both =
            [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
        let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        match poll(&mut both, Some(&most)) {
            Ok(0) => return Woken::Time,
            // The signal that interrupts it is in the other socket.
            Err(_) => return Woken::Signal,
            Ok(_) => {}
        }
        let (typed, signal) = (both[0].revents(), both[1].revents());
        if signal.contains(PollFlags::IN) {
            let _ = (&self.woken).read(&mut [0; 64]);
            return Woken::Signal;
        }
        if typed.contains(PollFlags::IN) {
            let mut bytes = [0; 64];
            return match rustix::io::read(&stdin, &mut bytes) {
                Ok(0) | Err(_) => Woken::Gone,
                Ok(count) => Woken::Keys(keys(&bytes[..count])),
            };
        }
        Woken::Gone
    }

    /// Gives the terminal back, stands still until the shell wakes the program, and takes it again.
    pub fn suspend(&self) -> anyhow::Result<()> {
        give_back();
        // As the terminal would have done it: to all of the job.
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        enter()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

fn enter() -> anyhow::Result<()> {
    let stdin = std::io::stdin();
    let before = tcgetattr(&stdin).context("cannot ask the terminal how it is set")?;
    let mut raw = before.clone();
    raw.make_raw();
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    tcsetattr(&stdin, OptionalActions::Flush, &raw)
        .context("cannot have keys as they are pressed")?;
    let mut out = std::io::stdout().lock();
    out.write_all(TAKE).and_then(|()| out.flush()).context("cannot write to the terminal")
}

/// Puts everything back; a second time does nothing.
fn give_back() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(before) = before else {
        return;
    };
    // If this fails, there is no terminal left for a message. Not through the locked standard output: a panic may have
    // come while it was held.
    let _ = rustix::io::write(rustix::stdio::stdout(), GIVE_BACK);
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &before);
}
