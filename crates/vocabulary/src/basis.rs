//! How a figure is known: measured here, published by others, or assumed.

use serde::{Deserialize, Serialize};

/// How a figure is known, the best kind of knowledge first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Measured on this machine.
    Measured,
    /// Published for its kind, with a source, or what a bus or link is known to carry.
    Published,
    /// Measured on this machine, in a run in which it did not settle.
    Unsettled,
    /// None of these: `docs/explanation/advise.md` says from what it was assumed.
    Assumed,
}

impl Basis {
    /// Whether it was measured on this machine, settled or not.
    pub fn is_measured(self) -> bool {
        matches!(self, Basis::Measured | Basis::Unsettled)
    }

    /// A figure in words, as it may be told: what is assumed has its mark and no more than two digits, and what did not settle has
    /// the mark of that.
    pub fn figure(self, words: &str) -> String {
        match self {
            Basis::Assumed => assumed(words),
            Basis::Unsettled => format!("?{words}"),
            Basis::Measured | Basis::Published => words.into(),
        }
    }
}

/// An assumed figure: "~2700", "~1.4 GB/s" for "1.37 GB/s".
pub fn assumed(words: &str) -> String {
    format!("~{}", two_digits(words))
}

/// Every number of a text with its first two digits: more of them would claim a precision that an assumption does not
/// have.
pub fn two_digits(words: &str) -> String {
    let mut found = String::with_capacity(words.len());
    let mut rest = words;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let end = rest[start..].find(|c: char| !c.is_ascii_digit() && c != '.');
        let end = end.map_or(rest.len(), |end| start + end);
        // A full stop behind a number ends a sentence.
        let end = start + rest[start..end].trim_end_matches('.').len();
        let is_in_a_name = rest[..start].ends_with(|c: char| c.is_ascii_alphabetic() || c == ':');
        found.push_str(&rest[..start]);
        let number = &rest[start..end];
        match number.parse::<f64>() {
            Ok(value) if !is_in_a_name => found.push_str(&rounded(value, number)),
            Ok(_) | Err(_) => found.push_str(number),
        }
        rest = &rest[end..];
    }
    found.push_str(rest);
    found
}

fn rounded(value: f64, as_written: &str) -> String {
    if as_written.bytes().filter(u8::is_ascii_digit).count() <= 2 || value == 0.0 {
        return as_written.into();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let unit = 10_f64.powi(magnitude - 1);
    let rounded = (value / unit).round() * unit;
    // A number that was written with fewer decimals is not given more.
    let written = as_written.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let decimals = usize::try_from(1 - rounded.abs().log10().floor() as i32).unwrap_or(0);
    format!("{rounded:.*}", decimals.min(written))
}

/// What the mark of a figure that did not settle means.
pub const UNSETTLED: &str = "? measured here, but did not settle";
/// What the mark of an assumption means.
pub const LEGEND: &str = "~ assumed, not measured or published";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_assumed_has_two_digits() {
        for (written, told) in [
            ("2666", "~2700"),
            ("1.37 GB/s", "~1.4 GB/s"),
            ("84.8 s", "~85 s"),
            ("12.0k", "~12k"),
            ("0.4 s", "~0.4 s"),
            ("0.011", "~0.011"),
            ("0.0114", "~0.011"),
            ("99.6 MB/s", "~100 MB/s"),
            ("9.96 s", "~10 s"),
            ("$1063", "~$1100"),
            ("12.9k/s with 8 in flight", "~13k/s with 8 in flight"),
            ("1.23 h [0.456 h to 7.89 h]", "~1.2 h [0.46 h to 7.9 h]"),
            ("zstd:123", "~zstd:123"),
            ("0", "~0"),
            ("no speed", "~no speed"),
        ] {
            assert_eq!(assumed(written), told);
        }
        assert_eq!(Basis::Measured.figure("2666"), "2666");
        assert_eq!(Basis::Unsettled.figure("2666"), "?2666");
        assert_eq!(two_digits("takes 345."), "takes 350.");
    }
}
