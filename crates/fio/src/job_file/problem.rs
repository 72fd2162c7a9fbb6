//! What is wrong with a job file, and where.

use std::fmt;
use std::sync::Arc;

/// A line of a job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The file, as the caller named it.
    pub file: Arc<str>,
    /// Its line, counted from 1; 0 where the file as a whole is meant.
    pub line: u32,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// One thing that keeps a job file from being run as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// File and line of the problem.
    pub at: At,
    pub section: Option<String>,
    /// Concerning which option.
    pub option: Option<String>,
    /// What is wrong, or what the option would do.
    pub what: String,
    /// What to do next.
    pub remedy: String,
    /// Whether it goes away when unsupported options are ignored.
    pub is_unsupported: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.at)?;
        if let Some(section) = &self.section {
            write!(f, "[{section}] ")?;
        }
        if let Some(option) = &self.option {
            write!(f, "{option}: ")?;
        }
        write!(f, "{}", self.what)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

/// Everything that keeps a job file from being run, at least one problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFileError {
    /// In the order of the file.
    pub problems: Vec<Problem>,
}

impl JobFileError {
    /// An error with a single problem.
    pub fn of(problem: Problem) -> JobFileError {
        JobFileError { problems: vec![problem] }
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.problems.iter().map(Problem::to_string).collect();
        write!(f, "{}", lines.join("\n"))
    }
}

impl std::error::Error for JobFileError {}
