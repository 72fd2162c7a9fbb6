//! Copying the running root to another filesystem.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::plan::journal::Receipt;
use crate::plan::volume::Volume;
use crate::plan::{Action, Pass, Plan};
use rubus_copy::receipt::{CopyReceipt, Stage};
use rubus_host::Hands;
use rubus_host::hands::below;
use rubus_vocabulary::units::bytes_iec;

use crate::apply::{Progress, Site, StepError};
use rubus_copy::run::{CopyError, CopyOptions, Paths, copy};

use super::copied::{Onto, Told, in_a_change, losses, words};
use super::last_pass::LastPass;
use super::{LiveStepRunner, failed, receipt};

/// What is left out of a copy.
pub(super) struct LeaveOut<'a> {
    /// Only the directory itself is copied.
    pub contents_of: &'a [PathBuf],
    /// Not at all.
    pub whole: &'a [PathBuf],
}

impl LiveStepRunner {
    pub(super) fn copy_tree(
        &mut self,
        from: &Path,
        to: &Volume,
        leave_out: &LeaveOut<'_>,
        pass: Pass,
        site: &mut Site<'_>,
        hands: &dyn Hands,
    ) -> Result<Receipt, StepError> {
        let tried = format!("copy {} to {}", from.display(), to.title);
        let source = match &self.image {
            // Seen from a second place, the root has no mounts: what lies hidden below them is copied, they are not.
            None => self.bind_privately(from, "source", site.change)?,
            Some(image) => below(&image.root, from),
        };
        let target = self.mount_volume(to, site.change)?;
        let excludes =
            excludes(from, leave_out, site, to, pass).map_err(|why| failed(&tried, why))?;
        let mut tell = |progress: &_| tell(site, progress);
        if pass == Pass::First {
            let copied = self.first_pass(&source, &target, excludes, &mut tell);
            let copied = copied.map_err(|error| failed(&tried, error))?;
            if !comes_again(site.plan, to) {
                self.clear_manifest(&target, hands)?;
            }
            rubus_host::mounting::sync_filesystem(&target)?;
            let planned = "everything, but what changes meanwhile";
            return Ok(receipt(planned, words(&copied)));
        }
        let last = LastPass {
            source: &source,
            target: &target,
            excludes,
            onto: self.onto(),
            stop: Arc::clone(&self.stop),
        };
        let live = last.go(&mut tell).map_err(|error| failed(&tried, error))?;
        rubus_host::mounting::sync_filesystem(&target)?;
        Ok(receipt("everything", live))
    }

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
        match done.has_losses() {
            true => Err(losses(&done)),
            false => Ok(done),
        }
    }

    pub(super) fn onto(&self) -> Onto {
        match self.image {
            None => Onto::Disk,
            Some(_) => Onto::Image,
        }
    }
}

/// Whether a later step of a plan copies onto a filesystem once more, and needs to know what was done before.
fn comes_again(plan: &Plan, onto: &Volume) -> bool {
    plan.steps.iter().any(|step| match &step.action {
        Action::CopyTree { to, pass, .. } => *pass != Pass::First && to.uuid == onto.uuid,
        _ => false,
    })
}

/// What is left out, by paths from the top of what is copied.
fn excludes(
    from: &Path,
    leave_out: &LeaveOut<'_>,
    site: &Site<'_>,
    to: &Volume,
    pass: Pass,
) -> Result<Paths, String> {
    let inside = leave_out.contents_of.iter().map(|path| path.join("*"));
    let mut paths: Vec<_> = inside.chain(leave_out.whole.iter().cloned()).collect();
    // The journal of this very change moves on while it is copied, and is put there by a step of its own.
    paths.push(site.directory.to_path_buf());
    let below = paths.iter().filter_map(|path| path.strip_prefix(from).ok());
    let mut paths: Vec<PathBuf> = below.map(|path| Path::new("/").join(path)).collect();
    if pass == Pass::Again {
        paths.extend(changed_there(site.plan, to));
    }
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    Paths::new(&paths)
}

/// What the plan itself changes on the copy: that is not to become as it is on the source again.
fn changed_there<'p>(plan: &'p Plan, to: &'p Volume) -> impl Iterator<Item = PathBuf> + 'p {
    plan.steps.iter().filter_map(move |step| match &step.action {
        Action::On { volume, action, .. } if volume.uuid == to.uuid => action.path().cloned(),
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
    use crate::plan::volume::FilesystemKind;

    use super::*;

    #[test]
    fn notes_for_another_pass_are_kept_only_where_one_comes() {
        let volume = |uuid: &str| Volume {
            kind: FilesystemKind::Btrfs,
            uuid: uuid.into(),
            mount_options: String::new(),
            title: uuid.into(),
        };
        let copy = |uuid: &str, pass| Action::CopyTree {
            from: "/".into(),
            to: volume(uuid),
            without_contents_of: Vec::new(),
            without: Vec::new(),
            pass,
        };
        let mut plan = small_plan();
        plan.steps.truncate(3);
        plan.steps[0].action = copy("root", Pass::First);
        plan.steps[1].action = copy("boot", Pass::First);
        plan.steps[2].action = copy("root", Pass::Again);
        assert!(comes_again(&plan, &volume("root")));
        assert!(!comes_again(&plan, &volume("boot")));
    }
}
