//! Why a copy ended early, in words that say what to do.

use rubus_nbd::client::{ClientError, lost};

/// Why a copy ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// Something failed: what, where, why, and what to do.
    #[error("{0}")]
    Trouble(String),
    /// The disk of the source does not give some bytes: which, and why.
    #[error("{0}")]
    Unreadable(String),
    /// What was written may be lost: nothing that was written before counts as done from here on.
    #[error("{0}")]
    NotDurable(String),
    /// It was asked to end.
    #[error("it was interrupted")]
    Interrupted,
}

/// A connection that was lost, and what was tried on it.
pub(super) fn silent(doing: &str, name: &str, error: &ClientError) -> CopyError {
    let advice = match error {
        ClientError::Silent(_) => ", or wait longer with --patience",
        _ => "",
    };
    CopyError::Trouble(format!("{doing} {name}: {}{advice}", lost(error)))
}

/// Whether a read failed because the disk does not give these bytes: as the kernel says it of a sector that cannot be
/// read, of one whose checksum is wrong, and of a disk that failed the request.
pub(super) fn is_of_the_disk(error: &std::io::Error) -> bool {
    const EIO: i32 = 5;
    const ENODATA: i32 = 61;
    const EILSEQ: i32 = 84;
    const EREMOTEIO: i32 = 121;
    matches!(error.raw_os_error(), Some(EIO | ENODATA | EILSEQ | EREMOTEIO))
}

pub(super) fn not_read(name: &str, at: u64, bytes: u64, error: &std::io::Error) -> CopyError {
    let advice = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "; it has become shorter while it was copied",
        _ => "; look at the kernel's log (dmesg) and at the disk",
    };
    CopyError::Trouble(format!(
        "reading {bytes} bytes at byte {at} of {name} failed: {error}{advice}"
    ))
}

pub(super) fn not_written(
    name: &str,
    doing: &str,
    at: u64,
    bytes: u64,
    error: &std::io::Error,
) -> CopyError {
    let advice = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            "; make room there, then give the same command again: it goes on"
        }
        std::io::ErrorKind::FileTooLarge => {
            "; its filesystem or a limit (ulimit -f) does not allow so large a file"
        }
        _ => "; look at the kernel's log (dmesg) and at the disk",
    };
    CopyError::Trouble(format!(
        "{doing} {bytes} bytes at byte {at} of {name} failed: {error}{advice}"
    ))
}
