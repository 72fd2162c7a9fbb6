//! The programs that an action runs, with their exact arguments.
//!
//! The same list is shown before anything is done and is what is run then. Disks and filesystems have names here
//! that do not move (a PARTUUID, a UUID); whoever runs a command looks up what they are called at that moment and
//! passes it in [`Names`]. An action that runs no program (a file, a knob, the copy) has no commands.

use std::fmt;
use std::path::{Path, PathBuf};

use super::volume::{FilesystemKind, NewFilesystem, Place, Volume};
use super::{Action, When};

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
    let node = lasting_name;
    let mounted = |uuid: &str| Path::new("/run/rubus").join(uuid);
    commands_with(action, Names { node: &node, mounted: &mounted })
}

/// The commands of an action, in the order in which they are run.
pub fn commands_with(action: &Action, names: Names<'_>) -> Vec<Command> {
    match action {
        Action::MakeArray { name, uuid, level, chunk_bytes, members } => {
            let mut arguments = vec![
                "--create".into(),
                format!("/dev/md/{name}"),
                "--run".into(),
                "--metadata=1.2".into(),
                format!("--level={level}"),
                format!("--chunk={}K", chunk_bytes / 1024),
                format!("--uuid={uuid}"),
                format!("--name={name}"),
                // The name holds whatever the machine is called when it starts.
                "--homehost=any".into(),
                format!("--raid-devices={}", members.len()),
            ];
            arguments.extend(members.iter().map(|member| (names.node)(member)));
            vec![Command { program: "mdadm", arguments }]
        }
        Action::Format { place, filesystem } => format(&(names.node)(place), filesystem, names),
        Action::BuildInitramfs { root, release, .. } => {
            let top = (names.mounted)(&root.uuid).display().to_string();
            vec![command("chroot", &[&top, "mkinitramfs", "-o", INITRAMFS, release])]
        }
        Action::MakeSwapFile { path, .. } => {
            vec![command("mkswap", &[&path.display().to_string()])]
        }
        Action::SwapOn { what, priority } => vec![swap_on(what, *priority)],
        Action::SwapOff { what, .. } => vec![command("swapoff", &[what])],
        Action::Mount { what, at, kind, options } => vec![mount(kind, options, what, at)],
        Action::AttachDisk { arguments, .. } => {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            vec![command("rubus", &[&["attach"][..], &arguments].concat())]
        }
        Action::ReadUnits => vec![read_units()],
        Action::RestartService { unit, when: When::Applied } => restart(unit),
        Action::StartServer { unit, question, .. } => {
            let question: Vec<&str> = question.iter().map(String::as_str).collect();
            vec![
                read_units(),
                command("systemctl", &["start", &format!("{unit}.socket")]),
                command("rubus", &[&["nbd"][..], &question].concat()),
            ]
        }
        _ => Vec::new(),
    }
}

/// The commands that undo an action.
pub fn undo_commands_with(action: &Action, names: Names<'_>) -> Vec<Command> {
    match action {
        Action::MakeArray { name, members, .. } => {
            let stop = command("mdadm", &["--stop", &format!("/dev/md/{name}")]);
            let clear = members
                .iter()
                .map(|member| command("mdadm", &["--zero-superblock", &(names.node)(member)]));
            std::iter::once(stop).chain(clear).collect()
        }
        Action::SwapOn { what, .. } => vec![command("swapoff", &[what])],
        Action::SwapOff { what, priority } => vec![swap_on(what, *priority)],
        Action::Mount { at, .. } => vec![command("umount", &[&at.display().to_string()])],
        Action::AttachDisk { device, .. } => {
            vec![command("rubus", &["detach", &device.display().to_string()])]
        }
        Action::ReadUnits => vec![read_units()],
        Action::RestartService { unit, when: When::Undone } => restart(unit),
        Action::StartServer { unit, .. } => vec![command(
            "systemctl",
            &["stop", &format!("{unit}.socket"), &format!("{unit}.service")],
        )],
        _ => Vec::new(),
    }
}

/// How a volume is mounted at a place.
pub fn mount_volume(volume: &Volume, node: &str, at: &Path) -> Command {
    mount(volume.kind.name(), &volume.mount_options, node, at)
}

fn format(node: &str, new: &NewFilesystem, names: Names<'_>) -> Vec<Command> {
    let label = |option: &str| match new.label.is_empty() {
        true => Vec::new(),
        false => vec![option.to_string(), new.label.clone()],
    };
    let mut arguments: Vec<String> = Vec::new();
    let program = match new.kind {
        FilesystemKind::Btrfs => {
            // Old versions take the page size of this machine, and a filesystem with sectors of 16 KiB
            // cannot be mounted on most others.
            // Metadata twice: a bad block among them would cost the whole filesystem, and they are few.
            let fixed = ["-f", "-q", "--sectorsize", "4096", "--csum", "crc32c"];
            arguments.extend(fixed.map(String::from));
            let fixed = ["-d", "single", "-m", "dup", "-U", &new.uuid];
            arguments.extend(fixed.map(String::from));
            arguments.extend(label("-L"));
            "mkfs.btrfs"
        }
        FilesystemKind::Ext4 => {
            arguments.extend(["-F", "-q", "-b", "4096", "-U", &new.uuid].map(String::from));
            arguments.extend(label("-L"));
            "mkfs.ext4"
        }
        FilesystemKind::F2fs => {
            arguments.extend(["-f", "-q", "-U", &new.uuid].map(String::from));
            arguments.extend(label("-l"));
            "mkfs.f2fs"
        }
        FilesystemKind::Vfat => {
            let identifier = new.uuid.replace('-', "");
            arguments.extend(["-F", "32", "-i", &identifier].map(String::from));
            arguments.extend(label("-n"));
            "mkfs.vfat"
        }
        FilesystemKind::Swap => {
            arguments.extend(["-U", &new.uuid].map(String::from));
            arguments.extend(label("-L"));
            "mkswap"
        }
    };
    arguments.push(node.into());
    let make = Command { program, arguments };
    std::iter::once(make).chain(subvolumes(node, new, names)).collect()
}

/// The subvolumes of a new btrfs, made on its mounted top.
fn subvolumes(node: &str, new: &NewFilesystem, names: Names<'_>) -> Vec<Command> {
    if new.subvolumes.is_empty() {
        return Vec::new();
    }
    let top = (names.mounted)(&new.uuid);
    let mut commands = vec![mount(new.kind.name(), &new.mount_options, node, &top)];
    for subvolume in &new.subvolumes {
        let path = top.join(subvolume).display().to_string();
        commands.push(command("btrfs", &["subvolume", "create", &path]));
    }
    commands.push(command("umount", &[&top.display().to_string()]));
    commands
}

fn mount(kind: &str, options: &str, what: &str, at: &Path) -> Command {
    let at = at.display().to_string();
    match options {
        "" => command("mount", &["-t", kind, what, &at]),
        options => command("mount", &["-t", kind, "-o", options, what, &at]),
    }
}

fn swap_on(what: &str, priority: Option<i32>) -> Command {
    match priority {
        // A negative priority cannot be asked for; the kernel gives those itself.
        Some(priority) if priority >= 0 => {
            command("swapon", &["--priority", &priority.to_string(), what])
        }
        _ => command("swapon", &[what]),
    }
}

/// The second fails where the service ended at once: its start counts as done before.
fn restart(unit: &str) -> Vec<Command> {
    vec![command("systemctl", &["restart", unit]), command("systemctl", &["is-active", unit])]
}

fn read_units() -> Command {
    command("systemctl", &["daemon-reload"])
}

fn command(program: &'static str, arguments: &[&str]) -> Command {
    Command { program, arguments: arguments.iter().map(|text| (*text).into()).collect() }
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
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::long_plan::big_plan;

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
            .find(|step| matches!(&step.action, Action::Format { filesystem, .. } if filesystem.kind == FilesystemKind::Btrfs));
        let lines = commands_with(&format.expect("it is in the plan").action, names);
        let lines: Vec<String> = lines.iter().map(Command::to_string).collect();
        assert!(lines[0].ends_with(" /dev/loop7p2"), "{lines:?}");
        assert!(lines.iter().any(|line| line == "btrfs subvolume create /run/mine/@"));
    }
}
