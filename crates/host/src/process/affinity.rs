//! Which CPUs a thread may run on, and keeping it on one.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Numbers of the CPUs that this thread may run on, in ascending order. Empty when the kernel does not say, which it does not for more
/// than [`CpuSet::MAX_CPU`] of them.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// The calling thread stays on one CPU until this is dropped, and with it threads that it starts meanwhile.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
    /// Belongs to the thread that was pinned.
    _of_this_thread: std::marker::PhantomData<*const ()>,
}

impl Pinned {
    /// Pins the calling thread to the CPU of this number.
    ///
    /// # Errors
    /// When there is none of this number, or this program may not use it.
    pub fn to(cpu: usize) -> io::Result<Pinned> {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let before = sched_getaffinity(None)?;
        let mut only = CpuSet::new();
        only.set(cpu);
        sched_setaffinity(None, &only)?;
        Ok(Pinned { before, _of_this_thread: std::marker::PhantomData })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // What was allowed before can only be refused if it was taken from the program meanwhile.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::sched_getcpu;

    #[test]
    fn a_pinned_thread_is_where_it_should_be_and_free_afterwards() {
        let before = allowed();
        assert!(!before.is_empty());
        for cpu in &before {
            let pinned = Pinned::to(*cpu).expect("it is allowed");
            assert_eq!((sched_getcpu(), allowed()), (*cpu, vec![*cpu]));
            drop(pinned);
            assert_eq!(allowed(), before);
        }
    }

    #[test]
    fn a_thread_of_a_pinned_one_can_go_elsewhere() {
        let before = allowed();
        let (first, last) = (before[0], before[before.len() - 1]);
        let _pinned = Pinned::to(first).expect("it is allowed");
        let there = std::thread::spawn(move || {
            let _pinned = Pinned::to(last).expect("it is allowed");
            sched_getcpu()
        });
        assert_eq!(there.join().expect("it ends"), last);
        assert_eq!(sched_getcpu(), first);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_and_changes_nothing() {
        let before = allowed();
        for none in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU, usize::MAX] {
            // The largest machines have the first of these.
            if !before.contains(&none) {
                assert!(Pinned::to(none).is_err(), "{none}");
            }
        }
        assert_eq!(allowed(), before);
    }
}
