//! Before a change is resumed, its finished filesystems are looked for: a disk may have been unplugged meanwhile, or
//! another one may be in its place. Without this check the next step would fail, and the change would turn back because
//! of a cable.

use rubus_host::Files;

use crate::plan::Action;
use crate::plan::journal::{StepState, Way};
use crate::steps::{device_of, disk_now};
use crate::volume::{NewFilesystem, Place};

use super::Change;

/// Looks for every filesystem, swap area and array that steps of an interrupted change made. A change that goes back
/// needs none of them.
///
/// # Errors
/// A text for people: which one is not there, and how to bring it back.
pub fn find_made(change: &Change, files: &dyn Files) -> Result<(), String> {
    let goes_on = change.state.way == Way::Apply && !change.state.is_finished;
    if !goes_on || change.plan.is_of_an_image() {
        return Ok(());
    }
    let steps = change.plan.steps.iter().zip(&change.state.steps);
    for (step, state) in steps {
        if let (Action::Format(step), StepState::Done) = (&step.action, state) {
            find(&step.place, &step.filesystem, files)?;
        }
    }
    Ok(())
}

/// An array may have to be put together first, which its own step does; its disks have to be there.
fn find(place: &Place, made: &NewFilesystem, files: &dyn Files) -> Result<(), String> {
    match place {
        Place::Array { .. } => {
            for disk in place.disks() {
                disk_now(files, disk)?;
            }
            Ok(())
        }
        Place::Disk { .. } | Place::Partition { .. } => {
            let found = device_of(files, made.kind, &made.uuid);
            found.map(drop).map_err(|why| {
                format!(
                    "what was made on {} before the interruption is not there: {why}",
                    place.title()
                )
            })
        }
    }
}
