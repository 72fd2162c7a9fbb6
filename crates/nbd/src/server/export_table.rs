//! The exports of a server: a list of names, each with what is behind it.

use std::sync::Arc;

use rubus_host::net::listening::Caller;

use super::disk::{Abilities, Disk};
use super::handshake::{Export, Exports, NoExport};
use super::listener::{Opened, Store};
use crate::identity::Identity;
use crate::peer::PeerCertificate;
use crate::wire::{BlockSizes, DEFAULT_MAX_BLOCK_BYTES, MAX_STRING_BYTES, Refusal, cut_to};

/// What is behind a name.
pub trait Source: Send + Sync {
    fn size_bytes(&self) -> u64;

    /// What can be done with it.
    fn abilities(&self) -> Abilities;

    /// Which disk it is, as clients are told; `None` if that is unknown before it is opened.
    fn identity(&self) -> Option<Identity>;

    /// Whether it can be opened, as far as is known without opening it.
    ///
    /// # Errors
    /// Why not, in words for clients.
    fn admits(&self) -> Result<(), String>;

    /// Opens it for a client.
    ///
    /// # Errors
    /// In words, for the log.
    fn open(&self, caller: &Caller) -> Result<Opened, String>;
}

/// One disk for all clients.
pub struct OneDisk {
    pub disk: Arc<dyn Disk>,
    /// Which one it is.
    pub identity: Option<Identity>,
    /// Every write is durable before it is answered.
    pub sync: bool,
}

impl Source for OneDisk {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn abilities(&self) -> Abilities {
        self.disk.abilities()
    }

    fn identity(&self) -> Option<Identity> {
        let identity = self.identity?;
        Some(Identity { boot: self.disk.lost_writes().unwrap_or(identity.boot), ..identity })
    }

    fn admits(&self) -> Result<(), String> {
        self.disk.admits().map_err(|error| error.to_string())
    }

    fn open(&self, _: &Caller) -> Result<Opened, String> {
        self.admits()?;
        Ok(Opened { disk: Arc::clone(&self.disk), sync: self.sync })
    }
}

/// A name with what is behind it.
pub struct Offered {
    pub name: String,
    /// Words about it, for people.
    pub words: String,
    /// What it is.
    pub source: Box<dyn Source>,
}

/// All exports of a server.
pub struct ExportTable {
    all: Vec<Offered>,
}

/// The sizes of requests: any that fits a byte, best whole pages.
pub(super) const BLOCK_SIZES: BlockSizes =
    BlockSizes { min_bytes: 1, preferred_bytes: 4096, max_bytes: DEFAULT_MAX_BLOCK_BYTES };

impl ExportTable {
    /// The exports. If there is only one, it is also what a client gets that names none.
    pub fn new(all: Vec<Offered>) -> ExportTable {
        ExportTable { all }
    }

    fn named(&self, name: &str) -> Option<&Offered> {
        match (&self.all[..], name) {
            ([only], "") => Some(only),
            (all, name) => all.iter().find(|offered| offered.name == name),
        }
    }
}

impl Exports for ExportTable {
    fn list(&self) -> Vec<(String, String)> {
        let each = self.all.iter();
        each.map(|offered| (offered.name.clone(), describe(&offered.words, None))).collect()
    }

    fn find(&self, name: &str) -> Result<Export, NoExport> {
        let Some(offered) = self.named(name) else {
            return Err(NoExport {
                why: Refusal::Unknown,
                words: match name {
                    "" => "the server has several exports, and none without a name".into(),
                    _ => "the server has no export of that name".into(),
                },
            });
        };
        let admitted = offered.source.admits();
        admitted.map_err(|words| NoExport { why: Refusal::Policy, words })?;
        Ok(Export {
            name: offered.name.clone(),
            size_bytes: offered.source.size_bytes(),
            abilities: offered.source.abilities(),
            block_sizes: BLOCK_SIZES,
            description: describe(&offered.words, offered.source.identity()),
        })
    }

    /// They belong to no client.
    fn admits(&self, _: &str, _: Option<&PeerCertificate>) -> Result<(), NoExport> {
        Ok(())
    }
}

impl Store for ExportTable {
    fn exports(&self) -> &dyn Exports {
        self
    }

    fn open(&self, name: &str, caller: &Caller) -> Result<Opened, String> {
        match self.named(name) {
            Some(offered) => offered.source.open(caller),
            None => Err(format!("there is no export '{name}'")),
        }
    }
}

/// Words and identity together, no longer than the protocol allows.
pub(super) fn describe(words: &str, identity: Option<Identity>) -> String {
    let end = identity.map(|identity| identity.to_string());
    let end = end.unwrap_or_default();
    match (cut_to(words, MAX_STRING_BYTES - end.len() - 1), end.as_str()) {
        (words, "") => words.into(),
        ("", end) => end.into(),
        (words, end) => format!("{words} {end}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Uuid;

    #[test]
    #[allow(clippy::disallowed_methods)]
    fn a_disk_that_has_lost_writes_is_told_as_another_start() {
        use crate::server::file_disk::FileDisk;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        std::fs::write(&path, [1; 4096]).unwrap();
        let image = rubus_host::block::image::Image::open(&path, true).unwrap();
        let disk = Arc::new(FileDisk::new(Arc::new(image)));
        let before = Identity { boot: Uuid(1), export: Uuid(2), generation: 3, sync: false };
        let source = OneDisk {
            disk: Arc::clone(&disk) as Arc<dyn Disk>,
            identity: Some(before),
            sync: false,
        };
        assert_eq!(source.identity(), Some(before));
        disk.lose(&std::io::Error::from_raw_os_error(5));
        let now = source.identity().unwrap();
        let verdict = crate::identity::judge(&before, &now, true);
        assert_eq!(verdict, crate::identity::Verdict::SameButUnflushedLost);
        assert_eq!(source.identity(), Some(now), "it changes once");
    }

    #[test]
    #[allow(clippy::disallowed_methods)]
    fn a_client_that_asks_for_a_replaced_image_is_told_why_it_does_not_get_it() {
        use crate::server::file_disk::FileDisk;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        std::fs::write(&path, [1; 4096]).unwrap();
        let image = rubus_host::block::image::Image::open(&path, false).unwrap();
        let disk = Arc::new(FileDisk::new(Arc::new(image)));
        let table = ExportTable::new(vec![Offered {
            name: "image".into(),
            words: "ä".repeat(4000),
            source: Box::new(OneDisk { disk, identity: None, sync: false }),
        }]);
        assert!(table.find("image").is_ok());
        assert!(table.list()[0].1.len() <= MAX_STRING_BYTES);
        std::fs::write(directory.path().join("new"), [2; 4096]).unwrap();
        std::fs::rename(directory.path().join("new"), &path).unwrap();
        let refused = table.find("image").unwrap_err();
        assert_eq!(refused.why, Refusal::Policy);
        assert!(refused.words.contains("deleted"), "{}", refused.words);
        assert_eq!(table.list().len(), 1, "it is still listed");
    }

    #[test]
    fn a_description_that_is_too_long_keeps_its_identity() {
        let identity = Identity { boot: Uuid(1), export: Uuid(2), generation: 3, sync: true };
        for words in ["", "root of the kitchen's board", &"ä".repeat(4000)] {
            let text = describe(words, Some(identity));
            assert!(text.len() <= MAX_STRING_BYTES);
            assert_eq!(Identity::parse(&text), Some(identity));
        }
        assert_eq!(describe("words", None), "words");
    }
}
