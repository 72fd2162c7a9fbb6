//! The server: who comes in, who is served, who has to wait, and how all of it ends.
//!
//! One thread stands at the listener. It accepts, goes through handshakes, and keeps those clients that
//! are idle: none of this costs a thread of its own. A client that sends a request is given to a
//! thread, and comes back to the listener when it has been idle for a while.

mod client;
mod origin;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rubus_host::net::Stream;
use rubus_host::net::listening::{Bell, Caller, Listener, Poller};

use super::fence::Fences;
use super::greeting::{Greeting, Progress};
use super::handshake::{Agreed, TlsPolicy};
use super::pool::{Budget, Pools, lock, now_ns};
use super::thread_pool::{Kind, ThreadPool};
pub use client::{Client, Event, Snapshot};
use origin::{max_of_one, origin};
pub use settings::{Opened, Settings, Store};

use super::line::{IDLE, PATIENCE};
use super::orphans::AllConnections;
use super::session::{Gone, Left, Served, Session, SharedState};
use super::shares::Shares;
use super::tally::{Counts, Tally};

/// Limit for the whole handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Maximum number of handshakes at once, in all and from one address. Beyond that the oldest is
/// disconnected: a client that floods the listener hits mostly itself.
const MAX_GREETINGS: usize = 256;
const MAX_GREETINGS_OF_ONE: usize = 64;
/// Grace period for requests in flight when the server stops.
const FAREWELL: Duration = Duration::from_secs(10);
/// Without free file descriptors, accepting pauses for this long.
const PAUSE: Duration = Duration::from_millis(200);
/// Memory that clients keep for reads to come, in all.
const SPARE_BYTES: usize = 32 << 20;

/// Threads that serve busy clients, one each. An idle client has none.
const SERVING: Kind =
    Kind { name: "client", stack_bytes: 512 << 10, idle: Duration::from_secs(5), most: usize::MAX };

/// Threads for handshakes that may wait.
const GREETING: Kind =
    Kind { name: "greeting", stack_bytes: 512 << 10, idle: Duration::from_secs(5), most: 8 };

type Log = Box<dyn Fn(&Event<'_>) + Send + Sync>;

/// A server that runs, or will.
pub struct Server {
    store: Arc<dyn Store>,
    settings: Settings,
    shared: Arc<SharedState>,
    thread_pool: Arc<ThreadPool<Busy>>,
    greeters: Arc<ThreadPool<(u64, Greeting)>>,
    /// Handshakes that went on in those threads.
    greeted: Mutex<Vec<(u64, Greeted)>>,
    pools: Pools,
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
    /// What all have had done who are gone.
    gone: Mutex<(u64, Counts)>,
    /// Clients that have become idle.
    returned: Mutex<Vec<Busy>>,
    /// Connections that others may replace.
    fences: Arc<Fences>,
    /// Connections to each disk that is written.
    connections: AllConnections,
    bell: Bell,
    log: Log,
}

/// A client with its session.
struct Busy {
    client: Arc<Client>,
    session: Box<Session>,
}

/// Result of one step of a handshake.
enum Greeted {
    /// In the handshake still.
    Waits { greeting: Greeting, for_room: bool },
    /// In the handshake still, until what it replaces has ended.
    Fences(Greeting),
    /// It asked what there is, and took leave.
    Asked(Greeting),
    /// It went without a word.
    Left(Greeting),
    /// It is a client.
    Came(Busy),
    /// It does not become one.
    Refused(Caller, String),
}

/// The bell's number, and that of the first listener.
const BELL: u64 = 0;
const LISTENERS: u64 = 1;
/// Clients have numbers beyond this.
const CLIENTS: u64 = 1 << 32;

/// What only the accepting thread knows.
struct AcceptLoop<'a> {
    server: &'a Arc<Server>,
    poller: Poller,
    listeners: Vec<Listener>,
    /// When accepting was paused, if it is.
    paused_ns: Option<u64>,
    /// In the order in which they came.
    greetings: BTreeMap<u64, Greeting>,
    /// Those of them who wait until what they replace has ended.
    fencing: BTreeSet<u64>,
    /// Those whose handshake is going on elsewhere, and where they come from.
    away: BTreeMap<u64, Option<IpAddr>>,
    idle: BTreeMap<u64, Busy>,
    next_number: u64,
}

impl Server {
    /// A server of these exports; `log` is told what happens, from any thread.
    ///
    /// # Errors
    /// If the eventfd that wakes the server cannot be created.
    pub fn new(
        store: Arc<dyn Store>,
        settings: Settings,
        log: impl Fn(&Event<'_>) + Send + Sync + 'static,
    ) -> io::Result<Arc<Server>> {
        Ok(Arc::new(Server {
            store,
            shared: Arc::new(SharedState {
                shares: Shares::new(settings.max_bytes),
                spare: Budget::new(SPARE_BYTES),
                stops: AtomicBool::new(false),
            }),
            settings,
            thread_pool: ThreadPool::new(SERVING),
            greeters: ThreadPool::new(GREETING),
            greeted: Mutex::default(),
            pools: Pools::default(),
            clients: Mutex::default(),
            gone: Mutex::default(),
            returned: Mutex::default(),
            fences: Arc::default(),
            connections: AllConnections::default(),
            bell: Bell::new()?,
            log: Box::new(log),
        }))
    }

    /// Stops the server: no more connections are accepted, requests in flight are answered, and
    /// then every connection is closed. Later requests get no reply. May be called from any thread.
    pub fn stop(&self) {
        self.shared.stops.store(true, Ordering::SeqCst);
        self.bell.ring();
    }

    /// What it does now.
    pub fn snapshot(&self) -> Snapshot {
        let clients = lock(&self.clients).values().cloned().collect();
        let (gone_clients, gone) = lock(&self.gone).clone();
        Snapshot { clients, gone_clients, gone, threads: self.thread_pool.threads() }
    }

    /// Accepts and serves clients until [`Server::stop`].
    ///
    /// # Errors
    /// If polling fails.
    pub fn run(self: &Arc<Self>, listeners: Vec<Listener>) -> io::Result<()> {
        let poller = Poller::new()?;
        poller.add(&self.bell, BELL, false)?;
        for (at, listener) in listeners.iter().enumerate() {
            poller.add(listener, LISTENERS + at as u64, false)?;
        }
        let mut accepting = AcceptLoop {
            server: self,
            poller,
            listeners,
            paused_ns: None,
            greetings: BTreeMap::new(),
            fencing: BTreeSet::new(),
            away: BTreeMap::new(),
            idle: BTreeMap::new(),
            next_number: CLIENTS + 1,
        };
        while !self.stops() {
            accepting.turn()?;
        }
        let away = accepting.close();
        self.farewell(away)
    }

    /// Serves one client that is connected already, until it is gone.
    ///
    /// # Errors
    /// When there is no agreement with it.
    pub fn run_one(self: &Arc<Self>, stream: Stream, caller: Caller) -> Result<Gone, String> {
        let mut greeting = Greeting::new(stream, caller, self.settings.encryption(), now_ns());
        let (agreed, begun) = loop {
            match greeting.advance(self.store.exports()) {
                Progress::Agreed(agreed, begun) => break (agreed, begun),
                Progress::Asked => return Ok(Gone::Done),
                Progress::Left => return Err("it left during the handshake".into()),
                Progress::Ended(why) => return Err(why),
                // It knows no other connections.
                Progress::Fences => return Err("it replaces another connection".into()),
                Progress::Waits { for_room } => {
                    let came = greeting.line.stream().wait(for_room, Some(PATIENCE));
                    if !came.map_err(|error| error.to_string())? {
                        return Err(too_late(PATIENCE));
                    }
                }
            }
        };
        let mut busy = self.admit(CLIENTS + 1, greeting, *agreed, &begun)?;
        loop {
            match busy.session.serve() {
                Left::Gone(gone) => {
                    self.went(&busy.client, &gone);
                    return Ok(gone);
                }
                Left::Idle(_) if self.stops() => return Ok(Gone::Stopped),
                Left::Idle(session) => busy.session = session,
            }
        }
    }

    fn stops(&self) -> bool {
        self.shared.stops.load(Ordering::SeqCst)
    }

    /// Advances a handshake as far as possible without waiting for the client.
    fn greet(self: &Arc<Self>, number: u64, mut greeting: Greeting) -> Greeted {
        match greeting.advance(self.store.exports()) {
            Progress::Waits { for_room } => Greeted::Waits { greeting, for_room },
            Progress::Fences => Greeted::Fences(greeting),
            Progress::Asked => Greeted::Asked(greeting),
            Progress::Left => Greeted::Left(greeting),
            Progress::Ended(why) => Greeted::Refused(greeting.caller, why),
            Progress::Agreed(agreed, begun) => {
                let caller = greeting.caller.clone();
                match self.admit(number, greeting, *agreed, &begun) {
                    Ok(busy) => Greeted::Came(busy),
                    Err(why) => Greeted::Refused(caller, why),
                }
            }
        }
    }

    /// Makes a client of a connection that has agreed on an export.
    fn admit(
        self: &Arc<Self>,
        number: u64,
        greeting: Greeting,
        agreed: Agreed,
        begun: &[u8],
    ) -> Result<Busy, String> {
        let Greeting { line, caller, hold, .. } = greeting;
        let stream = Arc::clone(line.stream());
        let name = agreed.export.name;
        let Opened { disk, sync } = self.store.open(&name, &caller)?;
        stream.set_patience(Some(IDLE), Some(PATIENCE)).map_err(|error| error.to_string())?;
        let pool = self.pools.of(self.store.pool_of(&name));
        let tally = Arc::new(Tally::default());
        let client = Arc::new(Client {
            number: number.saturating_sub(CLIENTS),
            caller,
            export: name,
            since_ns: now_ns(),
            stream,
            is_busy: AtomicBool::new(false),
            tally: Arc::clone(&tally),
        });
        let shared = Arc::clone(&self.shared);
        let is_written = !disk.abilities().is_read_only;
        let member = is_written.then(|| self.connections.enter(&disk, line.stream()));
        let served = Served { disk, sync, pool, hold, member };
        let session = Session::new(line, agreed.rules, served, begun, shared, tally);
        lock(&self.clients).insert(client.number, Arc::clone(&client));
        (self.log)(&Event::Came(&client));
        Ok(Busy { client, session: Box::new(session) })
    }

    /// Gives a client a thread.
    fn employ(self: &Arc<Self>, busy: Busy) {
        busy.client.is_busy.store(true, Ordering::Relaxed);
        let server = Arc::clone(self);
        let taken = self.thread_pool.take(busy, move |busy| server.serve(busy));
        if let Err((busy, error)) = taken {
            let why = Gone::Broken(error);
            self.went(&busy.client, &why);
        }
    }

    /// What a thread does with a client.
    fn serve(&self, busy: Busy) {
        let Busy { client, session } = busy;
        match session.serve() {
            Left::Gone(gone) => {
                client.stream.hang_up();
                self.went(&client, &gone);
            }
            Left::Idle(session) => {
                client.is_busy.store(false, Ordering::Relaxed);
                lock(&self.returned).push(Busy { client, session });
                self.bell.ring();
            }
        }
    }

    fn went(&self, client: &Arc<Client>, why: &Gone) {
        {
            let mut gone = lock(&self.gone);
            gone.0 += 1;
            gone.1.add(&client.counts());
        }
        (self.log)(&Event::Went(client, why));
        lock(&self.clients).remove(&client.number);
        if self.stops() || self.fences.is_awaited() {
            self.bell.ring();
        }
    }

    /// Waits for a limited time until all clients are gone; `away` is the number of handshakes in
    /// other threads.
    fn farewell(&self, mut away: usize) -> io::Result<()> {
        let mut poller = Poller::new()?;
        poller.add(&self.bell, BELL, false)?;
        let end_ns = now_ns() + FAREWELL.as_nanos() as u64;
        let mut hung_up = false;
        loop {
            self.bell.silence();
            // Clients that became idle meanwhile have nothing in flight.
            let returned = std::mem::take(&mut *lock(&self.returned));
            for busy in returned {
                self.went(&busy.client, &Gone::Stopped);
            }
            for (_, greeted) in std::mem::take(&mut *lock(&self.greeted)) {
                away = away.saturating_sub(1);
                if let Greeted::Came(busy) = greeted {
                    self.went(&busy.client, &Gone::Stopped);
                }
            }
            let clients: Vec<_> = lock(&self.clients).values().cloned().collect();
            if clients.is_empty() && away == 0 {
                return Ok(());
            }
            let left_ns = end_ns.saturating_sub(now_ns());
            if left_ns == 0 {
                if hung_up {
                    return Ok(());
                }
                // Their grace period is over. This also wakes threads blocked on a client that does
                // not read.
                for client in &clients {
                    client.stream.hang_up();
                }
                hung_up = true;
            }
            let most = Duration::from_nanos(left_ns).max(PAUSE);
            poller.wait(Some(most), &mut Vec::new())?;
        }
    }
}

impl AcceptLoop<'_> {
    fn turn(&mut self) -> io::Result<()> {
        let mut numbers = Vec::new();
        self.poller.wait(self.patience(), &mut numbers)?;
        for number in numbers {
            match number {
                BELL => self.server.bell.silence(),
                number if number > CLIENTS => self.bytes_of(number),
                listener => self.accept((listener - LISTENERS) as usize),
            }
        }
        let returned = std::mem::take(&mut *lock(&self.server.returned));
        for busy in returned {
            self.keep(busy);
        }
        let greeted = std::mem::take(&mut *lock(&self.server.greeted));
        for (number, greeted) in greeted {
            self.greeted(number, greeted);
        }
        self.drop_the_late();
        self.fence_again();
        self.accept_again();
        Ok(())
    }

    /// How long nothing has to be done without a cause.
    fn patience(&self) -> Option<Duration> {
        let late_ns = |since_ns: u64, time: Duration| since_ns + time.as_nanos() as u64;
        let oldest = self.greetings.values().next();
        let next = [
            oldest.map(|greeting| late_ns(greeting.since_ns, HANDSHAKE)),
            self.paused_ns.map(|since_ns| late_ns(since_ns, PAUSE)),
            (!self.fencing.is_empty()).then(|| late_ns(now_ns(), PAUSE)),
        ];
        let next_ns = next.into_iter().flatten().min()?;
        let left = Duration::from_nanos(next_ns.saturating_sub(now_ns()));
        // A moment later it is certainly due.
        Some(left + Duration::from_millis(1))
    }

    fn refused(&self, caller: &Caller, why: String) {
        (self.server.log)(&Event::Refused { caller, why });
    }

    fn accept(&mut self, at: usize) {
        // Limited per round, so that a flood does not delay connected clients.
        for _ in 0..64 {
            let Some(listener) = self.listeners.get(at) else {
                return;
            };
            match listener.accept() {
                Ok(None) => return,
                Ok(Some((stream, caller))) => self.receive_caller(stream, caller),
                Err(error) => {
                    (self.server.log)(&Event::Trouble(format!(
                        "cannot accept a connection: {error}; \
                         the limit of open files (`ulimit -n`) may be too low"
                    )));
                    self.drop_oldest(None);
                    self.pause();
                    return;
                }
            }
        }
    }

    fn receive_caller(&mut self, stream: Stream, caller: Caller) {
        let settings = &self.server.settings;
        let may_come = |address: IpAddr| {
            settings.allow.is_empty() || settings.allow.iter().any(|network| network.has(address))
        };
        if !caller.address.is_none_or(may_come) {
            return self.refused(&caller, "its address is not allowed (--allow)".into());
        }
        if lock(&self.server.clients).len() >= settings.max_clients {
            let why = format!("there are {} clients already (--max-clients)", settings.max_clients);
            return self.refused(&caller, why);
        }
        let from = caller.address.map(origin);
        if let Some(from) = from.filter(|from| !from.is_loopback()) {
            let clients = lock(&self.server.clients);
            let of_one = clients.values();
            let of_one = of_one.filter(|client| client.caller.address.map(origin) == Some(from));
            let (of_one, most) = (of_one.count(), max_of_one(settings.max_clients));
            drop(clients);
            if of_one >= most {
                let why = format!(
                    "there are {of_one} clients from its address already, a quarter of --max-clients"
                );
                return self.refused(&caller, why);
            }
        }
        let here = self.greetings.values();
        let here = here.map(|greeting| greeting.caller.address);
        let of_one = here.chain(self.away.values().copied());
        let of_one = of_one.filter(|address| address.map(origin) == from);
        if from.is_some() && of_one.count() >= MAX_GREETINGS_OF_ONE {
            self.drop_oldest(from);
        }
        if self.greetings.len() + self.away.len() >= MAX_GREETINGS {
            self.drop_oldest(None);
        }
        let number = self.next_number;
        self.next_number += 1;
        let greeting = Greeting::new(stream, caller, settings.encryption(), now_ns())
            .fencing(&self.server.fences);
        if let Err(error) = self.poller.add(&greeting.line, number, false) {
            return self.refused(&greeting.caller, error.to_string());
        }
        self.greetings.insert(number, greeting);
        self.go_on(number);
    }

    /// Hangs up on the one who has been in the handshake for longest, of those of one [`origin`] if so.
    fn drop_oldest(&mut self, of: Option<IpAddr>) {
        let mut all = self.greetings.iter();
        let is_of = |address: Option<IpAddr>| of.is_none() || address.map(origin) == of;
        let oldest = all.find(|(_, greeting)| is_of(greeting.caller.address));
        if let Some((&number, _)) = oldest {
            self.drop_greeting(number, "too many are in the handshake".into());
        }
    }

    fn drop_greeting(&mut self, number: u64, why: String) {
        if let Some(greeting) = self.greetings.remove(&number) {
            // Closing takes it out of the wait, too; but the stream may be shared.
            let _ = self.poller.remove(&greeting.line);
            self.refused(&greeting.caller, why);
        }
    }

    fn drop_the_late(&mut self) {
        let now_ns = now_ns();
        let is_late = |greeting: &Greeting| {
            now_ns.saturating_sub(greeting.since_ns) >= HANDSHAKE.as_nanos() as u64
        };
        while let Some((&number, _)) =
            self.greetings.first_key_value().filter(|(_, greeting)| is_late(greeting))
        {
            self.drop_greeting(number, too_late(HANDSHAKE));
        }
    }

    /// Looks whether what clients replace has ended.
    fn fence_again(&mut self) {
        self.server.fences.looks_again();
        for number in std::mem::take(&mut self.fencing) {
            self.go_on(number);
        }
    }

    fn pause(&mut self) {
        for listener in &self.listeners {
            let _ = self.poller.remove(listener);
        }
        self.paused_ns = Some(now_ns());
    }

    fn accept_again(&mut self) {
        let is_over = |since_ns: u64| now_ns().saturating_sub(since_ns) >= PAUSE.as_nanos() as u64;
        if self.paused_ns.is_some_and(is_over) {
            self.paused_ns = None;
            for (at, listener) in self.listeners.iter().enumerate() {
                let _ = self.poller.add(listener, LISTENERS + at as u64, false);
            }
        }
    }

    /// Something came from a client.
    fn bytes_of(&mut self, number: u64) {
        if self.greetings.contains_key(&number) {
            return self.go_on(number);
        }
        if let Some(busy) = self.idle.remove(&number) {
            let _ = self.poller.remove(busy.session.line());
            self.server.employ(busy);
        }
    }

    /// Continues a handshake.
    fn go_on(&mut self, number: u64) {
        let Some(greeting) = self.greetings.remove(&number) else {
            return;
        };
        let _ = self.poller.remove(&greeting.line);
        let may_wait = self.server.store.may_wait();
        // A TLS handshake takes a millisecond or more of CPU time, in which no client would be
        // accepted.
        if !may_wait && self.server.settings.tls == TlsPolicy::Off {
            let greeted = self.server.greet(number, greeting);
            return self.greeted(number, greeted);
        }
        self.away.insert(number, greeting.caller.address);
        let server = Arc::clone(self.server);
        let taken = self.server.greeters.take((number, greeting), move |(number, greeting)| {
            let greeted = server.greet(number, greeting);
            lock(&server.greeted).push((number, greeted));
            server.bell.ring();
        });
        if let Err(((number, greeting), error)) = taken {
            self.greeted(number, Greeted::Refused(greeting.caller, error.to_string()));
        }
    }

    /// A handshake went on.
    fn greeted(&mut self, number: u64, greeted: Greeted) {
        self.away.remove(&number);
        match greeted {
            Greeted::Waits { greeting, for_room } => {
                match self.poller.add(&greeting.line, number, for_room) {
                    Ok(()) => drop(self.greetings.insert(number, greeting)),
                    Err(error) => self.refused(&greeting.caller, error.to_string()),
                }
            }
            Greeted::Fences(greeting) => {
                self.fencing.insert(number);
                self.greetings.insert(number, greeting);
            }
            Greeted::Asked(greeting) => (self.server.log)(&Event::Asked(&greeting.caller)),
            Greeted::Left(greeting) => (self.server.log)(&Event::Left(&greeting.caller)),
            Greeted::Came(busy) => self.keep(busy),
            Greeted::Refused(caller, why) => self.refused(&caller, why),
        }
    }

    /// Keeps a client until it sends something.
    fn keep(&mut self, mut busy: Busy) {
        if busy.session.has_work() {
            return self.server.employ(busy);
        }
        let number = CLIENTS + busy.client.number;
        match self.poller.add(busy.session.line(), number, false) {
            Ok(()) => drop(self.idle.insert(number, busy)),
            Err(error) => self.server.went(&busy.client, &Gone::Broken(error)),
        }
    }

    /// Closes the listeners: no more connections are accepted, idle clients are disconnected, and the
    /// others are told. Returns the number of handshakes in other threads.
    fn close(&mut self) -> usize {
        self.listeners.clear();
        self.greetings.clear();
        for busy in std::mem::take(&mut self.idle).into_values() {
            self.server.went(&busy.client, &Gone::Stopped);
        }
        for client in lock(&self.server.clients).values() {
            client.stream.stop_receiving();
        }
        self.away.len()
    }
}

fn too_late(most: Duration) -> String {
    format!("it did not end the handshake within {} s", most.as_secs())
}
