//! Versions of kernels: what in them could be an address.

/// How many numbers a version begins with at most ("2.6.32.71").
const MAX_NUMBERS: usize = 4;

/// The parts of a kernel's release that are more numbers than a version has: "192.168.1.5" of "6.192.168.1.5" and of
/// "6.1.0-192.168.1.5".
pub fn addresses_in(release: &str) -> Vec<&str> {
    let mut segments = release.split(['-', '+', '_', '~']);
    let beyond = beyond_version(segments.next().unwrap_or_default());
    let dotted = segments.filter_map(|segment| four_bytes(segment, '.'));
    let joined = ['-', '_'].into_iter().filter_map(|mark| four_bytes(release, mark));
    beyond.into_iter().chain(dotted).chain(joined).collect()
}

/// The four numbers that a release of Microsoft's kernel for WSL begins with, and that look like an address: "5.15.146.1" of
/// "5.15.146.1-microsoft-standard-WSL2".
pub fn four_numbers(release: &str) -> Option<&str> {
    let (numbers, _) = release.split_once("-microsoft-standard")?;
    let parts: Vec<&str> = numbers.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_version = parts.len() == MAX_NUMBERS
        && parts.iter().all(is_number)
        && beyond_version(numbers).is_none();
    if is_version { Some(numbers) } else { None }
}

/// What cannot be a version: of its first number two digits are known, of its second too.
fn beyond_version(version: &str) -> Option<&str> {
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let numbers: Vec<&str> = version.split('.').take_while(is_number).collect();
    let is_long = |at: usize| numbers.get(at).is_some_and(|number| number.len() > 2);
    if is_long(0) {
        Some(version)
    } else if is_long(1) || numbers.len() > MAX_NUMBERS {
        version.split_once('.').map(|(_, rest)| rest)
    } else {
        None
    }
}

/// From four numbers of a byte each, with a mark between them, to the end.
fn four_bytes(text: &str, mark: char) -> Option<&str> {
    let parts: Vec<&str> = text.split(mark).collect();
    let are_bytes = |four: &[&str]| four.iter().all(|part| part.parse::<u8>().is_ok());
    let at = parts.windows(4).position(are_bytes)?;
    let from: usize = parts[..at].iter().map(|part| part.len() + mark.len_utf8()).sum();
    text.get(from..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_seen_in_a_release_and_versions_are_none() {
        for (release, address) in [
            ("6.192.168.1.5", "192.168.1.5"),
            ("6.12.168.1.5-v8", "12.168.1.5"),
            ("6.1.0-192.168.1.5", "192.168.1.5"),
            ("6.1.0-ip-10-1-2-3", "10-1-2-3"),
            ("6.1.0_10_1_2_3", "10_1_2_3"),
            ("387.8482", "387.8482"),
        ] {
            assert_eq!(addresses_in(release), [address], "{release}");
        }
        for release in [
            "6.12.47+rpt-rpi-v8",
            "5.15.0-1034-raspi",
            "4.18.0-553.16.1.el8_10.x86_64",
            "2.6.32.71",
            "5.10.110",
            "6.1.0-13-amd64",
            "3.10.0-1160.el7",
            "",
        ] {
            assert!(addresses_in(release).is_empty(), "{release}");
        }
    }

    #[test]
    fn four_numbers_are_a_version_where_microsoft_says_so() {
        for release in ["5.15.146.1-microsoft-standard-WSL2", "6.6.87.2-microsoft-standard-WSL2+"] {
            let (numbers, _) = release.split_once('-').unwrap();
            assert_eq!(four_numbers(release), Some(numbers), "{release}");
        }
        for release in [
            "4.19.128-microsoft-standard",
            "5.15.146.1-qz",
            "5.15.146.1",
            "192.168.1.5-microsoft-standard-WSL2",
            "5.15.qz.1-microsoft-standard-WSL2",
        ] {
            assert_eq!(four_numbers(release), None, "{release}");
        }
    }
}
