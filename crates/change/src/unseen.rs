//! Why something could not be looked at.

use std::io;

use rubus_host::ReadError;

/// Why something could not be looked at, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unseen {
    /// This user may not; root may.
    #[error("{0}")]
    Denied(String),
    /// The capture that stands for the machine does not hold it, which says nothing about the machine.
    #[error("{0}")]
    NotCaptured(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Unseen {
    /// Whether root could look at it.
    pub fn is_denied(&self) -> bool {
        matches!(self, Unseen::Denied(_))
    }

    /// Whether the machine itself could be asked.
    pub fn is_not_captured(&self) -> bool {
        matches!(self, Unseen::NotCaptured(_))
    }
}

impl From<&ReadError> for Unseen {
    fn from(error: &ReadError) -> Self {
        match error {
            ReadError::Denied => Unseen::Denied(error.to_string()),
            ReadError::NotCaptured => Unseen::NotCaptured(error.to_string()),
            ReadError::Absent | ReadError::Failed { .. } | ReadError::Other(_) => {
                Unseen::Other(error.to_string())
            }
        }
    }
}

impl From<&io::Error> for Unseen {
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Unseen::Denied(error.to_string()),
            _ => Unseen::Other(error.to_string()),
        }
    }
}

impl From<String> for Unseen {
    fn from(why: String) -> Self {
        Unseen::Other(why)
    }
}
