//! A change whose journal is lost on the root that runs, looked for on the other roots that the boot files name.

use std::path::{Path, PathBuf};

use crate::apply::{Change, ChangeStore};
use crate::plan::Plan;
use crate::steps::{
    Action, LiveStepRunner, MOUNTS, PLACES, StepError, WriteFile, copied_names, node_of, put_copy,
    roots_of, running_root, volumes,
};
use crate::volume::{FilesystemKind, Volume};
use rubus_boot::cmdline_txt::CmdlineTxt;
use rubus_boot::volume::{Name, NamedVolume};
use rubus_host::files::hands::below;
use rubus_host::live::hands::make_directories;
use rubus_host::{Files, Hands, Live};
use rubus_machine::parse::mountinfo::{self, MountLine};

const BOOT_POINTS: [&str; 2] = ["/boot/firmware", "/boot"];
/// How the name of a command line begins that a move of the root has kept.
const KEPT: &str = "cmdline.txt.before-rubus";
/// Under this name a root is mounted that is searched: no change is called so.
const PLACE: &str = "lost-journal";
const MAX_BYTES: usize = 64 << 20;

/// The traces that a move of the root has left on the boot partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// The command line that was replaced last, as the move has kept it.
    pub kept: PathBuf,
    /// What that file holds.
    text: String,
    /// The roots that the command lines there name, with the subvolume where one is meant; the kept ones first.
    roots: Vec<(Name, Option<String>)>,
}

/// What a search has given.
#[derive(Debug, Default)]
pub struct Search {
    /// The changes of this system that another root knows, oldest first.
    pub found: Vec<Change>,
    /// Which root that is ("the root on /dev/mmcblk0p2").
    pub on: String,
    /// What was in the way at each root that gave nothing, as a sentence without its full stop.
    pub why_not: Vec<String>,
}

/// The traces of a move of which none of the `known` changes tells; nothing where there are none. Only looks.
pub fn lost_journal(known: &[Change], files: &dyn Files) -> Option<Traces> {
    let moves = |change: &Change| !change.is_undone() && moved_to(&change.plan).is_some();
    if known.iter().any(moves) {
        return None;
    }
    BOOT_POINTS.iter().find_map(|point| traces_in(Path::new(point), files))
}

fn traces_in(point: &Path, files: &dyn Files) -> Option<Traces> {
    let names = files.list(point).ok()?;
    let lower = |name: &String| name.to_lowercase();
    let mut lines: Vec<String> =
        names.into_iter().filter(|name| lower(name).starts_with("cmdline")).collect();
    // The last one that was kept is of the last move.
    lines.sort_by_key(|name| (lower(name).starts_with(KEPT), name.clone()));
    lines.reverse();
    let kept = lines.first().filter(|name| lower(name).starts_with(KEPT))?;
    let read = |name: &String| files.text(&point.join(name)).ok();
    let mut roots: Vec<(Name, Option<String>)> = Vec::new();
    for line in lines.iter().filter_map(read).map(CmdlineTxt::parse) {
        let Some(name) = line.get("root").map(Name::parse) else {
            continue;
        };
        let flags = line.get("rootflags").unwrap_or_default();
        let subvolume = flags.split(',').find(|flag| flag.starts_with("subvol="));
        let root = (name, subvolume.map(str::to_string));
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    // Other changes of the command line keep it too: only a move leaves lines of two roots.
    if roots.len() < 2 {
        return None;
    }
    roots.retain(|(name, _)| name.is_volume());
    Some(Traces { text: read(kept)?, kept: point.join(kept), roots })
}

/// Whether a change that another root tells of has made the system that runs: it is in force, it has moved the root
/// between these two, and it has kept just the command line that is on the boot partition.
///
/// # Errors
/// Why it has not, as a sentence without its full stop.
fn is_of_this_system(
    change: &Change,
    roots: &[Volume],
    here: &str,
    traces: &Traces,
) -> Result<(), String> {
    let name = &change.name;
    if change.is_undone() {
        return Err(format!("{name} was undone"));
    }
    if !roots.iter().any(|root| root.uuid == here) {
        return Err(format!("{name} did not move the root that runs"));
    }
    let kept = change.plan.steps.iter().find_map(|step| match &step.action {
        Action::WriteFile(WriteFile { path, becomes, .. }) if *path == traces.kept => {
            Some(&becomes.text)
        }
        _ => None,
    });
    let shown = traces.kept.display();
    match kept {
        Some(text) if text.trim() == traces.text.trim() => Ok(()),
        Some(_) => Err(format!("{name} kept another command line than {shown}")),
        None => Err(format!("{name} did not write {shown}")),
    }
}

/// The root that a plan moves the system to.
fn moved_to(plan: &Plan) -> Option<&Volume> {
    plan.steps.iter().find_map(|step| match &step.action {
        Action::KeepJournal(step) => Some(&step.on),
        _ => None,
    })
}

/// The one volume that is named, as something to read.
///
/// # Errors
/// A sentence without its full stop: there is none, or several, or it is of a kind that is not known.
fn to_read(
    name: &Name,
    subvolume: Option<&str>,
    volumes: &[NamedVolume],
) -> Result<(Volume, PathBuf), String> {
    let found = match name.resolve(volumes)[..] {
        [only] => only,
        [] => return Err(format!("no disk has {name}; plug it in")),
        _ => return Err(format!("several disks have {name}; unplug the copy")),
    };
    let kind = found.filesystem.as_deref().and_then(FilesystemKind::of_root);
    let kind = kind.ok_or_else(|| format!("{} holds neither ext4, btrfs nor f2fs", found.path))?;
    let options: Vec<&str> = ["ro"].into_iter().chain(subvolume).collect();
    let volume = Volume {
        kind,
        uuid: found.uuid.clone().unwrap_or_default(),
        mount_options: options.join(","),
        title: format!("the root on {}", found.path),
    };
    Ok((volume, found.path.clone().into()))
}

/// Where a root is mounted already, whole.
fn mounted_at(
    node: &Path,
    subvolume: Option<&str>,
    lines: &[MountLine],
    node_of: &dyn Fn(&MountLine) -> PathBuf,
) -> Option<PathBuf> {
    let wanted = subvolume.and_then(|option| option.strip_prefix("subvol="));
    let wanted = format!("/{}", wanted.unwrap_or_default().trim_matches('/'));
    let is_it = |line: &&MountLine| line.root == wanted && node_of(line) == node;
    lines.iter().find(is_it).map(|line| (&line.point).into())
}

impl LiveStepRunner {
    /// Looks on the other roots for the changes whose journal is lost here, and with `is_taken` puts them, with their
    /// journals, into the directory of all changes. Other roots are only read, and mounted read-only where they are not
    /// mounted already.
    ///
    /// # Errors
    /// [`StepError`] when what was found cannot be written.
    pub fn seek_lost_journal(
        &mut self,
        traces: &Traces,
        directory: &Path,
        is_taken: bool,
        hands: &mut dyn Hands,
    ) -> Result<Search, StepError> {
        let mut search = Search::default();
        let here = running_root(hands.files());
        let (here, volumes) = match (here, volumes(hands.files())) {
            (Ok(here), Ok(volumes)) => (here, volumes),
            (Err(why), _) | (_, Err(why)) => {
                search.why_not.push(why);
                return Ok(search);
            }
        };
        for (name, subvolume) in &traces.roots {
            let (root, node) = match to_read(name, subvolume.as_deref(), &volumes) {
                Ok(found) => found,
                Err(why) => {
                    search.why_not.push(why);
                    continue;
                }
            };
            if root.uuid.eq_ignore_ascii_case(&here.uuid) {
                continue;
            }
            let top = match self.top_of(&root, &node, subvolume.as_deref()) {
                Ok(top) => top,
                Err(error) => {
                    search.why_not.push(error.to_string());
                    continue;
                }
            };
            let (found, why_not) = known_there(&top, directory, &here.uuid, traces, hands);
            if is_taken {
                for change in &found {
                    take_over(change, &directory.join(&change.name), hands)?;
                }
            }
            search
                .why_not
                .extend(why_not.into_iter().map(|why| format!("on {}: {why}", node.display())));
            if !found.is_empty() {
                search.on = root.title;
                search.found = found;
                break;
            }
        }
        self.unmount_everything(&Path::new(PLACES).join(PLACE))?;
        Ok(search)
    }

    /// The top of a root: where it is mounted already, else where it is mounted to be read.
    fn top_of(
        &mut self,
        root: &Volume,
        node: &Path,
        subvolume: Option<&str>,
    ) -> Result<PathBuf, StepError> {
        let live = Live::new();
        let text = live.text(Path::new(MOUNTS)).unwrap_or_default();
        let (lines, _) = mountinfo::parse(&text);
        let node_of = |line: &MountLine| {
            let node = node_of(line.device, &live);
            node.unwrap_or_else(|| line.source.clone()).into()
        };
        match mounted_at(node, subvolume, &lines, &node_of) {
            Some(top) => Ok(top),
            None => self.mount_volume(root, PLACE),
        }
    }
}

/// The changes below `top` that have made the system that runs, and what speaks against the others.
fn known_there(
    top: &Path,
    directory: &Path,
    here: &str,
    traces: &Traces,
    hands: &dyn Hands,
) -> (Vec<Change>, Vec<String>) {
    let there = below(top, directory);
    let changes = match ChangeStore::at(&there).all(hands.files()) {
        Ok(changes) => changes,
        Err(error) => return (Vec::new(), vec![error.to_string()]),
    };
    if changes.is_empty() {
        let why = format!("there is no journal in {}", directory.display());
        return (Vec::new(), vec![why]);
    }
    let mut moves = changes;
    moves.retain(|change| moved_to(&change.plan).is_some());
    if moves.is_empty() {
        return (Vec::new(), vec!["no change there moved a root".into()]);
    }
    let (mut found, mut why_not) = (Vec::new(), Vec::new());
    for change in moves {
        let roots = roots_of(change.directory(), hands).unwrap_or_default();
        match is_of_this_system(&change, &roots, here, traces) {
            Ok(()) => found.push(change),
            Err(why) => why_not.push(why),
        }
    }
    (found, why_not)
}

/// Copies the directory of a change, the journal last: a change is there once its journal is.
fn take_over(change: &Change, to: &Path, hands: &mut dyn Hands) -> Result<(), StepError> {
    make_directories(hands, to)?;
    for name in copied_names(change.directory(), hands.files()) {
        let from = change.directory().join(&name);
        let bytes = hands.files().read_prefix(&from, MAX_BYTES);
        let bytes = bytes.map_err(|why| StepError::Work {
            tried: format!("read {}", from.display()),
            reason: why.to_string(),
        })?;
        put_copy(&to.join(&name), &bytes, hands)?;
    }
    let parent = to.parent().unwrap_or(to);
    hands.sync_directory(parent)?;
    Ok(())
}

#[cfg(test)]
#[path = "lost_journal_tests.rs"]
mod tests;
