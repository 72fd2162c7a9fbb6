//! Edits of text files, directories and unit links on one root, whose present state was looked at.
//!
//! They become steps of their own, so that they can be done on the running root as they are, or inside
//! [`Action::On`] on another root that is a copy of it.

use std::path::Path;

use super::units::{self, UNITS};
use super::{PathState, Seen};
use rubus_change::plan::volume::Volume;
use rubus_change::plan::{Action, Step, TextFile};
use rubus_change::steps::{MakeDirectory, On, SetLink, WriteFile};

/// Edits that are being collected. What would change nothing is left out.
#[derive(Debug)]
pub(super) struct Edits<'a> {
    seen: &'a Seen,
    steps: Vec<Step>,
}

impl<'a> Edits<'a> {
    pub(super) fn new(seen: &'a Seen) -> Self {
        Edits::after(seen, Vec::new())
    }

    /// Behind other steps, whose directories are not made again.
    pub(super) fn after(seen: &'a Seen, steps: Vec<Step>) -> Self {
        Edits { seen, steps }
    }

    pub(super) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// The text file that is at a path now.
    fn file(&self, path: &Path) -> Option<&'a TextFile> {
        match self.seen.get(path) {
            Some(PathState::Text(file)) => Some(file),
            _ => None,
        }
    }

    /// A directory, with those above it that were looked at and are missing.
    pub(super) fn directory(&mut self, id: &str, why: &str, path: &Path) {
        let is_missing = |path: &&Path| self.seen.get(*path) == Some(&PathState::Absent);
        let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
        let mut missing: Vec<&Path> = missing.into_iter().rev().collect();
        missing.retain(|path| !self.is_made(path));
        let several = missing.len() > 1;
        for (number, path) in missing.into_iter().enumerate() {
            self.steps.push(Step {
                id: if several { format!("{id}-{}", number + 1) } else { id.into() },
                why: why.into(),
                action: Action::MakeDirectory(MakeDirectory { path: path.into() }),
            });
        }
    }

    fn is_made(&self, path: &Path) -> bool {
        let mut actions = self.steps.iter().map(|step| &step.action);
        actions.any(|action| matches!(action, Action::MakeDirectory(MakeDirectory { path: made }) if made == path))
    }

    /// A file with this text, whatever was there; with its directory where that is missing.
    pub(super) fn write(&mut self, id: &str, why: &str, path: &Path, text: String) {
        let mode = self.file(path).map_or(0o644, |was| was.mode);
        self.put(id, why, path, TextFile { text, mode });
    }

    /// The same for a program that can be run.
    pub(super) fn write_program(&mut self, id: &str, why: &str, path: &Path, text: String) {
        self.put(id, why, path, TextFile { text, mode: 0o755 });
    }

    fn put(&mut self, id: &str, why: &str, path: &Path, becomes: TextFile) {
        let was = self.file(path).cloned();
        if was.as_ref() == Some(&becomes) {
            return;
        }
        let directory = path.parent().unwrap_or(Path::new("/"));
        self.directory(&format!("{id}-directory"), "The file below needs it.", directory);
        self.steps.push(Step {
            id: id.into(),
            why: why.into(),
            action: Action::WriteFile(WriteFile { path: path.into(), was, becomes }),
        });
    }

    /// A target wants a unit of this root: what `systemctl enable` does.
    pub(super) fn enable(&mut self, id: &str, why: &str, unit: &str, target: &str) {
        let path = units::link(unit, target);
        let was = match self.seen.get(&path) {
            Some(PathState::Text(_) | PathState::Something) => return,
            Some(PathState::Dangling(target)) if *target == units::path(unit) => return,
            Some(PathState::Dangling(target)) => Some(target.clone()),
            _ => None,
        };
        self.directory(
            &format!("{id}-directory"),
            "The link below needs it.",
            &units::wants(target),
        );
        self.steps.push(Step {
            id: id.into(),
            why: why.into(),
            action: Action::SetLink(SetLink { path, was, becomes: Some(units::path(unit)) }),
        });
    }

    /// A systemd unit that nothing can start any more: its name in `/etc/systemd/system` points to `/dev/null`
    /// (systemctl(1), `mask`). An administrator's own unit of that name is made empty, which is the same.
    pub(super) fn mask(&mut self, id: &str, why: &str, unit: &str) {
        let path = Path::new(UNITS).join(unit);
        let own = self.file(&path);
        if own.is_some_and(|file| file.text.is_empty()) {
            return;
        }
        if own.is_some() {
            return self.write(id, why, &path, String::new());
        }
        let was = match self.seen.get(&path) {
            Some(PathState::Dangling(target)) => Some(target.clone()),
            _ => None,
        };
        self.steps.push(Step {
            id: id.into(),
            why: why.into(),
            action: Action::SetLink(SetLink { path, was, becomes: Some("/dev/null".into()) }),
        });
    }
}

/// The same steps on another root.
pub(super) fn on(volume: &Volume, steps: Vec<Step>) -> Vec<Step> {
    let wrapped = steps.into_iter().map(|step| Step {
        id: format!("{}-there", step.id),
        why: step.why,
        action: Action::On(On {
            volume: volume.clone(),
            action: Box::new(step.action),
            is_undone: false,
        }),
    });
    wrapped.collect()
}

/// A text with a line `key` `separator` `value`: in the place of the last line that assigns the key (comments
/// are none), else behind the others. Blanks around the separator do not matter for finding it.
pub(super) fn with_assignment(text: &str, key: &str, separator: &str, value: &str) -> String {
    let line = format!("{key}{separator}{value}");
    let mark = separator.trim();
    let assigns = |line: &str| {
        let rest = line.trim_start().strip_prefix(key);
        rest.is_some_and(|rest| {
            if mark.is_empty() {
                rest.starts_with(char::is_whitespace)
            } else {
                rest.trim_start().starts_with(mark)
            }
        })
    };
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let with_end = format!("{line}\n");
    let without_end = line.as_str();
    match lines.iter().rposition(|line| assigns(line)) {
        Some(place) => {
            lines[place] = if lines[place].ends_with('\n') { &with_end } else { without_end };
            lines.concat()
        }
        None => {
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            format!("{text}{gap}{with_end}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_change::plan::volume::FilesystemKind;

    #[test]
    fn an_assignment_is_replaced_where_it_counts_or_added() {
        for (text, becomes) in [
            ("", "SIZE=0\n"),
            ("SIZE=9", "SIZE=0"),
            ("#SIZE=1\n SIZE = 2\nSIZES=3\n", "#SIZE=1\nSIZE=0\nSIZES=3\n"),
            ("SIZE=1\nSIZE=2\nx=1", "SIZE=1\nSIZE=0\nx=1"),
            ("x=1", "x=1\nSIZE=0\n"),
        ] {
            assert_eq!(with_assignment(text, "SIZE", "=", "0"), becomes, "{text:?}");
        }
        assert_eq!(with_assignment("a 1\nab 1\n", "a", " ", "2"), "a 2\nab 1\n");
    }

    #[test]
    fn missing_directories_are_made_once_from_the_top() {
        let seen = Seen::from([
            ("/etc/a".into(), PathState::Absent),
            ("/etc/a/b".into(), PathState::Absent),
        ]);
        let mut edits = Edits::new(&seen);
        edits.write("one", "why", Path::new("/etc/a/b/one"), "1\n".into());
        edits.write("two", "why", Path::new("/etc/a/b/two"), "2\n".into());
        let titles: Vec<String> = edits
            .into_steps()
            .iter()
            .map(|step| format!("{}: {}", step.id, step.action.title()))
            .collect();
        assert_eq!(
            titles,
            [
                "one-directory-1: make the directory /etc/a",
                "one-directory-2: make the directory /etc/a/b",
                "one: make /etc/a/b/one",
                "two: make /etc/a/b/two",
            ]
        );
    }

    #[test]
    fn a_unit_is_masked_once_and_anothers_is_kept_for_undoing() {
        let path = Path::new(UNITS).join("some.service");
        let masked = |sight: PathState| {
            let seen = Seen::from([(path.clone(), sight)]);
            let mut edits = Edits::new(&seen);
            edits.mask("off", "why", "some.service");
            edits.into_steps().pop().map(|step| step.action)
        };
        assert_eq!(
            masked(PathState::Absent),
            Some(Action::SetLink(SetLink {
                path: path.clone(),
                was: None,
                becomes: Some("/dev/null".into()),
            }))
        );
        assert_eq!(masked(PathState::Text(TextFile::public(""))), None);
        let own = masked(PathState::Text(TextFile::public("[Unit]\n")));
        let Some(Action::WriteFile(WriteFile { was, becomes, .. })) = own else {
            panic!("{own:?}");
        };
        assert_eq!(was.map(|file| file.text), Some("[Unit]\n".into()));
        assert_eq!(becomes.text, "");
    }

    #[test]
    fn steps_can_be_done_on_another_root() {
        let volume = Volume {
            kind: FilesystemKind::Ext4,
            uuid: "u".into(),
            mount_options: String::new(),
            title: "the new root".into(),
        };
        let seen = Seen::new();
        let mut edits = Edits::new(&seen);
        edits.mask("off", "why", "some.service");
        let steps = on(&volume, edits.into_steps());
        assert_eq!(
            steps[0].action.title(),
            "on the new root: let /etc/systemd/system/some.service point to /dev/null"
        );
    }
}
