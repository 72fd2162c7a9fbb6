//! Why a call of the copy's I/O failed, sorted by what can be done about it.

use rustix::io::Errno;

/// A failed system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {tried}: {}", std::io::Error::from(*errno))]
pub struct Failure {
    /// As a verb ("read", "set the owner").
    pub tried: &'static str,
    pub(super) errno: Errno,
}

/// What kind of trouble a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is nothing of that name (any more).
    Gone,
    /// Something of that name exists.
    Exists,
    /// It is not what it was taken for: a directory, a link.
    OtherKind,
    /// The filesystem, or the owner's share of it, is full.
    Full,
    /// The device or the filesystem on it fails.
    Device,
    /// The filesystem is mounted read-only.
    ReadOnly,
    /// This user may not.
    Denied,
    /// The filesystem cannot do that, or not with these values.
    Unsupported,
    /// It belongs to another filesystem.
    Elsewhere,
    /// Too many files are open.
    TooManyOpen,
    /// Any other error.
    Other,
}

impl Failure {
    pub(super) fn of(tried: &'static str) -> impl Fn(Errno) -> Failure {
        move |errno| Failure { tried, errno }
    }

    /// What kind of trouble it is.
    pub fn reason(&self) -> Reason {
        match self.errno {
            // The last is what /proc says of a process that ended.
            Errno::NOENT | Errno::STALE | Errno::SRCH => Reason::Gone,
            Errno::EXIST | Errno::NOTEMPTY => Reason::Exists,
            Errno::NOTDIR | Errno::ISDIR | Errno::LOOP => Reason::OtherKind,
            Errno::NOSPC | Errno::DQUOT => Reason::Full,
            Errno::IO | Errno::NODEV | Errno::NXIO | Errno::NOMEDIUM | Errno::TIMEDOUT => {
                Reason::Device
            }
            // "Structure needs cleaning" and "wrong checksum" of ext4 and xfs.
            Errno::UCLEAN | Errno::BADMSG | Errno::REMOTEIO => Reason::Device,
            Errno::ROFS => Reason::ReadOnly,
            Errno::PERM | Errno::ACCESS => Reason::Denied,
            Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::NOSYS => Reason::Unsupported,
            Errno::NAMETOOLONG | Errno::FBIG | Errno::RANGE | Errno::TOOBIG | Errno::MLINK => {
                Reason::Unsupported
            }
            Errno::XDEV => Reason::Elsewhere,
            Errno::MFILE | Errno::NFILE => Reason::TooManyOpen,
            _ => Reason::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_was_tried_and_why_it_failed() {
        let failure = Failure::of("write")(Errno::NOSPC);
        assert_eq!(failure.to_string(), "cannot write: No space left on device (os error 28)");
        assert_eq!(failure.reason(), Reason::Full);
        assert_eq!(Failure::of("read")(Errno::IO).reason(), Reason::Device);
    }
}
