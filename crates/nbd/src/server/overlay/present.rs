//! Which blocks a clone has, in memory: a bit for each, and for each page of the map whether it has to be written.

use std::sync::atomic::{AtomicBool, Ordering};

use super::format::{PAGE_WORDS, Page};
use super::store::Words;

/// The bits, and which of them are not in the file.
#[derive(Debug)]
pub struct Present {
    words: Words,
    changed: Box<[AtomicBool]>,
}

impl Present {
    /// The number of words that `pages` pages need.
    pub fn words_of(pages: usize) -> usize {
        pages * PAGE_WORDS
    }

    /// Bits in memory, of which no page has to be written.
    pub fn new(words: Words) -> Self {
        let pages = words.get().len().div_ceil(PAGE_WORDS);
        Present { words, changed: (0..pages).map(|_| AtomicBool::new(false)).collect() }
    }

    /// Adds a page from the file.
    pub fn add(&self, page: &Page) {
        let words = self.page(page.number as usize);
        for (word, &bits) in words.iter().zip(page.words.iter()) {
            word.fetch_or(bits, Ordering::Relaxed);
        }
    }

    /// Whether a page is what the file has.
    pub fn is_same(&self, page: &Page) -> bool {
        let words = self.page(page.number as usize).iter();
        words.zip(page.words.iter()).all(|(word, &bits)| word.load(Ordering::Relaxed) == bits)
    }

    /// A page has to be written.
    pub fn mark(&self, page: usize) {
        self.changed[page].store(true, Ordering::Release);
    }

    fn page(&self, page: usize) -> &[std::sync::atomic::AtomicU64] {
        &self.words.get()[page * PAGE_WORDS..(page + 1) * PAGE_WORDS]
    }

    /// Whether a block is there.
    #[inline]
    pub fn has(&self, block: u64) -> bool {
        // Pairs with the release in `set`: a thread that sees the bit sees the block.
        let word = self.words.get()[(block / 64) as usize].load(Ordering::Acquire);
        word >> (block % 64) & 1 == 1
    }

    /// Whether all blocks from `first` to before `end` are there.
    #[inline]
    pub fn has_all(&self, first: u64, end: u64) -> bool {
        self.run(first, end) == (true, end)
    }

    /// Whether block `first` is there, and up to before which block of at most `end` all are as it is.
    #[inline]
    pub fn run(&self, first: u64, end: u64) -> (bool, u64) {
        let words = self.words.get();
        let mut block = first;
        let is_there = self.has(first);
        while block < end {
            let word = words[(block / 64) as usize].load(Ordering::Acquire);
            // Differences from what is looked for are ones.
            let others = if is_there { !word } else { word } >> (block % 64);
            let left_in_word = 64 - block % 64;
            match u64::from(others.trailing_zeros()) {
                run if run < left_in_word => return (is_there, (block + run).min(end)),
                _ => block += left_in_word,
            }
        }
        (is_there, end)
    }

    /// These blocks are there from now on. Their bytes have been written.
    #[inline]
    pub fn set(&self, first: u64, end: u64) {
        let words = self.words.get();
        let mut block = first;
        while block < end {
            let left_in_word = (64 - block % 64).min(end - block);
            let ones = if left_in_word == 64 { u64::MAX } else { (1 << left_in_word) - 1 };
            let bits = ones << (block % 64);
            let word = (block / 64) as usize;
            if words[word].fetch_or(bits, Ordering::AcqRel) & bits != bits {
                self.mark(word / PAGE_WORDS);
            }
            block += left_in_word;
        }
    }

    /// How many blocks there are.
    pub fn count(&self) -> u64 {
        let words = self.words.get().iter();
        words.map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }

    /// At most `most` pages that have to be written, from page `from` on, as they are now; from now on they have not.
    pub fn take_changed(&self, from: &mut usize, most: usize) -> Vec<Page> {
        let mut pages = Vec::new();
        while *from < self.changed.len() && pages.len() < most {
            // First the mark, then the words: a bit that comes in between is marked again.
            if self.changed[*from].swap(false, Ordering::AcqRel) {
                let mut words = Box::new([0; PAGE_WORDS]);
                for (copy, word) in words.iter_mut().zip(self.page(*from)) {
                    *copy = word.load(Ordering::Acquire);
                }
                pages.push(Page { number: *from as u32, words });
            }
            *from += 1;
        }
        pages
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::format::PAGE_BLOCKS;
    use super::*;

    fn empty(pages: usize) -> Present {
        Present::new(Words::zeros(Present::words_of(pages)))
    }

    #[test]
    fn a_page_is_written_once_for_each_change() {
        let present = empty(3);
        present.set(PAGE_BLOCKS - 1, PAGE_BLOCKS + 1);
        let numbers = |pages: Vec<Page>| pages.iter().map(|page| page.number).collect::<Vec<_>>();
        assert_eq!(numbers(present.take_changed(&mut 0, 9)), [0, 1]);
        assert!(present.take_changed(&mut 0, 9).is_empty());
        present.set(PAGE_BLOCKS, PAGE_BLOCKS + 1);
        assert!(present.take_changed(&mut 0, 9).is_empty(), "nothing new");
        present.set(0, 3 * PAGE_BLOCKS);
        let mut from = 0;
        assert_eq!(numbers(present.take_changed(&mut from, 2)), [0, 1]);
        assert_eq!(numbers(present.take_changed(&mut from, 2)), [2]);
        assert_eq!(present.count(), 3 * PAGE_BLOCKS);
    }

    proptest! {
        #[test]
        fn runs_are_those_of_a_row_of_truths(sets in proptest::collection::vec((0_u64..300, 1_u64..150), 0..8)) {
            let present = empty(1);
            let mut truth = vec![false; 512];
            for &(first, count) in &sets {
                present.set(first, first + count);
                truth[first as usize..(first + count) as usize].fill(true);
            }
            for first in 0..500_u64 {
                let same = truth[first as usize..500].iter().take_while(|&&bit| bit == truth[first as usize]);
                let end = first + same.count() as u64;
                prop_assert_eq!(present.run(first, 500), (truth[first as usize], end));
            }
            let ones = truth.iter().filter(|&&bit| bit).count() as u64;
            prop_assert_eq!(present.count(), ones);
        }
    }
}
