//! Small things about links in sysfs: what a link points at, and which driver a device has.

use std::path::Path;

use rubus_host::Files;
use rubus_vocabulary::fact::Fact;

/// The last component of what a link points at.
pub(crate) fn target_name(files: &dyn Files, path: &str) -> Fact<String> {
    match files.real_path(Path::new(path)) {
        Ok(real) => Fact::known(base_name(&real.to_string_lossy()).to_string(), path),
        Err(error) => Fact::unknown(error.to_string(), path),
    }
}

/// The kernel driver of the device in a sysfs directory.
pub(crate) fn driver(files: &dyn Files, directory: &str) -> Fact<String> {
    target_name(files, &format!("{directory}/driver"))
}

/// The part of a path after its last slash.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The names in a directory; none when it cannot be listed.
pub(crate) fn names(files: &dyn Files, directory: &str) -> Vec<String> {
    files.list(Path::new(directory)).unwrap_or_default()
}

/// Names in the order that people expect: "sda2" before "sda10".
pub(crate) fn sort_naturally(names: &mut [String]) {
    names.sort_by_key(|name| natural_key(name));
}

/// Splits a name into text and numbers, so that numbers compare by value.
fn natural_key(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, after) = rest.split_at(text_end);
        let number_end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (digits, tail) = after.split_at(number_end);
        key.push((text.to_string(), digits.parse().unwrap_or(0)));
        rest = tail;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_compare_by_value() {
        let mut names: Vec<String> = ["sda10", "nvme0n1p2", "sda2", "sda", "nvme0n1", "dm-0"]
            .iter()
            .map(|name| name.to_string())
            .collect();
        sort_naturally(&mut names);
        assert_eq!(names, ["dm-0", "nvme0n1", "nvme0n1p2", "sda", "sda2", "sda10"]);
    }
}
