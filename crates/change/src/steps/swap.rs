//! Swap: files that are made for it, and areas that are used or not.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::volume::{DiskIdentity, FilesystemKind};
use rubus_host::files::filling;
use rubus_host::files::hands::{parent_of, remove_leftover};
use rubus_host::files::mounting;
use rubus_host::{Files, Hands, Live};
use rubus_machine::parse::mountinfo;
use rubus_machine::parse::swaps::{self, SwapLine};
use rubus_vocabulary::units::bytes_iec;

use super::commands::{Command, Names, command, named};
use super::trace::is_there;
use super::{
    Behaviour, Detail, LiveStepRunner, MachineStep, Progress, Receipt, Site, StepError, Touches,
    Trace, TraceSite, failed, keep_note, locate, note, receipt,
};

const SWAPS: &str = "/proc/swaps";

/// A swap file is made, with what btrfs wants where it lies on that. Undoing removes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct MakeSwapFile {
    /// Absolute path.
    pub path: PathBuf,
    /// Its size in bytes, a multiple of 4096.
    pub size_bytes: u64,
}

impl Behaviour for MakeSwapFile {
    fn title(&self) -> String {
        format!("make the swap file {} of {}", self.path.display(), bytes_iec(self.size_bytes))
    }

    fn proof_title(&self) -> String {
        "its size and its mark are read back".into()
    }

    fn undo_title(&self) -> String {
        format!("remove {}", self.path.display())
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        vec![command("mkswap", &[&self.path.display().to_string()])]
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches::filling(&self.path)
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, files: &dyn Files) -> Option<String> {
        (!files.exists(&self.path)).then(|| format!("{} is gone", self.path.display()))
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, site: &TraceSite<'_>, files: &dyn Files) -> Trace {
        let is_ours = files.exists(&site.directory.join(mark_of(&self.path)));
        let is_begun = site.has_leftover(&self.path, files);
        Trace::made(is_begun || is_ours && files.exists(&self.path))
    }
}

/// Every block of it is allotted, written where holes would count as such, and none of it shared or compressed on btrfs.
impl MachineStep for MakeSwapFile {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let path = &site.place(&self.path)?;
        let tried = format!("make the swap file {}", path.display());
        let mark = mark_of(path);
        let is_ours = note(site, &mark, hands).is_some();
        let planned = format!("a swap file of {}", bytes_iec(self.size_bytes));
        if is_there(path, hands.files()) {
            // It got its name when it was whole.
            return if is_ours {
                Ok(receipt(planned.clone(), planned))
            } else {
                Err(StepError::Changed { path: path.display().to_string() })
            };
        }
        let directory = parent_of(path);
        let space = hands.files().space(&directory);
        let free = space.map_err(|why| failed(&tried, why))?.available_bytes;
        if free < self.size_bytes {
            return Err(failed(
                tried,
                format!("{} has only {} free", directory.display(), bytes_iec(free)),
            ));
        }
        let fresh = site.fresh_name(path);
        remove_leftover(&fresh, hands)?;
        hands.write_new(&fresh, b"", 0o600, None)?;
        let made = runner.fill(&fresh, self.size_bytes, site, hands.files());
        if let Err(error) = made {
            // It has no name that anybody uses; the failure of making it is what counts.
            let _ = hands.remove(&fresh);
            return Err(error);
        }
        keep_note(site, &mark, "made by this change", hands)?;
        hands.rename(&fresh, path)?;
        hands.sync_directory(&directory)?;
        Ok(receipt(planned.clone(), planned))
    }

    fn undo(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let path = &site.place(&self.path)?;
        let directory = parent_of(path);
        let fresh = site.fresh_name(path);
        remove_leftover(&fresh, hands)?;
        let is_ours = note(site, &mark_of(path), hands).is_some();
        if is_ours && hands.files().exists(path) {
            runner.where_all_see(|| off(&path.display().to_string(), &Live::new()))?;
            hands.remove(path)?;
            hands.sync_directory(&directory)?;
        }
        Ok(receipt("absent", "absent"))
    }
}

/// Swap is used from now on. Undoing stops that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct SwapOn {
    /// `UUID=…`, or the absolute path of a file or device.
    pub what: String,
    /// Priority, -1 to 32767; absent: the kernel chooses.
    pub priority: Option<i32>,
}

impl Behaviour for SwapOn {
    fn title(&self) -> String {
        format!("use the swap {}", self.what)
    }

    fn proof_title(&self) -> String {
        "the kernel lists it in /proc/swaps".into()
    }

    fn undo_title(&self) -> String {
        format!("stop using the swap {}", self.what)
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        vec![swap_on(&self.what, self.priority)]
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        vec![command("swapoff", &[&self.what])]
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches { others: vec![named(&self.what)], ..Touches::default() }
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, files: &dyn Files) -> Option<String> {
        difference(&self.what, self.priority, files)
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, files: &dyn Files) -> Trace {
        if files.text(Path::new(SWAPS)).is_err() {
            return Trace::Unseen;
        }
        match resolve(&self.what, files) {
            Ok(path) => Trace::made(area(&path, files).is_some()),
            Err(_) => Trace::Unseen,
        }
    }
}

impl MachineStep for SwapOn {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        runner.where_all_see(|| on(&self.what, self.priority, &Live::new()))
    }

    fn undo(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        runner.where_all_see(|| off(&self.what, &Live::new()))
    }
}

/// Swap is not used from now on. Undoing uses it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct SwapOff {
    /// Absolute path of the file or device.
    pub what: String,
    /// Its priority now.
    pub priority: Option<i32>,
}

impl Behaviour for SwapOff {
    fn title(&self) -> String {
        format!("stop using the swap {}", self.what)
    }

    fn proof_title(&self) -> String {
        "the kernel does not list it in /proc/swaps any more".into()
    }

    fn undo_title(&self) -> String {
        format!("use the swap {} again", self.what)
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        vec![command("swapoff", &[&self.what])]
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        vec![swap_on(&self.what, self.priority)]
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches { others: vec![named(&self.what)], ..Touches::default() }
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, files: &dyn Files) -> Option<String> {
        is_used_again(&self.what, files)
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, files: &dyn Files) -> Trace {
        if files.text(Path::new(SWAPS)).is_err() {
            return Trace::Unseen;
        }
        // What is not on this root was not in use on it either.
        let here = resolve(&self.what, files).ok().filter(|path| files.exists(path));
        Trace::made(here.is_some_and(|path| area(&path, files).is_none()))
    }
}

impl MachineStep for SwapOff {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        runner.where_all_see(|| off(&self.what, &Live::new()))
    }

    fn undo(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        runner.where_all_see(|| on_again(&self.what, self.priority, &Live::new()))
    }
}

fn swap_on(what: &str, priority: Option<i32>) -> Command {
    match priority {
        // A negative priority cannot be asked for; the kernel gives those itself.
        Some(priority) if priority >= 0 => {
            command("swapon", &["--priority", &priority.to_string(), what])
        }
        _ => command("swapon", &[what]),
    }
}

/// Uses swap from now on, and sees to it that the priority is the wished one.
fn on(what: &str, priority: Option<i32>, files: &dyn Files) -> Result<Receipt, StepError> {
    let path = resolve(what, files).map_err(|why| failed(format!("use the swap {what}"), why))?;
    let asked = priority.filter(|priority| *priority >= 0);
    let is_right = |area: &SwapLine| asked.is_none_or(|priority| area.priority == priority);
    if !area(&path, files).is_some_and(|area| is_right(&area)) {
        if area(&path, files).is_some() {
            // The kernel changes a priority only from scratch.
            mounting::swap_off(&path)?;
        }
        mounting::swap_on(&path, asked)?;
    }
    match area(&path, files) {
        Some(area) if is_right(&area) => Ok(receipt(words(asked), words(Some(area.priority)))),
        Some(area) => Err(failed(
            format!("use the swap {what} with priority {}", words(asked)),
            format!("the kernel gave it priority {}", area.priority),
        )),
        None => Err(failed(
            format!("use the swap {what}"),
            "the kernel took it and does not list it in /proc/swaps",
        )),
    }
}

fn words(priority: Option<i32>) -> String {
    match priority {
        Some(priority) => format!("in use, priority {priority}"),
        None => "in use".into(),
    }
}

/// Uses swap again that a step has stopped using. What is not there on this root needs nothing.
fn on_again(what: &str, priority: Option<i32>, files: &dyn Files) -> Result<Receipt, StepError> {
    let is_here = resolve(what, files).is_ok_and(|path| files.exists(&path));
    if is_here {
        on(what, priority, files)
    } else {
        Ok(receipt("in use where it is", "not on this root"))
    }
}

/// Uses swap no more.
fn off(what: &str, files: &dyn Files) -> Result<Receipt, StepError> {
    let unused = || Ok(receipt("not in use", "not in use"));
    // What cannot be found is not in use.
    let Ok(path) = resolve(what, files) else {
        return unused();
    };
    if area(&path, files).is_some() {
        mounting::swap_off(&path)?;
    }
    match area(&path, files) {
        None => unused(),
        Some(_) => Err(failed(
            format!("stop using the swap {what}"),
            "the kernel says it did and still lists it in /proc/swaps",
        )),
    }
}

/// What is not as using swap left it.
fn difference(what: &str, priority: Option<i32>, files: &dyn Files) -> Option<String> {
    let Some(area) = resolve(what, files).ok().and_then(|path| area(&path, files)) else {
        return Some(format!("the swap {what} is not in use"));
    };
    let asked = priority.filter(|asked| *asked >= 0)?;
    (area.priority != asked)
        .then(|| format!("the swap {what} has priority {} instead of {asked}", area.priority))
}

/// What is not as the end of using swap left it.
fn is_used_again(what: &str, files: &dyn Files) -> Option<String> {
    let path = resolve(what, files).ok()?;
    area(&path, files).map(|_| format!("the swap {what} is in use again"))
}

fn resolve(what: &str, files: &dyn Files) -> Result<PathBuf, String> {
    match what.strip_prefix("UUID=") {
        Some(uuid) => locate::device_of(files, FilesystemKind::Swap, uuid),
        None => Ok(PathBuf::from(what)),
    }
}

/// The line of an area that is in use, by whatever name.
fn area(path: &Path, files: &dyn Files) -> Option<SwapLine> {
    let (areas, _) = swaps::parse(&files.text(Path::new(SWAPS)).ok()?);
    let real = files.real_path(path).unwrap_or_else(|_| path.to_path_buf());
    areas.into_iter().find(|area| {
        let listed = Path::new(&area.path);
        listed == path || listed == real || files.real_path(listed).is_ok_and(|own| own == real)
    })
}

impl LiveStepRunner {
    fn fill(
        &mut self,
        fresh: &Path,
        size_bytes: u64,
        site: &mut Site<'_>,
        files: &dyn Files,
    ) -> Result<(), StepError> {
        let shown = fresh.display().to_string();
        if filesystem_of(fresh, files).as_deref() == Some("btrfs") {
            // Only an empty file can be taken out of copying on write; allotted blocks need no writing here.
            self.run("chattr", &["+C", &shown])?;
            self.run("fallocate", &["-l", &size_bytes.to_string(), &shown])?;
        } else {
            let tell = &mut *site.tell;
            let mut progress = |done: u64| {
                tell(Progress {
                    words: format!("wrote {} of {}", bytes_iec(done), bytes_iec(size_bytes)),
                    share: Some(done as f64 / size_bytes as f64),
                    left_s: None,
                });
            };
            filling::fill_with_zeros(fresh, size_bytes, &self.stop, &mut progress)?;
        }
        self.run("mkswap", &[&shown])?;
        filling::sync_file(fresh)?;
        Ok(())
    }
}

pub(super) fn mark_of(path: &Path) -> String {
    format!("made{}", path.display().to_string().replace(['/', '.'], "_"))
}

/// The type of the filesystem that a path is on.
fn filesystem_of(path: &Path, files: &dyn Files) -> Option<String> {
    let text = files.text(Path::new("/proc/self/mountinfo")).ok()?;
    let (lines, _) = mountinfo::parse(&text);
    let real = files.real_path(path).ok()?;
    let line = mountinfo::holding(&lines, &real.to_string_lossy())?;
    Some(line.filesystem.clone())
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;

    const LISTED: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
                          /dev/sda3                               partition\t1048572\t0\t10\n\
                          /var/swap                               file\t\t102396\t\t512\t\t-2\n";

    #[test]
    fn what_is_in_use_is_known_by_any_name() {
        let files = FakeFiles::new()
            .file(SWAPS, LISTED)
            .file("/dev/sda3", "")
            .link("/dev/disk/by-label/swap", "/dev/sda3");
        assert_eq!(difference("/dev/sda3", Some(10), &files), None);
        assert_eq!(difference("/dev/disk/by-label/swap", None, &files), None);
        assert_eq!(difference("/var/swap", Some(-2), &files), None);
        let other = difference("/dev/sda3", Some(5), &files);
        assert_eq!(other.as_deref(), Some("the swap /dev/sda3 has priority 10 instead of 5"));
        let missing = difference("/dev/sdb1", None, &files);
        assert_eq!(missing.as_deref(), Some("the swap /dev/sdb1 is not in use"));
        assert!(is_used_again("/var/swap", &files).is_some());
        assert!(is_used_again("/dev/sdb1", &files).is_none());
    }
}
