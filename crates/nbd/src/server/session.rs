//! One client after the handshake: the loop in which requests become replies.
//!
//! A turn receives whatever has come, answers everything that is whole, and sends all answers at
//! once. What is in memory is read at once, and writes go into memory at once; what is large goes past
//! the program's own memory where it can. Only what has to wait for a device goes to the pool: cold
//! reads, flushes, durable writes, zeros, and for a while all writes, when one had to wait because
//! memory is full of what the device has not yet taken. A client that has sent nothing for a while gives
//! its thread back.
//!
//! Memory is bounded. What one turn answers is sent in batches; what is in flight in the pool has a
//! limit for each client and one for all, at which nothing more is received; and a client that does
//! not read its answers is not read either, and is given up after a minute.

mod leaving;
mod reading;
mod receiving;
mod writing;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rubus_host::net::min_rate::MinRate;
use rubus_host::net::splice::Conduit;

use self::reading::{HoleHunt, Solitude, Spare};
use self::writing::Taking;
use super::disk::{Disk, code_of};
use super::fence::Hold;
use super::line::{Inbox, Line, Outbox, PATIENCE, UNCOUNTED_BYTES};
use super::orphans::Member;
use super::pool::{Budget, Done, Job, Outcome, Pool, RequestQueue, now_ns};
use super::shares::{Account, Shares};
use super::slowness::Slowness;
use super::tally::{Added, Tally};
use super::transmission::{Parsed, Refusal, Replies, Request, Rules, Ticket, Work};
use crate::wire::Malformed;

/// A read that is larger, or a write, is not one piece of memory.
const PIECE_BYTES: usize = 1 << 20;
/// A read that is as large is not copied, if what it reads is in memory, nor a write on its way to the disk.
const UNCOPIED_BYTES: usize = 64 << 10;
/// Replies to large writes are held until the writes held together have this many bytes.
const MAX_HELD_BYTES: usize = 1 << 20;
/// Maximum number of a client's requests in the pool at once, and of their bytes.
const MAX_IN_FLIGHT: usize = 128;
const MAX_IN_FLIGHT_BYTES: usize = 64 << 20;
/// A client that has waited this long for memory no longer waits for slow clients.
const STARVING: Duration = Duration::from_millis(500);

/// What all clients share.
pub(super) struct SharedState {
    /// Memory for what is in flight.
    pub shares: Shares,
    /// Bytes that clients may keep for reads to come.
    pub spare: Budget,
    /// No new request is done any more.
    pub stops: AtomicBool,
}

/// What a client is served.
pub(super) struct Served {
    pub disk: Arc<dyn Disk>,
    /// Every write is durable before it is answered.
    pub sync: bool,
    /// Threads that wait for the disk.
    pub pool: Arc<Pool>,
    /// Of a client that says which connection it is.
    pub hold: Option<Hold>,
    /// Of a disk that is written.
    pub member: Option<Member>,
}

/// Why a client is gone.
#[derive(Debug, thiserror::Error)]
pub enum Gone {
    /// It said so.
    #[error("the client is done")]
    Done,
    /// It closed the connection without a word, which many do.
    #[error("the client closed the connection")]
    Closed,
    /// It closed the connection in the middle of a request.
    #[error("the client closed the connection in the middle of a request")]
    Cut,
    /// It takes no answers, or never ends its request.
    #[error("the client took no answer or did not finish a request for {} s", PATIENCE.as_secs())]
    Stuck,
    /// It held memory that others waited for.
    #[error("the client took its answers too slowly while other clients waited for memory")]
    Slow,
    /// It broke the protocol.
    #[error("the client breaks the protocol: {0}")]
    Malformed(Malformed),
    /// The connection is broken.
    #[error("the connection broke: {0}")]
    Broken(io::Error),
    /// Another connection has taken its place.
    #[error("the client has replaced this connection with a new one")]
    Replaced,
    /// The server ends.
    #[error("the server is stopping")]
    Stopped,
}

/// How a session left its thread.
pub(super) enum Left {
    /// For the moment: there is nothing to do.
    Idle(Box<Session>),
    /// For good: the session has ended.
    Gone(Gone),
}

/// The session of one client, after the handshake.
pub(super) struct Session {
    line: Line,
    rules: Rules,
    disk: Arc<dyn Disk>,
    /// Every write, trim and zeroing is durable before it is answered.
    sync: bool,
    pool: Arc<Pool>,
    shared: Arc<SharedState>,
    account: Arc<Account>,
    tally: Arc<Tally>,
    inbox: Inbox,
    outbox: Outbox,
    queue: Option<Arc<RequestQueue>>,
    in_flight: usize,
    in_flight_bytes: usize,
    /// Number of bytes from the client still to skip.
    skip: u64,
    taking: Option<Taking>,
    /// Nothing more is received.
    ends: Option<Gone>,
    scratch: Vec<u8>,
    done: Vec<Done>,
    spare: Spare,
    solitude: Solitude,
    /// For large reads and writes, if the system gave one. Between them it is empty.
    conduit: Option<Conduit>,
    had_conduit: bool,
    added: Added,
    /// When the bytes of this turn were there.
    turn_ns: u64,
    slowness: Slowness,
    /// Checks that the client sends the rest of a request fast enough.
    rate: MinRate,
    /// Memory of the inbox that is taken from what all share.
    inbox_bytes: usize,
    /// What of the read that is begun is still to be sent.
    left_of_read: Option<(u64, usize)>,
    hole_hunt: HoleHunt,
    /// There may be holes, and the client can be told of them.
    tells_holes: bool,
    /// Bytes of large writes that are done and whose answers are still here.
    held_bytes: usize,
    /// Since when it has waited for memory.
    starving_ns: Option<u64>,
    /// Given up when nothing of it is under way any more.
    hold: Option<Hold>,
    /// Among the connections to a disk that is written.
    member: Option<Member>,
}

/// What a turn needs to go on.
enum Need {
    /// Something from the client.
    Client(ClientInput),
    /// Something of what is in flight has to be done first.
    Room,
    /// Memory that other clients have.
    Memory,
    /// The end of requests whose clients are gone.
    Orphans(Work),
    /// Nothing: it ends.
    End,
}

/// What a turn waits for from the client.
#[derive(Clone, Copy)]
enum ClientInput {
    /// This many bytes at the front of the inbox, which has fewer.
    Bytes(usize),
    /// At most this many bytes in the conduit, which is empty; the inbox is, too.
    Payload(usize),
}

impl Need {
    fn bytes(bytes: usize) -> Need {
        Need::Client(ClientInput::Bytes(bytes))
    }

    fn payload(bytes: usize) -> Need {
        Need::Client(ClientInput::Payload(bytes))
    }

    fn wanted(&self) -> Option<ClientInput> {
        match self {
            Need::Client(wanted) => Some(*wanted),
            Need::Room | Need::Memory | Need::Orphans(_) | Need::End => None,
        }
    }
}

impl Session {
    /// A client that has agreed to these rules; `begun` are bytes that came behind the handshake.
    pub fn new(
        line: Line,
        rules: Rules,
        served: Served,
        begun: &[u8],
        shared: Arc<SharedState>,
        tally: Arc<Tally>,
    ) -> Session {
        let Served { disk, sync, pool, hold, member } = served;
        Session {
            tells_holes: rules.replies != Replies::Simple && disk.abilities().knows_extents,
            account: shared.shares.open(Arc::clone(line.stream())),
            line,
            rules,
            disk,
            sync,
            pool,
            shared,
            tally,
            starving_ns: None,
            inbox: Inbox::new(begun),
            outbox: Outbox::default(),
            queue: None,
            in_flight: 0,
            in_flight_bytes: 0,
            skip: 0,
            taking: None,
            ends: None,
            scratch: Vec::new(),
            done: Vec::new(),
            spare: Spare::default(),
            solitude: Solitude::default(),
            conduit: None,
            had_conduit: false,
            added: Added::default(),
            turn_ns: 0,
            slowness: Slowness::default(),
            rate: MinRate::default(),
            inbox_bytes: 0,
            left_of_read: None,
            hole_hunt: HoleHunt::default(),
            held_bytes: 0,
            hold,
            member,
        }
    }

    /// The client's connection.
    pub fn line(&self) -> &Line {
        &self.line
    }

    /// Whether it has something to do without a byte from the client.
    pub fn has_work(&mut self) -> bool {
        !self.inbox.bytes().is_empty() || self.line.has_more()
    }

    /// Serves the client until it is idle or gone.
    pub fn serve(mut self: Box<Self>) -> Left {
        self.turn_ns = now_ns();
        loop {
            match self.turn() {
                Ok(true) => {}
                Ok(false) => {
                    self.inbox.shrink();
                    self.release_inbox();
                    self.outbox.shrink();
                    self.queue = None;
                    self.spare.clear(&self.shared.spare);
                    (self.conduit, self.had_conduit) = (None, false);
                    self.done = Vec::new();
                    return Left::Idle(self);
                }
                Err(gone) => {
                    self.wind_up();
                    return Left::Gone(match gone {
                        _ if self.is_replaced() => Gone::Replaced,
                        _ if self.account.is_evicted() => Gone::Slow,
                        gone => gone,
                    });
                }
            }
        }
    }

    /// Waits for requests in flight whose replies no one expects: they hold memory and the disk.
    fn wind_up(&mut self) {
        self.tally.add(&mut self.added);
        if self.is_replaced() {
            self.abandon();
        }
        if let Some(member) = self.member.as_ref().filter(|_| !self.stops()) {
            member.broke();
        }
        while let (Some(queue), true) = (&self.queue, self.in_flight > 0) {
            queue.collect(&mut self.done);
            self.in_flight -= self.done.len().min(self.in_flight);
            self.done.clear();
            if self.in_flight > 0 && queue.wait(None, PATIENCE).is_err() {
                // What is under way is waited for all the same: a client that comes again relies on it.
                rubus_host::clock::sleep(Duration::from_millis(20));
            }
        }
        self.shared.shares.give_back(&self.account, self.in_flight_bytes);
        self.in_flight_bytes = 0;
        self.shared.shares.give_back(&self.account, self.inbox_bytes);
        self.inbox_bytes = 0;
        self.spare.clear(&self.shared.spare);
    }

    /// Whether another connection has taken this one's place.
    #[inline]
    fn is_replaced(&self) -> bool {
        self.hold.as_ref().is_some_and(Hold::is_over)
    }

    #[inline]
    fn stops(&self) -> bool {
        self.shared.stops.load(Ordering::Relaxed)
    }

    /// Drops queued requests that have not begun; their replies would not be read.
    fn abandon(&mut self) {
        let abandoned = self.queue.as_ref().map_or(0, |queue| queue.abandon());
        self.in_flight -= abandoned.min(self.in_flight);
    }

    /// One turn; false when there is nothing to do for a while.
    fn turn(&mut self) -> Result<bool, Gone> {
        let need = self.answer()?;
        self.collect()?;
        if self.gathers(&need)? {
            return Ok(true);
        }
        self.outbox.send(&mut self.line).map_err(sending)?;
        self.held_bytes = 0;
        self.count();
        self.receive(need)
    }

    /// Whether more of a client that writes much has come already, so that its answers can wait for the next: one by one they would wake
    /// it for each, while it has a queue to send.
    fn gathers(&mut self, need: &Need) -> Result<bool, Gone> {
        let Some(wanted) = need.wanted() else {
            return Ok(false);
        };
        if self.held_bytes == 0 || self.held_bytes >= MAX_HELD_BYTES {
            return Ok(false);
        }
        let comes = self.receive_ready(wanted)?;
        if comes && self.ends.is_none() {
            self.count();
            self.turn_ns = now_ns();
        }
        Ok(comes)
    }

    /// Takes what has come already; false when nothing has.
    fn receive_ready(&mut self, wanted: ClientInput) -> Result<bool, Gone> {
        match self.take_in(wanted, false) {
            Ok(0) => {
                self.ended();
                Ok(true)
            }
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(receiving(error)),
        }
    }

    /// Receives something of what is wanted; 0 when the client has closed.
    #[inline]
    fn take_in(&mut self, wanted: ClientInput, wait: bool) -> io::Result<usize> {
        match wanted {
            ClientInput::Bytes(bytes) => {
                let header_bytes = self.rules.header_bytes();
                self.inbox.receive(&mut self.line, bytes, header_bytes, wait)
            }
            ClientInput::Payload(bytes) => self.take_payload_in(bytes, wait),
        }
    }

    /// Makes what this turn has answered known.
    #[inline]
    fn count(&mut self) {
        let at_once = self.added.at_once;
        if at_once > 0 {
            let now_ns = now_ns();
            let took_ns = now_ns - self.turn_ns;
            self.tally.took(at_once, took_ns);
            if self.added.writes > 0 {
                self.slowness.turn_took(took_ns, now_ns);
            }
        }
        self.tally.add(&mut self.added);
    }

    /// Answers everything that is whole.
    #[inline]
    fn answer(&mut self) -> Result<Need, Gone> {
        loop {
            if self.member.as_ref().is_some_and(Member::is_asked) {
                self.say_how_it_ends();
            }
            if self.ends.is_some() {
                return Ok(Need::End);
            }
            // Also in the middle of a write: the client sends it again over the other connection.
            if self.is_replaced() {
                return Err(Gone::Replaced);
            }
            if self.skip > 0 {
                let now = self.skip.min(self.inbox.bytes().len() as u64);
                self.inbox.used(now as usize);
                self.skip -= now;
                if self.skip > 0 {
                    return Ok(Need::bytes(self.skip.min(64 << 10) as usize));
                }
            }
            if let Some(taking) = self.taking.take() {
                if let Some(need) = self.take_more(taking)? {
                    return Ok(need);
                }
                continue;
            }
            if self.in_flight >= MAX_IN_FLIGHT || self.in_flight_bytes >= MAX_IN_FLIGHT_BYTES {
                return Ok(Need::Room);
            }
            match self.rules.parse(self.inbox.bytes()) {
                Parsed::Need(bytes) => return Ok(Need::bytes(bytes)),
                Parsed::Request { request, header_bytes } => {
                    if let Some(need) = self.begin(request, header_bytes)? {
                        return Ok(need);
                    }
                    self.rate.reset();
                }
                Parsed::Refuse { refusal, header_bytes, skip_bytes } => {
                    self.inbox.used(header_bytes);
                    self.skip = skip_bytes;
                    self.refuse(refusal)?;
                    self.rate.reset();
                }
                Parsed::Disconnect => self.ends = Some(Gone::Done),
                Parsed::Fatal(why) => self.ends = Some(Gone::Malformed(why)),
            }
        }
    }

    /// Begins a request, and does it if it can be done at once. When something is needed first, the
    /// request is still in the inbox.
    #[inline]
    fn begin(&mut self, mut request: Request, header_bytes: usize) -> Result<Option<Need>, Gone> {
        if self.stops() {
            // No answer: a client asks again over its next connection, but takes an error for one of the disk, the kernel's even ESHUTDOWN.
            self.ends = Some(Gone::Stopped);
            return Ok(None);
        }
        if let Some(member) = &mut self.member {
            if member.has_to_wait(&request.work, self.turn_ns) {
                return Ok(Some(Need::Orphans(request.work)));
            }
        }
        self.inbox.is_frugal = false;
        if self.sync {
            request.work = request.work.made_durable();
        }
        if let Work::Trim { .. } | Work::Zero { .. } = request.work {
            self.hole_hunt.forget_data();
        }
        match request.work {
            Work::Read { .. } => return self.begin_read(request, header_bytes),
            Work::Write { .. } => return self.begin_write(request, header_bytes),
            Work::Nothing => {
                self.inbox.used(header_bytes);
                self.added.others += 1;
                self.added.at_once += 1;
                self.reply(|replies, out| replies.done(request.ticket, out))?;
            }
            Work::Flush
            | Work::Trim { .. }
            | Work::Zero { .. }
            | Work::Prefetch { .. }
            | Work::Extents { .. } => {
                self.inbox.used(header_bytes);
                self.defer(request, None, Vec::new())?;
            }
        }
        Ok(None)
    }

    /// Appends a reply that has no data.
    #[inline]
    fn reply(&mut self, write: impl FnOnce(Replies, &mut Vec<u8>)) -> Result<(), Gone> {
        self.scratch.clear();
        write(self.rules.replies, &mut self.scratch);
        self.outbox.append(&self.scratch, &mut self.line).map_err(sending)
    }

    fn failed(&mut self, ticket: Ticket, error: &io::Error) -> Result<(), Gone> {
        self.added.errors += 1;
        let words = error.to_string();
        self.reply(|replies, out| replies.failed(ticket, code_of(error), &words, out))
    }

    fn refuse(&mut self, refusal: Refusal) -> Result<(), Gone> {
        let Refusal { ticket, error, words } = refusal;
        self.added.others += 1;
        self.added.errors += 1;
        self.added.at_once += 1;
        self.reply(|replies, out| replies.failed(ticket, error, words, out))
    }

    /// Reserves memory for something that goes to the pool; what is needed when there is none.
    fn reserve(&mut self, bytes: usize) -> Option<Need> {
        if self.shared.shares.take(&self.account, bytes) {
            self.in_flight_bytes += bytes;
            self.starving_ns = None;
            return None;
        }
        Some(match self.in_flight {
            0 => Need::Memory,
            _ => Need::Room,
        })
    }

    /// Counts the memory that an inbox of `bytes` bytes needs; returns what to wait for when there is
    /// none.
    fn count_inbox(&mut self, bytes: usize) -> Option<Need> {
        let more = bytes.saturating_sub(self.inbox_bytes);
        if bytes <= UNCOUNTED_BYTES || more == 0 {
            return None;
        }
        if self.shared.shares.take(&self.account, more) {
            self.inbox_bytes += more;
            self.starving_ns = None;
            return None;
        }
        Some(match self.in_flight {
            0 => Need::Memory,
            _ => Need::Room,
        })
    }

    /// Gives memory of the inbox back that it does not need.
    fn release_inbox(&mut self) {
        if self.inbox_bytes > 0 {
            self.inbox.shrink_to_uncounted();
            if self.inbox.is_uncounted() {
                self.shared.shares.give_back(&self.account, self.inbox_bytes);
                self.inbox_bytes = 0;
            }
        }
    }

    fn defer(
        &mut self,
        request: Request,
        payload: Option<Vec<u8>>,
        memory: Vec<u8>,
    ) -> Result<(), Gone> {
        let queue = match &self.queue {
            Some(queue) => queue,
            None => self.queue.insert(RequestQueue::new().map_err(Gone::Broken)?),
        };
        let job = Job {
            disk: Arc::clone(&self.disk),
            connection: self.member.as_ref().map(|member| Arc::clone(member.connection())),
            request,
            payload,
            memory,
            begun_ns: self.turn_ns,
        };
        self.pool.submit(queue, job).map_err(Gone::Broken)?;
        self.in_flight += 1;
        Ok(())
    }

    /// Answers what the pool has done.
    #[inline]
    fn collect(&mut self) -> Result<(), Gone> {
        if self.in_flight == 0 {
            return Ok(());
        }
        if let Some(queue) = &self.queue {
            queue.collect(&mut self.done);
        }
        if self.done.is_empty() {
            return Ok(());
        }
        let now_ns = now_ns();
        let mut all = std::mem::take(&mut self.done);
        for done in all.drain(..) {
            self.tally.took(1, now_ns.saturating_sub(done.begun_ns));
            self.in_flight -= 1;
            self.finish(done)?;
        }
        self.done = all;
        Ok(())
    }

    fn finish(&mut self, done: Done) -> Result<(), Gone> {
        let Request { ticket, work } = done.request;
        let mut reserved = 0;
        match work {
            Work::Read { length, .. } => {
                reserved = length as usize;
                self.added.reads += 1;
                self.added.read_bytes += u64::from(length);
            }
            Work::Write { length, .. } => {
                // A larger one was written piece by piece.
                if length as usize <= PIECE_BYTES {
                    reserved = length as usize;
                }
                self.added.writes += 1;
                self.added.written_bytes += u64::from(length);
            }
            Work::Flush => self.added.flushes += 1,
            _ => self.added.others += 1,
        }
        let answered = match done.result {
            Err(error) => self.failed(ticket, &error),
            Ok(Outcome::Nothing) => self.reply(|replies, out| replies.done(ticket, out)),
            Ok(Outcome::Data(data)) => self.send_data(ticket, work, data),
            Ok(Outcome::Extents(extents)) => match work {
                Work::Extents { length, only_one, context, .. } => self.reply(|replies, out| {
                    replies.extents(ticket, context, (length, only_one), &extents, out);
                }),
                _ => Ok(()),
            },
        };
        self.in_flight_bytes -= reserved;
        self.shared.shares.give_back(&self.account, reserved);
        answered
    }

    /// Nothing more comes from the client; what is in flight is still done. A client that will come again sends
    /// again what it got no answer to: of its requests, those that wait are not begun any more.
    fn ended(&mut self) {
        if self.hold.is_some() {
            self.abandon();
        }
        self.ends = Some(match () {
            () if self.stops() => Gone::Stopped,
            () if self.is_in_a_request() => Gone::Cut,
            () => Gone::Closed,
        });
    }
}

fn sending(error: io::Error) -> Gone {
    match error.kind() {
        io::ErrorKind::WouldBlock => Gone::Stuck,
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Gone::Closed,
        _ => Gone::Broken(error),
    }
}

fn receiving(error: io::Error) -> Gone {
    match error.kind() {
        io::ErrorKind::ConnectionReset => Gone::Closed,
        _ => Gone::Broken(error),
    }
}
