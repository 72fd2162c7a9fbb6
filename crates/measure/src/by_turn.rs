//! One target measured turn by turn, in an order that the caller decides.
//!
//! Between two turns the caller changes what it likes on the machine, a setting for instance, so that its effect is
//! measured in pairs. The target stays open and its file stays the same.

use rubus_vocabulary::result::JobResult;
use rubus_vocabulary::spec::{Job, StopSpec, Suite};

use crate::error::BenchError;
use crate::event::{Event, Observer, Progress};
use crate::frame::{Session, check_room, rig_for, watch_of};
use crate::polling;
use crate::region::Region;
use crate::scheduler::Scheduler;
use crate::target::Opened;
use crate::watch::Watcher;
use rubus_host::ticks::now_ns;

/// A target that is measured turn by turn.
pub struct ByTurn<'s, 'a> {
    scheduler: Scheduler<'a>,
    suite: &'s Suite,
    observer: &'s mut dyn Observer,
    /// About how long the caller goes on, in seconds, for the observer.
    pub left_s: f64,
}

/// Opens the target, fills its file and lets `drive` measure turns on it. Gives what that gave, and how many bytes were
/// written in all.
///
/// # Errors
/// [`BenchError`] when the target cannot be opened or filled, has no room, or the user stops it meanwhile.
pub fn run_by_turn<T>(
    session: Session<'_>,
    observer: &mut dyn Observer,
    drive: impl FnOnce(&mut ByTurn<'_, '_>) -> T,
) -> Result<(T, u64), BenchError> {
    let start_ns = now_ns();
    let (suite, cancel) = (session.suite, session.cancel);
    let opened = Opened::new(session.target)?;
    check_room(&opened, suite, None)?;
    let watch = watch_of(session.watch, &opened);
    polling::check(&opened, session.queueing, watch.device.as_deref())?;
    let mut rig = rig_for(&opened, Watcher::start(watch), session.queueing);
    rig.use_default_read_ahead();
    let region = Region::single(opened, suite.region_bytes);
    let mut scheduler = Scheduler::new(&mut *rig, suite, vec![region], cancel, start_ns);
    scheduler.prepare(observer)?;
    let mut turns = ByTurn { scheduler, suite, observer, left_s: 0.0 };
    let driven = drive(&mut turns);
    let (_, bytes_written) = turns.scheduler.into_results();
    Ok((driven, bytes_written))
}

impl ByTurn<'_, '_> {
    /// Measures a job of the suite for some seconds: its result, then those of the jobs beside it; or why it cannot be run
    /// here.
    ///
    /// # Errors
    /// When the target fails or the user has stopped the session.
    pub fn turn(
        &mut self,
        index: usize,
        seconds: f64,
    ) -> Result<Result<Vec<JobResult>, String>, BenchError> {
        let job = timed(&self.suite.jobs[index], seconds);
        let left_s = self.left_s;
        let observer = &mut *self.observer;
        let mut quiet = |event: &Event<'_>| match event {
            // Each turn is a small part of the whole.
            Event::JobFinished { .. } => {}
            Event::Progress(progress) => {
                observer.event(&Event::Progress(Progress { left_s, ..*progress }));
            }
            other => observer.event(other),
        };
        self.scheduler.turn(index, &job, &mut quiet)
    }

    /// Nanoseconds on the clock of the measurement.
    pub fn now_ns(&self) -> u64 {
        now_ns()
    }
}

/// The job for exactly this time. Its limit of bytes holds for each turn.
fn timed(job: &Job, seconds: f64) -> Job {
    let mut timed = job.clone();
    let stop = |job: &Job| StopSpec {
        // Turns are compared with one another, so all are equally long.
        relative_half_width: 0.001,
        min_seconds: seconds,
        max_seconds: seconds,
        min_bytes: 0,
        max_bytes: job.stop.max_bytes,
    };
    timed.stop = stop(job);
    for beside in &mut timed.beside {
        beside.stop = stop(beside);
    }
    timed
}

#[cfg(test)]
mod tests {
    use rubus_vocabulary::spec::{Direction, Pattern};

    use super::*;

    #[test]
    fn a_turn_lasts_its_time_and_writes_within_its_limit() {
        let mut job = Job::new("x", Direction::Write, Pattern::Random, 4096, 1);
        job.stop.max_bytes = 1 << 20;
        let timed = timed(&job, 2.0);
        assert_eq!((timed.stop.min_seconds, timed.stop.max_seconds), (2.0, 2.0));
        assert_eq!(timed.stop.max_bytes, 1 << 20);
    }
}
