//! A made-up machine that can be changed, made to fail, and cut off from its power at any point.
//!
//! What is on stable storage is kept apart from what programs see. At a power cut everything that
//! was not made durable is decided by the caller, piece by piece: a name may or may not have
//! reached the disk, contents may be empty or torn. That is stricter than any one filesystem.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::files::hands::{Hands, Twin, WriteError, parent_of};
use crate::files::{Files, ReadError, Space};

/// A made-up machine.
#[derive(Clone, Debug, Default)]
pub struct SimulatedMachine {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, Node>,
    durable: BTreeMap<PathBuf, Node>,
    /// Changes of names that are not durable yet, in order.
    pending: Vec<Change>,
    knobs: BTreeMap<PathBuf, Knob>,
    /// Operations of the kind that changes something, so far.
    events: usize,
    cut_at: Option<usize>,
    fail_at: Option<usize>,
    is_dead: bool,
    /// Free bytes of its filesystems; absent: plenty.
    available_bytes: Option<u64>,
    /// Every operation, for tests that look at the order.
    pub log: Vec<String>,
}

#[derive(Clone, Debug)]
struct Inode {
    bytes: Vec<u8>,
    mode: u32,
    /// What is on stable storage of it; nothing before the first sync.
    durable: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Directory,
    File(usize),
}

#[derive(Clone, Debug)]
struct Change {
    directory: PathBuf,
    /// Names that get another node or none, together.
    names: Vec<(PathBuf, Option<Node>)>,
}

#[derive(Clone, Debug)]
struct Knob {
    value: String,
    at_boot: String,
    /// A value that the kernel takes without an error and ignores.
    ignores: Option<String>,
    /// A value that the kernel takes back to that of the boot as soon as another knob is set.
    forgets: Option<String>,
}

/// Below this directory is a filesystem without permission bits, as on a card's boot partition.
pub const WITHOUT_MODES: &str = "/boot/firmware";
/// The mode of a symbolic link, whose contents are its target.
const LINK: u32 = 0o120_777;

impl SimulatedMachine {
    /// A machine with nothing but `/`.
    pub fn new() -> Self {
        let mut machine = SimulatedMachine::default();
        machine.names.insert(PathBuf::from("/"), Node::Directory);
        machine.durable = machine.names.clone();
        machine
    }

    /// Adds a durable file, its directories included.
    #[must_use]
    pub fn file(mut self, path: &str, text: &str, mode: u32) -> Self {
        let path = PathBuf::from(path);
        self = self.directory(&parent_of(&path).to_string_lossy());
        self.inodes.push(Inode { bytes: text.into(), mode, durable: Some(text.into()) });
        self.names.insert(path, Node::File(self.inodes.len() - 1));
        self.durable = self.names.clone();
        self
    }

    /// Adds a durable directory, those above it included.
    #[must_use]
    pub fn directory(mut self, path: &str) -> Self {
        for above in Path::new(path).ancestors() {
            self.names.insert(above.to_path_buf(), Node::Directory);
        }
        self.durable = self.names.clone();
        self
    }

    /// Adds a knob with the value that it has at each boot.
    #[must_use]
    pub fn knob(mut self, path: &str, value: &str) -> Self {
        let knob =
            Knob { value: value.into(), at_boot: value.into(), ignores: None, forgets: None };
        self.knobs.insert(path.into(), knob);
        self
    }

    /// Leaves this many bytes free on its filesystems, as it says when it is asked.
    #[must_use]
    pub fn with_available(mut self, bytes: u64) -> Self {
        self.available_bytes = Some(bytes);
        self
    }

    /// Makes a knob take a value and stay as it is.
    #[must_use]
    pub fn ignoring(mut self, path: &str, value: &str) -> Self {
        if let Some(knob) = self.knobs.get_mut(Path::new(path)) {
            knob.ignores = Some(value.into());
        }
        self
    }

    /// Makes a knob take a value that it goes back from when any other knob is set.
    #[must_use]
    pub fn forgetting(mut self, path: &str, value: &str) -> Self {
        if let Some(knob) = self.knobs.get_mut(Path::new(path)) {
            knob.forgets = Some(value.into());
        }
        self
    }

    /// Adds a second name of a file on the same clusters, as a power cut can leave it on FAT.
    #[must_use]
    pub fn cross_linked(mut self, path: &str, with: &str) -> Self {
        if let Some(node) = self.node(Path::new(with)) {
            self.names.insert(path.into(), node);
        }
        self.durable = self.names.clone();
        self
    }

    /// Cuts the power at the change number `event` from now, counted from 0.
    pub fn cut_power_at(&mut self, event: usize) {
        self.cut_at = Some(self.events + event);
    }

    /// Makes the change number `event` from now fail, counted from 0, without having done anything.
    pub fn fail_at(&mut self, event: usize) {
        self.fail_at = Some(self.events + event);
    }

    /// How many changes there were.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Whether the power is off.
    pub fn is_dead(&self) -> bool {
        self.is_dead
    }

    /// The machine as it is after the power came back. `coin` decides for each thing that was not durable
    /// whether it reached the disk.
    pub fn boot(&mut self, coin: &mut dyn FnMut() -> bool) {
        let pending = std::mem::take(&mut self.pending);
        for change in pending {
            if coin() {
                apply(&mut self.durable, &change);
            }
        }
        self.names = self.durable.clone();
        for inode in &mut self.inodes {
            let lost = match &inode.durable {
                Some(durable) => durable.clone(),
                // Allotted and never written, or half written.
                None if coin() => inode.bytes[..inode.bytes.len() / 2].to_vec(),
                None => vec![0; inode.bytes.len()],
            };
            let reached = inode.durable.as_ref() == Some(&inode.bytes) || coin();
            if !reached {
                inode.bytes = lost;
            }
            inode.durable = Some(inode.bytes.clone());
        }
        for knob in self.knobs.values_mut() {
            knob.value = knob.at_boot.clone();
        }
        (self.is_dead, self.cut_at, self.fail_at) = (false, None, None);
    }

    /// All files with their contents, for comparing.
    pub fn everything(&self) -> BTreeMap<PathBuf, Option<(String, u32)>> {
        let contents = |node: &Node| match node {
            Node::Directory => None,
            Node::File(inode) => {
                let inode = &self.inodes[*inode];
                Some((String::from_utf8_lossy(&inode.bytes).into_owned(), inode.mode))
            }
        };
        let names = self.names.iter();
        names.map(|(path, node)| (path.clone(), contents(node))).collect()
    }

    /// The value of a knob.
    pub fn value(&self, path: &str) -> Option<&str> {
        self.knobs.get(Path::new(path)).map(|knob| knob.value.as_str())
    }

    /// Changes a file without the program's knowledge, durably.
    pub fn meddle(&mut self, path: &str, text: &str) {
        if let Some(Node::File(inode)) = self.names.get(Path::new(path)) {
            self.inodes[*inode].bytes = text.into();
            self.inodes[*inode].durable = Some(text.into());
        }
    }

    /// A moment at which the power may go or an operation may fail. Every operation has one before it has any
    /// effect and, through a second call, one after.
    fn moment(&mut self, tried: &'static str, path: &Path) -> Result<(), WriteError> {
        let refuse = |reason: &str| {
            Err(WriteError { tried, path: path.display().to_string(), reason: reason.into() })
        };
        if self.is_dead {
            return refuse("the power is off");
        }
        let event = self.events;
        self.events += 1;
        if self.cut_at == Some(event) {
            self.is_dead = true;
            return refuse("the power went off");
        }
        if self.fail_at == Some(event) {
            return refuse("Input/output error (os error 5)");
        }
        Ok(())
    }

    fn node(&self, path: &Path) -> Option<Node> {
        self.names.get(path).copied()
    }

    fn change(&mut self, directory: &Path, names: Vec<(PathBuf, Option<Node>)>) {
        let change = Change { directory: directory.to_path_buf(), names };
        apply(&mut self.names, &change);
        self.pending.push(change);
    }

    /// The other name of what is at a path, on FAT.
    fn other_name(&self, path: &Path) -> Option<PathBuf> {
        let node = self.node(path).filter(|_| !self.keeps_modes(path))?;
        let mut names = self.names.iter();
        let other = names.find(|(other, there)| **there == node && *other != path);
        other.map(|(other, _)| other.clone())
    }

    /// Makes durable what has been done in a directory so far.
    fn settle(&mut self, directory: &Path) {
        let (now, later) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|change| change.directory == directory);
        self.pending = later;
        for change in &now as &Vec<Change> {
            apply(&mut self.durable, change);
        }
    }

    /// A rename on FAT, which is durable in two parts: that the file has left its old name, then that it has its new
    /// one. In between that one is as it was, or an empty file where there was none.
    fn rename_on_fat(&mut self, from: &Path, to: &Path, node: Node) -> Result<(), WriteError> {
        self.settle(&parent_of(to));
        self.names.insert(to.to_path_buf(), node);
        self.names.remove(from);
        self.durable.remove(from);
        if !self.durable.contains_key(to) {
            self.inodes.push(Inode { bytes: Vec::new(), mode: 0o755, durable: Some(Vec::new()) });
            let empty = Node::File(self.inodes.len() - 1);
            self.durable.insert(to.to_path_buf(), empty);
        }
        self.moment("replace", to)?;
        self.durable.insert(to.to_path_buf(), node);
        self.moment("replace", to)
    }

    fn refuse<T>(tried: &'static str, path: &Path, reason: &str) -> Result<T, WriteError> {
        Err(WriteError { tried, path: path.display().to_string(), reason: reason.into() })
    }

    fn is_empty(&self, path: &Path) -> bool {
        !self.names.keys().any(|name| name != path && name.starts_with(path))
    }
}

fn apply(names: &mut BTreeMap<PathBuf, Node>, change: &Change) {
    for (path, node) in &change.names {
        match node {
            Some(node) => names.insert(path.clone(), *node),
            None => names.remove(path),
        };
    }
}

impl Files for SimulatedMachine {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        if self.is_dead {
            return Err(ReadError::Other("the power is off".into()));
        }
        if let Some(knob) = self.knobs.get(path) {
            return Ok(format!("{}\n", knob.value).into_bytes());
        }
        match self.node(path) {
            Some(Node::File(inode)) => {
                let bytes = &self.inodes[inode].bytes;
                Ok(bytes[..bytes.len().min(limit)].to_vec())
            }
            Some(Node::Directory) => Err(ReadError::Other("it is a directory".into())),
            None => Err(ReadError::Absent),
        }
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        if self.node(path) != Some(Node::Directory) {
            return Err(ReadError::Absent);
        }
        let below = self.names.keys().filter(|name| name.parent() == Some(path));
        let names: BTreeSet<String> = below
            .filter_map(|name| Some(name.file_name()?.to_string_lossy().into_owned()))
            .collect();
        Ok(names.into_iter().collect())
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        if self.node(path).is_some() || self.knobs.contains_key(path) {
            Ok(path.to_path_buf())
        } else {
            Err(ReadError::Absent)
        }
    }

    fn space(&self, path: &Path) -> Result<Space, ReadError> {
        const PLENTY_BYTES: u64 = 1 << 40;
        self.node(path).ok_or(ReadError::Absent)?;
        Ok(Space {
            size_bytes: PLENTY_BYTES,
            available_bytes: self.available_bytes.unwrap_or(PLENTY_BYTES),
        })
    }

    fn mode(&self, path: &Path) -> Result<u32, ReadError> {
        match self.node(path) {
            Some(Node::File(_)) if !self.keeps_modes(path) => Ok(0o755),
            Some(Node::File(inode)) => Ok(self.inodes[inode].mode),
            Some(Node::Directory) => Ok(0o755),
            None => Err(ReadError::Absent),
        }
    }

    fn keeps_modes(&self, path: &Path) -> bool {
        !path.starts_with(WITHOUT_MODES)
    }

    fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
        let Some(Node::File(inode)) = self.node(path) else {
            return Err(ReadError::Absent);
        };
        let inode = &self.inodes[inode];
        if inode.mode == LINK {
            Ok(PathBuf::from(String::from_utf8_lossy(&inode.bytes).into_owned()))
        } else {
            Err(ReadError::Other("no link".into()))
        }
    }

    fn ask(&self, _: &str, _: &[&str]) -> Result<String, ReadError> {
        Err(ReadError::Absent)
    }

    fn firmware_word(&self, _: u32) -> Result<u32, ReadError> {
        Err(ReadError::Absent)
    }
}

impl Hands for SimulatedMachine {
    fn files(&self) -> &dyn Files {
        self
    }

    fn make_directory(&mut self, path: &Path) -> Result<(), WriteError> {
        let tried = "make the directory";
        self.moment(tried, path)?;
        let parent = parent_of(path);
        if self.node(path).is_some() || self.node(&parent) != Some(Node::Directory) {
            return Self::refuse(tried, path, "it exists, or its parent does not");
        }
        self.log.push(format!("mkdir {}", path.display()));
        self.change(&parent, vec![(path.to_path_buf(), Some(Node::Directory))]);
        self.moment(tried, path)
    }

    fn remove_directory(&mut self, path: &Path) -> Result<(), WriteError> {
        let tried = "remove the directory";
        self.moment(tried, path)?;
        if self.node(path) != Some(Node::Directory) || !self.is_empty(path) {
            return Self::refuse(tried, path, "it is not there, or not empty");
        }
        self.log.push(format!("rmdir {}", path.display()));
        self.change(&parent_of(path), vec![(path.to_path_buf(), None)]);
        self.moment(tried, path)
    }

    fn write_new(
        &mut self,
        path: &Path,
        bytes: &[u8],
        mode: u32,
        _: Option<&Path>,
    ) -> Result<(), WriteError> {
        let tried = "make";
        self.moment(tried, path)?;
        let parent = parent_of(path);
        if self.node(path).is_some() || self.node(&parent) != Some(Node::Directory) {
            return Self::refuse(tried, path, "it exists, or its directory does not");
        }
        self.log.push(format!("write {}", path.display()));
        self.inodes.push(Inode { bytes: bytes.to_vec(), mode, durable: None });
        let inode = self.inodes.len() - 1;
        self.change(&parent, vec![(path.to_path_buf(), Some(Node::File(inode)))]);
        // Here the file is there and nothing of it is durable.
        self.moment(tried, path)?;
        self.inodes[inode].durable = Some(bytes.to_vec());
        self.moment(tried, path)
    }

    fn make_link(&mut self, path: &Path, target: &Path) -> Result<(), WriteError> {
        let target = target.to_string_lossy();
        self.write_new(path, target.as_bytes(), LINK, None)
    }

    fn append(&mut self, path: &Path, keep: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let tried = "write";
        self.moment(tried, path)?;
        let Some(Node::File(inode)) = self.node(path) else {
            return Self::refuse(tried, path, "no such file");
        };
        self.log.push(format!("append {}", path.display()));
        let inode = &mut self.inodes[inode];
        inode.bytes.truncate(keep as usize);
        // A part of it may be on the disk when the power goes.
        let half = bytes.len() / 2;
        inode.bytes.extend_from_slice(&bytes[..half]);
        inode.durable = Some(inode.bytes.clone());
        inode.bytes.extend_from_slice(&bytes[half..]);
        let whole = inode.bytes.clone();
        self.moment(tried, path)?;
        if let Some(Node::File(inode)) = self.node(path) {
            self.inodes[inode].durable = Some(whole);
        }
        self.moment(tried, path)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Result<(), WriteError> {
        let tried = "replace";
        self.moment(tried, to)?;
        let Some(node) = self.node(from) else {
            return Self::refuse(tried, from, "no such file");
        };
        self.log.push(format!("rename {}", to.display()));
        if !self.keeps_modes(to) {
            return self.rename_on_fat(from, to, node);
        }
        let names = vec![(to.to_path_buf(), Some(node)), (from.to_path_buf(), None)];
        self.change(&parent_of(to), names);
        self.moment(tried, to)
    }

    fn remove(&mut self, path: &Path) -> Result<(), WriteError> {
        let tried = "remove";
        self.moment(tried, path)?;
        if !matches!(self.node(path), Some(Node::File(_))) {
            return Self::refuse(tried, path, "no such file");
        }
        self.log.push(format!("remove {}", path.display()));
        if let (Some(_), Some(Node::File(inode))) = (self.other_name(path), self.node(path)) {
            // Its clusters are free now, and the other name still means them.
            self.inodes[inode].bytes = b"freed".to_vec();
            self.inodes[inode].durable = Some(b"freed".to_vec());
        }
        self.change(&parent_of(path), vec![(path.to_path_buf(), None)]);
        self.moment(tried, path)
    }

    fn twin(&self, path: &Path) -> Option<Twin> {
        let path = self.other_name(path)?;
        Some(Twin { path, device: "/dev/mmcblk0p1".into() })
    }

    fn sync_directory(&mut self, path: &Path) -> Result<(), WriteError> {
        let tried = "make durable what is in";
        self.moment(tried, path)?;
        self.log.push(format!("sync {}", path.display()));
        self.settle(path);
        self.moment(tried, path)
    }

    fn set_knob(&mut self, path: &Path, value: &str) -> Result<(), WriteError> {
        let tried = "set";
        self.moment(tried, path)?;
        for (other, knob) in &mut self.knobs {
            if other != path && knob.forgets.as_deref() == Some(&knob.value) {
                knob.value = knob.at_boot.clone();
            }
        }
        let Some(knob) = self.knobs.get_mut(path) else {
            return Self::refuse(tried, path, "no such file");
        };
        if knob.ignores.as_deref() != Some(value) {
            knob.value = value.into();
        }
        self.log.push(format!("set {} {value}", path.display()));
        self.moment(tried, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_synced_may_be_lost() {
        let old = SimulatedMachine::new().file("/etc/a", "old", 0o644);
        for survives in [false, true] {
            let mut machine = old.clone();
            let (temporary, path) = (Path::new("/etc/.new"), Path::new("/etc/a"));
            machine.write_new(temporary, b"new", 0o644, None).unwrap();
            machine.rename(temporary, path).unwrap();
            machine.boot(&mut || survives);
            let text = machine.text(path).unwrap();
            assert_eq!(text, if survives { "new" } else { "old" });
        }
    }

    #[test]
    fn what_was_synced_is_there() {
        let mut machine = SimulatedMachine::new().file("/etc/a", "old", 0o644);
        let (temporary, path) = (Path::new("/etc/.new"), Path::new("/etc/a"));
        machine.write_new(temporary, b"new", 0o644, None).unwrap();
        machine.rename(temporary, path).unwrap();
        machine.sync_directory(Path::new("/etc")).unwrap();
        machine.boot(&mut || false);
        assert_eq!(machine.text(path).unwrap(), "new");
        assert!(!machine.exists(temporary));
    }

    #[test]
    fn on_fat_a_file_is_old_or_new_and_a_new_one_may_be_empty() {
        let (temporary, path) = (Path::new("/boot/firmware/.new"), Path::new("/boot/firmware/a"));
        for (old, between) in [(Some("old"), "old"), (None, "")] {
            let mut machine = SimulatedMachine::new().directory("/boot/firmware");
            if let Some(old) = old {
                machine = machine.file("/boot/firmware/a", old, 0o755);
            }
            machine.write_new(temporary, b"new", 0o644, None).unwrap();
            machine.sync_directory(&parent_of(path)).unwrap();
            let texts: Vec<Option<String>> = (0..4)
                .map(|event| {
                    let mut machine = machine.clone();
                    machine.cut_power_at(event);
                    let _ = machine.rename(temporary, path);
                    machine.boot(&mut || false);
                    machine.text(path).ok()
                })
                .collect();
            let before = old.map(str::to_string);
            let after = Some("new".to_string());
            let expected = [before, Some(between.into()), after.clone(), after];
            assert_eq!(texts, expected);
        }
    }

    #[test]
    fn removing_a_cross_linked_file_takes_the_contents_of_the_other() {
        let (left, path) = ("/boot/firmware/.new", "/boot/firmware/a");
        let machine = SimulatedMachine::new().file(path, "whole", 0o755);
        let mut machine = machine.cross_linked(left, path);
        let twin = machine.twin(Path::new(left)).unwrap();
        assert_eq!(twin.path, Path::new(path));
        machine.remove(Path::new(left)).unwrap();
        assert_eq!(machine.text(Path::new(path)).unwrap(), "freed");
        assert_eq!(machine.twin(Path::new(path)), None);
    }

    #[test]
    fn a_dead_machine_does_nothing_more() {
        let mut machine = SimulatedMachine::new().knob("/sys/k", "0");
        machine.cut_power_at(1);
        let path = Path::new("/sys/k");
        assert!(machine.set_knob(path, "1").is_err(), "cut after the effect");
        assert!(machine.is_dead());
        assert!(machine.set_knob(path, "2").is_err());
        machine.boot(&mut || true);
        assert_eq!(machine.value("/sys/k"), Some("0"));
    }
}
