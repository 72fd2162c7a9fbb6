//! A client: it agrees with a server on an export, and keeps requests in flight.

mod error;
mod flight;
mod handshake;
mod inquiry;

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::time::Duration;

pub(crate) use error::wants_certificate;
pub use error::{HandshakeError, lost, refused};
pub use flight::{Answer, Due, Flight, FlightError, Header, MAX_SLOTS, Replies};
pub use handshake::{Extras, Handshake, Offer, Step, Style, Wish};
pub use inquiry::{Inquiry, Learnt, Listing, MAX_LISTED};

use rubus_host::clock::monotonic_ns;
use rubus_host::net::min_rate::MinRate;

use crate::transport::{Awaited, Transport};
use crate::wire::{Command, CommandFlags, ExtendedRequest, Extent, Request};

/// Bytes that are received at once besides data that go straight to their place. Copying a small
/// block costs less than a system call for it.
const STAGE_BYTES: usize = 64 << 10;
/// Maximum number of buffers in one vectored send.
const MAX_PARTS: usize = 64;

/// Why a client can do no more with its server. The sentences say what to do where that is known.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The handshake failed.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The server broke the protocol.
    #[error(transparent)]
    Flight(#[from] FlightError),
    /// TLS could not be set up.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The server is gone.
    #[error("the server closed the connection{0}")]
    Closed(&'static str),
    /// The server is silent.
    #[error("the server did not answer within {0} s")]
    Silent(u64),
    /// The kernel gave the connection up, because nothing of the other machine came any more.
    #[error(
        "nothing has come from the server's machine for {0} s: it is off or stuck, or the network between is cut"
    )]
    Unreachable(u64),
    /// The connection is broken.
    #[error("the connection to the server broke: {0}")]
    Broken(#[from] io::Error),
}

/// Goes through the handshake on a fresh connection; the server has `most` for each answer. When
/// the server is to be spoken to encrypted, `encrypt` makes the transport of that.
///
/// # Errors
/// In words, when there is no agreement.
pub fn agree<T: Transport>(
    transport: T,
    wish: Wish,
    most: Duration,
    encrypt: impl FnOnce(T) -> Result<T, ClientError>,
) -> Result<(T, Offer), ClientError> {
    agree_with(transport, wish, Extras::default(), most, encrypt)
}

/// [`agree`] with extensions, which the server need not support.
///
/// # Errors
/// If the handshake fails, TLS cannot be set up, or the server exceeds `most`.
pub fn agree_with<T: Transport>(
    mut transport: T,
    wish: Wish,
    extras: Extras,
    most: Duration,
    encrypt: impl FnOnce(T) -> Result<T, ClientError>,
) -> Result<(T, Offer), ClientError> {
    let mut handshake = Handshake::with(wish, extras)?;
    let mut encrypt = Some(encrypt);
    let limit = Limit::of(most);
    loop {
        send_all(&mut transport, &handshake.to_send(), &limit)?;
        match handshake.step() {
            Step::Read(bytes) => {
                let bytes = read_all(&mut transport, bytes, &limit)?;
                handshake.received(&bytes)?;
            }
            Step::StartTls => {
                // The machine asks for it once.
                if let Some(encrypt) = encrypt.take() {
                    transport = encrypt(transport)?;
                }
                handshake.tls_started();
            }
            Step::Done => {
                let offer = handshake.into_offer().ok_or(HandshakeError::NoSize)?;
                return Ok((transport, offer));
            }
        }
    }
}

/// A whole handshake, or all answers to a question, may take this many times as long as one answer.
const ANSWERS: u32 = 12;

/// How long a server may take in a handshake: for each answer, and for all together.
pub(crate) struct Limit {
    most: Duration,
    end_ns: u64,
}

impl Limit {
    /// From now on, with `most` for each answer.
    pub(crate) fn of(most: Duration) -> Limit {
        Limit { most, end_ns: monotonic_ns() + (most * ANSWERS).as_nanos() as u64 }
    }

    /// Waits for the server.
    ///
    /// # Errors
    /// When it takes too long.
    pub(crate) fn wait(
        &self,
        transport: &mut impl Transport,
        or_room: bool,
    ) -> Result<(), ClientError> {
        if monotonic_ns() >= self.end_ns {
            return Err(HandshakeError::TooSlow((self.most * ANSWERS).as_secs()).into());
        }
        if transport.wait(or_room, Some(self.most))? {
            Ok(())
        } else {
            Err(ClientError::Silent(self.most.as_secs()))
        }
    }
}

fn send_all(
    transport: &mut impl Transport,
    mut bytes: &[u8],
    limit: &Limit,
) -> Result<(), ClientError> {
    while !bytes.is_empty() {
        match transport.send(&[IoSlice::new(bytes)]) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                limit.wait(transport, true)?;
            }
            Err(error) => return Err(broken(error, " in the handshake", limit.most)),
        }
    }
    Ok(())
}

fn read_all(
    transport: &mut impl Transport,
    bytes: usize,
    limit: &Limit,
) -> Result<Vec<u8>, ClientError> {
    let mut memory = vec![0; bytes];
    let mut got = 0;
    while got < bytes {
        match transport.receive(&mut [IoSliceMut::new(&mut memory[got..])], false) {
            Ok(0) => {
                return Err(ClientError::Closed(
                    " in the handshake; it may refuse this address, or have no such export",
                ));
            }
            Ok(received) => got += received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                limit.wait(transport, false)?;
            }
            Err(error) => return Err(broken(error, " in the handshake", limit.most)),
        }
    }
    Ok(memory)
}

/// A connection that is reset was closed, too. The kernel notices silence after `silence`.
fn broken(error: io::Error, when: &'static str, silence: Duration) -> ClientError {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable => {
            ClientError::Unreachable(silence.as_secs())
        }
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ClientError::Closed(when),
        // A server may look at this client's certificate after both have come to terms.
        io::ErrorKind::InvalidData if error::is_about_our_certificate(&error) => {
            ClientError::Tls(wants_certificate())
        }
        _ => ClientError::Broken(error),
    }
}

/// Headers that have been sent are dropped once the buffer exceeds this.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// A piece of what is to be sent: of the client's own headers, or of the caller's memory.
#[derive(Clone, Debug)]
enum Piece {
    Header(Range<usize>),
    Data(Range<usize>),
}

/// A client on one export, with requests in flight.
#[derive(Debug)]
pub struct Client<T> {
    transport: T,
    flight: Flight,
    /// Headers that are to be sent, and some that have been.
    headers: Vec<u8>,
    /// What is to be sent, from `unsent` on.
    pieces: Vec<Piece>,
    unsent: usize,
    stage: Box<[u8]>,
    staged: usize,
    patience: Patience,
    /// How fast an answer comes that has begun.
    rate: MinRate,
}

/// How long a client waits in vain before it gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For an answer of the server, while requests are in flight. Its machine may be alive and its
    /// disk slow.
    pub server: Duration,
    /// For any sign of life of the server's machine, which the kernel watches over TCP.
    pub machine: Duration,
}

impl Patience {
    /// Suits a disk. A machine that is silent for 45 s is not just busy, since its kernel answers;
    /// a disk that writes back a full page cache takes minutes.
    pub const OF_A_DISK: Patience =
        Patience { server: Duration::from_secs(600), machine: Duration::from_secs(45) };
}

/// What a turn of [`Client::turn`] has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Something was received.
    pub has_received: bool,
    /// Nothing waits to be sent.
    pub all_sent: bool,
}

impl<T: Transport> Client<T> {
    /// A client after the handshake.
    pub fn new(transport: T, offer: &Offer) -> Self {
        let mut client = Client {
            transport,
            flight: Flight::new(offer.replies(), offer.allocation),
            headers: Vec::new(),
            pieces: Vec::new(),
            unsent: 0,
            stage: vec![0; STAGE_BYTES].into_boxed_slice(),
            staged: 0,
            patience: Patience::OF_A_DISK,
            rate: MinRate::over(Patience::OF_A_DISK.server),
        };
        client.set_patience(Patience::OF_A_DISK);
        client
    }

    /// Sets the timeouts of [`Client::exchange`]; the default is [`Patience::OF_A_DISK`]. The
    /// kernel's keepalive is set by the code that connects.
    pub fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
        self.rate = MinRate::over(patience.server);
        // A socket that is broken says so when it is used.
        let _ = self.transport.set_patience(Some(patience.server));
    }

    /// How long it waits in vain.
    pub fn patience(&self) -> Patience {
        self.patience
    }

    /// What the block status told that was in flight in this slot; see [`Flight::take_extents`].
    pub fn take_extents(&mut self, slot: u32) -> Vec<Extent> {
        self.flight.take_extents(slot)
    }

    /// The way to the server.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// Requests that have not been answered.
    pub fn in_flight(&self) -> usize {
        self.flight.in_flight()
    }

    /// What the server said about the last error, in its own words.
    pub fn words(&self) -> &str {
        self.flight.words()
    }

    /// Puts the requests into flight and waits until at least one that is in flight has been
    /// answered; appends what has been. `memory` is the same every time: writes are taken from it and
    /// reads put into it at any moment in which they are in flight.
    ///
    /// # Errors
    /// When the connection is of no more use, or nothing has come for as long as the [`Patience`].
    pub fn exchange(
        &mut self,
        due: &[Due],
        memory: &mut [u8],
        answers: &mut Vec<Answer>,
    ) -> Result<(), ClientError> {
        for request in due {
            self.queue(request, memory.len())?;
        }
        let before = answers.len();
        while answers.len() == before && self.flight.in_flight() > 0 {
            let all_sent = self.send(memory)?;
            if self.receive(memory, answers, all_sent)? {
                continue;
            }
            // When all was sent, receiving has waited.
            let most = self.patience.server;
            if all_sent || !self.transport.wait(true, Some(most))? {
                return Err(ClientError::Silent(most.as_secs()));
            }
        }
        Ok(())
    }

    /// Queues a request, which the next turn sends.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn queue(&mut self, due: &Due, memory_bytes: usize) -> Result<(), ClientError> {
        let header = self.flight.begin(due, memory_bytes)?;
        self.queue_header(&header);
        if due.command == Command::Write {
            let end = due.memory_at + due.length as usize;
            self.pieces.push(Piece::Data(due.memory_at..end));
        }
        Ok(())
    }

    /// Queues a block status of `length` bytes from `offset` on; see [`Client::take_extents`].
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn queue_status(&mut self, slot: u32, offset: u64, length: u64) -> Result<(), ClientError> {
        let header = self.flight.begin_status(slot, offset, length)?;
        self.queue_header(&header);
        Ok(())
    }

    /// Sends what there is room for and takes what is there, without waiting; appends what has been
    /// answered. `memory` is the same every time, as with [`Client::exchange`].
    ///
    /// # Errors
    /// When the connection is of no more use.
    pub fn turn(
        &mut self,
        memory: &mut [u8],
        answers: &mut Vec<Answer>,
    ) -> Result<Turn, ClientError> {
        let all_sent = self.send(memory)?;
        let has_received = self.receive(memory, answers, false)?;
        Ok(Turn { has_received, all_sent })
    }

    /// What has to be waited for before the next turn moves something; nothing when it does now.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn awaited(&mut self, or_room: bool) -> Result<Option<Awaited<'_>>, ClientError> {
        Ok(self.transport.awaited(or_room)?)
    }

    /// [`Client::exchange`], in which the server may be silent for `most` at a time.
    ///
    /// # Errors
    /// As for [`exchange`](Client::exchange), and [`ClientError::Silent`] when the server exceeds
    /// `most`.
    pub fn exchange_within(
        &mut self,
        due: &[Due],
        memory: &mut [u8],
        answers: &mut Vec<Answer>,
        most: Duration,
    ) -> Result<(), ClientError> {
        for request in due {
            self.queue(request, memory.len())?;
        }
        let before = answers.len();
        while answers.len() == before && self.flight.in_flight() > 0 {
            let all_sent = self.send(memory)?;
            if !self.receive(memory, answers, false)?
                && !self.transport.wait(!all_sent, Some(most))?
            {
                return Err(ClientError::Silent(most.as_secs()));
            }
        }
        Ok(())
    }

    /// Like [`exchange`](Client::exchange), but asks `is_given_up` four times a second, with the length of the silence
    /// so far.
    ///
    /// # Errors
    /// As for [`exchange`](Client::exchange), and [`ClientError::Silent`] when the server is given up.
    pub fn exchange_unless(
        &mut self,
        due: &[Due],
        memory: &mut [u8],
        answers: &mut Vec<Answer>,
        is_given_up: &dyn Fn(Duration) -> bool,
    ) -> Result<(), ClientError> {
        const LOOK: Duration = Duration::from_millis(250);
        for request in due {
            self.queue(request, memory.len())?;
        }
        let (before, mut silent) = (answers.len(), Duration::ZERO);
        while answers.len() == before && self.flight.in_flight() > 0 {
            let all_sent = self.send(memory)?;
            if self.receive(memory, answers, false)?
                || self.transport.wait(!all_sent, Some(LOOK))?
            {
                silent = Duration::ZERO;
                continue;
            }
            silent += LOOK;
            if silent >= self.patience.server || is_given_up(silent) {
                return Err(ClientError::Silent(silent.as_secs()));
            }
        }
        Ok(())
    }

    fn queue_header(&mut self, header: &[u8]) {
        if self.headers.len() > MAX_HEADER_BYTES {
            self.forget_sent();
        }
        let start = self.headers.len();
        self.headers.extend_from_slice(header);
        // Headers behind one another are one piece.
        match self.pieces.last_mut() {
            Some(Piece::Header(range)) if range.end == start => range.end += header.len(),
            _ => self.pieces.push(Piece::Header(start..start + header.len())),
        }
    }

    /// Headers of requests that have been sent are kept until nothing is left to be sent, which may
    /// never be so; this makes room earlier.
    fn forget_sent(&mut self) {
        self.pieces.drain(..self.unsent);
        self.unsent = 0;
        let first = self.pieces.iter().find_map(|piece| match piece {
            Piece::Header(range) => Some(range.start),
            Piece::Data(_) => None,
        });
        let sent = first.unwrap_or(self.headers.len());
        self.headers.drain(..sent);
        for piece in &mut self.pieces {
            if let Piece::Header(range) = piece {
                *range = range.start - sent..range.end - sent;
            }
        }
    }

    /// Sends what there is room for; true when nothing is left.
    fn send(&mut self, memory: &[u8]) -> Result<bool, ClientError> {
        while self.unsent < self.pieces.len() {
            let mut parts = [IoSlice::new(&[]); MAX_PARTS];
            let pieces = &self.pieces[self.unsent..];
            let count = pieces.len().min(MAX_PARTS);
            for (part, piece) in parts.iter_mut().zip(pieces) {
                *part = IoSlice::new(match piece {
                    Piece::Header(range) => &self.headers[range.clone()],
                    Piece::Data(range) => &memory[range.clone()],
                });
            }
            match self.transport.send(&parts[..count]) {
                Ok(sent) => self.advance(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(broken(error, "", self.patience.machine)),
            }
        }
        self.pieces.clear();
        self.headers.clear();
        self.unsent = 0;
        Ok(true)
    }

    fn advance(&mut self, mut sent: usize) {
        for piece in &mut self.pieces[self.unsent..] {
            let (Piece::Header(range) | Piece::Data(range)) = piece;
            let now = sent.min(range.len());
            range.start += now;
            sent -= now;
            if range.start < range.end {
                return;
            }
            self.unsent += 1;
        }
    }

    /// Takes what has come; false when nothing has and nothing was waited for.
    fn receive(
        &mut self,
        memory: &mut [u8],
        answers: &mut Vec<Answer>,
        wait: bool,
    ) -> Result<bool, ClientError> {
        let (before, asked) = (answers.len(), self.flight.asked_bytes());
        let direct = self.flight.wanted().unwrap_or(0..0);
        let direct_bytes = direct.len();
        let stage = &mut self.stage[self.staged..];
        let received = if direct_bytes > 0 {
            let mut parts = [IoSliceMut::new(&mut memory[direct]), IoSliceMut::new(stage)];
            self.transport.receive(&mut parts, wait)
        } else {
            self.transport.receive(&mut [IoSliceMut::new(stage)], wait)
        };
        let received = match received {
            Ok(0) => return Err(ClientError::Closed("")),
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(broken(error, "", self.patience.machine)),
        };
        let placed = received.min(direct_bytes);
        if placed > 0 {
            self.flight.filled(placed, answers)?;
        }
        let end = self.staged + received - placed;
        let used = self.flight.receive(&self.stage[..end], memory, answers)?;
        self.stage.copy_within(used..end, 0);
        self.staged = end - used;
        if answers.len() > before {
            self.rate.reset();
            return Ok(true);
        }
        // Headers and words without end are no answer.
        let came = (self.flight.asked_bytes() - asked) as usize;
        if self.rate.is_too_slow(came, monotonic_ns()) {
            Err(ClientError::Silent(self.patience.server.as_secs()))
        } else {
            Ok(true)
        }
    }

    /// Says goodbye, so that the server does not report a lost client.
    pub fn disconnect(&mut self) {
        if !self.pieces.is_empty() {
            return;
        }
        let (flags, command) = (CommandFlags::NONE, Command::Disconnect);
        let (cookie, offset) = (0, 0);
        // If this fails, the server is gone already.
        let _ = match self.flight.replies() {
            Replies::Extended => {
                let goodbye = ExtendedRequest { flags, command, cookie, offset, length: 0 };
                self.transport.send(&[IoSlice::new(&goodbye.to_bytes())])
            }
            Replies::Simple | Replies::Structured => {
                let goodbye = Request { flags, command, cookie, offset, length: 0 };
                self.transport.send(&[IoSlice::new(&goodbye.to_bytes())])
            }
        };
    }
}
