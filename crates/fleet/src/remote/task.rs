//! What another machine shall do.

use std::path::PathBuf;

use anyhow::Context;

/// The name of a capture at the other end.
pub const CAPTURE: &str = "capture.tar";

/// A command for other machines.
#[derive(Debug)]
pub struct Task {
    /// Its words, as pieces that may name files in the private directory over there.
    pub words: Vec<Word>,
    /// Files to be copied there, with their names there.
    pub files: Vec<(PathBuf, String)>,
    /// How many results there will be of each machine.
    pub targets: usize,
    /// Where the capture that is made there goes here.
    pub capture: Option<PathBuf>,
}

/// A word of a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Word {
    /// As it is.
    Text(String),
    /// `--name=` and a file in the private directory.
    File { option: String, name: String },
}

impl Task {
    /// The words for a machine whose private directory this is.
    pub fn words(&self, directory: &str) -> Vec<String> {
        let word = |word: &Word| match word {
            Word::Text(text) => text.clone(),
            Word::File { option, name } => format!("{option}={directory}/{name}"),
        };
        self.words.iter().map(word).collect()
    }

    /// Bytes of all files that are copied.
    ///
    /// # Errors
    /// When one cannot be looked at.
    pub fn files_bytes(&self) -> anyhow::Result<u64> {
        let mut bytes = 0;
        for (path, _) in &self.files {
            let data = path.metadata();
            bytes += data.with_context(|| format!("cannot read {}", path.display()))?.len();
        }
        Ok(bytes)
    }
}
