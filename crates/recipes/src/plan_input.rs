//! What a recipe plans from: the machine, the facts and the chosen options.

use std::path::Path;

use rubus_change::plan::TextFile;
use rubus_vocabulary::machine::Machine;

use super::{Facts, Found, PathState, Wishes};

/// What a recipe plans from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanInput<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) facts: &'a Facts,
    pub(crate) options: &'a Wishes,
}

impl<'a> PlanInput<'a> {
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// Whether a kernel is started here that takes the shorter command line of 32-bit ARM.
    pub(crate) fn has_32_bit_arm_kernel(&self) -> bool {
        let system = &self.machine.system;
        // Which kernel a board takes from an image with a 32-bit system is not known; the shorter limit holds for all.
        let is_32_bit_image =
            self.facts.image.is_some() && system.user_space_bits.get() == Some(32);
        let arch = system.kernel_arch.text().unwrap_or_default();
        arch.starts_with("armv") || is_32_bit_image
    }

    pub(crate) fn file(&self, path: &Path) -> Option<&'a TextFile> {
        match self.facts.seen.get(path) {
            Some(PathState::Text(file)) => Some(file),
            _ => None,
        }
    }

    /// The text at a path; empty where there is none.
    pub(crate) fn text(&self, path: &Path) -> &str {
        self.file(path).map_or("", |file| file.text.as_str())
    }

    pub(crate) fn is_there(&self, path: &Path) -> bool {
        matches!(
            self.facts.seen.get(path),
            Some(PathState::Text(_) | PathState::Directory(_) | PathState::Something)
        )
    }
}

impl PlanInput<'_> {
    /// Whether something is at a path, in words.
    pub(crate) fn presence(&self, path: &Path) -> Found {
        let shown = path.display();
        let words = match self.facts.seen.get(path) {
            Some(PathState::Text(_) | PathState::Directory(_) | PathState::Something) => {
                format!("{shown} is there")
            }
            Some(PathState::Absent) => format!("there is no {shown}"),
            Some(PathState::Dangling(target)) => {
                format!("{shown} points to {}, which is not there", target.display())
            }
            Some(PathState::Hidden(why)) => {
                return Found { words: format!("{shown} cannot be seen: {why}"), ..why.into() };
            }
            None => format!("{shown} was not looked at"),
        };
        words.into()
    }
}
