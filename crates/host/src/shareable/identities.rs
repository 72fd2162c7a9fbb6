//! What addresses look like, so that no word that is one passes for a number or a time.

/// Whether a text is, or holds, an Internet or hardware address, a UUID, a name with an `@`, or a number so long that it may be
/// a serial number.
pub fn is_address(text: &str) -> bool {
    text.contains('@')
        || has_escape(text)
        || text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > MAX_DIGITS)
        || text.split(|c: char| c.is_whitespace() || ",=;()'\"<>|".contains(c)).any(is_address_word)
}

/// "%2F": what is written so could be anything.
fn has_escape(text: &str) -> bool {
    text.as_bytes().windows(3).any(|three| {
        three[0] == b'%' && three[1].is_ascii_hexdigit() && three[2].is_ascii_hexdigit()
    })
}

/// A number with more digits may be a serial number; sizes in bytes are not kept as texts.
const MAX_DIGITS: usize = 8;

fn is_address_word(word: &str) -> bool {
    word.split('/').any(is_address_piece)
}

fn is_address_piece(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != ':' && c != '[');
    let head = word.split(['%', ']']).next().unwrap_or(word).trim_start_matches('[');
    head.parse::<std::net::IpAddr>().is_ok() || is_dotted_quad(head) || has_hex_groups(word)
}

/// Four numbers with dots between them, also with leading zeros and a port behind them.
fn is_dotted_quad(word: &str) -> bool {
    let parts: Vec<&str> = word.split(':').next().unwrap_or(word).split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    parts.len() == 4 && parts.iter().all(is_number)
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
        ] {
            assert!(!is_address(plain), "{plain}");
        }
    }
}
