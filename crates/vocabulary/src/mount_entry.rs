//! One line of a table of mounts (fstab(5)).

use serde::{Deserialize, Serialize};

/// One line that mounts something, escapes undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// What: "PARTUUID=8a676486-02", "/dev/sda1", "tmpfs".
    pub source: String,
    /// Where: "/", "/boot/firmware"; "none" or "swap" for a swap area.
    pub target: String,
    /// "ext4", "swap", "auto".
    pub filesystem: String,
    /// With commas between them; "defaults" for none.
    pub options: String,
    /// Whether dump(8) saves it.
    pub dump: u32,
    /// In which round fsck(8) looks at it, 0 for never.
    pub pass: u32,
}

impl Entry {
    /// A line with the usual last columns: no dump, no check.
    pub fn new(source: &str, target: &str, filesystem: &str, options: &str) -> Self {
        Entry {
            source: source.into(),
            target: target.into(),
            filesystem: filesystem.into(),
            options: options.into(),
            dump: 0,
            pass: 0,
        }
    }

    /// The same, checked in round `pass`.
    pub fn checked_in(mut self, pass: u32) -> Self {
        self.pass = pass;
        self
    }

    /// Whether an option is among those of the line.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.split(',').any(|option| option == name)
    }

    /// Whether systemd mounts it by the first look, under either name of the option. Source: systemd.mount(5), and
    /// systemd's src/shared/fstab-util.h for the older one.
    pub fn is_on_demand(&self) -> bool {
        self.has_option("x-systemd.automount") || self.has_option("comment=systemd.automount")
    }

    /// Whether no start ends without it: a mount of the network belongs to a target that nothing requires. Source:
    /// systemd.mount(5), systemd-fstab-generator(8).
    pub fn is_late(&self) -> bool {
        self.has_option("_netdev") || self.is_on_demand()
    }

    /// The value of an option ("subvol" → "@").
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut options = self.options.split(',').rev();
        options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether it is a swap area.
    pub fn is_swap(&self) -> bool {
        self.filesystem == "swap"
    }
}

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

    proptest::proptest! {
        #[test]
        fn nothing_makes_unescape_panic(text in ".{0,64}") {
            unescape_octal(&text);
        }
    }
}
