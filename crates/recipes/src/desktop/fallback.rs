//! The way back to the old system when the disk with the new root does not answer: a script in the initial RAM filesystem.
//!
//! `root=` on the kernel's command line goes on naming the new root. The script waits for it, and after some seconds says
//! that the root is the old one, which the move has not changed. It leaves a mark for `rubus status`, because whatever is
//! written then is missing on the new root.

use std::path::{Path, PathBuf};

use super::super::{PlanBuilder, PlanInput};
use super::current::{self, Start};
use super::layout::NewDisk;
use super::options::Choice;
use rubus_boot::cmdline_txt::CmdlineTxt;
use rubus_change::plan::volume::{DiskIdentity, Place};
use rubus_change::plan::{Action, Plan};
use rubus_change::steps::Format;
use rubus_vocabulary::machine::BlockDevice;

/// Where the script is on a root; initramfs-tools takes it from there.
pub(super) const SCRIPT: &str = "/etc/initramfs-tools/scripts/local-top/rubus-desktop";
/// Where it is in an initial RAM filesystem.
const INSIDE: &str = "/scripts/local-top/rubus-desktop";
/// What mounts the boot partition. The old system may lack the modules of a kernel that the new one has installed, and would
/// stop in its emergency mode without them.
pub(super) const BOOT_PARTITION: [&str; 3] = ["vfat", "nls_cp437", "nls_ascii"];
/// What the script leaves when it has started the old system: the partition that did not answer, and a sentence.
const MARK: &str = "/run/rubus/desktop-from-old-disk";

/// The old root, in the words of initramfs-tools, and how long the new one is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fallback {
    /// How long to wait for the new root, in seconds.
    pub(super) wait_s: u32,
    /// What is started then, in words: "the card".
    pub(super) old: &'static str,
    /// `root=` of the old system.
    root: String,
    /// The node by which the script sees that it is there.
    node: String,
    kind: String,
    /// As `mount` takes them; may be empty.
    flags: String,
}

impl Fallback {
    /// Nothing where it was not wished for or the old root has no name that every start finds again; then a note says so.
    pub(super) fn of(
        situation: &PlanInput<'_>,
        choice: &Choice,
        start: &Start<'_>,
        old_disks: &[&BlockDevice],
        draft: &mut PlanBuilder,
    ) -> Option<Fallback> {
        let wait_s = choice.wait_s?;
        let found = old_root(situation, start);
        if found.is_none() {
            draft.notes.push(
                "The old system does not start by itself when the new disk does not answer: its root has no name that each \
                 start finds again. Root's rights may be missing to read it."
                    .into(),
            );
        }
        let (root, node, kind, flags) = found?;
        let is_card = old_disks.iter().any(|disk| disk.name.starts_with("mmcblk"));
        Some(Fallback {
            wait_s,
            old: if is_card { "the card" } else { "the old disk" },
            root,
            node,
            kind,
            flags,
        })
    }

    /// The script for a root on this disk.
    pub(super) fn script(&self, new: &NewDisk) -> String {
        let flags =
            if self.flags.is_empty() { String::new() } else { format!("-o {}", self.flags) };
        include_str!("local-top.sh")
            .replace("@PARTUUID@", &new.layout.root.partuuid)
            .replace("@WAIT@", &self.wait_s.to_string())
            .replace("@DISK@", &title(&new.disk))
            .replace("@MARK@", MARK)
            .replace("@OLD@", self.old)
            .replace("@OLD_NODE@", &self.node)
            .replace("@OLD_ROOT@", &self.root)
            .replace("@OLD_KIND@", &self.kind)
            .replace("@OLD_FLAGS@", &flags)
    }
}

/// What has to be in each initial RAM filesystem.
pub(super) fn files(fallback: Option<&Fallback>) -> Vec<PathBuf> {
    fallback.map(|_| INSIDE.into()).into_iter().collect()
}

/// `root=`, node, filesystem and mount options of the old root.
fn old_root(
    situation: &PlanInput<'_>,
    start: &Start<'_>,
) -> Option<(String, String, String, String)> {
    let machine = situation.machine;
    let mount = current::root(machine)?;
    let line = start.paths.first().and_then(|path| start.cmdlines.get(&path.cmdline));
    let line = line.map(|file| CmdlineTxt::parse(file.text.as_str()));
    let word = |name: &str| line.as_ref().and_then(|line| line.get(name));
    let device = mount.device.as_deref().and_then(|name| machine.device(name));
    let known = device.and_then(|device| device.identity.partuuid.as_ref());
    let root = match known {
        Some(partuuid) => format!("PARTUUID={partuuid}"),
        None => word("root")?.to_string(),
    };
    let node = match root.split_once('=') {
        Some(("PARTUUID", id)) => format!("/dev/disk/by-partuuid/{id}"),
        Some(("UUID", id)) => format!("/dev/disk/by-uuid/{id}"),
        None if root.starts_with("/dev/") => root.clone(),
        _ => return None,
    };
    let flags = match word("rootflags") {
        Some(flags) => flags.to_string(),
        None if mount.filesystem == "btrfs" => format!("subvol={}", mount.root),
        None => String::new(),
    };
    let kind = mount.filesystem.clone();
    // They stand between a shell's quotes, twice.
    let is_plain = |text: &String| {
        let mut all = text.chars();
        all.all(|c| c.is_ascii_alphanumeric() || "=,_-./:@+".contains(c))
    };
    let is_sound = [&root, &node, &kind, &flags].into_iter().all(is_plain);
    is_sound.then_some((root, node, kind, flags))
}

/// A disk in words that a shell leaves alone.
fn title(disk: &DiskIdentity) -> String {
    let plain = |text: &str| -> String {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || " _-./:+".contains(*c);
        let text: String = text.chars().filter(is_plain).collect();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let model = disk.model.as_deref().map(plain).unwrap_or_default();
    let serial = disk.serial.as_deref().map(plain).unwrap_or_default();
    let mut words = "the disk".to_string();
    if !model.is_empty() {
        words += &format!(" {model}");
    }
    if !serial.is_empty() {
        words += &format!(" (serial number {serial})");
    }
    words
}

/// A start from the old system because the new disk did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedFromOld {
    partuuid: String,
    /// Why, as the end of a sentence: "the disk X did not answer within 30 s".
    pub why: String,
}

impl StartedFromOld {
    /// Where the script of the initial RAM filesystem notes it; absent after every other start.
    pub const MARK: &str = MARK;

    /// Reads what the script has noted.
    pub fn parse(text: &str) -> Option<StartedFromOld> {
        let (partuuid, why) = text.trim().split_once('\n')?;
        Some(StartedFromOld { partuuid: partuuid.trim().into(), why: why.trim().into() })
    }

    /// Whether the disk that did not answer has the root which this plan made.
    pub fn is_of(&self, plan: &Plan) -> bool {
        plan.steps.iter().any(|step| {
            matches!(&step.action, Action::Format(Format { place: Place::Partition { partuuid, .. }, .. })
                if *partuuid == self.partuuid)
        })
    }
}

/// What to look at.
pub(super) fn paths() -> Vec<PathBuf> {
    let ancestors = Path::new(SCRIPT).ancestors().take(3);
    ancestors.map(PathBuf::from).collect()
}
