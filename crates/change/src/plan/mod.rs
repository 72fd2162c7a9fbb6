//! A change as a plan: what will be done, why, and how it is undone, before anything is done.
//!
//! A plan is a plain value made by a pure function from facts and options (see [`crate::recipe`]).
//! It can be printed, saved and read back; applying does only what it says. Everything that undoing needs
//! (the former contents, the former values) is in the plan itself, so that a plan on stable storage is enough to
//! go back. How far an application has come is the [`journal`]'s.

pub mod commands;
pub mod diff;
pub mod journal;
pub mod promise;
mod title;
pub mod verify;
pub mod volume;

use std::collections::BTreeMap;
use std::path::PathBuf;

use rubus_vocabulary::check::Check;
use serde::{Deserialize, Serialize};

use promise::Promise;
use volume::{DiskIdentity, NewFilesystem, PartitionTable, Place, Volume};

/// The version of the format that this program writes and reads.
pub const FORMAT: u32 = 1;

/// A change of a machine, ready to be shown and applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// Version of the format: 1.
    pub format: u32,
    /// Name of the recipe.
    pub recipe: String,
    /// What the user chose, by name of the option.
    pub options: BTreeMap<String, String>,
    /// What the whole does, as a sentence.
    pub title: String,
    /// When it was made, RFC 3339, UTC.
    pub made: String,
    /// What was looked at before; all are met in a plan that may be applied.
    pub checks: Vec<Check>,
    /// In the order in which they are done; undone in the opposite order.
    pub steps: Vec<Step>,
    /// What the user should know: what it costs, what happens at the next boot.
    pub notes: Vec<String>,
    /// What can go wrong, in plain words, worst first ("two disks: twice the chance of losing all").
    #[serde(default)]
    pub risks: Vec<String>,
    /// What it is expected to give.
    #[serde(default)]
    pub gains: Vec<Gain>,
    /// Why it is not said what it gives, with the measurement that would tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gains_unknown: Option<String>,
    /// What applying it takes.
    #[serde(default)]
    pub effort: Effort,
    /// What holds afterwards.
    #[serde(default)]
    pub promises: Vec<Promise>,
    /// True when the change is in force only after the machine was started again.
    #[serde(default)]
    pub needs_boot: bool,
    /// The trial start between its steps, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
}

/// A start on trial in the middle of a plan: the steps before it prepare it, and those after it are done by
/// `rubus verify` when the machine has come up and everything holds. Until then every usual start is the old one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// Number, from 0, of the first step that waits for it.
    pub before_step: usize,
    /// What starts the machine on trial, once, as it is typed into a shell.
    pub start: String,
}

/// What a plan is expected to give, as before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gain {
    /// What gets better ("4 KiB random writes").
    pub what: String,
    /// How it is now, with its unit ("0.9 MB/s").
    pub now: String,
    /// How it will be.
    pub then: String,
    /// How much better: above 1.
    pub ratio: f64,
    /// Where both come from ("measured here yesterday", "measured speeds of both disks, added").
    pub source: String,
}

/// How a note begins that says what to do when the machine does not start any more.
pub const RESCUE: &str = "If the board does not come up:";

/// What applying a plan takes. Zero is "next to nothing".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effort {
    /// Bytes that are written.
    pub written_bytes: u64,
    /// Least time in seconds.
    pub least_s: f64,
    /// Most time in seconds.
    pub most_s: f64,
    /// Where the time comes from; empty where nothing was measured for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

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

/// What a step does. Every action can be recognised as done or not done from the machine alone,
/// so that an interrupted one is finished and never done twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Action {
    /// A directory is made; its parent exists. Undoing removes it if nothing else is in it.
    MakeDirectory {
        /// Absolute path.
        path: PathBuf,
    },
    /// A text file gets new contents, or is made.
    WriteFile {
        /// Absolute path.
        path: PathBuf,
        /// What it holds now; absent when it does not exist.
        was: Option<TextFile>,
        /// What it will hold.
        becomes: TextFile,
    },
    /// A text file is removed.
    RemoveFile {
        /// Absolute path.
        path: PathBuf,
        /// What it holds now.
        was: TextFile,
    },
    /// A setting of the running kernel, in `/sys` or `/proc/sys`.
    SetKnob {
        /// Absolute path.
        path: PathBuf,
        /// Its value now.
        was: String,
        /// Its new value.
        becomes: String,
    },
    /// A symbolic link is made or turned to another place, which is how systemd's units are switched on, off
    /// and masked.
    SetLink {
        /// Absolute path of the link.
        path: PathBuf,
        /// Where it points now; absent when there is none.
        was: Option<PathBuf>,
        /// Where it will point; absent: it is removed.
        becomes: Option<PathBuf>,
    },
    /// One of the actions on files, on a filesystem that is mounted for it and unmounted again. Its paths begin
    /// at the top of that filesystem.
    On {
        /// The filesystem.
        volume: Volume,
        /// The action on it.
        action: Box<Action>,
        /// Whether undoing takes it back. A filesystem that this plan made is only left behind.
        #[serde(default, skip_serializing_if = "is_false")]
        is_undone: bool,
    },
    /// A partition table is written to a disk: everything on it is lost. Undoing leaves the disk as it is.
    Partition { disk: DiskIdentity, table: PartitionTable },
    /// Disks become one array with mdadm. Undoing stops it and takes the members' superblocks away.
    MakeArray {
        /// Name below `/dev/md/`.
        name: String,
        /// Its UUID, four groups of eight hexadecimal digits with colons, as mdadm writes it.
        uuid: String,
        /// The level; only 0 is made.
        level: u32,
        chunk_bytes: u64,
        /// The members, in order.
        members: Vec<Place>,
    },
    /// A filesystem or swap area is made. Undoing leaves it as it is.
    Format {
        /// Where.
        place: Place,
        /// What.
        filesystem: NewFilesystem,
    },
    /// The tree of the running root is copied. Undoing leaves the copy as it is.
    CopyTree {
        /// The root that is copied, without what is mounted below it.
        from: PathBuf,
        /// The filesystem that becomes the copy.
        to: Volume,
        /// Absolute paths in the source whose contents are left out; the directory itself is copied.
        without_contents_of: Vec<PathBuf>,
        /// Absolute paths in the source that are left out.
        without: Vec<PathBuf>,
        /// Which time this is.
        pass: Pass,
    },
    /// An initial RAM filesystem for another root is made on this machine, looked into, and put in the place of
    /// the one that is started now, which is kept. Undoing puts the kept one back.
    BuildInitramfs {
        /// The root that it is for; its `initramfs-tools` configuration counts.
        root: Volume,
        /// The kernel's release ("6.12.47+rpt-rpi-v8").
        release: String,
        /// The file that the firmware reads ("/boot/firmware/initramfs8").
        path: PathBuf,
        /// Where the current one is kept; absent when there is none now.
        kept: Option<PathBuf>,
        /// Modules that must be inside, or built into the kernel.
        modules: Vec<String>,
        /// Files that must be inside, by their absolute paths there.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<PathBuf>,
    },
    /// An initial RAM filesystem that was made under a name of its own takes the place of the one that is started now,
    /// which is kept. One that was made there meanwhile for a newer kernel, and that holds what the root needs, stays.
    /// Undoing puts the kept one back.
    InstallInitramfs {
        /// The root that it is for.
        root: Volume,
        /// The kernel's release that it was made for.
        release: String,
        /// Its current name ("/boot/firmware/initramfs-rubus").
        from: PathBuf,
        /// The file that the firmware reads ("/boot/firmware/initramfs8").
        path: PathBuf,
        /// Where the current one is kept; absent when there is none now.
        kept: Option<PathBuf>,
        /// Modules that must be inside, or built into the kernel.
        modules: Vec<String>,
        /// Files that must be inside, by their absolute paths there.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<PathBuf>,
    },
    /// A swap file is made, with what btrfs wants where it lies on that. Undoing removes it.
    MakeSwapFile {
        /// Absolute path.
        path: PathBuf,
        /// Its size in bytes, a multiple of 4096.
        size_bytes: u64,
    },
    /// Swap is used from now on. Undoing stops that.
    SwapOn {
        /// `UUID=…`, or the absolute path of a file or device.
        what: String,
        /// Priority, -1 to 32767; absent: the kernel chooses.
        priority: Option<i32>,
    },
    /// Swap is not used from now on. Undoing uses it again.
    SwapOff {
        /// Absolute path of the file or device.
        what: String,
        /// Its priority now.
        priority: Option<i32>,
    },
    /// A filesystem is mounted. Undoing unmounts it.
    Mount {
        /// What: `UUID=…`, a device, or `tmpfs`.
        what: String,
        /// Where; the directory exists.
        at: PathBuf,
        /// Its type.
        kind: String,
        options: String,
    },
    /// An NBD export becomes a block device of the kernel, with a watcher. Undoing detaches it.
    AttachDisk {
        /// The export, such as `nbd://192.168.1.2/disk`.
        address: String,
        /// The device, such as `/dev/nbd0`.
        device: PathBuf,
        /// What stands behind `rubus attach`, address and device first.
        arguments: Vec<String>,
    },
    /// A disk image full of zeros is made; it takes room as it is written. Undoing leaves it: somebody may have written to it.
    MakeImage {
        /// Absolute path; its directory exists.
        path: PathBuf,
        size_bytes: u64,
    },
    /// systemd reads all units anew. Undoing does so too: as the first step of a plan it lets systemd forget the units that
    /// undoing the others has removed.
    ReadUnits,
    /// A service of systemd starts again and reads its settings. Undoing goes through the steps from the last to the first, so
    /// a plan has this step twice: before the files with the settings, for the undo, and behind them.
    RestartService {
        /// Its unit: "systemd-journald.service".
        unit: String,
        when: When,
    },
    /// A server of disk images is started by its socket unit and asked what it has. Undoing stops both units.
    StartServer {
        /// The name of both units without their endings: "rubus-serve-disk".
        unit: String,
        /// The socket unit's Unix socket, which is there as long as it listens.
        socket: PathBuf,
        /// What stands behind `rubus nbd` to ask the server, so that it has to start and to open what it serves.
        question: Vec<String>,
        /// The disks that its clients may overwrite.
        gives_away: Vec<DiskIdentity>,
    },
    /// It is proven that the board will start with another root once the last texts of this plan are in the boot
    /// partition: what the firmware may load, the command line, the volumes and the table of mounts are looked at together
    /// (see [`rubus_boot::proof`]). Nothing is changed; what is not proven stops the plan. Undoing does nothing.
    ProveBoot {
        /// The root that will be started.
        root: Volume,
        /// Where the boot partition is mounted.
        boot: PathBuf,
    },
    /// The plan and its journal are put on another root as well, so that the change can be looked at, finished and
    /// undone from there too. Undoing leaves them.
    KeepJournal {
        /// The other root.
        on: Volume,
    },
    /// Only for an image that is being made: the files of its boot partition, which were prepared in a directory, are
    /// put on its FAT filesystem and compared with what was prepared. Undoing leaves them.
    FillBoot {
        /// The partition with the FAT filesystem.
        place: Place,
    },
}

/// Which time a tree is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// The first time, while the machine is at work: files may change and vanish meanwhile.
    First,
    /// Once more, what has changed since, with nothing let pass; then source and copy are compared.
    Again,
}

/// On which way through a plan a step does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Only when the plan is applied.
    Applied,
    /// Only when it is undone.
    Undone,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde calls it so.
fn is_false(value: &bool) -> bool {
    !value
}

/// A small text file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextFile {
    /// Its contents.
    pub text: String,
    /// Its permission bits.
    pub mode: u32,
}

impl TextFile {
    /// A file that everybody may read and root may write.
    pub fn public(text: impl Into<String>) -> Self {
        TextFile { text: text.into(), mode: 0o644 }
    }
}

impl Action {
    /// The file, directory or knob of the running system that is changed; nothing for an action on something else.
    pub fn path(&self) -> Option<&PathBuf> {
        match self {
            Action::MakeDirectory { path }
            | Action::WriteFile { path, .. }
            | Action::RemoveFile { path, .. }
            | Action::SetKnob { path, .. }
            | Action::SetLink { path, .. }
            | Action::MakeSwapFile { path, .. }
            | Action::MakeImage { path, .. }
            | Action::BuildInitramfs { path, .. }
            | Action::InstallInitramfs { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The disks on which everything is lost.
    pub fn disks_lost(&self) -> Vec<&DiskIdentity> {
        match self {
            Action::Partition { disk, .. } => vec![disk],
            Action::Format { place, .. } => place.disks(),
            Action::MakeArray { members, .. } => members.iter().flat_map(Place::disks).collect(),
            Action::StartServer { gives_away, .. } => gives_away.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// What it does, in one line.
    pub fn title(&self) -> String {
        title::forwards(self)
    }

    /// How it is made sure that it was done, as a sentence without its full stop.
    pub fn proof_title(&self) -> String {
        title::proof(self)
    }

    /// What undoing it does, in one line.
    pub fn undo_title(&self) -> String {
        title::back(self)
    }
}

/// Whether a kernel's answer says what was asked for. Switches answer Y and N to 1 and 0; lists show
/// the choice in brackets (`lzo [zstd]`); numbers may come back without leading zeros.
pub fn knob_says(live: &str, wanted: &str) -> bool {
    let (live, wanted) = (live.trim(), wanted.trim());
    let chosen = live
        .split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .unwrap_or(live);
    let switch = |text: &str| match text {
        "Y" | "y" | "1" => Some(true),
        "N" | "n" | "0" => Some(false),
        _ => None,
    };
    let numbers = chosen.parse::<i64>().ok().zip(wanted.parse::<i64>().ok());
    chosen == wanted
        || numbers.is_some_and(|(live, wanted)| live == wanted)
        || switch(chosen).is_some() && switch(chosen) == switch(wanted)
}

impl Plan {
    /// The checks that do not hold.
    pub fn obstacles(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.is_met)
    }

    /// The disks on which everything is lost, each once. An image that is made new loses nothing.
    pub fn disks_lost(&self) -> Vec<&DiskIdentity> {
        let mut lost: Vec<&DiskIdentity> = Vec::new();
        if self.is_of_an_image() {
            return lost;
        }
        for disk in self.steps.iter().flat_map(|step| step.action.disks_lost()) {
            if !lost.iter().any(|known| known.path == disk.path) {
                lost.push(disk);
            }
        }
        lost
    }

    /// Whether it makes an image and changes no machine: there is nothing to undo then.
    pub fn is_of_an_image(&self) -> bool {
        let mut actions = self.steps.iter().map(|step| &step.action);
        actions.any(|action| matches!(action, Action::FillBoot { .. }))
    }

    /// How large the image becomes that it makes, bytes.
    pub fn image_bytes(&self) -> Option<u64> {
        let mut actions = self.steps.iter().map(|step| &step.action);
        let found = actions.find_map(|action| match action {
            Action::Partition { disk, .. } => Some(disk.size_bytes),
            _ => None,
        });
        found.filter(|_| self.is_of_an_image())
    }

    /// Whether it changes nothing, since everything is already as it should be.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_answers_in_its_own_words() {
        for (live, wanted) in [
            ("Y\n", "1"),
            ("N", "0"),
            ("20", "20"),
            ("lzo [zstd] lz4", "zstd"),
            ("007", "7"),
            ("zsmalloc", "zsmalloc"),
        ] {
            assert!(knob_says(live, wanted), "{live} for {wanted}");
        }
        for (live, wanted) in
            [("N", "1"), ("lzo [zstd]", "lzo"), ("lzo", "zstd"), ("20", "2"), ("", "Y")]
        {
            assert!(!knob_says(live, wanted), "{live} for {wanted}");
        }
    }

    #[test]
    fn a_plan_survives_being_saved() {
        let plan = crate::fixture::plans::small_plan();
        let json = serde_json::to_string(&plan).expect("a plan serialises");
        assert_eq!(serde_json::from_str::<Plan>(&json).expect("and back"), plan);
    }
}
