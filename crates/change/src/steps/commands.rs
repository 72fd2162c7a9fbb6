//! The programs that an action runs, with their exact arguments.
//!
//! The same list is shown before anything is done and is what is run then. Disks and filesystems have names here
//! that do not move (a PARTUUID, a UUID); the caller that runs a command looks up their names at that moment and
//! passes it in [`Names`]. An action that runs no program (a file, a knob, the copy) has no commands.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::volume::{Place, Volume};

use super::{Action, Behaviour};

/// A program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its name, looked for in the standard directories.
    pub program: &'static str,
    /// Its arguments, one by one; no shell ever reads them.
    pub arguments: Vec<String>,
}

/// Where a new initial RAM filesystem is made, on the root that it is for.
pub const INITRAMFS: &str = "/var/tmp/rubus-initramfs.img";

/// What disks and filesystems are called while commands are run.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// The node of a disk, partition or array.
    pub node: &'a dyn Fn(&Place) -> String,
    /// Where a filesystem is mounted for the change.
    pub mounted: &'a dyn Fn(&str) -> PathBuf,
}

/// The commands of an action for people: nodes by what does not change.
pub fn commands(action: &Action) -> Vec<Command> {
    for_people(action.behaviour())
}

/// The commands of a step for people.
pub(super) fn for_people(step: &dyn Behaviour) -> Vec<Command> {
    with_names(&lasting_name, &lasting_mount, |names| step.commands(names))
}

/// The commands that undo a step, for people.
pub(super) fn undo_for_people(step: &dyn Behaviour) -> Vec<Command> {
    with_names(&lasting_name, &lasting_mount, |names| step.undo_commands(names))
}

/// Names for the commands of a step on one place and one mounted filesystem.
pub(super) fn with_names<T>(
    node: &dyn Fn(&Place) -> String,
    mounted: &dyn Fn(&str) -> PathBuf,
    act: impl FnOnce(Names<'_>) -> T,
) -> T {
    act(Names { node, mounted })
}

/// How a volume is mounted at a place.
pub fn mount_volume(volume: &Volume, node: &str, at: &Path) -> Command {
    mount(volume.kind.name(), &volume.mount_options, node, at)
}

pub(super) fn mount(kind: &str, options: &str, what: &str, at: &Path) -> Command {
    let at = at.display().to_string();
    match options {
        "" => command("mount", &["-t", kind, what, &at]),
        options => command("mount", &["-t", kind, "-o", options, what, &at]),
    }
}

pub(super) fn command(program: &'static str, arguments: &[&str]) -> Command {
    Command { program, arguments: arguments.iter().map(|text| (*text).into()).collect() }
}

/// A filesystem by its UUID, as a path.
pub(super) fn by_uuid(uuid: &str) -> PathBuf {
    Path::new("/dev/disk/by-uuid").join(uuid)
}

/// What is named as `UUID=…` or by a path, as a path.
pub(super) fn named(what: &str) -> PathBuf {
    match what.strip_prefix("UUID=") {
        Some(uuid) => by_uuid(uuid),
        None => what.into(),
    }
}

fn lasting_mount(uuid: &str) -> PathBuf {
    Path::new("/run/rubus").join(uuid)
}

/// The name of a place that stays when names of nodes move; of a whole disk the node, which is looked at again.
fn lasting_name(place: &Place) -> String {
    match place {
        Place::Disk { disk } => disk.path.display().to_string(),
        Place::Partition { partuuid, .. } => format!("/dev/disk/by-partuuid/{partuuid}"),
        Place::Array { uuid, .. } => format!("/dev/disk/by-id/md-uuid-{uuid}"),
    }
}

impl fmt::Display for Command {
    /// As it would be typed into a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program)?;
        for argument in &self.arguments {
            write!(f, " {}", quoted(argument))?;
        }
        Ok(())
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::long_plan::big_plan;
    use crate::volume::FilesystemKind;

    #[test]
    fn the_commands_of_every_action() {
        let mut text = String::new();
        for step in &big_plan().steps {
            text += &format!("# {}\n", step.action.title());
            for command in commands(&step.action) {
                text += &format!("{command}\n");
            }
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_shell_would_read_the_words_as_they_are() {
        let odd = command("mount", &["it's", "", "a b", "UUID=1-2", "$HOME"]);
        assert_eq!(odd.to_string(), r"mount 'it'\''s' '' 'a b' UUID=1-2 '$HOME'");
    }

    #[test]
    fn nodes_of_the_moment_take_the_place_of_lasting_names() {
        let names = Names { node: &|_| "/dev/loop7p2".into(), mounted: &|_| "/run/mine".into() };
        let plan = big_plan();
        let format = plan
            .steps
            .iter()
            .find(|step| matches!(&step.action, Action::Format(step) if step.filesystem.kind == FilesystemKind::Btrfs));
        let lines = format.expect("it is in the plan").action.behaviour().commands(names);
        let lines: Vec<String> = lines.iter().map(Command::to_string).collect();
        assert!(lines[0].ends_with(" /dev/loop7p2"), "{lines:?}");
        assert!(lines.iter().any(|line| line == "btrfs subvolume create /run/mine/@"));
    }
}
