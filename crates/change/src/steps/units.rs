//! systemd's units, read again, and services that start again.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::volume::DiskIdentity;
use rubus_host::{Files, Hands};

use super::commands::{Command, Names, command, for_people, undo_for_people};
use super::{
    Behaviour, Detail, LiveStepRunner, MachineStep, Receipt, Site, StepError, Touches, Trace,
    TraceSite, left, receipt,
};

/// Is there while systemd is the machine's first process; see sd_booted(3).
pub const SYSTEMD_RUNS: &str = "/run/systemd/system";

/// On which way through a plan a step does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Only when the plan is applied.
    Applied,
    /// Only when it is undone.
    Undone,
}

/// systemd reloads all units. Undoing does so too: as the first step of a plan it lets systemd forget the units that
/// undoing the others has removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct ReadUnits {}

impl Behaviour for ReadUnits {
    fn title(&self) -> String {
        "let systemd read its units".into()
    }

    fn proof_title(&self) -> String {
        "systemd says that it has".into()
    }

    fn undo_title(&self) -> String {
        "let systemd read its units, without those that are gone".into()
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        vec![read_units()]
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        vec![read_units()]
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches::default()
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, _: &dyn Files) -> Option<String> {
        None
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, _: &dyn Files) -> Trace {
        Trace::Unseen
    }
}

impl MachineStep for ReadUnits {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        runner.read(self, hands.files())
    }

    fn undo(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        runner.read(self, hands.files())
    }
}

/// A service of systemd starts again and reads its settings. Undoing goes through the steps from the last to the first, so
/// a plan has this step twice: before the files with the settings, for the undo, and behind them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct RestartService {
    /// Its unit: "systemd-journald.service".
    pub unit: String,
    /// In which of the two directions it starts again.
    pub when: When,
}

impl Behaviour for RestartService {
    fn title(&self) -> String {
        match self.when {
            When::Applied => format!("restart {}", self.unit),
            When::Undone => format!("nothing yet: undoing restarts {} here", self.unit),
        }
    }

    fn proof_title(&self) -> String {
        match self.when {
            When::Applied => "systemd says that it is active".into(),
            When::Undone => "not needed: nothing is done".into(),
        }
    }

    fn undo_title(&self) -> String {
        match self.when {
            When::Applied => format!("not needed: {} is restarted later", self.unit),
            When::Undone => format!("restart {}", self.unit),
        }
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        match self.when {
            When::Applied => restart(&self.unit),
            When::Undone => Vec::new(),
        }
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        match self.when {
            When::Applied => Vec::new(),
            When::Undone => restart(&self.unit),
        }
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches::default()
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, _: &dyn Files) -> Option<String> {
        None
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, _: &dyn Files) -> Trace {
        Trace::Unseen
    }
}

impl MachineStep for RestartService {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        runner.restart(&for_people(self), hands.files())
    }

    fn undo(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        runner.restart(&undo_for_people(self), hands.files())
    }
}

impl LiveStepRunner {
    /// A machine without systemd has nothing that keeps units in mind.
    fn read(&mut self, step: &ReadUnits, files: &dyn Files) -> Result<Receipt, StepError> {
        if !files.exists(Path::new(SYSTEMD_RUNS)) {
            return Ok(receipt("read at the next start", "no systemd runs"));
        }
        self.run_all(&for_people(step))?;
        Ok(receipt("the units are read", "the units are read"))
    }

    /// A service reads its settings at its next start anyway, where no systemd runs.
    fn restart(&mut self, commands: &[Command], files: &dyn Files) -> Result<Receipt, StepError> {
        if commands.is_empty() {
            return Ok(left());
        }
        if !files.exists(Path::new(SYSTEMD_RUNS)) {
            return Ok(receipt("restarted at the next start", "no systemd runs"));
        }
        self.run_all(commands)?;
        Ok(receipt("it is active", "it is active"))
    }
}

/// The second fails where the service ended at once: its start counts as done before.
fn restart(unit: &str) -> Vec<Command> {
    vec![command("systemctl", &["restart", unit]), command("systemctl", &["is-active", unit])]
}

pub(super) fn read_units() -> Command {
    command("systemctl", &["daemon-reload"])
}
