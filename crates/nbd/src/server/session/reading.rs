//! Reads: what is in memory at once, the rest by the pool's threads, and for a client that sends one
//! request at a time by its own, which would only wait for the other.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::super::disk::{Disk, Extent};
use super::super::line::Line;
use super::super::pool::{Budget, now_ns};
use super::super::transmission::{Replies, Request, Ticket, Work};
use super::{Gone, Need, PIECE_BYTES, Session, UNCOPIED_BYTES, receiving, sending};

/// What is in memory is copied up to this size where it cannot go from there, as for a kernel that asks for
/// 1280 KiB and takes no pieces.
const COPIED_AT_ONCE_BYTES: usize = 2 << 20;
/// Pages of files have this size at least.
const PAGE_BYTES: u64 = 4096;
/// A hole that is smaller is sent as zeros.
const HOLE_BYTES: usize = 4 << 10;
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
        let Work::Read { offset, length, whole } = request.work else {
            return Ok(None);
        };
        let (ticket, length) = (request.ticket, length as usize);
        if length < UNCOPIED_BYTES {
            return self.read_range(request, (offset, length), header_bytes);
        }
        let begun = match self.left_of_read.take() {
            Some(left) => left,
            None => self.send_holes(ticket, (offset, length), whole)?,
        };
        let (offset, length) = self.send_pieces(ticket, begun, whole)?;
        if length == 0 {
            self.inbox.used(header_bytes);
            return Ok(None);
        }
        if length >= UNCOPIED_BYTES && self.read_uncopied(ticket, offset, length, true)? {
            self.inbox.used(header_bytes);
            return Ok(None);
        }
        let need = self.read_range(request, (offset, length), header_bytes)?;
        if need.is_some() {
            self.left_of_read = Some((offset, length));
        }
        Ok(need)
    }

    /// Reads what is the end of a request, or all of it.
    #[inline]
    fn read_range(
        &mut self,
        mut request: Request,
        (offset, length): (u64, usize),
        header_bytes: usize,
    ) -> Result<Option<Need>, Gone> {
        let ticket = request.ticket;
        let ready = |disk: &dyn Disk, into: &mut [u8]| disk.read_ready(offset, into);
        if length <= COPIED_AT_ONCE_BYTES && self.read_into_outbox(ticket, offset, length, ready)? {
            self.inbox.used(header_bytes);
            return Ok(None);
        }
        if let Work::Read { whole, .. } = request.work {
            request.work = Work::Read { offset, length: length as u32, whole };
        }
        self.read_from_device(request, (offset, length), header_bytes)
    }

    /// Sends holes at both ends of a read as holes, where the client can be told. Gives what is left, which
    /// has no bytes if nothing is.
    fn send_holes(
        &mut self,
        ticket: Ticket,
        (offset, length): (u64, usize),
        whole: bool,
    ) -> Result<(u64, usize), Gone> {
        let range = offset..offset + length as u64;
        if !self.tells_holes || !self.hole_hunt.asks(&range) {
            return Ok((offset, length));
        }
        let data_end = self.disk.data_end(offset).unwrap_or(offset);
        if data_end >= range.end {
            self.hole_hunt.found_data(offset..data_end);
            return Ok((offset, length));
        }
        let extents = self.disk.extents(offset, length as u64, false);
        let (before, behind) = ends(&extents.unwrap_or_default(), length);
        let is_all = before == length;
        if before + behind > 0 {
            self.hole_hunt.found_hole()
        } else {
            self.hole_hunt.found_data(offset..data_end)
        }
        // A reply in one piece is a hole or none.
        if before + behind == 0 || whole && !is_all {
            return Ok((offset, length));
        }
        let left = length - before - behind;
        let data_at = offset + before as u64;
        for (at, bytes) in [(offset, before), (data_at + left as u64, behind)] {
            if bytes > 0 {
                self.reply(|replies, out| {
                    let _ = replies.hole(ticket, at, bytes as u32, is_all, out);
                })?;
            }
        }
        self.added.read_bytes += (before + behind) as u64;
        if is_all {
            self.added.reads += 1;
            self.added.at_once += 1;
        }
        Ok((data_at, left))
    }

    /// Sends what is larger than a conduit in several pieces, as long as they are in memory and the client
    /// takes pieces. Gives what is left.
    fn send_pieces(
        &mut self,
        ticket: Ticket,
        (mut offset, mut length): (u64, usize),
        whole: bool,
    ) -> Result<(u64, usize), Gone> {
        if whole || self.rules.replies == Replies::Simple {
            return Ok((offset, length));
        }
        while length > PIECE_BYTES {
            // Whole pages of the file, as many as fit into the conduit.
            let piece = PIECE_BYTES - (offset % PAGE_BYTES) as usize;
            if !self.read_uncopied(ticket, offset, piece, false)? {
                break;
            }
            (offset, length) = (offset + piece as u64, length - piece);
        }
        Ok((offset, length))
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
                let mut bytes = [0; Replies::MAX_DATA_HEAD_BYTES];
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
    /// With `last` it is the end of the reply.
    fn read_uncopied(
        &mut self,
        ticket: Ticket,
        offset: u64,
        length: usize,
        last: bool,
    ) -> Result<bool, Gone> {
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
        let mut head = [0; Replies::MAX_DATA_HEAD_BYTES];
        let replies = self.rules.replies;
        let head_bytes = replies.data_head(ticket, offset, length as u32, last, &mut head);
        self.outbox
            .append(&head[..head_bytes], &mut self.line)
            .and_then(|()| self.outbox.send_with(&mut conduit, &stream))
            .map_err(sending)?;
        self.conduit = Some(conduit);
        self.added.reads += u64::from(last);
        self.added.at_once += u64::from(last);
        self.added.read_bytes += length as u64;
        Ok(true)
    }

    /// Reads what a device has to be waited for: here, if the client waits for this alone, else in the
    /// pool.
    #[cold]
    fn read_from_device(
        &mut self,
        request: Request,
        (offset, length): (u64, usize),
        header_bytes: usize,
    ) -> Result<Option<Need>, Gone> {
        let is_alone = self.in_flight == 0
            && self.inbox.bytes().len() == header_bytes
            && self.outbox.is_empty();
        self.solitude.found(is_alone);
        if self.solitude.is_sure() && length <= PIECE_BYTES {
            self.inbox.used(header_bytes);
            let ticket = request.ticket;
            return self.read_here(ticket, offset, length).map(|()| None);
        }
        if let Some(need) = self.reserve(length) {
            return Ok(Some(need));
        }
        self.inbox.used(header_bytes);
        let memory = self.spare.take(length, &self.shared.spare);
        self.defer(request, None, memory)?;
        Ok(None)
    }

    fn read_here(&mut self, ticket: Ticket, offset: u64, length: usize) -> Result<(), Gone> {
        self.read_into_outbox(ticket, offset, length, |disk, into| {
            match disk.read(offset, into) {
                // That is an answer here.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Err(io::Error::other(error))
                }
                answer => answer,
            }
        })?;
        // A client that waits for each reply has sent nothing ahead.
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
        let mut head = [0; Replies::MAX_DATA_HEAD_BYTES];
        let replies = self.rules.replies;
        let head_bytes = replies.data_head(ticket, offset, length, true, &mut head);
        let (line, outbox) = (&mut self.line, &mut self.outbox);
        let account = &self.account;
        account.awaits(now_ns());
        let sent = outbox.append(&head[..head_bytes], line).and_then(|()| match data.len() {
            few if few <= COPIED_BYTES => {
                account.moved(few);
                outbox.append(&data, line)
            }
            _ => outbox.send_before(&data, line, |bytes| account.moved(bytes)),
        });
        account.came(now_ns());
        sent.map_err(sending)?;
        self.spare.keep(data, &self.shared.spare);
        Ok(())
    }
}

/// How many bytes at the front and at the end of a range are holes that are worth telling. If all of it is
/// one, it is at the front.
fn ends(extents: &[Extent], length: usize) -> (usize, usize) {
    let is_hole = |extent: &&Extent| extent.is_hole && extent.is_zero;
    let sum = |extents: &mut dyn Iterator<Item = &Extent>| -> usize {
        extents.map(|extent| extent.length as usize).sum()
    };
    let front = sum(&mut extents.iter().take_while(is_hole)).min(length);
    // Bytes not covered by extents may be data.
    let is_told = sum(&mut extents.iter()) == length;
    let back = if is_told && front < length {
        sum(&mut extents.iter().rev().take_while(is_hole))
    } else {
        0
    };
    let told = |bytes: usize| if bytes >= HOLE_BYTES { bytes } else { 0 };
    (told(front), told(back))
}

/// Whether it is worth to look for holes: that costs two calls of the system, which some filesystems (tmpfs) answer by
/// walking to the end of the data, and most reads have none.
#[derive(Debug, Default)]
pub(super) struct HoleHunt {
    /// Number of checks in a row that found no hole.
    missed: u32,
    /// Where the last check found data. What became a hole there since is sent as zeros, which it is, too.
    data: Range<u64>,
}

impl HoleHunt {
    /// After this many, only every eighth read is checked.
    const ENOUGH: u32 = 32;

    fn asks(&mut self, range: &Range<u64>) -> bool {
        if self.data.start <= range.start && range.end <= self.data.end {
            return false;
        }
        if self.missed < HoleHunt::ENOUGH {
            return true;
        }
        self.missed += 1;
        if self.missed == HoleHunt::ENOUGH + 8 {
            self.missed = HoleHunt::ENOUGH;
        }
        self.missed == HoleHunt::ENOUGH
    }

    fn found_data(&mut self, data: Range<u64>) {
        self.data = data;
        if self.missed < HoleHunt::ENOUGH {
            self.missed += 1;
        }
    }

    fn found_hole(&mut self) {
        self.missed = 0;
    }

    /// The client makes holes.
    pub(super) fn forget_data(&mut self) {
        self.data = Range::default();
    }
}

/// Whether a client sends a request only when the one before has been answered.
#[derive(Debug, Default)]
pub(super) struct Solitude {
    /// Number of requests in a row that came alone.
    alone: u32,
}

impl Solitude {
    /// After this many in a row, the next is expected to come alone, too.
    const ENOUGH: u32 = 8;

    /// A request that has to wait came alone, or not.
    pub fn found(&mut self, is_alone: bool) {
        self.alone = if is_alone { self.alone.saturating_add(1) } else { 0 };
    }

    /// Whether it is safe not to poll the client's socket until its request is done.
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
        if memory.capacity() >= length {
            memory.resize(length, 0);
            memory
        } else {
            vec![0; length]
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
    fn holes_at_both_ends_are_told_and_what_is_unknown_is_data() {
        let (data, hole) = (Extent::data, Extent::hole);
        let all = 1 << 20;
        let half = all as u64 / 2;
        assert_eq!(ends(&[hole(all as u64)], all), (all, 0));
        assert_eq!(ends(&[data(all as u64)], all), (0, 0));
        assert_eq!(ends(&[hole(half), data(half)], all), (all / 2, 0));
        assert_eq!(ends(&[data(half), hole(half)], all), (0, all / 2));
        let quarter = half / 2;
        let middle = [hole(quarter), data(quarter), hole(quarter), data(quarter)];
        assert_eq!(ends(&middle, all), (all / 4, 0));
        let both = [hole(quarter), data(half), hole(quarter)];
        assert_eq!(ends(&both, all), (all / 4, all / 4));
        assert_eq!(ends(&both[..1], all), (all / 4, 0), "the rest is unknown");
        assert_eq!(ends(&[data(quarter), hole(quarter)], all), (0, 0));
        assert_eq!(ends(&[hole(512), data(all as u64 - 512)], all), (0, 0));
        assert_eq!(ends(&[], all), (0, 0));
    }

    #[test]
    fn where_no_holes_are_few_reads_are_looked_at_and_the_next_hole_changes_that() {
        let mut hunt = HoleHunt::default();
        let mut looks = |found: bool, reads: usize| {
            let look = |_: &usize| {
                let asks = hunt.asks(&(0..8));
                match (asks, found) {
                    (true, true) => hunt.found_hole(),
                    (true, false) => hunt.found_data(0..4),
                    (false, _) => {}
                }
                asks
            };
            (0..reads).filter(look).count()
        };
        assert_eq!(looks(false, 32), 32);
        assert_eq!(looks(false, 800), 100);
        assert_eq!(looks(true, 8 + 32), 1 + 32);
    }

    #[test]
    fn known_data_is_not_looked_at_again_until_the_client_makes_holes() {
        let mut hunt = HoleHunt::default();
        hunt.found_data(8..64);
        assert!(!hunt.asks(&(8..16)) && !hunt.asks(&(60..64)));
        assert!(hunt.asks(&(7..16)) && hunt.asks(&(60..65)));
        hunt.forget_data();
        assert!(hunt.asks(&(8..16)));
    }

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
