//! How far a measurement may go that has no group to keep it in, and takes the memory of the whole machine.
//!
//! Pure: what may be taken is decided from what the machine says before it begins, and what must end it from what is seen
//! while it runs. Between the program that takes memory and all other programs stand: a reserve that is never asked
//! for; the kernel's own choice of which process it kills first (the program asks to be that); and these bounds, which
//! end it before.

use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::memory::End;
use rubus_vocabulary::units::bytes_iec;

/// Memory that others keep, at least: sshd, a shell, this program, and page tables of what is taken.
const MIN_RESERVE: u64 = 48 << 20;
/// And at least this part of all memory.
const RESERVE_PART: u64 = 16;
/// With less than this nothing can be said.
const MIN_MEMORY: u64 = 64 << 20;
/// If a watcher wakes up this much too late, no other program gets anything done either.
pub const MAX_LATE_S: f64 = 5.0;
/// Limit for seconds in a row in which every runnable program waits for memory.
pub const MAX_STALLED_S: f64 = 20.0;
/// Share of the time from which on it counts as such a second.
const STALLED: f64 = 0.9;
/// Limit for the whole measurement, in seconds.
pub const MAX_S: f64 = 900.0;
/// Window over which stalls are counted, in seconds.
const WINDOW_S: f64 = 1.0;

/// What may be taken of the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Memory that is 1.0 times: what programs could have without swapping, less the reserve.
    pub memory_bytes: u64,
    /// Memory that others keep.
    pub reserve_bytes: u64,
}

/// What may be taken of this machine.
///
/// # Errors
/// In words, when it does not say what it has, has too little, or is short of memory already.
pub fn allowance(machine: &Machine) -> Result<Allowance, String> {
    let facts = &machine.memory;
    let known = facts.total_bytes.get().zip(facts.available_bytes.get());
    let Some((total, available)) = known else {
        return Err(
            "the kernel does not say how much memory programs can have (MemAvailable, since Linux 3.14)".into(),
        );
    };
    let reserve_bytes = (total / RESERVE_PART).max(MIN_RESERVE);
    let memory_bytes = available.saturating_sub(reserve_bytes) >> 20 << 20;
    if memory_bytes < MIN_MEMORY {
        return Err(format!(
            "programs can have {}, of which {} stay for the others: too little is left to measure with; end some programs",
            bytes_iec(available),
            bytes_iec(reserve_bytes)
        ));
    }
    Ok(Allowance { memory_bytes, reserve_bytes })
}

/// What is seen at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Seconds since the beginning.
    pub at_s: f64,
    /// Seconds by which the watcher woke up later than it wanted to.
    pub late_s: f64,
    /// What programs can have without swapping; absent when it could not be read.
    pub available_bytes: Option<u64>,
    /// Swap that is free.
    pub free_swap_bytes: Option<u64>,
    /// Microseconds so far in which every program that had something to do waited for memory; absent without PSI.
    pub waited_full_us: Option<u64>,
}

/// Who decides that it must end.
#[derive(Clone, Debug)]
pub struct Bounds {
    reserve_bytes: u64,
    has_swap: bool,
    /// The begin of the second that is looked at: when, and what had been waited by then.
    window: Option<(f64, u64)>,
    stalled_since_s: Option<f64>,
}

impl Bounds {
    /// Those of a machine on which this may be taken. `has_swap`: pages can go anywhere at all.
    pub fn new(allowance: Allowance, has_swap: bool) -> Self {
        Bounds {
            reserve_bytes: allowance.reserve_bytes,
            has_swap,
            window: None,
            stalled_since_s: None,
        }
    }

    /// A new program begins, so that what was waited before does not count.
    pub fn begin_again(&mut self) {
        self.window = None;
        self.stalled_since_s = None;
    }

    /// What must be the end of it, if anything.
    pub fn judge(&mut self, seen: &Seen) -> Option<End> {
        let left = seen.available_bytes.map(|available| {
            if self.has_swap {
                // Half of the reserve stays even when everything can be swapped: what is free of swap in memory (zram)
                // takes memory, too.
                available.saturating_add(seen.free_swap_bytes.unwrap_or(0))
            } else {
                available
            }
        });
        if left.is_none_or(|left| left < self.reserve_bytes / 2) {
            return Some(if self.has_swap { End::SwapFull } else { End::OutOfMemory });
        }
        if seen.late_s > MAX_LATE_S {
            return Some(End::Unsafe {
                why: format!("the machine did not answer for {:.1} s", seen.late_s),
            });
        }
        let stalled_s = self.stalled_for(seen);
        if stalled_s > MAX_STALLED_S {
            return Some(End::Unsafe {
                why: format!("nothing but waiting for memory for {stalled_s:.0} s"),
            });
        }
        (seen.at_s > MAX_S)
            .then(|| End::Unsafe { why: format!("it took more than {:.0} minutes", MAX_S / 60.0) })
    }

    /// Seconds in a row in which all runnable programs waited for memory.
    fn stalled_for(&mut self, seen: &Seen) -> f64 {
        let Some(waited_us) = seen.waited_full_us else {
            return 0.0;
        };
        let Some((begun_s, before_us)) = self.window else {
            self.window = Some((seen.at_s, waited_us));
            return 0.0;
        };
        let elapsed_s = seen.at_s - begun_s;
        if elapsed_s >= WINDOW_S {
            let waited_s = waited_us.saturating_sub(before_us) as f64 / 1e6;
            self.stalled_since_s = if waited_s >= STALLED * elapsed_s {
                self.stalled_since_s.or(Some(begun_s))
            } else {
                None
            };
            self.window = Some((seen.at_s, waited_us));
        }
        self.stalled_since_s.map_or(0.0, |since| seen.at_s - since)
    }
}

#[cfg(test)]
mod tests {
    use rubus_fixtures as fixture;
    use rubus_vocabulary::fact::Fact;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn machine(total: u64, available: u64) -> Machine {
        let mut machine = fixture::pi3_with_usb_ssd();
        machine.memory.total_bytes = Fact::known(total, "/proc/meminfo");
        machine.memory.available_bytes = Fact::known(available, "/proc/meminfo");
        machine
    }

    fn bounds(has_swap: bool) -> Bounds {
        let allowance = allowance(&machine(1024 * MIB, 700 * MIB)).unwrap();
        Bounds::new(allowance, has_swap)
    }

    /// Nothing wrong yet.
    fn calm(at_s: f64) -> Seen {
        Seen {
            at_s,
            late_s: 0.001,
            available_bytes: Some(90 * MIB),
            free_swap_bytes: Some(500 * MIB),
            waited_full_us: Some(0),
        }
    }

    #[test]
    fn a_reserve_stays_for_the_others() {
        let found = allowance(&machine(1024 * MIB, 700 * MIB)).unwrap();
        assert_eq!(found.reserve_bytes, 64 * MIB);
        assert_eq!(found.memory_bytes, 636 * MIB);
        let small = allowance(&machine(512 * MIB, 300 * MIB)).unwrap();
        assert_eq!(small.reserve_bytes, 48 * MIB);
    }

    #[test]
    fn a_machine_without_room_is_left_alone() {
        let said = allowance(&machine(512 * MIB, 100 * MIB)).unwrap_err();
        assert!(said.contains("end some programs"), "{said}");
        let mut unknown = machine(512 * MIB, 400 * MIB);
        unknown.memory.available_bytes = Fact::unknown("no such line", "/proc/meminfo");
        assert!(allowance(&unknown).unwrap_err().contains("MemAvailable"));
    }

    #[test]
    fn what_is_left_must_not_fall_below_half_of_the_reserve() {
        let mut seen = calm(1.0);
        assert_eq!(bounds(true).judge(&seen), None);
        seen.available_bytes = Some(10 * MIB);
        assert_eq!(bounds(true).judge(&seen), None, "there is swap");
        assert_eq!(bounds(false).judge(&seen), Some(End::OutOfMemory));
        seen.free_swap_bytes = Some(MIB);
        assert_eq!(bounds(true).judge(&seen), Some(End::SwapFull));
        seen = calm(1.0);
        seen.available_bytes = None;
        assert!(bounds(false).judge(&seen).is_some(), "blind is no way to go on");
    }

    #[test]
    fn a_machine_that_does_not_answer_is_let_go() {
        let mut seen = calm(1.0);
        seen.late_s = 5.5;
        let Some(End::Unsafe { why }) = bounds(true).judge(&seen) else {
            panic!("it goes on");
        };
        assert_eq!(why, "the machine did not answer for 5.5 s");
        let over = calm(MAX_S + 1.0);
        assert!(matches!(bounds(true).judge(&over), Some(End::Unsafe { .. })));
    }

    /// When it ends a machine on which so large a share of every second is waited, if ever within two minutes.
    fn ended_at(share: impl Fn(f64) -> f64) -> Option<f64> {
        let (mut bounds, mut waited_us) = (bounds(true), 0.0);
        for tick in 0..12_000 {
            let at_s = f64::from(tick) / 100.0;
            waited_us += share(at_s) * 10_000.0;
            let mut seen = calm(at_s);
            seen.waited_full_us = Some(waited_us as u64);
            if bounds.judge(&seen).is_some() {
                return Some(at_s);
            }
        }
        None
    }

    #[test]
    fn a_machine_that_only_waits_is_let_go_and_one_that_works_between_is_not() {
        let all = ended_at(|_| 1.0).unwrap();
        assert!((20.0..22.0).contains(&all), "{all}");
        assert_eq!(ended_at(|_| 0.8), None);
        let with_pauses = ended_at(|at_s| if at_s % 15.0 < 12.0 { 1.0 } else { 0.0 });
        assert_eq!(with_pauses, None);
        let late = ended_at(|at_s| if at_s > 60.0 { 1.0 } else { 0.1 }).unwrap();
        assert!((80.0..83.0).contains(&late), "{late}");
    }

    #[test]
    fn a_new_program_begins_with_a_clean_slate() {
        let mut bounds = bounds(true);
        for second in 0..19 {
            let mut seen = calm(f64::from(second));
            seen.waited_full_us = Some(second as u64 * 1_000_000);
            assert_eq!(bounds.judge(&seen), None);
        }
        bounds.begin_again();
        let mut seen = calm(25.0);
        seen.waited_full_us = Some(25_000_000);
        assert_eq!(bounds.judge(&seen), None);
    }

    #[test]
    fn without_psi_only_the_other_bounds_hold() {
        for second in 0..100 {
            let mut seen = calm(f64::from(second));
            seen.waited_full_us = None;
            assert_eq!(bounds(true).judge(&seen), None);
        }
    }
}
