//! How a command ends, and the exit status that says so.

/// How the program ends when nothing went wrong with the program itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything that was asked for was done.
    Fine,
    /// It was done, and the answer is no: a measurement was cut short or failed.
    AnswerIsNo,
    /// As another machine ended, whose words have been shown.
    Status(u8),
    /// A change failed in the middle and everything was put back.
    RolledBack,
    /// A change failed in the middle and could not be put back.
    RollBackFailed,
}

impl Exit {
    /// The status that the system is told.
    pub fn status(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::AnswerIsNo => 1,
            Exit::Status(status) => status,
            Exit::RolledBack => 4,
            Exit::RollBackFailed => 5,
        }
    }
}
