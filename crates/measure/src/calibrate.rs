//! What the measuring itself costs: the engines on a device that does nothing.
//!
//! `/dev/null` takes a write without looking at it, so what remains is one trip into the kernel
//! and the engine's own book-keeping, the histogram included.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rubus_stats::Rng;
use rubus_vocabulary::result::Calibration;
use rubus_vocabulary::spec::{Content, Direction};
use rustix::fs::{Mode, OFlags, open};

use crate::engine::positional::{self, Read, Write};
use crate::engine::ring::Queue;
use crate::mailbox::{Mailbox, WorkerEnd};
use crate::walk::Uniform;
use crate::worker::{Tally, WorkerOrder};
use rubus_host::block::buffers::Buffers;
use rubus_host::process::schedstat::Account;
use rubus_host::ticks::{now_ns, thread_cpu_ns};

/// Bytes per operation.
const BLOCK_BYTES: u32 = 4096;
/// The pretended size of the target; nothing is ever stored.
const REGION_BYTES: u64 = 1 << 30;

/// What a number of operations cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Operations that were done.
    pub operations: u64,
    /// Processor time of the thread, user and system, in nanoseconds.
    pub cpu_ns: u64,
    /// Time that passed, in nanoseconds.
    pub elapsed_ns: u64,
}

impl Cost {
    /// Processor nanoseconds per operation.
    pub fn cpu_ns_per_io(&self) -> f64 {
        self.cpu_ns as f64 / self.operations.max(1) as f64
    }
}

/// Does `operations` random operations of 4 KiB on a device such as `/dev/null` (writes) or
/// `/dev/zero` (reads) with the engines of the real measurements: positional at depth 1, io_uring
/// above. Nothing but that and its set-up happens, so that an instruction counter sees the loop.
///
/// # Errors
/// In words, when the device cannot be opened, does not do what was asked, or there is no io_uring.
pub fn drive(
    device: &Path,
    direction: Direction,
    depth: u32,
    operations: u64,
) -> Result<Cost, String> {
    let file = open_null(device)?;
    let fd = file.as_fd();
    let walk = Uniform::new(REGION_BYTES, u64::from(BLOCK_BYTES), Rng::from_seed(1));
    let is_write = direction == Direction::Write;
    let content = Content::Incompressible;
    let words = |error: &dyn std::fmt::Display| format!("cannot prepare the engine: {error}");
    if depth <= 1 {
        let mut buffers =
            Buffers::new(1, BLOCK_BYTES as usize, content, 1).map_err(|error| words(&error))?;
        let block = buffers.first_mut();
        let stamps = Some(0);
        return time(operations, |tally| {
            if is_write {
                let write = Write { fd, block, stamps };
                positional::run(write, BLOCK_BYTES as usize, walk, tally)
            } else {
                positional::run(Read { fd, block }, BLOCK_BYTES as usize, walk, tally)
            }
        });
    }
    let mut queue = Queue::new(fd, depth, BLOCK_BYTES, is_write, content, 1, false)
        .map_err(|errno| words(&std::io::Error::from(errno)))?;
    time(operations, |tally| queue.run(walk, tally))
}

fn open_null(device: &Path) -> Result<OwnedFd, String> {
    open(device, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| {
        let error = std::io::Error::from(errno);
        format!("cannot open {}: {error}", device.display())
    })
}

fn time(operations: u64, run: impl FnOnce(&mut Tally) -> WorkerEnd) -> Result<Cost, String> {
    let start_ns = now_ns();
    let order = WorkerOrder {
        origin_ns: start_ns,
        began_ns: start_ns,
        max_operations: operations.max(1),
        block_bytes: BLOCK_BYTES,
        warm_up_ns: 0,
        warm_up_operations: 0,
    };
    let mut tally = Tally::new(Arc::new(Mailbox::default()), order, Account::of_this_thread());
    let cpu_ns = thread_cpu_ns();
    let end = run(&mut tally);
    let cost = Cost {
        operations: tally.done(),
        cpu_ns: thread_cpu_ns() - cpu_ns,
        elapsed_ns: now_ns() - start_ns,
    };
    match end {
        WorkerEnd::Failed(error) => Err(error),
        WorkerEnd::Stopped | WorkerEnd::Spent => Ok(cost),
    }
}

/// Measures the instrument on this machine; takes about a tenth of a second. Where there is no
/// io_uring the depth of 32 is absent and the depth of 1 stands for it.
///
/// # Errors
/// In words, when `/dev/null` cannot be used.
pub fn calibrate() -> Result<Calibration, String> {
    /// Best of this many tries: disturbances only ever add time.
    const TRIES: u32 = 5;
    const OPERATIONS: u64 = 10_000;
    let null = Path::new("/dev/null");
    let best = |depth| -> Result<f64, String> {
        let mut least = f64::INFINITY;
        for _ in 0..TRIES {
            let cost = drive(null, Direction::Write, depth, OPERATIONS)?;
            least = least.min(cost.cpu_ns_per_io());
        }
        Ok(least)
    };
    let at_depth_1 = best(1)?;
    Ok(Calibration {
        cpu_ns_per_io_depth_1: at_depth_1,
        cpu_ns_per_io_depth_32: best(32).unwrap_or(at_depth_1),
        clock_ns: clock_ns(),
    })
}

/// Reads the engine's clock `readings` times, for counting the instructions of one reading.
pub fn read_clock(readings: u64) {
    for _ in 0..readings {
        std::hint::black_box(now_ns());
    }
}

fn clock_ns() -> f64 {
    const READINGS: u64 = 1000;
    let mut least = u64::MAX;
    for _ in 0..5 {
        let start_ns = now_ns();
        read_clock(READINGS);
        least = least.min(now_ns() - start_ns);
    }
    least as f64 / (READINGS + 1) as f64
}
