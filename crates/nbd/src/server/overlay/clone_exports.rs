//! The exports of a server that gives each client a clone: `EXPORT/NAME`, whatever NAME is.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rubus_host::net::listening::Caller;

use super::fleet::{ClientName, Fleet, OpenClone};
use crate::peer::PeerCertificate;
use crate::server::disk::Disk;
use crate::server::export_table::{BLOCK_SIZES, describe};
use crate::server::handshake::{Export, Exports, NoExport};
use crate::server::listener::{Opened, Store};
use crate::wire::{MAX_STRING_BYTES, Refusal, cut_to};

/// Maximum number of clones kept open between a client's question and its choice. Beyond that the oldest is closed,
/// unless it has a client.
const MAX_RECENT: usize = 16;

/// One golden image under one name, and the clones of all who come.
pub struct CloneExports {
    name: String,
    words: String,
    fleet: Fleet,
    recent: Mutex<VecDeque<Arc<OpenClone>>>,
    /// A client gets the clone that its certificate names, and no other.
    is_bound: bool,
}

impl CloneExports {
    /// An export of clones; the words are for people.
    pub fn new(name: String, words: String, fleet: Fleet) -> Self {
        CloneExports { name, words, fleet, recent: Mutex::default(), is_bound: false }
    }

    /// One that opens a clone for the client alone whose certificate names it.
    #[must_use]
    pub fn bound_to_certificates(mut self) -> Self {
        self.is_bound = true;
        self
    }

    /// Makes everything durable; nothing may be written afterwards.
    ///
    /// # Errors
    /// The first clone that could not be closed.
    pub fn close(&self) -> io::Result<()> {
        self.lock().clear();
        self.fleet.close()
    }

    /// Closes the clones that a killed server left in use; see [`Fleet::settle`].
    ///
    /// # Errors
    /// As for [`Fleet::settle`].
    pub fn settle(&self) -> io::Result<()> {
        self.fleet.settle()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Arc<OpenClone>>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the client whose clone an export is.
    fn client_of(&self, export: &str) -> Result<ClientName, NoExport> {
        let refused = |why, words| Err(NoExport { why, words });
        let client = match export.strip_prefix(self.name.as_str()) {
            _ if export.is_empty() => None,
            Some("") => None,
            Some(rest) if rest.starts_with('/') => Some(&rest[1..]),
            _ => {
                let words = "the server has no export of that name".into();
                return refused(Refusal::Unknown, words);
            }
        };
        let Some(client) = client else {
            let words = format!(
                "each client has a disk of its own here: ask for {}/NAME, for example with the serial number of the \
                 board as NAME",
                self.name
            );
            return refused(Refusal::Policy, words);
        };
        ClientName::asked(client).or_else(|words| refused(Refusal::Invalid, words))
    }

    fn clone_of(&self, export: &str) -> Result<Arc<OpenClone>, NoExport> {
        let client = self.client_of(export)?;
        self.fleet
            .clone_of(&client)
            .map_err(|error| NoExport { why: Refusal::Policy, words: error.for_clients() })
    }
}

impl Exports for CloneExports {
    fn list(&self) -> Vec<(String, String)> {
        let how = format!("a clone for each client: ask for {}/NAME", self.name);
        let separator = if self.words.is_empty() { "" } else { "; " };
        let room = MAX_STRING_BYTES.saturating_sub(separator.len() + how.len());
        let words = format!("{}{separator}{how}", cut_to(&self.words, room));
        vec![(self.name.clone(), cut_to(&words, MAX_STRING_BYTES).into())]
    }

    fn find(&self, name: &str) -> Result<Export, NoExport> {
        let clone = self.clone_of(name)?;
        let export = Export {
            name: format!("{}/{}", self.name, clone.name()),
            size_bytes: clone.size_bytes(),
            abilities: clone.abilities(),
            block_sizes: BLOCK_SIZES,
            description: describe(&self.words, Some(clone.identity())),
        };
        // What the client was told must still be so when it comes in.
        let mut recent = self.lock();
        recent.retain(|known| !Arc::ptr_eq(known, &clone));
        recent.push_back(clone);
        let oldest = if recent.len() > MAX_RECENT { recent.pop_front() } else { None };
        drop(recent);
        // Closing it takes a while.
        drop(oldest);
        Ok(export)
    }

    fn admits(&self, name: &str, peer: Option<&PeerCertificate>) -> Result<(), NoExport> {
        if !self.is_bound {
            return Ok(());
        }
        let client = self.client_of(name)?;
        let words = match peer {
            Some(peer) if peer.is_of(client.name()) => return Ok(()),
            Some(_) => "the certificate that you show is not for this clone",
            None => "a clone is opened for a client with its certificate alone",
        };
        Err(NoExport {
            why: Refusal::Policy,
            words: format!(
                "{words}; on the server, `rubus serve --make-certificates DIR --client {client}` makes one in \
                 DIR/clients/{client}"
            ),
        })
    }
}

impl Store for CloneExports {
    /// Making, opening and closing a clone makes things durable.
    fn may_wait(&self) -> bool {
        true
    }

    /// All clones lie on one disk.
    fn pool_of<'a>(&self, _: &'a str) -> &'a str {
        ""
    }

    fn exports(&self) -> &dyn Exports {
        self
    }

    fn open(&self, name: &str, _: &Caller) -> Result<Opened, String> {
        let clone = self.clone_of(name).map_err(|refused| refused.words)?;
        self.lock().retain(|known| !Arc::ptr_eq(known, &clone));
        Ok(Opened { disk: clone, sync: false })
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use super::super::fleet::Lasting;
    use super::super::golden::GoldenFile;
    use super::*;
    use crate::identity::Identity;

    fn exports(directory: &std::path::Path, lasting: Lasting) -> CloneExports {
        let golden = directory.join("golden.img");
        std::fs::write(&golden, vec![7; 1 << 20]).unwrap();
        let golden = GoldenFile::open(&golden).unwrap();
        let fleet = Fleet::new(&directory.join("clones"), golden, lasting, 30).unwrap();
        CloneExports::new("root".into(), "kitchen".into(), fleet)
    }

    #[test]
    fn a_client_that_gives_no_name_is_told_how() {
        let directory = tempfile::tempdir().unwrap();
        let exports = exports(directory.path(), Lasting::Kept);
        for name in ["", "root"] {
            let refused = exports.find(name).unwrap_err();
            assert_eq!(refused.why, Refusal::Policy);
            assert!(refused.words.contains("ask for root/NAME"), "{}", refused.words);
        }
        assert_eq!(exports.find("rooted").unwrap_err().why, Refusal::Unknown);
        assert_eq!(exports.find("root/../x").unwrap_err().why, Refusal::Invalid);
    }

    #[test]
    fn a_long_description_leaves_room_for_how_to_ask() {
        let directory = tempfile::tempdir().unwrap();
        let mut exports = exports(directory.path(), Lasting::Kept);
        exports.words = "ä".repeat(4000);
        let [(name, words)] = &exports.list()[..] else { panic!("one export") };
        assert_eq!(name, "root");
        assert!(words.len() <= MAX_STRING_BYTES);
        assert!(words.starts_with("ää"));
        assert!(words.ends_with("; a clone for each client: ask for root/NAME"));
        assert!(exports.find("root/a").unwrap().description.len() <= MAX_STRING_BYTES);
    }

    #[test]
    fn a_bound_clone_is_opened_for_its_certificate_alone_and_made_for_nobody_else() {
        use rustls::pki_types::CertificateDer;
        use rustls::pki_types::pem::PemObject;

        use crate::certificates::{make, make_client};

        let directory = tempfile::tempdir().unwrap();
        let free = exports(directory.path(), Lasting::Kept);
        assert!(free.admits("root/a", None).is_ok());
        let exports = free.bound_to_certificates();
        let files = make("pi", &[]).unwrap();
        let peer = |text: &str| {
            let certificate = CertificateDer::from_pem_slice(text.as_bytes()).unwrap();
            PeerCertificate::new(&certificate)
        };
        let own = make_client(&files[0].text, &files[1].text, "a").unwrap();
        let (own, shared) = (peer(&own[1].text), peer(&files[4].text));
        assert!(exports.admits("root/a", Some(&own)).is_ok());
        for (name, peer) in [
            ("root/b", Some(&own)),
            ("root/A", Some(&own)),
            ("root/a", Some(&shared)),
            ("root/a", None),
        ] {
            let refused = exports.admits(name, peer).unwrap_err();
            assert_eq!(refused.why, Refusal::Policy, "{name}");
            assert!(refused.words.contains("--client "), "{}", refused.words);
        }
        assert!(!directory.path().join("clones/b.clone").exists());
    }

    #[test]
    fn what_a_client_was_told_is_what_it_gets() {
        let directory = tempfile::tempdir().unwrap();
        for lasting in [Lasting::Kept, Lasting::ThrownAway] {
            let exports = exports(directory.path(), lasting);
            let told = exports.find("root/a").unwrap();
            let told = Identity::parse(&told.description).unwrap();
            let disk = exports.clone_of("root/a").unwrap();
            assert_eq!(disk.identity(), told);
            disk.write(0, b"mine").unwrap();
            drop(disk);
            // The client goes and comes back, after many others.
            for other in 0..MAX_RECENT + 2 {
                exports.find(&format!("root/b{other}")).unwrap();
            }
            let again = exports.find("root/a").unwrap();
            assert_eq!(Identity::parse(&again.description), Some(told), "{lasting:?}");
            let mut seen = [0; 4];
            exports.clone_of("root/a").unwrap().read(0, &mut seen).unwrap();
            assert_eq!(&seen, b"mine");
            exports.close().unwrap();
        }
    }

    #[test]
    fn strangers_cannot_fill_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        for lasting in [Lasting::Kept, Lasting::ThrownAway] {
            let exports = exports(directory.path(), lasting);
            for client in 0..30 {
                exports.find(&format!("root/{client}")).unwrap();
            }
            let refused = exports.find("root/one-more").unwrap_err();
            assert!(refused.words.contains("30 clones"), "{}", refused.words);
            assert!(exports.find("root/7").is_ok(), "those that are there still work");
        }
    }
}
