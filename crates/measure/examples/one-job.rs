//! Runs one job of random 4 KiB operations on a file or block device and prints what it took:
//! `one-job read|write TARGET [--depth N] [--lanes N] [--hipri] [--ring] [--block BYTES] [--seconds N | --operations N]`.
//!
//! For comparing the engine with other programs where the whole of rubus is not at hand: a single static
//! program, the same loops and the same accounts as a suite has. `write` destroys what is on TARGET. A warm-up
//! of half a second (of writes with `--operations`, a tenth of them) does not count in operations and seconds.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use rubus_measure::{Event, Queueing, Session, Target, WatchPaths, run};
use rubus_vocabulary::result::JobResult;
use rubus_vocabulary::spec::{Content, Direction, Job, Pattern, Suite};
use rustix::fs::OFlags;

const USAGE: &str = "usage: one-job read|write TARGET [--depth N] [--lanes N] [--hipri] [--ring] [--block BYTES] \
                     [--seconds N | --operations N]";

type Failure = Box<dyn std::error::Error>;

/// What was typed.
struct Wanted {
    direction: Direction,
    path: PathBuf,
    depth: u32,
    block_bytes: u32,
    seconds: f64,
    operations: Option<u64>,
    queueing: Queueing,
}

fn wanted(mut words: impl Iterator<Item = String>) -> Result<Wanted, Failure> {
    let direction = match words.next().as_deref() {
        Some("read") => Direction::Read,
        Some("write") => Direction::Write,
        _ => return Err(USAGE.into()),
    };
    let mut wanted = Wanted {
        direction,
        path: words.next().ok_or(USAGE)?.into(),
        depth: 32,
        block_bytes: 4096,
        seconds: 10.0,
        operations: None,
        queueing: Queueing::USUAL,
    };
    while let Some(option) = words.next() {
        let mut value = || words.next().ok_or(USAGE);
        match option.as_str() {
            "--depth" => wanted.depth = value()?.parse()?,
            "--lanes" => wanted.queueing.lanes = value()?.parse::<u32>()?.max(1),
            "--hipri" => wanted.queueing.polled = true,
            "--ring" => wanted.queueing.ring_for_one = true,
            "--block" => wanted.block_bytes = value()?.parse()?,
            "--seconds" => wanted.seconds = value()?.parse()?,
            "--operations" => wanted.operations = Some(value()?.parse()?),
            _ => return Err(USAGE.into()),
        }
    }
    Ok(wanted)
}

impl Wanted {
    /// The target, and its size in bytes. A device that is written to must be in no other use.
    fn target(&self) -> Result<(Target, u64), Failure> {
        let path = self.path.clone();
        let may_overwrite = self.direction == Direction::Write;
        let is_device = path.metadata()?.file_type().is_block_device();
        let flags = if may_overwrite { OFlags::DIRECT | OFlags::EXCL } else { OFlags::DIRECT };
        let mut file = File::options()
            .read(true)
            .write(may_overwrite)
            .custom_flags(if is_device { flags.bits() as i32 } else { 0 })
            .open(&path)?;
        let size_bytes = file.seek(SeekFrom::End(0))?;
        let target = if is_device {
            Target::Device { fd: file.into(), path, size_bytes, may_overwrite }
        } else {
            Target::File { path, may_overwrite }
        };
        Ok((target, size_bytes))
    }

    /// One job that goes on for all of its time, or until it has done its operations.
    fn suite(&self, size_bytes: u64) -> Suite {
        let block = self.block_bytes;
        let mut job = Job::new("one-job", self.direction, Pattern::Random, block, self.depth);
        job.stop.max_seconds = self.seconds;
        if let Some(operations) = self.operations {
            job.stop.max_seconds = 86_400.0;
            job.stop.max_bytes = operations.saturating_mul(u64::from(block));
        }
        job.stop.min_seconds = job.stop.max_seconds;
        Suite {
            name: "one-job".into(),
            region_bytes: size_bytes / u64::from(block) * u64::from(block),
            content: Content::Incompressible,
            seed: 1,
            max_seconds: None,
            jobs: vec![job],
        }
    }
}

fn print(result: &JobResult) {
    println!(
        "operations {} seconds {:.3} per_second {:.0} cpu_ns_per_operation {:.0} p50_ns {} p99_ns {} engine {} lanes {} polled {}",
        result.operations,
        result.elapsed_s,
        result.iops.value,
        result.cpu_ns_per_io,
        result.latency_ns.p50.unwrap_or(0),
        result.latency_ns.p99.unwrap_or(0),
        result.engine,
        result.lanes.unwrap_or(1),
        result.polled,
    );
    for doubt in &result.doubts {
        eprintln!("{}", doubt.what());
    }
}

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("one-job: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), Failure> {
    let wanted = wanted(std::env::args().skip(1))?;
    let (target, size_bytes) = wanted.target()?;
    let suite = wanted.suite(size_bytes);
    let session = Session {
        target,
        more_files: Vec::new(),
        needs: Vec::new(),
        suite: &suite,
        watch: WatchPaths::default(),
        cancel: &AtomicBool::new(false),
        queueing: wanted.queueing,
    };
    let mut left_out = None;
    let outcome = run(session, &mut |event: &Event<'_>| {
        if let Event::JobSkipped { reason, .. } = event {
            left_out = Some(reason.to_string());
        }
    })?;
    outcome.results.iter().for_each(print);
    match (left_out, outcome.ended_by) {
        (Some(reason), _) => Err(reason.into()),
        (None, Some(error)) => Err(error.into()),
        (None, None) => Ok(()),
    }
}
