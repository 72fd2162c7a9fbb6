//! The public words: those of the program's own texts and of the kernel, in `words.txt`, and those of makers and their
//! products, in `products.txt`.

use std::collections::BTreeSet;
use std::sync::OnceLock;

fn words() -> &'static BTreeSet<&'static str> {
    static WORDS: OnceLock<BTreeSet<&'static str>> = OnceLock::new();
    WORDS.get_or_init(|| include_str!("words.txt").lines().collect())
}

fn products() -> &'static BTreeSet<&'static str> {
    static PRODUCTS: OnceLock<BTreeSet<&'static str>> = OnceLock::new();
    PRODUCTS.get_or_init(|| include_str!("products.txt").lines().collect())
}

/// Whether it is a word of makers' and products' names, whatever its case.
pub fn is_product_word(text: &str) -> bool {
    is_word(text) || products().contains(text.to_lowercase().as_str())
}

/// Whether it is one of the public words, whatever its case.
pub fn is_word(text: &str) -> bool {
    words().contains(text.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_lists_are_sorted_and_small_letters() {
        for list in [include_str!("words.txt"), include_str!("products.txt")] {
            let list: Vec<&str> = list.lines().collect();
            assert!(list.is_sorted() && list.iter().all(|word| **word == word.to_lowercase()));
        }
    }
}
