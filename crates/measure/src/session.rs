//! A session: a suite on one target of this machine, from opening it to the last result.

use std::path::Path;

use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::spec::{Direction, Operation, Suite};

use crate::error::BenchError;
use crate::event::Observer;
use crate::frame::{
    Done, Frame, Session, SessionOutcome, check_room, measured_target, rig_for, watch_of,
};
use crate::loop_device;
use crate::polling;
use crate::region::Region;
use crate::scheduler::{Scheduler, group, regions_of};
use crate::suites::only_reads;
use crate::target::{Opened, Target};
use rubus_host::ticks::now_ns;

/// Runs the session on this machine.
///
/// # Errors
/// [`BenchError`] when nothing could be measured at all: the target cannot be opened, is too
/// small, or the suite has no job for it. What goes wrong later is in the outcome.
pub fn run(
    session: Session<'_>,
    observer: &mut dyn Observer,
) -> Result<SessionOutcome, BenchError> {
    if session.suite.jobs.iter().any(|job| job.operation.is_of_file()) {
        return crate::tree::session::run(session, observer);
    }
    if session.suite.jobs.iter().any(|job| job.operation == Operation::Stamp) {
        return crate::capacity::session::run(session, observer);
    }
    let start_ns = now_ns();
    let targets = std::iter::once(&session.target).chain(&session.more_files);
    let may_write: Vec<bool> = targets.map(Target::may_write).collect();
    let suite = if harms(session.suite, &may_write) {
        only_reads(session.suite)
    } else {
        session.suite.clone()
    };
    let opened = Opened::new(session.target)?;
    check_room(&opened, &suite, session.needs.first())?;
    let mut more = Vec::new();
    for (number, target) in session.more_files.into_iter().enumerate() {
        let opened = Opened::new(target)?;
        check_room(&opened, &suite, session.needs.get(number + 1))?;
        more.push(opened);
    }
    let watch = watch_of(session.watch, &opened);
    polling::check(&opened, session.queueing, watch.device.as_deref())?;
    let target = measured_target(&opened, &suite);
    let through_cache = watch
        .device
        .as_deref()
        .and_then(|device| loop_device::through_cache(Path::new("/sys"), device));
    let far_end = watch.far_end.clone();
    let (mut frame, watcher) = Frame::begin(start_ns, target, watch, observer);
    frame.doubt(through_cache.map(|device| Doubt::LoopThroughCache { device }));
    let mut rig = rig_for(&opened, watcher, session.queueing);
    let opened = std::iter::once(opened).chain(more);
    let regions = opened.enumerate().map(|(number, opened)| match session.needs.get(number) {
        Some(need) => Region::of_several(opened, need),
        None => Region::single(opened, suite.region_bytes),
    });
    let mut scheduler =
        Scheduler::new(&mut *rig, &suite, regions.collect(), session.cancel, start_ns);
    let ended_by = scheduler.run_all(observer);
    let region_bytes = scheduler.region_bytes();
    let (results, bytes_written) = scheduler.into_results();
    let done = Done { results, findings: Vec::new(), bytes_written, region_bytes, ended_by };
    let unseen = far_end.and_then(|far_end| far_end.trouble()).map(|why| {
        let what = format!("processor time of the server ({why})");
        Doubt::NotWatched { what }
    });
    Ok(frame.end(done, unseen))
}

/// Whether a job writes to a file whose contents must stay.
fn harms(suite: &Suite, may_write: &[bool]) -> bool {
    let mut members = suite.jobs.iter().flat_map(group);
    members.any(|job| {
        let mixes = job.shape.as_ref().and_then(|shape| shape.read_percent);
        let writes = job.direction == Direction::Write || mixes.is_some();
        let mut files = regions_of(job).into_iter();
        writes && files.any(|number| may_write.get(number) == Some(&false))
    })
}
