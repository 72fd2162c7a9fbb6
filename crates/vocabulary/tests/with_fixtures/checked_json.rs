//! JSON from outside is checked while it is read.

use rubus_fixtures::runs::slow_sd_card_run;
use rubus_vocabulary::checked_json::{from_str, from_value};
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
    assert!(from_str::<Run>("{").is_err() && from_str::<u32>("1 2").is_err());
}
