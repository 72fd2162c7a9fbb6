//! The plan and its journal on every root of a change, so that whichever starts knows what was done.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::volume::{DiskIdentity, Volume};
use rubus_host::files::hands::replace;
use rubus_host::live::hands::make_directories;
use rubus_host::{Files, Hands};

use super::commands::{Command, Names};
use super::site::place_on;
use super::{
    Action, Behaviour, Detail, LiveStepRunner, MachineStep, Receipt, Site, StepError, Touches,
    Trace, TraceSite, failed, keep_note, left, mounts, receipt,
};

/// The file that says which roots have a copy.
const ROOTS: &str = "roots.json";
/// Where a board looks for changes.
const CHANGES: &str = "/var/lib/rubus/changes";
/// Where the copy of a tree notes what it has done.
const COPY_NOTES: &str = ".rubus-copy";
/// More than any of these files has.
const MAX_BYTES: usize = 64 << 20;
/// What is copied, in this order: a change is there once its journal is.
const COPIED: [&str; 3] = ["plan.json", ROOTS, "journal"];

/// The plan and its journal are put on another root as well, so that the change can be looked at, finished and
/// undone from there too. Undoing leaves them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct KeepJournal {
    /// The other root.
    pub on: Volume,
}

impl Behaviour for KeepJournal {
    fn title(&self) -> String {
        format!("keep this plan and its journal on {} too", self.on.title)
    }

    fn proof_title(&self) -> String {
        "both are read back from there".into()
    }

    fn undo_title(&self) -> String {
        format!("not needed: they stay on {}", self.on.title)
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches { moves_root: true, ..Touches::default() }
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

impl MachineStep for KeepJournal {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let on = &self.on;
        let tried = format!("keep the plan and its journal on {}", on.title);
        if runner.image.is_some() {
            let top = runner.mount_volume(on, site.change)?;
            runner.clear_manifest(&top, hands)?;
            runner.copy_to(on, site, hands)?;
            return Ok(receipt("kept", "kept"));
        }
        let here = mounts::running_root(hands.files()).map_err(|why| failed(&tried, why))?;
        if here.uuid == on.uuid {
            // Resumed after the machine has booted from the other root: it is here.
            runner.clear_manifest(Path::new("/"), hands)?;
            return Ok(receipt("kept", "this is that root"));
        }
        let top = runner.mount_volume(on, site.change)?;
        runner.clear_manifest(&top, hands)?;
        let roots = serde_json::to_string(&[&here, on]).map_err(|why| failed(&tried, why))?;
        keep_note(site, ROOTS, &roots, hands)?;
        runner.copy_to(on, site, hands)?;
        Ok(receipt("kept", "kept"))
    }

    fn undo(
        &self,
        _: &mut LiveStepRunner,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        Ok(left())
    }
}

impl LiveStepRunner {
    /// Takes away what the copy has noted for passes to come: there are none after this step.
    pub(super) fn clear_manifest(
        &mut self,
        top: &Path,
        hands: &dyn Hands,
    ) -> Result<(), StepError> {
        let notes = top.join(COPY_NOTES);
        if hands.files().exists(&notes) {
            self.run("rm", &["-r", "--", &notes.display().to_string()])?;
        }
        Ok(())
    }

    /// Brings plan and journal on the other roots of a change up to date.
    pub(super) fn tell_other_roots(
        &mut self,
        site: &Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<(), StepError> {
        let tried = "tell the other root what was done";
        if self.image.is_some() {
            let kept = site.steps.iter().find_map(|step| match &step.action {
                Action::KeepJournal(step) => Some(&step.on),
                _ => None,
            });
            return kept.map_or(Ok(()), |on| self.copy_to(on, site, hands));
        }
        if !hands.files().exists(&site.directory.join(ROOTS)) {
            return Ok(());
        }
        let roots = roots_of(site.directory, hands).map_err(|why| failed(tried, why))?;
        let here = mounts::running_root(hands.files()).map_err(|why| failed(tried, why))?;
        for root in roots.iter().filter(|root| root.uuid != here.uuid) {
            self.copy_to(root, site, hands)?;
        }
        Ok(())
    }

    fn copy_to(
        &mut self,
        root: &Volume,
        site: &Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<(), StepError> {
        let top = self.mount_volume(root, site.change)?;
        let directory = match self.image {
            None => place_on(&top, site.directory)?,
            Some(_) => place_on(&top, &Path::new(CHANGES).join(site.change))?,
        };
        make_directories(hands, &directory)?;
        for name in copied_names(site.directory, hands.files()) {
            let (from, to) = (site.directory.join(&name), directory.join(&name));
            if name == ROOTS && self.image.is_some() {
                // There is no other root.
                continue;
            }
            let bytes = hands.files().read_prefix(&from, MAX_BYTES);
            let bytes = bytes.map_err(|why| failed(format!("read {}", from.display()), why))?;
            if hands.files().read_prefix(&to, MAX_BYTES).is_ok_and(|there| there == bytes) {
                continue;
            }
            put_copy(&to, &bytes, hands)?;
        }
        Ok(())
    }
}

/// The names of the files of a change that each of its roots has, in the order in which they are copied.
pub(crate) fn copied_names(directory: &Path, files: &dyn Files) -> Vec<String> {
    let mut names = super::kept::notes_in(directory, files);
    names.extend(COPIED.map(String::from));
    names
}

/// The roots that have a copy.
pub(crate) fn roots_of(directory: &Path, hands: &dyn Hands) -> Result<Vec<Volume>, String> {
    let text = hands.files().text(&directory.join(ROOTS));
    let text = text.map_err(|why| why.to_string())?;
    serde_json::from_str(&text).map_err(|why| why.to_string())
}

/// Puts bytes in the place of a file, durably.
pub(crate) fn put_copy(path: &Path, bytes: &[u8], hands: &mut dyn Hands) -> Result<(), StepError> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    replace(path, Path::new(&fresh), bytes, 0o644, hands)?;
    Ok(())
}
