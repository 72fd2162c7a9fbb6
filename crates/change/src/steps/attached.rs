//! Network disks: attached and detached by the installed rubus, whose watcher outlives the change.

use std::path::{Path, PathBuf};

use crate::plan::Action;
use crate::plan::commands::{commands, undo_commands_with};
use crate::plan::journal::Receipt;
use crate::plan::volume::Place;
use rubus_host::Files;

use crate::apply::StepError;

use super::{LiveStepRunner, failed, receipt, with_names};

impl LiveStepRunner {
    pub(super) fn attach_disk(
        &mut self,
        action: &Action,
        address: &str,
        device: &Path,
        files: &dyn Files,
    ) -> Result<Receipt, StepError> {
        let planned = format!("{} is {address}", device.display());
        if !is_attached(address, device, files) {
            self.run_all(&commands(action))?;
        }
        match attached_to(device, files) {
            Some(live) if live == backend_of(address) => Ok(receipt(planned.clone(), planned)),
            live => Err(failed(
                action.title(),
                format!("the kernel's driver says {live:?}; look at its log (`dmesg`)"),
            )),
        }
    }

    pub(super) fn detach_disk(
        &mut self,
        action: &Action,
        address: &str,
        device: &Path,
        files: &dyn Files,
    ) -> Result<Receipt, StepError> {
        if is_attached(address, device, files) {
            let node = |place: &Place| place.title();
            let mounted = |_: &str| PathBuf::new();
            let commands = with_names(&node, &mounted, |names| undo_commands_with(action, names));
            self.run_all(&commands)?;
        }
        Ok(receipt("not attached", "not attached"))
    }
}

/// What is not as attaching left it.
pub(super) fn difference(address: &str, device: &Path, files: &dyn Files) -> Option<String> {
    let live = attached_to(device, files);
    let device = device.display();
    match live {
        Some(live) if live == backend_of(address) => None,
        Some(live) => Some(format!("{device} is attached to {live}")),
        None => Some(format!("{device} is not attached")),
    }
}

fn is_attached(address: &str, device: &Path, files: &dyn Files) -> bool {
    attached_to(device, files).is_some_and(|live| live == backend_of(address))
}

/// The name under which rubus attaches an export.
fn backend_of(address: &str) -> String {
    format!("rubus {address}")
}

/// What the driver says; nothing where nothing is attached.
fn attached_to(device: &Path, files: &dyn Files) -> Option<String> {
    let name = device.file_name()?.to_str()?;
    let path = PathBuf::from(format!("/sys/block/{name}/backend"));
    let text = files.text(&path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
