//! `/etc/crypttab`: encrypted volumes that are opened at each start.
//!
//! Format: crypttab(5): name, source, key file and options between blanks, `#` begins a comment line.

use crate::volume::{Name, NamedVolume};

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
    /// The key file; empty where a line names none.
    pub key: &'a str,
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
            let key = columns.next().filter(|key| !matches!(*key, "none" | "-"));
            let options = columns.next().unwrap_or_default();
            Some(CryptEntry { name, source, key: key.unwrap_or_default(), options })
        });
        entries.collect()
    }

    /// These volumes, with those that are opened of them.
    pub fn with_opened(&self, volumes: &[NamedVolume]) -> Vec<NamedVolume> {
        let mut all = volumes.to_vec();
        for entry in self.entries() {
            let is_there = !entry.volume().resolve(volumes).is_empty();
            let path = entry.path();
            let is_known = all.iter().any(|one| one.path == path || one.links.contains(&path));
            if is_there && !is_known {
                all.push(NamedVolume { path, ..NamedVolume::default() });
            }
        }
        all
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

    /// Where the key is looked for, without the device that it may be on.
    pub fn key_file(&self) -> String {
        match self.key.split(':').next() {
            Some(path) if !path.is_empty() => path.into(),
            _ => format!("/etc/cryptsetup-keys.d/{}.key", self.name),
        }
    }

    /// Whether the key comes from a chip, a token, a program, a device or a volume of its own.
    pub fn has_other_key(&self) -> bool {
        const OPTIONS: [&str; 5] =
            ["fido2-device=", "keyscript=", "pkcs11-uri=", "swap", "tpm2-device="];
        let is_made = ["/dev/", "/proc/", "/run/"].iter().any(|place| self.key.starts_with(place));
        let mut options = self.options.split(',');
        let is_option = options.any(|option| OPTIONS.iter().any(|known| option.starts_with(known)));
        is_made || is_option || self.key.contains(':')
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

    #[test]
    fn a_key_is_a_file_or_comes_from_elsewhere() {
        let text = "a UUID=1 /etc/keys/a.key luks\nb UUID=2 none luks\nc UUID=3\nd UUID=4 /dev/urandom swap\n\
                    e UUID=5 - tpm2-device=auto\nf UUID=6 /f.key:LABEL=keys luks\n";
        let entries = Crypttab::parse(text).entries();
        let files: Vec<(String, bool)> =
            entries.iter().map(|one| (one.key_file(), one.has_other_key())).collect();
        let own = |name: &str| format!("/etc/cryptsetup-keys.d/{name}.key");
        assert_eq!(
            files,
            [
                ("/etc/keys/a.key".to_string(), false),
                (own("b"), false),
                (own("c"), false),
                ("/dev/urandom".into(), true),
                (own("e"), true),
                ("/f.key".into(), true),
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
