//! Making filesystems and swap areas.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::guard::Released;
use crate::volume::{DiskIdentity, FilesystemKind, NewFilesystem, Place, Volume};
use rubus_host::block::blockdev::ClaimedDevice;
use rubus_host::{Files, Hands};
use rubus_machine::signature::END_BYTES;

use super::behaviour::lost_on;
use super::claim::{around, claim};
use super::commands::{Command, Names, by_uuid, command, mount, with_names};
use super::mounts::PLACES;
use super::{
    Behaviour, Detail, LiveStepRunner, MachineStep, Receipt, Site, StepError, Touches, Trace,
    TraceSite, failed, left, locate, receipt,
};

/// A filesystem or swap area is made. Undoing leaves it as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Format {
    /// Where.
    pub place: Place,
    /// What.
    pub filesystem: NewFilesystem,
}

impl Behaviour for Format {
    fn title(&self) -> String {
        format!("make {} on {}", noun(&self.filesystem), self.place.title())
    }

    fn proof_title(&self) -> String {
        format!(
            "its superblock is read back: {} with the identifier {}",
            self.filesystem.kind.name(),
            self.filesystem.uuid
        )
    }

    fn undo_title(&self) -> String {
        format!("not possible: what was on {} is lost", self.place.title())
    }

    fn commands(&self, names: Names<'_>) -> Vec<Command> {
        make(&(names.node)(&self.place), &self.filesystem, names)
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches {
            disks_lost: self.place.disks(),
            leaves: Some(lost_on(&self.place.disks())),
            others: vec![by_uuid(&self.filesystem.uuid)],
            ..Touches::default()
        }
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        self.place.disks_mut()
    }

    fn difference(&self, _: &dyn Files) -> Option<String> {
        None
    }

    fn shows_completion(&self) -> bool {
        false
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, files: &dyn Files) -> Trace {
        // A disk that is not there now may have been made all the same.
        match locate::device_of(files, self.filesystem.kind, &self.filesystem.uuid) {
            Ok(_) => Trace::Made,
            Err(_) => Trace::Unseen,
        }
    }
}

impl MachineStep for Format {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let Format { place, filesystem: new } = self;
        let tried = format!("make {} on {}", new.kind.name(), place.title());
        let node = locate::node_of(hands.files(), place).map_err(|why| failed(&tried, why))?;
        let disk = place.disks().first().copied();
        let disk = disk.ok_or_else(|| failed(&tried, "the plan names no disk for it"))?;
        // What is mounted for the change may be what an earlier try of this step has made.
        runner.unmount_everything(&Path::new(PLACES).join(site.change))?;
        let device = claim(&tried, disk, &node, site, hands)?;
        wipe(&device).map_err(|why| failed(&tried, why))?;
        let given = [Released::of(device, &node)];
        runner.make(self, &given, site)?;
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
    /// The commands of the action; its filesystem is mounted for making subvolumes in this process's own mounts.
    fn make(
        &mut self,
        step: &Format,
        given: &[Released; 1],
        site: &Site<'_>,
    ) -> Result<(), StepError> {
        let new = &step.filesystem;
        let name = |_: &Place| given[0].node().display().to_string();
        let top = Path::new(PLACES).join(site.change).join(&new.uuid);
        let mounted = |_: &str| -> PathBuf { top.clone() };
        let commands = with_names(&name, &mounted, |names| step.commands(names));
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
                "umount" => self.unmount_everything(&Path::new(PLACES).join(site.change))?,
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

/// The commands that make a filesystem on a node.
fn make(node: &str, new: &NewFilesystem, names: Names<'_>) -> Vec<Command> {
    let label = |option: &str| {
        if new.label.is_empty() { Vec::new() } else { vec![option.to_string(), new.label.clone()] }
    };
    let mut arguments: Vec<String> = Vec::new();
    let program = match new.kind {
        FilesystemKind::Btrfs => {
            // Old versions take the page size of this machine, and a filesystem with sectors of 16 KiB
            // cannot be mounted on most others.
            // Metadata twice: a bad block among them would cost the whole filesystem, and they are few.
            let fixed = ["-f", "-q", "--sectorsize", "4096", "--csum", "crc32c"];
            arguments.extend(fixed.map(String::from));
            let fixed = ["-d", "single", "-m", "dup", "-U", &new.uuid];
            arguments.extend(fixed.map(String::from));
            arguments.extend(label("-L"));
            "mkfs.btrfs"
        }
        FilesystemKind::Ext4 => {
            arguments.extend(["-F", "-q", "-b", "4096", "-U", &new.uuid].map(String::from));
            arguments.extend(label("-L"));
            "mkfs.ext4"
        }
        FilesystemKind::F2fs => {
            arguments.extend(["-f", "-q", "-U", &new.uuid].map(String::from));
            arguments.extend(label("-l"));
            "mkfs.f2fs"
        }
        FilesystemKind::Vfat => {
            let identifier = new.uuid.replace('-', "");
            arguments.extend(["-F", "32", "-i", &identifier].map(String::from));
            arguments.extend(label("-n"));
            "mkfs.vfat"
        }
        FilesystemKind::Swap => {
            arguments.extend(["-U", &new.uuid].map(String::from));
            arguments.extend(label("-L"));
            "mkswap"
        }
    };
    arguments.push(node.into());
    let make = Command { program, arguments };
    std::iter::once(make).chain(subvolumes(node, new, names)).collect()
}

/// The subvolumes of a new btrfs, made on its mounted top.
fn subvolumes(node: &str, new: &NewFilesystem, names: Names<'_>) -> Vec<Command> {
    if new.subvolumes.is_empty() {
        return Vec::new();
    }
    let top = (names.mounted)(&new.uuid);
    let mut commands = vec![mount(new.kind.name(), &new.mount_options, node, &top)];
    for subvolume in &new.subvolumes {
        let path = top.join(subvolume).display().to_string();
        commands.push(command("btrfs", &["subvolume", "create", &path]));
    }
    commands.push(command("umount", &[&top.display().to_string()]));
    commands
}

/// A filesystem with its article.
fn noun(filesystem: &NewFilesystem) -> &'static str {
    match filesystem.kind {
        FilesystemKind::Btrfs => "a btrfs filesystem",
        FilesystemKind::Ext4 => "an ext4 filesystem",
        FilesystemKind::F2fs => "an f2fs filesystem",
        FilesystemKind::Vfat => "a FAT32 filesystem",
        FilesystemKind::Swap => "a swap area",
    }
}
