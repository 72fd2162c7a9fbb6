//! How values of options are written: times, labels, parts.

use std::ops::RangeInclusive;

use clap::ValueEnum;

/// Whether a part was named, or none was, which means all.
pub fn is_wanted<Name: ValueEnum>(named: &[Name], part: &str) -> bool {
    let mut names = named.iter().filter_map(ValueEnum::to_possible_value);
    named.is_empty() || names.any(|name| name.get_name() == part)
}

/// Seconds, minutes with an `m` or hours with an `h`, as seconds within bounds.
pub fn time_within(text: &str, bounds: RangeInclusive<f64>) -> Option<f64> {
    let units = [("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let (number, unit_s) = units
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))
        .unwrap_or((text, 1.0));
    let seconds = number.parse::<f64>().ok()? * unit_s;
    bounds.contains(&seconds).then_some(seconds)
}

/// Seconds within bounds.
pub fn seconds_within(text: &str, least: f64, most: f64) -> Result<f64, String> {
    match text.trim_end_matches('s').parse::<f64>() {
        Ok(seconds) if (least..=most).contains(&seconds) => Ok(seconds),
        _ => Err(format!("write seconds from {least} to {most}")),
    }
}

/// A label, which must not look like another name of a run.
///
/// # Errors
/// In words, when it is empty, too long, a number, or begins like `last`.
pub fn label(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > 60 || text.chars().any(char::is_control) {
        return Err("a label has 1 to 60 characters, on one line".into());
    }
    if text.parse::<i64>().is_ok() || text == "last" || text.starts_with("last~") || text == "-" {
        return Err("this would be taken for a run's number or place; add a word".into());
    }
    Ok(text.to_string())
}
