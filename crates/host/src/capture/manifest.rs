//! The manifest of a capture: its JSON form, and how a record becomes one and back.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::files::{ReadError, Space};
use crate::simulated::recorder::Record;
use crate::simulated::tree::{Contents, Missing, Question};

/// First line of defence against other people's `manifest.json` files.
pub(crate) const FORMAT: &str = "rubus capture";
/// The newest version that is understood, and the one that is written.
pub(crate) const VERSION: u32 = 1;
pub(crate) const FILE_NAME: &str = "manifest.json";
/// Directory of the recorded files, beside the manifest.
pub(crate) const FILES: &str = "files";

/// What every version of a manifest has.
#[derive(Deserialize)]
pub(crate) struct Heading {
    pub(crate) format: String,
    pub(crate) version: u32,
    #[serde(default)]
    pub(crate) rubus_version: String,
}

/// A manifest of version 1. Everything but the first three fields may be left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) format: String,
    pub(crate) version: u32,
    /// How it came to be: "recorded by rubus 0.1.0 on …", "hand-built: …".
    pub(crate) label: String,
    /// The program that wrote it; empty when a person did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) rubus_version: String,
    /// Time of the capture, as RFC 3339.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) recorded_at: String,
    /// "replaced by pseudonyms" or "as read".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) identities: String,
    /// What a path means that is not in the capture.
    #[serde(default)]
    pub(crate) missing: MissingMeans,
    /// Sizes of the files, to notice a capture that lost some.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) files: BTreeMap<String, u64>,
    /// Files of which only the beginning was read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) beginnings: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) directories: BTreeMap<String, Vec<String>>,
    /// Path and what it really is; the same for one that is there and no link.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) links: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) space: BTreeMap<String, Space>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) programs: Vec<ProgramAnswer>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) firmware_words: Vec<WordAnswer>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<PathError>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MissingMeans {
    /// The path was not looked at.
    #[default]
    NotCaptured,
    /// It does not exist.
    Absent,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProgramAnswer {
    /// The program and its arguments.
    pub(crate) call: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ReadError>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WordAnswer {
    /// The property's tag, "0x00030046".
    pub(crate) tag: String,
    /// Its value, "0x00050000".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) word: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ReadError>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PathError {
    pub(crate) path: String,
    pub(crate) question: Question,
    pub(crate) error: ReadError,
}

impl Manifest {
    /// Everything of a record except what is in its files.
    pub(crate) fn of(record: &Record, label: &str, recorded_at: &str, identities: &str) -> Self {
        Manifest {
            format: FORMAT.to_string(),
            version: VERSION,
            label: label.to_string(),
            rubus_version: env!("CARGO_PKG_VERSION").to_string(),
            recorded_at: recorded_at.to_string(),
            identities: identities.to_string(),
            missing: MissingMeans::NotCaptured,
            files: record
                .files
                .iter()
                .map(|(path, contents)| (path.clone(), contents.bytes.len() as u64))
                .collect(),
            beginnings: record
                .files
                .iter()
                .filter(|(_, contents)| !contents.whole)
                .map(|(path, _)| path.clone())
                .collect(),
            directories: record.directories.clone(),
            links: record.links.clone(),
            space: record.spaces.clone(),
            programs: record.programs.iter().map(program_answer).collect(),
            firmware_words: record.firmware_words.iter().map(word_answer).collect(),
            errors: record
                .errors
                .iter()
                .map(|((path, question), error)| PathError {
                    path: path.clone(),
                    question: *question,
                    error: error.clone(),
                })
                .collect(),
        }
    }

    pub(crate) fn missing(&self) -> Missing {
        match self.missing {
            MissingMeans::Absent => Missing::Absent,
            MissingMeans::NotCaptured => Missing::NotCaptured,
        }
    }

    /// The record that it was made of; `files` and `links` are those found beside it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn into_record(
        self,
        files: BTreeMap<String, Vec<u8>>,
        links: BTreeMap<String, String>,
    ) -> Result<Record, String> {
        self.check_files(&files)?;
        let beginnings: BTreeSet<String> = self.beginnings.into_iter().collect();
        let files = files
            .into_iter()
            .map(|(path, bytes)| {
                let whole = !beginnings.contains(&path);
                (path, Contents { bytes, whole })
            })
            .collect();
        let mut record = Record {
            files,
            directories: self.directories,
            links,
            spaces: self.space,
            ..Record::default()
        };
        record.links.extend(self.links);
        for program in self.programs {
            let answer = one_of(program.output, program.error)
                .map_err(|what| format!("{FILE_NAME}: program {:?} {what}", program.call))?;
            record.programs.insert(program.call, answer);
        }
        for word in self.firmware_words {
            let place = || format!("{FILE_NAME}: firmware word {:?}", word.tag);
            let tag = hexadecimal(&word.tag).ok_or_else(|| format!("{}: bad tag", place()))?;
            let answer = one_of(word.word.clone(), word.error.clone())
                .map_err(|what| format!("{} {what}", place()))?;
            let answer = match answer {
                Ok(text) => Ok(hexadecimal(&text)
                    .ok_or_else(|| format!("{}: '{text}' is no hexadecimal number", place()))?),
                Err(error) => Err(error),
            };
            record.firmware_words.insert(tag, answer);
        }
        for error in self.errors {
            record.errors.insert((error.path, error.question), error.error);
        }
        Ok(record)
    }

    /// Files that the manifest lists must be there, at their size.
    fn check_files(&self, files: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
        for (path, size) in &self.files {
            match files.get(path) {
                None => return Err(format!("{FILES}{path} is missing")),
                Some(bytes) if bytes.len() as u64 != *size => {
                    return Err(format!(
                        "{FILES}{path} has {} bytes, and {FILE_NAME} says {size}",
                        bytes.len()
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

fn program_answer((call, answer): (&Vec<String>, &Result<String, ReadError>)) -> ProgramAnswer {
    ProgramAnswer {
        call: call.clone(),
        output: answer.as_ref().ok().cloned(),
        error: answer.as_ref().err().cloned(),
    }
}

fn word_answer((tag, answer): (&u32, &Result<u32, ReadError>)) -> WordAnswer {
    WordAnswer {
        tag: format!("{tag:#010x}"),
        word: answer.as_ref().ok().map(|word| format!("{word:#010x}")),
        error: answer.as_ref().err().cloned(),
    }
}

fn one_of<T>(value: Option<T>, error: Option<ReadError>) -> Result<Result<T, ReadError>, String> {
    match (value, error) {
        (Some(value), None) => Ok(Ok(value)),
        (None, Some(error)) => Ok(Err(error)),
        _ => Err("needs either an answer or an error".to_string()),
    }
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
