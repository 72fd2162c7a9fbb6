//! Whether a filesystem answers at all, asked by a process of its own: a call on one whose server is gone may never come
//! back, and then only that process waits.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use crate::clock;

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It answered, be it with an error.
    Answered,
    /// It did not, and the process that asked is ended.
    Silent,
    /// It did not, and the process that asked cannot even be killed: it ends when the filesystem answers or is unmounted.
    Stuck {
        /// Its number.
        process: i32,
    },
    /// It could not be asked.
    NotAsked,
}

/// How often it is looked for the end of the process.
const LOOK: Duration = Duration::from_millis(2);
/// How long a killed process may take to end.
const ENDING: Duration = Duration::from_secs(1);

/// Asks the filesystem below a path for its size, which every file server is asked itself for.
pub fn answer(path: &Path, limit: Duration) -> Answer {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return Answer::NotAsked;
    };
    // SAFETY: all zeros is a value of this structure, which the call fills.
    let mut space: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the child makes calls alone that are async-signal-safe, on memory made before, and ends without running
    // anything of this program.
    let process = unsafe { libc::fork() };
    match process {
        -1 => Answer::NotAsked,
        // SAFETY: as above; the path and the memory for the answer outlive the calls.
        0 => unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // One that cannot be killed would hold a pipe open, and the reader of what this program prints with it.
            for standard in 0..=2 {
                libc::close(standard);
            }
            libc::statfs(path.as_ptr(), &mut space);
            libc::_exit(0)
        },
        _ => waited(process, limit),
    }
}

fn waited(process: i32, limit: Duration) -> Answer {
    if ends_within(process, limit) {
        return Answer::Answered;
    }
    // SAFETY: it is a child of ours that was not waited for, so the number is still its own.
    unsafe { libc::kill(process, libc::SIGKILL) };
    if ends_within(process, ENDING) { Answer::Silent } else { Answer::Stuck { process } }
}

fn ends_within(process: i32, limit: Duration) -> bool {
    let end_ns = clock::monotonic_ns() + u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX / 2);
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a number of ours.
        let ended = unsafe { libc::waitpid(process, &mut status, libc::WNOHANG) };
        // An error says that there is no such child any more.
        if ended != 0 {
            return true;
        }
        if clock::monotonic_ns() >= end_ns {
            return false;
        }
        clock::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_here_answers_and_so_does_what_is_not() {
        let limit = Duration::from_secs(60);
        assert_eq!(answer(Path::new("/"), limit), Answer::Answered);
        assert_eq!(answer(Path::new("/no/such/place"), limit), Answer::Answered);
    }

    #[test]
    fn a_process_that_waits_for_good_is_ended() {
        // SAFETY: the child only waits and ends.
        let process = unsafe { libc::fork() };
        if process == 0 {
            loop {
                // SAFETY: it only waits.
                unsafe { libc::pause() };
            }
        }
        assert_eq!(waited(process, Duration::from_millis(20)), Answer::Silent);
    }
}
