//! The journal of a change as the other roots of the machine tell it: where it goes on, and where it is lost here.

mod lost_journal;

use std::path::{Path, PathBuf};

use crate::apply::Change;
use crate::plan::journal;
use crate::steps::{LiveStepRunner, PLACES, StepError, put_copy, roots_of, running_root};
use crate::volume::Volume;
use rubus_host::Hands;
use rubus_host::files::hands::below;

pub use lost_journal::{Search, Traces, lost_journal};

/// More than any journal has.
const MAX_BYTES: usize = 64 << 20;

impl LiveStepRunner {
    /// Takes over the journal of this change from another root, when it continues where this one ends: the change was
    /// resumed or undone there, and the power failed before this copy was updated. Says whether there was something.
    ///
    /// # Errors
    /// [`StepError`] when the journal here cannot be written.
    pub fn catch_up(&mut self, change: &Change, hands: &mut dyn Hands) -> Result<bool, StepError> {
        match self.longer_journal(change, &change.name, "", hands)? {
            Some(bytes) => put_copy(&journal_of(change), &bytes, hands).map(|()| true),
            None => Ok(false),
        }
    }

    /// The change as the journal on another root tells it, where that goes on where this one ends. Other roots are only
    /// read; one that cannot be mounted (without root, or because it is in use) has nothing to tell.
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
        let Ok(here) = running_root(hands.files()) else {
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
        self.unmount_everything(&Path::new(PLACES).join(place))?;
        Ok(longest)
    }
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
