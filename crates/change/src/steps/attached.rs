//! Network disks: attached and detached by the installed rubus, whose watcher outlives the change.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::volume::DiskIdentity;
use rubus_host::{Files, Hands};

use super::commands::{Command, Names, command, for_people, undo_for_people};
use super::{
    Behaviour, Detail, LiveStepRunner, MachineStep, Receipt, Site, StepError, Touches, Trace,
    TraceSite, failed, receipt,
};

/// An NBD export becomes a block device of the kernel, with a watcher. Undoing detaches it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct AttachDisk {
    /// The export, such as `nbd://192.168.1.2/disk`.
    pub address: String,
    /// The device, such as `/dev/nbd0`.
    pub device: PathBuf,
    /// What stands behind `rubus attach`, address and device first.
    pub arguments: Vec<String>,
}

impl Behaviour for AttachDisk {
    fn title(&self) -> String {
        format!("attach {} as {}", self.address, self.device.display())
    }

    fn proof_title(&self) -> String {
        "the kernel's driver says to what it is attached".into()
    }

    fn undo_title(&self) -> String {
        format!("detach {}", self.device.display())
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        vec![command("rubus", &[&["attach"][..], &arguments].concat())]
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        vec![command("rubus", &["detach", &self.device.display().to_string()])]
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches { others: vec![self.device.clone()], ..Touches::default() }
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, files: &dyn Files) -> Option<String> {
        let device = self.device.display();
        match attached_to(&self.device, files) {
            Some(live) if live == backend_of(&self.address) => None,
            Some(live) => Some(format!("{device} is attached to {live}")),
            None => Some(format!("{device} is not attached")),
        }
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, files: &dyn Files) -> Trace {
        Trace::made(is_attached(&self.address, &self.device, files))
    }
}

impl MachineStep for AttachDisk {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let files = hands.files();
        let planned = format!("{} is {}", self.device.display(), self.address);
        if !is_attached(&self.address, &self.device, files) {
            runner.run_all(&for_people(self))?;
        }
        match attached_to(&self.device, files) {
            Some(live) if live == backend_of(&self.address) => {
                Ok(receipt(planned.clone(), planned))
            }
            live => Err(failed(
                self.title(),
                format!("the kernel's driver says {live:?}; look at its log (`dmesg`)"),
            )),
        }
    }

    fn undo(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        if is_attached(&self.address, &self.device, hands.files()) {
            runner.run_all(&undo_for_people(self))?;
        }
        Ok(receipt("not attached", "not attached"))
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
