//! Small parsers for the kernel's own text files that more than one room reads.
//!
//! One file per format, each a pure function from text to values. What only one room reads is
//! parsed in that room.

pub mod btrfs;
pub mod mountinfo;
pub mod route;
pub mod stat;
pub mod swaps;

/// Undoes the escapes that the kernel uses for white space and backslashes in names: `\040` is a
/// space. A backslash that does not begin three octal digits stays as it is.
pub fn unescape_octal(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes.get(at + 1..at + 4).and_then(octal_byte) {
            Some(byte) if bytes[at] == b'\\' => {
                out.push(byte);
                at += 4;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn octal_byte(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    if !digits.iter().all(|digit| (b'0'..=b'7').contains(digit)) {
        return None;
    }
    u8::from_str_radix(text, 8).ok()
}

/// A device number as the kernel prints it, `major:minor`.
pub fn major_minor(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_and_lone_backslashes_stay() {
        assert_eq!(unescape_octal(r"/mnt/my\040disk"), "/mnt/my disk");
        assert_eq!(unescape_octal(r"a\134b\011c"), "a\\b\tc");
        assert_eq!(unescape_octal(r"a\b\04"), r"a\b\04");
        assert_eq!(unescape_octal(r"\777"), r"\777");
        assert_eq!(unescape_octal("\\303\\244"), "ä");
    }

    #[test]
    fn device_numbers_are_two_numbers() {
        assert_eq!(major_minor("179:2\n"), Some((179, 2)));
        assert_eq!(major_minor("179"), None);
        assert_eq!(major_minor("a:b"), None);
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_unescape_panic(text in ".{0,64}") {
            unescape_octal(&text);
        }
    }
}
