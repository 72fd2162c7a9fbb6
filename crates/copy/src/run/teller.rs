//! How far the copy is, and how long the rest will take.

use crate::receipt::{Pace, Progress, Stage};
use rubus_host::clock;
use rubus_host::files::copy_io::{Directory, Meta};

/// How often it is told.
const TELL_EVERY_NS: u64 = 250_000_000;
/// How long a part is from which the pace is learnt.
const PART_NS: u64 = 1_000_000_000;

/// Counts, and tells from time to time.
#[derive(Debug)]
pub(super) struct Teller {
    stage: Stage,
    begun_ns: u64,
    told_ns: u64,
    part_ns: u64,
    part_entries: u64,
    part_bytes: u64,
    entries: u64,
    bytes: u64,
    expected_entries: Option<u64>,
    expected_bytes: Option<u64>,
    pace: Pace,
}

impl Teller {
    /// `expected` are entries and bytes, as far as the filesystem tells them.
    pub(super) fn new(stage: Stage, expected: (Option<u64>, Option<u64>)) -> Self {
        let now = clock::monotonic_ns();
        Teller {
            stage,
            begun_ns: now,
            told_ns: now,
            part_ns: now,
            part_entries: 0,
            part_bytes: 0,
            entries: 0,
            bytes: 0,
            expected_entries: expected.0,
            expected_bytes: expected.1,
            pace: Pace::default(),
        }
    }

    pub(super) fn add(&mut self, entries: u64, bytes: u64) {
        self.entries += entries;
        self.bytes += bytes;
        self.part_entries += entries;
        self.part_bytes += bytes;
    }

    /// Tells if it is time. `met` is what there is in all, once that is known.
    pub(super) fn tell(&mut self, met: Option<(u64, u64)>, tell: &mut dyn FnMut(Progress)) {
        let now = clock::monotonic_ns();
        if now - self.part_ns >= PART_NS {
            let seconds = (now - self.part_ns) as f64 / 1e9;
            self.pace.add(self.part_entries, self.part_bytes, seconds);
            (self.part_entries, self.part_bytes, self.part_ns) = (0, 0, now);
        }
        if let Some((entries, bytes)) = met {
            (self.expected_entries, self.expected_bytes) = (Some(entries), Some(bytes));
        }
        if now - self.told_ns >= TELL_EVERY_NS {
            self.told_ns = now;
            tell(self.progress(now));
        }
    }

    /// Tells that only the device is waited for.
    pub(super) fn settle(&mut self, tell: &mut dyn FnMut(Progress)) {
        self.stage = Stage::Settling;
        let now = clock::monotonic_ns();
        tell(Progress { left_s: None, ..self.progress(now) });
    }

    pub(super) fn elapsed_s(&self) -> f64 {
        (clock::monotonic_ns() - self.begun_ns) as f64 / 1e9
    }

    fn progress(&self, now: u64) -> Progress {
        // More than was expected is a sign that the expectation was wrong, and then nothing is said.
        let still = |expected: Option<u64>, done: u64| expected.filter(|&all| all >= done);
        let expected_bytes = still(self.expected_bytes, self.bytes);
        // Where entries are not counted, they are taken to go on as they went.
        let by_bytes = || {
            let share = expected_bytes? as f64 / self.bytes.max(1) as f64;
            (self.bytes > 0).then_some((self.entries as f64 * share) as u64)
        };
        let entries = still(self.expected_entries, self.entries).or_else(by_bytes);
        let left_s = entries.zip(expected_bytes).and_then(|(entries, bytes)| {
            self.pace.left_s(entries.saturating_sub(self.entries), bytes.saturating_sub(self.bytes))
        });
        Progress {
            stage: self.stage,
            entries: self.entries,
            bytes: self.bytes,
            entries_expected: still(self.expected_entries, self.entries),
            bytes_expected: expected_bytes,
            elapsed_s: (now - self.begun_ns) as f64 / 1e9,
            left_s,
        }
    }
}

/// What the filesystem says about the size of a tree, where the tree is all of it: entries (where it counts them) and
/// bytes. The numbers of roots are those of ext4, btrfs and F2FS.
pub(super) fn expected(root: &Directory, meta: &Meta) -> (Option<u64>, Option<u64>) {
    const ROOTS: [(u64, u64); 3] = [(0xef53, 2), (0x9123_683e, 256), (0xf2f5_2010, 3)];
    let Ok(filesystem) = root.filesystem() else {
        return (None, None);
    };
    if !ROOTS.contains(&(filesystem.magic, meta.inode)) {
        return (None, None);
    }
    let entries = Some(filesystem.used_inodes).filter(|&entries| entries > 0);
    (entries, Some(filesystem.used_bytes))
}
