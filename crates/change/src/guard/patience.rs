//! How long the guard waits for those that only look at a device: udev, which examines each disk that was plugged in, partitioned or
//! written to, and programs that are done in a moment.

use std::time::Duration;

use rubus_host::{Files, clock};

use super::judge::Passing;
use super::refusal::Refusal;

/// How often a device that is open in another program is looked at again, and how long after the last look.
const LOOKS_AGAIN: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// Total timeout for udev, which examines a slow stick for some seconds.
const UDEV: Duration = Duration::from_secs(20);
/// Timeout of one wait for udev, in seconds: [`Files::ask`] gives read-only programs 5 s.
const UDEV_AT_ONCE_S: u64 = 4;

/// What is done before the next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Sleep for this duration.
    Sleep(Duration),
    /// Wait for udev, for at most this number of seconds.
    Settle(u64),
}

/// How much waiting there was.
#[derive(Clone, Copy, Debug, Default)]
struct Patience {
    looks: u32,
}

impl Patience {
    /// What to wait for before the next look at a device that was refused, `waited` after the first one; nothing when it is refused
    /// for good.
    fn next(&mut self, refused: Passing, waited: Duration) -> Option<Wait> {
        match refused {
            Passing::Udev => {
                let left = UDEV.checked_sub(waited).filter(|left| !left.is_zero())?;
                Some(Wait::Settle(left.as_secs_f64().ceil().min(UDEV_AT_ONCE_S as f64) as u64))
            }
            Passing::Soon if self.looks < LOOKS_AGAIN => {
                self.looks += 1;
                Some(Wait::Sleep(BETWEEN_LOOKS))
            }
            Passing::Soon | Passing::Never => None,
        }
    }
}

/// What can wait.
trait Waiting {
    /// How long ago the waiting began.
    fn waited(&self) -> Duration;
    fn sleep(&self, time: Duration);
    /// Waits until udev has handled its queue, for at most `limit_s` seconds.
    fn settle(&self, limit_s: u64);
}

struct LiveWaiting<'a> {
    files: &'a dyn Files,
    begun_ns: u64,
}

impl Waiting for LiveWaiting<'_> {
    fn waited(&self) -> Duration {
        Duration::from_nanos(clock::monotonic_ns() - self.begun_ns)
    }

    fn sleep(&self, time: Duration) {
        clock::sleep(time);
    }

    fn settle(&self, limit_s: u64) {
        // Whether it is done, or could not be asked, the next look shows.
        let limit = format!("--timeout={limit_s}");
        let _ = self.files.ask("udevadm", &["settle", &limit]);
    }
}

/// Looks at a device, and looks again while nothing is in the way but what passes by itself.
pub(super) fn look_patiently<T>(
    files: &dyn Files,
    look: impl Fn() -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let begun_ns = clock::monotonic_ns();
    look_with(&LiveWaiting { files, begun_ns }, look)
}

fn look_with<T>(
    waiting: &dyn Waiting,
    look: impl Fn() -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let mut patience = Patience::default();
    loop {
        let refusal = match look() {
            Err(refusal) => refusal,
            answer => return answer,
        };
        match patience.next(refusal.passing(), waiting.waited()) {
            Some(Wait::Sleep(time)) => waiting.sleep(time),
            Some(Wait::Settle(limit_s)) => {
                waiting.settle(limit_s);
                // Where udev cannot be asked, or has closed the device only just now.
                waiting.sleep(BETWEEN_LOOKS);
            }
            None => return Err(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use crate::guard::facts::{Relation, TargetFacts, UseKind};
    use crate::guard::judge;
    use crate::guard::judge::tests::{disk, used};

    use super::*;

    /// A machine whose clock advances only while the guard waits, and whose udev takes `udev_needs`.
    struct Machine {
        now: Cell<Duration>,
        udev_needs: Duration,
        settled: RefCell<Vec<u64>>,
    }

    impl Machine {
        fn where_udev_needs(seconds: u64) -> Self {
            Machine {
                now: Cell::default(),
                udev_needs: Duration::from_secs(seconds),
                settled: RefCell::default(),
            }
        }

        fn pass(&self, time: Duration) {
            self.now.set(self.now.get() + time);
        }

        fn is_udev_done(&self) -> bool {
            self.now.get() >= self.udev_needs
        }
    }

    impl Waiting for Machine {
        fn waited(&self) -> Duration {
            self.now.get()
        }

        fn sleep(&self, time: Duration) {
            self.pass(time);
        }

        fn settle(&self, limit_s: u64) {
            self.settled.borrow_mut().push(limit_s);
            let limit = Duration::from_secs(limit_s);
            let left = self.udev_needs.saturating_sub(self.now.get());
            self.pass(left.min(limit));
        }
    }

    fn open(pid: u32, program: &str) -> UseKind {
        UseKind::Open { pid, program: program.into(), writes: true }
    }

    fn refusal(kinds: Vec<UseKind>) -> Refusal {
        let mut device = disk();
        let uses = kinds.into_iter();
        device.uses = uses.map(|kind| used("sda", Relation::Itself, kind)).collect();
        let facts = TargetFacts::Device(Box::new(device));
        Refusal::new(&facts, judge(&facts, None))
    }

    const WORKER: &str = "(udev-worker)";

    fn look(machine: &Machine, refused: impl Fn() -> Refusal) -> (Result<(), Refusal>, u32) {
        let looks = Cell::new(0);
        let answer = look_with(machine, || {
            looks.set(looks.get() + 1);
            if machine.is_udev_done() { Ok(()) } else { Err(refused()) }
        });
        (answer, looks.get())
    }

    #[test]
    fn udev_is_waited_for() {
        let machine = Machine::where_udev_needs(9);
        let (answer, looks) = look(&machine, || refusal(vec![open(1061, WORKER)]));
        assert_eq!((answer, looks), (Ok(()), 4));
        assert_eq!(*machine.settled.borrow(), [4, 4, 4]);
    }

    #[test]
    fn udev_that_does_not_end_is_not_waited_for_without_end_and_is_named() {
        let machine = Machine::where_udev_needs(1000);
        let (answer, _) = look(&machine, || refusal(vec![open(1061, WORKER)]));
        let said = answer.unwrap_err().to_string();
        assert!(said.contains("udev still examines /dev/sda (process 1061)."), "{said}");
        assert!(said.contains("Try again in a moment."), "{said}");
        let waited = machine.now.get();
        assert!(waited >= UDEV && waited < UDEV + Duration::from_secs(1));
    }

    /// No udevadm, or one that does not see udev: the look itself decides, and not too often.
    #[test]
    fn a_udev_that_cannot_be_asked_is_looked_at_again() {
        struct Deaf(Machine);
        impl Waiting for Deaf {
            fn waited(&self) -> Duration {
                self.0.waited()
            }
            fn sleep(&self, time: Duration) {
                self.0.sleep(time);
            }
            fn settle(&self, _: u64) {}
        }
        let deaf = Deaf(Machine::where_udev_needs(3));
        let looks = Cell::new(0);
        let answer = look_with(&deaf, || {
            looks.set(looks.get() + 1);
            if deaf.0.is_udev_done() {
                Ok(())
            } else {
                Err(refusal(vec![open(1, "systemd-udevd")]))
            }
        });
        assert_eq!((answer, looks.get()), (Ok(()), 31));
    }

    #[test]
    fn other_programs_are_waited_for_a_moment_and_then_named() {
        let machine = Machine::where_udev_needs(1000);
        let (answer, looks) =
            look(&machine, || refusal(vec![open(1061, WORKER), open(7, "blkid")]));
        assert_eq!(looks, LOOKS_AGAIN + 1);
        assert!(machine.settled.borrow().is_empty());
        let said = answer.unwrap_err().to_string();
        assert!(said.contains("process 7 (blkid)"), "{said}");
        // udev requires no action of the user.
        assert!(!said.contains("1061"), "{said}");
    }

    #[test]
    fn what_stays_is_refused_at_once_whether_udev_looks_at_it_or_not() {
        let mounted = UseKind::Mounted { filesystem: "ext4".into(), points: vec!["/data".into()] };
        for kinds in [
            vec![mounted.clone()],
            vec![mounted, open(1061, WORKER)],
            vec![UseKind::Swap, open(7, "dd")],
        ] {
            let machine = Machine::where_udev_needs(1000);
            let (answer, looks) = look(&machine, || refusal(kinds.clone()));
            let refusal = answer.unwrap_err();
            assert_eq!(looks, 1, "{refusal}");
            assert!(!refusal.to_string().contains("1061"), "{refusal}");
        }
    }

    /// The kernel claims a disk while udev lets it read the table again.
    #[test]
    fn a_claim_by_an_unknown_program_may_pass() {
        let claimed = |elsewhere: &[&str]| UseKind::Claimed {
            elsewhere: elsewhere.iter().map(|place| place.to_string()).collect(),
        };
        assert_eq!(refusal(vec![claimed(&[])]).passing(), Passing::Soon);
        assert_eq!(
            refusal(vec![claimed(&["/data in the namespace of process 1"])]).passing(),
            Passing::Never
        );
    }
}
