//! Reading JSON that others wrote: what is wrong is told with the field that it is in, and no text has anything that a terminal
//! would obey; and writing it so.

use std::borrow::Cow;
use std::fmt::Write;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::hidden_letters::{is_hidden, turns_direction};

/// Reads a text.
///
/// # Errors
/// In words, with the field: `results[3].iops: the value 5 is outside of its interval, 9 to 7`.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    from_value(serde_json::from_str(text).map_err(|error| error.to_string())?)
}

/// Reads a value.
///
/// # Errors
/// As [`from_str`].
pub fn from_value<T: DeserializeOwned>(mut value: Value) -> Result<T, String> {
    make_harmless(&mut value);
    serde_path_to_error::deserialize(value).map_err(in_words)
}

/// A JSON text in which nothing is left that a terminal would obey or not show: those characters become escapes, which mean the
/// same. What is below a blank is one already within texts, and between values no part of any.
pub fn escaped(json: &str) -> Cow<'_, str> {
    let is_raw = |letter: char| letter > ' ' && is_hidden(letter);
    if !json.contains(is_raw) {
        return Cow::Borrowed(json);
    }
    let mut safe = String::with_capacity(json.len() + 16);
    for letter in json.chars() {
        if is_raw(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(letter);
        }
    }
    Cow::Owned(safe)
}

/// Control characters but line feeds and tabs, and marks that turn the writing direction, become replacement characters, in
/// names of fields, too: options of a job file are kept by their names.
fn make_harmless(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(is_harmful) => {
            *text = text.replace(is_harmful, "\u{fffd}");
        }
        Value::Array(items) => items.iter_mut().for_each(make_harmless),
        Value::Object(fields) => {
            if fields.keys().any(|name| name.contains(is_harmful)) {
                let named = std::mem::take(fields).into_iter();
                *fields = named
                    .map(|(name, value)| (name.replace(is_harmful, "\u{fffd}"), value))
                    .collect();
            }
            fields.values_mut().for_each(make_harmless);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_harmful(letter: char) -> bool {
    turns_direction(letter) || (letter.is_control() && !matches!(letter, '\n' | '\t'))
}

fn in_words(error: serde_path_to_error::Error<serde_json::Error>) -> String {
    let path = error.path().to_string();
    match path.as_str() {
        "." => error.into_inner().to_string(),
        _ => format!("{path}: {}", error.into_inner()),
    }
}
