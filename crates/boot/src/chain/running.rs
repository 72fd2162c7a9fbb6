//! What the running system says of the start that led to it.
//!
//! A start that is said to stop, and that led to the system which runs, is not understood; a file that changed since then is
//! about the next start.

use super::ChainFacts;
use super::width::is_release_of;
use crate::cmdline_txt::CmdlineTxt;
use crate::config_txt::BootPath;

/// Whether the running kernel was given this way's command line: firmware puts words of its own before it.
pub(super) fn has_this_line(facts: &ChainFacts, path: &BootPath) -> bool {
    let given = facts.running.as_ref().and_then(|running| running.command_line.as_deref());
    let (Some(given), Some(text)) = (given, facts.partition.text(&path.cmdline)) else {
        return false;
    };
    let given: Vec<&str> = given.split_ascii_whitespace().collect();
    let line = CmdlineTxt::parse(text).line().to_string();
    let mut words = line.split_ascii_whitespace().peekable();
    words.peek().is_some() && words.all(|word| given.contains(&word))
}

/// Whether a file of the boot partition is the kernel that runs, by what it holds or else by its name.
pub(super) fn is_this_kernel(facts: &ChainFacts, file: &str) -> bool {
    let release = facts.running.as_ref().and_then(|running| running.release.as_deref());
    let Some(release) = release else { return false };
    match facts.images.kernels.get(file).and_then(|kernel| kernel.release.as_deref()) {
        Some(own) => own == release,
        None => is_release_of(file, release),
    }
}

/// Whether the running kernel got to its root in this way without an initial RAM filesystem, as far as is known.
pub(super) fn went_alone(facts: &ChainFacts, path: &BootPath) -> bool {
    let had = facts.running.as_ref().and_then(|running| running.had_initramfs);
    had != Some(true) && has_this_line(facts, path)
}

/// Whether the board started from this medium by the firmware's own word.
pub(super) fn is_from_here(facts: &ChainFacts) -> bool {
    facts.running.is_some() && facts.bootloader.is_some_and(|told| told.boot_mode.is_some())
}
