//! The way from a resolved target to a stored run. A checkup passes each step once: `limits` makes the suite, `announcement`
//! says what it writes, here it runs, `judging` says what came out, `keeping` stores it.

mod announcement;
mod judging;
mod keeping;
mod limits;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use rubus_cluster::live::now_s;
use rubus_command::{Terminal, World, signals};
use rubus_host::clock;
use rubus_measure::nas::{self, Watch};
use rubus_measure::{Queueing, Session, SessionOutcome, Target, WatchPaths};
use rubus_tune::cli::Shown;
use rubus_vocabulary::machine::{Machine, Power};
use rubus_vocabulary::result::Against;
use rubus_vocabulary::spec::{FileNeed, Suite};

use crate::progress::LiveLine;
use crate::target::{OpenTarget, TargetIdentity};

pub use announcement::announce;
pub use judging::{Measured, power_doubts};
use judging::{before, judged};
pub use keeping::{Kept, keep};
pub use limits::{SuiteLimits, suite_for, with_precision};

/// Where a suite runs: on one target, or on several files of which the first stands for the run.
pub struct Places {
    /// The target, or file number 0.
    pub target: OpenTarget,
    /// Files number 1, 2 and so on.
    pub more_files: Vec<Target>,
    /// What the files have to be before the first job.
    pub needs: Vec<FileNeed>,
}

impl From<OpenTarget> for Places {
    fn from(target: OpenTarget) -> Self {
        Places { target, more_files: Vec::new(), needs: Vec::new() }
    }
}

/// What is said when a session had to be cut off.
const NOT_KEPT: &str = "nothing was kept of this measurement";

/// Runs the suite and judges what came out.
///
/// # Errors
/// When the session could not begin at all.
pub fn measure(
    places: impl Into<Places>,
    suite: &Suite,
    world: &World,
    machine: Machine,
    cancel: &AtomicBool,
    queueing: Queueing,
    terminal: Terminal,
) -> anyhow::Result<Measured> {
    let Places { target, more_files, needs } = places.into();
    let reads_a_file = nas::reads_a_file(suite, &target.target, target.identity.share.as_ref());
    let mut line = LiveLine::new(terminal);
    if let Some(run) = before(&target, suite, &machine) {
        line = line.growing(run, terminal);
    }
    let OpenTarget { target, identity, .. } = target;
    let nas = identity
        .share
        .as_ref()
        .map(|share| Watch::start(share, world.files(), &machine, &identity.path, reads_a_file));
    let (started, began_s) = (clock::now_rfc3339(), now_s());
    let session = Session {
        watch: watch_paths(&identity, &machine.power),
        target,
        more_files,
        needs,
        suite,
        cancel,
        queueing,
    };
    let stalls = line.stalls();
    let run = || rubus_measure::run(session, &mut line);
    let outcome = signals::within_grace(NOT_KEPT, &stalls, run)??;
    let left_out = line.take_left_out();
    drop(line);
    let nas = nas.map(|watch| watch.finish(world.files(), &outcome.results));
    Ok(Measured {
        left_out,
        ..judged(identity, nas, suite, world, machine, (started, began_s), outcome)
    })
}

/// Runs the suite on two targets in turns, the baseline first, and judges what came out. The second
/// run has the rounds of both.
///
/// # Errors
/// When the sessions could not begin at all.
pub fn measure_in_turns(
    targets: [OpenTarget; 2],
    suite: &Suite,
    world: &World,
    machine: &Machine,
    cancel: &AtomicBool,
    queueing: Queueing,
    terminal: Terminal,
) -> anyhow::Result<[Measured; 2]> {
    let (started, began_s) = (clock::now_rfc3339(), now_s());
    let [baseline, other] = targets.map(|open| (open.target, open.identity));
    let session = |target: Target, identity: &TargetIdentity| Session {
        watch: watch_paths(identity, &machine.power),
        target,
        more_files: Vec::new(),
        needs: Vec::new(),
        suite,
        cancel,
        queueing,
    };
    let sessions = [session(baseline.0, &baseline.1), session(other.0, &other.1)];
    let mut line = LiveLine::new(terminal);
    let stalls = line.stalls();
    let run = || rubus_measure::run_in_turns(sessions, &mut line);
    let turned = signals::within_grace(NOT_KEPT, &stalls, run)??;
    drop(line);
    let [first, second] = turned.outcomes;
    let judge = |identity: TargetIdentity, outcome: SessionOutcome| {
        judged(identity, None, suite, world, machine.clone(), (started.clone(), began_s), outcome)
    };
    let baseline = judge(baseline.1, first);
    let mut other = judge(other.1, second);
    other.run.against =
        Some(Against { started, target: baseline.run.target.path.clone(), jobs: turned.jobs });
    Ok([baseline, other])
}

/// Where the watcher looks: the files that the survey found to hold something.
fn watch_paths(identity: &TargetIdentity, power: &Power) -> WatchPaths {
    let file = |source: &str| Some(PathBuf::from(source)).filter(|path| path.starts_with("/sys"));
    WatchPaths {
        device: identity.device.clone(),
        temperatures: power
            .temperatures
            .iter()
            .filter(|temperature| temperature.millicelsius.value().is_some())
            .filter_map(|temperature| file(temperature.millicelsius.source()))
            .collect(),
        throttled_word: power.throttling.value().and_then(|_| file(power.throttling.source())),
        undervoltage_alarm: power
            .undervoltage_alarm
            .value()
            .and_then(|_| file(power.undervoltage_alarm.source())),
        throttle_counters: Vec::new(),
        far_end: identity.far_end.clone(),
    }
}
