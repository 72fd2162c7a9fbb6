//! A directory that is made.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::volume::DiskIdentity;
use rubus_host::files::hands::parent_of;
use rubus_host::{Files, Hands, ReadError};

use super::commands::{Command, Names};
use super::{
    Behaviour, Detail, FileSite, FileStep, Receipt, StepError, Touches, Trace, TraceSite, receipt,
};

/// A directory is made; its parent exists. Undoing removes it if nothing else is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct MakeDirectory {
    /// Absolute path.
    pub path: PathBuf,
}

impl Behaviour for MakeDirectory {
    fn title(&self) -> String {
        format!("make the directory {}", self.path.display())
    }

    fn proof_title(&self) -> String {
        "it is there".into()
    }

    fn undo_title(&self) -> String {
        format!("remove the directory {} if it is empty", self.path.display())
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches { makes_directory: Some(&self.path), ..Touches::path(&self.path) }
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, files: &dyn Files) -> Option<String> {
        (!files.exists(&self.path)).then(|| format!("{} is gone", self.path.display()))
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, files: &dyn Files) -> Trace {
        if files.link(&self.path).is_ok() {
            return Trace::Foreign("a symbolic link is in its place".into());
        }
        match files.list(&self.path) {
            Ok(_) => Trace::Made,
            Err(ReadError::Absent) => Trace::Untouched,
            Err(_) => Trace::Foreign("something else is in its place".into()),
        }
    }
}

impl FileStep for MakeDirectory {
    fn apply(&self, site: &FileSite<'_>, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
        let path = site.place(&self.path)?;
        if !hands.files().exists(&path) {
            hands.make_directory(&path)?;
        }
        hands.sync_directory(&parent_of(&path))?;
        Ok(there())
    }

    /// A directory in which something has been put stays.
    fn undo(&self, site: &FileSite<'_>, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
        let path = site.place(&self.path)?;
        let is_empty = hands.files().list(&path).map(|names| names.is_empty());
        if is_empty == Ok(true) {
            hands.remove_directory(&path)?;
        }
        let parent = parent_of(&path);
        if hands.files().exists(&parent) {
            hands.sync_directory(&parent)?;
        }
        Ok(if hands.files().exists(&path) { there() } else { receipt("absent", "absent") })
    }
}

fn there() -> Receipt {
    receipt("a directory", "a directory")
}
