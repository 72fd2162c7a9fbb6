//! Watching a machine being read: everything that was asked, and what was answered.
//!
//! What becomes of a record is in `capture/`; a record can be turned into a tree that answers
//! the same questions.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::files::{Files, ReadError, Space, not_kept};
use crate::simulated::tree::{Contents, Missing, Question, Tree, normal};

/// Passes every question on to another machine and keeps the answers. A question that comes again
/// gets the same answer, so that what is read through it fits together, and a capture of it gives
/// exactly the same survey.
pub struct Recorder<'a> {
    files: &'a dyn Files,
    record: RefCell<Record>,
}

/// Questions and answers. Paths are absolute, without `.` and `..`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) files: BTreeMap<String, Contents>,
    pub(crate) directories: BTreeMap<String, Vec<String>>,
    /// Path and what it really is; the same when it is no link.
    pub(crate) links: BTreeMap<String, String>,
    pub(crate) spaces: BTreeMap<String, Space>,
    pub(crate) programs: BTreeMap<Vec<String>, Result<String, ReadError>>,
    pub(crate) firmware_words: BTreeMap<u32, Result<u32, ReadError>>,
    pub(crate) errors: BTreeMap<(String, Question), ReadError>,
}

impl<'a> Recorder<'a> {
    /// A recorder in front of a machine, with nothing recorded.
    pub fn new(files: &'a dyn Files) -> Self {
        Recorder { files, record: RefCell::new(Record::default()) }
    }

    /// The machine behind it.
    pub(crate) fn files(&self) -> &'a dyn Files {
        self.files
    }

    /// What was recorded so far, with the links that the paths in it went through, so that a later
    /// question may come by another way.
    pub(crate) fn record(&self) -> Record {
        let mut record = self.record.borrow().clone();
        for directory in record.directories_passed() {
            let Ok(real) = self.files.real_path(Path::new(&directory)) else {
                continue;
            };
            let real = text(&real);
            if real != directory {
                record.links.entry(directory).or_insert(real);
            }
        }
        record
    }

    /// Answers from the record, or else asks and records.
    fn answer<T>(
        &self,
        path: &Path,
        question: Question,
        recall: impl FnOnce(&Record, &str) -> Option<T>,
        ask: impl FnOnce() -> Result<T, ReadError>,
        keep: impl FnOnce(&mut Record, String, &T),
    ) -> Result<T, ReadError> {
        let key = self.key(path);
        {
            let record = self.record.borrow();
            if let Some(known) = recall(&record, &key) {
                return Ok(known);
            }
            if let Some(error) = record.errors.get(&(key.clone(), question)) {
                return Err(error.clone());
            }
        }
        let answer = ask();
        let mut record = self.record.borrow_mut();
        match &answer {
            Ok(value) => keep(&mut record, key, value),
            Err(error) => {
                record.errors.insert((key, question), error.clone());
            }
        }
        answer
    }

    /// The path as it is recorded. One with `..` in it means something else after a link.
    fn key(&self, path: &Path) -> String {
        let goes_up =
            path.components().any(|component| component == std::path::Component::ParentDir);
        match goes_up.then(|| self.files.real_path(path)) {
            Some(Ok(real)) => text(&real),
            _ => text(&normal(path)),
        }
    }
}

impl Record {
    /// All directories above the recorded paths, and the paths themselves, where links may be.
    /// Those of processes are left out: `/proc/self` is another one at each run.
    fn directories_passed(&self) -> BTreeSet<String> {
        let asked = self
            .files
            .keys()
            .chain(self.directories.keys())
            .chain(self.links.keys())
            .chain(self.errors.keys().map(|(path, _)| path));
        asked
            .flat_map(|path| Path::new(path).ancestors())
            .map(text)
            .filter(|path| !path.starts_with("/proc/") || path.starts_with("/proc/device-tree"))
            .collect()
    }

    /// A tree that answers as the recorded machine did.
    pub(crate) fn into_tree(self, missing: Missing) -> Tree {
        let mut tree = Tree::new(missing);
        tree.add_present(Path::new("/"), None);
        // The links nearest to the root first: the others may go through them.
        let mut links: Vec<(String, String)> = self.links.into_iter().collect();
        links.sort_by_key(|(path, _)| Path::new(path).components().count());
        for (path, target) in &links {
            tree.add_link(Path::new(path), Path::new(target));
        }
        // The target of a link exists, though it was perhaps not looked at.
        for (path, _) in &links {
            tree.add_present(Path::new(path), None);
        }
        for (path, names) in self.directories {
            tree.add_present(Path::new(&path), Some(names));
        }
        for (path, contents) in self.files {
            tree.add_file(Path::new(&path), contents);
        }
        for ((path, question), error) in self.errors {
            tree.add_error(Path::new(&path), question, error);
        }
        for (path, space) in self.spaces {
            tree.add_space(Path::new(&path), space);
        }
        for (call, answer) in self.programs {
            tree.add_program(call, answer);
        }
        for (tag, answer) in self.firmware_words {
            tree.add_firmware_word(tag, answer);
        }
        tree
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Files for Recorder<'_> {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        self.answer(
            path,
            Question::Read,
            |record, key| {
                let known = record.files.get(key)?;
                let length = known.bytes.len().min(limit);
                (known.whole || length == limit).then(|| known.bytes[..length].to_vec())
            },
            || self.files.read_prefix(path, limit),
            |record, key, bytes| {
                let whole = bytes.len() < limit;
                let bytes = bytes.clone();
                record.files.insert(key, Contents { bytes, whole });
            },
        )
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        self.answer(
            path,
            Question::List,
            |record, key| record.directories.get(key).cloned(),
            || self.files.list(path),
            |record, key, names| {
                record.directories.insert(key, names.clone());
            },
        )
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        self.answer(
            path,
            Question::RealPath,
            |record, key| record.links.get(key).map(PathBuf::from),
            || self.files.real_path(path),
            |record, key, real| {
                record.links.insert(key, text(real));
            },
        )
    }

    fn space(&self, path: &Path) -> Result<Space, ReadError> {
        self.answer(
            path,
            Question::Space,
            |record, key| record.spaces.get(key).copied(),
            || self.files.space(path),
            |record, key, space| {
                record.spaces.insert(key, *space);
            },
        )
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, ReadError> {
        let call: Vec<String> =
            std::iter::once(program).chain(arguments.iter().copied()).map(str::to_string).collect();
        if let Some(known) = self.record.borrow().programs.get(&call) {
            return known.clone();
        }
        let answer = self.files.ask(program, arguments);
        self.record.borrow_mut().programs.insert(call, answer.clone());
        answer
    }

    /// A capture has none, so that the program sees now what it will see of the capture.
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
        if let Some(known) = self.record.borrow().firmware_words.get(&tag) {
            return known.clone();
        }
        let answer = self.files.firmware_word(tag);
        self.record.borrow_mut().firmware_words.insert(tag, answer.clone());
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::fake::FakeFiles;

    fn path(text: &str) -> &Path {
        Path::new(text)
    }

    fn machine() -> FakeFiles {
        FakeFiles::new()
            .file("/proc/cpuinfo", "processor : 0\n")
            .link("/sys/block/sda", "../devices/usb1/1-1/block/sda")
            .file("/sys/block/sda/size", "2048\n")
            .link("/sys/devices/usb1/1-1/block/sda/device", "/sys/devices/usb1/1-1")
            .file("/sys/devices/usb1/1-1/serial", "ABC123\n")
            .denied("/etc/secret")
            .space("/", 1000, 400)
            .program(&["uname", "-m"], "armv7l\n")
            .failing_program(&["vcgencmd", "version"], ReadError::Absent)
            .firmware_word(7, 9)
    }

    /// Asks everything that the tests compare.
    fn interview(files: &dyn Files) -> Vec<String> {
        vec![
            format!("{:?}", files.text(path("/proc/cpuinfo"))),
            format!("{:?}", files.read_prefix(path("/proc/cpuinfo"), 4)),
            format!("{:?}", files.list(path("/sys/block"))),
            format!("{:?}", files.text(path("/sys/block/sda/size"))),
            format!("{:?}", files.text(path("/sys/block/sda/device/serial"))),
            format!("{:?}", files.text(path("/sys/block/sda/device/../1-1/serial"))),
            format!("{:?}", files.real_path(path("/sys/block/sda/device"))),
            format!("{:?}", files.exists(path("/sys/block/sdb"))),
            format!("{:?}", files.text(path("/etc/secret"))),
            format!("{:?}", files.text(path("/etc/missing"))),
            format!("{:?}", files.list(path("/etc/missing"))),
            format!("{:?}", files.space(path("/"))),
            format!("{:?}", files.space(path("/mnt"))),
            format!("{:?}", files.ask("uname", &["-m"])),
            format!("{:?}", files.ask("vcgencmd", &["version"])),
            format!("{:?}", files.firmware_word(7)),
            format!("{:?}", files.firmware_word(8)),
        ]
    }

    #[test]
    fn the_recorded_machine_answers_as_the_machine_did() {
        let machine = machine();
        let recorder = Recorder::new(&machine);
        let live = interview(&recorder);
        assert_eq!(live, interview(&machine));
        let tree = recorder.record().into_tree(Missing::NotCaptured);
        assert_eq!(interview(&tree), live);
    }

    #[test]
    fn a_question_may_come_by_another_way() {
        let machine = machine();
        let recorder = Recorder::new(&machine);
        recorder.text(path("/sys/block/sda/device/serial")).unwrap();
        recorder.text(path("/etc/missing")).unwrap_err();
        let tree = recorder.record().into_tree(Missing::NotCaptured);
        assert_eq!(tree.text(path("/sys/devices/usb1/1-1/serial")).unwrap(), "ABC123");
        assert_eq!(
            tree.real_path(path("/sys/block/sda")).unwrap(),
            path("/sys/devices/usb1/1-1/block/sda")
        );
        // What was not there for one question is not there for another.
        assert_eq!(tree.list(path("/etc/missing/x")), Err(ReadError::Absent));
        assert_eq!(tree.text(path("/sys/block/sda/size")), Err(ReadError::NotCaptured));
    }

    #[test]
    fn the_longest_reading_of_a_file_is_kept() {
        let machine = FakeFiles::new().file("/f", "0123456789");
        let recorder = Recorder::new(&machine);
        for limit in [4, 20, 2] {
            recorder.read_prefix(path("/f"), limit).unwrap();
        }
        let tree = recorder.record().into_tree(Missing::NotCaptured);
        assert_eq!(tree.text(path("/f")).unwrap(), "0123456789");
        let recorder = Recorder::new(&machine);
        for limit in [4, 6, 2] {
            recorder.read_prefix(path("/f"), limit).unwrap();
        }
        let tree = recorder.record().into_tree(Missing::NotCaptured);
        assert_eq!(tree.read_prefix(path("/f"), 6).unwrap(), b"012345");
        assert!(tree.text(path("/f")).is_err());
    }

    #[test]
    fn the_same_question_gets_the_same_answer() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "before").unwrap();
        let recorder = Recorder::new(&crate::Live);
        assert_eq!(recorder.text(&file).unwrap(), "before");
        std::fs::write(&file, "after").unwrap();
        assert_eq!(recorder.text(&file).unwrap(), "before");
        assert_eq!(recorder.read_prefix(&file, 3).unwrap(), b"bef");
        let missing = directory.path().join("missing");
        assert_eq!(recorder.text(&missing), Err(ReadError::Absent));
        std::fs::write(&missing, "now it is there").unwrap();
        assert_eq!(recorder.text(&missing), Err(ReadError::Absent));
    }
}
