//! Making filesystems and swap areas.

use std::path::{Path, PathBuf};

use crate::plan::Action;
use crate::plan::commands::commands_with;
use crate::plan::journal::Receipt;
use crate::plan::volume::{NewFilesystem, Place, Volume};
use rubus_host::Hands;
use rubus_host::blockdev::ClaimedDevice;
use rubus_machine::signature::END_BYTES;

use crate::apply::{Site, StepError};
use crate::guard::Released;

use super::claim::{around, claim};
use super::{LiveStepRunner, failed, locate, receipt, with_names};

impl LiveStepRunner {
    pub(super) fn format(
        &mut self,
        action: &Action,
        place: &Place,
        new: &NewFilesystem,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let tried = format!("make {} on {}", new.kind.name(), place.title());
        let node = locate::node_of(hands.files(), place).map_err(|why| failed(&tried, why))?;
        let disk = place.disks().first().copied();
        let disk = disk.ok_or_else(|| failed(&tried, "the plan names no disk for it"))?;
        // What is mounted for the change may be what an earlier try of this step has made.
        self.unmount_everything(&Path::new(super::mounts::PLACES).join(site.change))?;
        let device = claim(&tried, disk, &node, site, hands)?;
        wipe(&device).map_err(|why| failed(&tried, why))?;
        let given = [Released::of(device, &node)];
        self.make(action, &given, new, site)?;
        let holds = locate::holds(&node, new.kind, &new.uuid).map_err(|why| failed(&tried, why))?;
        if !holds {
            return Err(failed(
                &tried,
                "it was made and is not there; the disk may be broken or a fake",
            ));
        }
        let what = format!("{} with UUID {}", new.kind.name(), new.uuid);
        Ok(receipt(what.clone(), what))
    }

    /// The commands of the action; its filesystem is mounted for making subvolumes in this process's own mounts.
    fn make(
        &mut self,
        action: &Action,
        given: &[Released; 1],
        new: &NewFilesystem,
        site: &Site<'_>,
    ) -> Result<(), StepError> {
        let name = |_: &Place| given[0].node().display().to_string();
        let top = Path::new(super::mounts::PLACES).join(site.change).join(&new.uuid);
        let mounted = |_: &str| -> PathBuf { top.clone() };
        let commands = with_names(&name, &mounted, |names| commands_with(action, names));
        for command in &commands {
            match command.program {
                "mount" => {
                    let volume = Volume {
                        kind: new.kind,
                        uuid: new.uuid.clone(),
                        mount_options: new.mount_options.clone(),
                        title: format!("the new {}", new.kind.name()),
                    };
                    self.mount_volume(&volume, site.change)?;
                }
                "umount" => {
                    self.unmount_everything(&Path::new(super::mounts::PLACES).join(site.change))?
                }
                _ => around(given, &format!("run {}", command.program), || {
                    self.run_all(std::slice::from_ref(command)).map(drop)
                })?,
            }
        }
        Ok(())
    }
}

/// Takes away what says what is on a device: programs that make filesystems leave marks of other kinds.
fn wipe(device: &ClaimedDevice) -> Result<(), String> {
    let size = device.size_bytes();
    let end = size.min(END_BYTES as u64);
    let zeros = vec![0_u8; end as usize];
    device.write_at(0, &zeros)?;
    device.write_at(size - end, &zeros)?;
    device.sync()
}
