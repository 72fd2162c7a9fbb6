//! A filesystem at a place of the tree: what may be there, its line in fstab, mounted at once.

use std::path::{Path, PathBuf};

use super::{PathState, PlanBuilder, PlanInput};
use rubus_boot::fstab::{Entry, Fstab};
use rubus_boot::volume::{Name, NamedVolume};
use rubus_change::plan::{Action, Step};
use rubus_change::steps::{Mount, WriteFile};

pub(super) const FSTAB: &str = "/etc/fstab";

/// Places that hold what a system runs on. Mounting something over them hides that.
const VITAL: [&str; 27] = [
    "/",
    "/bin",
    "/boot",
    "/boot/firmware",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/sbin",
    "/var",
    "/var/lib",
    "/var/lib/dpkg",
    "/var/log/journal",
];
/// Below these nothing is mounted by a recipe at all.
const CLOSED: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/etc", "/usr"];
/// More names than these are counted only.
const SHOWN: usize = 5;

/// What is to be at a place.
pub(super) struct MountRequest<'a> {
    /// The mount point.
    pub(super) at: &'a Path,
    /// `UUID=…` or `tmpfs`.
    pub(super) what: &'a str,
    /// Type of the filesystem.
    pub(super) kind: &'a str,
    /// The options of the line in fstab.
    pub(super) options: &'a str,
    /// The round in which fsck(8) looks at it at a boot.
    pub(super) pass: u32,
}

/// A path that a mount can be at, or a sentence that says what one is.
pub(super) fn place(value: &str) -> Result<(), String> {
    let path = Path::new(value);
    let is_plain = path.components().all(|part| !matches!(part, std::path::Component::ParentDir));
    let is_clean = is_plain && !value.contains(char::is_control) && value.len() <= 255;
    if path.is_absolute() && is_clean && !value.contains("//") {
        Ok(())
    } else {
        Err("write an absolute path, such as /mnt/data".into())
    }
}

/// What has to be looked at before something can be put at a place.
pub(super) fn look_at(at: &str) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from(FSTAB)];
    paths.extend(directories(Path::new(at)));
    paths
}

/// A directory and those above it, the root left out.
pub(super) fn directories(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().filter(|path| path.parent().is_some());
    above.map(PathBuf::from).collect()
}

/// Checks that a place is free for it: no vital one, nothing mounted there, nothing in it. Whether it is already there
/// as wanted is the caller's to find out before.
pub(super) fn check_place(at: &Path, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let shown = at.display();
    let is_vital = VITAL.iter().any(|vital| at == Path::new(vital))
        || CLOSED.iter().any(|closed| at.starts_with(closed));
    draft.check(
        "the place is none that the system needs",
        !is_vital,
        shown.to_string(),
        "take a directory of its own, such as /mnt/data or /srv/data",
    );
    if is_vital {
        return;
    }
    let mounted = situation.machine.mounts.iter().find(|mount| Path::new(&mount.point) == at);
    draft.check(
        "nothing is mounted there",
        mounted.is_none(),
        mounted.map_or(format!("{shown} is no mount point"), |mount| {
            format!("{} ({}) is mounted at {shown}", mount.source, mount.filesystem)
        }),
        "unmount it first, or take another place",
    );
    let (is_free, found) = match situation.facts.seen.get(at) {
        Some(PathState::Absent) => (Some(true), format!("{shown} is not there yet")),
        Some(PathState::Directory(names)) if names.is_empty() => {
            (Some(true), format!("{shown} is an empty directory"))
        }
        Some(PathState::Directory(names)) => {
            (Some(false), format!("{shown} holds {}", list(names)))
        }
        Some(PathState::Hidden(why)) => (None, format!("{shown} was not looked at: {why}")),
        _ => (Some(false), format!("{shown} is not a directory")),
    };
    draft.check(
        "nothing is hidden by it",
        if mounted.is_some() { Some(true) } else { is_free },
        found,
        "move the files elsewhere, or take an empty directory",
    );
    check_covered(at, situation, draft);
}

/// Checks that no line of fstab mounts something above a path, where nothing is mounted now: the next start would hide what is made
/// there.
pub(super) fn check_covered(path: &Path, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let is_mounted = |target: &Path| {
        let mut mounts = situation.machine.mounts.iter();
        mounts.any(|mount| Path::new(&mount.point) == target)
    };
    let covers = |entry: &Entry| {
        let target = Path::new(&entry.target);
        // The root is mounted, and an automount is by the first look.
        let is_spared = entry.has_option("noauto") || entry.is_on_demand();
        let is_above = target.parent().is_some() && path != target && path.starts_with(target);
        is_above && !is_spared && !entry.is_swap() && !is_mounted(target)
    };
    let table = Fstab::parse(situation.text(Path::new(FSTAB)));
    if let Some(entry) = table.entries().into_iter().find(covers) {
        draft.check(
            "it is not hidden at the next start",
            false,
            format!(
                "{FSTAB} mounts {} at {}, where nothing is mounted now",
                entry.source, entry.target
            ),
            "mount that first, or take another place",
        );
    }
}

fn list(names: &[String]) -> String {
    let first: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    if names.len() > SHOWN {
        format!("{} and {} more", first.join(", "), names.len() - SHOWN)
    } else {
        first.join(", ")
    }
}

/// The directory, the line in fstab and the mount itself, as far as they are missing.
pub(super) fn put(
    wanted: &MountRequest<'_>,
    why: &str,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) {
    let at = wanted.at.display().to_string();
    draft.directory("place", "A filesystem is mounted at a directory.", wanted.at, situation);
    // Another step of this plan may have written it already; it is written once.
    let written = draft.steps.iter_mut().find_map(|step| match &mut step.action {
        Action::WriteFile(WriteFile { path, becomes, .. }) if path == Path::new(FSTAB) => {
            Some(becomes)
        }
        _ => None,
    });
    let now_text =
        written.as_ref().map_or(situation.text(Path::new(FSTAB)), |file| file.text.as_str());
    let mut fstab = Fstab::parse(now_text);
    let line = Entry::new(wanted.what, &at, wanted.kind, wanted.options).checked_in(wanted.pass);
    let old = fstab.at(&at);
    if old.as_ref() != Some(&line) {
        fstab.set(&line);
    }
    match written {
        Some(file) => file.text = fstab.text().into(),
        None => draft.write(
            "at-boot",
            "Each boot mounts what is in this table.",
            Path::new(FSTAB),
            fstab.text().into(),
            situation,
        ),
    }
    if let Some(old) = old.filter(|old| is_of_another(old, wanted.what, situation)) {
        draft.risks.push(format!(
            "{FSTAB} mounts {} at {at}: this line is replaced, and that is mounted there no longer.",
            old.source
        ));
    }
    now(wanted, why, situation, draft);
}

/// Whether a line is about another volume than the one that takes its place, and not about a disk that gets a new content.
fn is_of_another(old: &Entry, what: &str, situation: &PlanInput<'_>) -> bool {
    let name = Name::of(old);
    let volumes = NamedVolume::all_of(situation.machine);
    let found = name.resolve(&volumes);
    let is_taken = |volume: &&NamedVolume| {
        let disk = Path::new(volume.disk().unwrap_or(&volume.path));
        situation.facts.disks.keys().any(|taken| taken == disk)
    };
    let is_same = found.iter().any(|volume| volume.path == what);
    name.is_volume() && old.source != what && !is_same && !found.iter().any(is_taken)
}

/// The directory and the mount itself, as far as they are missing; not for the next boot.
pub(super) fn now(
    wanted: &MountRequest<'_>,
    why: &str,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) {
    draft.directory("place", "A filesystem is mounted at a directory.", wanted.at, situation);
    let is_mounted =
        |mount: &rubus_vocabulary::machine::Mount| Path::new(&mount.point) == wanted.at;
    if !situation.machine.mounts.iter().any(is_mounted) {
        draft.step(
            "mounted",
            why,
            Action::Mount(Mount {
                what: wanted.what.into(),
                at: wanted.at.into(),
                kind: wanted.kind.into(),
                options: live_options(wanted.options),
            }),
        );
    }
}

/// Options without those that only systemd reads in fstab.
fn live_options(options: &str) -> String {
    let kept = options.split(',').filter(|option| {
        !option.starts_with("x-systemd.")
            && !["nofail", "auto", "noauto", "_netdev"].contains(option)
    });
    kept.collect::<Vec<_>>().join(",")
}

impl PlanBuilder {
    /// One more step.
    pub(super) fn step(&mut self, id: &str, why: &str, action: Action) {
        self.steps.push(Step { id: id.into(), why: why.into(), action });
    }
}
