//! An error that means "refused, because data could be lost": the program ends with a status of its own for it.

use std::error::Error;
use std::fmt;

/// Why nothing was touched, and what to do.
#[derive(Debug)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Error for Refused {}
