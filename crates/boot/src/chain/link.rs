//! A link of the chain: what was found, from where, how sure it is, and why the start ends there.

use std::fmt;

use crate::medium::Certainty;

/// A part of a start, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Firmware,
    Medium,
    Partition,
    Settings,
    Kernel,
    Initramfs,
    CommandLine,
    Root,
    Init,
    Mounts,
}

impl Stage {
    pub const ALL: [Stage; 10] = [
        Stage::Firmware,
        Stage::Medium,
        Stage::Partition,
        Stage::Settings,
        Stage::Kernel,
        Stage::Initramfs,
        Stage::CommandLine,
        Stage::Root,
        Stage::Init,
        Stage::Mounts,
    ];

    /// The stage before; the first has none before it.
    pub fn before(self) -> Stage {
        let place = Stage::ALL.iter().position(|stage| *stage == self).unwrap_or_default();
        Stage::ALL[place.saturating_sub(1)]
    }

    /// For a script: "command-line".
    pub fn name(self) -> &'static str {
        match self {
            Stage::Firmware => "firmware",
            Stage::Medium => "medium",
            Stage::Partition => "partition",
            Stage::Settings => "settings",
            Stage::Kernel => "kernel",
            Stage::Initramfs => "initramfs",
            Stage::CommandLine => "command-line",
            Stage::Root => "root",
            Stage::Init => "init",
            Stage::Mounts => "mounts",
        }
    }
}

impl fmt::Display for Stage {
    /// For a sentence: "the command line".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Firmware => "the firmware",
            Stage::Medium => "the medium",
            Stage::Partition => "the boot partition",
            Stage::Settings => "config.txt",
            Stage::Kernel => "the kernel",
            Stage::Initramfs => "the initramfs",
            Stage::CommandLine => "the command line",
            Stage::Root => "the root",
            Stage::Init => "the first program",
            Stage::Mounts => "the mounts",
        })
    }
}

/// One link of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub stage: Stage,
    /// What was found, as a clause.
    pub found: String,
    /// Where it was read, or the rule that it follows from.
    pub source: String,
    /// Since when the firmware follows the rule, where the link rests on one that is dated ("2025-08-13").
    pub since: Option<&'static str>,
    pub certainty: Certainty,
    /// Why the start ends here.
    pub stop: Option<Stop>,
    /// What does not end this start and matters.
    pub notes: Vec<Note>,
    /// What the doubt is about, where the link is not known.
    pub doubt: Doubt,
    /// What to do about the doubt, as a sentence without its full stop.
    pub remedy: Option<String>,
    /// What has to be true of the board for the link to hold, as a clause behind "if".
    pub condition: Option<String>,
    /// Whether what comes behind cannot be followed.
    pub(super) is_last: bool,
    /// Whether it stops because the system is for other boards.
    pub(super) is_for_others: bool,
}

/// What is in doubt where a link is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Which disk, partition or file the firmware reads: an edit of another one changes nothing.
    WhatIsRead,
    /// What another loader (U-Boot, UEFI) makes of the files: the kernel may be told something else.
    Loader,
    /// Anything else.
    Other,
}

/// Why a start ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// As a clause.
    pub why: String,
    /// What to change, as a sentence without its full stop.
    pub remedy: String,
}

/// Something that matters and does not end the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub subject: Subject,
    /// As a clause.
    pub what: String,
    /// What to change, as a sentence without its full stop.
    pub remedy: String,
}

/// What a note is about, to look for one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Another partition is mounted where the one that the firmware reads belongs.
    OtherPartitionMounted,
    /// Nothing is mounted where updates write kernels.
    UpdatesDoNotReach,
    /// `root=` names another root than the one that runs.
    OtherRoot,
    /// A kernel has no modules in the root.
    NoModules,
    /// Updated boot files were tried, and did not start.
    FilesDidNotStart,
    /// Updates write kernels to another place than the one where the boot partition is mounted.
    UpdatesGoElsewhere,
    /// The initial RAM filesystem seems to lack what the running system came by.
    InitramfsInDoubt,
    /// Anything without a kind of its own.
    Other,
}

impl Link {
    pub(super) fn new(stage: Stage, found: impl Into<String>, source: impl Into<String>) -> Link {
        Link {
            stage,
            found: found.into(),
            source: source.into(),
            since: None,
            certainty: Certainty::Certain,
            stop: None,
            notes: Vec::new(),
            doubt: match stage {
                Stage::Medium | Stage::Partition => Doubt::WhatIsRead,
                _ => Doubt::Other,
            },
            remedy: None,
            condition: None,
            is_last: false,
            is_for_others: false,
        }
    }

    /// What the doubt is about, and what to do.
    pub(super) fn in_doubt_of(mut self, doubt: Doubt, remedy: impl Into<String>) -> Link {
        self.doubt = doubt;
        self.remedy = Some(remedy.into());
        self
    }

    /// The link holds under a condition; of several, the first is told.
    pub(super) fn only_if(mut self, condition: String) -> Link {
        self.condition = self.condition.or(Some(condition));
        self
    }

    /// The system is for other boards.
    pub(super) fn for_others(mut self) -> Link {
        self.is_for_others = true;
        self
    }

    /// At most this sure.
    pub(super) fn with(mut self, certainty: Certainty) -> Link {
        self.certainty = self.certainty.min(certainty);
        self
    }

    /// Not known; the words say why.
    pub(super) fn not_known(mut self, found: impl Into<String>) -> Link {
        self.found = found.into();
        self.certainty = Certainty::NotKnown;
        self
    }

    /// Nothing behind it can be followed.
    pub(super) fn last(mut self) -> Link {
        self.is_last = true;
        self
    }

    pub(super) fn from(mut self, source: impl Into<String>, since: Option<&'static str>) -> Link {
        self.source = source.into();
        self.since = since;
        self
    }

    pub(super) fn stopped(mut self, why: impl Into<String>, remedy: impl Into<String>) -> Link {
        self.stop = Some(Stop { why: why.into(), remedy: remedy.into() });
        self
    }

    /// A stop that the running system contradicts is a reservation: it came up this way.
    pub(super) fn unless_it_runs(mut self, does_run: bool) -> Link {
        match self.stop.take_if(|_| does_run) {
            Some(stop) => self
                .not_known(format!("it runs, so something here is not understood: {}", stop.why)),
            None => self,
        }
    }

    pub(super) fn noted(mut self, what: impl Into<String>, remedy: impl Into<String>) -> Link {
        let note = Note { subject: Subject::Other, what: what.into(), remedy: remedy.into() };
        self.notes.push(note);
        self
    }

    /// A note of a kind that is looked for.
    pub(super) fn noted_of(
        mut self,
        subject: Subject,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Link {
        self.notes.push(Note { subject, what: what.into(), remedy: remedy.into() });
        self
    }
}
