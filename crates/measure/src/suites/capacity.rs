//! Is it as big as it says? Everything is written and read back, or a sample of a device.

use crate::marked_blocks::{BLOCK_BYTES, Sample};
use rubus_vocabulary::spec::{Content, Direction, Job, Operation, Pattern, Shape, StopSpec, Suite};

use super::{MIB, Room};
use crate::error::BenchError;

/// Free space that is left to other programs: at least 512 MiB ...
const MARGIN: u64 = 512 * MIB;
/// ... and at least this part of what is free: one in 20, 5 %.
const MARGIN_PART: u64 = 20;
/// Below this nothing is worth testing: 64 MiB.
const MIN: u64 = 64 * MIB;
/// The slowest device that is waited for, in bytes per second.
const SLOWEST: f64 = 1e6;
/// What a usual card does, in bytes per second.
const USUAL: f64 = 20e6;

/// What is to be left of a directory's free space, in bytes.
pub fn margin(free_bytes: u64) -> u64 {
    MARGIN.max(free_bytes / MARGIN_PART)
}

/// A sample where the target is large enough for one and not all of it is wanted, else everything.
pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    let (region_bytes, sample) =
        if room.is_free_space { (free_space(room)?, None) } else { whole_or_sample(room) };
    let jobs = match &sample {
        None => everything(region_bytes),
        Some(sample) => sampled(sample),
    };
    Ok(Suite {
        name: "capacity".into(),
        region_bytes,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: None,
        jobs,
    })
}

/// How much of a directory's free space is filled.
fn free_space(room: &Room) -> Result<u64, BenchError> {
    let most = room.bytes.saturating_sub(margin(room.bytes));
    let wanted = room.region_bytes.or(room.budget_bytes).unwrap_or(most);
    let bytes = wanted.min(room.budget_bytes.unwrap_or(u64::MAX)) / MIB * MIB;
    if bytes < MIN || (room.region_bytes.is_none() && most < MIN) {
        return Err(BenchError::NoSpace {
            path: room.path.clone(),
            what: "of free space",
            available_bytes: room.bytes,
            needed_bytes: MARGIN + MIN,
            remedy: "there is hardly anything free to be tested; delete what is not needed",
        });
    }
    Ok(bytes.min(room.bytes))
}

fn whole_or_sample(room: &Room) -> (u64, Option<Sample>) {
    let size = room.bytes / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
    if room.is_whole {
        let wanted = room.region_bytes.unwrap_or(size);
        return (wanted.min(size) / BLOCK_BYTES as u64 * BLOCK_BYTES as u64, None);
    }
    let mut run_bytes = room.region_bytes;
    if let Some(budget) = room.budget_bytes {
        // Two runs, and the single blocks, which are few.
        let fitting = budget / 5 * 2;
        run_bytes = Some(run_bytes.unwrap_or(fitting).min(fitting))
            .filter(|run| Sample::new(size, None).is_some_and(|usual| usual.run_bytes > *run));
    }
    (size, Sample::new(size, run_bytes).or_else(|| Sample::new(size, None)))
}

fn everything(bytes: u64) -> Vec<Job> {
    vec![
        run("capacity-write", Direction::Write, 0, bytes),
        run("capacity-read", Direction::Read, 0, bytes),
    ]
}

/// The single blocks are read first: what was written after them has driven them out of every
/// cache.
fn sampled(sample: &Sample) -> Vec<Job> {
    use Direction::{Read, Write};
    let length = sample.run_bytes;
    vec![
        run("capacity-write", Write, 0, length),
        singles("capacity-scatter", Write, sample),
        run("capacity-write-after", Write, length, length),
        singles("capacity-gather", Read, sample),
        run("capacity-read", Read, 0, 2 * length),
    ]
}

fn job(name: &str, direction: Direction, pattern: Pattern, block: u32, bytes: u64) -> Job {
    Job {
        operation: Operation::Stamp,
        stop: StopSpec {
            relative_half_width: 0.10,
            min_seconds: bytes as f64 / USUAL,
            max_seconds: 60.0 + bytes as f64 / SLOWEST,
            min_bytes: bytes,
            max_bytes: bytes,
        },
        ..Job::new(name, direction, pattern, block, 1)
    }
}

fn run(name: &str, direction: Direction, from: u64, length: u64) -> Job {
    let mut job = job(name, direction, Pattern::Sequential, MIB as u32, length);
    job.shape =
        Some(Box::new(Shape { offset_bytes: from, span_bytes: Some(length), ..Shape::default() }));
    job
}

/// Where the single blocks are follows from where they begin: behind both runs.
fn singles(name: &str, direction: Direction, sample: &Sample) -> Job {
    let block = BLOCK_BYTES as u32;
    let bytes = sample.singles() * u64::from(block);
    let mut job = job(name, direction, Pattern::Random, block, bytes);
    // Small blocks take their time, not the bus's.
    job.stop.min_seconds = sample.singles() as f64 / 200.0;
    job.stop.max_seconds = 60.0 + sample.singles() as f64 / 5.0;
    job.shape = Some(Box::new(Shape {
        offset_bytes: sample.from_bytes,
        span_bytes: Some(sample.end_bytes - sample.from_bytes),
        ..Shape::default()
    }));
    job
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::plan_writes;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_margin_stays_free() {
        for free in [GIB, 10 * GIB, 1 << 50] {
            let suite = suite(&Room::new("/x", free, true)).expect("there is room");
            let left = free - suite.region_bytes;
            assert!(left >= 512 * MIB && left >= free / 20, "{left} of {free}");
            assert_eq!(plan_writes(&suite, true), suite.region_bytes);
        }
        assert!(suite(&Room::new("/x", 520 * MIB, true)).is_err());
        let mut room = Room::new("/x", 10 * GIB, true);
        room.region_bytes = Some(GIB);
        assert_eq!(suite(&room).expect("there is room").region_bytes, GIB);
    }

    #[test]
    fn a_device_is_sampled_unless_all_of_it_is_wanted() {
        let mut room = Room::new("/dev/x", 64 * GIB, false);
        let sampled = suite(&room).expect("there is room");
        assert_eq!(sampled.region_bytes, 64 * GIB);
        assert!(plan_writes(&sampled, false) < 600 * MIB);
        room.is_whole = true;
        let whole = suite(&room).expect("there is room");
        assert_eq!(plan_writes(&whole, false), 64 * GIB);
        let tiny = suite(&Room::new("/dev/x", 5 * MIB, false)).expect("it is tested whole");
        assert_eq!(plan_writes(&tiny, false), 5 * MIB);
    }

    #[test]
    fn a_budget_is_kept() {
        for (bytes, is_free_space) in [(64 * GIB, true), (64 * GIB, false)] {
            let mut room = Room::new("/x", bytes, is_free_space);
            room.budget_bytes = Some(100 * MIB);
            let suite = suite(&room).expect("there is room");
            let planned = plan_writes(&suite, is_free_space);
            assert!(planned <= 100 * MIB, "{planned}");
        }
    }
}
