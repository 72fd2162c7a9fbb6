//! Writes: small ones go from what was received to the disk at once; those that are to be durable, and
//! all while the disk is slow, to the pool's threads; large ones piece by piece, past this program's
//! memory where socket and disk can do that.

use std::io;

use rubus_host::net::splice::Conduit;

use super::super::disk::Disk;
use super::super::line::Line;
use super::super::orphans::{Abandoned, Member, Writing};
use super::super::pool::{now_ns, run_parts};
use super::super::transmission::{Request, Ticket, Work};
use super::{ClientInput, Gone, Need, PIECE_BYTES, Session, UNCOPIED_BYTES};

/// Disks and filesystems seldom have larger ones.
const BLOCK_BYTES: usize = 4096;
/// The answer to a write of so much may wait for the next one's.
const LARGE_BYTES: usize = 64 << 10;
/// Maximum number of a client's bytes in pool writes to a slow device. Beyond it the session waits
/// for them.
const MAX_SLOW_BYTES: usize = 512 << 10;

/// A large write that is being received.
pub(super) struct Taking {
    ticket: Ticket,
    offset: u64,
    left: usize,
    durable: bool,
    error: Option<io::Error>,
    bytes: u32,
    /// What is still in the socket goes through the conduit.
    is_uncopied: bool,
}

/// What can be written at once. It ends where a block does, or the write: of a block that is written
/// in two parts the disk may have to be read first.
enum Piece {
    /// This many bytes of the inbox.
    Received(usize),
    /// This many bytes of the conduit, which also holds the rest.
    Held { bytes: usize, rest: usize },
}

impl Taking {
    /// Where in a block it goes on.
    fn within_block(&self) -> usize {
        (self.offset % BLOCK_BYTES as u64) as usize
    }

    /// How many of `bytes` bytes form whole blocks, or everything that is left.
    fn whole_blocks(&self, bytes: usize) -> usize {
        if bytes >= self.left {
            self.left
        } else {
            bytes.saturating_sub((self.within_block() + bytes) % BLOCK_BYTES)
        }
    }

    /// `bytes` rounded up to the end of the last block.
    fn until_block_ends(&self, bytes: usize) -> usize {
        let within = self.within_block();
        let end = (within + bytes).next_multiple_of(BLOCK_BYTES);
        (end - within).min(self.left)
    }
}

impl Session {
    /// Begins a write, and does it if it can be done at once. When something is needed first, the
    /// request is still in the inbox.
    #[inline]
    pub(super) fn begin_write(
        &mut self,
        request: Request,
        header_bytes: usize,
    ) -> Result<Option<Need>, Gone> {
        let Work::Write { offset, length, durable } = request.work else {
            return Ok(None);
        };
        let whole = length as usize;
        let end = header_bytes + whole;
        let is_slow =
            self.slowness.is_slow(self.turn_ns) && self.in_flight_bytes + whole <= MAX_SLOW_BYTES;
        let is_pooled = whole <= PIECE_BYTES && (durable || is_slow);
        let is_uncopied = whole >= UNCOPIED_BYTES
            && !is_pooled
            && self.inbox.bytes().len() < end
            && self.has_uncopied_way();
        // The payload of the next one is to stay in the socket, too.
        self.inbox.is_frugal = is_uncopied;
        if is_uncopied || whole > PIECE_BYTES {
            self.inbox.used(header_bytes);
            self.taking = Some(Taking {
                ticket: request.ticket,
                offset,
                left: whole,
                durable,
                error: None,
                bytes: length,
                is_uncopied,
            });
            return Ok(None);
        }
        let Some(payload) = self.inbox.bytes().get(header_bytes..end) else {
            let need = self.count_inbox(end);
            return Ok(Some(need.unwrap_or(Need::bytes(end))));
        };
        if is_pooled {
            // What was counted for the inbox goes along.
            if self.inbox_bytes >= whole {
                self.inbox_bytes -= whole;
                self.in_flight_bytes += whole;
            } else if let Some(need) = self.reserve(whole) {
                return Ok(Some(need));
            }
            let payload = self.inbox.take(header_bytes, end);
            let ticket = request.ticket;
            let work = Work::Write { offset, length, durable };
            let request = Request { ticket, work };
            return self.defer(request, Some(payload), Vec::new()).map(|()| None);
        }
        let writing = begin(&self.member, offset, whole)?;
        let write = || write_under(&*self.disk, &writing, offset, payload);
        let result = self.slowness.write(self.turn_ns, write);
        drop(writing);
        self.inbox.used(end);
        self.wrote(request.ticket, length, result)?;
        Ok(None)
    }

    /// Whether what the socket has can go to the disk uncopied.
    fn has_uncopied_way(&mut self) -> bool {
        if !matches!(self.line, Line::Plain(_)) || !self.disk.takes_from_conduits() {
            return false;
        }
        self.conduit = self.take_conduit();
        self.conduit.is_some()
    }

    /// The conduit, if there is one or the system gives one.
    pub(super) fn take_conduit(&mut self) -> Option<Conduit> {
        if !self.had_conduit {
            self.had_conduit = true;
            self.conduit = Conduit::new();
        }
        self.conduit.take()
    }

    /// Has the conduit take payload from the socket. If that cannot be, the rest is copied, and
    /// nothing has come yet.
    pub(super) fn take_payload_in(&mut self, bytes: usize, wait: bool) -> io::Result<usize> {
        if let (Line::Plain(stream), Some(conduit)) = (&self.line, &mut self.conduit) {
            match conduit.receive(stream, bytes, wait) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                answer => return answer,
            }
        }
        // There is none to come: `had_conduit` stays.
        self.conduit = None;
        if let Some(taking) = &mut self.taking {
            taking.is_uncopied = false;
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Takes another piece of a large write; what is needed for that, unless it is whole.
    pub(super) fn take_more(&mut self, mut taking: Taking) -> Result<Option<Need>, Gone> {
        let piece = match self.next_piece(&taking) {
            Ok(piece) => piece,
            Err(need) => {
                self.taking = Some(taking);
                let first = match need {
                    Need::Client(ClientInput::Bytes(bytes)) => self.count_inbox(bytes),
                    _ => None,
                };
                return Ok(Some(first.unwrap_or(need)));
            }
        };
        if taking.error.is_none() {
            taking.error = self.write_piece(taking.offset, &piece)?.err();
        }
        let bytes = match piece {
            Piece::Received(bytes) => {
                self.inbox.used(bytes);
                bytes
            }
            Piece::Held { bytes, rest } => {
                if self.take_rest(rest, &mut taking.error) {
                    bytes
                } else {
                    bytes + rest
                }
            }
        };
        taking.is_uncopied &= taking.error.is_none();
        taking.left -= bytes;
        taking.offset += bytes as u64;
        if taking.left > 0 {
            let now_ns = now_ns();
            self.slowness.turn_took(now_ns - self.turn_ns, now_ns);
            self.taking = Some(taking);
            return Ok(None);
        }
        let Taking { ticket, durable, error, bytes, .. } = taking;
        match error {
            None if durable => {
                let work = Work::Write { offset: ticket.offset, length: bytes, durable };
                self.defer(Request { ticket, work }, None, Vec::new())?;
            }
            None => self.wrote(ticket, bytes, Ok(()))?,
            Some(error) => self.wrote(ticket, bytes, Err(error))?,
        }
        Ok(None)
    }

    /// What can be written now, or what is needed for that.
    fn next_piece(&self, taking: &Taking) -> Result<Piece, Need> {
        let have = self.inbox.bytes().len();
        let held = self.conduit.as_ref().map_or(0, Conduit::held_bytes);
        if taking.is_uncopied && held > 0 {
            let bytes = taking.whole_blocks(held);
            let rest = held - bytes;
            return Ok(Piece::Held { bytes, rest });
        }
        if taking.is_uncopied && have == 0 {
            return Err(Need::payload(taking.left));
        }
        let bytes = if taking.is_uncopied {
            taking.until_block_ends(have)
        } else {
            taking.until_block_ends(PIECE_BYTES - (BLOCK_BYTES - 1))
        };
        if have >= bytes { Ok(Piece::Received(bytes)) } else { Err(Need::bytes(bytes)) }
    }

    fn write_piece(&mut self, offset: u64, piece: &Piece) -> Result<io::Result<()>, Gone> {
        let (Piece::Received(bytes) | Piece::Held { bytes, .. }) = piece;
        let writing = begin(&self.member, offset, *bytes)?;
        Ok(match (piece, &mut self.conduit) {
            (Piece::Received(bytes), _) => {
                let payload = &self.inbox.bytes()[..*bytes];
                let write = || write_under(&*self.disk, &writing, offset, payload);
                self.slowness.write(self.turn_ns, write)
            }
            (Piece::Held { bytes, .. }, Some(conduit))
                if writing.as_ref().is_some_and(Writing::is_overtaken) =>
            {
                let taken = conduit.take(*bytes);
                taken.and_then(|payload| write_under(&*self.disk, &writing, offset, &payload))
            }
            (Piece::Held { bytes, .. }, Some(conduit)) if *bytes > 0 => {
                let write = || self.disk.write_from(conduit, offset, *bytes);
                self.slowness.write(self.turn_ns, write)
            }
            (Piece::Held { .. }, _) => Ok(()),
        })
    }

    /// Has the inbox take the beginning of a block that the conduit still holds. False when it is lost,
    /// because there is an error.
    fn take_rest(&mut self, rest: usize, error: &mut Option<io::Error>) -> bool {
        let taken = match (&mut self.conduit, &error) {
            (Some(conduit), None) if rest > 0 => conduit.take(rest),
            _ => Ok(Vec::new()),
        };
        match taken {
            Ok(taken) => self.inbox.begin_with(&taken),
            Err(why) => *error = Some(why),
        }
        if error.is_some() {
            // The next who needs one gets another.
            (self.conduit, self.had_conduit) = (None, false);
        }
        error.is_none()
    }

    #[inline]
    fn wrote(&mut self, ticket: Ticket, bytes: u32, result: io::Result<()>) -> Result<(), Gone> {
        self.added.writes += 1;
        self.added.at_once += 1;
        if bytes as usize >= LARGE_BYTES {
            self.held_bytes += bytes as usize;
        }
        match result {
            Ok(()) => {
                self.added.written_bytes += u64::from(bytes);
                self.reply(|replies, out| replies.done(ticket, out))
            }
            Err(error) => self.failed(ticket, &error),
        }
    }
}

/// Writes what no other connection has written later.
#[inline]
fn write_under(
    disk: &dyn Disk,
    writing: &Option<Writing<'_>>,
    offset: u64,
    payload: &[u8],
) -> io::Result<()> {
    match writing {
        Some(writing) if writing.is_overtaken() => {
            let work = Work::Write { offset, length: payload.len() as u32, durable: false };
            run_parts(disk, &work, Some(payload), writing)
        }
        _ => disk.write(offset, payload),
    }
}

/// Lets the other connections to the disk know of a write, until what this gives is dropped.
#[inline]
fn begin(member: &Option<Member>, offset: u64, bytes: usize) -> Result<Option<Writing<'_>>, Gone> {
    let begun = member.as_ref().map(|member| member.begin(offset..offset + bytes as u64));
    begun.transpose().map_err(|Abandoned| Gone::Closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_where_blocks_do_or_the_write() {
        let taking = |offset, left| Taking {
            ticket: Ticket { cookie: 0, offset },
            offset,
            left,
            durable: false,
            error: None,
            bytes: 0,
            is_uncopied: true,
        };
        // On both sides of what 32 bits hold, too.
        for base in [0, (4 << 30) - 8192, 4 << 30, 1 << 40] {
            let one = taking(base + 100, 100_000);
            assert_eq!(one.whole_blocks(3995), 0);
            assert_eq!(one.whole_blocks(3996), 3996);
            assert_eq!(one.whole_blocks(20_000), 16_284);
            assert_eq!(one.whole_blocks(100_000), 100_000);
            assert_eq!(one.until_block_ends(1), 3996);
            assert_eq!(one.until_block_ends(3996), 3996);
            assert_eq!(one.until_block_ends(3997), 8092);
            assert_eq!(one.until_block_ends(99_999), 100_000);
            let most = one.until_block_ends(PIECE_BYTES - 4095);
            assert_eq!(most, 100_000);
        }
        let aligned = taking(8192, 3 << 20);
        assert_eq!(aligned.until_block_ends(PIECE_BYTES - 4095), PIECE_BYTES);
    }
}
