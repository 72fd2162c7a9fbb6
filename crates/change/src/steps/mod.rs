//! The live steps: partitions, filesystems, copies, initial RAM filesystems, arrays and swap, on this machine.
//!
//! Each work looks first what is there, since it may have been interrupted at any moment, does what is
//! missing through `rubus_host`, and looks afterwards. Disks are found by identity and claimed through the guard before
//! anything is written to them; whatever is mounted for a change is mounted where only this process sees it.
//! The commands are those that `crate::plan::commands` shows before anything is done.

mod array;
mod attached;
mod boot_files;
mod boot_proof;
mod claim;
mod consent;
mod copied;
mod format;
pub mod image;
mod initramfs;
mod journal_copy;
mod kept;
mod last_pass;
mod locate;
pub mod lost_journal;
mod made;
mod mounts;
mod partition;
mod processor;
mod served;
mod swap;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::plan::commands::{Command, Names, commands, undo_commands_with};
use crate::plan::journal::Receipt;
use crate::plan::volume::{FilesystemKind, Place, Volume};
use crate::plan::{Action, When};
use rubus_host::hands::replace;
use rubus_host::{Files, Hands, Live, programs};

pub use claim::is_given_away;
pub use consent::fingerprint;
pub use initramfs::initramfs_answers;
pub use locate::{boot_id, find_disk, identity};
pub use lost_journal::{Search, Traces, lost_journal};
pub use made::find_made;

use crate::apply::{Site, StepError, StepRunner};

/// Runs steps on this machine.
#[derive(Debug, Default)]
pub struct LiveStepRunner {
    /// Raised when everything is to stop.
    stop: Arc<AtomicBool>,
    /// What is mounted for the change, in order.
    mounted: Vec<mounts::Mounted>,
    /// Where the steps act on an image and not on this machine.
    image: Option<image::ImageSite>,
    /// Every program that was run, as it would be typed into a shell.
    pub log: Vec<String>,
}

impl LiveStepRunner {
    /// A runner that stops in the middle of a long step once `stop` is raised; the step has failed then.
    pub fn new(stop: Arc<AtomicBool>) -> Self {
        LiveStepRunner { stop, ..LiveStepRunner::default() }
    }

    /// Runs a program that changes something.
    fn run(&mut self, program: &str, arguments: &[&str]) -> Result<String, StepError> {
        let line = programs::shell_line(program, arguments);
        self.log.push(line.clone());
        programs::run(program, arguments, &self.stop).map_err(|error| match error {
            programs::RunError::Missing { program } => {
                failed(format!("run `{line}`"), missing_program(&program))
            }
            error => failed(format!("run {program}"), error),
        })
    }

    /// Runs the commands of a plan, with what nodes and mounts are called now, and gives what the last one says.
    fn run_all(&mut self, commands: &[Command]) -> Result<String, StepError> {
        let mut said = String::new();
        for command in commands {
            let arguments: Vec<&str> = command.arguments.iter().map(String::as_str).collect();
            said = self.run(command.program, &arguments)?;
        }
        Ok(said)
    }
}

/// Whether the machine runs from this root. A root that cannot be told is none.
pub fn is_running_root(root: &Volume, files: &dyn Files) -> bool {
    mounts::running_root(files).is_ok_and(|here| here.uuid == root.uuid)
}

/// The package that brings a program, where Debian has one.
fn missing_program(program: &str) -> String {
    let package = match program {
        "mkfs.btrfs" | "btrfs" => "btrfs-progs",
        "mkfs.ext4" | "chattr" => "e2fsprogs",
        "mkfs.vfat" => "dosfstools",
        "mcopy" => "mtools",
        "mkswap" | "fallocate" => "util-linux",
        "mkinitramfs" | "lsinitramfs" => "initramfs-tools",
        other => other,
    };
    format!("{program} is not installed (`apt install {package}`)")
}

/// A work that failed.
fn failed(tried: impl Into<String>, reason: impl std::fmt::Display) -> StepError {
    StepError::Work { tried: tried.into(), reason: reason.to_string() }
}

/// What was planned, and what was found afterwards.
fn receipt(planned: impl Into<String>, live: impl Into<String>) -> Receipt {
    Receipt { planned: planned.into(), live: live.into() }
}

/// The receipt of what stays as it is.
fn left() -> Receipt {
    receipt("left as it is", "left as it is")
}

/// Names for the commands of an action on one place and one mounted filesystem.
fn with_names<T>(
    node: &dyn Fn(&Place) -> String,
    mounted: &dyn Fn(&str) -> PathBuf,
    act: impl FnOnce(Names<'_>) -> T,
) -> T {
    act(Names { node, mounted })
}

/// A file that a work keeps in the directory of its change: that it has begun something that must be known after
/// a power cut. It is durable when this returns.
fn keep_note(
    site: &Site<'_>,
    name: &str,
    text: &str,
    hands: &mut dyn Hands,
) -> Result<(), StepError> {
    let path = site.directory.join(name);
    if hands.files().text(&path).as_deref() == Ok(text) {
        return Ok(());
    }
    let fresh = site.directory.join(format!("{name}.new"));
    replace(&path, &fresh, text.as_bytes(), 0o600, hands)?;
    Ok(())
}

/// What such a file says; nothing where there is none.
fn note(site: &Site<'_>, name: &str, hands: &dyn Hands) -> Option<String> {
    hands.files().text(&site.directory.join(name)).ok()
}

impl StepRunner for LiveStepRunner {
    fn apply(
        &mut self,
        action: &Action,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        if let Some(wanted) = initramfs::ImageRequest::of(action) {
            return match action {
                Action::InstallInitramfs { from, .. } => {
                    self.install_initramfs(&wanted, from, site, hands)
                }
                _ => self.build_initramfs(action, &wanted, site, hands),
            };
        }
        match action {
            Action::Partition { disk, table } => self.partition(disk, table, site, hands),
            Action::Format { place, filesystem } => {
                self.format(action, place, filesystem, site, hands)
            }
            Action::MakeArray { uuid, members, .. } => {
                self.make_array(action, uuid, members, site, hands)
            }
            Action::CopyTree { from, to, without_contents_of, without, pass } => {
                let leave_out = tree::LeaveOut { contents_of: without_contents_of, whole: without };
                self.copy_tree(from, to, &leave_out, *pass, site, hands)
            }
            Action::MakeSwapFile { path, size_bytes } => {
                self.make_swap_file(path, *size_bytes, site, hands)
            }
            Action::SwapOn { what, priority } => {
                self.where_all_see(|| swap::on(what, *priority, &Live::new()))
            }
            Action::SwapOff { what, .. } => self.where_all_see(|| swap::off(what, &Live::new())),
            Action::Mount { what, at, kind, options } => {
                self.mount_for_all(what, at, kind, options, hands.files())
            }
            Action::AttachDisk { address, device, .. } => {
                self.attach_disk(action, address, device, hands.files())
            }
            Action::MakeImage { path, size_bytes } => served::make_image(path, *size_bytes),
            Action::ReadUnits => self.read_units(action, hands.files()),
            Action::RestartService { when, .. } => match when {
                When::Applied => self.restart(&commands(action), hands.files()),
                When::Undone => Ok(left()),
            },
            Action::StartServer { unit, .. } => self.start_server(action, unit, hands.files()),
            Action::ProveBoot { root, boot } => self.prove_boot(root, boot, site, hands),
            Action::KeepJournal { on } => self.keep_journal(on, site, hands),
            Action::FillBoot { place } => self.fill_boot(place, site, hands),
            other => Err(failed(other.title(), "it is no work on disks or memory")),
        }
    }

    fn undo(
        &mut self,
        action: &Action,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        // Whoever wanted everything to stop wants this all the more.
        self.stop = Arc::default();
        match action {
            Action::MakeArray { members, .. } => self.undo_array(action, members, site, hands),
            Action::BuildInitramfs { path, kept, .. }
            | Action::InstallInitramfs { path, kept, .. } => {
                kept::put_back(path, kept.as_deref(), site, hands)
            }
            Action::MakeSwapFile { path, .. } => self.remove_swap_file(path, site, hands),
            Action::SwapOn { what, .. } => self.where_all_see(|| swap::off(what, &Live::new())),
            Action::SwapOff { what, priority } => {
                self.where_all_see(|| swap::on_again(what, *priority, &Live::new()))
            }
            Action::Mount { at, kind, .. } => self.unmount_for_all(at, kind),
            Action::AttachDisk { address, device, .. } => {
                self.detach_disk(action, address, device, hands.files())
            }
            Action::ReadUnits => self.read_units(action, hands.files()),
            Action::RestartService { .. } => {
                let (node, mounted) = (|place: &Place| place.title(), |_: &str| PathBuf::new());
                let commands =
                    with_names(&node, &mounted, |names| undo_commands_with(action, names));
                match commands.is_empty() {
                    true => Ok(left()),
                    false => self.restart(&commands, hands.files()),
                }
            }
            Action::StartServer { unit, socket, .. } => {
                self.stop_server(action, unit, socket, hands.files())
            }
            // What is on the other disk stays; nothing starts from it any more.
            _ => Ok(left()),
        }
    }

    fn difference(&self, action: &Action, files: &dyn Files) -> Option<String> {
        match action {
            Action::MakeSwapFile { path, .. }
            | Action::MakeImage { path, .. }
            | Action::BuildInitramfs { path, .. } => {
                (!files.exists(path)).then(|| format!("{} is gone", path.display()))
            }
            Action::InstallInitramfs { from, path, .. } => match files.exists(path) {
                true => {
                    (files.exists(from)).then(|| format!("{} is not in place yet", from.display()))
                }
                false => Some(format!("{} is gone", path.display())),
            },
            Action::SwapOn { what, priority } => swap::difference(what, *priority, files),
            Action::SwapOff { what, .. } => swap::is_used_again(what, files),
            Action::Mount { at, kind, .. } => mounts::difference(at, kind, files),
            Action::AttachDisk { address, device, .. } => {
                attached::difference(address, device, files)
            }
            Action::StartServer { unit, socket, .. } => served::difference(unit, socket, files),
            _ => None,
        }
    }

    fn obstacle(
        &self,
        action: &Action,
        directory: &Path,
        step: usize,
        files: &dyn Files,
    ) -> Option<String> {
        match action {
            Action::BuildInitramfs { path, kept, .. }
            | Action::InstallInitramfs { path, kept, .. } => {
                kept::obstacle(path, kept.as_deref(), directory, step, files)
            }
            _ => None,
        }
    }

    fn mount(&mut self, volume: &Volume, site: &Site<'_>) -> Result<PathBuf, StepError> {
        if let (Some(image), FilesystemKind::Vfat) = (&self.image, volume.kind) {
            // The boot files of an image are prepared in a directory, and put there at the end.
            return Ok(image.boot.clone());
        }
        self.mount_volume(volume, site.change)
    }

    fn unmount_all(&mut self, change: &str) -> Result<(), StepError> {
        self.unmount_everything(Path::new(mounts::PLACES).join(change).as_path())
    }

    fn tell_others(&mut self, site: &Site<'_>, hands: &mut dyn Hands) -> Result<(), StepError> {
        self.tell_other_roots(site, hands)
    }
}
