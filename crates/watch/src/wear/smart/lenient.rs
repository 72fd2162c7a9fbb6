//! Reading JSON field by field, so that one odd field costs no other.
//!
//! Firmware says anything: counters that wrapped, numbers as text, nothing where a number should be. A field that is not of
//! the kind that it should be counts as not there.

use rubus_runs::loose_json;
use serde_json::{Deserializer, Map, Value};

/// The first JSON object of a text. Words before it and behind it are passed over, and what JSON does not allow is mended
/// ([`loose_json`]).
pub fn object(text: &str) -> Result<Value, serde_json::Error> {
    let text = text.find('{').map_or(text, |start| &text[start..]);
    first(text).or_else(|error| match loose_json::document(text) {
        Some((mended, _)) => first(&mended).map_err(|_| error),
        None => Err(error),
    })
}

fn first(text: &str) -> Result<Value, serde_json::Error> {
    let mut objects = Deserializer::from_str(text).into_iter::<Map<String, Value>>();
    objects.next().unwrap_or_else(|| serde_json::from_str(text)).map(Value::Object)
}

/// A number, also as text: 97, "97", "97 %", "5400 rpm", "0x61".
pub fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number_of_text(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    number.filter(|number| number.is_finite())
}

fn number_of_text(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches('%').trim_end_matches("rpm").trim_end();
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|number| number as f64),
        None => text.parse().ok(),
    }
}

/// A counter: a whole number from 0 on that 64 bits hold.
pub fn count(value: &Value) -> Option<u64> {
    if let Some(count) = value.as_u64() {
        return Some(count);
    }
    let number = number(value)?;
    (0.0..u64::MAX as f64).contains(&number).then_some(number as u64)
}

/// A truth value, also as text or number.
pub fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        Value::Number(_) | Value::String(_) => number(value).map(|number| number != 0.0),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The items of a list, or of an object that stands in place of one.
pub fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(items) => items.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn odd_numbers_cost_nothing_but_themselves() {
        let text = r#"sudo: hint {"a": 1e999, "b": [NaN, -inf, 7], "c \" 1e999": "1e999"} done"#;
        let expected = json!({"a": null, "b": [null, null, 7], "c \" 1e999": "1e999"});
        assert_eq!(object(text).unwrap(), expected);
        assert!(object("{\"a\": ").is_err());
        assert!(object("").is_err());
    }

    #[test]
    fn a_field_of_another_kind_is_not_there() {
        assert_eq!(number(&json!("97 %")), Some(97.0));
        assert_eq!(number(&json!("0x61")), Some(97.0));
        assert_eq!(number(&json!("5400 rpm")), Some(5400.0));
        for odd in
            [json!(null), json!([1]), json!({"value": 1}), json!("many"), json!("inf"), json!(true)]
        {
            assert_eq!(number(&odd), None, "{odd}");
        }
        assert_eq!(count(&json!(u64::MAX)), Some(u64::MAX));
        for odd in [json!(-1), json!(1e30), json!("-3"), json!(18_446_744_073_709_551_616.0)] {
            assert_eq!(count(&odd), None, "{odd}");
        }
        assert_eq!(truth(&json!("FALSE")), Some(false));
        assert_eq!(truth(&json!([])), None);
    }
}
