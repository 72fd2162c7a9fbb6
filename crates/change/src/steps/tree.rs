//! Copying the running root to another filesystem.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::volume::{DiskIdentity, Volume};
use rubus_copy::receipt::{CopyReceipt, Stage};
use rubus_host::files::hands::below;
use rubus_host::{Files, Hands};
use rubus_vocabulary::units::bytes_iec;

use rubus_copy::run::{CopyError, CopyOptions, Paths, copy};

use super::commands::{Command, Names};
use super::copied::{Onto, Told, in_a_change, losses, words};
use super::last_pass::LastPass;
use super::{
    Action, Behaviour, Detail, LiveStepRunner, MachineStep, Progress, Receipt, Site, Step,
    StepError, Touches, Trace, TraceSite, failed, left, receipt,
};

/// Which time a tree is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// The first time, while the machine is at work: files may change and vanish meanwhile.
    First,
    /// Once more, what has changed since, with nothing let pass; then source and copy are compared.
    Again,
}

/// The tree of the running root is copied. Undoing leaves the copy as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct CopyTree {
    /// The root that is copied, without what is mounted below it.
    pub from: PathBuf,
    /// The filesystem that becomes the copy.
    pub to: Volume,
    /// Absolute paths in the source whose contents are left out; the directory itself is copied.
    pub without_contents_of: Vec<PathBuf>,
    /// Absolute paths in the source that are left out.
    pub without: Vec<PathBuf>,
    /// Which time this is.
    pub pass: Pass,
}

impl Behaviour for CopyTree {
    fn title(&self) -> String {
        match self.pass {
            Pass::First => format!("copy {} to {}", self.from.display(), self.to.title),
            Pass::Again => format!(
                "copy again what has changed in {} meanwhile, and compare",
                self.from.display()
            ),
        }
    }

    fn proof_title(&self) -> String {
        match self.pass {
            Pass::First => "every file is there, or named as changed or gone meanwhile".into(),
            Pass::Again => "source and copy are compared".into(),
        }
    }

    fn undo_title(&self) -> String {
        format!("not needed: the copy stays on {}", self.to.title)
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        vec![Detail::LeftEmpty(&self.without_contents_of), Detail::LeftOut(&self.without)]
    }

    fn touches(&self) -> Touches<'_> {
        Touches::default()
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, _: &dyn Files) -> Option<String> {
        None
    }

    fn shows_completion(&self) -> bool {
        false
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, _: &dyn Files) -> Trace {
        Trace::Unseen
    }
}

impl MachineStep for CopyTree {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let CopyTree { from, to, pass, .. } = self;
        let tried = format!("copy {} to {}", from.display(), to.title);
        let source = match &runner.image {
            // Seen from a second place, the root has no mounts: what lies hidden below them is copied, they are not.
            None => runner.bind_privately(from, "source", site.change)?,
            Some(image) => below(&image.root, from),
        };
        let target = runner.mount_volume(to, site.change)?;
        let excludes = self.excludes(site).map_err(|why| failed(&tried, why))?;
        let mut tell = |progress: &_| tell(site, progress);
        if *pass == Pass::First {
            let copied = runner.first_pass(&source, &target, excludes, &mut tell);
            let copied = copied.map_err(|error| failed(&tried, error))?;
            if !comes_again(site.steps, to) {
                runner.clear_manifest(&target, hands)?;
            }
            rubus_host::files::mounting::sync_filesystem(&target)?;
            let planned = "everything, but what changes meanwhile";
            return Ok(receipt(planned, words(&copied)));
        }
        let last = LastPass {
            source: &source,
            target: &target,
            excludes,
            onto: runner.onto(),
            stop: Arc::clone(&runner.stop),
        };
        let live = last.go(&mut tell).map_err(|error| failed(&tried, error))?;
        rubus_host::files::mounting::sync_filesystem(&target)?;
        Ok(receipt("everything", live))
    }

    fn undo(
        &self,
        _: &mut LiveStepRunner,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        Ok(left())
    }
}

impl CopyTree {
    /// What is left out, by paths from the top of what is copied.
    fn excludes(&self, site: &Site<'_>) -> Result<Paths, String> {
        let inside = self.without_contents_of.iter().map(|path| path.join("*"));
        let mut paths: Vec<_> = inside.chain(self.without.iter().cloned()).collect();
        // The journal of this very change moves on while it is copied, and is put there by a step of its own.
        paths.push(site.directory.to_path_buf());
        let below = paths.iter().filter_map(|path| path.strip_prefix(&self.from).ok());
        let mut paths: Vec<PathBuf> = below.map(|path| Path::new("/").join(path)).collect();
        if self.pass == Pass::Again {
            paths.extend(changed_there(site.steps, &self.to));
        }
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        Paths::new(&paths)
    }
}

impl LiveStepRunner {
    /// Everything, while the machine is at work. What was copied by an interrupted try is not copied again.
    fn first_pass(
        &self,
        source: &Path,
        target: &Path,
        excludes: Paths,
        tell: Told<'_>,
    ) -> Result<CopyReceipt, String> {
        let mut options = CopyOptions {
            excludes,
            is_whole: true,
            stop: Some(Arc::clone(&self.stop)),
            ..CopyOptions::default()
        };
        let mut done = copy(source, target, &options, &mut |progress| tell(&progress));
        if matches!(done, Err(CopyError::Refused(_))) {
            // The power went after it was finished and before that was written down.
            options.again = true;
            done = copy(source, target, &options, &mut |progress| tell(&progress));
        }
        let done = done.map_err(|error| in_a_change(error, self.onto()))?;
        if done.has_losses() { Err(losses(&done)) } else { Ok(done) }
    }

    pub(super) fn onto(&self) -> Onto {
        match self.image {
            None => Onto::Disk,
            Some(_) => Onto::Image,
        }
    }
}

/// Whether a later step of a plan copies onto a filesystem once more, and needs to know what was done before.
fn comes_again(steps: &[Step], onto: &Volume) -> bool {
    steps.iter().any(|step| match &step.action {
        Action::CopyTree(copy) => copy.pass != Pass::First && copy.to.uuid == onto.uuid,
        _ => false,
    })
}

/// What the plan itself changes on the copy: that is not to become as it is on the source again.
fn changed_there<'p>(steps: &'p [Step], to: &'p Volume) -> impl Iterator<Item = PathBuf> + 'p {
    steps.iter().filter_map(move |step| match &step.action {
        Action::On(on) if on.volume.uuid == to.uuid => on.action.path().cloned(),
        _ => None,
    })
}

fn tell(site: &mut Site<'_>, progress: &rubus_copy::receipt::Progress) {
    let verb = match progress.stage {
        Stage::Copying => "copied",
        Stage::Settling => "waiting until the disk has written",
        Stage::Comparing => "compared",
    };
    let of = |expected: Option<u64>| expected.map(|all| format!(" of about {all}"));
    let share = progress
        .bytes_expected
        .filter(|expected| *expected > 0)
        .map(|expected| (progress.bytes as f64 / expected as f64).min(1.0));
    (site.tell)(Progress {
        words: format!(
            "{verb} {}{} entries, {}",
            progress.entries,
            of(progress.entries_expected).unwrap_or_default(),
            bytes_iec(progress.bytes)
        ),
        share,
        left_s: progress.left_s,
    });
}

#[cfg(test)]
mod tests {
    use crate::fixture::plans::small_plan;
    use crate::volume::FilesystemKind;

    use super::*;

    #[test]
    fn notes_for_another_pass_are_kept_only_where_one_comes() {
        let volume = |uuid: &str| Volume {
            kind: FilesystemKind::Btrfs,
            uuid: uuid.into(),
            mount_options: String::new(),
            title: uuid.into(),
        };
        let copy = |uuid: &str, pass| {
            Action::CopyTree(CopyTree {
                from: "/".into(),
                to: volume(uuid),
                without_contents_of: Vec::new(),
                without: Vec::new(),
                pass,
            })
        };
        let mut plan = small_plan();
        plan.steps.truncate(3);
        plan.steps[0].action = copy("root", Pass::First);
        plan.steps[1].action = copy("boot", Pass::First);
        plan.steps[2].action = copy("root", Pass::Again);
        assert!(comes_again(&plan.steps, &volume("root")));
        assert!(!comes_again(&plan.steps, &volume("boot")));
    }
}
