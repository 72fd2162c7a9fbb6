//! The exit status: 0 fine, 1 the answer is no, 2 usage or machine error, 3 refused by the guard.
//! (4, applied in part and rolled back, and 5, roll-back failed, belong to changes.)

use std::process::ExitCode;

/// How the program ends when nothing went wrong with the program itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything that was asked for was done.
    Fine,
    /// It was done, and the answer is no: a measurement was cut short or failed.
    AnswerIsNo,
}

impl Exit {
    /// As the system wants it.
    pub fn code(self) -> ExitCode {
        match self {
            Exit::Fine => ExitCode::from(0),
            Exit::AnswerIsNo => ExitCode::from(1),
        }
    }
}

/// An error that means "refused, because data could be lost".
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Prints a usage error, help or version as clap does, and gives its status.
pub fn of_usage(error: &clap::Error) -> ExitCode {
    // Printing can only fail when nobody reads; there is nobody left to tell.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}

/// Prints an error with its causes and gives its status.
pub fn of_error(error: &anyhow::Error) -> ExitCode {
    if let Some(refused) = error.downcast_ref::<Refused>() {
        eprintln!("rubus: refused: {refused}");
        return ExitCode::from(3);
    }
    eprintln!("rubus: {error:#}");
    ExitCode::from(2)
}
