//! Reading JSON that others wrote: what is wrong is told with the field that it is in, and no text has anything that a terminal
//! would obey.

use serde::de::DeserializeOwned;
use serde_json::Value;

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

/// Control characters but line feeds and tabs, and marks that turn the writing direction, become replacement characters.
fn make_harmless(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(is_harmful) => {
            *text = text.replace(is_harmful, "\u{fffd}");
        }
        Value::Array(items) => items.iter_mut().for_each(make_harmless),
        Value::Object(fields) => fields.values_mut().for_each(make_harmless),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_harmful(letter: char) -> bool {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (letter.is_control() && !matches!(letter, '\n' | '\t'))
}

fn in_words(error: serde_path_to_error::Error<serde_json::Error>) -> String {
    let path = error.path().to_string();
    match path.as_str() {
        "." => error.into_inner().to_string(),
        _ => format!("{path}: {}", error.into_inner()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::runs::slow_sd_card_run;
    use crate::result::Run;

    #[test]
    fn an_inverted_interval_is_an_error_that_names_its_field() {
        let mut json = serde_json::to_value(slow_sd_card_run()).expect("JSON");
        let rate = &mut json["results"][0]["bytes_per_second"];
        rate["high"] = serde_json::json!(rate["low"].as_f64().expect("a number") / 2.0);
        let of_value = from_value::<Run>(json.clone()).expect_err("it is inverted");
        let of_text = from_str::<Run>(&json.to_string()).expect_err("it is inverted");
        for error in [of_value, of_text] {
            assert!(error.starts_with("results[0].bytes_per_second: the value "), "{error}");
            assert!(error.contains("outside of its interval"), "{error}");
        }
        let texts: Vec<String> =
            from_str(r#"["a\u001b[2Jb", "c\n\td", "e\u202ef"]"#).expect("texts");
        assert_eq!(texts, ["a\u{fffd}[2Jb", "c\n\td", "e\u{fffd}f"]);
        assert!(from_str::<Run>("{").is_err() && from_str::<u32>("1 2").is_err());
    }
}
