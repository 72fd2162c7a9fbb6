//! A machine's files held in memory: what captures and test fakes answer from.
//!
//! Paths are resolved as the kernel does it: component by component, through symbolic links. How
//! the tree is filled is the business of `fake.rs` and `capture/`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::{Files, ReadError, Space, not_kept};

/// Symbolic links followed in one path before it counts as a loop; the kernel's own limit.
const LINK_LIMIT: usize = 40;

/// What a path that the tree does not know means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// There is no such file: the tree shows everything there is.
    Absent,
    /// Unknown: the tree shows only what was recorded.
    NotCaptured,
}

/// A file in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The recorded bytes.
    pub(crate) bytes: Vec<u8>,
    /// Whether that is all of it; otherwise only its beginning was recorded.
    pub(crate) whole: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    File(Contents),
    /// A directory, or something of which only the existence is known. With names, if its list
    /// was recorded.
    Present(Option<Names>),
    Link(PathBuf),
}

/// The names in a directory in the order of their record, and to look one up.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Names {
    listed: Vec<String>,
    all: BTreeSet<String>,
}

impl Names {
    fn of(listed: Vec<String>) -> Self {
        Names { all: listed.iter().cloned().collect(), listed }
    }

    fn has(&self, name: &OsStr) -> bool {
        name.to_str().is_some_and(|name| self.all.contains(name))
    }
}

/// What was asked about a path, for errors that hold for one question only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Question {
    Read,
    List,
    RealPath,
    Space,
}

/// The files in memory.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: BTreeMap<PathBuf, Node>,
    errors: BTreeMap<(PathBuf, Question), ReadError>,
    spaces: BTreeMap<PathBuf, Space>,
    programs: BTreeMap<Vec<String>, Result<String, ReadError>>,
    firmware_words: BTreeMap<u32, Result<u32, ReadError>>,
    missing: Missing,
}

impl Tree {
    /// An empty tree.
    pub fn new(missing: Missing) -> Self {
        Tree {
            nodes: BTreeMap::new(),
            errors: BTreeMap::new(),
            spaces: BTreeMap::new(),
            programs: BTreeMap::new(),
            firmware_words: BTreeMap::new(),
            missing,
        }
    }

    /// Adds a file at a path, through links that are already there; of two contents of the same
    /// file the longer one stays.
    pub(crate) fn add_file(&mut self, path: &Path, contents: Contents) {
        let place = self.place(path);
        let keep = match self.nodes.get(&place) {
            Some(Node::File(old)) => old.bytes.len() > contents.bytes.len(),
            _ => false,
        };
        if !keep {
            self.add_parents(&place);
            self.nodes.insert(place, Node::File(contents));
        }
    }

    /// Puts a file at a path, whatever was there.
    pub(crate) fn set_file(&mut self, path: &Path, contents: Contents) {
        let place = self.place(path);
        self.add_parents(&place);
        self.nodes.insert(place, Node::File(contents));
    }

    /// Adds a symbolic link; the target may be relative to the link's directory. A link to itself
    /// says only that the path exists.
    pub(crate) fn add_link(&mut self, path: &Path, target: &Path) {
        let place = self.entry_place(path);
        if normal(target) == place {
            self.add_present(path, None);
            return;
        }
        self.add_parents(&place);
        self.nodes.insert(place, Node::Link(target.to_path_buf()));
    }

    /// Adds something that exists, with the names in it if they are known.
    pub(crate) fn add_present(&mut self, path: &Path, names: Option<Vec<String>>) {
        let place = self.place(path);
        self.add_parents(&place);
        let known = match self.nodes.get(&place) {
            Some(Node::Present(known)) => known.is_some(),
            Some(Node::File(_)) => names.is_none(),
            _ => false,
        };
        if !known {
            self.nodes.insert(place, Node::Present(names.map(Names::of)));
        }
    }

    pub(crate) fn add_error(&mut self, path: &Path, question: Question, error: ReadError) {
        self.errors.insert((self.place(path), question), error);
    }

    pub(crate) fn add_space(&mut self, path: &Path, space: Space) {
        self.spaces.insert(self.place(path), space);
    }

    pub(crate) fn add_program(&mut self, call: Vec<String>, answer: Result<String, ReadError>) {
        self.programs.insert(call, answer);
    }

    pub(crate) fn add_firmware_word(&mut self, tag: u32, answer: Result<u32, ReadError>) {
        self.firmware_words.insert(tag, answer);
    }

    /// Makes the directories above a path exist.
    fn add_parents(&mut self, place: &Path) {
        for parent in place.ancestors().skip(1) {
            if self.nodes.contains_key(parent) {
                break;
            }
            self.nodes.insert(parent.to_path_buf(), Node::Present(None));
        }
    }

    /// The path with the links in it followed as far as they are known.
    fn place(&self, path: &Path) -> PathBuf {
        self.resolve(path).unwrap_or_else(|_| normal(path))
    }

    /// As [`Tree::place`], but the last component is not followed.
    fn entry_place(&self, path: &Path) -> PathBuf {
        let path = normal(path);
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => self.place(parent).join(name),
            _ => path,
        }
    }

    /// Follows all links. The result need not exist.
    fn resolve(&self, path: &Path) -> Result<PathBuf, ReadError> {
        let mut done = PathBuf::from("/");
        // Components still to walk, the next one last.
        let mut ahead: Vec<String> = components_reversed(path);
        let mut links = 0;
        while let Some(name) = ahead.pop() {
            if name == ".." {
                done.pop();
                continue;
            }
            done.push(&name);
            let Some(Node::Link(target)) = self.nodes.get(&done) else {
                continue;
            };
            links += 1;
            if links > LINK_LIMIT {
                return Err(ReadError::Other("too many levels of symbolic links".to_string()));
            }
            done.pop();
            if target.is_absolute() {
                done = PathBuf::from("/");
            }
            ahead.extend(components_reversed(target));
        }
        Ok(done)
    }

    fn missing_error(&self) -> ReadError {
        match self.missing {
            Missing::Absent => ReadError::Absent,
            Missing::NotCaptured => ReadError::NotCaptured,
        }
    }

    /// Why a path gives no answer: its own recorded error, that of a directory above it, or that
    /// it is missing.
    fn why_not(&self, place: &Path, question: Question) -> ReadError {
        if let Some(error) = self.errors.get(&(place.to_path_buf(), question)) {
            return error.clone();
        }
        if self.is_known_absent(place) || self.listed_without(place) {
            return ReadError::Absent;
        }
        self.missing_error()
    }

    /// Whether some question found this path, or a directory above it, absent.
    fn is_known_absent(&self, place: &Path) -> bool {
        place.ancestors().any(|path| {
            [Question::Read, Question::List, Question::RealPath, Question::Space].iter().any(
                |question| {
                    self.errors.get(&(path.to_path_buf(), *question)) == Some(&ReadError::Absent)
                },
            )
        })
    }

    /// Whether the list of a directory above was recorded and shows that this path is not there.
    fn listed_without(&self, place: &Path) -> bool {
        let mut below = place;
        for parent in place.ancestors().skip(1) {
            if let (Some(Node::Present(Some(names))), Some(name)) =
                (self.nodes.get(parent), below.file_name())
            {
                return !names.has(name);
            }
            below = parent;
        }
        false
    }

    /// Names of the nodes directly below a directory.
    fn names_below(&self, place: &Path) -> Vec<String> {
        let names: BTreeSet<String> = self
            .nodes
            .range(place.to_path_buf()..)
            .take_while(|(path, _)| path.starts_with(place))
            .filter(|(path, _)| path.parent() == Some(place))
            .filter_map(|(path, _)| path.file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.into_iter().collect()
    }
}

impl Files for Tree {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        let place = self.resolve(path)?;
        match self.nodes.get(&place) {
            Some(Node::File(contents)) => {
                let length = contents.bytes.len().min(limit);
                if limit > contents.bytes.len() && !contents.whole {
                    return Err(ReadError::Other(format!(
                        "only its first {length} bytes are in the capture"
                    )));
                }
                Ok(contents.bytes[..length].to_vec())
            }
            Some(Node::Present(names)) => {
                let key = (place, Question::Read);
                match self.errors.get(&key) {
                    Some(error) => Err(error.clone()),
                    None if names.is_some() || self.missing == Missing::Absent => {
                        Err(ReadError::Other("it is a directory".to_string()))
                    }
                    None => Err(self.missing_error()),
                }
            }
            _ => Err(self.why_not(&place, Question::Read)),
        }
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        let place = self.resolve(path)?;
        match self.nodes.get(&place) {
            Some(Node::Present(Some(names))) => Ok(names.listed.clone()),
            Some(Node::Present(None))
                if self.missing == Missing::Absent
                    && !self.errors.contains_key(&(place.clone(), Question::List)) =>
            {
                Ok(self.names_below(&place))
            }
            Some(Node::File(_)) => Err(ReadError::Absent),
            _ => Err(self.why_not(&place, Question::List)),
        }
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        let place = self.resolve(path)?;
        let key = (place, Question::RealPath);
        if let Some(error) = self.errors.get(&key) {
            return Err(error.clone());
        }
        let (place, _) = key;
        if self.nodes.contains_key(&place) {
            return Ok(place);
        }
        // A recorded list says that it exists, though its contents were not recorded.
        let named = place.parent().zip(place.file_name()).is_some_and(
            |(parent, name)| matches!(self.nodes.get(parent), Some(Node::Present(Some(names))) if names.has(name)),
        );
        if named {
            return Err(ReadError::NotCaptured);
        }
        Err(self.why_not(&place, Question::RealPath))
    }

    fn space(&self, path: &Path) -> Result<Space, ReadError> {
        let place = self.resolve(path)?;
        match self.spaces.get(&place) {
            Some(space) => Ok(*space),
            None => Err(self.why_not(&place, Question::Space)),
        }
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, ReadError> {
        let call: Vec<String> =
            std::iter::once(program).chain(arguments.iter().copied()).map(str::to_string).collect();
        self.programs.get(&call).cloned().unwrap_or_else(|| Err(self.missing_error()))
    }

    fn mode(&self, path: &Path) -> Result<u32, ReadError> {
        not_kept(self, path)
    }

    /// It is not recorded which filesystems do.
    fn keeps_modes(&self, _: &Path) -> bool {
        true
    }

    fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
        not_kept(self, path)
    }

    fn firmware_word(&self, tag: u32) -> Result<u32, ReadError> {
        self.firmware_words.get(&tag).cloned().unwrap_or_else(|| Err(self.missing_error()))
    }
}

/// Names of a path's components from the last to the first; `.` and the root left out.
fn components_reversed(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            Component::ParentDir => Some("..".to_string()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect();
    names.reverse();
    names
}

/// An absolute path without `.`, `..` and doubled slashes, nothing looked up.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for name in components_reversed(path).iter().rev() {
        if name == ".." {
            clean.pop();
        } else {
            clean.push(name);
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::fake::FakeFiles;

    fn path(text: &str) -> &Path {
        Path::new(text)
    }

    #[test]
    fn links_are_followed_wherever_they_stand() {
        let files = FakeFiles::new()
            .link("/sys/class/net/eth0", "../../devices/soc/usb1/net/eth0")
            .file("/sys/class/net/eth0/speed", "100\n")
            .link("/sys/devices/soc/usb1/net/eth0/device", "/sys/devices/soc/usb1")
            .file("/sys/devices/soc/usb1/idVendor", "0424\n");
        assert_eq!(files.text(path("/sys/devices/soc/usb1/net/eth0/speed")).unwrap(), "100");
        assert_eq!(files.text(path("/sys/class/net/eth0/device/idVendor")).unwrap(), "0424");
        assert_eq!(
            files.real_path(path("/sys/class/net/eth0/device/../speed")),
            Err(ReadError::Absent)
        );
        assert_eq!(
            files.real_path(path("/sys/class/net/eth0/device/")).unwrap(),
            path("/sys/devices/soc/usb1")
        );
        assert_eq!(files.list(path("/sys/devices/soc")).unwrap(), ["usb1"]);
    }

    #[test]
    fn loops_of_links_end() {
        let files = FakeFiles::new().link("/a", "/b").link("/b", "/a");
        assert!(matches!(files.read_prefix(path("/a/x"), 1), Err(ReadError::Other(_))));
        assert!(!files.exists(path("/a")));
    }

    #[test]
    fn directories_are_implied_and_are_not_files() {
        let files = FakeFiles::new().file("/etc/rpi/swap.conf", "x").dir("/empty");
        assert_eq!(files.list(path("/etc")).unwrap(), ["rpi"]);
        assert_eq!(files.list(path("/empty")).unwrap(), Vec::<String>::new());
        assert_eq!(files.list(path("/")).unwrap(), ["empty", "etc"]);
        assert!(matches!(files.text(path("/etc")), Err(ReadError::Other(_))));
        assert_eq!(files.list(path("/etc/rpi/swap.conf")), Err(ReadError::Absent));
        assert_eq!(files.list(path("/none")), Err(ReadError::Absent));
    }

    #[test]
    fn what_is_denied_is_there() {
        let files = FakeFiles::new().denied("/sys/kernel/debug");
        assert!(files.exists(path("/sys/kernel/debug")));
        assert_eq!(files.list(path("/sys/kernel/debug")), Err(ReadError::Denied));
        assert_eq!(files.list(path("/sys/kernel")).unwrap(), ["debug"]);
    }

    #[test]
    fn a_recording_tells_what_is_absent_from_what_nobody_looked_at() {
        let mut tree = Tree::new(Missing::NotCaptured);
        tree.add_present(path("/sys/block"), Some(vec!["sda".to_string()]));
        tree.add_link(path("/sys/block/sda"), path("/sys/devices/sda"));
        tree.add_error(path("/etc/x"), Question::Read, ReadError::Denied);
        assert_eq!(tree.list(path("/sys/block")).unwrap(), ["sda"]);
        assert_eq!(tree.text(path("/sys/block/sdb/size")), Err(ReadError::Absent));
        assert_eq!(tree.text(path("/sys/block/sda/size")), Err(ReadError::NotCaptured));
        assert_eq!(tree.text(path("/etc/x")), Err(ReadError::Denied));
        assert_eq!(tree.text(path("/etc/y")), Err(ReadError::NotCaptured));
        assert_eq!(tree.list(path("/sys")), Err(ReadError::NotCaptured));
        assert_eq!(tree.ask("vcgencmd", &[]), Err(ReadError::NotCaptured));
        assert_eq!(tree.firmware_word(1), Err(ReadError::NotCaptured));
    }

    #[test]
    fn a_beginning_is_not_taken_for_the_whole() {
        let mut tree = Tree::new(Missing::NotCaptured);
        let contents = Contents { bytes: vec![1, 2, 3, 4], whole: false };
        tree.add_file(path("/dev/sda"), contents);
        assert_eq!(tree.read_prefix(path("/dev/sda"), 4).unwrap(), [1, 2, 3, 4]);
        assert_eq!(tree.read_prefix(path("/dev/sda"), 2).unwrap(), [1, 2]);
        assert!(tree.read_prefix(path("/dev/sda"), 5).is_err());
    }

    #[test]
    fn paths_are_cleaned_as_text_only() {
        assert_eq!(normal(path("/a/./b//../c/")), path("/a/c"));
        assert_eq!(normal(path("../../x")), path("/x"));
        assert_eq!(normal(path("/")), path("/"));
    }
}
