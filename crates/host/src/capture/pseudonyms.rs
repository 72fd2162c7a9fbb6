//! Pseudonyms in texts that are no capture: records of runs, pages.

use std::collections::BTreeSet;

use super::redact::Redactor;
use super::secrets::{self, Secrets};
use crate::files::Files;

/// What identifies one machine, collected text by text. Replaces each by the pseudonym that a capture with the same salt
/// has for it.
#[derive(Debug)]
pub struct Identifiers {
    secrets: Secrets,
}

impl Identifiers {
    /// None yet. `salt` keeps others from guessing what a pseudonym stands for; see [`salt`].
    pub fn new(salt: &[u8]) -> Self {
        Identifiers { secrets: Secrets { salt: salt.to_vec(), ..Secrets::default() } }
    }

    /// A serial number.
    pub fn add_serial(&mut self, text: &str) {
        self.secrets.add_board_serial(text);
        self.secrets.add_word(text);
    }

    /// A UUID, a world-wide name or a partition's id.
    pub fn add_id(&mut self, text: &str) {
        self.secrets.add_id(text);
    }

    /// Whatever is a UUID or a hardware address by its shape.
    pub fn add_shapes(&mut self, text: &str) {
        self.secrets.add_shapes(text, &BTreeSet::new());
    }

    /// That is all.
    pub fn into_replacer(self) -> Replacer {
        Replacer(Redactor::new(self.secrets))
    }
}

/// Replaces what was collected.
pub struct Replacer(Redactor);

impl Replacer {
    /// A text in which short identifiers may be ordinary words or numbers, which stay.
    pub fn text(&self, text: &str) -> String {
        self.0.text(text)
    }

    /// A text that is a serial number or another identifier.
    pub fn identifier(&self, text: &str) -> String {
        self.0.identifier(text)
    }
}

/// The salt of this machine's pseudonyms: the same each time where it has a machine id, else random.
pub fn salt(files: &dyn Files) -> Vec<u8> {
    secrets::salt(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serials_ids_and_addresses_are_replaced_alike_and_versions_stay() {
        let mut found = Identifiers::new(b"salt");
        found.add_serial("S4EVNX0R123456");
        found.add_serial("0000000010a2b3c4");
        found.add_shapes(
            "root=UUID=0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9 smsc95xx.macaddr=B8:27:EB:12:34:56",
        );
        found.add_id("8a676486-02");
        let replacer = found.into_replacer();
        let text =
            "S4EVNX0R123456 on PARTUUID=8a676486-02, B8:27:EB:12:34:56, Linux 6.12.47, 10a2b3c4";
        let said = replacer.text(text);
        for secret in ["S4EVNX0R123456", "8a676486", "12:34:56", "10a2b3c4"] {
            assert!(!said.contains(secret), "{secret}: {said}");
        }
        assert!(said.contains("Linux 6.12.47") && said.contains("-02, B8:27:EB:"), "{said}");
        assert_eq!(said, replacer.text(text));
        assert_eq!(said.len(), text.len());
        assert!(said.starts_with(&replacer.identifier("S4EVNX0R123456")));
    }

    #[test]
    fn a_plain_word_is_replaced_only_where_it_is_a_serial() {
        let mut found = Identifiers::new(b"salt");
        found.add_serial("backup");
        let replacer = found.into_replacer();
        assert_eq!(replacer.text("/mnt/backup"), "/mnt/backup");
        assert_ne!(replacer.identifier("backup"), "backup");
    }
}
