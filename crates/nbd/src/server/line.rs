//! The bytes of one client, encrypted or not, and the memory they go through.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rubus_host::net::Stream;
use rubus_host::net::min_rate::MinRate;
use rubus_host::net::splice::Conduit;

use super::pool::now_ns;
use crate::peer::PeerCertificate;
use crate::tls::Tls;
use crate::transport::Transport;

/// After this long without a request a client gives its thread back.
pub(super) const IDLE: Duration = Duration::from_secs(2);

/// A client is disconnected if it reads no reply for this long, or stops in the middle of a
/// request.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to a client.
pub(super) enum Line {
    /// In the clear.
    Plain(Arc<Stream>),
    /// Through TLS.
    Tls(Box<Tls<Arc<Stream>>>),
}

impl Line {
    /// The connection's socket.
    pub fn stream(&self) -> &Arc<Stream> {
        match self {
            Line::Plain(stream) => stream,
            Line::Tls(tls) => tls.inner(),
        }
    }

    /// The certificate that the client has shown.
    pub fn peer(&self) -> Option<PeerCertificate> {
        match self {
            Line::Plain(_) => None,
            Line::Tls(tls) => tls.peer(),
        }
    }

    /// Whether something that was received is still to be taken, which the socket does not show.
    pub(super) fn has_more(&mut self) -> bool {
        match self {
            Line::Plain(_) => false,
            Line::Tls(tls) => tls.has_plain(),
        }
    }

    #[inline]
    pub(super) fn receive(&mut self, memory: &mut [u8], wait: bool) -> io::Result<usize> {
        match self {
            Line::Plain(stream) => stream.receive_into(memory, wait),
            Line::Tls(tls) => receive(tls, memory, wait),
        }
    }

    #[inline]
    pub(super) fn send_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Line::Plain(stream) => stream.send_all(bytes),
            Line::Tls(tls) => send_all(tls, bytes),
        }
    }

    /// Sends what there is room for without waiting; gives how many bytes were taken.
    pub(super) fn send_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Line::Plain(stream) => stream.send(&[IoSlice::new(bytes)]),
            Line::Tls(tls) => tls.send(&[IoSlice::new(bytes)]),
        }
    }

    /// Whether there is something to be sent that was taken and found no room.
    pub(super) fn wants_room(&self) -> bool {
        match self {
            Line::Plain(_) => false,
            Line::Tls(tls) => tls.wants_room(),
        }
    }
}

/// As from a socket that waits for [`IDLE`] at most.
fn receive(tls: &mut Tls<Arc<Stream>>, memory: &mut [u8], wait: bool) -> io::Result<usize> {
    loop {
        match tls.receive(&mut [IoSliceMut::new(memory)], false) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && wait => {
                if !tls.wait(false, Some(IDLE))? {
                    return Err(error);
                }
            }
            answer => return answer,
        }
    }
}

/// As over a socket that waits for [`PATIENCE`] at most.
fn send_all(tls: &mut Tls<Arc<Stream>>, mut bytes: &[u8]) -> io::Result<()> {
    let mut rate = MinRate::default();
    loop {
        let left = bytes.len();
        match tls.send(&[IoSlice::new(bytes)]) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if bytes.is_empty() && !tls.wants_room() {
            return Ok(());
        }
        if tls.wants_room() {
            let has_room = tls.inner().wait_for_room(PATIENCE)?;
            if !has_room || rate.is_too_slow(left - bytes.len(), now_ns()) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream().as_fd()
    }
}

/// What has come and is not yet done: `from..to` of a piece of memory, which grows when it is worth
/// it and is given back when the client is idle.
#[derive(Default)]
pub(super) struct Inbox {
    memory: Box<[u8]>,
    from: usize,
    to: usize,
    /// Nothing is received beyond what is needed: what follows is likely not to come here.
    pub is_frugal: bool,
}

/// As much is received at once, where nothing larger is waited for.
const FIRST_BYTES: usize = 64 << 10;
/// When that was not enough: what fits a queue of small writes.
const MANY_BYTES: usize = 256 << 10;
/// What every client may have for that without asking.
pub(super) const UNCOUNTED_BYTES: usize = MANY_BYTES + (4 << 10);
/// From so much on, exactly what is needed is received: a payload then begins where the memory
/// does, and nothing behind it has to be moved.
const LARGE_BYTES: usize = 16 << 10;

impl Inbox {
    /// With what came in the handshake and belongs to the requests after it.
    pub fn new(begun: &[u8]) -> Inbox {
        let mut inbox = Inbox::default();
        if !begun.is_empty() {
            inbox.memory = begun.into();
            inbox.to = begun.len();
        }
        inbox
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.from..self.to]
    }

    #[inline]
    pub fn used(&mut self, bytes: usize) {
        self.from = (self.from + bytes).min(self.to);
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
    }

    /// Has it begin with these bytes, when there is nothing in it.
    pub fn begin_with(&mut self, bytes: &[u8]) {
        if bytes.len() > self.memory.len() {
            self.make_room(bytes.len());
        }
        self.memory[..bytes.len()].copy_from_slice(bytes);
        (self.from, self.to) = (0, bytes.len());
    }

    /// Receives what is there, as far as it is of use: `need` is how much is needed from the front
    /// for the next step, more than there is.
    #[inline]
    pub fn receive(
        &mut self,
        line: &mut Line,
        need: usize,
        header_bytes: usize,
        wait: bool,
    ) -> io::Result<usize> {
        if self.from + need > self.memory.len() {
            self.make_room(need + header_bytes);
        }
        let end = if self.is_frugal {
            self.from + need
        } else if need > LARGE_BYTES {
            (self.from + need + header_bytes).min(self.memory.len())
        } else {
            self.memory.len()
        };
        let got = line.receive(&mut self.memory[self.to..end], wait)?;
        self.to += got;
        if self.to == self.memory.len() && self.memory.len() < MANY_BYTES {
            self.make_room(MANY_BYTES);
        }
        Ok(got)
    }

    #[cold]
    fn make_room(&mut self, bytes: usize) {
        let have = self.from..self.to;
        if bytes <= self.memory.len() {
            self.memory.copy_within(have.clone(), 0);
        } else {
            let mut larger = vec![0; bytes.max(FIRST_BYTES)].into_boxed_slice();
            larger[..have.len()].copy_from_slice(&self.memory[have.clone()]);
            self.memory = larger;
        }
        (self.from, self.to) = (0, have.len());
    }

    /// Shrinks to memory that is not counted against the limit, if the content fits.
    pub fn shrink_to_uncounted(&mut self) {
        if self.memory.len() > UNCOUNTED_BYTES && self.bytes().len() < FIRST_BYTES {
            let mut smaller = vec![0; FIRST_BYTES].into_boxed_slice();
            let bytes = self.bytes().len();
            smaller[..bytes].copy_from_slice(self.bytes());
            self.memory = smaller;
            (self.from, self.to) = (0, bytes);
        }
    }

    /// Whether its memory is what every client may have.
    pub fn is_uncounted(&self) -> bool {
        self.memory.len() <= UNCOUNTED_BYTES
    }

    /// Takes what lies between these places. Where that is much and all there is, the memory goes along.
    pub fn take(&mut self, begin: usize, end: usize) -> Vec<u8> {
        let is_all = self.from == 0 && self.to == end;
        if !is_all || self.memory.len() <= UNCOUNTED_BYTES {
            let taken = self.bytes()[begin..end].to_vec();
            self.used(end);
            return taken;
        }
        let mut taken = std::mem::take(&mut self.memory).into_vec();
        (self.from, self.to) = (0, 0);
        taken.truncate(end);
        taken.drain(..begin);
        taken
    }

    /// Gives the memory back, if nothing is in it.
    pub fn shrink(&mut self) {
        if self.from == self.to {
            *self = Inbox::default();
        }
    }
}

/// What is to be sent.
#[derive(Default)]
pub(super) struct Outbox {
    memory: Box<[u8]>,
    used: usize,
}

/// So much is sent at once. More would not make it faster, and the first would wait for the last.
const BATCH_BYTES: usize = 256 << 10;
/// Room for the head of a reply beside a batch.
const SLACK_BYTES: usize = 4 << 10;

impl Outbox {
    /// Room for exactly `bytes` bytes at the end; sends what is queued first if need be.
    #[inline]
    pub fn room(&mut self, bytes: usize, line: &mut Line) -> io::Result<&mut [u8]> {
        if self.used + bytes > self.memory.len() {
            self.make_room(bytes, line)?;
        }
        Ok(&mut self.memory[self.used..self.used + bytes])
    }

    #[cold]
    fn make_room(&mut self, bytes: usize, line: &mut Line) -> io::Result<()> {
        self.send(line)?;
        if bytes > self.memory.len() {
            let size = bytes.max(BATCH_BYTES + SLACK_BYTES);
            self.memory = vec![0; size].into_boxed_slice();
        }
        Ok(())
    }

    /// Marks `bytes` bytes of the room as filled.
    #[inline]
    pub fn filled(&mut self, bytes: usize) {
        self.used += bytes;
    }

    /// Appends bytes; sends what is queued first if need be.
    #[inline]
    pub fn append(&mut self, bytes: &[u8], line: &mut Line) -> io::Result<()> {
        self.room(bytes.len(), line)?.copy_from_slice(bytes);
        self.used += bytes.len();
        Ok(())
    }

    /// Sends all of it.
    #[inline]
    pub fn send(&mut self, line: &mut Line) -> io::Result<()> {
        if self.used > 0 {
            line.send_all(&self.memory[..self.used])?;
            self.used = 0;
        }
        Ok(())
    }

    /// Whether there is nothing to be sent.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Sends all of it, and then these bytes, as if they were one; says after each part of these how many
    /// it has.
    pub fn send_before(
        &mut self,
        bytes: &[u8],
        line: &mut Line,
        took: impl Fn(usize),
    ) -> io::Result<()> {
        match line {
            Line::Plain(stream) => stream.send_all_before_more(&self.memory[..self.used])?,
            Line::Tls(tls) => send_all(tls, &self.memory[..self.used])?,
        }
        self.used = 0;
        for part in bytes.chunks(BATCH_BYTES) {
            line.send_all(part)?;
            took(part.len());
        }
        Ok(())
    }

    /// Sends all of it, and then what the conduit holds.
    pub fn send_with(&mut self, conduit: &mut Conduit, stream: &Stream) -> io::Result<()> {
        stream.send_all_before_more(&self.memory[..self.used])?;
        self.used = 0;
        conduit.send(stream)
    }

    /// Gives the memory back, if nothing is in it.
    pub fn shrink(&mut self) {
        if self.used == 0 {
            self.memory = Box::default();
        }
    }
}
