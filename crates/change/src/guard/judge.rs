//! The decision: facts and consent in, verdict out. Pure; every reason is a sentence and what to
//! do about it is another.

use rubus_host::block::blockdev::OpenError;
use rubus_vocabulary::machine::BlockKind;

use super::facts::{DeviceFacts, Relation, TargetFacts, Use, UseKind};

/// What the user typed to confirm that everything on a device may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    typed: String,
}

impl Consent {
    /// The words as typed; white space around them does not count.
    pub fn new(typed: &str) -> Self {
        Consent { typed: typed.trim().to_string() }
    }
}

/// The words that confirm the loss of what is on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// What has to be typed, exactly.
    pub text: String,
    /// What it is, so that a person knows where to look.
    pub kind: ConfirmationKind,
}

/// What the words of a confirmation are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmationKind {
    /// The serial number of the device.
    Serial,
    /// The serial number of the disk with the number of the partition: "4C530001-part2".
    SerialAndPartition,
    /// Its name below `/dev/disk/by-id`, since it says no serial number of its own.
    ById,
    /// The address of the export that a network disk is attached to.
    Export,
    /// Its path, since it has neither.
    Path,
}

impl ConfirmationKind {
    /// For a sentence: "its serial number".
    pub fn phrase(self) -> &'static str {
        match self {
            ConfirmationKind::Serial => "its serial number",
            ConfirmationKind::SerialAndPartition => {
                "the serial number of its disk and its partition number"
            }
            ConfirmationKind::ById => "its name in /dev/disk/by-id (it has no serial number)",
            ConfirmationKind::Export => "the address of its export",
            ConfirmationKind::Path => "its path (it has no serial number of its own)",
        }
    }
}

/// One reason against overwriting a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// What is the matter, one sentence.
    pub what: String,
    /// What to do next, one sentence.
    pub next: String,
    pub(super) passing: Passing,
}

/// Whether a reason passes by itself, the least lasting first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Passing {
    /// udev examines the device, and lets go of it when it has done so.
    Udev,
    /// It may be over in a moment: a program that looks at the device.
    Soon,
    /// It does not pass by itself.
    Never,
}

impl Reason {
    pub(super) fn lasting(what: String, next: String) -> Self {
        Reason { what, next, passing: Passing::Never }
    }
}

/// Consent is missing, and that only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentNeeded {
    /// What has to be typed.
    pub expected: Confirmation,
    /// What was typed instead, when something was.
    pub wrong: Option<String>,
}

/// The answer of the guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The device may be overwritten.
    Allowed,
    /// It may be overwritten once the user confirms the loss of what is on it.
    NeedsConsent(ConsentNeeded),
    /// It may not be overwritten, whatever the user says.
    Refused(Vec<Reason>),
}

impl Verdict {
    pub(super) fn refused(what: String, next: String) -> Self {
        Verdict::Refused(vec![Reason::lasting(what, next)])
    }
}

/// Decides whether a target may be overwritten. All reasons are listed, not the first only, so
/// that a user can deal with them in one go.
pub fn judge(facts: &TargetFacts, consent: Option<&Consent>) -> Verdict {
    let look = || "Run `lsblk` or `rubus survey` to see the devices of this machine.".to_string();
    match facts {
        TargetFacts::Missing { asked } => Verdict::refused(
            format!("{asked} does not exist, and nothing was created in its place."),
            look(),
        ),
        TargetFacts::Dangling { asked, target } => Verdict::refused(
            format!("{asked} is a symbolic link to {target}, which does not exist."),
            "Plug the device in, or name another one.".into(),
        ),
        TargetFacts::Unreachable { asked, why } => Verdict::refused(
            format!("{asked} cannot be opened: {why}."),
            "Try again as root.".into(),
        ),
        TargetFacts::NotBlock { asked, what } => Verdict::refused(
            format!("{asked} is {what}, not a block device."),
            "Name a block device such as /dev/sda; to measure a filesystem, name a directory on it."
                .into(),
        ),
        TargetFacts::NoMedium { asked } => Verdict::refused(
            format!("There is no medium or no device behind {asked}."),
            "Insert the medium or connect the device.".into(),
        ),
        TargetFacts::Named { asked } => {
            Verdict::refused(format!("Nothing is known about {asked}."), look())
        }
        TargetFacts::Device(device) => judge_device(device, consent),
    }
}

/// The refusal of a device that the kernel does not open, although nothing spoke against it.
pub(super) fn cannot_open(path: &str, error: &OpenError) -> Verdict {
    let next = match error {
        OpenError::Busy => "Stop what uses it and try again.",
        OpenError::Denied => "Try again as root.",
        OpenError::ReadOnly => "Look for a write-protect switch.",
        OpenError::NoDevice => "Look at the cable or the medium and try again.",
        _ => "Look at the kernel log (`dmesg`) and try again.",
    };
    let passing = match error {
        OpenError::Busy => Passing::Soon,
        _ => Passing::Never,
    };
    Verdict::Refused(vec![Reason {
        what: format!("{path} cannot be opened: {error}."),
        next: next.into(),
        passing,
    }])
}

/// Decides whether a device may be detached: its users count, and not what it is or holds.
pub(super) fn judge_use(facts: &TargetFacts) -> Verdict {
    let TargetFacts::Device(device) = facts else {
        return judge(facts, None);
    };
    let reasons = against(device, Vec::new());
    if reasons.is_empty() { Verdict::Allowed } else { Verdict::Refused(reasons) }
}

/// The objections to a device, after these reasons. Waiting is all a user can do about udev, so udev is a reason only
/// where there is no other.
fn against(device: &DeviceFacts, mut reasons: Vec<Reason>) -> Vec<Reason> {
    reasons.extend(device.uses.iter().map(|used| reason(device, used)));
    reasons.extend(unseen(device));
    let is_other = |reason: &Reason| reason.passing != Passing::Udev;
    if reasons.iter().any(is_other) {
        reasons.retain(is_other);
    }
    reasons
}

fn unseen(device: &DeviceFacts) -> impl Iterator<Item = Reason> {
    device.unreadable.iter().map(|what| {
        Reason::lasting(
            format!("Not everything could be checked: {what}."),
            "Try as root, with /proc and /sys mounted: nothing is overwritten unseen.".into(),
        )
    })
}

fn judge_device(device: &DeviceFacts, consent: Option<&Consent>) -> Verdict {
    let reasons = against(device, unfit(device));
    if !reasons.is_empty() {
        return Verdict::Refused(reasons);
    }
    let expected = confirmation(device);
    match consent {
        Some(consent) if consent.typed == expected.text => Verdict::Allowed,
        Some(consent) => {
            Verdict::NeedsConsent(ConsentNeeded { wrong: Some(consent.typed.clone()), expected })
        }
        None if may_lose(device).is_none() => Verdict::Allowed,
        None => Verdict::NeedsConsent(ConsentNeeded { expected, wrong: None }),
    }
}

/// Why overwriting a device needs consent, as the end of a sentence about it; nothing where it does not.
pub fn may_lose(device: &DeviceFacts) -> Option<&'static str> {
    match device.kind {
        _ if !device.contents.is_empty() => Some("holds data that would be lost"),
        BlockKind::Nbd => Some("is on the network: who else uses it cannot be seen from here"),
        _ => None,
    }
}

/// What has to be typed for this device: what tells it from every other one.
pub fn confirmation(device: &DeviceFacts) -> Confirmation {
    let identity = &device.identity;
    let is_unique = identity.serial_shared_with.is_none();
    let (text, kind) = match (&identity.serial, identity.partition, &identity.by_id) {
        (Some(serial), None, _) if is_unique => (serial.clone(), ConfirmationKind::Serial),
        (Some(serial), Some(number), _) if is_unique => {
            (format!("{serial}-part{number}"), ConfirmationKind::SerialAndPartition)
        }
        (None, _, Some(name)) => (name.clone(), ConfirmationKind::ById),
        (None, None, None) if identity.export.is_some() => {
            let address = identity.export.clone().unwrap_or_default();
            (address, ConfirmationKind::Export)
        }
        _ => (device.path.clone(), ConfirmationKind::Path),
    };
    Confirmation { text, kind }
}

/// Reasons that lie in the device itself.
fn unfit(device: &DeviceFacts) -> Vec<Reason> {
    let path = &device.path;
    let mut reasons = Vec::new();
    let mut add = |what: String, next: &str| {
        reasons.push(Reason::lasting(what, next.into()));
    };
    match device.kind {
        BlockKind::Zram | BlockKind::Ram => add(
            format!("{path} is memory, not a storage device."),
            "Name a disk, a card, a stick or a loop device.",
        ),
        BlockKind::Rom => add(
            format!("{path} is an optical drive."),
            "Name a disk, a card, a stick or a loop device.",
        ),
        BlockKind::MmcArea => add(
            format!(
                "{path} is a boot or protected area of an eMMC: overwriting it can make the board unbootable for good."
            ),
            "Name the eMMC itself.",
        ),
        _ if device.name.starts_with("mtdblock") => add(
            format!("{path} is raw flash, which often holds the board's firmware."),
            "Name a disk, a card, a stick or a loop device.",
        ),
        _ => {}
    }
    let Some(geometry) = device.geometry else {
        return reasons;
    };
    if geometry.size_bytes == 0 {
        add(
            format!("There is no medium or no device behind {path}."),
            "Insert the medium or connect the device.",
        );
    } else if geometry.read_only {
        add(
            format!("{path} is write-protected."),
            "Look for a write-protect switch on the card or its adapter; a loop device or an export may have been set up read-only.",
        );
    }
    reasons
}

fn reason(device: &DeviceFacts, used: &Use) -> Reason {
    let name = subject(device, used);
    let (what, next) = match &used.kind {
        UseKind::Mounted { filesystem, points } => mounted(&name, filesystem, points),
        UseKind::Btrfs { name: volume, points } => btrfs(&name, volume, points),
        UseKind::Swap => (
            format!("{name} is active swap."),
            format!("Switch it off with `swapoff /dev/{}`.", used.device),
        ),
        UseKind::SwapFile { path } => (
            format!("The swap file {path} lies on {}.", name.trim_end_matches(',')),
            format!("Switch it off with `swapoff {}`.", quoted(path)),
        ),
        UseKind::Holder { what } => (
            format!("{name} is a part of {what}."),
            "Stop that first (`mdadm --stop`, `vgchange -an`, `cryptsetup close`).".into(),
        ),
        UseKind::Loop { name: on_it, backing } => (
            format!(
                "The loop device {on_it} ({backing}) stands on {}.",
                name.trim_end_matches(',')
            ),
            format!("Detach it with `losetup -d /dev/{on_it}`."),
        ),
        UseKind::SameBacking { backing } => (
            format!(
                "{} and /dev/{} stand on the same file {backing}: what is written to one is on both.",
                device.path, used.device
            ),
            format!("Detach it with `losetup -d /dev/{}`.", used.device),
        ),
        UseKind::BackingIsSwap { path } => (
            format!("Its backing file {path} is active swap."),
            format!("Switch it off with `swapoff {}`.", quoted(path)),
        ),
        UseKind::StartsBoard { says } => (
            format!("This board starts from {name} ({says})."),
            "Name another device; to have this one written all the same, put it into another machine.".into(),
        ),
        UseKind::Open { pid, program, .. } if is_udev(program) => (
            format!("udev still examines {} (process {pid}).", name.trim_end_matches(',')),
            "Try again in a moment.".into(),
        ),
        UseKind::Open { pid, program, writes } => opened(&name, *pid, program, *writes),
        UseKind::Exported { by } => (
            format!("{name} is exported by {by}, and another machine may write to it."),
            "Stop that export first.".into(),
        ),
        UseKind::BackingOpen { pid, program } => {
            let file = format!("The backing file of {name}");
            opened(&file, *pid, program, true)
        }
        UseKind::Claimed { elsewhere } => claimed(&name, elsewhere),
    };
    Reason { what, next, passing: passing(&used.kind) }
}

fn passing(kind: &UseKind) -> Passing {
    match kind {
        UseKind::Open { program, .. } if is_udev(program) => Passing::Udev,
        UseKind::Open { .. } => Passing::Soon,
        // The kernel itself claims a disk for the moment in which it reads the table again.
        UseKind::Claimed { elsewhere } if elsewhere.is_empty() => Passing::Soon,
        _ => Passing::Never,
    }
}

/// Names of udev's processes: workers of today's systemd, of systemd before version 251, and of eudev.
const UDEV: [&str; 3] = ["(udev-worker)", "systemd-udevd", "udevd"];

fn is_udev(program: &str) -> bool {
    UDEV.contains(&program)
}

pub(super) fn opened(name: &str, pid: u32, program: &str, writes: bool) -> (String, String) {
    let how = if writes { "which may write to it" } else { "which serves it to others" };
    (
        format!("{name} is open in process {pid} ({program}), {how}."),
        "Stop that program first.".into(),
    )
}

fn claimed(name: &str, elsewhere: &[String]) -> (String, String) {
    if elsewhere.is_empty() {
        return (
            format!(
                "The kernel says that {name} is in use, but not by whom: it may be mounted in a \
                 container or held by a program."
            ),
            "Look with `lsblk`, `fuser -v` and `findmnt` as root.".into(),
        );
    }
    let places = elsewhere.join("; ");
    (
        format!("{name} is mounted in another mount namespace: {places}."),
        "Stop that container or service first.".into(),
    )
}

/// The used device with its relation to the target, to begin a sentence with.
fn subject(device: &DeviceFacts, used: &Use) -> String {
    let own = &device.path;
    let other = format!("/dev/{}", used.device.replace('!', "/"));
    match used.relation {
        Relation::Itself => own.clone(),
        Relation::Partition => format!("{other}, a partition of {own},"),
        Relation::WholeDisk => format!("{other}, the disk that {own} is a partition of,"),
        Relation::Above => format!("{other}, which stands on {own},"),
        Relation::Below => format!("{other}, on which {own} stands,"),
        Relation::Twin => format!("{other}, another loop device over the same file,"),
    }
}

/// Mount points that a running system cannot do without.
const VITAL: [&str; 8] =
    ["/", "/usr", "/boot", "/boot/firmware", "/boot/efi", "/var", "/home", "/etc"];

fn mounted(name: &str, filesystem: &str, points: &[String]) -> (String, String) {
    let what = format!("{name} is mounted at {} ({filesystem}).", points.join(", "));
    (with_root(what, points), unmount(points))
}

fn btrfs(name: &str, volume: &str, points: &[String]) -> (String, String) {
    if points.is_empty() {
        return (
            format!(
                "{name} belongs to the btrfs filesystem {volume}, which is in use but not mounted where this program can see it."
            ),
            "Stop the container or service that has it mounted.".into(),
        );
    }
    let places = points.join(", ");
    let what =
        format!("{name} belongs to the btrfs filesystem {volume}, which is mounted at {places}.");
    (with_root(what, points), unmount(points))
}

fn with_root(what: String, points: &[String]) -> String {
    if points.iter().any(|point| point == "/") {
        format!("{what} This system runs from it.")
    } else {
        what
    }
}

fn unmount(points: &[String]) -> String {
    if points.iter().any(|point| VITAL.contains(&point.as_str())) {
        return "Start the machine from another medium, or name another device.".into();
    }
    // Later mounts may lie in earlier ones.
    let commands: Vec<String> =
        points.iter().rev().map(|point| format!("`umount {}`", quoted(point))).collect();
    format!("Unmount it: {}.", commands.join(", "))
}

/// A word as a shell would have to be given it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
pub(super) mod tests;
