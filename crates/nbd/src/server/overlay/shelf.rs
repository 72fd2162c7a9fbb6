//! The exports of a server that gives each client a clone: `EXPORT/NAME`, whatever NAME is.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rubus_host::listening::Caller;

use super::fleet::{ClientName, Fleet, OpenClone};
use crate::server::disk::Disk;
use crate::server::door::{Opened, Store};
use crate::server::handshake::{Export, Exports, NoExport};
use crate::server::shelf::{BLOCK_SIZES, describe};
use crate::wire::Refusal;

/// So many clones stay open between a client's question and its choice. One more, and the oldest is closed, unless it
/// has a client.
const MOST_RECENT: usize = 16;

/// One golden image under one name, and the clones of all who come.
pub struct CloneShelf {
    name: String,
    words: String,
    fleet: Fleet,
    recent: Mutex<VecDeque<Arc<OpenClone>>>,
}

impl CloneShelf {
    /// An export of clones; the words are for people.
    pub fn new(name: String, words: String, fleet: Fleet) -> Self {
        CloneShelf {
            name,
            words,
            fleet,
            recent: Mutex::default(),
        }
    }

    /// Makes everything durable; nothing may be written afterwards.
    ///
    /// # Errors
    /// The first clone that could not be closed.
    pub fn close(&self) -> io::Result<()> {
        self.lock().clear();
        self.fleet.close()
    }

    /// [`Fleet::settle`].
    ///
    /// # Errors
    /// As there.
    pub fn settle(&self) -> io::Result<()> {
        self.fleet.settle()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Arc<OpenClone>>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clone_of(&self, export: &str) -> Result<Arc<OpenClone>, NoExport> {
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
        let client = match ClientName::asked(client) {
            Ok(client) => client,
            Err(words) => return refused(Refusal::Invalid, words),
        };
        self.fleet
            .clone_of(&client)
            .or_else(|error| refused(Refusal::Policy, error.for_clients()))
    }
}

impl Exports for CloneShelf {
    fn list(&self) -> Vec<(String, String)> {
        let words = format!(
            "{}{}a clone for each client: ask for {}/NAME",
            self.words,
            if self.words.is_empty() { "" } else { "; " },
            self.name
        );
        vec![(self.name.clone(), words)]
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
        let oldest = match recent.len() > MOST_RECENT {
            true => recent.pop_front(),
            false => None,
        };
        drop(recent);
        // Closing it takes a while.
        drop(oldest);
        Ok(export)
    }
}

impl Store for CloneShelf {
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
        Ok(Opened {
            disk: clone,
            sync: false,
        })
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use super::super::fleet::Lasting;
    use super::super::golden::GoldenFile;
    use super::*;
    use crate::identity::Identity;

    fn shelf(directory: &std::path::Path, lasting: Lasting) -> CloneShelf {
        let golden = directory.join("golden.img");
        std::fs::write(&golden, vec![7; 1 << 20]).unwrap();
        let golden = GoldenFile::open(&golden).unwrap();
        let fleet = Fleet::new(&directory.join("clones"), golden, lasting, 30).unwrap();
        CloneShelf::new("root".into(), "kitchen".into(), fleet)
    }

    #[test]
    fn a_client_that_gives_no_name_is_told_how() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = shelf(directory.path(), Lasting::Kept);
        for name in ["", "root"] {
            let refused = shelf.find(name).unwrap_err();
            assert_eq!(refused.why, Refusal::Policy);
            assert!(
                refused.words.contains("ask for root/NAME"),
                "{}",
                refused.words
            );
        }
        assert_eq!(shelf.find("rooted").unwrap_err().why, Refusal::Unknown);
        assert_eq!(shelf.find("root/../x").unwrap_err().why, Refusal::Invalid);
    }

    #[test]
    fn what_a_client_was_told_is_what_it_gets() {
        let directory = tempfile::tempdir().unwrap();
        for lasting in [Lasting::Kept, Lasting::ThrownAway] {
            let shelf = shelf(directory.path(), lasting);
            let told = shelf.find("root/a").unwrap();
            let told = Identity::parse(&told.description).unwrap();
            let disk = shelf.clone_of("root/a").unwrap();
            assert_eq!(disk.identity(), told);
            disk.write(0, b"mine").unwrap();
            drop(disk);
            // The client goes and comes back, after many others.
            for other in 0..MOST_RECENT + 2 {
                shelf.find(&format!("root/b{other}")).unwrap();
            }
            let again = shelf.find("root/a").unwrap();
            assert_eq!(
                Identity::parse(&again.description),
                Some(told),
                "{lasting:?}"
            );
            let mut seen = [0; 4];
            shelf
                .clone_of("root/a")
                .unwrap()
                .read(0, &mut seen)
                .unwrap();
            assert_eq!(&seen, b"mine");
            shelf.close().unwrap();
        }
    }

    #[test]
    fn strangers_cannot_fill_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        for lasting in [Lasting::Kept, Lasting::ThrownAway] {
            let shelf = shelf(directory.path(), lasting);
            for client in 0..30 {
                shelf.find(&format!("root/{client}")).unwrap();
            }
            let refused = shelf.find("root/one-more").unwrap_err();
            assert!(refused.words.contains("30 clones"), "{}", refused.words);
            assert!(
                shelf.find("root/7").is_ok(),
                "those that are there still work"
            );
        }
    }
}
