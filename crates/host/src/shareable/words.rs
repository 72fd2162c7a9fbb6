//! Sentences for others: what words they may be made of.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::identities;
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
    let spaced = spaced_identities(text);
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
    text.split(' ').all(is_public_token) && spaced_identities(text).is_empty()
}

/// The words, by number, that make up a hardware address or a fingerprint: "b8 27 eb 3a 2b 1c", "b8:27 eb:3a 2b:1c".
pub(crate) fn spaced_identities(text: &str) -> Vec<RangeInclusive<usize>> {
    let words = text.split(' ').enumerate();
    let groups: Vec<(usize, &str)> =
        words.flat_map(|(number, word)| pieces(word).map(move |piece| (number, piece))).collect();
    let stretches = groups.split(|(_, group)| !identities::is_byte_group(group));
    let are_identity = |stretch: &&[(usize, &str)]| {
        let groups: Vec<&str> = stretch.iter().map(|(_, group)| *group).collect();
        identities::are_identity(&groups)
    };
    let ends = |stretch: &[(usize, &str)]| Some(stretch.first()?.0..=stretch.last()?.0);
    stretches.filter(are_identity).filter_map(ends).collect()
}

/// Whether a text may be the name of a product, of its maker or its version: letters, digits and the punctuation of such
/// names, without an address or a long number in hexadecimal.
pub fn is_product(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || " ._-+()/&,:#!*×'™®".contains(c);
    let is_private = |word: &str| {
        let is_hex = word.len() >= 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
        identities::is_address(word) || is_hex && word.bytes().any(|b| b.is_ascii_digit())
    };
    let is_identity = |word: &str| {
        let word = word.to_lowercase();
        ["eui.", "naa.", "wwn-", "iqn.", "nqn."].iter().any(|kind| word.starts_with(kind))
            || word.strip_prefix("0x").is_some_and(|digits| digits.len() >= 8)
    };
    text.len() <= 80
        && !text.starts_with('/')
        && text.chars().all(is_allowed)
        && !text.split(' ').any(|word| is_private(word) || is_identity(word))
        && spaced_identities(text).is_empty()
}

fn trimmed(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Whether a word with its punctuation tells nothing about the machine's owner.
fn is_public_token(word: &str) -> bool {
    if identities::is_address(word) {
        return false;
    }
    let core = trimmed(word);
    if core.is_empty() || is_kernel_name(core) {
        return true;
    }
    // Letters one by one spell what they like.
    let letters = pieces(core).filter(|piece| piece.chars().all(char::is_alphabetic));
    let single = letters.filter(|piece| piece.chars().count() == 1).count();
    single <= MAX_LETTERS && pieces(core).all(is_public_piece)
}

/// "a.m.", "U.S.A." and the like have no more letters that stand alone.
const MAX_LETTERS: usize = 3;

/// The parts of a word between its punctuation, numbers apart from letters.
fn pieces(word: &str) -> impl Iterator<Item = &str> {
    word.split(|c: char| !c.is_alphanumeric()).filter(|piece| !piece.is_empty())
}

/// A word, a number of up to seven digits, or letters and a number together that are a word ("ext4") or a number with a
/// unit or a mark ("16k", "64KiB", "x4").
pub(super) fn is_public_piece(piece: &str) -> bool {
    if is_word(piece) || piece.chars().count() == 1 {
        return true;
    }
    if piece.bytes().all(|b| b.is_ascii_digit()) {
        return piece.len() <= 7;
    }
    let letters = piece.trim_matches(|c: char| c.is_ascii_digit());
    let digits = piece.len() - letters.len();
    let is_mark = letters.chars().count() == 1 || is_word(letters);
    is_mark && digits > 0 && digits <= 6 && letters.chars().all(char::is_alphabetic)
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
        assert_eq!(kept("a.l.i.c.e"), "…");
    }

    #[test]
    fn names_of_products_hold_no_identity() {
        for product in ["Raspberry Pi 4 Model B Rev 1.5", "WDC WD40EFRX-68N32N0", "ACME/X 3000"] {
            assert!(is_product(product), "{product}");
        }
        for other in [
            "/srv/x",
            "eui.0025385b21404321",
            "NAA.600a098038303634",
            "wwn-0x5000c500a1b2c3d4",
            "iqn.2024-01.org.x:lun7",
            "0x0a0b0c0d",
            "b8 27 eb 3a 2b 1c",
        ] {
            assert!(!is_product(other), "{other}");
        }
    }
}
