//! Mounting: for the change alone, where only this process sees it, and in the machine's mount namespace where a plan
//! says so.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk::guid::Guid;
use crate::volume::{DiskIdentity, FilesystemKind, Volume};
use rubus_host::files::mounting;
use rubus_host::live::hands::{LiveHands, make_directories};
use rubus_host::{Files, Hands, Live};
use rubus_machine::parse::mountinfo::{self, MountLine};

use super::commands::{Command, Names, command, mount, named};
use super::{
    Behaviour, Detail, LiveStepRunner, MachineStep, Receipt, Site, StepError, Touches, Trace,
    TraceSite, failed, locate, receipt,
};

/// Where the filesystems of changes are mounted, by the name of the change.
pub(crate) const PLACES: &str = "/run/rubus";

pub(crate) const MOUNTS: &str = "/proc/self/mountinfo";
/// Of the thread that looks, which may be on a visit elsewhere.
const OWN_MOUNTS: &str = "/proc/thread-self/mountinfo";

/// One filesystem that is mounted for the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    /// What it is, with its options.
    key: String,
    /// The mount point.
    at: PathBuf,
    /// Whether the directory was made for it.
    is_own_directory: bool,
}

/// A filesystem is mounted. Undoing unmounts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Mount {
    /// What: `UUID=…`, a device, or `tmpfs`.
    pub what: String,
    /// Where; the directory exists.
    pub at: PathBuf,
    /// Its type.
    pub kind: String,
    /// With commas between them, as mount(8) takes them.
    pub options: String,
}

impl Behaviour for Mount {
    fn title(&self) -> String {
        format!("mount {} at {}", self.what, self.at.display())
    }

    fn proof_title(&self) -> String {
        "the kernel lists it in /proc/self/mountinfo".into()
    }

    fn undo_title(&self) -> String {
        format!("unmount {}", self.at.display())
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        vec![mount(&self.kind, &self.options, &self.what, &self.at)]
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        vec![command("umount", &[&self.at.display().to_string()])]
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        let mut others = vec![self.at.clone()];
        // Every tmpfs is one of its own.
        if self.what.starts_with("UUID=") || self.what.starts_with('/') {
            others.push(named(&self.what));
        }
        Touches { others, fills: Some(&self.at), ..Touches::default() }
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, files: &dyn Files) -> Option<String> {
        let (at, kind) = (self.at.display(), &self.kind);
        match mount_at(&self.at, files) {
            Some(line) if line.filesystem == *kind => None,
            Some(line) => Some(format!("{} is mounted at {at} instead of {kind}", line.filesystem)),
            None => Some(format!("nothing is mounted at {at}")),
        }
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, files: &dyn Files) -> Trace {
        let there = mount_at(&self.at, files);
        Trace::made(there.is_some_and(|line| line.filesystem == self.kind))
    }
}

impl MachineStep for Mount {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let Mount { what, at, kind, options } = self;
        runner.mount_for_all(what, at, kind, options, hands.files())
    }

    fn undo(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        runner.unmount_for_all(&self.at, &self.kind)
    }
}

impl LiveStepRunner {
    /// Mounts a volume, found by its UUID, and sees to it that its compression is in force.
    pub(crate) fn mount_volume(
        &mut self,
        volume: &Volume,
        change: &str,
    ) -> Result<PathBuf, StepError> {
        let key = format!("{} {}", volume.uuid, volume.mount_options);
        if let Some(known) = self.mounted.iter().find(|known| known.key == key) {
            return Ok(known.at.clone());
        }
        let tried = format!("mount {}", volume.title);
        if volume.kind == FilesystemKind::Swap {
            return Err(failed(tried, "swap cannot be mounted"));
        }
        let node = locate::volume_node(&Live::new(), volume).map_err(|why| failed(&tried, why))?;
        let at = self.place_for(&volume.uuid, change)?;
        mounting::mount(&node, &at, volume.kind.name(), &volume.mount_options)?;
        self.mounted.push(Mounted { key, at: at.clone(), is_own_directory: true });
        self.check_compression(volume, &at)?;
        Ok(at)
    }

    /// Shows a directory at another place, without what is mounted below it.
    pub(super) fn bind_privately(
        &mut self,
        from: &Path,
        name: &str,
        change: &str,
    ) -> Result<PathBuf, StepError> {
        let key = format!("bind {}", from.display());
        if let Some(known) = self.mounted.iter().find(|known| known.key == key) {
            return Ok(known.at.clone());
        }
        let at = self.place_for(name, change)?;
        mounting::bind(from, &at)?;
        self.mounted.push(Mounted { key, at: at.clone(), is_own_directory: true });
        Ok(at)
    }

    /// Shows a directory of this system inside a mounted one, as `/proc` for programs that run there.
    pub(super) fn bind_into(&mut self, from: &Path, at: &Path) -> Result<(), StepError> {
        let key = format!("bind {} {}", from.display(), at.display());
        if self.mounted.iter().any(|known| known.key == key) {
            return Ok(());
        }
        mounting::bind(from, at)?;
        self.mounted.push(Mounted { key, at: at.to_path_buf(), is_own_directory: false });
        Ok(())
    }

    /// An empty directory to mount something at.
    fn place_for(&mut self, name: &str, change: &str) -> Result<PathBuf, StepError> {
        // From here on, what is mounted is seen by this process and its children alone.
        mounting::private_mounts()?;
        let directory = Path::new(PLACES).join(change);
        let is_free = |at: &PathBuf| !self.mounted.iter().any(|known| known.at == *at);
        let numbers = std::iter::once(String::new()).chain((2..).map(|n| format!("-{n}")));
        let at = numbers
            .map(|number| directory.join(format!("{name}{number}")))
            .find(is_free)
            .unwrap_or(directory);
        make_directories(&mut LiveHands::new(), &at)?;
        Ok(at)
    }

    /// btrfs compresses by filesystem, not by mount: where it was mounted before with other options, those hold.
    fn check_compression(&self, volume: &Volume, at: &Path) -> Result<(), StepError> {
        let wanted = volume.mount_options.split(',');
        let wanted: Vec<&str> = wanted.filter(|option| option.starts_with("compress")).collect();
        let Some(wanted) = wanted.last() else {
            return Ok(());
        };
        let is_in_force = || {
            let line = mount_at(at, &Live::new());
            line.is_some_and(|line| line.super_options.iter().any(|has| says(has, wanted)))
        };
        if is_in_force() {
            return Ok(());
        }
        mounting::remount(at, wanted)?;
        if is_in_force() {
            Ok(())
        } else {
            Err(failed(
                format!("compress what is written to {}", volume.title),
                format!("the kernel takes {wanted} and does not act on it"),
            ))
        }
    }

    /// Unmounts what is mounted for the change, the last first, with everything on it durable.
    pub(crate) fn unmount_everything(&mut self, place: &Path) -> Result<(), StepError> {
        while let Some(last) = self.mounted.last().cloned() {
            if last.is_own_directory {
                mounting::sync_filesystem(&last.at)?;
            }
            mounting::unmount(&last.at)?;
            self.mounted.pop();
            if last.is_own_directory {
                // What stays is an empty directory in memory.
                let _ = LiveHands::new().remove_directory(&last.at);
            }
        }
        let _ = LiveHands::new().remove_directory(place);
        Ok(())
    }

    /// Mounts a filesystem in the machine's mount namespace, where every process sees it.
    fn mount_for_all(
        &mut self,
        what: &str,
        at: &Path,
        kind: &str,
        options: &str,
        files: &dyn Files,
    ) -> Result<Receipt, StepError> {
        let planned = format!("{kind} at {}", at.display());
        if self.mount_for_all_at(at)?.is_some_and(|line| line.filesystem == kind) {
            return Ok(receipt(planned.clone(), planned));
        }
        let source = match what.strip_prefix("UUID=") {
            Some(uuid) => locate::device_of(files, kind_of(kind)?, uuid)
                .map_err(|why| failed(format!("mount {what}"), why))?,
            None => PathBuf::from(what),
        };
        self.where_all_see(|| Ok(mounting::mount(&source, at, kind, options)?))?;
        match self.mount_for_all_at(at)? {
            Some(line) => Ok(receipt(planned, format!("{} at {}", line.filesystem, line.point))),
            None => Err(failed(
                format!("mount {what}"),
                format!("it was mounted and is not at {}", at.display()),
            )),
        }
    }

    /// Does something in the machine's mount namespace. The kernel lists swap by the path that the caller of swapon
    /// saw.
    pub(super) fn where_all_see<T: Send>(
        &self,
        act: impl FnOnce() -> Result<T, StepError> + Send,
    ) -> Result<T, StepError> {
        match mounting::outer_mounts() {
            Some(outer) => outer.visit(|| Ok(act()))?,
            None => act(),
        }
    }

    /// What is mounted at a place in the machine's mount namespace.
    fn mount_for_all_at(&self, at: &Path) -> Result<Option<MountLine>, StepError> {
        self.where_all_see(|| Ok(mount_in(OWN_MOUNTS, at, &Live::new())))
    }

    /// Undoes [`LiveStepRunner::mount_for_all`].
    fn unmount_for_all(&mut self, at: &Path, kind: &str) -> Result<Receipt, StepError> {
        let there = self.mount_for_all_at(at)?;
        if there.is_some_and(|line| line.filesystem == kind) {
            self.where_all_see(|| Ok(mounting::unmount(at)?))?;
        }
        Ok(receipt("not mounted", "not mounted"))
    }
}

fn kind_of(kind: &str) -> Result<FilesystemKind, StepError> {
    match kind {
        "vfat" => Ok(FilesystemKind::Vfat),
        root => FilesystemKind::of_root(root).ok_or_else(|| {
            failed(
                format!("find a filesystem of the kind {root}"),
                "only btrfs, ext4, f2fs and vfat are found by UUID; name the device",
            )
        }),
    }
}

/// Whether an option that the kernel shows is the one that was asked for; it adds the level that it chose.
fn says(shown: &str, wanted: &str) -> bool {
    let rest = shown.strip_prefix(wanted);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// What is mounted at a place; of several the one on top.
fn mount_at(at: &Path, files: &dyn Files) -> Option<MountLine> {
    mount_in(MOUNTS, at, files)
}

fn mount_in(list: &str, at: &Path, files: &dyn Files) -> Option<MountLine> {
    let text = files.text(Path::new(list)).ok()?;
    let (lines, _) = mountinfo::parse(&text);
    let is_there = |line: &MountLine| Path::new(&line.point) == at;
    lines.into_iter().rfind(is_there)
}

/// The node of the device that is mounted at a place.
pub(super) fn node_at(at: &Path, files: &dyn Files) -> Option<String> {
    let line = mount_at(at, files)?;
    Some(node_of(line.device, files).unwrap_or(line.source))
}

/// The node of a device by its major and minor number; a filesystem of several devices has numbers of its own, which
/// no device has.
pub(crate) fn node_of((major, minor): (u32, u32), files: &dyn Files) -> Option<String> {
    let link = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let real = files.real_path(&link).ok()?;
    Some(format!("/dev/{}", real.file_name()?.to_str()?))
}

/// The root that the machine runs from now, as something that can be mounted again.
pub(crate) fn running_root(files: &dyn Files) -> Result<Volume, String> {
    let line = mount_at(Path::new("/"), files).ok_or("what is mounted at / cannot be seen")?;
    let kind = FilesystemKind::of_root(&line.filesystem);
    let kind = kind.ok_or_else(|| {
        let is = &line.filesystem;
        format!("the running root is {is}, which is not known here")
    })?;
    let node = PathBuf::from(node_of(line.device, files).unwrap_or_else(|| line.source.clone()));
    let told =
        mounting::filesystem_uuid(Path::new("/")).map(|bytes| Guid::from_bytes(bytes).to_string());
    let uuid = match told {
        Some(uuid) => uuid,
        // Older kernels do not tell it; the disk does.
        None => locate::signatures(&node)?
            .into_iter()
            .find(|found| found.kind.name() == kind.name())
            .and_then(|found| found.uuid)
            .ok_or_else(|| format!("{} does not say its UUID", node.display()))?,
    };
    let subvolume = line.super_options.iter().find(|option| option.starts_with("subvol="));
    Ok(Volume {
        kind,
        uuid,
        mount_options: subvolume.cloned().unwrap_or_default(),
        title: format!("the root on {}", node.display()),
    })
}

/// Whether the machine runs from this root. A root that cannot be told is none.
pub fn is_running_root(root: &Volume, files: &dyn Files) -> bool {
    running_root(files).is_ok_and(|here| here.uuid == root.uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_adds_the_level_that_it_chose() {
        assert!(says("compress=zstd:3", "compress=zstd"));
        assert!(says("compress=zstd:3", "compress=zstd:3"));
        assert!(says("compress=lzo", "compress=lzo"));
        assert!(!says("compress=zstd:15", "compress=zstd:1"));
        assert!(!says("compress=zlib:3", "compress=zstd:3"));
        assert!(!says("compress-force=zstd:3", "compress=zstd:3"));
    }
}
