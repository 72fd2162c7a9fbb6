//! The plan and its journal on every root of a change, so that whichever starts knows what was done.

use std::path::{Path, PathBuf};

use crate::plan::Action;
use crate::plan::journal::{self, Receipt};
use crate::plan::volume::Volume;
use rubus_host::hands::{below, replace};
use rubus_host::live_hands::make_directories;
use rubus_host::{Files, Hands};

use crate::apply::{Change, Site, StepError};

use super::{LiveStepRunner, failed, keep_note, mounts, receipt};

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

impl LiveStepRunner {
    /// Puts plan and journal on another root, and writes down on both which roots there are.
    pub(super) fn keep_journal(
        &mut self,
        on: &Volume,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let tried = format!("keep the plan and its journal on {}", on.title);
        if self.image.is_some() {
            let top = self.mount_volume(on, site.change)?;
            self.clear_manifest(&top, hands)?;
            self.copy_to(on, site, hands)?;
            return Ok(receipt("kept", "kept"));
        }
        let here = mounts::running_root(hands.files()).map_err(|why| failed(&tried, why))?;
        if here.uuid == on.uuid {
            // Gone on with after the machine has started from the other root: it is here.
            self.clear_manifest(Path::new("/"), hands)?;
            return Ok(receipt("kept", "this is that root"));
        }
        let top = self.mount_volume(on, site.change)?;
        self.clear_manifest(&top, hands)?;
        let roots = serde_json::to_string(&[&here, on]).map_err(|why| failed(&tried, why))?;
        keep_note(site, ROOTS, &roots, hands)?;
        self.copy_to(on, site, hands)?;
        Ok(receipt("kept", "kept"))
    }

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

    /// Takes over what was written into the journal of a change on another root, when that goes on where this one
    /// ends: the change was gone on with or undone there, and the power went before it could be told here. Says
    /// whether there was something.
    ///
    /// # Errors
    /// [`StepError`] when the journal here cannot be written.
    pub fn catch_up(&mut self, change: &Change, hands: &mut dyn Hands) -> Result<bool, StepError> {
        match self.longer_journal(change, &change.name, "", hands)? {
            Some(bytes) => put(&journal_of(change), &bytes, hands).map(|()| true),
            None => Ok(false),
        }
    }

    /// The change as the journal on another root tells it, where that goes on where this one ends. Other roots are only
    /// read; one that cannot be mounted (by another user than root, or since somebody uses it) has nothing to tell.
    pub fn as_told_elsewhere(&mut self, change: &Change, hands: &dyn Hands) -> Option<Change> {
        // A change that goes on at this moment has its own mounts under its name.
        let place = format!("{}-look", change.name);
        let bytes = self.longer_journal(change, &place, "ro", hands);
        change.with_journal(&String::from_utf8_lossy(&bytes.ok()??))
    }

    /// The longest journal on another root that goes on where the one here ends. Mounted with `options` besides.
    fn longer_journal(
        &mut self,
        change: &Change,
        place: &str,
        options: &str,
        hands: &dyn Hands,
    ) -> Result<Option<Vec<u8>>, StepError> {
        let Ok(roots) = roots_of(change.directory(), hands) else {
            return Ok(None);
        };
        let Ok(here) = mounts::running_root(hands.files()) else {
            return Ok(None);
        };
        let path = journal_of(change);
        let own = hands.files().read_prefix(&path, MAX_BYTES);
        let own = own.unwrap_or_default();
        let whole = journal::whole_bytes(&String::from_utf8_lossy(&own));
        let mut longest: Option<Vec<u8>> = None;
        for root in roots.iter().filter(|root| root.uuid != here.uuid) {
            // A root that is not there has nothing to tell.
            let Ok(top) = self.mount_volume(&with_options(root, options), place) else {
                continue;
            };
            let theirs = hands.files().read_prefix(&below(&top, &path), MAX_BYTES);
            let theirs = theirs.unwrap_or_default();
            let whole_theirs = journal::whole_bytes(&String::from_utf8_lossy(&theirs));
            let goes_on = whole_theirs > whole && theirs.starts_with(&own[..whole]);
            if goes_on && longest.as_ref().is_none_or(|known| known.len() < whole_theirs) {
                longest = Some(theirs[..whole_theirs].to_vec());
            }
        }
        self.unmount_everything(&Path::new(mounts::PLACES).join(place))?;
        Ok(longest)
    }

    /// Brings plan and journal on the other roots of a change up to date.
    pub(super) fn tell_other_roots(
        &mut self,
        site: &Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<(), StepError> {
        let tried = "tell the other root what was done";
        if self.image.is_some() {
            let kept = site.plan.steps.iter().find_map(|step| match &step.action {
                Action::KeepJournal { on } => Some(on),
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
            None => below(&top, site.directory),
            Some(_) => below(&top, &Path::new(CHANGES).join(site.change)),
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
            put(&to, &bytes, hands)?;
        }
        Ok(())
    }
}

/// The names of the files of a change that each of its roots has, in the order in which they are copied.
pub(super) fn copied_names(directory: &Path, files: &dyn Files) -> Vec<String> {
    let mut names = super::kept::notes_in(directory, files);
    names.extend(COPIED.map(String::from));
    names
}

fn journal_of(change: &Change) -> PathBuf {
    change.directory().join("journal")
}

/// A volume that is mounted with more options.
fn with_options(volume: &Volume, more: &str) -> Volume {
    let parts = [more, &volume.mount_options];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Volume { mount_options: parts.join(","), ..volume.clone() }
}

/// The roots that have a copy.
pub(super) fn roots_of(directory: &Path, hands: &dyn Hands) -> Result<Vec<Volume>, String> {
    let text = hands.files().text(&directory.join(ROOTS));
    let text = text.map_err(|why| why.to_string())?;
    serde_json::from_str(&text).map_err(|why| why.to_string())
}

/// Puts bytes in the place of a file, durably.
pub(super) fn put(path: &Path, bytes: &[u8], hands: &mut dyn Hands) -> Result<(), StepError> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    replace(path, Path::new(&fresh), bytes, 0o644, hands)?;
    Ok(())
}
