//! JSON from outside is checked while it is read.

use rubus_fixtures::runs::slow_sd_card_run;
use rubus_vocabulary::checked_json::{escaped, from_str, from_value};
use rubus_vocabulary::result::Run;

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
    let texts: Vec<String> = from_str(r#"["a\u001b[2Jb", "c\n\td", "e\u202ef"]"#).expect("texts");
    assert_eq!(texts, ["a\u{fffd}[2Jb", "c\n\td", "e\u{fffd}f"]);
    let named: serde_json::Value = from_str(r#"{"a\u009bb": {"c\u001b": 1}}"#).expect("fields");
    assert_eq!(named["a\u{fffd}b"]["c\u{fffd}"], 1);
    assert!(from_str::<Run>("{").is_err() && from_str::<u32>("1 2").is_err());
}

#[test]
fn what_a_terminal_would_obey_is_escaped_and_means_the_same() {
    let value = serde_json::json!({ "a\u{9b}31m": ["\u{7f}\u{61c}\u{202e}\u{1b}\u{feff}\u{e0041}", "µ\n\t…"] });
    for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("JSON")] {
        let said = escaped(&text);
        assert!(said.chars().all(|letter| letter == '\n' || !letter.is_control()), "{said:?}");
        assert!(
            !said.contains(['\u{61c}', '\u{202e}', '\u{feff}', '\u{e0041}']) && said.contains("µ"),
            "{said:?}"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&said).expect("JSON"), value);
    }
}
