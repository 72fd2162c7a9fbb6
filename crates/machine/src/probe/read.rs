//! Making facts of files: a value and where it was read, or the reason why not.

use std::path::Path;
use std::str::FromStr;

use rubus_host::Files;
use rubus_vocabulary::fact::Fact;

/// A small file's text, trimmed at its end.
pub fn text(files: &dyn Files, path: &str) -> Fact<String> {
    match files.text(Path::new(path)) {
        Ok(text) => Fact::known(text, path),
        Err(error) => Fact::unknown(error.to_string(), path),
    }
}

/// As [`text`], but an empty file is unknown: many attributes are there and say nothing.
pub(crate) fn filled_text(files: &dyn Files, path: &str) -> Fact<String> {
    text(files, path).and_then(|text| {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            Err("the file is empty".to_string())
        } else {
            Ok(trimmed.to_string())
        }
    })
}

/// A decimal number that is the whole file.
pub(crate) fn number<T: FromStr>(files: &dyn Files, path: &str) -> Fact<T> {
    text(files, path).and_then(|text| parse_number(&text))
}

/// A decimal number with white space around it.
pub fn parse_number<T: FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("it says '{}', not a number", text.trim()))
}

/// A file that says 0 or 1, N or Y.
pub(crate) fn flag(files: &dyn Files, path: &str) -> Fact<bool> {
    text(files, path).and_then(|text| match text.trim() {
        "0" | "N" => Ok(false),
        "1" | "Y" => Ok(true),
        other => Err(format!("it says '{other}', neither yes nor no")),
    })
}

/// Asks one place after the other until one knows. When none does, the reasons of all are told.
pub(crate) fn first_known<T>(places: &[&dyn Fn() -> Fact<T>]) -> Fact<T> {
    let mut reasons: Vec<(String, String)> = Vec::new();
    for place in places {
        match place() {
            Fact::Unknown { unknown, source } => reasons.push((source, unknown)),
            known => return known,
        }
    }
    let sources: Vec<&str> = reasons.iter().map(|(source, _)| source.as_str()).collect();
    let told: Vec<String> =
        reasons.iter().map(|(source, reason)| format!("{source}: {reason}")).collect();
    match &reasons[..] {
        [(source, reason)] => Fact::unknown(reason, source),
        _ => Fact::unknown(told.join("; "), sources.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    #[test]
    fn what_cannot_be_read_says_why_and_is_never_zero() {
        let files =
            FakeFiles::new().file("/a", "12\n").file("/b", "many\n").file("/c", "\n").denied("/d");
        assert_eq!(number::<u64>(&files, "/a"), Fact::known(12, "/a"));
        assert_eq!(number::<u64>(&files, "/b").reason(), Some("it says 'many', not a number"));
        assert_eq!(filled_text(&files, "/c").reason(), Some("the file is empty"));
        assert_eq!(text(&files, "/d").reason(), Some("permission denied; root may read it"));
        assert_eq!(flag(&files, "/e").reason(), Some("no such file"));
    }

    #[test]
    fn the_first_place_that_knows_is_believed() {
        let files = &FakeFiles::new().file("/b", "2\n").file("/c", "3\n");
        let asked = |path: &'static str| move || number::<u32>(files, path);
        let fact = first_known(&[&asked("/a"), &asked("/b"), &asked("/c")]);
        assert_eq!(fact, Fact::known(2, "/b"));
        let none = first_known(&[&asked("/x"), &asked("/y")]);
        assert_eq!(none.source(), "/x, /y");
        assert_eq!(none.reason(), Some("/x: no such file; /y: no such file"));
    }
}
