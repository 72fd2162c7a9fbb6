//! Claiming a disk of a plan, or a part of it, for overwriting: the guard's rules, and what the user has
//! said about this disk.

use std::path::Path;

use rubus_core::plan::volume::DiskIdentity;
use rubus_host::Hands;
use rubus_host::blockdev::ClaimedDevice;

use crate::change::{Site, StepError};
use crate::guard::{self, Consent};

use super::{failed, keep_note, note};

/// Claims `node`, which is `disk` or stands on it, for overwriting.
///
/// The guard asks for consent when there is something on it. Consent is there when the user gave exactly this disk
/// away, or when an earlier try of this change was let through: what is on the disk since then is of its own making.
///
/// # Errors
/// The guard's refusal, with its reasons and remedies.
pub(super) fn claim(
    tried: &str,
    disk: &DiskIdentity,
    node: &Path,
    site: &Site<'_>,
    hands: &mut dyn Hands,
) -> Result<ClaimedDevice, StepError> {
    let mark = mark_of(disk);
    let typed = site.consents.iter().find(|(path, _)| *path == disk.path);
    let was_given_away = typed.is_some_and(|(_, words)| *words == disk.confirmation);
    let is_ours = was_given_away || note(site, &mark, hands).is_some();
    let claimed = match guard::claim(hands.files(), node, None) {
        Err(refusal) if is_ours => match refusal.expected_confirmation() {
            Some(expected) => {
                let consent = Consent::new(&expected.text);
                guard::claim(hands.files(), node, Some(&consent))
            }
            None => Err(refusal),
        },
        answer => answer,
    };
    let claimed = claimed.map_err(|refusal| failed(tried, refusal))?;
    keep_note(site, &mark, "let through by the guard", hands)?;
    Ok(claimed)
}

/// Name of the note that this disk was let through.
fn mark_of(disk: &DiskIdentity) -> String {
    let words = format!("{}-{}", disk.confirmation, disk.size_bytes);
    let plain = |c: char| match c.is_ascii_alphanumeric() {
        true => c,
        false => '_',
    };
    format!("taken-{}", words.chars().map(plain).collect::<String>())
}
