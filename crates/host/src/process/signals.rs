//! What a signal does to this process when no handler is installed.

/// A signal by its number: `SIGPIPE` and the others of `signal(7)`.
pub type Signal = i32;

/// Ignores signals from now on, in every thread, and in the programs that are started.
pub fn ignore(signals: &[Signal]) {
    for &signal in signals {
        // SAFETY: an ignored signal runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Lets a signal do what it does by default.
pub fn restore(signal: Signal) {
    // SAFETY: the default action runs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}
