//! Orphans: requests of connections that have ended, which a slow disk still works on.
//!
//! A client whose connection broke connects again and writes what it got no answer to. Were an old
//! write then done after a new one, acknowledged data would be overwritten. So each disk knows its
//! connections, and a request that finds one of them ended waits while that one writes in the same
//! place. A flush waits for all that it writes, and so do reads of the place: what a client has read
//! may not change without a write of its own. What has not begun
//!
//! - is given up if the client disconnected without a goodbye, since it expects no reply;
//! - is done if the client disconnected in order, as the protocol wants, except where another
//!   connection has written after that: it is as if it had been done before.
//!
//! Connections that are open have no order among each other. What is waited for is in the hands of
//! the disk and waits for no request, so nothing waits in a circle.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use rubus_host::net::{self, Stream};

use super::disk::Disk;
use super::thread_pool::lock;
use super::transmission::Work;

/// How often a busy connection looks whether others have ended.
const LOOK_NS: u64 = 500_000;
/// A request that waits for an orphan looks after this time whether its own client is still there.
const PAUSE: Duration = Duration::from_millis(20);
/// Places that were written after a connection ended, at most; one more write waits.
const MAX_OVERTAKEN: usize = 4096;

/// It has not ended, or no other connection has noticed.
const OPEN: u8 = 0;
/// Its client is gone without a word, and no other connection has noticed: what was requested is done.
const SILENT: u8 = 1;
/// Its client is gone and another connection is here. Only its own thread can tell in which way it went.
const ENDED: u8 = 2;
/// Its client disconnected in order and another connection is here.
const ORDERLY: u8 = 3;
/// Its client is gone without a word and another connection is here: nothing more begins.
const BROKEN: u8 = 4;

/// The connections of all disks.
#[derive(Default)]
pub(super) struct AllConnections(Mutex<Vec<Weak<DiskConnections>>>);

/// The connections of one disk.
struct DiskConnections {
    disk: Arc<dyn Disk>,
    all: Mutex<Vec<Arc<Connection>>>,
    /// Changes with `all`.
    version: AtomicU64,
    /// How many of them are beyond [`SILENT`].
    ended: AtomicUsize,
    /// Something of one that has ended is done.
    changed: Condvar,
}

/// A connection, as the others see it.
pub(super) struct Connection {
    stream: Arc<Stream>,
    state: AtomicU8,
    /// What its own thread writes now: begin and end, which is 0 when nothing is written.
    here: [AtomicU64; 2],
    /// What the threads of the pool write now.
    pooled: Mutex<Vec<Range<u64>>>,
    /// What others have written since it ended.
    overtaken: Mutex<Vec<Range<u64>>>,
    of: Weak<DiskConnections>,
}

/// A connection's own part. Dropped when nothing of it is under way.
pub(super) struct Member {
    own: Arc<Connection>,
    disk: Arc<DiskConnections>,
    /// The others, as they were at this version.
    others: Vec<Arc<Connection>>,
    version: u64,
    looked_ns: u64,
}

/// The bytes of a disk that a request depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Touched {
    Nothing,
    Range(Range<u64>),
    Everything,
}

/// A connection has ended and nothing more of it begins.
#[derive(Debug)]
pub(super) struct Abandoned;

/// Something that is being written. Dropped when it is done.
pub(super) struct Writing<'a> {
    connection: &'a Connection,
    range: Range<u64>,
    is_pooled: bool,
    overtaken: Vec<Range<u64>>,
}

impl Touched {
    pub fn by(work: &Work) -> Touched {
        let range = |offset: u64, length: u64| Touched::Range(offset..offset + length);
        match *work {
            Work::Read { offset, length, .. } | Work::Write { offset, length, .. } => {
                range(offset, u64::from(length))
            }
            Work::Trim { offset, length, .. }
            | Work::Zero { offset, length, .. }
            | Work::Extents { offset, length, .. } => range(offset, length),
            Work::Flush => Touched::Everything,
            Work::Prefetch { .. } | Work::Nothing => Touched::Nothing,
        }
    }

    fn overlaps(&self, written: &Range<u64>) -> bool {
        match self {
            Touched::Nothing => false,
            Touched::Range(range) => overlap(range, written),
            Touched::Everything => true,
        }
    }
}

/// Which bytes a request changes.
pub(super) fn written_by(work: &Work) -> Option<Range<u64>> {
    match *work {
        Work::Write { offset, length, .. } => Some(offset..offset + u64::from(length)),
        Work::Trim { offset, length, .. } | Work::Zero { offset, length, .. } => {
            Some(offset..offset + length)
        }
        Work::Read { .. }
        | Work::Flush
        | Work::Prefetch { .. }
        | Work::Extents { .. }
        | Work::Nothing => None,
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl AllConnections {
    /// Adds a connection to those of its disk.
    pub fn enter(&self, disk: &Arc<dyn Disk>, stream: &Arc<Stream>) -> Member {
        let mut disks = lock(&self.0);
        disks.retain(|known| known.strong_count() > 0);
        let mut known = disks.iter().filter_map(Weak::upgrade);
        let is_of_disk = |known: &Arc<DiskConnections>| {
            std::ptr::addr_eq(Arc::as_ptr(&known.disk), Arc::as_ptr(disk))
        };
        let connections = known.find(is_of_disk).unwrap_or_else(|| {
            let new = Arc::new(DiskConnections {
                disk: Arc::clone(disk),
                all: Mutex::default(),
                version: AtomicU64::new(1),
                ended: AtomicUsize::new(0),
                changed: Condvar::new(),
            });
            disks.push(Arc::downgrade(&new));
            new
        });
        drop(disks);
        connections.enter(stream)
    }
}

impl DiskConnections {
    fn enter(self: Arc<Self>, stream: &Arc<Stream>) -> Member {
        let own = Arc::new(Connection {
            stream: Arc::clone(stream),
            state: AtomicU8::new(OPEN),
            here: [AtomicU64::new(0), AtomicU64::new(0)],
            pooled: Mutex::default(),
            overtaken: Mutex::default(),
            of: Arc::downgrade(&self),
        });
        let mut all = lock(&self.all);
        all.push(Arc::clone(&own));
        self.version.fetch_add(1, Ordering::SeqCst);
        drop(all);
        Member { own, disk: self, others: Vec::new(), version: 0, looked_ns: 0 }
    }

    /// Notes that a connection has ended, and that another one is here.
    fn end(&self, connection: &Connection) {
        let _all = lock(&self.all);
        let after = match connection.state.load(Ordering::SeqCst) {
            OPEN => ENDED,
            SILENT => BROKEN,
            _ => return,
        };
        connection.state.store(after, Ordering::SeqCst);
        self.ended.fetch_add(1, Ordering::SeqCst);
    }

    /// Wakes those that wait for an orphan.
    fn change(&self) {
        // Under the lock, so that it does not come between a look and the wait that follows it.
        drop(lock(&self.all));
        self.changed.notify_all();
    }
}

impl Member {
    /// The connection, for the threads of the pool.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.own
    }

    /// Whether a request that came then has to wait for orphans.
    #[inline]
    pub fn has_to_wait(&mut self, work: &Work, came_ns: u64) -> bool {
        let version = self.disk.version.load(Ordering::SeqCst);
        if version != self.version || came_ns.wrapping_sub(self.looked_ns) >= LOOK_NS {
            self.look(version, came_ns);
        }
        self.disk.ended.load(Ordering::SeqCst) > 0 && self.is_behind(work)
    }

    /// Looks whether other connections have ended.
    #[cold]
    fn look(&mut self, version: u64, came_ns: u64) {
        self.looked_ns = came_ns;
        if version != self.version {
            let all = lock(&self.disk.all);
            let others = all.iter().filter(|other| !Arc::ptr_eq(other, &self.own));
            self.others = others.cloned().collect();
            self.version = version;
        }
        if self.others.is_empty() {
            return;
        }
        let streams: Vec<&Stream> = self.others.iter().map(|other| &*other.stream).collect();
        let Ok(ended) = net::ended(&streams) else {
            // The next request looks again.
            self.looked_ns = 0;
            return;
        };
        for (other, has_ended) in self.others.iter().zip(ended) {
            // The server may have ended it, whatever its client did.
            if has_ended || other.state.load(Ordering::SeqCst) == SILENT {
                self.disk.end(other);
            }
        }
    }

    /// Whether something of a connection that ended is in the way. What has not begun of it is overtaken.
    #[cold]
    fn is_behind(&self, work: &Work) -> bool {
        let (touched, written) = (Touched::by(work), written_by(work));
        let mut is_behind = false;
        for other in &self.others {
            match other.state.load(Ordering::SeqCst) {
                ENDED | ORDERLY => {
                    let has_room = written.as_ref().is_none_or(|range| other.overtake(range));
                    is_behind |= !has_room || other.writes(&touched);
                }
                BROKEN => is_behind |= other.writes(&touched),
                _ => {}
            }
        }
        is_behind
    }

    /// Waits for a moment, or until something of an orphan is done.
    pub fn wait(&mut self, work: &Work) {
        let all = lock(&self.disk.all);
        if self.is_behind(work) {
            let waited = self.disk.changed.wait_timeout(all, PAUSE);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        } else {
            drop(all);
        }
        if net::ended(&[&self.own.stream]).is_ok_and(|ended| ended == [true]) {
            self.disk.end(&self.own);
        }
    }

    /// Whether its client is gone and it is still to be told in which way.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.own.state.load(Ordering::Relaxed) == ENDED
    }

    /// Its client disconnected in order.
    pub fn ends_in_order(&self) {
        self.becomes(&[(ENDED, ORDERLY)]);
    }

    /// Its client is gone without a word.
    pub fn broke(&self) {
        self.becomes(&[(ENDED, BROKEN), (OPEN, SILENT)]);
    }

    fn becomes(&self, changes: &[(u8, u8)]) {
        let _all = lock(&self.disk.all);
        let state = self.own.state.load(Ordering::SeqCst);
        if let Some((_, after)) = changes.iter().find(|(before, _)| *before == state) {
            self.own.state.store(*after, Ordering::SeqCst);
        }
    }

    /// Begins to write there, in the connection's own thread.
    ///
    /// # Errors
    /// If the connection broke: none of its requests may begin any more.
    #[inline]
    pub fn begin(&self, range: Range<u64>) -> Result<Writing<'_>, Abandoned> {
        let [begin, end] = &self.own.here;
        begin.store(range.start, Ordering::Relaxed);
        // Either the thread that ends the connection sees this range, or this thread sees the end.
        end.store(range.end, Ordering::SeqCst);
        self.own.begun(range, false)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut all = lock(&self.disk.all);
        all.retain(|other| !Arc::ptr_eq(other, &self.own));
        if !matches!(self.own.state.load(Ordering::SeqCst), OPEN | SILENT) {
            self.disk.ended.fetch_sub(1, Ordering::SeqCst);
        }
        self.disk.version.fetch_add(1, Ordering::SeqCst);
        drop(all);
        self.disk.changed.notify_all();
    }
}

impl Connection {
    /// Begins to write there, in a thread of the pool.
    ///
    /// # Errors
    /// If the connection broke: none of its requests may begin any more.
    pub fn begin(&self, range: Range<u64>) -> Result<Writing<'_>, Abandoned> {
        lock(&self.pooled).push(range.clone());
        self.begun(range, true)
    }

    #[inline]
    fn begun(&self, range: Range<u64>, is_pooled: bool) -> Result<Writing<'_>, Abandoned> {
        let mut writing = Writing { connection: self, range, is_pooled, overtaken: Vec::new() };
        match self.state.load(Ordering::SeqCst) {
            OPEN | SILENT => Ok(writing),
            BROKEN => Err(Abandoned),
            _ => {
                let overtaken = lock(&self.overtaken);
                let all = overtaken.iter().filter(|range| overlap(range, &writing.range));
                writing.overtaken = all.cloned().collect();
                Ok(writing)
            }
        }
    }

    /// Whether it writes there.
    fn writes(&self, touched: &Touched) -> bool {
        let [begin, end] = &self.here;
        let end = end.load(Ordering::SeqCst);
        let here = begin.load(Ordering::Relaxed)..end;
        end > 0 && touched.overlaps(&here)
            || lock(&self.pooled).iter().any(|range| touched.overlaps(range))
    }

    /// Another connection writes there: nothing of this one that begins later does. False when too many places
    /// would have to be kept.
    fn overtake(&self, range: &Range<u64>) -> bool {
        let mut all = lock(&self.overtaken);
        if all.iter().any(|known| known.start <= range.start && range.end <= known.end) {
            return true;
        }
        let is_full = all.len() == MAX_OVERTAKEN;
        match all.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ if is_full => return false,
            _ => all.push(range.clone()),
        }
        true
    }
}

impl Writing<'_> {
    /// Whether others have written there later, so that only [`Writing::parts`] are to be written.
    #[inline]
    pub fn is_overtaken(&self) -> bool {
        !self.overtaken.is_empty()
    }

    /// The parts that no later write has overwritten.
    pub fn parts(&self) -> Vec<Range<u64>> {
        let mut overtaken = self.overtaken.clone();
        overtaken.sort_by_key(|range| range.start);
        let (mut at, mut parts) = (self.range.start, Vec::new());
        for range in overtaken {
            if at < range.start {
                parts.push(at..range.start);
            }
            at = at.max(range.end);
        }
        if at < self.range.end {
            parts.push(at..self.range.end);
        }
        parts
    }
}

impl Drop for Writing<'_> {
    #[inline]
    fn drop(&mut self) {
        let connection = self.connection;
        if self.is_pooled {
            let mut all = lock(&connection.pooled);
            if let Some(at) = all.iter().position(|range| *range == self.range) {
                all.swap_remove(at);
            }
        } else {
            connection.here[1].store(0, Ordering::SeqCst);
        }
        if connection.state.load(Ordering::SeqCst) > SILENT {
            if let Some(disk) = connection.of.upgrade() {
                disk.change();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_later_is_left_out() {
        let connection = Connection {
            stream: Arc::new(stream()),
            state: AtomicU8::new(ORDERLY),
            here: [AtomicU64::new(0), AtomicU64::new(0)],
            pooled: Mutex::default(),
            overtaken: Mutex::default(),
            of: Weak::new(),
        };
        for range in [30..40, 40..45, 90..95, 10..12, 31..33] {
            assert!(connection.overtake(&range));
        }
        let parts = |range: Range<u64>| {
            let writing = connection.begin(range).expect("it ended in order");
            let pair = |part: Range<u64>| (part.start, part.end);
            let parts = writing.parts().into_iter().map(pair).collect::<Vec<_>>();
            writing.is_overtaken().then_some(parts)
        };
        assert_eq!(parts(45..90), None);
        assert_eq!(parts(10..12), Some(vec![]));
        assert_eq!(parts(0..100), Some(vec![(0, 10), (12, 30), (45, 90), (95, 100)]));
        assert_eq!(parts(35..50), Some(vec![(45, 50)]));
        assert!(lock(&connection.pooled).is_empty(), "all of it is done");
    }

    #[test]
    fn a_flush_depends_on_everything_and_a_read_on_its_place() {
        let read = Work::Read { offset: 10, length: 5, whole: false };
        for (work, expected) in [(Work::Flush, true), (read, true), (Work::Nothing, false)] {
            assert_eq!(Touched::by(&work).overlaps(&(14..20)), expected, "{work:?}");
        }
        assert!(!Touched::by(&read).overlaps(&(15..20)));
        assert!(!Touched::by(&read).overlaps(&(0..10)));
    }

    fn stream() -> Stream {
        let (ours, _) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
        Stream::connected(ours.into(), "pair".into())
    }
}
