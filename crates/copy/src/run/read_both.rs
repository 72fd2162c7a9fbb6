//! The contents of pairs of files, read from both sides and compared byte by byte, by several threads.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::receipt::{Listing, Remark, path_text};
use rubus_host::files::copy_io::{Directory, Failure, File};
use rubus_vocabulary::checksum::xxh64;

/// Read from each side at once.
const BUFFER_BYTES: usize = 128 << 10;
/// A piece of a sample.
const PIECE_BYTES: u64 = 1 << 20;

/// How much of a file is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reading {
    Whole,
    /// Each piece with this chance.
    Sample {
        share: f64,
        seed: u64,
    },
}

/// A file that both trees have with the same length.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) path: Vec<u8>,
    pub(super) bytes: u64,
    pub(super) has_holes: bool,
    pub(super) reading: Reading,
}

/// Why two files are not the same.
enum Unlike {
    At(u64),
    Ends(&'static str, u64),
    Failed(&'static str, Failure),
}

/// Compares the contents of files, by their paths below two roots.
pub(super) fn read_both(
    from: &Directory,
    to: &Directory,
    jobs: &[Job],
    workers: usize,
    stop: Option<&AtomicBool>,
) -> Read {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Read::default());
    std::thread::scope(|threads| {
        for _ in 0..workers.min(jobs.len()) {
            threads.spawn(|| {
                let mut read = Read::default();
                let mut buffers = (vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]);
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                        break;
                    }
                    one(from, to, job, &mut buffers, &mut read);
                }
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.bytes += read.bytes;
                all.differences.join(read.differences);
            });
        }
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn one(
    from: &Directory,
    to: &Directory,
    job: &Job,
    buffers: &mut (Vec<u8>, Vec<u8>),
    read: &mut Read,
) {
    let pieces = pieces(job);
    if pieces.is_empty() {
        return;
    }
    let compared = open(from, &job.path)
        .map_err(|failure| Unlike::Failed("the source", failure))
        .and_then(|a| {
            let b = open(to, &job.path).map_err(|f| Unlike::Failed("the target", f))?;
            b.not_needed(0, 0);
            let compared = pieces
                .iter()
                .try_for_each(|&piece| compare_piece(&a, &b, job, piece, buffers, read));
            a.not_needed(0, 0);
            b.not_needed(0, 0);
            compared
        });
    let what = match compared {
        Ok(()) => return,
        Err(Unlike::At(offset)) => format!("differs in its contents, at byte {offset}"),
        Err(Unlike::Ends(side, offset)) => format!("ends in {side} at byte {offset}"),
        Err(Unlike::Failed(side, failure)) => format!("cannot be compared, {side}: {failure}"),
    };
    read.differences.add(Remark { path: path_text(&job.path), what });
}

/// The pieces of a file that are read, as begin and end.
fn pieces(job: &Job) -> Vec<(u64, u64)> {
    let (share, seed) = match job.reading {
        Reading::Whole => return vec![(0, job.bytes)],
        Reading::Sample { share, seed } => (share, seed),
    };
    let sum = xxh64(&job.path, seed);
    let is_chosen = |piece: &u64| {
        let draw = xxh64(&piece.to_le_bytes(), sum);
        (draw as f64) < share * u64::MAX as f64
    };
    (0..job.bytes.div_ceil(PIECE_BYTES))
        .filter(is_chosen)
        .map(|piece| {
            let start = piece * PIECE_BYTES;
            (start, (start + PIECE_BYTES).min(job.bytes))
        })
        .collect()
}

fn open(root: &Directory, path: &[u8]) -> Result<File, Failure> {
    let (parent, name) = match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[][..], path),
    };
    root.open_beneath(parent)?.read_file(OsStr::from_bytes(name))
}

fn compare_piece(
    a: &File,
    b: &File,
    job: &Job,
    (start, end): (u64, u64),
    (left, right): &mut (Vec<u8>, Vec<u8>),
    read: &mut Read,
) -> Result<(), Unlike> {
    let mut at = start;
    while at < end {
        if job.has_holes {
            // Where both are a hole there is nothing to read.
            let data = |file: &File| match file.next_data(at) {
                Ok(Some((data, _))) => data,
                Ok(None) => end,
                Err(_) => at,
            };
            let next = data(a).min(data(b)).min(end);
            read.bytes += next - at;
            at = next;
            if at == end {
                break;
            }
        }
        let want = (end - at).min(BUFFER_BYTES as u64) as usize;
        let (left, right) = (&mut left[..want], &mut right[..want]);
        let got = a.read_at(left, at);
        let got = got.map_err(|failure| Unlike::Failed("the source", failure))?;
        let other = b.read_at(right, at);
        let other = other.map_err(|failure| Unlike::Failed("the target", failure))?;
        if let Some(offset) = (0..got.min(other)).find(|&i| left[i] != right[i]) {
            return Err(Unlike::At(at + offset as u64));
        }
        if got != other || got < want {
            let side = if got < other { "the source" } else { "the target" };
            return Err(Unlike::Ends(side, at + got.min(other) as u64));
        }
        at += want as u64;
        read.bytes += want as u64;
    }
    Ok(())
}

/// What the reading found.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) bytes: u64,
    pub(super) differences: Listing<Remark>,
}
