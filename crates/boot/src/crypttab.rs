//! `/etc/crypttab`: encrypted volumes that are opened at each start.
//!
//! Format: crypttab(5): name, source, key file and options between blanks, `#` begins a comment line.

use crate::volume::Name;

/// The text of `/etc/crypttab`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crypttab<'a> {
    text: &'a str,
}

/// One volume that is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CryptEntry<'a> {
    /// Its name below `/dev/mapper`.
    pub name: &'a str,
    /// What is opened, as it is written.
    pub source: &'a str,
    options: &'a str,
}

impl<'a> Crypttab<'a> {
    /// Any text. Lines that are no entries are passed over.
    pub fn parse(text: &'a str) -> Self {
        Crypttab { text }
    }

    /// All entries in order.
    pub fn entries(&self) -> Vec<CryptEntry<'a>> {
        let lines = self.text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let entries = lines.filter_map(|line| {
            let mut columns = line.split_ascii_whitespace();
            let (name, source) = (columns.next()?, columns.next()?);
            Some(CryptEntry { name, source, options: columns.nth(1).unwrap_or_default() })
        });
        entries.collect()
    }
}

impl CryptEntry<'_> {
    /// How the source is named.
    pub fn volume(&self) -> Name {
        Name::parse(self.source)
    }

    /// The path of the opened volume.
    pub fn path(&self) -> String {
        format!("/dev/mapper/{}", self.name)
    }

    /// Whether a start waits for the source.
    pub fn is_waited_for(&self) -> bool {
        !self.options.split(',').any(|option| matches!(option, "noauto" | "nofail"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_names_sources_and_options() {
        let text = "# <name> <source> <key> <options>\n\
                    data UUID=0d0d0d0d-1111 /root/data.key luks\n\
                    swap\t/dev/disk/by-partuuid/4f1c-01 /dev/urandom swap,nofail\n\n\
                    lonely\n\
                    bare /dev/sda2\n";
        let entries = Crypttab::parse(text).entries();
        let shown: Vec<(String, Name, bool)> =
            entries.iter().map(|one| (one.path(), one.volume(), one.is_waited_for())).collect();
        let uuid = Name::Uuid("0d0d0d0d-1111".into());
        let partuuid = Name::PartUuid("4f1c-01".into());
        let path = Name::Path("/dev/sda2".into());
        assert_eq!(
            shown,
            [
                ("/dev/mapper/data".to_string(), uuid, true),
                ("/dev/mapper/swap".into(), partuuid, false),
                ("/dev/mapper/bare".into(), path, true),
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in "[a-z# \\t\\n,=/\u{e4}]{0,60}") {
            Crypttab::parse(&text).entries();
        }
    }
}
