//! Where the directories of a change's files were when it began: one that was replaced by a link since is not followed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rubus_host::Files;
use rubus_host::files::hands::parent_of;

use crate::plan::{Action, Plan};

/// The file beside the journal that keeps them. Versions before this one have written none.
pub(super) const PLACES: &str = "places.json";

/// The directory of each path that a change touches, without links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places(BTreeMap<PathBuf, PathBuf>);

impl Places {
    /// As they are now.
    pub fn of(plan: &Plan, files: &dyn Files) -> Places {
        let paths = plan.steps.iter().filter_map(|step| path_of(&step.action));
        Places(paths.map(|path| (path.clone(), directory_of(path, files))).collect())
    }

    pub fn parse(text: &str) -> Places {
        Places(serde_json::from_str(text).unwrap_or_default())
    }

    pub fn text(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default() + "\n"
    }

    /// How the directory of what an action changes is another one than it was, in words.
    pub fn moved(&self, action: &Action, files: &dyn Files) -> Option<String> {
        let path = path_of(action)?;
        let was = self.0.get(path)?;
        let now = directory_of(path, files);
        (now != *was).then(|| {
            format!("its directory was {} and leads to {} now", was.display(), now.display())
        })
    }
}

/// What is changed on a filesystem; the kernel's own files have links that move.
fn path_of(action: &Action) -> Option<&PathBuf> {
    let is_kernels = |path: &Path| ["/sys", "/proc"].iter().any(|top| path.starts_with(top));
    action.path().filter(|path| !is_kernels(path))
}

/// The directory of a path without links. Parts that are not there yet are no links.
fn directory_of(path: &Path, files: &dyn Files) -> PathBuf {
    let directory = parent_of(path);
    let real = directory.ancestors().find_map(|above| {
        let real = files.real_path(above).ok()?;
        let rest = directory.strip_prefix(above).ok()?;
        Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    });
    real.unwrap_or(directory)
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;
    use crate::fixture::plans::small_plan;

    #[test]
    fn a_directory_that_became_a_link_is_noticed_and_one_that_is_made_is_not() {
        let plan = small_plan();
        let new_file = &plan.steps[1].action;
        let before = FakeFiles::new().dir("/etc").dir("/other");
        let places = Places::of(&plan, &before);
        assert_eq!(places.moved(new_file, &before), None);
        let made = FakeFiles::new().dir("/etc/example.d").dir("/other");
        assert_eq!(places.moved(new_file, &made), None);
        let linked = before.link("/etc/example.d", "/other");
        let words = places.moved(new_file, &linked).expect("it leads elsewhere");
        assert_eq!(words, "its directory was /etc/example.d and leads to /other now");
        assert_eq!(Places::parse(&places.text()), places);
        assert_eq!(Places::default().moved(new_file, &linked), None, "an older version's change");
    }
}
