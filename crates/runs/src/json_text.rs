//! JSON documents in a text that also holds other lines: warnings and progress before, the normal
//! output of a program behind, several documents one after the other.

use rubus_vocabulary::loose_json;
use serde_json::Value;

/// The documents of a text in their order; a list counts as its elements.
///
/// What JSON does not allow within a document is mended ([`loose_json`]).
///
/// A document begins on a line of its own. A line with an opening bracket that is no JSON is text (a
/// progress line such as `[R(2)][50.0%]`); a line with an opening brace that is none is an error, since a
/// document was cut off there.
///
/// # Errors
/// When a document is cut off or malformed.
pub fn documents(text: &str) -> Result<Vec<Value>, serde_json::Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut values = Vec::new();
    let mut rest = text;
    while let Some(start) = next_start(rest) {
        rest = &rest[start..];
        let first = first(rest).or_else(|error| {
            let of_mended = is_document(rest).then(|| mended(rest)).flatten();
            of_mended.ok_or(error)
        });
        match first {
            Ok((Value::Array(list), length)) => {
                values.extend(list);
                rest = &rest[length..];
            }
            Ok((value, length)) => {
                values.push(value);
                rest = &rest[length..];
            }
            Err(error) if rest.starts_with('{') || is_cut_list(rest, &error) => return Err(error),
            Err(_) => rest = &rest[1..],
        }
    }
    Ok(values)
}

/// The document that a text begins with, and its length.
fn first(text: &str) -> Result<(Value, usize), serde_json::Error> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = stream.next().unwrap_or_else(|| serde_json::from_str(text))?;
    Ok((value, stream.byte_offset()))
}

/// As [`first`], of what is JSON only after it is mended.
fn mended(text: &str) -> Option<(Value, usize)> {
    let (mended, length) = loose_json::document(text)?;
    Some((serde_json::from_str(&mended).ok()?, length))
}

/// Whether what a text begins with is a document, and no bracket of a progress line.
fn is_document(text: &str) -> bool {
    text.starts_with('{') || text[1..].trim_start().starts_with('{')
}

/// Whether a bracket opens a list of documents that has an end nowhere.
fn is_cut_list(rest: &str, error: &serde_json::Error) -> bool {
    error.is_eof() && is_document(rest)
}

/// Where the next document may begin: at a brace or bracket that is the first on its line or directly
/// behind a document, else at an object's first key.
fn next_start(text: &str) -> Option<usize> {
    let opens = |(at, c): &(usize, char)| {
        let before = text[..*at].trim_end_matches([' ', '\t']);
        matches!(c, '{' | '[') && (before.is_empty() || before.ends_with(['\n', '\r']))
    };
    let first = text.char_indices().find(opens).map(|(at, _)| at);
    let before = first.map_or(text, |first| &text[..first]);
    let mut object = before.match_indices('{').map(|(at, _)| at);
    let key = object.find(|&at| text[at + 1..].trim_start().starts_with('"'));
    key.or(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_before_between_and_behind_is_left_out() {
        let text = "hostname=a, be=0, 64-bit\nJobs: 2 (f=2): [R(2)][50.0%][eta 00m:13s]\n\
                    [R(2)][50.0%]\n{\n \"a\" : 1\n}\n\nm: (groupid=0, jobs=1): err= 0\n  \
                    lat (usec): 20=[1%]\n{\"b\": [2]}\n";
        assert_eq!(documents(text).expect("JSON"), [json!({"a": 1}), json!({"b": [2]})]);
    }

    #[test]
    fn progress_that_ends_in_a_carriage_return_is_text() {
        let text = "Jobs: 1: [r] [0.0% done]\rJobs: 1: [r] [eta 00m:00s]{ \"a\" : 1 }\r\n";
        assert_eq!(documents(text).expect("JSON"), [json!({"a": 1})]);
    }

    #[test]
    fn lists_and_documents_in_a_row_are_taken_apart() {
        let text = "[{\"a\":1},{\"a\":2}]\n{\"a\":3}{\"a\":4}";
        let found = documents(text).expect("JSON");
        let numbers: Vec<_> = found.iter().map(|value| value["a"].as_i64().unwrap()).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert!(documents("[]").expect("JSON").is_empty());
        assert!(documents("no JSON [at all]").expect("JSON").is_empty());
    }

    #[test]
    fn what_json_does_not_have_costs_nothing_but_itself() {
        let text = "fio: don't\n{\n\"a\": -nan,\nJobs: 1 (f=1): [r(1)][eta 00m:01s]\n\"b\": 1\n}\n\
                    {\"c\": Infinity}{\"d\": \"C\\:\\x\"}\nm: (groupid=0): \"\n[{\"e\": inf}]\n";
        let expected = [
            json!({"a": null, "b": 1}),
            json!({"c": null}),
            json!({"d": "C\\:\\x"}),
            json!({"e": null}),
        ];
        assert_eq!(documents(text).expect("JSON"), expected);
    }

    #[test]
    fn a_document_that_is_cut_off_is_an_error() {
        assert!(documents("warning\n{\n \"a\": 1,\n").is_err());
        assert!(documents("[{\"a\": 1},\n").is_err());
        assert!(documents("{\"a\": 1}\n{ fio: error\n}").is_err());
    }
}
