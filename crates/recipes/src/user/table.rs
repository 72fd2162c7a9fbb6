//! A TOML table that is taken apart key by key: what is missing, of the wrong kind or unknown becomes a fault with
//! its line.

use std::ops::Range;

use rubus_vocabulary::spelling::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Something that is wrong in a recipe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Fault {
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub reason: String,
}

/// The text that is read, and the faults found so far.
pub(super) struct Reading<'a> {
    pub(super) text: &'a str,
    pub(super) faults: Vec<Fault>,
}

impl Reading<'_> {
    /// The line of a place in the text.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..span.start);
        let before = before.unwrap_or(self.text.as_bytes());
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    pub(super) fn fault(&mut self, line: usize, reason: impl Into<String>) {
        self.faults.push(Fault { line, reason: reason.into() });
    }
}

/// A table whose keys are taken one after the other.
pub(super) struct Keys<'a, 'b> {
    table: &'a DeTable<'b>,
    /// What it is to people: "a step".
    what: &'static str,
    pub(super) line: usize,
    asked: Vec<&'static str>,
}

impl<'a, 'b> Keys<'a, 'b> {
    pub(super) fn new(table: &'a DeTable<'b>, what: &'static str, line: usize) -> Self {
        Keys { table, what, line, asked: Vec::new() }
    }

    fn value(&mut self, name: &'static str) -> Option<&'a Spanned<DeValue<'b>>> {
        self.asked.push(name);
        let mut entries = self.table.iter();
        entries.find_map(|(key, value)| (key.get_ref() == name).then_some(value))
    }

    fn wrong(
        &self,
        name: &str,
        kind: &str,
        value: &Spanned<DeValue<'_>>,
        reading: &mut Reading<'_>,
    ) {
        let line = reading.line(&value.span());
        let found = value.get_ref().type_str();
        reading.fault(
            line,
            format!("'{name}' of {} has to be {kind}; this is of the type {found}", self.what),
        );
    }

    /// A text that may be left out.
    pub(super) fn text(&mut self, name: &'static str, reading: &mut Reading<'_>) -> Option<String> {
        let value = self.value(name)?;
        match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            // A size or a value of a knob may be written bare.
            DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_string()),
            _ => {
                self.wrong(name, "a text", value, reading);
                None
            }
        }
    }

    /// A text that has to be there.
    pub(super) fn must(&mut self, name: &'static str, reading: &mut Reading<'_>) -> Option<String> {
        let is_there = self.value(name).is_some();
        if !is_there {
            reading.fault(self.line, format!("{} needs '{name}'", self.what));
        }
        self.text(name, reading)
    }

    /// A yes or no that is no when it is left out.
    pub(super) fn flag(&mut self, name: &'static str, reading: &mut Reading<'_>) -> bool {
        match self.value(name) {
            None => false,
            Some(value) => match value.get_ref() {
                DeValue::Boolean(flag) => *flag,
                _ => {
                    self.wrong(name, "true or false", value, reading);
                    false
                }
            },
        }
    }

    /// A list of texts; empty when it is left out.
    pub(super) fn texts(&mut self, name: &'static str, reading: &mut Reading<'_>) -> Vec<String> {
        let Some(value) = self.value(name) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong(name, "a list of texts", value, reading);
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::String(text) => texts.push(text.to_string()),
                _ => self.wrong(name, "a list of texts", item, reading),
            }
        }
        texts
    }

    /// The tables of a list (`[[name]]`), each with its line.
    pub(super) fn tables(
        &mut self,
        name: &'static str,
        reading: &mut Reading<'_>,
    ) -> Vec<(usize, &'a DeTable<'b>)> {
        let Some(value) = self.value(name) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong(name, "a list of tables: write [[...]]", value, reading);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::Table(table) => tables.push((reading.line(&item.span()), table)),
                _ => self.wrong(name, "a list of tables: write [[...]]", item, reading),
            }
        }
        tables
    }

    /// The tables of a table (`[name.key]`), each with its key and line.
    pub(super) fn named_tables(
        &mut self,
        name: &'static str,
        reading: &mut Reading<'_>,
    ) -> Vec<(usize, String, &'a DeTable<'b>)> {
        let Some(value) = self.value(name) else {
            return Vec::new();
        };
        let DeValue::Table(outer) = value.get_ref() else {
            self.wrong(name, "tables with names: write [options.size]", value, reading);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (key, value) in outer.iter() {
            match value.get_ref() {
                DeValue::Table(table) => {
                    tables.push((reading.line(&key.span()), key.get_ref().to_string(), table));
                }
                _ => self.wrong(name, "tables with names: write [options.size]", value, reading),
            }
        }
        // In the order in which they are written.
        tables.sort_by_key(|(line, ..)| *line);
        tables
    }

    /// Reports every unknown key.
    pub(super) fn finish(self, reading: &mut Reading<'_>) {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if self.asked.contains(&name) {
                continue;
            }
            let line = reading.line(&key.span());
            reading.fault(
                line,
                format!("{} has no '{name}'{}", self.what, did_you_mean(name, &self.asked)),
            );
        }
    }
}

/// The nearest of the known names, where one is near.
pub(super) fn did_you_mean(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(nearest) => format!("; did you mean '{nearest}'?"),
        None => format!("; there are: {}", known.join(", ")),
    }
}
