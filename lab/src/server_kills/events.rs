//! What happens to a disk that a board has over the network, and how that may end.

use anyhow::{Result, bail, ensure};

use crate::power_cuts::Random;

/// How the disk is attached and served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Connections of the kernel.
    pub connections: u32,
    /// Seconds after which the kernel resends a request over another connection; 0 is never.
    pub timeout_s: u32,
    /// The server makes each write durable before it acknowledges it.
    pub is_sync: bool,
}

impl Life {
    /// One of them. Without a timeout, what was under way when a connection ended waits for up to
    /// 30 s, so few have none.
    #[must_use]
    pub fn drawn(random: &mut Random) -> Self {
        Self {
            connections: [1, 4][random.number(2) as usize],
            timeout_s: [3, 3, 3, 3, 4, 5, 6, 0][random.number(8) as usize],
            is_sync: random.number(4) == 0,
        }
    }
}

/// How another image comes to be where the disk was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// A backup is copied into the file after the server was asked to end.
    IntoItAfterItsEnd,
    /// The same after the server was killed.
    IntoItAfterAKill,
    /// A copy of the backup gets the file's name.
    UnderItsName,
}

/// A fault of the server, the network or the watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server is killed and comes back, one or several times.
    Killed {
        /// Number of kills.
        times: u64,
    },
    /// The server is asked to end, and comes back.
    Ended,
    /// The server stands still.
    Frozen,
    /// The network is cut.
    Cut,
    /// The network is cut, and before it is back the server is killed and comes back.
    CutAndKilled,
    /// The watcher is killed; the disk is detached and attached again.
    WatcherKilled,
    /// Watcher and server are killed, so that the connection is not restored: the user gives the disk up.
    WatcherAndServerKilled,
    /// The server's machine loses its power while it is written to.
    Rebooted {
        /// The network is cut before, so that the board does not learn of the connections' end.
        is_silent: bool,
        /// The watcher was asked to end before, which it refuses under a mounted disk.
        is_stop_asked: bool,
    },
    /// The same when the watcher says that everything is durable.
    RebootedWhenDurable,
    /// A backup takes the image's place.
    Restored(Restored),
}

/// How a disk is found after an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is used as if nothing had happened.
    GoesOn,
    /// It was failed, for this reason.
    GivenUp(String),
    /// It was detached and attached again by its user.
    AttachedAgain,
}

const RESTARTED: &str = "the server's machine was restarted";
const REPLACED: &str = "its contents were discarded or replaced";
const ANOTHER: &str = "another image is served under this name now";

impl Event {
    /// One of each, shuffled: a whole deck makes everything happen once.
    #[must_use]
    pub fn deck(random: &mut Random) -> Vec<Event> {
        let restored =
            [Restored::IntoItAfterItsEnd, Restored::IntoItAfterAKill, Restored::UnderItsName]
                [random.number(3) as usize];
        let is_silent = random.number(2) == 1;
        let mut deck = vec![
            Event::Killed { times: 1 },
            Event::Killed { times: 2 + random.number(2) },
            Event::Ended,
            Event::Frozen,
            Event::Cut,
            Event::CutAndKilled,
            Event::WatcherKilled,
            Event::WatcherAndServerKilled,
            Event::Rebooted { is_silent, is_stop_asked: false },
            Event::Rebooted { is_silent: !is_silent, is_stop_asked: true },
            Event::RebootedWhenDurable,
            Event::Restored(restored),
        ];
        for at in (1..deck.len()).rev() {
            deck.swap(at, random.number(at as u64 + 1) as usize);
        }
        deck
    }

    /// Whether it may have ended so. `is_lost` says that a write that had been acknowledged is not
    /// on the server's disk any more.
    ///
    /// # Errors
    /// When it may not, in words.
    pub fn may_end(self, outcome: &Outcome, life: Life, is_lost: bool) -> Result<()> {
        let reasons: &[&str] = match self {
            Event::WatcherKilled | Event::WatcherAndServerKilled => {
                ensure!(
                    *outcome == Outcome::AttachedAgain,
                    "nobody was there who could do that: {outcome:?}"
                );
                return Ok(());
            }
            // That nothing was lost cannot be known then.
            Event::Rebooted { .. } if !life.is_sync => &[RESTARTED],
            Event::Restored(Restored::UnderItsName) => &[ANOTHER],
            Event::Restored(_) => &[REPLACED],
            _ => &[],
        };
        match outcome {
            Outcome::AttachedAgain => bail!("nobody attached it again"),
            Outcome::GoesOn if matches!(self, Event::Restored(_)) => {
                bail!("it goes on with another image")
            }
            Outcome::GoesOn => ensure!(!is_lost, "it goes on over lost writes"),
            Outcome::GivenUp(why) => ensure!(
                reasons.iter().any(|reason| why.contains(reason)),
                "it was given up without a reason: {why}"
            ),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Life = Life { connections: 4, timeout_s: 3, is_sync: false };
    const REBOOTED: Event = Event::Rebooted { is_silent: false, is_stop_asked: false };

    fn given_up(why: &str) -> Outcome {
        Outcome::GivenUp(format!("NOT resumed: {why} and so on"))
    }

    #[test]
    fn a_deck_has_everything_in_the_order_of_its_seed() {
        let deck = |seed| Event::deck(&mut Random::of(seed));
        assert_eq!(deck(3), deck(3));
        assert_ne!(deck(3), deck(4));
        for seed in 0..50 {
            let deck = deck(seed);
            let is_there = |is_it: fn(&Event) -> bool| deck.iter().any(is_it);
            assert_eq!(deck.len(), 12);
            assert!(is_there(|event| matches!(event, Event::Restored(_))));
            assert!(is_there(|event| *event == Event::WatcherKilled));
            assert!(is_there(
                |event| matches!(event, Event::Killed { times } if (2..=3).contains(times))
            ));
            let reboots = deck.iter().filter(|event| matches!(event, Event::Rebooted { .. }));
            assert_eq!(reboots.count(), 2);
        }
        let mut random = Random::of(1);
        let lives: Vec<Life> = (0..100).map(|_| Life::drawn(&mut random)).collect();
        assert!(lives.iter().any(|life| life.is_sync && life.connections == 1));
        assert!(lives.iter().any(|life| !life.is_sync && life.timeout_s == 0));
    }

    #[test]
    fn over_lost_writes_nothing_goes_on() {
        let on = Outcome::GoesOn;
        assert!(REBOOTED.may_end(&on, USUAL, false).is_ok());
        assert!(REBOOTED.may_end(&on, USUAL, true).is_err());
        let killed = Event::Killed { times: 1 };
        assert!(killed.may_end(&on, USUAL, false).is_ok());
        assert!(killed.may_end(&on, USUAL, true).is_err());
        for restored in [Restored::IntoItAfterAKill, Restored::UnderItsName] {
            let event = Event::Restored(restored);
            assert!(event.may_end(&on, USUAL, false).is_err());
        }
    }

    #[test]
    fn nothing_is_given_up_without_its_reason() {
        let sync = Life { is_sync: true, ..USUAL };
        let restarted = given_up(RESTARTED);
        assert!(REBOOTED.may_end(&restarted, USUAL, true).is_ok());
        assert!(REBOOTED.may_end(&restarted, USUAL, false).is_ok());
        assert!(REBOOTED.may_end(&restarted, sync, false).is_err());
        assert!(REBOOTED.may_end(&given_up(ANOTHER), USUAL, true).is_err());
        let durable = Event::RebootedWhenDurable;
        assert!(durable.may_end(&restarted, USUAL, false).is_err());
        assert!(Event::Frozen.may_end(&restarted, USUAL, false).is_err());
        let named = Event::Restored(Restored::UnderItsName);
        assert!(named.may_end(&given_up(ANOTHER), sync, false).is_ok());
        assert!(named.may_end(&given_up(REPLACED), sync, false).is_err());
    }

    #[test]
    fn only_who_is_left_without_a_watcher_attaches_again() {
        let again = Outcome::AttachedAgain;
        assert!(Event::WatcherKilled.may_end(&again, USUAL, false).is_ok());
        assert!(Event::Cut.may_end(&again, USUAL, false).is_err());
        let alone = Event::WatcherAndServerKilled;
        assert!(alone.may_end(&Outcome::GoesOn, USUAL, false).is_err());
    }
}
