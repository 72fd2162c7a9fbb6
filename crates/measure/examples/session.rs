//! Runs the suite `quick` on a directory and prints what comes: `session DIRECTORY [threads]`.
//! For trying the engine out without the rest of the program.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use rubus_measure::{Event, Queueing, Session, Target, WatchPaths, run, suites};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("usage: session DIRECTORY [threads]")?);
    let queueing = Queueing { may_use_ring: arguments.next().is_none(), ..Queueing::USUAL };
    let free = rustix::fs::statvfs(&path)?;
    let suite = suites::quick(&path.display().to_string(), free.f_bavail * free.f_frsize, true)?;
    println!("will write at most {} bytes", suites::plan_writes(&suite, true));
    let cancel = AtomicBool::new(false);
    let session = Session {
        target: Target::Directory { path },
        suite: &suite,
        watch: WatchPaths::default(),
        cancel: &cancel,
        queueing,
        more_files: Vec::new(),
        needs: Vec::new(),
    };
    let outcome = run(session, &mut |event: &Event<'_>| match event {
        Event::Progress(progress) => eprintln!(
            "  {} {:?} {:.1} s {:.0}/s {:?} left {:.0} s",
            progress.job,
            progress.phase,
            progress.elapsed_s,
            progress.iops_now,
            progress.iops.map(|iops| (iops.value, iops.low, iops.high)),
            progress.left_s,
        ),
        Event::JobFinished { result, .. } => println!(
            "{:18} {:10} {:8.2} MB/s {:9.0}/s [{:.0}, {:.0}] p50 {:?} p99 {:?} max {:?} {:.1} s {:?} cpu/io {:.0} {:?}\n    {:?}",
            result.job,
            result.engine,
            result.bytes_per_second.value / 1e6,
            result.iops.value,
            result.iops.low,
            result.iops.high,
            result.latency_ns.p50,
            result.latency_ns.p99,
            result.latency_ns.max,
            result.elapsed_s,
            result.outcome,
            result.cpu_ns_per_io,
            result.stalls,
            result.doubts.iter().map(|doubt| doubt.what()).collect::<Vec<_>>(),
        ),
        other => println!("{other:?}"),
    })?;
    println!(
        "{:?} {:?} {:?} {} bytes written in {:.1} s; ended by {:?}",
        outcome.target,
        outcome.calibration,
        outcome.doubts,
        outcome.bytes_written,
        outcome.elapsed_s,
        outcome.ended_by,
    );
    Ok(())
}
