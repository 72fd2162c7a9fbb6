//! Names as tables of mounts, udev, units and addresses write them: with escapes for what would separate.

/// A byte of a name, and how it is written.
pub(super) struct Unit<'a> {
    pub(super) byte: u8,
    written: &'a [u8],
}

impl Unit<'_> {
    /// Another byte in the same writing.
    pub(super) fn written_as(&self, byte: u8) -> Vec<u8> {
        match self.written {
            _ if byte == self.byte => self.written.to_vec(),
            [b'\\', b'x', ..] => format!("\\x{byte:02x}").into_bytes(),
            [b'\\', _, ..] => format!("\\{byte:03o}").into_bytes(),
            [b'%', _, ..] => format!("%{byte:02X}").into_bytes(),
            _ => vec![byte],
        }
    }
}

/// The bytes that a text stands for: `\040` as /proc writes them, `\x20` as udev and units do, `%20` as addresses do.
pub(super) fn units(text: &[u8]) -> Vec<Unit<'_>> {
    let mut all = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.first() {
        let (length, byte) = escape(rest).unwrap_or((1, *first));
        let (written, behind) = rest.split_at(length);
        all.push(Unit { byte, written });
        rest = behind;
    }
    all
}

/// The length of an escape that stands at the beginning, and its byte.
fn escape(text: &[u8]) -> Option<(usize, u8)> {
    let number = |from: usize, to: usize, radix: u32| {
        let digits = std::str::from_utf8(text.get(from..to)?).ok()?;
        let is_plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
        Some((to, is_plain.then(|| u8::from_str_radix(digits, radix).ok())??))
    };
    match text {
        [b'\\', b'x', ..] => number(2, 4, 16),
        [b'\\', ..] => number(1, 4, 8),
        [b'%', ..] => number(1, 3, 16),
        _ => None,
    }
}

/// The name that is written so.
pub(super) fn decoded(text: &str) -> String {
    let bytes: Vec<u8> = units(text.as_bytes()).iter().map(|unit| unit.byte).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How else a name is written.
pub(super) fn forms(name: &str) -> Vec<String> {
    let with = |stays: &dyn Fn(u8) -> bool, write: &dyn Fn(u8) -> String| -> String {
        let bytes = name
            .bytes()
            .flat_map(|byte| if stays(byte) { vec![byte] } else { write(byte).into_bytes() });
        String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
    };
    let is_plain = |byte: u8, marks: &[u8]| byte.is_ascii_alphanumeric() || marks.contains(&byte);
    let hex = |byte: u8| format!("\\x{byte:02x}");
    let mut forms = vec![
        // Source: fs/proc_namespace.c, mangle().
        with(&|b| !b" \t\n\\#".contains(&b), &|b| format!("\\{b:03o}")),
        // Source: systemd, udev-util.c, encode_devnode_name(); whole letters beyond ASCII stay.
        with(&|b| !b.is_ascii() || is_plain(b, b"#+-.:=@_"), &hex),
        // Source: systemd, unit-name.c, unit_name_escape().
        with(&|b| is_plain(b, b":_."), &hex),
        // Source: RFC 3986, section 2.3.
        with(&|b| is_plain(b, b"-._~"), &|b| format!("%{b:02X}")),
    ];
    forms.retain(|form| form != name);
    forms.sort_unstable();
    forms.dedup();
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_in_each_of_its_writings() {
        for name in ["Qz Root", "100%-name", "a\\b", "Jürgen-x", "qz#1", "plain"] {
            for form in forms(name) {
                assert_eq!(decoded(&form), name, "{form}");
            }
        }
        assert!(forms("plain").is_empty());
        assert_eq!(forms("a b"), ["a%20b", "a\\040b", "a\\x20b"]);
        for same in ["50%", "\\", "\\x2", "\\9zz", "%zz", "\\x+1", "\\777"] {
            assert_eq!(decoded(same), same);
        }
    }

    #[test]
    fn another_byte_is_written_alike() {
        let text = "\\040\\x20%20 ";
        let written = units(text.as_bytes()).into_iter().flat_map(|unit| unit.written_as(b'A'));
        assert_eq!(String::from_utf8_lossy(&written.collect::<Vec<u8>>()), "\\101\\x41%41A");
    }
}
