//! Words for times, factors and lists, and what is said of what to do.

use rubus_draw::text::listed;

pub(super) struct ToDo {
    pub command: Option<Vec<String>>,
    pub sentence: Option<String>,
}

impl ToDo {
    pub fn nothing(sentence: &str) -> ToDo {
        ToDo { command: None, sentence: Some(sentence.into()) }
    }
}

/// A time without a letter that is not ASCII: "85 ms", "1.4 s".
pub(super) fn seconds(time_s: f64) -> String {
    match time_s {
        s if s >= 9.95 => format!("{s:.0} s"),
        s if s >= 0.095 => format!("{s:.1} s"),
        s if s >= 0.00995 => format!("{:.0} ms", s * 1e3),
        s if s >= 0.000_95 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.2} ms", s * 1e3),
    }
}

/// A factor: "2.4 times", "40 times".
pub(super) fn times(factor: f64) -> String {
    if factor >= 9.95 { format!("{factor:.0} times") } else { format!("{factor:.1} times") }
}

/// "a", "a and b", "a, b and c".
pub(super) fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    listed(&words.collect::<Vec<_>>())
}
