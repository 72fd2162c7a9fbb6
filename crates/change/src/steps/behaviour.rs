//! What every kind of step has to say and to do.

use std::path::{Path, PathBuf};

use crate::volume::{DiskIdentity, PartitionTable};
use rubus_host::{Files, Hands};

use super::commands::{Command, Names};
use super::site::place_on;
use super::{LiveStepRunner, Receipt, Site, StepError, TextFile, Trace, TraceSite};

/// What a kind of step says of itself. Nothing here changes the machine.
///
/// A kind does not compile without its undo:
///
/// ```compile_fail,E0046
/// # use std::path::Path;
/// # use rubus_change::plan::journal::Receipt;
/// # use rubus_change::steps::commands::{Command, Names};
/// # use rubus_change::steps::{Behaviour, Detail, FileSite, FileStep, StepError, Touches};
/// # use rubus_change::steps::{Trace, TraceSite};
/// # use rubus_change::volume::DiskIdentity;
/// # use rubus_host::{Files, Hands};
/// # struct Nothing;
/// # impl Behaviour for Nothing {
/// #     fn title(&self) -> String { "nothing".into() }
/// #     fn proof_title(&self) -> String { "nothing".into() }
/// #     fn undo_title(&self) -> String { "nothing".into() }
/// #     fn commands(&self, _: Names<'_>) -> Vec<Command> { Vec::new() }
/// #     fn undo_commands(&self, _: Names<'_>) -> Vec<Command> { Vec::new() }
/// #     fn details(&self) -> Vec<Detail<'_>> { Vec::new() }
/// #     fn touches(&self) -> Touches<'_> { Touches::default() }
/// #     fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> { Vec::new() }
/// #     fn difference(&self, _: &dyn Files) -> Option<String> { None }
/// #     fn shows_completion(&self) -> bool { true }
/// #     fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> { None }
/// #     fn trace(&self, _: &TraceSite<'_>, _: &dyn Files) -> Trace { Trace::Unseen }
/// # }
/// impl FileStep for Nothing {
///     fn apply(&self, _: &FileSite<'_>, _: &mut dyn Hands) -> Result<Receipt, StepError> {
///         Ok(Receipt { planned: "nothing".into(), live: "nothing".into() })
///     }
/// }
/// ```
///
/// With it, the same kind compiles:
///
/// ```
/// # use std::path::Path;
/// # use rubus_change::plan::journal::Receipt;
/// # use rubus_change::steps::commands::{Command, Names};
/// # use rubus_change::steps::{Behaviour, Detail, FileSite, FileStep, StepError, Touches};
/// # use rubus_change::steps::{Trace, TraceSite};
/// # use rubus_change::volume::DiskIdentity;
/// # use rubus_host::{Files, Hands};
/// # struct Nothing;
/// # impl Behaviour for Nothing {
/// #     fn title(&self) -> String { "nothing".into() }
/// #     fn proof_title(&self) -> String { "nothing".into() }
/// #     fn undo_title(&self) -> String { "nothing".into() }
/// #     fn commands(&self, _: Names<'_>) -> Vec<Command> { Vec::new() }
/// #     fn undo_commands(&self, _: Names<'_>) -> Vec<Command> { Vec::new() }
/// #     fn details(&self) -> Vec<Detail<'_>> { Vec::new() }
/// #     fn touches(&self) -> Touches<'_> { Touches::default() }
/// #     fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> { Vec::new() }
/// #     fn difference(&self, _: &dyn Files) -> Option<String> { None }
/// #     fn shows_completion(&self) -> bool { true }
/// #     fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> { None }
/// #     fn trace(&self, _: &TraceSite<'_>, _: &dyn Files) -> Trace { Trace::Unseen }
/// # }
/// impl FileStep for Nothing {
///     fn apply(&self, _: &FileSite<'_>, _: &mut dyn Hands) -> Result<Receipt, StepError> {
///         Ok(Receipt { planned: "nothing".into(), live: "nothing".into() })
///     }
///     fn undo(&self, _: &FileSite<'_>, _: &mut dyn Hands) -> Result<Receipt, StepError> {
///         Ok(Receipt { planned: "nothing".into(), live: "nothing".into() })
///     }
/// }
/// ```
pub trait Behaviour {
    /// What it does, in one line.
    fn title(&self) -> String;

    /// How it is made sure that it was done, as a sentence without its full stop.
    fn proof_title(&self) -> String;

    /// What undoing it does, in one line.
    fn undo_title(&self) -> String;

    /// The programs that doing it runs, in order.
    fn commands(&self, names: Names<'_>) -> Vec<Command>;

    /// The programs that undoing it runs, in order.
    fn undo_commands(&self, names: Names<'_>) -> Vec<Command>;

    /// What is shown of it besides its title and its commands.
    fn details(&self) -> Vec<Detail<'_>>;

    /// What it changes or makes.
    fn touches(&self) -> Touches<'_>;

    /// The disks of [`Touches::disks_lost`], to refresh what is known to be on them.
    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity>;

    /// What is not as it left it, in words. Only looks.
    fn difference(&self, files: &dyn Files) -> Option<String>;

    /// Whether [`Behaviour::difference`] tells one that is done from one that was interrupted.
    fn shows_completion(&self) -> bool;

    /// Why it cannot be undone as things are, and what to do; nothing where it can. Only looks. `directory` is that of the change,
    /// `step` the number of the step.
    fn obstacle(&self, directory: &Path, step: usize, files: &dyn Files) -> Option<String>;

    /// What the machine shows of it, whatever the journal says. Only looks.
    fn trace(&self, site: &TraceSite<'_>, files: &dyn Files) -> Trace;
}

/// A kind that acts on files, directories, links and settings of the kernel.
pub trait FileStep: Behaviour {
    /// Does it, or finishes it, and reads it back.
    ///
    /// # Errors
    /// [`StepError`]; it is then undone like any other.
    fn apply(&self, site: &FileSite<'_>, hands: &mut dyn Hands) -> Result<Receipt, StepError>;

    /// Undoes it, whether it was done, half done, or only announced.
    ///
    /// # Errors
    /// [`StepError`]; nothing is lost then.
    fn undo(&self, site: &FileSite<'_>, hands: &mut dyn Hands) -> Result<Receipt, StepError>;
}

/// A kind that acts on disks, filesystems, memory or services of this machine.
pub trait MachineStep: Behaviour {
    /// Does it, or finishes it, and looks whether it is done.
    ///
    /// # Errors
    /// [`StepError`]; it is then undone like any other.
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError>;

    /// Undoes it, whether it was done, half done, or only announced.
    ///
    /// # Errors
    /// [`StepError`]; nothing is lost then.
    fn undo(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError>;
}

/// Where a [`FileStep`] acts.
#[derive(Clone, Copy, Debug)]
pub struct FileSite<'a> {
    /// The directory at which its paths begin.
    pub top: &'a Path,
    /// The name of a file beside its place that nothing else uses.
    pub temporary: &'a str,
}

impl FileSite<'_> {
    /// A path of the step, seen from here: within the filesystem that it acts on, whatever links that has.
    ///
    /// # Errors
    /// When its links lead to each other.
    pub fn place(&self, path: &Path) -> Result<PathBuf, StepError> {
        place_on(self.top, path)
    }
}

/// What a kind of step changes or makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touches<'a> {
    /// The file, directory or knob of the running system that is changed.
    pub path: Option<&'a PathBuf>,
    /// The disks on which everything is lost.
    pub disks_lost: Vec<&'a DiskIdentity>,
    /// Mount points, devices, units, and filesystems by their UUIDs, all as paths.
    pub others: Vec<PathBuf>,
    /// Where the original of what it replaces is kept.
    pub kept: Option<&'a PathBuf>,
    /// The file that it copies, where an earlier step made it.
    pub takes: Option<&'a PathBuf>,
    /// The directory that it makes.
    pub makes_directory: Option<&'a Path>,
    /// Where it puts something, which a directory may have been made for.
    pub fills: Option<&'a Path>,
    /// Whether the machine runs from another root afterwards.
    pub moves_root: bool,
    /// What undoing it does not bring back, as a sentence without its full stop.
    pub leaves: Option<String>,
}

impl<'a> Touches<'a> {
    /// What changes one path of the running system.
    pub fn path(path: &'a PathBuf) -> Self {
        Touches { path: Some(path), ..Touches::default() }
    }

    /// What changes one path, at which something is then.
    pub fn filling(path: &'a PathBuf) -> Self {
        Touches { fills: Some(path), ..Touches::path(path) }
    }
}

/// What [`Touches::leaves`] says of disks whose contents are gone.
pub(super) fn lost_on(disks: &[&DiskIdentity]) -> String {
    let paths: Vec<String> = disks.iter().map(|disk| disk.path.display().to_string()).collect();
    format!("what was on {} is lost", paths.join(" and "))
}

/// Something that is shown of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail<'a> {
    /// The partitions of a new table.
    Table {
        /// The disk's node when the plan was made.
        disk: &'a Path,
        /// What is written to it.
        table: &'a PartitionTable,
    },
    /// Directories of which only the directory itself is copied.
    LeftEmpty(&'a [PathBuf]),
    /// What is not copied at all.
    LeftOut(&'a [PathBuf]),
    /// Where the current file is kept.
    Kept(&'a Path),
    /// The exact change of a text file; absent where there is none.
    Text {
        /// What it holds now.
        was: Option<&'a TextFile>,
        /// What it will hold.
        becomes: Option<&'a TextFile>,
    },
}
