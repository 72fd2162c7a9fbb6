//! A step on a filesystem that is mounted for it alone.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::volume::{DiskIdentity, FilesystemKind, Volume};
use rubus_host::{Files, Hands};

use super::commands::{Command, Names};
use super::{
    Action, Behaviour, Detail, FileSite, Reach, Receipt, Site, Step, StepError, StepRunner,
    Touches, Trace, TraceSite, failed, left,
};

/// One of the actions on files, on a filesystem that is mounted for it and unmounted again. Its paths begin
/// at the top of that filesystem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct On {
    /// The filesystem.
    pub volume: Volume,
    /// The action on it.
    pub action: Box<Action>,
    /// Whether undoing takes it back. A filesystem that this plan made is only left behind.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_undone: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde calls it so.
fn is_false(value: &bool) -> bool {
    !value
}

impl Behaviour for On {
    fn title(&self) -> String {
        format!("on {}: {}", self.volume.title, self.action.title())
    }

    fn proof_title(&self) -> String {
        self.action.proof_title()
    }

    fn undo_title(&self) -> String {
        if self.is_undone {
            format!("on {}: {}", self.volume.title, self.action.undo_title())
        } else {
            format!("not needed: {} is no longer used", self.volume.title)
        }
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        let details = self.action.behaviour().details().into_iter();
        details.filter(|detail| matches!(detail, Detail::Text { .. })).collect()
    }

    fn touches(&self) -> Touches<'_> {
        let inner = self.action.behaviour().touches();
        // The new root has the files of an earlier change too.
        let is_a_root = self.volume.kind != FilesystemKind::Vfat;
        Touches {
            others: inner.path.filter(|_| is_a_root).into_iter().cloned().collect(),
            makes_directory: inner.makes_directory,
            fills: inner.fills,
            ..Touches::default()
        }
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    /// What is on another filesystem is that one's business once it is in use.
    fn difference(&self, _: &dyn Files) -> Option<String> {
        None
    }

    fn shows_completion(&self) -> bool {
        false
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, _: &dyn Files) -> Trace {
        Trace::Unseen
    }
}

impl On {
    /// Does it, with the filesystem mounted.
    ///
    /// # Errors
    /// [`StepError`], also when the filesystem cannot be mounted.
    pub fn apply(
        &self,
        runner: &mut dyn StepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        site.top = runner.mount(&self.volume, site)?;
        match self.action.reach() {
            Reach::Files(step) => step.apply(&file_site(site, &site.temporary()), hands),
            Reach::Machine(_) => runner.apply(&self.action, site, hands),
            Reach::Elsewhere(_) => Err(nested(self)),
        }
    }

    /// Undoes it, with the filesystem mounted; one that this plan made stays as it is. Gives what has to be known besides where that
    /// could not be done and nothing is lost by it.
    ///
    /// # Errors
    /// As [`On::apply`].
    pub fn undo(
        &self,
        runner: &mut dyn StepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<(Receipt, Option<String>), StepError> {
        if !self.is_undone {
            return Ok((left(), None));
        }
        match (self.take_back(runner, site, hands), self.volume.kind) {
            (Ok(receipt), _) => Ok((receipt, None)),
            (Err(error), FilesystemKind::Vfat) => Ok((left(), Some(self.boot_copy_left(&error)))),
            (Err(error), _) if is_made_by(site.steps, &self.volume) => {
                Ok((left(), Some(self.new_root_left(&error))))
            }
            (Err(error), _) => Err(error),
        }
    }

    fn take_back(
        &self,
        runner: &mut dyn StepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        site.top = runner.mount(&self.volume, site)?;
        match self.action.reach() {
            Reach::Files(step) => step.undo(&file_site(site, &site.temporary()), hands),
            Reach::Machine(_) => runner.undo(&self.action, site, hands),
            Reach::Elsewhere(_) => Err(nested(self)),
        }
    }

    /// A copy of the boot partition that cannot be changed back, since its disk is not there: no reason to stop, but it has to
    /// be known.
    fn boot_copy_left(&self, error: &StepError) -> String {
        format!(
            "{} may still start the new root ({error}); before a board with that disk is started again, give its command line the \
             contents of the one on the card, or take the disk off",
            self.volume.title
        )
    }

    /// A new root that cannot be changed back, since its disk is not there: nothing starts it any more.
    fn new_root_left(&self, error: &StepError) -> String {
        format!(
            "{} still names itself as the root ({error}); should it be started again, an update there would make that last",
            self.volume.title
        )
    }
}

fn file_site<'a>(site: &'a Site<'_>, temporary: &'a str) -> FileSite<'a> {
    FileSite { top: &site.top, temporary }
}

fn nested(step: &On) -> StepError {
    failed(step.title(), "one filesystem is not mounted on another for it")
}

/// Whether a filesystem is one that a plan makes.
fn is_made_by(steps: &[Step], volume: &Volume) -> bool {
    steps.iter().any(
        |step| matches!(&step.action, Action::Format(made) if made.filesystem.uuid == volume.uuid),
    )
}
