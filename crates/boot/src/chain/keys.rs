//! Encrypted volumes that a start cannot open by itself.
//!
//! Source: crypttab(5); systemd-cryptsetup(8): without its key, it asks for a password.

use std::path::Path;

use super::ChainFacts;
use crate::crypttab::{CryptEntry, Crypttab};
use crate::fstab::{Entry, Fstab};
use crate::volume::Name;

/// What has to come from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lacks {
    Password,
    /// A key by its path, which is not there.
    Key(String),
}

/// What a volume that crypttab opens under this path lacks, as far as is known.
pub(super) fn lacks(facts: &ChainFacts, path: &str) -> Option<Lacks> {
    let table = facts.root.crypttab.as_deref()?;
    let entry = Crypttab::parse(table).entries().into_iter().find(|one| one.path() == path)?;
    if entry.has_other_key() {
        return None;
    }
    let key = entry.key_file();
    let is_gone = match place_of(facts, &key) {
        Some(place) => is_missing(facts, &place),
        None => facts.root.absent.contains(&key),
    };
    is_gone.then(|| if names_key(&entry) { Lacks::Key(key) } else { Lacks::Password })
}

fn names_key(entry: &CryptEntry<'_>) -> bool {
    !entry.key.is_empty()
}

/// The line of the mount that a path is below, where that is not the root.
fn place_of(facts: &ChainFacts, path: &str) -> Option<Entry> {
    let table = Fstab::parse(facts.root.fstab.as_deref()?);
    let mut entries = table.entries();
    entries.retain(|entry| entry.target != "/" && Path::new(path).starts_with(&entry.target));
    entries.into_iter().max_by_key(|entry| entry.target.len())
}

/// Of a card alone it is not known which disks are beside it in the board.
fn is_missing(facts: &ChainFacts, line: &Entry) -> bool {
    let name = Name::of(line);
    facts.are_all_volumes
        && name.is_volume()
        && facts.are_links_seen(&name)
        && name.resolve(&facts.volumes).is_empty()
}
