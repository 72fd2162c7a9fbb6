//! Where a step acts, and who runs those that are more than a file or a knob: [`super::LiveStepRunner`] on this machine, made-up
//! ones in tests.

use std::path::{Path, PathBuf};

use crate::volume::Volume;
use rubus_host::Hands;
use rubus_host::files::hands::parent_of;
use rubus_host::live::offline_root::place_within;

use super::{Action, Receipt, Step, StepError, failed};

/// A disk whose contents the user gave away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenAway {
    /// Its path in the plan.
    pub disk: PathBuf,
    /// What the user typed.
    pub words: String,
    /// Its fingerprint at that moment ([`crate::steps::fingerprint`]); none in journals of before.
    pub ends: Option<String>,
    /// The boot in which that was; none in journals of before.
    pub boot: Option<String>,
}

/// What a work may use.
pub struct Site<'a> {
    /// The change's name, "0003-desktop": unique on the machine, for temporary places.
    pub change: &'a str,
    /// The directory in which the change keeps its plan and journal. A work may keep files of its own there.
    pub directory: &'a std::path::Path,
    /// All steps of the plan.
    pub steps: &'a [Step],
    /// Number of the first step that waits for the trial, where the plan has one.
    pub before_trial: Option<usize>,
    /// Number of the step, from 0.
    pub step: usize,
    /// Whether it was begun before, in an attempt that was interrupted.
    pub is_begun_again: bool,
    /// The disks that the user gave away; of two confirmations for one disk the later counts.
    pub consents: &'a [GivenAway],
    /// The directory at which the step's own paths begin: that of another filesystem for a step on one.
    pub top: PathBuf,
    /// Told how far a long step has come.
    pub tell: &'a mut dyn FnMut(Progress),
}

impl Site<'_> {
    /// A path of the step, seen from here: within the filesystem that it acts on, whatever links that has.
    ///
    /// # Errors
    /// When its links lead to each other.
    pub fn place(&self, path: &Path) -> Result<PathBuf, StepError> {
        place_on(&self.top, path)
    }

    /// The name under which the step prepares a file beside its place.
    pub fn temporary(&self) -> String {
        temporary_name(self.change, self.step)
    }

    /// The name under which the step makes a file that then takes this path by a rename: in the same directory, and
    /// unique to this step.
    pub fn fresh_name(&self, path: &Path) -> PathBuf {
        parent_of(path).join(self.temporary())
    }
}

/// Where a path is of a filesystem that is seen at `top`.
pub(super) fn place_on(top: &Path, path: &Path) -> Result<PathBuf, StepError> {
    let tried =
        || format!("find {} on the filesystem mounted at {}", path.display(), top.display());
    place_within(top, path).map_err(|why| failed(tried(), why))
}

/// The last part of [`Site::fresh_name`].
pub(crate) fn temporary_name(change: &str, step: usize) -> String {
    format!(".rubus-{change}-{step}.new")
}

/// How far a long step has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What is done, "copied 12,345 of about 98,000 files".
    pub words: String,
    /// Share of the step that is done, 0 to 1.
    pub share: Option<f64>,
    /// Seconds that are left, as far as can be told.
    pub left_s: Option<f64>,
}

/// Runs the steps that act on disks, filesystems, memory and services ([`super::MachineStep`]).
///
/// Each may be interrupted by a power cut at any moment and is then begun again, or undone; both have to
/// work from whatever is there. Nothing that was there before a step is lost by undoing it, except what the user
/// gave away by confirming.
pub trait StepRunner {
    /// Does an action that is no file, directory, link or knob, and looks whether it is done.
    ///
    /// # Errors
    /// [`StepError`]; the step is then undone like any other.
    fn apply(
        &mut self,
        action: &Action,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError>;

    /// Undoes such an action that was done, half done, or only announced.
    ///
    /// # Errors
    /// [`StepError`]; nothing is lost then.
    fn undo(
        &mut self,
        action: &Action,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError>;

    /// Mounts a filesystem at a place of the change's own, and says where its top is. Already mounted
    /// there by an earlier call it stays so.
    ///
    /// # Errors
    /// [`StepError`] when there is no such filesystem, more than one, or it cannot be mounted.
    fn mount(&mut self, volume: &Volume, site: &Site<'_>) -> Result<PathBuf, StepError>;

    /// Unmounts what [`StepRunner::mount`] has mounted for this change, with everything on it durable.
    ///
    /// # Errors
    /// [`StepError`] when something is in the way.
    fn unmount_all(&mut self, change: &str) -> Result<(), StepError>;

    /// Called when a change is about to be undone, when its trial has passed, and when it has ended, each after the
    /// journal says so: other copies of the journal are updated.
    ///
    /// # Errors
    /// [`StepError`] when a copy cannot be updated; the change continues all the same.
    fn tell_others(&mut self, site: &Site<'_>, hands: &mut dyn Hands) -> Result<(), StepError>;
}

/// No works at all: for plans that change only files and knobs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStepRunner;

impl StepRunner for NoStepRunner {
    fn apply(
        &mut self,
        action: &Action,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        Err(refuse(action))
    }

    fn undo(
        &mut self,
        action: &Action,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        Err(refuse(action))
    }

    fn mount(&mut self, volume: &Volume, _: &Site<'_>) -> Result<PathBuf, StepError> {
        Err(StepError::Work {
            tried: format!("mount {}", volume.title),
            reason: "no filesystem can be mounted here".into(),
        })
    }

    fn unmount_all(&mut self, _: &str) -> Result<(), StepError> {
        Ok(())
    }

    fn tell_others(&mut self, _: &Site<'_>, _: &mut dyn Hands) -> Result<(), StepError> {
        Ok(())
    }
}

fn refuse(action: &Action) -> StepError {
    StepError::Work {
        tried: action.title(),
        reason: "nothing but files and knobs can be changed here".into(),
    }
}
