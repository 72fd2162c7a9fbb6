//! The recipes: from facts and wishes to a plan; and the verbs that show plans, apply and undo them ([`cli`]).
//!
//! Recipes are pure; adding one is adding a file and a line in [`ALL`].
//!
//! A recipe first says what it has to look at besides the surveyed machine ([`Recipe::look_at`]), then
//! plans from what was found. It asks for nothing else and never writes, so a plan can be made for a captured machine
//! too.
#![deny(clippy::disallowed_methods)]
#![forbid(unsafe_code)]

pub mod cli;
mod commit_interval;
mod desktop;
mod disks;
mod distribution;
mod edits;
pub mod fallen_back;
mod format;
mod guide;
mod identifiers;
mod image_facts;
mod journal_to_memory;
mod lasting;
mod logs_to_memory;
mod mounting;
mod moving;
mod network_disk;
mod network_root;
mod network_server;
mod next_start;
mod pcie_gen;
mod programs;
mod raid0;
mod ramdisk;
#[cfg(test)]
mod rehearsal_tests;
pub mod sight;
mod speeds;
mod surveyed;
mod swap;
mod swap_managers;
mod tables;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod text;
mod units;
mod usb_quirk;
mod user;
mod zswap;

use rubus_vocabulary::compression_speed::CompressionSpeed;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use desktop::{StartedFromOld, image_programs};
use edits::Edits;
pub use guide::Guide;
pub use image_facts::ImageFacts;
pub use network_root::{FROM_CARD, NETWORK_ROOT};
pub use next_start::NextStart;
pub use speeds::{measured_speeds, measured_together, runs_of_disks};
pub use surveyed::surveyed_disk;
pub use units::SYSTEMD_RUNS;
pub use user::{Fault, UserRecipe};

use rubus_change::plan::promise::Promise;
use rubus_change::plan::volume::DiskIdentity;
use rubus_change::plan::{Action, Effort, FORMAT, Gain, Plan, Step, TextFile, Trial};
use rubus_change::steps::SetKnob;
use rubus_change::unseen::Unseen;
use rubus_vocabulary::check::Check;
use rubus_vocabulary::machine::Machine;

/// All recipes, by name.
pub const ALL: [&Recipe; 14] = [
    &commit_interval::RECIPE,
    &desktop::RECIPE,
    &format::RECIPE,
    &journal_to_memory::RECIPE,
    &logs_to_memory::RECIPE,
    &network_disk::RECIPE,
    &network_root::RECIPE,
    &network_server::RECIPE,
    &pcie_gen::RECIPE,
    &raid0::RECIPE,
    &ramdisk::RECIPE,
    &swap::RECIPE,
    &usb_quirk::RECIPE,
    &zswap::RECIPE,
];

/// A way to change a machine.
#[derive(Debug)]
pub struct Recipe {
    /// `kebab-case`.
    pub name: &'static str,
    /// What it does for its user, as a sentence.
    pub title: &'static str,
    /// What it changes, what it needs, and an example.
    pub guide: Guide,
    /// What can be chosen.
    pub options: &'static [OptionSpec],
    /// What to look at.
    pub look_at: fn(&Machine, &Wishes) -> Queries,
    /// Makes the steps.
    draw_up: fn(&PlanInput<'_>, &mut PlanBuilder),
}

/// One thing that can be chosen.
#[derive(Debug)]
pub struct OptionSpec {
    /// `kebab-case`.
    pub name: &'static str,
    /// What it is, with its range.
    pub what: &'static str,
    /// What it is when nothing is chosen; absent: the recipe decides.
    pub default: Option<&'static str>,
    /// What is right, or a sentence that says what is.
    pub check: fn(&str) -> Result<(), String>,
}

/// The check of an option that is on or off.
fn yes_or_no(value: &str) -> Result<(), String> {
    match value {
        "yes" | "no" => Ok(()),
        _ => Err("write yes or no".into()),
    }
}

/// What a recipe wants to know besides the surveyed machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queries {
    /// Files, knobs, links and directories. A part of a path that is `*` stands for every name in the directory.
    pub paths: Vec<PathBuf>,
    /// Disks that would be given a new content.
    pub disks: Vec<PathBuf>,
    /// Trees of which the size is needed: what is in use on their filesystems.
    pub trees: Vec<PathBuf>,
    /// Directories of which it is needed how much the files below them take.
    pub directories: Vec<PathBuf>,
    /// What a program is to open by itself: of which kind it is, and whose.
    pub nodes: Vec<PathBuf>,
    /// True where it depends on how fast this processor compresses what a move of the root copies, and how well.
    pub compression: bool,
    /// True where it depends on what starting a short program costs: making an initial RAM filesystem is mostly that.
    pub program_starts: bool,
}

impl Queries {
    /// Only these paths.
    pub fn paths(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Queries { paths: paths.into_iter().map(Into::into).collect(), ..Queries::default() }
    }
}

/// What was found where a recipe wanted to look.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Files, knobs, links and directories.
    pub seen: Seen,
    /// Releases of kernels in the boot partition, as their files say; one that does not say it is not there.
    pub kernels: BTreeMap<PathBuf, String>,
    /// How the next start would end if nothing were changed.
    pub next_start: NextStart,
    /// Disks, by the requested path; or why one is unavailable.
    pub disks: BTreeMap<PathBuf, Result<DiskIdentity, Unseen>>,
    /// Sizes of trees.
    pub trees: BTreeMap<PathBuf, TreeSize>,
    /// Bytes that the files below directories take; none of one that may not be looked into.
    pub directories: BTreeMap<PathBuf, u64>,
    /// What is at the end of a path, links followed: nothing, a node, or why it cannot be seen.
    pub nodes: BTreeMap<PathBuf, Result<Option<Node>, Unseen>>,
    /// How the processor compresses a sample of those trees; empty where that was not measured.
    pub compression: Vec<CompressionSpeed>,
    /// Bytes per second with which that sample came from the disk, not from memory, the opening of its files included;
    /// absent where too little came from there.
    pub sample_bytes_per_second: Option<f64>,
    /// Seconds for starting a short program, as it was measured just now; absent where that was not measured, as of a
    /// captured machine.
    pub program_start_s: Option<f64>,
    /// How fast disks are, by the kernel's name ("mmcblk0"), as far as it was measured here.
    pub speeds: BTreeMap<String, DiskSpeed>,
    /// How fast several disks are at once, as far as it was measured here; the newest first.
    pub together: Vec<TogetherSpeed>,
    /// Random bytes for new, unique identifiers. All zero in a rehearsal.
    pub random: [u8; 32],
    /// The running boot (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: Option<String>,
    /// Where the machine is none that runs, but what an image of a card says.
    pub image: Option<ImageFacts>,
}

/// How much there is below a directory, on one filesystem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeSize {
    /// Bytes that are in use.
    pub bytes: u64,
    /// Files, directories and the rest.
    pub entries: u64,
}

/// What is at the end of a path, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Number of the user who owns it; 0 is root.
    pub user: u32,
    /// Number of its group.
    pub group: u32,
    /// Bytes of a file; 0 of all else.
    pub size_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File,
    Directory,
    BlockDevice,
    /// A socket, a pipe, a character device.
    Other,
}

/// How fast a disk was measured to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskSpeed {
    /// Sequential read, bytes per second.
    pub read_bytes_per_second: Option<f64>,
    /// Sequential write, bytes per second.
    pub write_bytes_per_second: Option<f64>,
    /// Random 4 KiB reads per second at queue depth 1.
    pub random_read_iops: Option<f64>,
    /// Random 4 KiB writes per second at queue depth 1.
    pub random_write_iops: Option<f64>,
    /// When, in words ("measured here on 2026-11-21, run 12").
    pub source: String,
}

/// How fast several disks were measured to be, each alone and all at once.
#[derive(Clone, Debug, PartialEq)]
pub struct TogetherSpeed {
    /// The kernel's names of the disks ("sda"), as they are now.
    pub disks: Vec<String>,
    /// True for reading in order, false for writing.
    pub is_read: bool,
    /// Bytes per second of each alone, in the order of the disks.
    pub alone_bytes_per_second: Vec<f64>,
    /// Bytes per second of each while all were at work.
    pub together_bytes_per_second: Vec<f64>,
    /// When, in words ("measured at once on 2026-11-21, run 12").
    pub source: String,
}

/// What a recipe looked at.
pub type Seen = BTreeMap<PathBuf, PathState>;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Nothing is there.
    Absent,
    /// A small text file, or a knob of the kernel. Bytes that are not UTF-8 are kept.
    Text(TextFile),
    /// A directory, with the names in it.
    Directory(Vec<String>),
    /// A symbolic link that points to nothing, with its target as written.
    Dangling(PathBuf),
    /// Something else: a program, a file too large or too strange to be edited.
    Something,
    /// It could not be looked at.
    Hidden(Unseen),
}

/// The user's choices.
pub type Wishes = BTreeMap<String, String>;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecipeError {
    /// There is no such option.
    #[error("the recipe {recipe} has no option '{name}'; it has: {known}")]
    NoSuchOption {
        recipe: &'static str,
        /// Name of the unknown option.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// An option cannot have that value.
    #[error("{name}={value}: {reason}")]
    BadValue {
        /// Name of the option.
        name: String,
        value: String,
        /// What would be right.
        reason: String,
    },
}

/// The recipe of that name.
pub fn by_name(name: &str) -> Option<&'static Recipe> {
    ALL.into_iter().find(|recipe| recipe.name == name)
}

impl Recipe {
    /// Whether it can also be applied to an image of a card, on another machine.
    pub fn is_for_images(&self) -> bool {
        self.name == desktop::RECIPE.name
    }

    /// The plan for a machine. It may have obstacles ([`Plan::obstacles`]) and must not be applied then; it may
    /// be empty where everything is already as wished.
    ///
    /// # Errors
    /// [`RecipeError`] when a wish makes no sense.
    pub fn plan(
        &self,
        machine: &Machine,
        facts: &Facts,
        wishes: &Wishes,
        made: &str,
    ) -> Result<Plan, RecipeError> {
        let options = self.complete(wishes)?;
        let mut draft = PlanBuilder::default();
        let situation = PlanInput { machine, facts, options: &options };
        (self.draw_up)(&situation, &mut draft);
        lasting::check(&situation, &mut draft);
        foreign_lines(&mut draft);
        Ok(Plan {
            format: FORMAT,
            recipe: self.name.into(),
            options,
            title: draft.title.unwrap_or_else(|| self.title.into()),
            made: made.into(),
            checks: draft.checks,
            steps: draft.steps,
            notes: draft.notes,
            risks: draft.risks,
            gains: draft.gains,
            gains_unknown: draft.gains_unknown,
            effort: draft.effort,
            promises: draft.promises,
            needs_boot: draft.needs_boot,
            trial: draft.trial,
        })
    }

    /// The wishes, checked, with the defaults.
    fn complete(&self, wishes: &Wishes) -> Result<Wishes, RecipeError> {
        let mut options = Wishes::new();
        for (name, value) in wishes {
            let Some(option) = self.options.iter().find(|option| option.name == name) else {
                let known: Vec<&str> = self.options.iter().map(|option| option.name).collect();
                return Err(RecipeError::NoSuchOption {
                    recipe: self.name,
                    name: name.clone(),
                    known: known.join(", "),
                });
            };
            (option.check)(value).map_err(|reason| RecipeError::BadValue {
                name: name.clone(),
                value: value.clone(),
                reason,
            })?;
            options.insert(name.clone(), value.clone());
        }
        for option in self.options {
            if let Some(default) = option.default {
                options.entry(option.name.into()).or_insert(default.into());
            }
        }
        Ok(options)
    }
}

/// A line that is not UTF-8 is kept, and never edited.
fn foreign_lines(draft: &mut PlanBuilder) {
    let edited = draft.steps.iter().find_map(|step| {
        let action = match &step.action {
            Action::On(on) => &on.action,
            action => action,
        };
        let Action::WriteFile(write) = action else { return None };
        let line = write.was.as_ref()?.edited_foreign_line(&write.becomes)?;
        Some(format!("{} is not UTF-8 (line {line})", write.path.display()))
    });
    if let Some(found) = edited {
        draft.steps.clear();
        draft.trial = None;
        draft.check(
            "every line that changes is UTF-8",
            false,
            found,
            "write the sign there without its accent, or save the file as UTF-8",
        );
    }
}

/// What a recipe plans from.
#[derive(Clone, Copy, Debug)]
struct PlanInput<'a> {
    machine: &'a Machine,
    facts: &'a Facts,
    options: &'a Wishes,
}

impl<'a> PlanInput<'a> {
    fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// Whether a kernel is started here that takes the shorter command line of 32-bit ARM.
    fn has_32_bit_arm_kernel(&self) -> bool {
        let system = &self.machine.system;
        // Which kernel a board takes from an image with a 32-bit system is not known; the shorter limit holds for all.
        let is_32_bit_image =
            self.facts.image.is_some() && system.user_space_bits.get() == Some(32);
        let arch = system.kernel_arch.text().unwrap_or_default();
        arch.starts_with("armv") || is_32_bit_image
    }

    fn file(&self, path: &Path) -> Option<&'a TextFile> {
        match self.facts.seen.get(path) {
            Some(PathState::Text(file)) => Some(file),
            _ => None,
        }
    }

    /// The text at a path; empty where there is none.
    fn text(&self, path: &Path) -> &str {
        self.file(path).map_or("", |file| file.text.as_str())
    }

    fn is_there(&self, path: &Path) -> bool {
        matches!(
            self.facts.seen.get(path),
            Some(PathState::Text(_) | PathState::Directory(_) | PathState::Something)
        )
    }
}

impl PlanInput<'_> {
    /// Whether something is at a path, in words.
    fn presence(&self, path: &Path) -> Found {
        let shown = path.display();
        let words = match self.facts.seen.get(path) {
            Some(PathState::Text(_) | PathState::Directory(_) | PathState::Something) => {
                format!("{shown} is there")
            }
            Some(PathState::Absent) => format!("there is no {shown}"),
            Some(PathState::Dangling(target)) => {
                format!("{shown} points to {}, which is not there", target.display())
            }
            Some(PathState::Hidden(why)) => {
                return Found { words: format!("{shown} cannot be seen: {why}"), ..why.into() };
            }
            None => format!("{shown} was not looked at"),
        };
        words.into()
    }
}

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Holds,
    Fails,
    /// The fact could not be read, and nothing speaks against it.
    Unknown,
}

impl From<bool> for Answer {
    fn from(holds: bool) -> Answer {
        match holds {
            true => Answer::Holds,
            false => Answer::Fails,
        }
    }
}

impl From<Option<bool>> for Answer {
    fn from(holds: Option<bool>) -> Answer {
        holds.map_or(Answer::Unknown, Answer::from)
    }
}

/// What a check found, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    words: String,
    /// Whether this user may not look at it, which says nothing about the machine.
    is_denied: bool,
    /// Whether the capture that stands for the machine does not hold it, which says nothing about the machine either.
    is_not_captured: bool,
}

impl Found {
    fn followed_by(mut self, words: &str) -> Found {
        self.words.push_str(words);
        self
    }
}

impl From<String> for Found {
    fn from(words: String) -> Found {
        Found { words, is_denied: false, is_not_captured: false }
    }
}

impl From<&str> for Found {
    fn from(words: &str) -> Found {
        words.to_string().into()
    }
}

impl From<&Unseen> for Found {
    fn from(why: &Unseen) -> Found {
        Found {
            words: why.to_string(),
            is_denied: why.is_denied(),
            is_not_captured: why.is_not_captured(),
        }
    }
}

/// A plan that is being drawn up. Steps that would change nothing are left out.
#[derive(Debug, Default)]
struct PlanBuilder {
    /// What the whole does, where that is not what the recipe usually does.
    title: Option<String>,
    checks: Vec<Check>,
    steps: Vec<Step>,
    notes: Vec<String>,
    risks: Vec<String>,
    gains: Vec<Gain>,
    gains_unknown: Option<String>,
    effort: Effort,
    promises: Vec<Promise>,
    needs_boot: bool,
    trial: Option<Trial>,
}

impl PlanBuilder {
    fn check(
        &mut self,
        what: &str,
        answer: impl Into<Answer>,
        found: impl Into<Found>,
        remedy: &str,
    ) {
        let (answer, found) = (answer.into(), found.into());
        let is_met = answer != Answer::Fails;
        let remedy = match (found.is_denied, found.is_not_captured) {
            (true, _) => "run it with sudo: as this user it cannot be seen",
            (false, true) => "make the plan on the machine itself: the capture does not hold this",
            (false, false) => remedy,
        };
        self.checks.push(Check {
            what: what.into(),
            is_unknown: answer == Answer::Unknown || (!is_met && found.is_not_captured),
            found: found.words,
            is_met,
            remedy: (!is_met).then(|| remedy.into()),
        });
    }

    /// A file with this text, whatever was there; with its directory where that is missing.
    fn write(&mut self, id: &str, why: &str, path: &Path, text: String, situation: &PlanInput<'_>) {
        let steps = std::mem::take(&mut self.steps);
        let mut edits = Edits::after(&situation.facts.seen, steps);
        edits.write(id, why, path, text);
        self.steps = edits.into_steps();
    }

    /// The same for a program that can be run.
    fn write_program(
        &mut self,
        id: &str,
        why: &str,
        path: &Path,
        text: String,
        situation: &PlanInput<'_>,
    ) {
        let steps = std::mem::take(&mut self.steps);
        let mut edits = Edits::after(&situation.facts.seen, steps);
        edits.write_program(id, why, path, text);
        self.steps = edits.into_steps();
    }

    /// A directory with those above it, where they are missing.
    fn directory(&mut self, id: &str, why: &str, path: &Path, situation: &PlanInput<'_>) {
        let steps = std::mem::take(&mut self.steps);
        let mut edits = Edits::after(&situation.facts.seen, steps);
        edits.directory(id, why, path);
        self.steps = edits.into_steps();
    }

    fn set_knob(&mut self, id: &str, why: &str, path: &str, was: &str, becomes: &str) {
        if rubus_change::plan::knob_says(was, becomes) {
            return;
        }
        self.steps.push(Step {
            id: id.into(),
            why: why.into(),
            action: Action::SetKnob(SetKnob {
                path: path.into(),
                was: was.into(),
                becomes: becomes.into(),
            }),
        });
    }
}
