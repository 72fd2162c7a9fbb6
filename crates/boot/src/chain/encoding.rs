//! How a text of the boot partition is written, and what the firmware makes of it.

/// An encoding other than UTF-8 without a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-16: every other byte is zero, and the firmware finds no word in it.
    Utf16,
    /// UTF-8 with a mark before the first letter, which becomes part of the first word.
    Utf8WithMark,
    /// Bytes that are not UTF-8, as of an accent in Latin-1; in which line, from 1.
    NotUtf8 { line: usize },
    /// Larger than what is read of a text.
    TooLarge,
}

impl Encoding {
    /// Reads a text: its letters, those that are no UTF-8 replaced, and its encoding where it is another.
    pub fn read(bytes: &[u8]) -> (String, Option<Encoding>) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            // Not decoded: the firmware does not either.
            return (text, Some(Encoding::Utf16));
        }
        if std::str::from_utf8(bytes).is_ok() {
            let encoding = text.starts_with('\u{feff}').then_some(Encoding::Utf8WithMark);
            return (text, encoding);
        }
        let is_wrong = |line: &[u8]| std::str::from_utf8(line).is_err();
        let at = bytes.split(|byte| *byte == b'\n').position(is_wrong);
        (text, Some(Encoding::NotUtf8 { line: at.map_or(1, |at| at + 1) }))
    }

    /// For a sentence about a file: "is not UTF-8 (line 3)".
    pub fn words(self) -> String {
        match self {
            Encoding::Utf16 => "is UTF-16, which the firmware does not read".into(),
            Encoding::Utf8WithMark => "begins with a byte order mark".into(),
            Encoding::NotUtf8 { line } => format!("is not UTF-8 (line {line})"),
            Encoding::TooLarge => "is too large for a text of the firmware".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_encoding_is_known() {
        let of = |bytes: &[u8]| Encoding::read(bytes).1;
        assert_eq!(of(b"root=/dev/sda2\n"), None);
        assert_eq!(of("caf\u{e9}".as_bytes()), None);
        assert_eq!(of(b"a\nb\n# caf\xe9\n"), Some(Encoding::NotUtf8 { line: 3 }));
        assert_eq!(of(b"\xff\xfer\0o\0"), Some(Encoding::Utf16));
        assert_eq!(of(b"\xef\xbb\xbfroot=1"), Some(Encoding::Utf8WithMark));
    }
}
