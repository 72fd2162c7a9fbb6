//! Claiming a disk of a plan, or a part of it, for overwriting: the guard's rules, and what the user has
//! said about this disk.

use std::path::{Path, PathBuf};

use crate::plan::Plan;
use crate::plan::volume::DiskIdentity;
use rubus_host::blockdev::ClaimedDevice;
use rubus_host::{Files, Hands};

use crate::apply::{GivenAway, Site, StepError};
use crate::guard::{self, Confirmation, Consent};

use super::copied::DISK_LOST;
use super::{consent, failed, locate};

/// Claims `node`, which is `disk` or stands on it, for overwriting.
///
/// The guard asks for consent when there is something on it. Consent is there when the user gave exactly this disk
/// away, or when everything on it is of this change's own making ([`is_given_away`]).
///
/// # Errors
/// The guard's refusal, with its reasons and remedies; that the confirmation does not cover what is there now.
pub(super) fn claim(
    tried: &str,
    disk: &DiskIdentity,
    node: &Path,
    site: &Site<'_>,
    hands: &mut dyn Hands,
) -> Result<ClaimedDevice, StepError> {
    let refusal = match guard::claim(hands.files(), node, None) {
        Ok(claimed) => return Ok(claimed),
        Err(refusal) => refusal,
    };
    let Some(expected) = refusal.expected_confirmation().cloned() else {
        return Err(failed(tried, refusal));
    };
    // Nobody else changes what is on it while this has it claimed, and nothing is written before it is looked at.
    let words = Consent::new(&expected.text);
    let claimed = guard::claim(hands.files(), node, Some(&words));
    let claimed = claimed.map_err(|refusal| failed(tried, refusal))?;
    let is_given = is_given_away(site.plan, site.consents, disk, hands.files());
    match is_given.map_err(|why| failed(tried, why))? {
        true => Ok(claimed),
        false => Err(failed(tried, ask_again(disk, &expected))),
    }
}

/// A device that was claimed, and whose claim was given up for programs that claim it themselves and go by its name.
/// Kernels before 5.15 do not number their disks; there nothing is noticed.
#[derive(Debug)]
pub(super) struct LetGo {
    node: PathBuf,
    sequence: Option<u64>,
}

impl LetGo {
    /// Gives up the claim of what is at `node`.
    pub(super) fn of(device: ClaimedDevice, node: &Path) -> Self {
        LetGo {
            node: node.to_path_buf(),
            sequence: device.geometry().disk_sequence,
        }
    }

    /// The name by which the programs go.
    pub(super) fn node(&self) -> &Path {
        &self.node
    }

    /// Runs one program that writes to the device: only while the name means the disk that was claimed, and that is looked
    /// at afterwards too.
    ///
    /// # Errors
    /// As the program, and that another disk has the name.
    pub(super) fn around<T>(
        &self,
        tried: &str,
        act: impl FnOnce() -> Result<T, StepError>,
    ) -> Result<T, StepError> {
        around_all(std::slice::from_ref(self), tried, act)
    }

    fn check(&self, tried: &str) -> Result<(), StepError> {
        let now = sequence_of(&self.node);
        same_disk(self.sequence, now, &self.node).map_err(|why| failed(tried, why))
    }
}

/// As [`LetGo::around`], for a program that writes to several devices.
pub(super) fn around_all<T>(
    devices: &[LetGo],
    tried: &str,
    act: impl FnOnce() -> Result<T, StepError>,
) -> Result<T, StepError> {
    let check = || devices.iter().try_for_each(|device| device.check(tried));
    check()?;
    let done = act().map_err(|error| match check() {
        Ok(()) => error,
        Err(_) => lost_meanwhile(error),
    })?;
    check()?;
    Ok(done)
}

/// Why a program failed whose disk is not there any more: that is what has to be known first.
fn lost_meanwhile(error: StepError) -> StepError {
    match error {
        StepError::Work { tried, reason } => StepError::Work {
            tried,
            reason: format!("{reason}; {DISK_LOST}"),
        },
        other => other,
    }
}

/// The running number of the disk that a node is on now. Each disk that appears gets a new one.
fn sequence_of(node: &Path) -> Result<Option<u64>, String> {
    let device = guard::read_only(node).map_err(|refusal| refusal.to_string())?;
    Ok(device.geometry().disk_sequence)
}

/// Whether a name still means the disk that was claimed: between the claim and the programs that make a filesystem a disk may be
/// pulled out, and another may get its name. Kernels before 5.15 do not number their disks.
fn same_disk(
    claimed: Option<u64>,
    now: Result<Option<u64>, String>,
    node: &Path,
) -> Result<(), String> {
    match now? == claimed {
        true => Ok(()),
        false => Err(format!(
            "{} became another disk meanwhile; look at the cable, and at what is on the disk that has this name now",
            node.display()
        )),
    }
}

/// Whether the user has given away what is on a disk of a plan now, or it is of the plan's own making.
///
/// # Errors
/// A text for people when the disk is not there or cannot be read.
pub fn is_given_away(
    plan: &Plan,
    consents: &[GivenAway],
    disk: &DiskIdentity,
    files: &dyn Files,
) -> Result<bool, String> {
    let now = locate::disk_now(files, disk)?;
    let boot = locate::boot_id(files);
    let evidence = consent::evidence(plan, disk, &now, boot.as_deref())?;
    let given = consents.iter().rfind(|given| given.disk == disk.path);
    Ok(consent::covers(given, disk, &evidence))
}

fn ask_again(disk: &DiskIdentity, expected: &Confirmation) -> String {
    format!(
        "{} holds data that was not confirmed to be lost: it may be another disk, or was used since; to give it away, \
         apply the recipe again and confirm the loss with {} ({})",
        disk.path.display(),
        expected.kind.phrase(),
        expected.text
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The programs are run by name, and only on the disk that was claimed.
    #[test]
    fn no_program_is_run_on_a_name_that_is_another_disk_or_none() {
        let gone = LetGo {
            node: "/nonexistent/sda1".into(),
            sequence: Some(7),
        };
        let mut is_run = false;
        let done = gone.around("make the array", || {
            is_run = true;
            Ok(())
        });
        assert!(done.is_err() && !is_run, "{done:?}");
    }

    #[test]
    fn a_program_that_fails_on_a_disk_that_is_gone_says_so() {
        let why = lost_meanwhile(failed("run mkfs.ext4", "status 1")).to_string();
        let start = "cannot run mkfs.ext4: status 1; the disk fails or was pulled out";
        assert!(why.starts_with(start), "{why}");
    }

    #[test]
    fn a_name_that_went_to_another_disk_is_not_formatted() {
        let node = Path::new("/dev/sda1");
        assert_eq!(same_disk(Some(7), Ok(Some(7)), node), Ok(()));
        assert_eq!(same_disk(None, Ok(None), node), Ok(()), "an old kernel");
        let why = same_disk(Some(7), Ok(Some(9)), node).unwrap_err();
        assert!(why.starts_with("/dev/sda1 became another disk"), "{why}");
        assert!(same_disk(Some(7), Ok(None), node).is_err());
        assert_eq!(
            same_disk(Some(7), Err("gone".into()), node),
            Err("gone".into())
        );
    }
}
