//! Reads: what is in memory at once, the rest by the pool's threads, and for a client that sends one
//! request at a time by its own, which would only wait for the other.

use std::io;
use std::sync::Arc;

use super::super::disk::Disk;
use super::super::line::Line;
use super::super::pool::{Budget, now_ns};
use super::super::transmission::{Replies, Request, Ticket, Work};
use super::{Gone, Need, PIECE_BYTES, Session, UNCOPIED_BYTES, receiving, sending};

/// Data that are longer are sent from where they are.
const COPIED_BYTES: usize = 32 << 10;
/// Memory for reads from a device that one client keeps. What all keep has a limit, too.
const SPARE_BYTES: usize = 8 << 20;

impl Session {
    /// Begins a read, and does it if it can be done at once. When something is needed first, the
    /// request is still in the inbox.
    #[inline]
    pub(super) fn begin_read(
        &mut self,
        request: Request,
        header_bytes: usize,
    ) -> Result<Option<Need>, Gone> {
        let Work::Read { offset, length, .. } = request.work else {
            return Ok(None);
        };
        let (ticket, length) = (request.ticket, length as usize);
        if length >= UNCOPIED_BYTES && self.read_uncopied(ticket, offset, length)? {
            self.inbox.used(header_bytes);
            return Ok(None);
        }
        let ready = |disk: &dyn Disk, into: &mut [u8]| disk.read_ready(offset, into);
        if length <= PIECE_BYTES && self.read_into_outbox(ticket, offset, length, ready)? {
            self.inbox.used(header_bytes);
            return Ok(None);
        }
        self.read_from_device(request, length, header_bytes)
    }

    /// Reads straight into what is sent; false when the disk would have to be waited for.
    #[inline]
    fn read_into_outbox(
        &mut self,
        ticket: Ticket,
        offset: u64,
        length: usize,
        read: impl FnOnce(&dyn Disk, &mut [u8]) -> io::Result<()>,
    ) -> Result<bool, Gone> {
        let replies = self.rules.replies;
        let head_bytes = replies.data_head_bytes();
        let room = self.outbox.room(head_bytes + length, &mut self.line);
        let room = room.map_err(sending)?;
        let (head, data) = room.split_at_mut(head_bytes);
        match read(&*self.disk, data) {
            Ok(()) => {
                let mut bytes = [0; Replies::MOST_DATA_HEAD_BYTES];
                replies.data_head(ticket, offset, length as u32, true, &mut bytes);
                head.copy_from_slice(&bytes[..head_bytes]);
                self.outbox.filled(head_bytes + length);
                self.added.reads += 1;
                self.added.at_once += 1;
                self.added.read_bytes += length as u64;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => {
                self.added.reads += 1;
                self.added.at_once += 1;
                self.failed(ticket, &error)?;
                Ok(true)
            }
        }
    }

    /// Sends what is in memory from there; false when that cannot be, for whatever reason.
    fn read_uncopied(&mut self, ticket: Ticket, offset: u64, length: usize) -> Result<bool, Gone> {
        let Line::Plain(stream) = &self.line else {
            return Ok(false);
        };
        let stream = Arc::clone(stream);
        let Some(mut conduit) = self.take_conduit() else {
            return Ok(false);
        };
        match self.disk.fill_ready(&mut conduit, offset, length) {
            Ok(()) => {}
            Err(error) => {
                // Something may be in the conduit that was never meant to be. The other way knows what to say.
                self.had_conduit = error.kind() == io::ErrorKind::WouldBlock;
                self.conduit = Some(conduit).filter(|_| self.had_conduit);
                return Ok(false);
            }
        }
        let mut head = [0; Replies::MOST_DATA_HEAD_BYTES];
        let replies = self.rules.replies;
        let head_bytes = replies.data_head(ticket, offset, length as u32, true, &mut head);
        self.outbox
            .append(&head[..head_bytes], &mut self.line)
            .and_then(|()| self.outbox.send_with(&mut conduit, &stream))
            .map_err(sending)?;
        self.conduit = Some(conduit);
        self.added.reads += 1;
        self.added.at_once += 1;
        self.added.read_bytes += length as u64;
        Ok(true)
    }

    /// Reads what a device has to be waited for: here, if the client waits for this alone, else in the
    /// pool.
    #[cold]
    fn read_from_device(
        &mut self,
        request: Request,
        length: usize,
        header_bytes: usize,
    ) -> Result<Option<Need>, Gone> {
        let is_alone = self.in_flight == 0
            && self.inbox.bytes().len() == header_bytes
            && self.outbox.is_empty();
        self.solitude.found(is_alone);
        if self.solitude.is_sure() && length <= PIECE_BYTES {
            self.inbox.used(header_bytes);
            return self.read_here(request.ticket, length).map(|()| None);
        }
        if let Some(need) = self.reserve(length) {
            return Ok(Some(need));
        }
        self.inbox.used(header_bytes);
        let memory = self.spare.take(length, &self.house.spare);
        self.defer(request, None, memory)?;
        Ok(None)
    }

    fn read_here(&mut self, ticket: Ticket, length: usize) -> Result<(), Gone> {
        let offset = ticket.offset;
        self.read_into_outbox(ticket, offset, length, |disk, into| {
            match disk.read(offset, into) {
                // That is an answer here.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Err(io::Error::other(error))
                }
                answer => answer,
            }
        })?;
        // Whoever waits for an answer has sent nothing before it.
        let need = self.rules.header_bytes();
        match self.inbox.receive(&mut self.line, need, need, false) {
            Ok(0) => self.ended(),
            Ok(_) => self.solitude.found(false),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(receiving(error)),
        }
        Ok(())
    }

    /// Sends what a thread of the pool has read.
    pub(super) fn send_data(
        &mut self,
        ticket: Ticket,
        work: Work,
        data: Vec<u8>,
    ) -> Result<(), Gone> {
        let Work::Read { offset, length, .. } = work else {
            return Ok(());
        };
        let mut head = [0; Replies::MOST_DATA_HEAD_BYTES];
        let replies = self.rules.replies;
        let head_bytes = replies.data_head(ticket, offset, length, true, &mut head);
        let (line, outbox) = (&mut self.line, &mut self.outbox);
        let account = &self.account;
        account.sends(now_ns());
        let sent = outbox
            .append(&head[..head_bytes], line)
            .and_then(|()| match data.len() {
                few if few <= COPIED_BYTES => {
                    account.took(few);
                    outbox.append(&data, line)
                }
                _ => outbox.send_before(&data, line, |bytes| account.took(bytes)),
            });
        account.sent(now_ns());
        sent.map_err(sending)?;
        self.spare.keep(data, &self.house.spare);
        Ok(())
    }
}

/// Whether a client sends a request only when the one before has been answered.
#[derive(Debug, Default)]
pub(super) struct Solitude {
    /// So many requests in a row came alone.
    alone: u32,
}

impl Solitude {
    /// From so many on it will be so again.
    const ENOUGH: u32 = 8;

    /// A request that has to wait came alone, or not.
    pub fn found(&mut self, is_alone: bool) {
        self.alone = match is_alone {
            true => self.alone.saturating_add(1),
            false => 0,
        };
    }

    /// Whether nothing is lost if nobody listens to the client until its request is done.
    pub fn is_sure(&self) -> bool {
        self.alone > Solitude::ENOUGH
    }
}

/// Memory that is kept for reads to come: the system's own way of giving and taking large pieces costs
/// as much as reading them.
#[derive(Debug, Default)]
pub(super) struct Spare {
    pieces: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spare {
    /// Memory of that length.
    fn take(&mut self, length: usize, of_all: &Budget) -> Vec<u8> {
        let Some(mut memory) = self.pieces.pop() else {
            return vec![0; length];
        };
        self.bytes -= memory.capacity();
        of_all.give_back(memory.capacity());
        match memory.capacity() >= length {
            true => {
                memory.resize(length, 0);
                memory
            }
            false => vec![0; length],
        }
    }

    fn keep(&mut self, memory: Vec<u8>, of_all: &Budget) {
        let bytes = memory.capacity();
        if self.bytes + bytes <= SPARE_BYTES && of_all.take(bytes) {
            self.bytes += bytes;
            self.pieces.push(memory);
        }
    }

    /// Gives all of it back.
    pub fn clear(&mut self, of_all: &Budget) {
        of_all.give_back(self.bytes);
        *self = Spare::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_that_did_not_come_alone_ends_solitude() {
        let mut solitude = Solitude::default();
        for _ in 0..=Solitude::ENOUGH {
            assert!(!solitude.is_sure());
            solitude.found(true);
        }
        assert!(solitude.is_sure());
        solitude.found(false);
        assert!(!solitude.is_sure());
    }

    #[test]
    fn what_is_kept_is_bounded_for_each_and_for_all() {
        let of_all = Budget::new(12 << 20);
        let (mut one, mut other) = (Spare::default(), Spare::default());
        for _ in 0..40 {
            one.keep(vec![0; 256 << 10], &of_all);
            other.keep(vec![0; 256 << 10], &of_all);
        }
        assert!(one.bytes <= SPARE_BYTES && one.bytes + other.bytes <= 12 << 20);
        assert!(!of_all.take(256 << 10));
        assert_eq!(one.take(4096, &of_all), [0; 4096]);
        assert_eq!(one.take(1 << 20, &of_all).len(), 1 << 20);
        one.clear(&of_all);
        other.clear(&of_all);
        assert!(of_all.take(12 << 20));
    }
}
