//! What is said of a copy within a change: how far it is, what it did, why it ended, what to do next.

use rubus_copy::receipt::CopyReceipt;
use rubus_copy::run::CopyError;
use rubus_host::files::copy_io::Reason;
use rubus_vocabulary::units::{bytes_iec, counted};

/// Who is told how far it is.
pub(super) type Told<'a> = &'a mut dyn FnMut(&rubus_copy::receipt::Progress);

/// What a copy is made on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Onto {
    /// A disk of this machine.
    Disk,
    /// A file that becomes an image.
    Image,
}

/// What is said of a disk that is not there any more, or answers with errors.
pub(super) const DISK_LOST: &str = "the disk fails or was pulled out: look at the kernel log, at the cable and at the supply, \
                                    and apply it again when that is mended, or with another disk";

/// Why a copy ended, with what to do next: a change that fails is put back, so nothing goes on where it was.
pub(super) fn in_a_change(error: CopyError, onto: Onto) -> String {
    let CopyError::Target { path, failure } = &error else {
        return error.to_string();
    };
    let advice = match failure.reason() {
        Reason::Device | Reason::ReadOnly if onto == Onto::Image => {
            "the new image could not be written: look whether its filesystem has room, and at the kernel log"
        }
        Reason::Full => if_full(onto),
        Reason::Device | Reason::ReadOnly => DISK_LOST,
        _ => return error.to_string(),
    };
    format!("{path}: {failure}; {advice}")
}

/// What to do when what is made is full.
pub(super) fn if_full(onto: Onto) -> &'static str {
    match onto {
        Onto::Image => {
            "the new root is full: choose a larger image with size=, or remove what the system does not need"
        }
        Onto::Disk => {
            "the new disk is full: take a larger one, or remove what the running system does not need, and apply it again"
        }
    }
}

pub(super) fn losses(receipt: &CopyReceipt) -> String {
    let first = receipt.lost.examples.first();
    let first = first.map(|lost| format!(" ({}: {})", lost.path, lost.what));
    format!(
        "{} cannot be copied{}; the disk may be damaged: look at the kernel log",
        counted(receipt.lost.count, "entry", "entries"),
        first.unwrap_or_default()
    )
}

pub(super) fn words(receipt: &CopyReceipt) -> String {
    let mut text = format!(
        "{}, {} copied",
        counted(receipt.entries.all(), "entry", "entries"),
        bytes_iec(receipt.copied_bytes)
    );
    for (count, what) in [
        (receipt.changed.count, "changed meanwhile"),
        (receipt.vanished.count, "vanished meanwhile"),
        (receipt.skipped.count, "left out"),
    ] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text
}
