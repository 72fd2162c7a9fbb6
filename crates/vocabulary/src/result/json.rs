//! A run as JSON. What is generic over its reader is compiled where it is called; the readers and writers here are compiled once,
//! which is a tenth of the time of a build.

use serde_json::Value;

use super::Run;
use crate::checked_json;

impl Run {
    /// Reads what [`to_json`](Self::to_json) gave, perhaps that of another version.
    ///
    /// # Errors
    /// In words, with the field; see [`checked_json::from_value`].
    pub fn of_json(json: Value) -> Result<Self, String> {
        checked_json::from_value(json)
    }

    /// As [`of_json`](Self::of_json), of a text.
    ///
    /// # Errors
    /// As there, and when the text is not JSON.
    pub fn of_json_text(text: &str) -> Result<Self, String> {
        checked_json::from_str(text)
    }

    /// Its record.
    ///
    /// # Errors
    /// When a number in it is not finite, which its constructors rule out.
    pub fn to_json(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }

    /// Its record as a text.
    ///
    /// # Errors
    /// As for [`to_json`](Self::to_json).
    pub fn to_json_text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}
