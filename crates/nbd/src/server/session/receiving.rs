//! Waiting for the client: how long, and for what else meanwhile.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use super::super::line::PATIENCE;
use super::super::pool::now_ns;
use super::{ClientInput, Gone, Need, STARVING, Session, receiving};

impl Session {
    /// Waits for what is needed; false when there is nothing to do for a while.
    #[inline]
    pub(super) fn receive(&mut self, need: Need) -> Result<bool, Gone> {
        if let Need::Orphans(work) = &need {
            if let Some(member) = &mut self.member {
                member.wait(work);
            }
            self.turn_ns = now_ns();
            self.rate.reset();
            return Ok(true);
        }
        if self.in_flight > 0 {
            return self.receive_or_collect(need);
        }
        let wanted = match need {
            Need::Client(wanted) => wanted,
            Need::End => return Err(self.ends.take().unwrap_or(Gone::Closed)),
            // Nothing is in flight any more.
            Need::Room => {
                self.rate.reset();
                return Ok(true);
            }
            Need::Memory => {
                self.starve();
                return Ok(true);
            }
            // They were waited for above.
            Need::Orphans(_) => return Ok(true),
        };
        let got = self.take_in_counted(wanted);
        self.turn_ns = now_ns();
        match got {
            Ok(0) => {
                self.ended();
                Ok(true)
            }
            Ok(bytes) => self.goes_on(bytes),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if !self.is_in_a_request() {
                    return Ok(false);
                }
                self.goes_on(0)
            }
            Err(error) => Err(receiving(error)),
        }
    }

    /// Whether the client sends its request fast enough, after another `bytes` bytes.
    pub(super) fn goes_on(&mut self, bytes: usize) -> Result<bool, Gone> {
        if self.rate.is_too_slow(bytes, self.turn_ns) { Err(Gone::Stuck) } else { Ok(true) }
    }

    /// Receives, and waits; a client that holds memory of others is watched.
    pub(super) fn take_in_counted(&mut self, wanted: ClientInput) -> io::Result<usize> {
        if self.inbox_bytes == 0 {
            return self.take_in(wanted, true);
        }
        self.account.awaits(now_ns());
        let got = self.take_in(wanted, true);
        self.account.came(now_ns());
        self.account.moved(got.as_ref().map_or(0, |bytes| *bytes));
        got
    }

    /// Waits for memory that other clients have. After a while they have to hurry.
    pub(super) fn starve(&mut self) {
        let now_ns = now_ns();
        let since_ns = *self.starving_ns.get_or_insert(now_ns);
        if now_ns - since_ns >= STARVING.as_nanos() as u64 {
            self.shared.shares.make_room(now_ns);
        }
        self.release_inbox();
        self.rate.reset();
        self.shared.shares.wait(Duration::from_millis(20));
    }

    pub(super) fn is_in_a_request(&self) -> bool {
        self.skip > 0 || self.taking.is_some() || !self.inbox.bytes().is_empty()
    }

    /// Waits for the client, if it may go on, and for what is in flight.
    pub(super) fn receive_or_collect(&mut self, need: Need) -> Result<bool, Gone> {
        let Some(queue) = &self.queue else {
            return Ok(true);
        };
        let wanted = need.wanted();
        let mut comes = wanted.is_some() && self.line.has_more();
        if !comes {
            let socket = wanted.is_some().then(|| self.line.as_fd());
            comes = queue.wait(socket, PATIENCE).map_err(Gone::Broken)?.bytes;
        }
        self.turn_ns = now_ns();
        let Some(wanted) = wanted else {
            // It is not the client that is waited for.
            self.rate.reset();
            return Ok(true);
        };
        let mut got = 0;
        if comes {
            match self.take_in(wanted, false) {
                Ok(0) => {
                    self.ended();
                    return Ok(true);
                }
                Ok(bytes) => got = bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(receiving(error)),
            }
        }
        if self.is_in_a_request() { self.goes_on(got) } else { Ok(true) }
    }
}
