//! What a thread used of the processor, and how long it was ready to run but got none.
//!
//! Source of the latter: the second number in `/proc/<pid>/task/<tid>/schedstat`, in nanoseconds (kernel
//! documentation, "Scheduler Statistics"). Kernels without that account give three zeros.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::pread;

/// The scheduler's account of one thread.
pub struct Account {
    file: Option<OwnedFd>,
    is_real: bool,
}

impl Account {
    /// Opens the account of the calling thread; to be asked by the same thread.
    pub fn of_this_thread() -> Self {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Account {
            file: open("/proc/thread-self/schedstat", flags, Mode::empty()).ok(),
            is_real: true,
        }
    }

    /// The account of a thread that exists in a simulation only: it costs and waits for nothing.
    pub fn of_nobody() -> Self {
        Account { file: None, is_real: false }
    }

    /// Processor time so far, in nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        if self.is_real { crate::ticks::thread_cpu_ns() } else { 0 }
    }

    /// Nanoseconds of waiting for a processor so far; absent where the kernel does not count.
    pub fn run_delay_ns(&self) -> Option<u64> {
        let mut text = [0u8; 64];
        let length = pread(self.file.as_ref()?, &mut text, 0).ok()?;
        parse(&text[..length])
    }
}

fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let on_processor_ns = numbers.next()?.ok()?;
    let waiting_ns = numbers.next()?.ok()?;
    // The thread that asks has run, so a zero here means that the kernel does not count.
    (on_processor_ns > 0).then_some(waiting_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_delay() {
        assert_eq!(parse(b"1234 567 89\n"), Some(567));
        assert_eq!(parse(b"1234 0 89\n"), Some(0));
    }

    #[test]
    fn nobody_costs_and_waits_for_nothing() {
        let nobody = Account::of_nobody();
        assert_eq!((nobody.cpu_ns(), nobody.run_delay_ns()), (0, None));
    }

    #[test]
    fn a_kernel_that_does_not_count_is_unknown_not_zero() {
        assert_eq!(parse(b"0 0 0\n"), None);
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"1234\n"), None);
        assert_eq!(parse(b"x y z\n"), None);
    }
}
