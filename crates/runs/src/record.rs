//! What a rubus that measures elsewhere tells the one that asked for it: records on standard output.
//!
//! One per line, as in RFC 7464 (JSON text sequences): a record separator, JSON, a line feed. So what
//! a login script prints in between is told apart. Both ends are of the same version.

use std::io::Write;

use rubus_verdict::text::progress::Progress;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::result::Run;
use serde::{Deserialize, Serialize};

/// Begins a record.
const SEPARATOR: char = '\u{1e}';

/// Something to be told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// What goes on just now.
    Live(Progress),
    /// Something that is done, as a line for people.
    Line(String),
    /// A finished run.
    Run(Box<Run>),
    /// A surveyed machine.
    Machine(Box<Machine>),
}

/// Sends a record. If the reader is gone, an error has no reader either; the life line on standard input ends the
/// measurement then (`life_line` of the room of fleets).
pub fn send(record: &Record) {
    // Every record is made of types that JSON can take.
    let json = serde_json::to_string(record).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{SEPARATOR}{json}\n").as_bytes()).and_then(|()| out.flush());
}

/// The record in a line, if there is one.
///
/// # Errors
/// When it cannot be understood.
pub fn parse(line: &str) -> Option<Result<Record, String>> {
    let (_, json) = line.rsplit_once(SEPARATOR)?;
    Some(rubus_vocabulary::checked_json::from_str(json))
}
