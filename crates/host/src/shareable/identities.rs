//! What addresses look like, so that no word that is one passes for a number or a time.

use std::ops::Range;

use rubus_vocabulary::hidden_letters::{is_unseen, turns_direction};

/// Whether a text is, or holds, an Internet or hardware address, a UUID, a name with an `@`, or a number long enough to
/// be a serial number.
pub fn is_address(text: &str) -> bool {
    text.contains('@')
        || has_escape(text)
        || holds_identity(text)
        || text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > MAX_DIGITS)
        || text.split(|c: char| c.is_whitespace() || ",=;()'\"<>|".contains(c)).any(is_address_word)
}

/// "%2F", "\x2f", "\u002f", "\057", "&#47;", and marks that are not seen: what is written so could be anything.
fn has_escape(text: &str) -> bool {
    let is_hex = |rest: &str, count: usize| {
        rest.len() >= count && rest.bytes().take(count).all(|b| b.is_ascii_hexdigit())
    };
    let is_coded = |rest: &str| {
        rest.strip_prefix('%').is_some_and(|code| is_hex(code, 2))
            || rest.strip_prefix("\\x").is_some_and(|code| is_hex(code, 2))
            || rest.strip_prefix("\\u").is_some_and(|code| is_hex(code.trim_start_matches('{'), 2))
            || rest.strip_prefix("U+").is_some_and(|code| is_hex(code, 4))
            || rest
                .strip_prefix('\\')
                .is_some_and(|code| code.starts_with(|c: char| c.is_ascii_digit()))
            || rest.strip_prefix("&#").is_some_and(|code| !code.is_empty())
    };
    text.match_indices(['%', '\\', '&', 'U']).any(|(at, _)| is_coded(&text[at..]))
        || text.chars().any(is_not_seen)
}

/// Characters that take no room, combining joiners and marks of variants among them.
fn is_not_seen(c: char) -> bool {
    let joins = matches!(c, '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200c}'..='\u{200d}' | '\u{2065}' | '\u{fe00}'..='\u{fe0f}');
    joins || is_unseen(c) || turns_direction(c)
}

/// A number with more digits may be a serial number; sizes in bytes are not kept as texts.
const MAX_DIGITS: usize = 8;

fn is_address_word(word: &str) -> bool {
    word.split('/').any(is_address_piece)
}

fn is_address_piece(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != ':' && c != '[');
    let head = word.split(['%', ']']).next().unwrap_or(word).trim_start_matches('[');
    head.parse::<std::net::IpAddr>().is_ok()
        || is_dotted_quad(head)
        || has_quad_before_letters(word)
        || has_hyphened_quad(word)
        || has_volume_number(word)
        || has_hex_groups(word)
        || holds_address(word)
}

/// Whether an address stands in a word with marks or names beside it: "fd00::7:", "10.1.2.3#53", "fd00::7-fd00::9", "eth0:fd00::7".
fn holds_address(word: &str) -> bool {
    let is_of_address = |c: char| c.is_ascii_hexdigit() || ":.-".contains(c);
    let mut at = 0;
    for run in word.split(|c| !is_of_address(c)) {
        let end = at + run.len();
        // "ip-10.1.2.3:3260-iscsi": what separates it may belong to the run.
        let is_mark = |c: char| ":.-".contains(c);
        let is_bounded = (run.starts_with(is_mark) || !word[..at].ends_with(char::is_alphanumeric))
            && (run.ends_with(is_mark) || !word[end..].starts_with(char::is_alphanumeric));
        let core = run.trim_matches([':', '.', '-']);
        let parts = || run.split('-');
        let quads = parts().filter(|part| is_dotted_quad(part)).count();
        let is_version = quads == 1 && core.contains('-');
        if parts().any(ends_in_ipv6)
            || is_bounded && (has_hex_groups(core) || quads > 0 && !is_version)
        {
            return true;
        }
        at = end + word[end..].chars().next().map_or(0, char::len_utf8);
    }
    false
}

/// An address of version 6, perhaps behind a name and a colon, and before a colon.
fn ends_in_ipv6(text: &str) -> bool {
    let starts = std::iter::once(0).chain(text.match_indices(':').map(|(at, _)| at + 1));
    let mut all = starts.flat_map(|at| [Some(&text[at..]), text[at..].strip_suffix(':')]).flatten();
    all.any(|address| {
        let has_digit = address.bytes().any(|b| b.is_ascii_digit());
        has_digit && address.contains(':') && address.parse::<std::net::Ipv6Addr>().is_ok()
    })
}

/// Four numbers with dots between them, also with leading zeros and a port behind them.
fn is_dotted_quad(word: &str) -> bool {
    let parts: Vec<&str> = word.split(':').next().unwrap_or(word).split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    parts.len() == 4 && parts.iter().all(is_number)
}

/// "10.1.2.3x", "v10.1.2.3GB": letters behind the last number, perhaps a unit, make no version of an address.
fn has_quad_before_letters(word: &str) -> bool {
    word.split(|c: char| !c.is_alphanumeric() && c != '.').any(|piece| {
        let core = piece.trim_end_matches(char::is_alphabetic);
        core.len() < piece.len() && is_dotted_quad(core.trim_start_matches(char::is_alphabetic))
    })
}

/// Whether groups of a text make up a hardware address or a fingerprint, whatever stands between them.
fn holds_identity(text: &str) -> bool {
    let groups = text.split(|c: char| !c.is_alphanumeric()).filter(|group| !group.is_empty());
    !identity_groups(&groups.collect::<Vec<&str>>()).is_empty()
}

/// The groups, by number, that make up a hardware address or a fingerprint. A name may hang on the first and on the last of
/// them: "macb8-27-eb-3a-2b-1c", "b8:27:eb:3a:2b:1cs".
pub(super) fn identity_groups(groups: &[&str]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for stretch in groups.split(|group| !is_byte_group(group)) {
        let end = start + stretch.len();
        if let (Some(first), Some(last)) = (stretch.first(), stretch.last()) {
            let before = start.checked_sub(1).and_then(|at| groups.get(at));
            let before = before.and_then(|group| hangs_on_end(group, first.len()));
            let behind = groups.get(end).and_then(|group| hangs_on_start(group, last.len()));
            // "need 10 20 30 40 50", "the device b8 27 eb 3a 2b 1c": what ends in such letters alone is a word, unless the
            // address lacks it.
            let lacks_one = is_mixed(stretch) && !are_identity(stretch);
            let is_one = |group: &&str| lacks_one || group.contains(|c: char| c.is_ascii_digit());
            let (before, behind) = (before.filter(is_one), behind.filter(is_one));
            let from = start - usize::from(before.is_some());
            let until = end + usize::from(behind.is_some());
            let whole: Vec<&str> =
                before.into_iter().chain(stretch.iter().copied()).chain(behind).collect();
            if are_identity(&whole) {
                found.push(from..until);
            } else if are_identity(stretch) {
                found.push(start..end);
            }
        }
        start = end + 1;
    }
    found
}

/// The hexadecimal digits at the end of a group that begins with something else.
fn hangs_on_end(group: &str, digits: usize) -> Option<&str> {
    let from = group.len().checked_sub(digits)?;
    group.get(from..).filter(|end| from > 0 && is_byte_group(end))
}

/// The hexadecimal digits at the start of a group that ends with something else.
fn hangs_on_start(group: &str, digits: usize) -> Option<&str> {
    group.get(..digits).filter(|start| group.len() > digits && is_byte_group(start))
}

/// Two, four or six hexadecimal digits, as such addresses are cut.
fn is_byte_group(group: &str) -> bool {
    [2, 4, 6].contains(&group.len()) && group.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whether groups are six bytes or more and no list of numbers: with letters among the digits, or with a zero before one.
fn are_identity(groups: &[&str]) -> bool {
    const MIN_BYTES: usize = 6;
    let digits: usize = groups.iter().map(|group| group.len()).sum();
    let has_zero = || groups.iter().any(|group| group.starts_with('0'));
    let are_pairs = || groups.iter().all(|group| group.len() == 2);
    groups.len() > 1 && digits >= 2 * MIN_BYTES && (is_mixed(groups) || are_pairs() && has_zero())
}

/// Whether groups have letters among their digits.
fn is_mixed(groups: &[&str]) -> bool {
    let has = |is: fn(char) -> bool| groups.iter().any(|group| group.contains(is));
    has(|c| c.is_ascii_alphabetic()) && has(|c| c.is_ascii_digit())
}

/// Four short numbers or more with hyphens or underscores between them, as clouds name their machines: "ip-10-11-12-13",
/// "ec2-10-11-12-13".
fn has_hyphened_quad(word: &str) -> bool {
    ['-', '_'].into_iter().any(|mark| {
        word.split(|c: char| !c.is_ascii_digit() && c != mark).any(|run| {
            let parts: Vec<&str> = run.trim_matches(mark).split(mark).collect();
            parts.len() >= 4 && parts.iter().all(|part| (1..=3).contains(&part.len()))
        })
    })
}

/// The identity of a FAT filesystem, "5DF9-E225": twice four hexadecimal digits, with letters and figures among them.
fn has_volume_number(word: &str) -> bool {
    let words = word.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.into_iter().any(|word| {
        let groups: Vec<&str> = word.split('-').collect();
        let is_four =
            |group: &&str| group.len() == 4 && group.bytes().all(|b| b.is_ascii_hexdigit());
        let has = |pair: &[&str], is: fn(&u8) -> bool| {
            pair.iter().any(|group| group.as_bytes().iter().any(is))
        };
        groups.windows(2).any(|pair| {
            pair.iter().all(is_four)
                && has(pair, u8::is_ascii_digit)
                && has(pair, u8::is_ascii_alphabetic)
        })
    })
}

/// Three or more groups of two or more hexadecimal digits, with at least a letter among them, as hardware addresses, UUIDs
/// and IPv6 addresses have.
fn has_hex_groups(word: &str) -> bool {
    let groups: Vec<&str> = word.split([':', '-', '.']).collect();
    let is_hex = |group: &&str| {
        (1..=12).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let hex = groups.iter().filter(|group| is_hex(group)).count();
    let has_letter = word.bytes().any(|b| b.is_ascii_hexdigit() && b.is_ascii_alphabetic());
    let digits = word.bytes().filter(u8::is_ascii_hexdigit).count();
    (hex >= 5 && digits >= 10 || hex >= 3 && has_letter && digits >= 6) && hex == groups.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_numbers_times_and_versions() {
        for address in [
            "10.1.2.3",
            "010.1.2.3",
            "10.1.2.3:10809",
            "fd00::7",
            "[fd12:3456:789a::7]:1",
            "fe80::1%eth0",
            "b8:27:eb:3a:2b:1c",
            "B8-27-EB-3A-2B-1C",
            "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
            "pi@attic",
            "(192.168.1.1)",
            "192.168.1.0/24",
            "addr=10.9.8.7",
            "a 10.1.2.3",
            "/home/10.1.2.3/x",
            "/home/fd00::7/x",
            "/x/B8-27-EB-3A-2B-1C",
            "%2Fhome%2Falice",
            "%71%7A",
            "123456789012",
            "fd00::7:",
            "fd00::7#53",
            "10.1.2.3#53",
            "10.1.2.3-10.1.2.9",
            "fd00::7-fd00::9",
            "eth0:fd00::7:22",
            "b8:27:0b:3a:2b:1c:",
            "#b8:27:0b:3a:2b:1c#",
            "b8:27:0b:3a:2b:1c_x",
            "`fd00::7`",
            "ip-10-11-12-13.internal",
            "172-16-254-1",
            "ec2-172-16-254-1.example",
            "ip-10.1.2.3:3260-iscsi-iqn.x",
            "b8 27 0b-3a 2b_1c",
            "esp_001122-3a4455",
            "00 11 22 33 44 55",
            "192_168_1_5",
            "host_192_168_1_5_x",
            "192&#46;168",
            "192\\x2e168",
            "5DF9-E225",
            "dev-disk-by-uuid-0018-FFDB",
            "/srv/12ab-3456/x",
            "192\\u002e168",
            "192\\056168",
            "%252e",
            "192\u{200b}.168",
            "m\u{ad}ax",
            "_data\u{2028}x",
            "MACb8-27-eb-3a-2b-1c",
            "xB8:27:EB:3A:2B:1C",
            "mb8_27_eb_3a_2b_1c",
            "B8-27-EB-3A-2B-1Cs",
            "gb8.27.eb.3a.2b.1ch",
            "xB8 27 EB 3A 2B 1C",
            "x00-11-22-33-44-55",
            "12xB8-27-EB-3A-2B-1C",
            "xb827.eb3a.2b1c",
            "10.76.27.81x",
            "10.76.27.81GB",
            "a10.76.27.81KiB, gone",
        ] {
            assert!(is_address(address), "{address}");
        }
        for plain in [
            "6.12.47",
            "zstd:3",
            "12:30",
            "179:2",
            "read/write",
            "UHS-I",
            "7.2",
            "1-1.3",
            "±12 %",
            "50%",
            "v1.2.3.4",
            "1.2.3.4-5",
            "platform-fd500000.pcie-pci-0000:01:00.0-usb-0:1.3:1.0-scsi-0:0:0:0",
            "usb-0000:01:00.0-1.3",
            "std::fd::x2",
            "00:58:12",
            "2026-11-29 23:07:38",
            "10 20 30 40 50 60",
            "randread-4-16-64",
            "1234-5678",
            "WDC WDS500G2B0A-00SM50",
            "feed-back",
            "need 10 20 30 40 50 added",
        ] {
            assert!(!is_address(plain), "{plain}");
        }
    }
}
