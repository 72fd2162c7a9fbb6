//! Forms of settings and filters that the documentation does not have, and that are found in files: whether the firmware reads
//! them is not known, so each is taken both ways.

use std::collections::BTreeSet;

use super::{Counts, DECIDING};

/// A form of a setting of which it is not known whether the firmware reads it as it is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// What is in doubt: "a setting with …".
    pub doubt: &'static str,
    /// How it is written without doubt.
    pub remedy: &'static str,
}

/// Firmware has been seen to pass over such a line without a word (imp-os.org, "Raspberry Pi config.txt").
pub const SPACED: &str = "a setting with spaces around the equals sign";
/// The documentation knows comments at the beginning of a line alone.
pub const COMMENTED: &str = "a # behind a value as the beginning of a comment";
/// The cards of piCore are written so (`kernel NAME`, `cmdline NAME`); the documentation knows only `initramfs` and `include`
/// without the sign.
pub const BARE: &str = "a setting without its equals sign";
/// The cards of piCore are written so (`[PI3]`, `[ALL]`); the documentation has small letters alone.
pub const CAPITALS: &str = "a filter in capital letters";
/// All such forms.
pub const FORMS: [Form; 4] = [
    Form { doubt: SPACED, remedy: "write the setting without these spaces" },
    Form { doubt: COMMENTED, remedy: "put the comment on a line of its own" },
    Form { doubt: BARE, remedy: "write the setting with an equals sign" },
    Form { doubt: CAPITALS, remedy: "write the filter in small letters" },
];

/// The forms of a line's setting of which it is not known whether the firmware reads it.
pub(super) fn doubts(line: &str) -> Vec<&'static str> {
    let is_spaced = line.split_once('=').is_some_and(|(name, value)| {
        name.ends_with(char::is_whitespace) || value.trim_end().starts_with(char::is_whitespace)
    });
    match (is_bare(line.trim()), is_spaced) {
        (true, _) => vec![BARE],
        (false, true) => vec![SPACED],
        (false, false) => Vec::new(),
    }
}

/// A setting of one name without its equals sign.
pub(super) fn is_bare(line: &str) -> bool {
    const NAMES: [&str; 5] = ["kernel", "cmdline", "device_tree", "os_prefix", "ramfsfile"];
    let Some((word, rest)) = line.split_once(char::is_whitespace) else { return false };
    let rest = rest.trim_start();
    NAMES.contains(&word) && !rest.is_empty() && !rest.starts_with('=')
}

/// The value before a comment, of a setting that says what is loaded. Behind the name of an initramfs there are other words.
pub(super) fn without_comment<'a>(name: &str, value: &'a str) -> Option<&'a str> {
    if name == "initramfs" || !DECIDING.contains(&name) {
        return None;
    }
    let mut marks = value.match_indices('#').map(|(at, _)| &value[..at]);
    let before = marks.find(|before| before.is_empty() || before.ends_with([' ', '\t']))?;
    Some(before.trim_end())
}

/// What a value may be taken for.
pub(super) fn readings<'a>(name: &str, value: &'a str) -> impl Iterator<Item = &'a str> {
    let cut = without_comment(name, value).filter(|value| !value.is_empty());
    std::iter::once(value).chain(cut)
}

pub(super) fn with_doubts(doubts: &[&str], counts: Counts) -> Counts {
    let doubts = doubts.iter().map(|doubt| (*doubt).to_string());
    let doubts: BTreeSet<String> = doubts.collect();
    match counts {
        counts if doubts.is_empty() => counts,
        Counts::No => Counts::No,
        Counts::Yes => Counts::If(doubts),
        Counts::If(names) => Counts::If(names.union(&doubts).cloned().collect()),
    }
}
