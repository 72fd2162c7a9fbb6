//! Files that a step keeps in the directory of its change: that it has begun something that must be known after a power cut.

use rubus_host::Hands;
use rubus_host::files::hands::replace;

use super::{Site, StepError};

/// Keeps one. It is durable when this returns.
pub(super) fn keep_note(
    site: &Site<'_>,
    name: &str,
    text: &str,
    hands: &mut dyn Hands,
) -> Result<(), StepError> {
    let path = site.directory.join(name);
    if hands.files().text(&path).as_deref() == Ok(text) {
        return Ok(());
    }
    let fresh = site.directory.join(format!("{name}.new"));
    replace(&path, &fresh, text.as_bytes(), 0o600, hands)?;
    Ok(())
}

/// What such a file says; nothing where there is none.
pub(super) fn note(site: &Site<'_>, name: &str, hands: &dyn Hands) -> Option<String> {
    hands.files().text(&site.directory.join(name)).ok()
}
