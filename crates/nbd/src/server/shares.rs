//! Memory for data in flight: how much of it each client may hold, and which client is disconnected when
//! others wait for it.
//!
//! What a client asked for stays in memory until the client has taken it, so that a few who ask for much
//! and read nothing could hold everything. No client takes more than what it leaves to others, a part is
//! kept for small requests. When a client still has to wait, the server disconnects the largest of the
//! clients that read their replies too slowly.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::Duration;

use rubus_host::net::Stream;

use super::pool::lock;

/// As much any client may hold while there is anything left.
const SHARE_BYTES: usize = (1 << 20) + (4 << 10);
/// This part of all is for clients that hold no more than that.
const KEPT_PART: usize = 4;
/// While others wait a client takes its answers at least so fast, bytes per second, …
const MIN_DRAIN: u64 = 256 << 10;
/// … and all that it holds within this many seconds.
const DRAIN_SECONDS: u64 = 30;
/// How long a client is watched before it is judged.
const WINDOW_NS: u64 = 1_000_000_000;

/// The memory of all clients.
pub(super) struct Shares {
    all: usize,
    state: Mutex<State>,
    freed: Condvar,
}

struct State {
    free: usize,
    accounts: Vec<Weak<Account>>,
    judged_ns: u64,
}

/// What one client holds, and how it takes its answers.
pub(super) struct Account {
    held: AtomicUsize,
    /// Bytes of large answers that it has taken, and of large requests that it has sent.
    taken: AtomicU64,
    /// How long it was waited for with these, and since when it is again.
    awaited_ns: AtomicU64,
    awaited_since_ns: AtomicU64,
    is_evicted: AtomicBool,
    stream: Arc<Stream>,
    /// How it stood when it was looked at last.
    seen: Mutex<Seen>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    at_ns: u64,
    taken: u64,
    awaited_ns: u64,
}

impl Shares {
    pub fn new(bytes: usize) -> Shares {
        Shares {
            all: bytes,
            state: Mutex::new(State { free: bytes, accounts: Vec::new(), judged_ns: 0 }),
            freed: Condvar::new(),
        }
    }

    /// The account of a new client.
    pub fn open(&self, stream: Arc<Stream>) -> Arc<Account> {
        let account = Arc::new(Account {
            held: AtomicUsize::new(0),
            taken: AtomicU64::new(0),
            awaited_ns: AtomicU64::new(0),
            awaited_since_ns: AtomicU64::new(0),
            is_evicted: AtomicBool::new(false),
            stream,
            seen: Mutex::default(),
        });
        let mut state = lock(&self.state);
        if state.accounts.len() == state.accounts.capacity() {
            state.accounts.retain(|account| account.strong_count() > 0);
        }
        state.accounts.push(Arc::downgrade(&account));
        account
    }

    /// Takes `bytes` bytes for a client, if it may have them.
    pub fn take(&self, account: &Account, bytes: usize) -> bool {
        let mut state = lock(&self.state);
        if !may_take(self.all, state.free, account.held(), bytes) {
            return false;
        }
        state.free -= bytes;
        account.held.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    /// Gives bytes of a client back.
    pub fn give_back(&self, account: &Account, bytes: usize) {
        if bytes > 0 {
            account.held.fetch_sub(bytes, Ordering::Relaxed);
            lock(&self.state).free += bytes;
            self.freed.notify_all();
        }
    }

    /// Waits a while until some are given back.
    pub fn wait(&self, most: Duration) {
        let state = lock(&self.state);
        let _ = self.freed.wait_timeout(state, most);
    }

    /// Called when a client waits: disconnects the client that holds most among those that read their
    /// replies too slowly.
    pub fn make_room(&self, now_ns: u64) {
        let mut state = lock(&self.state);
        if now_ns.saturating_sub(state.judged_ns) < WINDOW_NS {
            return;
        }
        state.judged_ns = now_ns;
        let accounts: Vec<_> = state.accounts.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        let slow = accounts.iter().filter(|account| account.was_too_slow(now_ns));
        if let Some(account) = slow.max_by_key(|account| account.held()) {
            account.is_evicted.store(true, Ordering::Relaxed);
            account.stream.hang_up();
        }
    }
}

impl Account {
    fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The client is waited for from now on, with what it holds.
    pub fn awaits(&self, now_ns: u64) {
        self.awaited_since_ns.store(now_ns, Ordering::Relaxed);
    }

    /// The client has taken or sent `bytes` bytes.
    pub fn moved(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// It is not waited for any more.
    pub fn came(&self, now_ns: u64) {
        let since_ns = self.awaited_since_ns.swap(0, Ordering::Relaxed);
        let lasted_ns = now_ns.saturating_sub(since_ns);
        self.awaited_ns.fetch_add(lasted_ns, Ordering::Relaxed);
    }

    /// Whether it was hung up on because others waited.
    pub fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Relaxed)
    }

    /// Whether it took its answers too slowly since it was looked at last, which is now.
    fn was_too_slow(&self, now_ns: u64) -> bool {
        let since_ns = self.awaited_since_ns.load(Ordering::Relaxed);
        let lasts_ns = match since_ns {
            0 => 0,
            since_ns => now_ns.saturating_sub(since_ns),
        };
        let now = Seen {
            at_ns: now_ns,
            taken: self.taken.load(Ordering::Relaxed),
            awaited_ns: self.awaited_ns.load(Ordering::Relaxed) + lasts_ns,
        };
        let before = std::mem::replace(&mut *lock(&self.seen), now);
        let window_ns = now.at_ns - before.at_ns;
        // A look long ago says nothing about now.
        before.at_ns > 0
            && window_ns <= 10 * WINDOW_NS
            && is_too_slow(
                self.held(),
                now.taken - before.taken,
                now.awaited_ns.saturating_sub(before.awaited_ns),
                window_ns,
            )
    }
}

/// Whether a client that holds `held` bytes may take `bytes` more.
fn may_take(all: usize, free: usize, held: usize, bytes: usize) -> bool {
    let Some(left) = free.checked_sub(bytes) else {
        return false;
    };
    let more = held + bytes;
    if more <= SHARE_BYTES || free == all {
        return true;
    }
    left >= all / KEPT_PART && (held == 0 || more <= left)
}

/// Whether a client that holds `held` bytes and took `taken` bytes within the window, while it was
/// being sent replies for `awaited_ns` of it, keeps others waiting.
fn is_too_slow(held: usize, taken: u64, awaited_ns: u64, window_ns: u64) -> bool {
    let least = MIN_DRAIN.max(held as u64 / DRAIN_SECONDS);
    let wanted = u128::from(least) * u128::from(window_ns) / 1_000_000_000;
    held > 0 && awaited_ns >= window_ns / 2 && u128::from(taken) < wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: usize = 256 << 20;
    const MIB: usize = 1 << 20;
    const SECOND_NS: u64 = 1_000_000_000;

    /// The memory left after `clients` clients each took requests of this size up to their limits.
    fn left_by(clients: usize, request: usize) -> usize {
        let (mut free, mut held) = (ALL, vec![0; clients]);
        loop {
            let before = free;
            for held in &mut held {
                if may_take(ALL, free, *held, request) {
                    (free, *held) = (free - request, *held + request);
                }
            }
            if free == before {
                return free;
            }
        }
    }

    #[test]
    fn whatever_some_hold_there_is_a_share_for_the_next() {
        for clients in [1, 2, 4, 8, 64] {
            for request in [2 * MIB, 8 * MIB, 32 * MIB] {
                let left = left_by(clients, request);
                assert!(left >= ALL / KEPT_PART, "{clients} with {request}");
                assert!(may_take(ALL, left, 0, SHARE_BYTES));
            }
        }
        // One alone is not kept small.
        assert!(left_by(1, 8 * MIB) <= ALL / 2);
        assert!(may_take(64 * MIB, 64 * MIB, 0, 64 * MIB));
        assert!(!may_take(ALL, 4096, 0, 8192));
    }

    #[test]
    fn too_slow_is_who_is_sent_something_and_does_not_take_it() {
        let judged = |held, taken, awaited_ns| is_too_slow(held, taken, awaited_ns, SECOND_NS);
        assert!(judged(64 * MIB, 0, SECOND_NS));
        assert!(judged(64 * MIB, MIB as u64, SECOND_NS), "over a minute");
        assert!(!judged(64 * MIB, 3 * MIB as u64, SECOND_NS));
        assert!(!judged(MIB, 300 << 10, SECOND_NS));
        assert!(judged(MIB, 200 << 10, SECOND_NS));
        // It waits for the disk, not for the client.
        assert!(!judged(64 * MIB, 0, SECOND_NS / 10));
        assert!(!judged(0, 0, SECOND_NS));
    }

    #[test]
    fn the_largest_of_the_slow_is_hung_up_on_when_others_wait() {
        let shares = Shares::new(ALL);
        let client = || {
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            let stream = Stream::connected(ours.into(), "pair".into());
            (shares.open(Arc::new(stream)), theirs)
        };
        let [(small, _a), (large, _b), (quick, _c)] = [client(), client(), client()];
        assert!(shares.take(&small, 2 * MIB));
        assert!(shares.take(&large, 4 * MIB));
        assert!(shares.take(&quick, 8 * MIB));
        for account in [&small, &large, &quick] {
            account.awaits(1);
        }
        let evicted = || [&small, &large, &quick].map(|account| account.is_evicted());
        shares.make_room(2 * SECOND_NS);
        assert_eq!(evicted(), [false; 3], "nobody was watched yet");
        quick.moved(8 * MIB);
        shares.make_room(3 * SECOND_NS);
        assert_eq!(evicted(), [false, true, false]);
        shares.give_back(&large, 4 * MIB);
        quick.moved(8 * MIB);
        shares.make_room(4 * SECOND_NS);
        assert_eq!(evicted(), [true, true, false]);
    }
}
