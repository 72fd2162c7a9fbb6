//! Which connections of which attachments there are, and the end of those that others replace.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rubus_host::net::Stream;

use super::pool::lock;
use crate::wire::Claim;

/// The connections that have made a claim, from before their client hears that it may begin until
/// nothing of them is under way any more.
#[derive(Debug, Default)]
pub(super) struct Fences {
    held: Mutex<Vec<Arc<Held>>>,
    /// A client waits for one of them to end.
    is_awaited: AtomicBool,
}

#[derive(Debug)]
struct Held {
    claim: Claim,
    stream: Arc<Stream>,
    is_over: AtomicBool,
}

/// A connection that has made a claim. Dropped when nothing of it is under way.
#[derive(Debug)]
pub(super) struct Hold {
    fences: Arc<Fences>,
    held: Arc<Held>,
}

/// What comes of a claim.
#[derive(Debug)]
pub(super) enum Entry {
    /// The client may begin.
    Entered(Hold),
    /// What is under way of an older connection is waited for.
    Waits,
    /// A newer connection was here first.
    Late,
}

impl Fences {
    /// Ends the connections that a claim replaces; it is entered when there are none any more.
    pub fn enter(self: &Arc<Self>, claim: Claim, stream: &Arc<Stream>) -> Entry {
        let mut all = lock(&self.held);
        let is_of_it = |held: &&Arc<Held>| held.claim.attachment == claim.attachment;
        let (mut waits, mut is_late) = (false, false);
        for held in all.iter().filter(is_of_it) {
            if held.claim.generation >= claim.generation {
                is_late |= held.claim.ends(claim.lane);
            } else if claim.ends(held.claim.lane) {
                held.is_over.store(true, Ordering::SeqCst);
                held.stream.hang_up();
                waits = true;
            }
        }
        if is_late {
            return Entry::Late;
        }
        if waits {
            self.is_awaited.store(true, Ordering::SeqCst);
            return Entry::Waits;
        }
        let held =
            Arc::new(Held { claim, stream: Arc::clone(stream), is_over: AtomicBool::new(false) });
        all.push(Arc::clone(&held));
        let fences = Arc::clone(self);
        Entry::Entered(Hold { fences, held })
    }

    /// Whether a client waits for the end of a connection.
    pub fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::SeqCst)
    }

    /// Called when the waiting clients check again.
    pub fn looks_again(&self) {
        self.is_awaited.store(false, Ordering::SeqCst);
    }
}

impl Hold {
    /// Whether another connection has taken this one's place: nothing more of it is done.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.held.is_over.load(Ordering::SeqCst)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        lock(&self.fences.held).retain(|held| !Arc::ptr_eq(held, &self.held));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn stream() -> (Arc<Stream>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let stream = Stream::connected(ours.into(), "pair".into());
        (Arc::new(stream), theirs)
    }

    fn claim(attachment: u128, generation: u64, lane: u32, ended: u64) -> Claim {
        Claim { attachment, generation, lane, ended }
    }

    fn entered(fences: &Arc<Fences>, claim: Claim) -> Hold {
        match fences.enter(claim, &stream().0) {
            Entry::Entered(hold) => hold,
            entry => panic!("{claim:?}: {entry:?}"),
        }
    }

    #[test]
    fn a_newer_connection_of_a_lane_ends_the_older_and_waits_for_its_end() {
        let fences = Arc::new(Fences::default());
        let old = entered(&fences, claim(1, 1, 0, 0));
        assert!(!old.is_over() && !fences.is_awaited());
        let newer = claim(1, 2, 0, 0);
        assert!(matches!(fences.enter(newer, &stream().0), Entry::Waits));
        assert!(old.is_over() && fences.is_awaited());
        fences.looks_again();
        assert!(matches!(fences.enter(newer, &stream().0), Entry::Waits));
        drop(old);
        let new = entered(&fences, newer);
        assert!(!new.is_over());
    }

    #[test]
    fn other_lanes_and_other_attachments_go_on() {
        let fences = Arc::new(Fences::default());
        let others = [entered(&fences, claim(1, 1, 1, 0)), entered(&fences, claim(2, 1, 0, 0))];
        let _new = entered(&fences, claim(1, 2, 0, 0));
        assert!(others.iter().all(|other| !other.is_over()));
    }

    #[test]
    fn all_lanes_that_a_claim_names_are_ended_at_once() {
        let fences = Arc::new(Fences::default());
        let old: Vec<Hold> =
            (0..3).map(|lane| entered(&fences, claim(1, 1 + u64::from(lane), lane, 0))).collect();
        let first = claim(1, 4, 0, 0b101);
        assert!(matches!(fences.enter(first, &stream().0), Entry::Waits));
        let are_over: Vec<bool> = old.iter().map(Hold::is_over).collect();
        assert_eq!(are_over, [true, false, true]);
    }

    #[test]
    fn a_claim_that_comes_late_is_not_entered() {
        let fences = Arc::new(Fences::default());
        let new = entered(&fences, claim(1, 5, 0, 0));
        let late = fences.enter(claim(1, 4, 0, 0), &stream().0);
        assert!(matches!(late, Entry::Late));
        assert!(!new.is_over());
    }
}
