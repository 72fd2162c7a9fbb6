//! A session's outcome as a run, with what it means.

use rubus_change::apply::ChangeStore;
use rubus_command::{World, places};
use rubus_host::Live;
use rubus_measure::{BenchError, SessionOutcome, Target};
use rubus_verdict::verdict::so_far::has_answer_so_far;
use rubus_verdict::verdict::{Verdict, doubt_the_impossible, verdict};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::machine::{Machine, Power};
use rubus_vocabulary::nas::NasFacts;
use rubus_vocabulary::result::{Access, Figures, Run, TargetFacts, TargetKind};
use rubus_vocabulary::spec::Suite;

use crate::target::{OpenTarget, TargetIdentity};

/// A run with what it means and how it ended.
pub struct Measured {
    /// What was measured.
    pub run: Run,
    /// What it means.
    pub verdict: Verdict,
    /// Why the session ended early, if it did.
    pub ended_by: Option<BenchError>,
    /// Jobs that could not be run on this target, with the reason.
    pub left_out: Vec<String>,
}

impl Measured {
    /// A run that went to its end, and left nothing out that it does not say itself.
    pub fn of(run: Run) -> Measured {
        Measured { verdict: verdict(&run), run, ended_by: None, left_out: Vec::new() }
    }
}

/// The run that a session is to give, before its first result; none where it does not grow to a verdict on a disk of
/// this machine.
pub(super) fn before(open: &OpenTarget, suite: &Suite, machine: &Machine) -> Option<Run> {
    let identity = &open.identity;
    if identity.share.is_some() {
        return None;
    }
    let kind = match &open.target {
        Target::Directory { .. } => TargetKind::Directory,
        Target::File { .. } => TargetKind::File,
        Target::Device { .. } => TargetKind::Device,
        Target::Remote { .. } | Target::Ram { .. } => return None,
    };
    has_answer_so_far(suite).then(|| Run {
        rubus_version: env!("CARGO_PKG_VERSION").into(),
        target: TargetFacts {
            named: identity.named.clone(),
            kind,
            path: identity.path.display().to_string(),
            filesystem: identity.filesystem.clone(),
            device: identity.device.clone(),
            region_bytes: suite.region_bytes,
            access: Access::Direct,
            content: String::new(),
            network: None,
            link: None,
            cluster: None,
            nas: None,
        },
        machine: machine.clone(),
        suite: suite.name.clone(),
        seed: suite.seed,
        started: String::new(),
        elapsed_s: 0.0,
        bytes_written: 0,
        calibration: None,
        results: Vec::new(),
        doubts: Vec::new(),
        findings: Vec::new(),
        on: None,
        job_file: None,
        against: None,
        plans: None,
        figures: Figures::Disk,
    })
}

/// A session's outcome as a run, with what it means. It began at a moment of [`rubus_cluster::live::now_s`].
pub(super) fn judged(
    identity: TargetIdentity,
    nas: Option<NasFacts>,
    suite: &Suite,
    world: &World,
    machine: Machine,
    (started, began_s): (String, f64),
    outcome: SessionOutcome,
) -> Measured {
    let measured = outcome.target;
    let mut run = Run {
        rubus_version: env!("CARGO_PKG_VERSION").into(),
        target: TargetFacts {
            named: identity.named,
            kind: measured.kind,
            path: identity.path.display().to_string(),
            filesystem: identity.filesystem.or(measured.filesystem),
            device: identity.device,
            region_bytes: measured.region_bytes,
            access: measured.access,
            content: measured.content,
            network: measured.network,
            link: identity.link,
            cluster: None,
            nas,
        },
        machine,
        suite: suite.name.clone(),
        seed: suite.seed,
        started,
        elapsed_s: outcome.elapsed_s,
        bytes_written: outcome.bytes_written,
        calibration: outcome.calibration,
        results: outcome.results,
        doubts: outcome.doubts,
        findings: outcome.findings,
        on: None,
        job_file: None,
        against: None,
        plans: plans_in_force(),
        figures: Figures::Disk,
    };
    if let Some(cluster) = &identity.cluster {
        cluster.tell(&mut run, began_s);
    }
    run.doubts.extend(power_doubts(&run.machine.power, &world.power()));
    doubt_the_impossible(&mut run);
    run.findings.extend(rubus_verdict::findings::of(&run));
    rubus_verdict::findings::add_rules(&mut run);
    Measured { ended_by: outcome.ended_by, ..Measured::of(run) }
}

/// What this machine was changed by; a run carries it, so that a later one knows since when.
fn plans_in_force() -> Option<Vec<String>> {
    ChangeStore::at(places::changes()).in_force(&Live::new())
}

/// What the firmware remembers of the time between two looks, for boards on which the watcher has no file to watch.
pub fn power_doubts(before: &Power, after: &Power) -> Vec<Doubt> {
    match (before.throttling.get(), after.throttling.get()) {
        (Some(before), Some(after)) => after.events_since(before).doubts([]),
        _ => Vec::new(),
    }
}
