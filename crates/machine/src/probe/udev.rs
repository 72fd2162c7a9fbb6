//! The udev database: what udev found out as root and leaves world-readable.
//!
//! One file for each block device, `/run/udev/data/bMAJOR:MINOR`, with lines `E:NAME=value`,
//! and `S:LINK` for each link below `/dev`.

use std::collections::BTreeMap;
use std::path::Path;

use rubus_host::{Files, ReadError};
use rubus_vocabulary::fact::Fact;

/// What udev knows of one device.
#[derive(Clone, Debug)]
pub(crate) struct Udev {
    path: String,
    properties: Result<BTreeMap<String, String>, ReadError>,
    links: Vec<String>,
}

/// Links that repeat what the properties say.
const REPEATED: [&str; 4] = [
    "/dev/disk/by-label/",
    "/dev/disk/by-partlabel/",
    "/dev/disk/by-partuuid/",
    "/dev/disk/by-uuid/",
];

impl Udev {
    /// Reads the entry of a block device by its number ("179:2").
    pub(crate) fn read(files: &dyn Files, major_minor: &str) -> Udev {
        let path = format!("/run/udev/data/b{major_minor}");
        let text = files.text(Path::new(&path));
        let links = text.as_deref().map(links).unwrap_or_default();
        Udev { path, properties: text.map(|text| parse(&text)), links }
    }

    /// Paths below `/dev` that lead to the device, without those that repeat a label or an identifier.
    pub(crate) fn links(&self) -> Vec<String> {
        self.links.clone()
    }

    /// Whether udev has an entry for the device at all.
    pub(crate) fn is_there(&self) -> bool {
        self.properties.is_ok()
    }

    /// A property, if it is there and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let value = self.properties.as_ref().ok()?.get(name)?.trim();
        (!value.is_empty()).then_some(value)
    }

    /// A property as a fact.
    pub(crate) fn fact(&self, name: &str) -> Fact<String> {
        match (&self.properties, self.get(name)) {
            (_, Some(value)) => Fact::known(value.to_string(), format!("{} {name}", self.path)),
            (Ok(_), None) => Fact::unknown(format!("udev has no {name} for it"), &self.path),
            (Err(error), None) => Fact::unknown(error.to_string(), &self.path),
        }
    }
}

fn parse(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("E:")?.split_once('='))
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

fn links(text: &str) -> Vec<String> {
    let links = text.lines().filter_map(|line| line.strip_prefix("S:"));
    let mut links: Vec<String> = links.map(|link| format!("/dev/{link}")).collect();
    links.retain(|link| !REPEATED.iter().any(|directory| link.starts_with(directory)));
    links.sort();
    links
}

/// Undoes udev's escapes in names that it makes files of: `\x20` is a space. What is not such an
/// escape stays.
pub(crate) fn unescape(text: &str) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("\\x") {
        out.extend_from_slice(&rest.as_bytes()[..start]);
        let digits = rest.get(start + 2..start + 4);
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &rest[start + 4..];
            }
            None => {
                out.extend_from_slice(b"\\x");
                rest = &rest[start + 2..];
            }
        }
    }
    out.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    #[test]
    fn properties_are_facts_with_their_place() {
        let files = FakeFiles::new().file(
            "/run/udev/data/b8:1",
            "S:disk/by-uuid/a\nI:123\nE:ID_FS_TYPE=ext4\nE:ID_FS_LABEL=\nE:X=a=b\nG:systemd\n",
        );
        let udev = Udev::read(&files, "8:1");
        assert_eq!(
            udev.fact("ID_FS_TYPE"),
            Fact::known("ext4".into(), "/run/udev/data/b8:1 ID_FS_TYPE")
        );
        assert_eq!(udev.get("ID_FS_LABEL"), None);
        assert_eq!(udev.get("X"), Some("a=b"));
        assert_eq!(udev.fact("ID_SERIAL").reason(), Some("udev has no ID_SERIAL for it"));
        let none = Udev::read(&files, "8:2");
        assert!(!none.is_there());
        assert_eq!(none.fact("X").reason(), Some("no such file"));
    }

    #[test]
    fn links_are_paths_without_those_that_repeat_an_identifier() {
        let files = FakeFiles::new().file(
            "/run/udev/data/b8:1",
            "S:disk/by-uuid/a\nS:mapper/data\nS:disk/by-id/usb-x-part1\nE:ID_FS_TYPE=ext4\n",
        );
        let links = Udev::read(&files, "8:1").links();
        assert_eq!(links, ["/dev/disk/by-id/usb-x-part1", "/dev/mapper/data"]);
        assert!(Udev::read(&files, "8:2").links().is_empty());
    }

    #[test]
    fn escapes_in_labels_are_undone() {
        assert_eq!(unescape(r"My\x20Disk"), "My Disk");
        assert_eq!(unescape(r"a\xc3\xa4"), "aä");
        assert_eq!(unescape(r"a\xzz\x"), r"a\xzz\x");
    }
}
