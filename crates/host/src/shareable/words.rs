//! Sentences for others: what words they may be made of.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::identities;
use super::in_a_row::{self, is_unit};
use super::kernel_names::is_kernel_name;
use super::list::is_word;
use super::pseudonyms::Pseudonyms;

/// Directories below which there is one for each user.
pub(crate) const HOMES: [&str; 5] = ["home", "media", "users", "Users", "mail"];

/// What stands for a word that is not public.
const GAP: &str = "…";

/// A sentence in which each word that is not public is left out. Names of block devices and network interfaces that the
/// kernel gives, numbers with units, and the texts of `public` stay.
pub fn phrase(text: &str, public: &BTreeSet<String>, names: &Pseudonyms) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let spaced = spelt_words(text);
    for (number, word) in text.split(' ').enumerate() {
        let is_public = is_public_token(word) && !is_below_homes(word);
        let is_kept = is_public || public.contains(trimmed(word));
        let is_identity = spaced.iter().any(|range| range.contains(&number));
        if is_kept && !is_identity && !names.reveals(word) {
            kept.push(word);
        } else if kept.last() != Some(&GAP) {
            kept.push(GAP);
        }
    }
    kept.join(" ")
}

/// Whether a path names what is in a directory of users; the user of every Raspberry Pi is none.
fn is_below_homes(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let is_user = |pair: &[&str]| HOMES.contains(&pair[0]) && pair[1] != "pi";
    parts.windows(2).any(is_user)
}

/// Whether a text is made of public words alone.
pub fn is_phrase(text: &str) -> bool {
    text.split(' ').all(is_public_token) && spelt_words(text).is_empty()
}

/// The words, by number, of which several together spell an identity.
pub fn spelt_words(text: &str) -> Vec<RangeInclusive<usize>> {
    let word_at = |at: usize| text[..at].matches(' ').count();
    let rows = in_a_row::stretches(text);
    let spelt = rows.iter().map(|row| word_at(row.start)..=word_at(row.end));
    spelt.chain(spaced_identities(text)).collect()
}

/// The words, by number, that make up a hardware address or a fingerprint: "b8 27 eb 3a 2b 1c", "b8:27 eb:3a 2b:1c".
pub(crate) fn spaced_identities(text: &str) -> Vec<RangeInclusive<usize>> {
    let words = text.split(' ').enumerate();
    let groups: Vec<(usize, &str)> =
        words.flat_map(|(number, word)| pieces(word).map(move |piece| (number, piece))).collect();
    let pieces: Vec<&str> = groups.iter().map(|(_, piece)| *piece).collect();
    let rows = identities::identity_groups(&pieces);
    let rows = rows.into_iter().filter_map(|row| groups.get(row));
    rows.filter_map(|row| Some(row.first()?.0..=row.last()?.0)).collect()
}

fn trimmed(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Whether a word with its punctuation tells nothing about the machine's owner.
fn is_public_token(word: &str) -> bool {
    if identities::is_address(word) || in_a_row::is_spelt(word) || has_mark_inside(word) {
        return false;
    }
    let core = trimmed(word);
    if core.is_empty() || is_kernel_name(core) || is_usb_id(core) {
        return true;
    }
    // Letters one by one spell what they like.
    let letters = pieces(core).filter(|piece| piece.chars().all(char::is_alphabetic));
    let single = letters.filter(|piece| piece.chars().count() == 1).count();
    single <= MAX_LETTERS && pieces(core).all(is_public_piece)
}

/// "152d:0578", "bridge=152d:0578".
fn is_usb_id(word: &str) -> bool {
    let id = word.strip_prefix("bridge=").unwrap_or(word);
    let is_number = |part: &str| part.len() == 4 && part.bytes().all(|b| b.is_ascii_hexdigit());
    id.split_once(':').is_some_and(|(vendor, product)| is_number(vendor) && is_number(product))
}

/// Whether a mark that no word has stands in it: one of an escape, one that is not seen, or a quote between two letters.
fn has_mark_inside(word: &str) -> bool {
    let is_of_words = |c: char| c.is_ascii_graphic() || "×÷–—→…µ°±≤≥≈·’“”äöü│└─├".contains(c);
    let is_escape =
        |at: usize| word[at + 1..].starts_with(|c: char| c == '#' || c.is_alphanumeric());
    let is_quote_inside = |(at, quote): (usize, &str)| {
        let ends = [word[..at].chars().next_back(), word[at + quote.len()..].chars().next()];
        let end = word[at + quote.len()..].trim_end_matches(|c: char| !c.is_alphanumeric());
        let is_short = quote != "\"" && ["s", "t", "re", "ve", "ll", "d"].contains(&end);
        ends.iter().all(|end| end.is_some_and(char::is_alphanumeric)) && !is_short
    };
    !word.chars().all(is_of_words)
        || word.match_indices(['&', '\\']).any(|(at, _)| is_escape(at))
        || word.match_indices(['"', '\'', '’']).any(is_quote_inside)
}

/// "a.m.", "U.S.A." and the like have no more letters that stand alone.
const MAX_LETTERS: usize = 3;

/// The parts of a word between its punctuation, numbers apart from letters.
fn pieces(word: &str) -> impl Iterator<Item = &str> {
    word.split(|c: char| !c.is_alphanumeric()).filter(|piece| !piece.is_empty())
}

/// A word, a number of up to seven digits, or letters and a number together that are a word ("ext4") or a number with a
/// unit or a mark ("16k", "65536KiB", "x4").
pub(super) fn is_public_piece(piece: &str) -> bool {
    if is_word(piece) || piece.len() == 1 && piece.is_ascii() {
        return true;
    }
    if piece.bytes().all(|b| b.is_ascii_digit()) {
        return is_public_number(piece);
    }
    if let Some(hex) = piece.strip_prefix("0x") {
        return (1..=5).contains(&hex.len()) && hex.bytes().all(|b| b.is_ascii_hexdigit());
    }
    let letters = piece.trim_matches(|c: char| c.is_ascii_digit());
    let digits = piece.len() - letters.len();
    let is_one = letters.chars().count() == 1;
    // A letter between digits is a digit in hexadecimal.
    let is_mark = is_one && (piece.starts_with(letters) || piece.ends_with(letters));
    // More digits than four are a person's or a customer's number ("d061234"), unless they count something.
    let is_amount = piece.ends_with(letters) && is_unit(letters);
    let max_digits = if is_amount { 6 } else { 4 };
    (is_mark || !is_one && is_word(letters))
        && (1..=max_digits).contains(&digits)
        && letters.chars().all(char::is_alphabetic)
}

/// A number of up to five digits, or one of up to seven that is round.
fn is_public_number(digits: &str) -> bool {
    digits.len() <= 5 || digits.len() <= 7 && digits.parse().is_ok_and(is_round)
}

/// Whether a number is one as sizes and rates are, and no telephone number.
pub(super) fn is_round(number: u64) -> bool {
    number.is_multiple_of(1000) || number.is_multiple_of(512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_devices_stay_and_names_go() {
        let (public, names) = (BTreeSet::from(["SC64G".to_string()]), Pseudonyms::default());
        let kept = |text: &str| phrase(text, &public, &names);
        for same in [
            "SC64G: 4 KiB random reads, ±12 % (7.2 min to 8.8 min)",
            "mmcblk0p2 stood still for 3.5 s; btrfs, ext4, zstd:3",
            "USB 3, 5 Gbit/s",
            "rwmixread=90 against rwmixread=70, zonemode=strided against no zonemode",
        ] {
            assert_eq!(kept(same), same);
        }
        assert_eq!(kept("ssh: connect to host errhost port 22"), "ssh: connect to host … port 22");
        assert_eq!(kept("at 10.1.2.3 or fd00::7, b8:27:eb:3a:2b:1c"), "at … or …");
        assert_eq!(kept("a1b2c3d4 and 10000000a1b2c3d4"), "… and …");
        assert_eq!(kept("alice.b@example.org"), "…");
        assert_eq!(kept("the device b8 27 eb 3a 2b 1c, not found"), "the device … not found");
        assert_eq!(kept("the key 9F86 D081 884C 7D65"), "the key …");
        assert_eq!(kept("the sizes 10 20 30 40 50 60"), "the sizes 10 20 30 40 50 60");
        assert_eq!(kept("at b8:27 0b:3a 2b:1c, gone"), "at … gone");
        assert_eq!(kept("at 00 11 22 33 44 55, gone"), "at … gone");
        assert_eq!(kept("at 001122 3a4455, gone"), "at … gone");
        assert_eq!(kept("at b8 27 eb 3a 2b 1c,rw"), "at …");
        assert_eq!(kept("at xB8 27 EB 3A 2B 1C, gone"), "at … gone");
        assert_eq!(kept("at MACb8-27-eb-3a-2b-1c, gone"), "at … gone");
        assert_eq!(kept("read 10.76.27.81s and v10.76.27.81KiB"), "read … and …");
        assert_eq!(kept("a.l.i.c.e"), "…");
        assert_eq!(kept("of d061234, u12345 and admin123456"), "of … and …");
        assert_eq!(kept("of 65536k, 131072KiB and x1234"), "of 65536k, 131072KiB and x1234");
        assert_eq!(kept("mounted 5DF9-E225 there"), "mounted … there");
    }
}
