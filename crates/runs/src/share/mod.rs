//! Records that others may see: each field passes by a rule of its own, and what has no rule is dropped.
//!
//! `run.rules` and `comparison.rules` have a line for every field; a test holds them against the records' schemas, so that a
//! new field is dropped until it has one. What each form of text lets through is in `rule.rs`. Serial numbers, UUIDs, servers, users
//! and directories become pseudonyms that are counted within one record (`serial-1`); free texts of others are left out.
//! A label that was given to a run stays, since its owner wrote it for others to read.

mod rule;
mod table;
mod walk;

use std::collections::BTreeSet;

use rubus_host::shareable::Pseudonyms;
use serde_json::Value;

pub use rubus_host::shareable::LEFT_OUT;
pub use table::{Rule, Table};
pub use walk::Counts;

/// The tables of rules, by the record that each is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A [run](rubus_vocabulary::result::Run).
    Run,
    /// A [machine](rubus_vocabulary::machine::Machine) alone, by the same rules as within a run.
    Machine,
    /// A [comparison](crate::compare::Comparison).
    Comparison,
}

impl Record {
    /// The table of rules for this record.
    pub fn table(self) -> &'static Table {
        match self {
            Record::Run => table::run(),
            Record::Machine => table::machine(),
            Record::Comparison => table::comparison(),
        }
    }
}

/// What can be made fit for others to see.
pub trait Shareable: Sized {
    /// Which record it is.
    const RECORD: Record;

    /// Its JSON.
    ///
    /// # Errors
    /// When it cannot become JSON, which its own tests rule out.
    fn json(&self) -> serde_json::Result<Value>;

    /// It again.
    ///
    /// # Errors
    /// When the JSON is not that of one.
    fn of_json(json: Value) -> Result<Self, String>;
}

impl Shareable for rubus_vocabulary::result::Run {
    const RECORD: Record = Record::Run;

    fn json(&self) -> serde_json::Result<Value> {
        self.to_json()
    }

    fn of_json(json: Value) -> Result<Self, String> {
        Self::of_json(json)
    }
}

impl Shareable for rubus_vocabulary::machine::Machine {
    const RECORD: Record = Record::Machine;

    fn json(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }

    fn of_json(json: Value) -> Result<Self, String> {
        serde_json::from_value(json).map_err(|error| error.to_string())
    }
}

impl Shareable for crate::compare::Comparison {
    const RECORD: Record = Record::Comparison;

    fn json(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }

    fn of_json(json: Value) -> Result<Self, String> {
        serde_json::from_value(json).map_err(|error| error.to_string())
    }
}

/// A record with nothing that identifies its machine or owner.
///
/// # Errors
/// When the record cannot become JSON and back, which its own tests rule out.
pub fn shared<T: Shareable>(record: &T) -> Result<T, String> {
    let mut value = record.json().map_err(|error| error.to_string())?;
    share(&mut value, T::RECORD);
    T::of_json(value)
}

/// The same with the JSON of a record. Fields that this version does not know are dropped.
pub fn share(value: &mut Value, record: Record) -> Counts {
    // What is private is known after a first pass; the second leaves it out of the texts that hold it, too.
    let mut names = Pseudonyms::default();
    walk::walk(&mut value.clone(), record.table(), &mut names);
    walk::walk(value, record.table(), &mut names)
}

/// The words of an error that others may see: names, addresses and paths of one's own are left out.
pub fn shared_reason(text: &str) -> String {
    rule::reason(text, &BTreeSet::new(), &Pseudonyms::default())
}

#[cfg(test)]
mod secrets_tests;
#[cfg(test)]
mod tests;
