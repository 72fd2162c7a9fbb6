//! What is looked for in a capture, all of it in one pass: of thousands of names, those that begin at a place are found by
//! halving a sorted list with each byte of the text.

use super::secrets::{Reach, Shape};

/// What is looked for, and where it counts.
pub(super) struct Pattern {
    /// Small letters, unless it is raw.
    pub(super) bytes: Vec<u8>,
    pub(super) shape: Shape,
    pub(super) reach: Reach,
    /// What stands for the bytes of a binary form; a text form is made at the place, in its case.
    pub(super) raw: Option<Vec<u8>>,
}

/// By their bytes in small letters; of the same bytes, the first comes first.
pub(super) struct Patterns {
    sorted: Vec<(Vec<u8>, Pattern)>,
}

impl Patterns {
    pub(super) fn new(patterns: impl IntoIterator<Item = Pattern>) -> Self {
        let keyed = patterns.into_iter().filter(|pattern| !pattern.bytes.is_empty());
        let mut sorted: Vec<(Vec<u8>, Pattern)> =
            keyed.map(|pattern| (pattern.bytes.to_ascii_lowercase(), pattern)).collect();
        sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
        Patterns { sorted }
    }

    /// Those whose bytes a text begins with, the longest first.
    pub(super) fn at_start_of(&self, text: &[u8]) -> impl Iterator<Item = &Pattern> {
        let mut left = self.sorted.as_slice();
        let mut found = Vec::new();
        for (at, byte) in text.iter().enumerate() {
            let byte = byte.to_ascii_lowercase();
            // One that has ended sorts before those that go on.
            let from = left.partition_point(|(key, _)| key.get(at) < Some(&byte));
            let to = left.partition_point(|(key, _)| key.get(at) <= Some(&byte));
            left = &left[from..to];
            if left.is_empty() {
                break;
            }
            let ended = left.partition_point(|(key, _)| key.len() == at + 1);
            if ended > 0 {
                found.push(&left[..ended]);
            }
        }
        let all = found.into_iter().rev().flatten().map(|(_, pattern)| pattern);
        all.filter(move |pattern| pattern.raw.is_none() || text.starts_with(&pattern.bytes))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(number: usize, text: &str) -> Pattern {
        let raw = text.contains(char::is_uppercase).then(|| vec![0; text.len()]);
        let reach = if number % 2 == 0 { Reach::Everywhere } else { Reach::Words };
        Pattern { bytes: text.as_bytes().to_vec(), shape: Shape::Name, reach, raw }
    }

    proptest! {
        #[test]
        fn patterns_are_found_as_by_trying_each(
            all in proptest::collection::vec("[abäA]{0,4}", 0..12),
            text in "[abäAB]{0,6}",
        ) {
            let patterns: Vec<Pattern> =
                all.iter().enumerate().map(|(number, text)| pattern(number, text)).collect();
            let is_here = |pattern: &&Pattern| {
                let here = text.as_bytes().get(..pattern.bytes.len());
                !pattern.bytes.is_empty() && here.is_some_and(|here| match pattern.raw {
                    Some(_) => here == pattern.bytes,
                    None => here.eq_ignore_ascii_case(&pattern.bytes),
                })
            };
            let mut tried: Vec<&Pattern> = patterns.iter().filter(is_here).collect();
            tried.sort_by_key(|pattern| std::cmp::Reverse(pattern.bytes.len()));
            let said = |pattern: &Pattern| (pattern.bytes.clone(), pattern.reach, pattern.raw.is_some());
            let tried: Vec<_> = tried.into_iter().map(said).collect();
            let all = all.iter().enumerate().map(|(number, text)| pattern(number, text));
            let found = Patterns::new(all);
            let found: Vec<_> = found.at_start_of(text.as_bytes()).map(said).collect();
            prop_assert_eq!(found, tried);
        }
    }
}
