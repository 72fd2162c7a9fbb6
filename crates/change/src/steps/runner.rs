//! Who runs the steps on this machine, through `rubus_host`.
//!
//! Disks are found by identity and claimed through the guard before anything is written to them; whatever is mounted for a
//! change is mounted where only this process sees it. The commands are those that were shown before anything was done.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::volume::{FilesystemKind, Volume};
use rubus_host::Hands;
use rubus_host::process::{confined, programs};

use super::commands::Command;
use super::error::missing_program;
use super::image::ImageSite;
use super::mounts::{Mounted, PLACES};
use super::{Action, Reach, Receipt, Site, StepError, StepRunner, failed};

/// Runs steps on this machine.
#[derive(Debug, Default)]
pub struct LiveStepRunner {
    /// Raised when everything is to stop.
    pub(super) stop: Arc<AtomicBool>,
    /// What is mounted for the change, in order.
    pub(super) mounted: Vec<Mounted>,
    /// Where the steps act on an image and not on this machine.
    pub(super) image: Option<ImageSite>,
    /// Every program that was run, as it would be typed into a shell.
    pub log: Vec<String>,
}

impl LiveStepRunner {
    /// A runner that stops in the middle of a long step once `stop` is raised; the step has failed then.
    pub fn new(stop: Arc<AtomicBool>) -> Self {
        LiveStepRunner { stop, ..LiveStepRunner::default() }
    }

    /// Runs a program that changes something.
    pub(super) fn run(&mut self, program: &str, arguments: &[&str]) -> Result<String, StepError> {
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
    pub(super) fn run_all(&mut self, commands: &[Command]) -> Result<String, StepError> {
        let mut said = String::new();
        for command in commands {
            let arguments: Vec<&str> = command.arguments.iter().map(String::as_str).collect();
            said = self.run(command.program, &arguments)?;
        }
        Ok(said)
    }
}

impl LiveStepRunner {
    /// Runs a program of the image whose root is mounted at `top`, shut in: it sees neither devices nor networks nor files of
    /// this machine.
    pub(super) fn run_shut_in(
        &mut self,
        top: &Path,
        command: &Command,
    ) -> Result<String, StepError> {
        // "chroot TOP PROGRAM ARGUMENT…".
        let words: Vec<&str> = command.arguments.iter().map(String::as_str).collect();
        self.log.push(programs::shell_line(command.program, &words));
        let [_, program, arguments @ ..] = words.as_slice() else {
            return Err(failed(format!("run {}", command.program), "it names no program"));
        };
        confined::run(top, program, arguments, &self.stop)
            .map_err(|error| failed(format!("run {program} of the image"), error))
    }
}

impl StepRunner for LiveStepRunner {
    fn apply(
        &mut self,
        action: &Action,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        match action.reach() {
            Reach::Machine(step) => step.apply(self, site, hands),
            Reach::Files(_) | Reach::Elsewhere(_) => Err(not_for_a_runner(action)),
        }
    }

    fn undo(
        &mut self,
        action: &Action,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        // A user who interrupted the change wants its undo all the more.
        self.stop = Arc::default();
        match action.reach() {
            Reach::Machine(step) => step.undo(self, site, hands),
            Reach::Files(_) | Reach::Elsewhere(_) => Err(not_for_a_runner(action)),
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
        self.unmount_everything(Path::new(PLACES).join(change).as_path())
    }

    fn tell_others(&mut self, site: &Site<'_>, hands: &mut dyn Hands) -> Result<(), StepError> {
        self.tell_other_roots(site, hands)
    }
}

fn not_for_a_runner(action: &Action) -> StepError {
    failed(action.title(), "it is no work on disks or memory")
}
