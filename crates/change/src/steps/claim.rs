//! Claiming a disk of a plan, or a part of it, for overwriting: the guard's rules, and what the user has
//! said about this disk.

use std::path::Path;

use crate::volume::DiskIdentity;
use rubus_host::Hands;
use rubus_host::block::blockdev::ClaimedDevice;

use crate::guard::{self, Confirmation, Consent, Released};

use super::consent::is_given_away;
use super::copied::DISK_LOST;
use super::{Site, StepError, failed};

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
    // No other program changes it during the claim, and nothing is written before it has been looked at.
    let words = Consent::new(&expected.text);
    let claimed = guard::claim(hands.files(), node, Some(&words));
    let claimed = claimed.map_err(|refusal| failed(tried, refusal))?;
    let is_given = is_given_away(site.steps, site.consents, disk, hands.files());
    if is_given.map_err(|why| failed(tried, why))? {
        Ok(claimed)
    } else {
        Err(failed(tried, ask_again(disk, &expected)))
    }
}

/// Runs one program that writes to devices that were claimed, as [`guard::while_the_same`] does.
///
/// # Errors
/// As the program, and that another disk has the name of one.
pub(super) fn around<T>(
    devices: &[Released],
    tried: &str,
    act: impl FnOnce() -> Result<T, StepError>,
) -> Result<T, StepError> {
    guard::while_the_same(
        devices,
        |why| failed(tried, why),
        || {
            act().map_err(
                |error| if guard::are_the_same(devices) { error } else { lost_meanwhile(error) },
            )
        },
    )
}

/// Why a program failed whose disk is not there any more: that is what has to be known first.
fn lost_meanwhile(error: StepError) -> StepError {
    match error {
        StepError::Work { tried, reason } => {
            StepError::Work { tried, reason: format!("{reason}; {DISK_LOST}") }
        }
        other => other,
    }
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

    #[test]
    fn a_program_that_fails_on_a_disk_that_is_gone_says_so() {
        let why = lost_meanwhile(failed("run mkfs.ext4", "status 1")).to_string();
        let start = "cannot run mkfs.ext4: status 1; the disk fails or was pulled out";
        assert!(why.starts_with(start), "{why}");
    }
}
