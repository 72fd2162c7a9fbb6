//! What a machine shows of a step, whatever the journal says of it.

use std::path::{Path, PathBuf};

use rubus_host::Files;
use rubus_host::files::hands::parent_of;

use super::site::temporary_name;

/// What a machine shows of a step. A journal may end before the machine does: the filesystem lost its last lines, or it is a
/// copy that another root has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trace {
    /// It is done or half done: undoing it has something to do.
    Made,
    /// As it was before the step.
    Untouched,
    /// Neither as it was nor as the step leaves it; how, in a few words.
    Foreign(String),
    /// It cannot be seen.
    Unseen,
}

impl Trace {
    /// A step whose effect is there or not.
    pub(super) fn made(is_made: bool) -> Trace {
        if is_made { Trace::Made } else { Trace::Untouched }
    }
}

/// Whose traces are looked for.
#[derive(Clone, Copy, Debug)]
pub struct TraceSite<'a> {
    /// The name of the change.
    pub change: &'a str,
    /// The directory in which it keeps its plan and journal.
    pub directory: &'a Path,
    /// Number of the step, from 0.
    pub step: usize,
}

impl TraceSite<'_> {
    /// Whether an interrupted attempt has left what it prepared beside this path.
    pub(super) fn has_leftover(&self, path: &Path, files: &dyn Files) -> bool {
        is_there(&self.fresh_name(path), files)
    }

    fn fresh_name(&self, path: &Path) -> PathBuf {
        parent_of(path).join(temporary_name(self.change, self.step))
    }
}

/// Whether something has this name, a link that leads nowhere included.
pub(super) fn is_there(path: &Path, files: &dyn Files) -> bool {
    files.exists(path) || files.link(path).is_ok()
}
