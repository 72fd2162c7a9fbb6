//! The frame of a measurement in parts, of the processor or of the memory: what is around its parts, whatever they measure.
//!
//! Each part fills its place in the figures, or is left out with the reason.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rubus_command::progress::Line;
use rubus_command::{Exit, General, Keeping, Terminal, World, must_be_live, signals};
use rubus_host::clock;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::result::{Access, Figures, Run, TargetFacts, TargetKind};

use crate::measuring::{Measured, power_doubts};
use crate::outputs::{self, Outputs, ResultOutputs};

/// A measurement that has begun.
pub struct PartsRun<'a> {
    general: &'a General,
    wanted: ResultOutputs<'a>,
    world: World,
    started: String,
    begun: Instant,
    /// As surveyed before.
    pub machine: Machine,
    /// Set when the user has had enough.
    pub cancel: Arc<AtomicBool>,
    /// Says on the terminal what is measured now.
    pub line: Line,
}

impl<'a> PartsRun<'a> {
    /// Begins to measure `what`, such as "a processor".
    ///
    /// # Errors
    /// When that cannot be, or its result could not be kept.
    pub fn begin(
        general: &'a General,
        json: Option<&'a Path>,
        keeping: &'a Keeping,
        what: &str,
    ) -> anyhow::Result<Self> {
        must_be_live(general, "a bench", what)?;
        let wanted = ResultOutputs { json, fio_json: None, keeping };
        outputs::check(&wanted)?;
        let cancel = signals::cancel_flag()?;
        let world = World::of(general)?;
        let machine = world.survey();
        Ok(PartsRun {
            general,
            wanted,
            world,
            started: clock::now_rfc3339(),
            begun: clock::now(),
            machine,
            cancel,
            line: Line::new(Terminal::of(general)),
        })
    }

    /// Whether the user has had enough.
    pub fn is_interrupted(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// What the firmware says happened to the supply meanwhile.
    pub fn power_doubts(&self) -> Vec<Doubt> {
        power_doubts(&self.machine.power, &self.world.power())
    }

    /// Keeps the run and shows it; `complete` adds what only one kind of figures has.
    ///
    /// # Errors
    /// When an output fails.
    pub fn end(
        self,
        suite: &str,
        named: &str,
        figures: Figures,
        doubts: Vec<Doubt>,
        complete: impl FnOnce(Run) -> Run,
    ) -> anyhow::Result<Exit> {
        let elapsed_s = self.begun.elapsed().as_secs_f64();
        drop(self.line);
        let run = Run {
            rubus_version: env!("CARGO_PKG_VERSION").into(),
            machine: self.machine,
            target: no_disk(named),
            suite: suite.into(),
            seed: 0,
            started: self.started,
            elapsed_s,
            bytes_written: 0,
            calibration: None,
            results: Vec::new(),
            doubts,
            findings: Vec::new(),
            on: None,
            job_file: None,
            against: None,
            plans: None,
            figures,
        };
        let mut outputs = Outputs::new(self.general, self.wanted, 1);
        outputs.take(Measured::of(complete(run)))?;
        outputs.finish()
    }
}

/// What was measured where it is no disk, by what it is called.
fn no_disk(named: &str) -> TargetFacts {
    TargetFacts {
        named: named.into(),
        kind: TargetKind::Ram,
        path: named.into(),
        filesystem: None,
        device: None,
        region_bytes: 0,
        access: Access::Buffered,
        content: "nothing".into(),
        network: None,
        link: None,
        cluster: None,
        nas: None,
    }
}
