//! The public words: those of the program's own texts and of the kernel, in `words.txt`.

use std::collections::BTreeSet;
use std::sync::OnceLock;

fn words() -> &'static BTreeSet<&'static str> {
    static WORDS: OnceLock<BTreeSet<&'static str>> = OnceLock::new();
    WORDS.get_or_init(|| include_str!("words.txt").lines().collect())
}

/// Whether it is one of the public words, whatever its case.
pub fn is_word(text: &str) -> bool {
    words().contains(text.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_list_is_sorted_and_small_letters() {
        let list: Vec<&str> = include_str!("words.txt").lines().collect();
        assert!(list.is_sorted() && list.iter().all(|word| **word == word.to_lowercase()));
    }
}
