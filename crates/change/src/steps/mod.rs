//! What a step of a plan can be: one file for each kind, with its data and everything that it does.
//!
//! [`Action`] lists the kinds, one line each. A kind says what it is, which programs it runs, what it touches and what differs
//! afterwards ([`Behaviour`]). It is done and undone on files alone ([`FileStep`]), or on disks, filesystems, memory and services of
//! this machine ([`MachineStep`]). Each looks first what is there, since it may have been interrupted at any moment, does what is
//! missing, and reads it back. Every method is required: a kind without an undo does not compile (see [`Behaviour`]).
//!
//! To add a kind: its file with its `mod` and `pub use` here, its line in [`Action`], what it does on a made-up machine
//! (`rehearsed`), and an example in `tests/plan_json.rs`. A recipe of a user has it by a row in `crates/recipes/src/user/entries.rs`.

mod array;
mod attached;
mod behaviour;
mod boot_files;
mod boot_proof;
mod claim;
pub mod commands;
mod consent;
mod copied;
pub mod diff;
mod directory;
mod error;
mod format;
pub mod image;
mod initramfs;
mod journal_copy;
mod kept;
mod knob;
mod last_pass;
mod link;
mod locate;
mod mounts;
mod new_image;
mod note;
mod on;
mod partition;
mod processor;
mod receipt;
#[cfg(any(test, feature = "fixture"))]
pub mod rehearsed;
mod runner;
mod server;
mod site;
mod swap;
mod text_file;
mod trace;
mod tree;
mod units;

use serde::{Deserialize, Serialize};

use crate::volume::DiskIdentity;

pub use array::MakeArray;
pub use attached::AttachDisk;
pub use behaviour::{Behaviour, Detail, FileSite, FileStep, MachineStep, Touches};
pub use boot_files::FillBoot;
pub use boot_proof::ProveBoot;
pub use consent::{fingerprint, is_given_away};
pub use directory::MakeDirectory;
pub use error::StepError;
pub use format::Format;
pub use initramfs::{BuildInitramfs, ImageState, InstallInitramfs};
pub use journal_copy::KeepJournal;
pub use knob::{SetKnob, knob_says};
pub use link::SetLink;
pub use locate::{boot_id, find_disk, identity};
pub use mounts::{Mount, is_running_root};
pub use new_image::MakeImage;
pub use on::On;
pub use partition::PartitionDisk;
pub use receipt::{Receipt, Replaced};
pub use runner::LiveStepRunner;
pub use server::StartServer;
pub use site::{GivenAway, NoStepRunner, Progress, Site, StepRunner};
pub use swap::{MakeSwapFile, SwapOff, SwapOn};
pub use text_file::{RemoveFile, TextFile, WriteFile};
pub use trace::{Trace, TraceSite};
pub use tree::{CopyTree, Pass};
pub use units::{ReadUnits, RestartService, SYSTEMD_RUNS, When};

pub(crate) use initramfs::image_state;
pub(crate) use journal_copy::{copied_names, put_copy, roots_of};
pub(crate) use locate::{device_of, disk_now, volumes};
pub(crate) use mounts::{MOUNTS, PLACES, node_of, running_root};
pub(crate) use site::temporary_name;

use error::failed;
use note::{keep_note, note};
use receipt::{left, receipt};

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// Short unique name within the plan, `kebab-case`.
    pub id: String,
    /// Why it is done, as a sentence.
    pub why: String,
    /// What is done.
    pub action: Action,
}

/// What an action acts on, and so who does it.
#[derive(Clone, Copy)]
pub enum Reach<'a> {
    /// Files, directories, links and settings of the kernel: the engine alone does it.
    Files(&'a dyn FileStep),
    /// Disks, filesystems, memory and services: a [`StepRunner`] does it.
    Machine(&'a dyn MachineStep),
    /// Another filesystem, which is mounted for it.
    Elsewhere(&'a On),
}

macro_rules! actions {
    ($($kind:ident($step:ident): $reach:ident,)*) => {
        /// What a step does. Every action can be recognised as done or not done from the machine alone,
        /// so that an interrupted one is finished and never done twice.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "do", rename_all = "snake_case")]
        pub enum Action {
            $($kind($step),)*
        }

        impl Action {
            /// The names of all kinds.
            #[cfg(any(test, feature = "fixture"))]
            pub const KINDS: &'static [&'static str] = &[$(stringify!($kind)),*];

            /// The name of its kind.
            #[cfg(any(test, feature = "fixture"))]
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Action::$kind(_) => stringify!($kind),)*
                }
            }

            /// What it acts on, with what does it.
            pub fn reach(&self) -> Reach<'_> {
                match self {
                    $(Action::$kind(step) => Reach::$reach(step),)*
                }
            }

            /// All that its kind says of it.
            pub fn behaviour(&self) -> &dyn Behaviour {
                match self {
                    $(Action::$kind(step) => step,)*
                }
            }

            fn behaviour_mut(&mut self) -> &mut dyn Behaviour {
                match self {
                    $(Action::$kind(step) => step,)*
                }
            }
        }

        $(impl From<$step> for Action {
            fn from(step: $step) -> Action {
                Action::$kind(step)
            }
        })*
    };
}

actions! {
    MakeDirectory(MakeDirectory): Files,
    WriteFile(WriteFile): Files,
    RemoveFile(RemoveFile): Files,
    SetKnob(SetKnob): Files,
    SetLink(SetLink): Files,
    On(On): Elsewhere,
    Partition(PartitionDisk): Machine,
    MakeArray(MakeArray): Machine,
    Format(Format): Machine,
    CopyTree(CopyTree): Machine,
    BuildInitramfs(BuildInitramfs): Machine,
    InstallInitramfs(InstallInitramfs): Machine,
    MakeSwapFile(MakeSwapFile): Machine,
    SwapOn(SwapOn): Machine,
    SwapOff(SwapOff): Machine,
    Mount(Mount): Machine,
    AttachDisk(AttachDisk): Machine,
    MakeImage(MakeImage): Machine,
    ReadUnits(ReadUnits): Machine,
    RestartService(RestartService): Machine,
    StartServer(StartServer): Machine,
    ProveBoot(ProveBoot): Machine,
    KeepJournal(KeepJournal): Machine,
    FillBoot(FillBoot): Machine,
}

impl Action {
    /// What it does, in one line.
    pub fn title(&self) -> String {
        self.behaviour().title()
    }

    /// How it is made sure that it was done, as a sentence without its full stop.
    pub fn proof_title(&self) -> String {
        self.behaviour().proof_title()
    }

    /// What undoing it does, in one line.
    pub fn undo_title(&self) -> String {
        self.behaviour().undo_title()
    }

    /// The file, directory or knob of the running system that is changed; nothing for an action on something else.
    pub fn path(&self) -> Option<&std::path::PathBuf> {
        self.behaviour().touches().path
    }

    /// The disks on which everything is lost.
    pub fn disks_lost(&self) -> Vec<&DiskIdentity> {
        self.behaviour().touches().disks_lost
    }

    /// The same disks, to refresh what is known to be on them.
    pub fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        self.behaviour_mut().disks_lost_mut()
    }
}

/// Whether steps make an image and change no machine: there is nothing to undo then.
pub fn make_an_image(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step.action, Action::FillBoot(_)))
}
