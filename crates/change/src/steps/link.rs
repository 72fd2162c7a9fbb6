//! A symbolic link that is made, turned to another place, or removed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::volume::DiskIdentity;
use rubus_host::files::hands::parent_of;
use rubus_host::{Files, Hands, ReadError};

use super::commands::{Command, Names};
use super::{Behaviour, Detail, FileSite, FileStep, Receipt, StepError, Touches, Trace, TraceSite};

/// A symbolic link is made or turned to another place, which is how systemd's units are switched on, off
/// and masked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct SetLink {
    /// Absolute path of the link.
    pub path: PathBuf,
    /// Where it points now; absent when there is none.
    pub was: Option<PathBuf>,
    /// Where it will point; absent: it is removed.
    pub becomes: Option<PathBuf>,
}

impl Behaviour for SetLink {
    fn title(&self) -> String {
        match &self.becomes {
            Some(target) => format!("let {} point to {}", self.path.display(), target.display()),
            None => format!("remove the link {}", self.path.display()),
        }
    }

    fn proof_title(&self) -> String {
        "the link is read back".into()
    }

    fn undo_title(&self) -> String {
        match &self.was {
            Some(target) => {
                format!("let {} point to {} again", self.path.display(), target.display())
            }
            None => format!("remove the link {}", self.path.display()),
        }
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
        Touches::filling(&self.path)
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, files: &dyn Files) -> Option<String> {
        let live = files.link(&self.path).ok();
        (live != self.becomes).then(|| format!("the link {} was changed", self.path.display()))
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, files: &dyn Files) -> Option<String> {
        let live = files.link(&self.path).ok();
        let is_known = live == self.was || live == self.becomes;
        let error = StepError::NotOurs {
            path: self.path.display().to_string(),
            how: "the link leads elsewhere".into(),
        };
        (!is_known).then(|| error.to_string())
    }

    fn trace(&self, site: &TraceSite<'_>, files: &dyn Files) -> Trace {
        if site.has_leftover(&self.path, files) {
            return Trace::Made;
        }
        match live(&self.path, files) {
            Ok(live) if live == self.was => Trace::Untouched,
            Ok(live) if live == self.becomes => Trace::Made,
            Ok(_) => Trace::Foreign("the link leads elsewhere".into()),
            Err(_) => Trace::Foreign("something else is in its place".into()),
        }
    }
}

impl FileStep for SetLink {
    fn apply(&self, site: &FileSite<'_>, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
        let path = site.place(&self.path)?;
        set(&path, self.was.as_deref(), self.becomes.as_deref(), site.temporary, hands)
    }

    fn undo(&self, site: &FileSite<'_>, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
        let path = site.place(&self.path)?;
        set(&path, self.becomes.as_deref(), self.was.as_deref(), site.temporary, hands)
    }
}

/// Brings a link from one target to another, or from or to nothing.
fn set(
    path: &Path,
    from: Option<&Path>,
    to: Option<&Path>,
    temporary: &str,
    hands: &mut dyn Hands,
) -> Result<Receipt, StepError> {
    let directory = parent_of(path);
    let temporary = directory.join(temporary);
    if hands.files().link(&temporary).is_ok() {
        hands.remove(&temporary)?;
    }
    let live = |hands: &dyn Hands| {
        live(path, hands.files())
            .map_err(|reason| StepError::Unreadable { path: path.display().to_string(), reason })
    };
    let now = live(hands)?;
    if now.as_deref() != to {
        if now.as_deref() != from {
            return Err(StepError::Changed { path: path.display().to_string() });
        }
        match to {
            None => hands.remove(path)?,
            Some(target) => {
                hands.make_link(&temporary, target)?;
                hands.rename(&temporary, path)?;
            }
        }
    }
    if hands.files().exists(&directory) {
        hands.sync_directory(&directory)?;
    }
    let words = |target: Option<&Path>| match target {
        Some(target) => format!("a link to {}", target.display()),
        None => "absent".into(),
    };
    let (planned, live) = (words(to), words(live(hands)?.as_deref()));
    if planned != live {
        return Err(StepError::NotAsWritten {
            path: path.display().to_string(),
            wanted: planned,
            live,
        });
    }
    Ok(Receipt { planned, live })
}

/// Where the link leads; nothing where nothing has this name.
fn live(path: &Path, files: &dyn Files) -> Result<Option<PathBuf>, ReadError> {
    match files.link(path) {
        Ok(target) => Ok(Some(target)),
        Err(ReadError::Absent) => Ok(None),
        Err(reason) => Err(reason),
    }
}
