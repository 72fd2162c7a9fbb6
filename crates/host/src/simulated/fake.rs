//! A machine made up for a test: paths and their contents, everything else absent.

use std::path::{Path, PathBuf};

use crate::files::{Files, ReadError, Space};
use crate::simulated::tree::{Contents, Missing, Question, Tree};

/// A made-up machine. What is not added does not exist.
///
/// ```
/// use rubus_host::Files;
/// use rubus_host::simulated::fake::FakeFiles;
/// use std::path::Path;
///
/// let files = FakeFiles::new()
///     .file("/sys/devices/pci0/sda/size", "2048\n")
///     .link("/sys/block/sda", "../devices/pci0/sda")
///     .denied("/sys/kernel/debug/zswap");
/// assert_eq!(files.text(Path::new("/sys/block/sda/size")).unwrap(), "2048");
/// assert_eq!(files.list(Path::new("/sys/block")).unwrap(), ["sda"]);
/// ```
#[derive(Clone, Debug)]
pub struct FakeFiles {
    tree: Tree,
}

impl Default for FakeFiles {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeFiles {
    /// A machine with nothing but `/`.
    pub fn new() -> Self {
        FakeFiles { tree: Tree::new(Missing::Absent) }.dir("/")
    }

    /// Adds a file, its directories included. A path through a link that was added before lands
    /// in the link's target. Replaces a file of that path.
    #[must_use]
    pub fn file(mut self, path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> Self {
        let contents = Contents { bytes: contents.as_ref().to_vec(), whole: true };
        self.tree.set_file(path.as_ref(), contents);
        self
    }

    /// Adds several files below one directory.
    #[must_use]
    pub fn files<const N: usize>(
        mut self,
        directory: impl AsRef<Path>,
        files: [(&str, &str); N],
    ) -> Self {
        for (name, contents) in files {
            self = self.file(directory.as_ref().join(name), contents);
        }
        self
    }

    /// Adds an empty directory.
    #[must_use]
    pub fn dir(mut self, path: impl AsRef<Path>) -> Self {
        self.tree.add_present(path.as_ref(), None);
        self
    }

    /// Adds a symbolic link; a target that does not begin with `/` is relative to its directory.
    #[must_use]
    pub fn link(mut self, path: impl AsRef<Path>, target: impl AsRef<Path>) -> Self {
        self.tree.add_link(path.as_ref(), target.as_ref());
        self
    }

    /// A path that an ordinary user may not read, list or reach.
    #[must_use]
    pub fn denied(self, path: impl AsRef<Path>) -> Self {
        self.failing(path, ReadError::Denied)
    }

    /// A path that answers every question with an error. It still shows in its directory's list.
    #[must_use]
    pub fn failing(mut self, path: impl AsRef<Path>, error: ReadError) -> Self {
        let path = path.as_ref();
        self.tree.add_present(path, None);
        for question in [Question::Read, Question::List, Question::Space] {
            self.tree.add_error(path, question, error.clone());
        }
        self
    }

    /// Size and free space of the filesystem mounted at a path.
    #[must_use]
    pub fn space(mut self, path: impl AsRef<Path>, size_bytes: u64, available_bytes: u64) -> Self {
        let space = Space { size_bytes, available_bytes };
        self.tree.add_present(path.as_ref(), None);
        self.tree.add_space(path.as_ref(), space);
        self
    }

    /// What a program prints; `call` is the program with its arguments.
    #[must_use]
    pub fn program(mut self, call: &[&str], output: &str) -> Self {
        let call = call.iter().map(|word| word.to_string()).collect();
        self.tree.add_program(call, Ok(output.to_string()));
        self
    }

    /// A program that fails.
    #[must_use]
    pub fn failing_program(mut self, call: &[&str], error: ReadError) -> Self {
        let call = call.iter().map(|word| word.to_string()).collect();
        self.tree.add_program(call, Err(error));
        self
    }

    /// What the firmware says to a property tag.
    #[must_use]
    pub fn firmware_word(mut self, tag: u32, word: u32) -> Self {
        self.tree.add_firmware_word(tag, Ok(word));
        self
    }
}

impl Files for FakeFiles {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        self.tree.read_prefix(path, limit)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        self.tree.list(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        self.tree.real_path(path)
    }

    fn space(&self, path: &Path) -> Result<Space, ReadError> {
        self.tree.space(path)
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, ReadError> {
        self.tree.ask(program, arguments)
    }

    fn mode(&self, path: &Path) -> Result<u32, ReadError> {
        self.tree.mode(path)
    }

    fn keeps_modes(&self, path: &Path) -> bool {
        self.tree.keeps_modes(path)
    }

    fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
        self.tree.link(path)
    }

    fn firmware_word(&self, tag: u32) -> Result<u32, ReadError> {
        self.tree.firmware_word(tag)
    }
}
