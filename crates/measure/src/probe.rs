//! Whether io_uring can be trusted with some work: a round trip whose result is checked, and a
//! look at who does the work.
//!
//! Kernels differ: there is none, it is forbidden, it misbehaves (32-bit ARM kernels did), or
//! it hands every operation on this file to a worker thread, which costs more than threads of our
//! own. All that is found out on the target itself, before anything is measured.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rubus_vocabulary::spec::Content;
use rustix::io::{Errno, pread};

use crate::ring::Ring;
use crate::work::Work;
use rubus_host::block::buffers::Buffers;

/// How long the trial may take before io_uring counts as broken.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes per operation of the trial.
const BLOCK_BYTES: u32 = 4096;
/// Operations in flight in the trial, at most.
const MAX_DEPTH: u32 = 32;

/// What the trial found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It works without the kernel's worker threads.
    Good,
    /// It works, but through the kernel's worker threads.
    Punts,
    /// It cannot be used; the reason in words.
    Bad(String),
}

/// What the trial found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) verdict: Verdict,
    /// Bytes that it wrote to the target.
    pub(crate) bytes_written: u64,
}

/// Tries io_uring with operations of the kind of `work` on its file. The start of the region is
/// overwritten if the work is to write. At most `operations` are made at once; their completions may be `polled`
/// for.
pub(crate) fn try_ring(work: &Work, operations: u32, polled: bool) -> Found {
    let depth = work.queue_depth.min(MAX_DEPTH).min(operations.max(1));
    let start = work.trial_from.unwrap_or(0);
    let room = work.region_bytes.saturating_sub(start);
    let fits = room >= u64::from(depth) * u64::from(BLOCK_BYTES);
    let may_write = work.trial_from.is_some();
    let writes = work.is_write() && fits && may_write && work.max_operations > u64::from(depth);
    let bytes_written = if writes { u64::from(depth) * u64::from(BLOCK_BYTES) } else { 0 };
    let trial = Trial {
        depth,
        // Far apart, so that the kernel cannot make one operation of many.
        stride: (room / u64::from(depth)) / u64::from(BLOCK_BYTES) * u64::from(BLOCK_BYTES),
        start,
        writes,
        polled,
    };
    let mut verdict = run_apart(&work.file, trial);
    let mut rounds = 1;
    if verdict == Verdict::Punts {
        // Once may be because something about the file had to be looked up first.
        verdict = run_apart(&work.file, trial);
        rounds = 2;
    }
    Found { verdict, bytes_written: rounds * bytes_written }
}

/// Tries a read of the first 4 KiB whose completion is polled for.
pub(crate) fn try_polled(file: &Arc<OwnedFd>) -> Verdict {
    let trial =
        Trial { depth: 1, start: 0, stride: u64::from(BLOCK_BYTES), writes: false, polled: true };
    run_apart(file, trial)
}

/// The operations of one trial.
#[derive(Clone, Copy)]
struct Trial {
    depth: u32,
    start: u64,
    stride: u64,
    writes: bool,
    polled: bool,
}

/// Runs the trial in a thread of its own: a ring that never answers must not hold the session for
/// ever, and the kernel's workers belong to the thread that made them necessary.
fn run_apart(file: &Arc<OwnedFd>, trial: Trial) -> Verdict {
    let (done, wait) = mpsc::channel();
    let file = Arc::clone(file);
    let spawned = std::thread::Builder::new()
        .name("ring-trial".into())
        .stack_size(256 << 10)
        .spawn(move || {
            // The receiver may be gone.
            let _ = done.send(round_trip(file.as_fd(), trial));
        });
    match spawned {
        Ok(_) => wait.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            let seconds = PATIENCE.as_secs();
            Verdict::Bad(format!("an operation did not end within {seconds} s"))
        }),
        Err(error) => Verdict::Bad(format!("no thread for the trial: {error}")),
    }
}

fn round_trip(file: BorrowedFd<'_>, trial: Trial) -> Verdict {
    match try_round_trip(file, trial) {
        Ok(verdict) => verdict,
        Err(Errno::NOSYS) => Verdict::Bad("this kernel has none".into()),
        Err(Errno::PERM | Errno::ACCESS) => Verdict::Bad("it is forbidden here".into()),
        Err(errno) => Verdict::Bad(std::io::Error::from(errno).to_string()),
    }
}

fn try_round_trip(file: BorrowedFd<'_>, trial: Trial) -> Result<Verdict, Errno> {
    let Trial { depth, start, stride, writes, polled } = trial;
    let block_bytes = BLOCK_BYTES as usize;
    let memory = || Buffers::new(depth as usize, block_bytes, Content::Incompressible, 7);
    let mut buffers = memory().map_err(|_| Errno::NOMEM)?;
    let mut check = memory().map_err(|_| Errno::NOMEM)?;
    let before = kernel_workers();
    let mut ring = Ring::new(depth, polled)?;
    ring.prepare(file, &buffers, BLOCK_BYTES, writes);
    for slot in 0..depth {
        ring.queue(slot as usize, start + u64::from(slot) * stride);
    }
    ring.enter(depth, depth)?;
    // Polling may come back early when the kernel has something else for the processor to do.
    while polled && ring.waiting() < depth {
        ring.enter(0, depth)?;
    }
    let mut short = None;
    let mut seen = 0_u64;
    for _ in 0..ring.waiting() {
        let completion = ring.take();
        seen |= 1 << (completion.slot() % 64);
        if !completion.is_whole(BLOCK_BYTES) {
            short = Some(completion.moved());
        }
    }
    ring.release();
    if let Some(moved) = short {
        return match moved {
            // The same that a positional operation meets; the measuring itself will report it.
            Err(Errno::IO | Errno::NOSPC | Errno::NODEV) => Ok(Verdict::Good),
            Err(errno) => Err(errno),
            Ok(bytes) => Ok(Verdict::Bad(format!("an operation moved only {bytes} bytes"))),
        };
    }
    if seen.count_ones() != depth {
        return Ok(Verdict::Bad("completions were lost".into()));
    }
    // The same as a plain read finds there?
    pread(file, check.first_mut(), start)?;
    if check.first_mut() != buffers.first_mut() {
        return Ok(Verdict::Bad("it moved wrong data".into()));
    }
    let has_new = kernel_workers().iter().any(|name| !before.contains(name));
    Ok(if has_new { Verdict::Punts } else { Verdict::Good })
}

/// The names of the kernel's workers that do this process's io_uring operations. One is named after the thread that made it
/// necessary, by its number outside of every container: what that is cannot be seen from within one, only that it is new.
fn kernel_workers() -> BTreeSet<String> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return BTreeSet::new();
    };
    let names = tasks.flatten().filter_map(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        name.starts_with("iou-wrk-").then(|| name.trim_end().to_string())
    });
    names.collect()
}
