//! Recordings: one JSON object a line; the first says what is recorded, each further one is a [`Sample`].
//!
//! A recording that was cut off in the middle of a line (a pulled plug, a full disk) is good up to that line.

use serde::{Deserialize, Serialize};

use super::health::DiskHealth;
use super::pipes::Pipe;
use super::sample::Sample;
use super::wear::Wear;

/// Version of the format. Fields are only added within a version.
pub const FORMAT: u32 = 1;

/// The first line: what does not change while it is watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Header {
    /// Version of the format: 1. Fields are only added within a version.
    pub rubus_watch: u32,
    /// Version of the program that wrote it.
    pub rubus_version: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Time between two samples, in seconds.
    pub interval_seconds: f64,
    /// The machine, for people: board and kernel.
    pub machine: String,
    /// Bytes of a memory page.
    pub page_bytes: u64,
    /// What disks are, for people, by kernel name: "SC64G, 64.0 GB".
    #[serde(default)]
    pub disks: Vec<(String, String)>,
    /// What has a known capacity.
    #[serde(default)]
    pub pipes: Vec<Pipe>,
    /// How worn the disks were when it began, as they say themselves. Empty in recordings of older programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wear: Vec<Wear>,
    /// The health of the disks when it began. Empty in recordings of older programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<DiskHealth>,
}

/// Why a line is not a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutOff;

/// The first line, with its line feed.
pub fn header_line(header: &Header) -> String {
    line(header)
}

/// The line of a sample, with its line feed.
pub fn sample_line(sample: &Sample) -> String {
    line(sample)
}

fn line(value: &impl Serialize) -> String {
    // Only a map with keys that are no text, or a failing writer, could fail here.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// Reads the first line.
///
/// # Errors
/// In words, when it is no recording or one of a later version.
pub fn parse_header(line: &[u8]) -> Result<Header, String> {
    #[derive(Deserialize)]
    struct Version {
        rubus_watch: u32,
    }
    let no_recording = || {
        "it is no recording: its first line has no \"rubus_watch\"; `rubus watch --record FILE` makes one"
            .to_string()
    };
    let version: Version = serde_json::from_slice(line).map_err(|_| no_recording())?;
    if version.rubus_watch != FORMAT {
        return Err(format!(
            "it is a recording of version {}, and this rubus reads version {FORMAT}; use the rubus that made it",
            version.rubus_watch
        ));
    }
    serde_json::from_slice(line).map_err(|error| format!("its first line is damaged: {error}"))
}

/// Reads a further line.
///
/// # Errors
/// When it is not a whole one.
pub fn parse_sample(line: &[u8]) -> Result<Sample, CutOff> {
    serde_json::from_slice(line).map_err(|_| CutOff)
}
