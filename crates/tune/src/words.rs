//! What is told about settings that were restored, or not.

use crate::live::{Fate, Restored};

/// A sentence for each setting of which there is something to tell. That one was restored is no news.
pub fn fates(restored: &[Restored]) -> Vec<String> {
    restored.iter().filter(|one| one.fate != Fate::Restored).map(fate).collect()
}

/// What became of one setting.
pub fn fate(restored: &Restored) -> String {
    let (path, was) = (restored.path.display(), &restored.was);
    match &restored.fate {
        Fate::Restored => format!("{path} is {was} again"),
        Fate::Foreign(found) => {
            format!(
                "{path} was changed to {found} by another program meanwhile, and stays; before the trial it was {was}"
            )
        }
        Fate::Gone => format!("{path} is gone with its disk; nothing is left to restore there"),
        Fate::OtherBoot => {
            format!("{path} was forgotten by the restart since; nothing is left to restore there")
        }
        Fate::Failed(why) => format!(
            "cannot restore {path} to {was}: {why}; try again with `sudo rubus tune --restore`"
        ),
    }
}
