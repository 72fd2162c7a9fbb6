//! The watcher of an attached device: reconnects when a connection has ended, and resumes only with
//! the same disk.
//!
//! Without a connection, the kernel holds requests for the dead-connection timeout; after that they
//! fail. When the same server is back in time, users notice only a pause.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use rubus_host::clock::monotonic_ns;
use rubus_host::net::{Stream, wait_for_ends};
use rubus_host::process::mlocked::{FlushError, KeptDirectory};
use rubus_nbd::client::Offer;
use rubus_nbd::identity::{Appearance, Verdict};
use rubus_nbd::wire::TransmissionFlags;

use super::driver::DriverError;
use super::durability::{Counters, Durability, Flushed};

/// A TCP connection is dead after this long without a sign of life from the peer's kernel.
pub const SILENCE: Duration = Duration::from_secs(30);

/// How the device and its server are reached; the tests have others.
pub trait Kernel {
    /// Replaces a dead connection with this socket.
    ///
    /// # Errors
    /// If the driver rejects the request.
    fn reconnect(&mut self, socket: BorrowedFd<'_>) -> Result<(), DriverError>;
    /// Fails all waiting requests and disconnects the device.
    ///
    /// # Errors
    /// If the driver rejects the request.
    fn disconnect(&mut self) -> Result<(), DriverError>;
    /// Whether the device still has a server, dead or alive.
    fn is_connected(&mut self) -> bool;
    /// Connections that the driver took for dead since the last call.
    fn take_dead(&mut self) -> u32;
    /// Can be received from when there are dead connections to take.
    fn tells(&self) -> BorrowedFd<'_>;
    /// What was written so far, if the device counts.
    fn counters(&mut self) -> Option<Counters>;
    /// How long ago a connection's other end was heard, if that is known.
    fn heard_ago(&mut self, line: &Stream) -> Option<Duration> {
        line.heard_ago().ok()?
    }
}

/// Where the export is.
pub trait Server {
    /// Connects and agrees on the export, for this one of the device's connections; `ended` are all that have none
    /// now. A server that can do so ends what is left of their old ones first.
    ///
    /// # Errors
    /// Why the connection failed, as a sentence for the log.
    fn connect(&mut self, lane: usize, ended: &[usize]) -> Result<(Stream, Offer), String>;
}

/// How urgent a line of the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Data or service is lost.
    Error,
    /// Something is wrong and may become right again.
    Warning,
    /// Worth a note.
    Note,
}

/// State of an attachment, for status output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentState {
    /// Connections that work.
    pub alive: usize,
    /// How often a connection was replaced.
    pub replaced: u32,
    /// What the server is now.
    pub appearance: Appearance,
    /// Writes may be unflushed, and would be lost if the server's machine were restarted now.
    pub unflushed: bool,
    /// What stands in the way, while something does.
    pub trouble: Option<String>,
}

/// How watching ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The device was detached by another program.
    Detached,
    /// The device was failed rather than resumed.
    GivenUp(String),
    /// The caller wanted it, and the device was detached.
    Stopped,
}

/// Detaches the device if it is not in use, else says why not. It may wait for the server, so it runs in its own
/// thread: only the watcher can bring the server back.
pub type Leave = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// How long to wait between attempts: at once, then longer and longer up to a limit.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// After the first attempt.
    pub first: Duration,
    /// Longest wait between two attempts.
    pub most: Duration,
    /// Between two looks at a device that is fine.
    pub look: Duration,
    /// How long the driver may take to notice that a connection has ended.
    pub notice: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            first: Duration::from_millis(100),
            most: Duration::from_secs(3),
            look: Duration::from_secs(1),
            notice: Duration::from_secs(2),
        }
    }
}

/// A time between half of it and all of it, by a number: clients that have lost one server at the same moment are
/// not to come back all at once.
fn spread(wait: Duration, number: u64) -> Duration {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let half_ns = wait.as_nanos() as u64 / 2;
    let more_ns = (u128::from(half_ns) * u128::from(mixed)) >> 32;
    wait - Duration::from_nanos(half_ns) + Duration::from_nanos(more_ns as u64)
}

/// A driver that refuses a good connection so often will not take one.
const MAX_REFUSALS: u32 = 5;

/// What watching needs to know of the device.
#[derive(Debug)]
pub struct Attached {
    /// For the log: "nbd0".
    pub name: String,
    /// The connections that the driver has.
    pub lines: Vec<Stream>,
    /// What the server was when it was attached.
    pub appearance: Appearance,
    /// What the device had counted when it got its server; others may have written since.
    pub counters: Option<Counters>,
    /// It was attached for reading only, whatever the server allows.
    pub read_only: bool,
    /// A server that does not say who it is may be resumed all the same.
    pub vouched_for: bool,
    /// The server ends what is left of a lost connection before it takes a new one.
    pub fenced: bool,
}

/// What is said of a server that does not fence any more.
const NOT_FENCED: &str = "the server does not end what is left of a lost connection any more: it may still carry out \
                          writes of the old one, over newer ones";

pub struct Watcher<'a> {
    kernel: &'a mut dyn Kernel,
    server: &'a mut dyn Server,
    log: &'a mut dyn FnMut(Urgency, &str),
    tell: &'a mut dyn FnMut(&AttachmentState),
    stop: &'a AtomicBool,
    leave: Leave,
    /// Told when leaving has ended.
    leaving: Option<Receiver<Result<(), String>>>,
    pace: Pace,
    attached: Attached,
    durability: Durability,
    flusher: Option<Flusher>,
    dead_told: u32,
    replaced: u32,
    unflushed: bool,
}

impl<'a> Watcher<'a> {
    /// A watcher of a device that was just attached. When `stop` is raised, it calls `leave` and goes on until the
    /// device is detached.
    pub fn new(
        attached: Attached,
        kernel: &'a mut dyn Kernel,
        server: &'a mut dyn Server,
        log: &'a mut dyn FnMut(Urgency, &str),
        tell: &'a mut dyn FnMut(&AttachmentState),
        stop: &'a AtomicBool,
        leave: Leave,
    ) -> Watcher<'a> {
        let can_flush = attached.appearance.flags.has(TransmissionFlags::SEND_FLUSH);
        Watcher {
            durability: Durability::at_start(attached.counters, can_flush),
            kernel,
            server,
            log,
            tell,
            stop,
            leave,
            leaving: None,
            pace: Pace::default(),
            attached,
            flusher: None,
            dead_told: 0,
            replaced: 0,
            unflushed: false,
        }
    }

    /// With other times.
    #[must_use]
    pub fn at(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Lets the device, whose node is in that directory, flush whenever writing has paused: what is
    /// durable is not lost when the server's machine is restarted, and the watcher knows it.
    #[must_use]
    pub fn flushing_in(mut self, nodes: KeptDirectory) -> Self {
        let flusher = Flusher::start(nodes, self.attached.name.clone());
        match flusher {
            Ok(flusher) => self.flusher = Some(flusher),
            Err(error) => {
                let text = format!("cannot flush by itself: {error}");
                self.line(Urgency::Warning, &text);
            }
        }
        self
    }

    /// Watches until the device is detached or given up.
    pub fn run(&mut self) -> End {
        self.told(None);
        loop {
            if let Err(end) = self.attend() {
                return end;
            }
            let ended = self.ended(self.pace.look);
            self.dead_told += self.kernel.take_dead();
            if !self.kernel.is_connected() {
                return self.gone();
            }
            if ended.is_empty() {
                if let Err(end) = self.keep_durable() {
                    return end;
                }
                // Left over from connections whose replacement was quicker than the message.
                self.dead_told = 0;
                continue;
            }
            if let Err(end) = self.replace(&ended) {
                return end;
            }
        }
    }

    /// Begins to detach the device when the caller wants that, and hears what came of it. What is known of the
    /// device stays known: it may well stay attached.
    fn attend(&mut self) -> Result<(), End> {
        if self.stop.swap(false, Ordering::Relaxed) && self.leaving.is_none() {
            match leaving(Arc::clone(&self.leave)) {
                Ok(leaving) => self.leaving = Some(leaving),
                Err(error) => self.stays(&error.to_string()),
            }
        }
        match self.leaving.as_ref().map(Receiver::try_recv) {
            None | Some(Err(TryRecvError::Empty)) => {}
            // While the device is open anywhere, the driver still reports it as connected.
            Some(Ok(Ok(()))) => return Err(End::Stopped),
            Some(Ok(Err(why))) => {
                self.leaving = None;
                self.stays(&why);
            }
            Some(Err(TryRecvError::Disconnected)) => self.leaving = None,
        }
        Ok(())
    }

    fn stays(&mut self, why: &str) {
        self.line(Urgency::Warning, &format!("stays attached: {why}"));
    }

    /// The device has no server any more.
    fn gone(&self) -> End {
        match self.leaving {
            Some(_) => End::Stopped,
            None => End::Detached,
        }
    }

    /// The connections that have ended; waits at most `most` for one to end.
    fn ended(&self, most: Duration) -> Vec<usize> {
        let lines: Vec<&Stream> = self.attached.lines.iter().collect();
        match wait_for_ends(&lines, self.kernel.tells(), most) {
            Ok(ended) => (0..ended.len()).filter(|&i| ended[i]).collect(),
            Err(_) => Vec::new(),
        }
    }

    fn keep_durable(&mut self) -> Result<(), End> {
        let now = self.kernel.counters();
        let due = self.durability.look(now);
        match (&self.flusher, due) {
            (Some(flusher), Some(due)) => flusher.begin(due),
            (None, Some(due)) => self.durability.flushed(due, Flushed::NotBegun),
            (_, None) => {}
        }
        if let Some((at, flushed)) = self.flusher.as_ref().and_then(Flusher::ended) {
            self.flushed(at, flushed)?;
        }
        if self.durability.is_unflushed(now) != self.unflushed {
            self.told(None);
        }
        Ok(())
    }

    /// A flush has ended. One that failed is final: the server reported a loss, to this program alone perhaps, and
    /// a filesystem that flushes next would be told that all is well.
    fn flushed(&mut self, at: Counters, flushed: Result<(), FlushError>) -> Result<(), End> {
        let end = match &flushed {
            Ok(()) => Flushed::Well,
            Err(FlushError::NotBegun(_)) => Flushed::NotBegun,
            Err(FlushError::Failed(_)) => Flushed::Badly,
        };
        self.durability.flushed(at, end);
        let Err(FlushError::Failed(error)) = flushed else {
            return Ok(());
        };
        // One that was under way when the device was detached fails, too.
        if !self.kernel.is_connected() {
            return Err(self.gone());
        }
        Err(self.give_up(format!(
            "a flush failed ({error}), so writes that the server had acknowledged may be lost"
        )))
    }

    fn replace(&mut self, ended: &[usize]) -> Result<(), End> {
        let start_ns = monotonic_ns();
        let all = self.attached.lines.len();
        let text = match all {
            1 => "the connection to the server has ended".to_owned(),
            _ => format!("{} of {all} connections to the server have ended", ended.len()),
        };
        for &line in ended {
            self.attached.lines[line].end();
        }
        self.wait_until_dead(ended.len())?;
        self.line(Urgency::Warning, &format!("{text}; connecting again"));
        self.told(Some(text));
        for (i, &line) in ended.iter().enumerate() {
            self.replace_one(line, &ended[i..])?;
        }
        let took_s = (monotonic_ns() - start_ns) as f64 / 1e9;
        let text = format!("connected again after {took_s:.1} s, to the same disk: it goes on");
        self.line(Urgency::Note, &text);
        self.told(None);
        Ok(())
    }

    /// The driver replaces only connections that it considers dead, and reports nothing else. When the
    /// device is being detached it reports no dead connections, and then the device has no server.
    fn wait_until_dead(&mut self, count: usize) -> Result<(), End> {
        let max_ns = self.pace.notice.as_nanos() as u64;
        let start_ns = monotonic_ns();
        while (self.dead_told as usize) < count && monotonic_ns() - start_ns < max_ns {
            // The lines that ended would end the wait at once.
            let _ = wait_for_ends(&[], self.kernel.tells(), Duration::from_millis(20));
            self.dead_told += self.kernel.take_dead();
            if !self.kernel.is_connected() {
                return Err(self.gone());
            }
        }
        self.dead_told = self.dead_told.saturating_sub(count as u32);
        Ok(())
    }

    fn replace_one(&mut self, line: usize, ended: &[usize]) -> Result<(), End> {
        let mut wait = Duration::ZERO;
        let mut last_words = String::new();
        let mut refusals = 0;
        loop {
            self.pause(spread(wait, monotonic_ns()))?;
            wait = (wait * 2).clamp(self.pace.first, self.pace.most);
            let (stream, offer) = match self.server.connect(line, ended) {
                Ok(agreed) => agreed,
                Err(why) => {
                    if why != last_words {
                        self.line(Urgency::Warning, &why);
                        self.told(Some(why.clone()));
                        last_words = why;
                    }
                    continue;
                }
            };
            self.must_be_the_same(&offer, ended)?;
            if self.attached.fenced && !offer.fenced {
                self.attached.fenced = false;
                self.line(Urgency::Warning, NOT_FENCED);
            }
            // Without, only a peer that vanishes is noticed later.
            let _ = stream.notice_silence(SILENCE);
            match self.kernel.reconnect(std::os::fd::AsFd::as_fd(&stream)) {
                Ok(()) => {
                    self.attached.lines[line] = stream;
                    self.replaced += 1;
                    return Ok(());
                }
                Err(error) => {
                    refusals += 1;
                    self.line(Urgency::Error, &error.to_string());
                    if refusals == MAX_REFUSALS {
                        return Err(self.give_up(error.to_string()));
                    }
                }
            }
        }
    }

    /// Waits between two attempts, unless there is nothing left to be done.
    fn pause(&mut self, time: Duration) -> Result<(), End> {
        let start_ns = monotonic_ns();
        loop {
            self.attend()?;
            if !self.kernel.is_connected() {
                return Err(self.gone());
            }
            let left = time.saturating_sub(Duration::from_nanos(monotonic_ns() - start_ns));
            if left.is_zero() {
                return Ok(());
            }
            rubus_host::clock::sleep(left.min(Duration::from_millis(200)));
        }
    }

    fn must_be_the_same(&mut self, offer: &Offer, ended: &[usize]) -> Result<(), End> {
        let mut now = Appearance::of(offer);
        if self.attached.read_only {
            now.flags = now.flags.with(TransmissionFlags::READ_ONLY);
        }
        let before = self.attached.appearance;
        let unflushed = self.durability.is_unflushed(self.kernel.counters());
        let unflushed = unflushed && !(before.identity.is_none() && self.was_there(ended));
        let verdict = before.judge(&now, unflushed, self.attached.vouched_for);
        let why = match verdict {
            Verdict::Same => {
                self.attached.appearance = before.followed_by(&now, unflushed);
                return Ok(());
            }
            Verdict::SameButUnflushedLost => {
                "the server's machine was restarted or its disk failed, and writes that it had \
                 acknowledged were not flushed: they may be lost"
                    .to_owned()
            }
            Verdict::Other(difference) => difference.to_string(),
        };
        Err(self.give_up(why))
    }

    /// Whether another connection shows that the server's machine was not restarted before the new connection was
    /// agreed on. That it has not ended shows nothing: an idle one looks alive for many seconds after its other end has
    /// forgotten it. So that one must be heard again, now.
    fn was_there(&mut self, ended: &[usize]) -> bool {
        let agreed_ns = monotonic_ns();
        let others: Vec<usize> =
            (0..self.attached.lines.len()).filter(|line| !ended.contains(line)).collect();
        let lines = &self.attached.lines;
        if others.iter().all(|&line| lines[line].ask_for_life().is_err()) {
            return false;
        }
        let shown = loop {
            let gone = self.ended(Duration::ZERO);
            let waited = Duration::from_nanos(monotonic_ns() - agreed_ns);
            let lines = &self.attached.lines;
            let kernel = &mut self.kernel;
            let mut alive = others.iter().filter(|line| !gone.contains(line));
            let is_shown = alive.clone().any(|&line| {
                lines[line].is_unix() || is_newer(kernel.heard_ago(&lines[line]), waited)
            });
            if is_shown || alive.next().is_none() || waited > self.pace.notice {
                break is_shown;
            }
            rubus_host::clock::sleep(Duration::from_millis(20));
        };
        for line in others {
            let _ = self.attached.lines[line].notice_silence(SILENCE);
        }
        shown
    }

    /// Fails the device loudly: a filesystem that goes on over lost writes is damaged silently.
    fn give_up(&mut self, why: String) -> End {
        let text = format!(
            "NOT resumed: {why}. The device is failed, so that nothing is written over lost data; \
             unmount it, look at the server, attach it again and check the filesystem"
        );
        self.line(Urgency::Error, &text);
        self.told(Some(why.clone()));
        if let Err(error) = self.kernel.disconnect() {
            self.line(Urgency::Error, &error.to_string());
        }
        End::GivenUp(why)
    }

    fn told(&mut self, trouble: Option<String>) {
        let ended = self.ended(Duration::ZERO).len();
        self.unflushed = self.durability.is_unflushed(self.kernel.counters());
        let state = AttachmentState {
            alive: self.attached.lines.len() - ended,
            replaced: self.replaced,
            appearance: self.attached.appearance,
            unflushed: self.unflushed,
            trouble,
        };
        (self.tell)(&state);
    }

    fn line(&mut self, urgency: Urgency, text: &str) {
        let line = format!("{}: {text}", self.attached.name);
        (self.log)(urgency, &line);
    }
}

/// Whether something was heard after a moment that is `since` ago. Kernels count in steps of up to 10 ms.
fn is_newer(heard_ago: Option<Duration>, since: Duration) -> bool {
    const STEP: Duration = Duration::from_millis(20);
    heard_ago.is_some_and(|heard_ago| heard_ago + STEP < since)
}

/// A thread that flushes a device. On a dead device it hangs, and the watcher does not wait for it.
#[derive(Debug)]
struct Flusher {
    begin: SyncSender<Counters>,
    ended: Receiver<(Counters, Result<(), FlushError>)>,
}

/// Detaching needs more than flushing does; locked memory is scarce on small boards all the same.
const LEAVING_STACK_BYTES: usize = 512 << 10;

/// Detaches in a thread of its own.
fn leaving(leave: Leave) -> std::io::Result<Receiver<Result<(), String>>> {
    let (report, ended) = sync_channel(1);
    std::thread::Builder::new().name("leaving".into()).stack_size(LEAVING_STACK_BYTES).spawn(
        move || {
            // Without a receiver, the watcher has already seen the end.
            let _ = report.send(leave());
        },
    )?;
    Ok(ended)
}

impl Flusher {
    fn start(nodes: KeptDirectory, name: String) -> std::io::Result<Flusher> {
        let (begin, wanted) = sync_channel::<Counters>(1);
        let (report, ended) = sync_channel(1);
        std::thread::Builder::new()
            .name("flusher".into())
            // Locked memory is scarce on small boards.
            .stack_size(64 << 10)
            .spawn(move || {
                while let Ok(at) = wanted.recv() {
                    let flushed = nodes.flush_device(&name);
                    if report.send((at, flushed)).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Flusher { begin, ended })
    }

    /// One whose first flush ends so.
    #[cfg(test)]
    fn that_says(flushed: Result<(), FlushError>) -> Flusher {
        let (begin, wanted) = sync_channel::<Counters>(1);
        let (report, ended) = sync_channel(1);
        std::thread::spawn(move || {
            if let Ok(at) = wanted.recv() {
                let _ = report.send((at, flushed));
            }
        });
        Flusher { begin, ended }
    }

    fn begin(&self, at: Counters) {
        // One at a time: there is always room.
        let _ = self.begin.try_send(at);
    }

    fn ended(&self) -> Option<(Counters, Result<(), FlushError>)> {
        self.ended.try_recv().ok()
    }
}

#[cfg(test)]
mod chaos;
#[cfg(test)]
mod tests;
