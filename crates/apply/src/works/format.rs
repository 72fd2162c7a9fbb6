//! Making filesystems and swap areas.

use std::path::{Path, PathBuf};

use rubus_core::plan::Action;
use rubus_core::plan::commands::commands_with;
use rubus_core::plan::journal::Receipt;
use rubus_core::plan::volume::{NewFilesystem, Place, Volume};
use rubus_core::signature::END_BYTES;
use rubus_host::Hands;
use rubus_host::blockdev::ClaimedDevice;

use crate::change::{Site, StepError};
use crate::guard;

use super::claim::claim;
use super::{LiveWorks, failed, locate, receipt, with_names};

impl LiveWorks {
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
        let claimed = device.geometry().disk_sequence;
        // The programs claim the device themselves, and go by its name.
        drop(device);
        same_disk(claimed, sequence_of(&node), &node).map_err(|why| failed(&tried, why))?;
        self.make(action, &node, new, site)?;
        same_disk(claimed, sequence_of(&node), &node).map_err(|why| failed(&tried, why))?;
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
        node: &Path,
        new: &NewFilesystem,
        site: &Site<'_>,
    ) -> Result<(), StepError> {
        let name = |_: &Place| node.display().to_string();
        let top = Path::new(super::mounts::PLACES)
            .join(site.change)
            .join(&new.uuid);
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
                _ => drop(self.run_all(std::slice::from_ref(command))?),
            }
        }
        Ok(())
    }
}

/// The running number of the disk that a node is on now. Each disk that appears gets a new one.
fn sequence_of(node: &Path) -> Result<Option<u64>, String> {
    let device = guard::read_only(node).map_err(|refusal| refusal.to_string())?;
    Ok(device.geometry().disk_sequence)
}

/// Whether a name still means the disk that was claimed: between the claim and the programs that make a filesystem a disk may be
/// pulled out, and another may get its name. Kernels before 5.15 do not number their disks.
fn same_disk(
    claimed: Option<u64>,
    now: Result<Option<u64>, String>,
    node: &Path,
) -> Result<(), String> {
    match now? == claimed {
        true => Ok(()),
        false => Err(format!(
            "{} became another disk meanwhile; look at the cable, and at what is on the disk that has this name now",
            node.display()
        )),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_went_to_another_disk_is_not_formatted() {
        let node = Path::new("/dev/sda1");
        assert_eq!(same_disk(Some(7), Ok(Some(7)), node), Ok(()));
        assert_eq!(same_disk(None, Ok(None), node), Ok(()), "an old kernel");
        let why = same_disk(Some(7), Ok(Some(9)), node).unwrap_err();
        assert!(why.starts_with("/dev/sda1 became another disk"), "{why}");
        assert!(same_disk(Some(7), Ok(None), node).is_err());
        assert_eq!(
            same_disk(Some(7), Err("gone".into()), node),
            Err("gone".into())
        );
    }
}
