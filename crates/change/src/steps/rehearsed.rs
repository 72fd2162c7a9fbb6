//! A made-up machine for any plan, and who runs the steps there: everything that a step changes is a file of that machine, so
//! that every step can be looked at, cut off from its power and undone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rubus_host::files::hands::{below, parent_of, remove_leftover, replace};
use rubus_host::simulated::rehearsal::SimulatedMachine;
use rubus_host::{Files, Hands};

use crate::volume::Volume;

use super::{Action, Receipt, Site, Step, StepError, StepRunner, TextFile, keep_note, kept, swap};

const SWAPS: &str = "/proc/swaps";
const MOUNTS: &str = "/proc/self/mountinfo";
/// Where filesystems are mounted for a change.
const VOLUMES: &str = "/volumes";
/// The end of the names under which the made-up kernel prepares its files: a real one prepares none.
const KERNELS: &str = ".kernel";
const SWAPS_HEAD: &str = "Filename\tType\tSize\tUsed\tPriority\n";

/// The machine for which a plan was made, as far as the plan says.
pub fn machine(steps: &[Step]) -> SimulatedMachine {
    let mut maker = Maker { machine: SimulatedMachine::new(), known: BTreeSet::new() };
    let mut swaps = SWAPS_HEAD.to_string();
    for step in steps {
        match &step.action {
            Action::SwapOff(step) => {
                swaps += &swap_line(&step.what, step.priority);
                maker.add(|machine| machine.file(&step.what, "swap", 0o600));
            }
            Action::On(on) if !is_made(steps, &on.volume) => {
                let top = Path::new(VOLUMES).join(&on.volume.uuid);
                maker.before(&on.action, &top);
            }
            Action::On(_) => {}
            Action::AttachDisk(step) => {
                let name = step.device.file_name().unwrap_or_default().to_string_lossy();
                maker.add(|machine| machine.directory(&format!("/sys/block/{name}")));
            }
            action => maker.before(action, Path::new("/")),
        }
    }
    maker.machine.file(SWAPS, &swaps, 0o444).file(MOUNTS, "", 0o444).directory(VOLUMES)
}

struct Maker {
    machine: SimulatedMachine,
    /// Paths that a step has already spoken of.
    known: BTreeSet<PathBuf>,
}

impl Maker {
    /// What an action finds.
    fn before(&mut self, action: &Action, top: &Path) {
        let Some(path) = place_of(action) else {
            return;
        };
        let is_kernels = path.starts_with("/sys") || path.starts_with("/proc");
        let path = if is_kernels { path.clone() } else { below(top, path) };
        let is_new = self.known.insert(path.clone());
        if !is_new {
            return;
        }
        let shown = path.to_string_lossy().into_owned();
        let parent = parent_of(&path);
        if !self.known.contains(&parent) {
            self.add(|machine| machine.directory(&parent.to_string_lossy()));
        }
        match action {
            Action::WriteFile(step) => self.text(&shown, step.was.as_ref()),
            Action::RemoveFile(step) => self.text(&shown, Some(&step.was)),
            Action::SetKnob(step) => self.add(|machine| machine.knob(&shown, &step.was)),
            Action::SetLink(step) => {
                if let Some(target) = &step.was {
                    self.add(|mut machine| {
                        machine.make_link(&path, target).expect("a link");
                        machine.sync_directory(&parent).expect("it is durable");
                        machine
                    });
                }
            }
            Action::BuildInitramfs(step) if step.kept.is_some() => {
                self.add(|machine| machine.file(&shown, "the old initramfs", 0o755));
            }
            Action::InstallInitramfs(step) if step.kept.is_some() => {
                self.add(|machine| machine.file(&shown, "the old initramfs", 0o755));
            }
            // What they make is not there yet; what disks and services are is not in files.
            Action::BuildInitramfs(_)
            | Action::InstallInitramfs(_)
            | Action::MakeDirectory(_)
            | Action::On(_)
            | Action::Partition(_)
            | Action::MakeArray(_)
            | Action::Format(_)
            | Action::CopyTree(_)
            | Action::MakeSwapFile(_)
            | Action::SwapOn(_)
            | Action::SwapOff(_)
            | Action::Mount(_)
            | Action::AttachDisk(_)
            | Action::MakeImage(_)
            | Action::ReadUnits(_)
            | Action::RestartService(_)
            | Action::StartServer(_)
            | Action::ProveBoot(_)
            | Action::KeepJournal(_)
            | Action::FillBoot(_) => {}
        }
    }

    fn text(&mut self, path: &str, file: Option<&TextFile>) {
        if let Some(file) = file {
            self.add(|machine| machine.file(path, &file.text, file.mode));
        }
    }

    fn add(&mut self, act: impl FnOnce(SimulatedMachine) -> SimulatedMachine) {
        self.machine = act(std::mem::take(&mut self.machine));
    }
}

/// Everything that a change may alter, for comparing: files, settings, swap and mounts, without the change's own places.
pub fn everything(steps: &[Step], machine: &SimulatedMachine, store: &str) -> Vec<String> {
    let made: Vec<PathBuf> = steps.iter().filter_map(|step| made_volume(&step.action)).collect();
    let is_own = |path: &Path| {
        let is_kernels = path.to_string_lossy().ends_with(KERNELS);
        is_kernels || path.starts_with(store) || made.iter().any(|volume| path.starts_with(volume))
    };
    let files = machine.everything().into_iter().filter(|(path, _)| !is_own(path));
    let mut all: Vec<String> = files
        .map(|(path, contents)| {
            let contents = contents.map(|(text, mode)| {
                let mut lines: Vec<&str> = text.lines().collect();
                if path == Path::new(SWAPS) {
                    lines.sort_unstable();
                }
                let mode = if machine.keeps_modes(&path) { mode } else { 0 };
                format!("{mode:o} {}", lines.join("\n"))
            });
            format!("{}: {contents:?}", path.display())
        })
        .collect();
    for step in steps {
        if let Action::SetKnob(step) = &step.action {
            all.push(format!(
                "{}: {:?}",
                step.path.display(),
                machine.value(&step.path.to_string_lossy())
            ));
        }
    }
    all
}

fn place_of(action: &Action) -> Option<&PathBuf> {
    match action {
        Action::StartServer(step) => Some(&step.socket),
        Action::Mount(step) => Some(&step.at),
        action => action.path(),
    }
}

fn made_volume(action: &Action) -> Option<PathBuf> {
    match action {
        Action::Format(step) => Some(Path::new(VOLUMES).join(&step.filesystem.uuid)),
        _ => None,
    }
}

fn is_made(steps: &[Step], volume: &Volume) -> bool {
    let place = Path::new(VOLUMES).join(&volume.uuid);
    steps.iter().any(|step| made_volume(&step.action).as_ref() == Some(&place))
}

fn swap_line(what: &str, priority: Option<i32>) -> String {
    format!("{what}\tfile\t1024\t0\t{}\n", priority.unwrap_or(-2))
}

/// Runs the steps of a plan on its made-up machine.
pub struct RehearsedStepRunner<'a> {
    /// All of them, in order.
    pub steps: &'a [Step],
}

impl RehearsedStepRunner<'_> {
    fn put(path: &Path, text: &str, hands: &mut dyn Hands) -> Result<(), StepError> {
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(KERNELS);
        Ok(replace(path, Path::new(&fresh), text.as_bytes(), 0o444, hands)?)
    }

    /// A table of the kernel with or without a line. The kernel changes it in one go.
    fn table(
        path: &str,
        head: &str,
        line: &str,
        is_there: bool,
        hands: &mut dyn Hands,
    ) -> Result<(), StepError> {
        let path = Path::new(path);
        let text = hands.files().text(path).unwrap_or_default();
        let name = line.split('\t').next().unwrap_or_default();
        let others = text.lines().skip(head.lines().count());
        let mut lines: Vec<&str> =
            others.filter(|other| other.split('\t').next() != Some(name)).collect();
        if is_there {
            lines.push(line.trim_end());
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Self::put(path, &format!("{head}{text}"), hands)
    }

    fn swap(
        what: &str,
        priority: Option<i32>,
        is_on: bool,
        hands: &mut dyn Hands,
    ) -> Result<(), StepError> {
        Self::table(SWAPS, SWAPS_HEAD, &swap_line(what, priority), is_on, hands)
    }

    fn mounted(
        at: &Path,
        kind: &str,
        is_there: bool,
        hands: &mut dyn Hands,
    ) -> Result<(), StepError> {
        // One mount at a time is enough.
        let line = format!("29 1 0:25 / {} rw - {kind} none rw\n", at.display());
        Self::put(Path::new(MOUNTS), if is_there { &line } else { "" }, hands)
    }

    fn remove(path: &Path, hands: &mut dyn Hands) -> Result<(), StepError> {
        if hands.files().exists(path) {
            hands.remove(path)?;
            hands.sync_directory(&parent_of(path))?;
        }
        Ok(())
    }

    /// A new filesystem has what the plan expects on it, as the copy of a root has.
    fn make_volume(&self, volume: &Path, hands: &mut dyn Hands) -> Result<(), StepError> {
        if !hands.files().exists(volume) {
            hands.make_directory(volume)?;
        }
        hands.sync_directory(&parent_of(volume))?;
        for step in self.steps {
            let Action::On(on) = &step.action else { continue };
            let top = Path::new(VOLUMES).join(&on.volume.uuid);
            let path = on.action.path().map(|path| below(&top, path));
            let (Some(path), true) = (path, top == volume) else { continue };
            let mut missing: Vec<PathBuf> =
                parent_of(&path).ancestors().map(Path::to_path_buf).collect();
            missing.retain(|above| !hands.files().exists(above));
            for directory in missing.into_iter().rev() {
                hands.make_directory(&directory)?;
            }
            if let (Action::WriteFile(write), false) = (&*on.action, hands.files().exists(&path)) {
                if let Some(was) = &write.was {
                    hands.write_new(&path, &was.bytes(), was.mode, None)?;
                }
            }
        }
        Ok(())
    }
}

fn done() -> Receipt {
    Receipt { planned: "done".into(), live: "done".into() }
}

impl StepRunner for RehearsedStepRunner<'_> {
    fn apply(
        &mut self,
        action: &Action,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        match action {
            Action::Format(step) => {
                self.make_volume(&Path::new(VOLUMES).join(&step.filesystem.uuid), hands)?;
            }
            Action::BuildInitramfs(step) => {
                let bytes = b"the new initramfs";
                let kept = step.kept.as_deref().map(|kept| site.place(kept)).transpose()?;
                kept::replace_keeping(
                    &site.place(&step.path)?,
                    kept.as_deref(),
                    bytes,
                    site,
                    hands,
                )?;
            }
            Action::InstallInitramfs(step) => {
                let bytes = b"the new initramfs";
                kept::replace_keeping(&step.path, step.kept.as_deref(), bytes, site, hands)?;
                Self::remove(&step.from, hands)?;
            }
            Action::MakeSwapFile(step) => {
                let path = site.place(&step.path)?;
                if !hands.files().exists(&path) {
                    let fresh = site.fresh_name(&path);
                    remove_leftover(&fresh, hands)?;
                    hands.write_new(&fresh, b"swap", 0o600, None)?;
                    keep_note(site, &swap::mark_of(&path), "made by this change", hands)?;
                    hands.rename(&fresh, &path)?;
                }
                hands.sync_directory(&parent_of(&path))?;
            }
            Action::SwapOn(step) => Self::swap(&step.what, step.priority, true, hands)?,
            Action::SwapOff(step) => Self::swap(&step.what, None, false, hands)?,
            Action::Mount(step) => Self::mounted(&step.at, &step.kind, true, hands)?,
            Action::AttachDisk(step) => {
                let name = step.device.file_name().unwrap_or_default();
                let path = Path::new("/sys/block").join(name).join("backend");
                Self::put(&path, &format!("rubus {}", step.address), hands)?;
            }
            Action::StartServer(step) => Self::put(&step.socket, "", hands)?,
            Action::MakeImage(step) if !hands.files().exists(&step.path) => {
                Self::put(&step.path, "an image", hands)?;
            }
            // Their work is on disks and in services, of which the made-up machine has none.
            Action::MakeImage(_)
            | Action::Partition(_)
            | Action::MakeArray(_)
            | Action::CopyTree(_)
            | Action::ReadUnits(_)
            | Action::RestartService(_)
            | Action::ProveBoot(_)
            | Action::KeepJournal(_)
            | Action::FillBoot(_) => {}
            // The engine does them itself.
            Action::MakeDirectory(_)
            | Action::WriteFile(_)
            | Action::RemoveFile(_)
            | Action::SetKnob(_)
            | Action::SetLink(_)
            | Action::On(_) => {}
        }
        Ok(done())
    }

    fn undo(
        &mut self,
        action: &Action,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        match action {
            Action::BuildInitramfs(step) => {
                let kept = step.kept.as_deref().map(|kept| site.place(kept)).transpose()?;
                kept::put_back(&site.place(&step.path)?, kept.as_deref(), site, hands)?;
            }
            Action::InstallInitramfs(step) => {
                kept::put_back(&step.path, step.kept.as_deref(), site, hands)?;
            }
            Action::MakeSwapFile(step) => {
                let path = site.place(&step.path)?;
                remove_leftover(&site.fresh_name(&path), hands)?;
                if hands.files().exists(&site.directory.join(swap::mark_of(&path))) {
                    Self::remove(&path, hands)?;
                }
            }
            Action::SwapOn(step) => Self::swap(&step.what, None, false, hands)?,
            Action::SwapOff(step) => Self::swap(&step.what, step.priority, true, hands)?,
            Action::Mount(step) => Self::mounted(&step.at, &step.kind, false, hands)?,
            Action::AttachDisk(step) => {
                let name = step.device.file_name().unwrap_or_default();
                Self::remove(&Path::new("/sys/block").join(name).join("backend"), hands)?;
            }
            Action::StartServer(step) => Self::remove(&step.socket, hands)?,
            // They leave what they made, which the plan says, or it goes with the disk that it is on.
            Action::Format(_)
            | Action::MakeImage(_)
            | Action::Partition(_)
            | Action::MakeArray(_)
            | Action::CopyTree(_)
            | Action::ReadUnits(_)
            | Action::RestartService(_)
            | Action::ProveBoot(_)
            | Action::KeepJournal(_)
            | Action::FillBoot(_) => {}
            // The engine undoes them itself.
            Action::MakeDirectory(_)
            | Action::WriteFile(_)
            | Action::RemoveFile(_)
            | Action::SetKnob(_)
            | Action::SetLink(_)
            | Action::On(_) => {}
        }
        Ok(done())
    }

    fn mount(&mut self, volume: &Volume, _: &Site<'_>) -> Result<PathBuf, StepError> {
        Ok(Path::new(VOLUMES).join(&volume.uuid))
    }

    fn unmount_all(&mut self, _: &str) -> Result<(), StepError> {
        Ok(())
    }

    fn tell_others(&mut self, _: &Site<'_>, _: &mut dyn Hands) -> Result<(), StepError> {
        Ok(())
    }
}
