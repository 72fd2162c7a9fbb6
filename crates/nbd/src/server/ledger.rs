//! What is kept about an image or a device that is served, so that the next server knows whether its bytes are
//! those that clients know.
//!
//! A name, an inode and a label say which file it is, and not what is in it: a backup may have been copied into it, a
//! snapshot rolled back, a USB disk unplugged with what was not written yet. So its times and size are kept in memory
//! that outlives the server and not the machine (`/dev/shm`), with the moment of the last write of our own, and beside
//! the file in an extended attribute, which outlives both.
//!
//! The memory of an image that is gone is swept. The image may only have been moved, and written by others since. So a
//! server that finds the note of its own boot and no memory tells another generation, and only memory of images that
//! have such a note is swept.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rubus_host::clock::date_ns;
use rubus_host::files::shm_words::LiveWords;

use super::place::Place;
use crate::identity::Uuid;

/// Steps in which filesystems count time.
const STEP_NS: i64 = 20_000_000;
/// A write in flight when its server was killed has a timestamp at most this long after its request.
const UNDER_WAY_NS: i64 = 10_000_000_000;

/// What can be seen of what is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// This boot of the machine.
    pub boot: Uuid,
    pub size_bytes: u64,
    /// When a file was written and changed last, nanoseconds since 1970; none of a device, and none where another
    /// machine's clock dates it.
    pub times: Option<(i64, i64)>,
    /// The number that the kernel gave a disk when it came; another one after it was away.
    pub diskseq: Option<u64>,
}

/// What the last server of this boot has kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// What it saw when it began, or at its end.
    pub seen: Seen,
    /// As it told clients.
    pub epoch: Uuid,
    /// As it told clients.
    pub generation: u64,
    /// `seen` holds everything that it has written.
    pub is_whole: bool,
    /// Writes were under way when it was killed.
    pub is_under_way: bool,
    /// When it wrote last, nanoseconds since 1970.
    pub written_ns: i64,
}

/// What the last server has kept with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The boot in which that was.
    pub boot: Uuid,
    /// As it told clients.
    pub epoch: Uuid,
    /// As it told clients.
    pub generation: u64,
    /// Time of the last write and size when it ended, if it ended in order.
    pub ended: Option<(i64, u64)>,
}

/// What clients are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Changes when acknowledged writes may be lost.
    pub epoch: Uuid,
    /// Changes when the bytes may be others.
    pub generation: u64,
}

/// Decides what clients are told of what is there now. `fresh` is a new random number.
pub fn judge(now: &Seen, kept: Option<&Kept>, noted: Option<&Noted>, fresh: Uuid) -> Told {
    let noted_generation = noted.map_or(0, |noted| noted.generation);
    if let Some(kept) = kept.filter(|kept| kept.seen.boot == now.boot) {
        let was_away = match (kept.seen.diskseq, now.diskseq) {
            (Some(before), Some(now)) => before != now,
            _ => false,
        };
        let generation = kept.generation.max(noted_generation);
        return Told {
            epoch: if was_away { fresh } else { kept.epoch },
            generation: generation + u64::from(was_away || is_other(now, kept)),
        };
    }
    if let Some(noted) = noted.filter(|noted| noted.boot == now.boot) {
        // The memory of this boot's last server is gone, and with it what tells its writes from those of others.
        return Told { epoch: fresh, generation: noted.generation + 1 };
    }
    let is_other = noted.and_then(|noted| noted.ended).zip(now.times).is_some_and(
        |((written_ns, size_bytes), (now_ns, _))| {
            (written_ns, size_bytes) != (now_ns, now.size_bytes)
        },
    );
    Told { epoch: now.boot, generation: noted_generation + u64::from(is_other) }
}

/// Whether another program has written since.
fn is_other(now: &Seen, kept: &Kept) -> bool {
    if now.size_bytes != kept.seen.size_bytes {
        return true;
    }
    let (Some(before), Some(now)) = (kept.seen.times, now.times) else {
        return false;
    };
    if kept.is_whole {
        return before != now;
    }
    let late_ns = if kept.is_under_way { UNDER_WAY_NS } else { STEP_NS };
    now.0 > kept.written_ns.max(before.0).saturating_add(late_ns)
}

impl Noted {
    /// Reads the text that is kept with the file. Anything else is none.
    pub fn parse(text: &str) -> Option<Noted> {
        let words: Vec<&str> = text.split(' ').collect();
        let ["1", boot, epoch, generation, ended @ ..] = &words[..] else {
            return None;
        };
        Some(Noted {
            boot: Uuid::parse(boot)?,
            epoch: Uuid::parse(epoch)?,
            generation: generation.parse().ok()?,
            ended: match ended {
                [] => None,
                [written_ns, size_bytes] => {
                    Some((written_ns.parse().ok()?, size_bytes.parse().ok()?))
                }
                _ => return None,
            },
        })
    }
}

impl std::fmt::Display for Noted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "1 {} {} {}", self.boot, self.epoch, self.generation)?;
        match self.ended {
            Some((written_ns, size_bytes)) => write!(f, " {written_ns} {size_bytes}"),
            None => Ok(()),
        }
    }
}

/// The beginning of all names of ledgers.
pub const PREFIX: &str = "rubus-export-";

/// Forgets what is kept of images that are gone, which no server has open. Returns how many those were. `inode_at` looks
/// at the device and inode of a path.
///
/// # Errors
/// When the memory cannot be listed.
pub fn sweep(inode_at: &dyn Fn(&Path) -> io::Result<(u64, u64)>) -> io::Result<usize> {
    rubus_host::files::shm_words::sweep(PREFIX, &|words| {
        let place = words.get(at::PLACE..).and_then(Place::kept_in);
        place.is_some_and(|place| place.is_gone(inode_at))
    })
}

const VERSION: u64 = 1;
/// One page of 4 KiB.
const WORDS: usize = 512;
/// Length in earlier versions, which did not record the place.
const WORDS_WITHOUT_PLACE: usize = 17;

/// Places of the words.
mod at {
    pub const VERSION: usize = 0;
    pub const BOOT: usize = 1;
    pub const EPOCH: usize = 3;
    pub const GENERATION: usize = 5;
    pub const SIZE: usize = 6;
    pub const HAS_TIMES: usize = 7;
    pub const WRITTEN: usize = 8;
    pub const CHANGED: usize = 9;
    pub const HAS_DISKSEQ: usize = 10;
    pub const DISKSEQ: usize = 11;
    /// Writes that had begun when what was seen was written down.
    pub const COVERED: usize = 12;
    pub const BEGUN: usize = 13;
    pub const ENDED: usize = 14;
    pub const LAST: usize = 15;
    /// Where the image is, to the end.
    pub const PLACE: usize = 17;
}

/// The memory of one export.
#[derive(Debug)]
pub struct Ledger {
    words: LiveWords,
}

impl Ledger {
    /// What the last server of this boot left, if anything.
    pub fn find(name: &str) -> Option<Ledger> {
        let find = |count| LiveWords::find(name, count).ok()?;
        let words = find(WORDS).or_else(|| find(WORDS_WITHOUT_PLACE))?;
        let ledger = Ledger { words };
        (ledger.get(at::VERSION) == VERSION).then_some(ledger)
    }

    /// Allocates the memory of an export, filled with zeros.
    ///
    /// # Errors
    /// If the shared memory cannot be created.
    pub fn create(name: &str) -> std::io::Result<Ledger> {
        let words = LiveWords::create(name, WORDS)?;
        Ok(Ledger { words })
    }

    /// What is in it.
    pub fn kept(&self) -> Kept {
        let long = |at| Uuid(u128::from(self.get(at)) << 64 | u128::from(self.get(at + 1)));
        let begun = self.get(at::BEGUN);
        let times = (self.get(at::WRITTEN) as i64, self.get(at::CHANGED) as i64);
        Kept {
            seen: Seen {
                boot: long(at::BOOT),
                size_bytes: self.get(at::SIZE),
                times: (self.get(at::HAS_TIMES) == 1).then_some(times),
                diskseq: (self.get(at::HAS_DISKSEQ) == 1).then(|| self.get(at::DISKSEQ)),
            },
            epoch: long(at::EPOCH),
            generation: self.get(at::GENERATION),
            is_whole: self.get(at::COVERED) == begun,
            is_under_way: self.get(at::ENDED) != begun,
            written_ns: self.get(at::LAST) as i64,
        }
    }

    /// Keeps what is seen now, which holds everything that was written, and what clients are told.
    pub fn keep(&self, seen: &Seen, told: &Told) {
        let (written_ns, changed_ns) = seen.times.unwrap_or_default();
        self.put(at::VERSION, 0);
        self.put_long(at::BOOT, seen.boot);
        self.put(at::GENERATION, told.generation);
        self.put(at::SIZE, seen.size_bytes);
        self.put(at::HAS_TIMES, seen.times.is_some().into());
        self.put(at::WRITTEN, written_ns as u64);
        self.put(at::CHANGED, changed_ns as u64);
        self.put(at::HAS_DISKSEQ, seen.diskseq.is_some().into());
        self.put(at::DISKSEQ, seen.diskseq.unwrap_or_default());
        self.lost(told.epoch);
        // Those of a killed server that never ended are in what is seen.
        let begun = self.get(at::BEGUN);
        self.put(at::ENDED, begun);
        self.put(at::COVERED, begun);
        self.put(at::VERSION, VERSION);
    }

    /// Keeps where the image is, so that this memory is swept when it is no longer there; none where the next server
    /// would not notice that. Paths that are too long are not kept.
    pub fn keep_place(&self, place: Option<&Place>) {
        let room = self.words.words().get(at::PLACE..);
        if let Some(room) = room.filter(|room| !room.is_empty()) {
            Place::keep_in(place, room);
        }
    }

    /// Acknowledged writes may be lost: clients are told another epoch from now on.
    pub fn lost(&self, epoch: Uuid) {
        self.put_long(at::EPOCH, epoch);
    }

    /// A write of ours begins.
    #[inline]
    pub fn begins(&self) {
        self.put(at::LAST, date_ns() as u64);
        self.word(at::BEGUN).fetch_add(1, Ordering::AcqRel);
    }

    /// It has ended.
    #[inline]
    pub fn ended(&self) {
        self.put(at::LAST, date_ns() as u64);
        self.word(at::ENDED).fetch_add(1, Ordering::AcqRel);
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.words.words()[at]
    }

    fn get(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Acquire)
    }

    fn put(&self, at: usize, value: u64) {
        self.word(at).store(value, Ordering::Release);
    }

    fn put_long(&self, at: usize, Uuid(value): Uuid) {
        self.put(at, (value >> 64) as u64);
        self.put(at + 1, value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Uuid = Uuid(99);
    const SECOND: i64 = 1_000_000_000;

    fn seen() -> Seen {
        Seen {
            boot: Uuid(1),
            size_bytes: 1 << 20,
            times: Some((100 * SECOND, 100 * SECOND)),
            diskseq: None,
        }
    }

    fn kept() -> Kept {
        Kept {
            seen: seen(),
            epoch: Uuid(5),
            generation: 3,
            is_whole: true,
            is_under_way: false,
            written_ns: 100 * SECOND,
        }
    }

    fn written(seconds: i64) -> Seen {
        Seen { times: Some((seconds * SECOND, seconds * SECOND)), ..seen() }
    }

    fn told(epoch: u128, generation: u64) -> Told {
        Told { epoch: Uuid(epoch), generation }
    }

    #[test]
    fn an_image_that_nobody_touched_is_the_same() {
        assert_eq!(judge(&seen(), Some(&kept()), None, FRESH), told(5, 3));
        assert_eq!(judge(&seen(), None, None, FRESH), told(1, 0));
    }

    #[test]
    fn a_backup_copied_into_it_after_a_clean_end_is_another_generation() {
        // Also one that keeps the time of its last write: the time of the change cannot be set.
        let backup = Seen { times: Some((100 * SECOND, 101 * SECOND)), ..seen() };
        for now in [written(101), written(7), backup] {
            assert_eq!(judge(&now, Some(&kept()), None, FRESH), told(5, 4));
        }
        let shorter = Seen { size_bytes: 1 << 19, ..seen() };
        assert_eq!(judge(&shorter, Some(&kept()), None, FRESH), told(5, 4));
    }

    #[test]
    fn after_a_kill_our_own_writes_are_told_from_those_of_others() {
        let killed = Kept { is_whole: false, written_ns: 200 * SECOND, ..kept() };
        for ours in [150, 200] {
            let now = judge(&written(ours), Some(&killed), None, FRESH);
            assert_eq!(now, told(5, 3), "{ours}");
        }
        let others = judge(&written(201), Some(&killed), None, FRESH);
        assert_eq!(others, told(5, 4));
        let under_way = Kept { is_under_way: true, ..killed };
        let now = |seconds| judge(&written(seconds), Some(&under_way), None, FRESH);
        assert_eq!(now(203), told(5, 3), "it may have waited for others");
        assert_eq!(now(220), told(5, 4));
    }

    #[test]
    fn a_disk_that_was_away_may_have_lost_writes_and_have_others() {
        let disk = |diskseq| Seen { times: None, diskseq, ..seen() };
        let before = Kept { seen: disk(Some(7)), ..kept() };
        assert_eq!(judge(&disk(Some(7)), Some(&before), None, FRESH), told(5, 3));
        assert_eq!(judge(&disk(Some(9)), Some(&before), None, FRESH), told(99, 4));
        // Kernels before 5.15 do not count.
        assert_eq!(judge(&disk(None), Some(&before), None, FRESH), told(5, 3));
    }

    #[test]
    fn after_a_restart_of_the_machine_the_file_says_what_it_was() {
        let noted = Noted {
            boot: Uuid(8),
            epoch: Uuid(6),
            generation: 2,
            ended: Some((100 * SECOND, 1 << 20)),
        };
        let after = |noted: Noted, now: Seen| judge(&now, None, Some(&noted), FRESH);
        assert_eq!(after(noted, seen()), told(1, 2));
        assert_eq!(after(noted, written(90)), told(1, 3), "it was replaced");
        // It was cut off, so the time of the last write is unknown.
        let cut = Noted { ended: None, ..noted };
        assert_eq!(after(cut, written(90)), told(1, 2));
        // Memory of another boot counts for nothing.
        let old = Kept { seen: Seen { boot: Uuid(8), ..written(1) }, ..kept() };
        assert_eq!(judge(&seen(), Some(&old), Some(&noted), FRESH), told(1, 2));
    }

    #[test]
    fn without_its_memory_an_image_of_this_boot_is_another_generation() {
        // The image was moved, so its memory was swept; whether others wrote since is unknown.
        for ended in [None, Some((100 * SECOND, 1 << 20))] {
            let noted = Noted { boot: Uuid(1), epoch: Uuid(6), generation: 2, ended };
            assert_eq!(judge(&seen(), None, Some(&noted), FRESH), told(99, 3));
        }
    }

    #[test]
    fn a_generation_never_goes_back() {
        // A snapshot of the filesystem was rolled back, and the attribute with it.
        let noted = Noted { boot: Uuid(1), epoch: Uuid(5), generation: 1, ended: None };
        assert_eq!(judge(&seen(), Some(&kept()), Some(&noted), FRESH), told(5, 3));
        assert_eq!(judge(&written(50), Some(&kept()), Some(&noted), FRESH), told(5, 4));
    }

    fn kept_place(ledger: &Ledger) -> Option<Place> {
        Place::kept_in(ledger.words.words().get(at::PLACE..)?)
    }

    #[test]
    fn a_place_is_kept_with_a_path_of_any_length_that_fits() {
        let name = format!("rubus-place-test-{}", std::process::id());
        let ledger = Ledger::create(&name).unwrap();
        let kept = |path: &str| {
            let place = Place { path: path.into(), inode: (7, 12) };
            ledger.keep_place(Some(&place));
            kept_place(&ledger).map(|found| found == place)
        };
        let longest = (WORDS - at::PLACE - 3) * 8;
        for length in [1, 7, 8, 9, 300, longest] {
            assert_eq!(kept(&"x".repeat(length)), Some(true), "{length}");
        }
        assert_eq!(kept(&"x".repeat(longest + 1)), None);
        assert_eq!(kept("/a"), Some(true));
        ledger.keep_place(None);
        assert_eq!(kept_place(&ledger), None);
        rubus_host::files::shm_words::forget(&name).unwrap();
    }

    #[test]
    fn memory_of_an_earlier_version_is_found_and_never_swept() {
        let name = format!("{PREFIX}old-{}", std::process::id());
        let words = LiveWords::create(&name, WORDS_WITHOUT_PLACE).unwrap();
        let old = Ledger { words };
        old.keep(&seen(), &told(5, 3));
        drop(old);
        let old = Ledger::find(&name).expect("it is there");
        assert_eq!(old.kept().generation, 3);
        old.keep_place(Some(&Place { path: "/gone".into(), inode: (7, 12) }));
        assert_eq!(kept_place(&old), None);
        rubus_host::files::shm_words::forget(&name).unwrap();
    }

    #[test]
    fn what_is_noted_with_the_file_comes_back() {
        for ended in [None, Some((-5, 7))] {
            let noted = Noted { boot: Uuid(1), epoch: Uuid(2), generation: 3, ended };
            assert_eq!(Noted::parse(&noted.to_string()), Some(noted));
        }
        for wrong in ["", "2 a b c", "1 x y 3", "1"] {
            assert_eq!(Noted::parse(wrong), None);
        }
    }

    #[test]
    fn memory_outlives_the_server_and_knows_what_was_under_way() {
        let name = format!("rubus-export-test-{}", std::process::id());
        assert!(Ledger::find(&name).is_none());
        let ledger = Ledger::create(&name).unwrap();
        let disk = Seen { diskseq: Some(0), ..seen() };
        ledger.keep(&disk, &told(5 << 64 | 4, 3));
        assert!(ledger.kept().is_whole);
        ledger.begins();
        ledger.ended();
        ledger.begins();
        drop(ledger);
        let ledger = Ledger::find(&name).expect("it is there");
        let kept = ledger.kept();
        assert_eq!((kept.seen, kept.epoch, kept.generation), (disk, Uuid(5 << 64 | 4), 3));
        assert!(!kept.is_whole && kept.is_under_way);
        assert!(kept.written_ns > seen().times.unwrap().0);
        ledger.keep(&seen(), &told(5, 3));
        let kept = ledger.kept();
        assert!(kept.is_whole && !kept.is_under_way && kept.seen == seen());
        rubus_host::files::shm_words::forget(&name).unwrap();
    }
}
