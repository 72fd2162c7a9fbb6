//! What the copy of a tree, and the comparison of two trees, have to say: receipts and progress.
//!
//! A receipt counts everything, and keeps examples of what went otherwise than planned, at most
//! [`MAX_EXAMPLES`] of each sort, so that it stays small whatever the tree. Paths are relative to the source,
//! written by [`path_text`].

mod pace;

use rubus_vocabulary::hidden_letters::is_hidden;
use serde::{Deserialize, Serialize};

pub use pace::Pace;

/// Examples kept of one sort of trouble.
pub const MAX_EXAMPLES: usize = 1000;

/// How many there were, and the first of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Listing_{T}"))]
pub struct Listing<T> {
    /// How many there were in all.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<T>,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Listing { count: 0, examples: Vec::new() }
    }
}

impl<T> Listing<T> {
    /// Counts one more, and keeps it if there is room.
    pub fn add(&mut self, example: T) {
        self.count += 1;
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(example);
        }
    }

    /// Counts what another listing counted.
    pub fn join(&mut self, other: Listing<T>) {
        self.count += other.count;
        let room = MAX_EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.into_iter().take(room));
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// A path, and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remark {
    /// Where, relative to the source.
    pub path: String,
    /// What, in plain words.
    pub what: String,
}

/// Entries by what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entries {
    /// Regular files, each name of a file with several counted.
    pub files: u64,
    /// Directories, the root among them.
    pub directories: u64,
    /// Symbolic links.
    pub links: u64,
    /// Block and character devices, named pipes and sockets.
    pub nodes: u64,
}

impl Entries {
    /// All of them.
    pub fn all(&self) -> u64 {
        self.files + self.directories + self.links + self.nodes
    }
}

/// How the copy of a tree went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopyReceipt {
    /// Path of the tree that was copied.
    pub source: String,
    /// Path of the directory that holds the copy.
    pub target: String,
    /// 1 for the first pass, 2 for the one that brings it up to date, and so on.
    pub pass: u32,
    /// Whether the pass continued an interrupted one.
    pub is_resumed: bool,
    /// Entries of the source that are in the target now.
    pub entries: Entries,
    /// Entries that were as an earlier pass left them, and were not copied again.
    pub unchanged: u64,
    /// Bytes of contents that were copied, holes not counted.
    pub copied_bytes: u64,
    /// Bytes that are shared with the source instead of being copied.
    pub shared_bytes: u64,
    /// Files whose contents were read from the disk with those of others, in one request.
    pub gathered: u64,
    /// Bytes of holes that stayed holes.
    pub hole_bytes: u64,
    /// Names that were made as further names of a file.
    pub hard_links: u64,
    /// Extended attributes and access control lists that were set.
    pub attributes: u64,
    /// Files and directories that got flags such as immutable.
    pub flagged: u64,
    /// What vanished from the source since the last pass, and was removed from the target.
    pub deleted: u64,
    /// What was left out on purpose or cannot be kept by the target: mounts, flags of another filesystem.
    pub skipped: Listing<Remark>,
    /// Files that changed while they were copied: the next pass copies them again.
    pub changed: Listing<String>,
    /// What was listed and gone when its turn came.
    pub vanished: Listing<String>,
    /// What could not be copied, and why.
    pub lost: Listing<Remark>,
    /// How long it took, in seconds.
    pub elapsed_s: f64,
    /// Threads that copied.
    pub workers: usize,
}

impl CopyReceipt {
    /// Whether the target holds all of the source: nothing was lost, and nothing changed under the copy's hands.
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty() && self.changed.is_empty()
    }

    /// Counts what a part of the copy counted.
    pub fn absorb(&mut self, part: CopyReceipt) {
        self.entries.files += part.entries.files;
        self.entries.directories += part.entries.directories;
        self.entries.links += part.entries.links;
        self.entries.nodes += part.entries.nodes;
        self.unchanged += part.unchanged;
        self.copied_bytes += part.copied_bytes;
        self.shared_bytes += part.shared_bytes;
        self.gathered += part.gathered;
        self.hole_bytes += part.hole_bytes;
        self.hard_links += part.hard_links;
        self.attributes += part.attributes;
        self.flagged += part.flagged;
        self.deleted += part.deleted;
        self.skipped.join(part.skipped);
        self.changed.join(part.changed);
        self.vanished.join(part.vanished);
        self.lost.join(part.lost);
    }

    /// Whether anything of the source could not be read or written.
    pub fn has_losses(&self) -> bool {
        !self.lost.is_empty()
    }
}

/// How much of the contents a comparison read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Contents {
    /// Nothing: names, owners, times, attributes and lengths only.
    None,
    /// Pieces chosen by chance, every byte with the same chance, and all of what was named.
    #[default]
    Sample,
    /// Every byte.
    All,
}

/// What a comparison of two trees found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// What should be there.
    pub source: String,
    /// What is.
    pub target: String,
    /// Entries whose name, kind, owner, mode, times, attributes and flags were compared.
    pub entries: Entries,
    /// How much of the contents was read.
    pub contents: Contents,
    /// Bytes of contents that were compared.
    pub compared_bytes: u64,
    /// Bytes of contents that there are.
    pub content_bytes: u64,
    /// From which the sample was chosen: the same seed chooses the same pieces.
    pub seed: u64,
    /// Every difference.
    pub differences: Listing<Remark>,
    /// What was not compared, and why.
    pub skipped: Listing<Remark>,
    /// How long it took, in seconds.
    pub elapsed_s: f64,
}

impl Comparison {
    /// Whether no difference was found.
    pub fn is_same(&self) -> bool {
        self.differences.is_empty()
    }
}

/// What a long copy or comparison is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    Copying,
    /// Waiting for the device to have written everything.
    Settling,
    Comparing,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// What it is doing.
    pub stage: Stage,
    /// Entries done.
    pub entries: u64,
    /// Bytes of contents done.
    pub bytes: u64,
    /// How many entries there will be about, where the filesystem knows.
    pub entries_expected: Option<u64>,
    /// How many bytes there will be about, where the filesystem knows.
    pub bytes_expected: Option<u64>,
    /// Time gone, in seconds.
    pub elapsed_s: f64,
    /// Time left, in seconds, when enough was seen to say.
    pub left_s: Option<f64>,
}

/// A path as text that can be read and told apart: bytes that are not UTF-8, backslashes, control characters and marks
/// that are not seen are written as `\xNN`.
pub fn path_text(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\x5c"),
                hidden if is_hidden(hidden) => {
                    for byte in hidden.to_string().bytes() {
                        // Writing to a string cannot fail.
                        let _ = write!(text, "\\x{byte:02x}");
                    }
                }
                plain => text.push(plain),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The path that [`path_text`] has written.
pub fn path_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.strip_prefix(b"x").and_then(|digits| digits.get(..2));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match value.filter(|_| *first == b'\\') {
            Some(value) => {
                bytes.push(value);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_its_own_text() {
        assert_eq!(path_text("usr/lib/ä".as_bytes()), "usr/lib/ä");
        assert_eq!(path_text(b"a\nb\xff\\"), "a\\x0ab\\xff\\x5c");
        for path in [&b"usr/lib"[..], b"a\nb\xff\\", b"\\x41", "\u{e4}\u{85}\u{202e}".as_bytes()] {
            assert_eq!(path_bytes(&path_text(path)), path);
        }
    }

    #[test]
    fn a_listing_counts_all_and_keeps_some() {
        let mut listing = Listing::default();
        for number in 0..MAX_EXAMPLES + 5 {
            listing.add(number);
        }
        assert_eq!(listing.count, MAX_EXAMPLES as u64 + 5);
        assert_eq!(listing.examples.len(), MAX_EXAMPLES);
        let mut all = Listing::default();
        all.add(1);
        all.join(listing);
        assert_eq!(all.count, MAX_EXAMPLES as u64 + 6);
        assert_eq!(all.examples.len(), MAX_EXAMPLES);
    }

    #[test]
    fn a_receipt_comes_back_from_json() {
        let mut receipt = CopyReceipt::default();
        receipt.lost.add(Remark { path: "a".into(), what: "cannot read".into() });
        assert!(!receipt.is_complete() && receipt.has_losses());
        let text = serde_json::to_string(&receipt).unwrap();
        assert_eq!(serde_json::from_str::<CopyReceipt>(&text).unwrap(), receipt);
    }
}
