//! Pseudonyms that are counted within one document.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Included, Unbounded};

use super::identities;
use super::kernel_names::is_kernel_name;
use super::list::is_word;

/// What a pseudonym stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A serial number.
    Serial,
    /// A UUID, a partition's identity, a world-wide name.
    Uuid,
    /// A label that was given to a filesystem or a partition.
    Label,
    /// A machine that serves something.
    Server,
    /// A machine that was measured, or that takes part.
    Host,
    /// A volume, pool, export, share or image.
    Volume,
    /// A network interface with a name of its own.
    Interface,
    /// A block device with a name of its own.
    Device,
    /// A directory or file.
    Name,
    /// A job of a job file.
    Job,
    /// A program.
    Program,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Serial => "serial",
            Kind::Uuid => "uuid",
            Kind::Label => "label",
            Kind::Server => "server",
            Kind::Host => "host",
            Kind::Volume => "volume",
            Kind::Interface => "link",
            Kind::Device => "device",
            Kind::Name => "name",
            Kind::Job => "job",
            Kind::Program => "program",
        }
    }
}

/// The pseudonyms of one document, in the order in which they were first needed, and what they stand for.
#[derive(Debug, Default)]
pub struct Pseudonyms {
    names: BTreeMap<(Kind, String), u32>,
    counts: BTreeMap<Kind, u32>,
    /// Private texts, of which none may appear inside a text that is let through.
    private: BTreeSet<String>,
    /// Names stay and are noted, where something else replaces them everywhere.
    is_noting: bool,
    noted: BTreeSet<String>,
}

/// A private text that is shorter is too common to look for inside others.
const MIN_PRIVATE_CHARS: usize = 4;

impl Pseudonyms {
    /// Lets every name stay and notes it.
    pub fn noting() -> Self {
        Pseudonyms { is_noting: true, ..Pseudonyms::default() }
    }

    /// Whether names stay.
    pub(super) fn is_noting(&self) -> bool {
        self.is_noting
    }

    /// Notes a name. Of a device, what the kernel puts before the name tells that it is an array, and is no part of it.
    pub fn note(&mut self, text: &str) {
        // A short name and a word are not looked for alone.
        let is_found = |given: &&str| {
            let is_number = given.bytes().all(|byte| byte.is_ascii_digit());
            given.chars().count() > 2 && !is_number && !is_word(given)
        };
        let given = text.strip_prefix("md_").filter(is_found);
        self.noted.insert(given.unwrap_or(text).to_string());
    }

    /// The names that were noted.
    pub fn noted(self) -> Vec<String> {
        self.noted.into_iter().collect()
    }

    /// The pseudonym for a text: the same for the same text, whatever its case and separators. A pseudonym itself stays, so
    /// that a document which is made shareable twice does not change.
    pub fn name(&mut self, kind: Kind, text: &str) -> String {
        if self.is_noting {
            self.note(text);
            return text.to_string();
        }
        if is_pseudonym(kind, text) {
            return text.to_string();
        }
        self.remember(text);
        let next = self.counts.get(&kind).copied().unwrap_or(0) + 1;
        let number = *self.names.entry((kind, bare(text))).or_insert(next);
        if number == next {
            self.counts.insert(kind, next);
        }
        format!("{}-{number}", kind.word())
    }

    /// The same for a name below `/dev/disk/by-id`; where names are noted, the serial number in it has a pseudonym alone.
    pub fn name_by_id(&mut self, name: &str) -> String {
        if self.is_noting {
            self.note(&format!("by-id/{name}"));
            return name.to_string();
        }
        self.name(Kind::Uuid, name)
    }

    /// Notes that a text is private, without a pseudonym for it.
    pub fn remember(&mut self, text: &str) {
        let is_whole = identities::is_address(text).then_some(text);
        for part in is_whole
            .into_iter()
            .chain(text.split(|c: char| c.is_whitespace() || "/,;=@%:&?'\"".contains(c)))
        {
            let part = bare(part);
            let is_word = is_word(&part) || is_kernel_name(&part);
            let digits = part.chars().filter(char::is_ascii_digit).count();
            let is_number = digits == part.len() && digits < 8;
            if part.chars().count() >= MIN_PRIVATE_CHARS && !is_word && !is_number {
                self.private.insert(part);
            }
        }
    }

    /// Whether a private text stands somewhere in this one, in whatever spelling of its case and separators.
    pub fn reveals(&self, text: &str) -> bool {
        let text = bare(text);
        text.char_indices().any(|(at, _)| begins_with_one_of(&self.private, &text[at..]))
    }
}

/// Whether a text begins with one of these. Of what sorts up to the text, the last is looked at alone: whatever shorter one
/// the text begins with is a beginning of that, too.
fn begins_with_one_of(all: &BTreeSet<String>, text: &str) -> bool {
    let mut text = text;
    while let Some(last) = all.range::<str, _>((Unbounded, Included(text))).next_back() {
        if text.starts_with(last.as_str()) {
            return true;
        }
        let same = text.char_indices().zip(last.chars()).find(|((_, one), other)| one != other);
        let Some(((end, _), _)) = same else {
            return false;
        };
        text = &text[..end];
    }
    false
}

/// A text as it is compared: small letters and digits alone.
fn bare(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn is_pseudonym(kind: Kind, text: &str) -> bool {
    let number = text.strip_prefix(kind.word()).and_then(|rest| rest.strip_prefix('-'));
    number.is_some_and(|n| !n.is_empty() && n.len() < 5 && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_thing_has_one_pseudonym_however_it_is_spelt() {
        let mut names = Pseudonyms::default();
        assert_eq!(names.name(Kind::Uuid, "5DF9-E225"), "uuid-1");
        assert_eq!(names.name(Kind::Uuid, "5df9e225"), "uuid-1");
        assert_eq!(names.name(Kind::Uuid, "5df9-e226"), "uuid-2");
        assert_eq!(names.name(Kind::Server, "5df9-e226"), "server-1");
        assert_eq!(names.name(Kind::Server, "server-1"), "server-1", "a pseudonym stays");
    }

    proptest! {
        #[test]
        fn beginnings_are_found_as_by_looking_at_each(
            all in proptest::collection::btree_set("[abä]{1,4}", 0..8),
            text in "[abä]{0,6}",
        ) {
            let one_by_one = all.iter().any(|one| text.starts_with(one.as_str()));
            prop_assert_eq!(begins_with_one_of(&all, &text), one_by_one);
        }
    }

    #[test]
    fn many_texts_are_compared_with_many_private_ones() {
        let mut names = Pseudonyms::default();
        let all: Vec<String> = (0..20_000).map(|n| format!("qzname{n}")).collect();
        all.iter().for_each(|name| names.remember(name));
        // One by one, this compares 400 million pairs.
        assert!(all.iter().all(|name| names.reveals(&format!("on-{name}"))));
        assert!(!names.reveals("qznam"));
    }

    #[test]
    fn a_private_text_is_seen_inside_others_and_an_ordinary_word_is_none() {
        let mut names = Pseudonyms::default();
        names.remember("S4EV-NX0R123456");
        names.remember("backup");
        assert!(names.reveals("ACME s4evnx0r123456 disk"));
        assert!(names.reveals("acme-S4:EV:NX:0R:12:34:56"));
        assert!(!names.reveals("a backup disk"));
    }
}
