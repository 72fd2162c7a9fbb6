//! The server's status as JSON lines: one line on connecting, then one every second with the rates
//! since the previous line, until the reader disconnects.

use std::io::IoSlice;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rubus_host::clock::{monotonic_ns, now_rfc3339, process_cpu_ns};
use rubus_host::net::Stream;
use rubus_host::net::listening::{ListenError, Listener};
use rubus_nbd::server::listener::{Client, Server, Snapshot};
use rubus_nbd::server::tally::Counts;

use super::lines::{ClientLine, CountsLine, RatesLine, StatusLine};

/// Maximum number of readers at once.
const MAX_READERS: usize = 8;
const INTERVAL: Duration = Duration::from_secs(1);

/// Listens for readers of the status at a path, or at an address with a port.
///
/// # Errors
/// If the socket cannot be opened.
pub fn listen(place: &str) -> Result<Listener, ListenError> {
    match place.parse() {
        Ok(address) => Listener::tcp(address),
        Err(_) => Listener::unix(Path::new(place)),
    }
}

/// Serves readers from threads of its own until the program ends.
pub fn answer(listener: Arc<Listener>, server: Arc<Server>) {
    std::thread::spawn(move || {
        let readers = Arc::new(AtomicUsize::new(0));
        while rubus_host::net::listening::wait_for(&*listener, None).is_ok() {
            let Ok(Some((stream, _))) = listener.accept() else {
                continue;
            };
            if readers.fetch_add(1, Ordering::Relaxed) >= MAX_READERS {
                readers.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (server, readers) = (Arc::clone(&server), Arc::clone(&readers));
            std::thread::spawn(move || {
                tell(&stream, &server);
                readers.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
}

struct Moment {
    at_ns: u64,
    cpu_ns: u64,
    snapshot: Snapshot,
    each: Vec<Counts>,
    all: Counts,
}

impl Moment {
    fn now(server: &Server) -> Moment {
        let snapshot = server.snapshot();
        let each: Vec<_> = snapshot.clients.iter().map(|c| c.counts()).collect();
        let mut all = snapshot.gone.clone();
        for counts in &each {
            all.add(counts);
        }
        Moment { at_ns: monotonic_ns(), cpu_ns: process_cpu_ns(), snapshot, each, all }
    }

    fn line(&self, before: Option<&Moment>) -> StatusLine<'_> {
        let seconds = |before: &Moment| (self.at_ns - before.at_ns) as f64 / 1e9;
        let before = before.filter(|before| self.at_ns > before.at_ns);
        let clients = self.snapshot.clients.iter().zip(&self.each);
        let clients = clients.map(|(client, counts)| {
            let known = before.and_then(|before| {
                let mut each = before.snapshot.clients.iter().zip(&before.each);
                let found = each.find(|(other, _)| other.number == client.number)?;
                Some((found.1, seconds(before)))
            });
            one(client, counts, known, self.at_ns)
        });
        StatusLine {
            time: now_rfc3339(),
            monotonic_seconds: self.at_ns as f64 / 1e9,
            cpu_seconds: self.cpu_ns as f64 / 1e9,
            cpu_share: before
                .map(|before| (self.cpu_ns - before.cpu_ns) as f64 / 1e9 / seconds(before)),
            busy_threads: self.snapshot.threads,
            clients: clients.collect(),
            gone_clients: self.snapshot.gone_clients,
            total: CountsLine::from(&self.all),
            rates: before.map(|before| RatesLine::between(&before.all, &self.all, seconds(before))),
        }
    }
}

fn one<'a>(
    client: &'a Client,
    now: &Counts,
    before: Option<(&Counts, f64)>,
    at_ns: u64,
) -> ClientLine<'a> {
    ClientLine {
        client: client.number,
        caller: &client.caller.name,
        export: &client.export,
        seconds: at_ns.saturating_sub(client.since_ns) as f64 / 1e9,
        busy: client.is_busy(),
        counts: CountsLine::from(now),
        rates: before.map(|(before, seconds)| RatesLine::between(before, now, seconds)),
    }
}

fn tell(stream: &Stream, server: &Server) {
    let mut before = None;
    loop {
        let now = Moment::now(server);
        let Ok(line) = serde_json::to_string(&now.line(before.as_ref())) else {
            return;
        };
        let line = line + "\n";
        // Who does not read gets no more.
        match stream.send(&[IoSlice::new(line.as_bytes())]) {
            Ok(sent) if sent == line.len() => {}
            _ => return,
        }
        before = Some(now);
        // The other end says nothing; when something comes, it is its end.
        if stream.wait(false, Some(INTERVAL)).unwrap_or(true) {
            return;
        }
    }
}

/// What is kept under these locks is never half done.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
