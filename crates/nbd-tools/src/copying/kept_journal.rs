//! The journal of a copy in its file.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use rubus_host::files::kept_file::Appended;
use rubus_vocabulary::refused::Refused;

use crate::copy::grid::Ledger;
use crate::copy::journal::{Head, Journal, NotAJournal, parse, record};
use crate::copy::{CopyError, Keeper};

/// No journal is longer: it has a line for each section, and a section twice only if its copy was started over.
const MAX_BYTES: usize = 64 << 20;

/// A journal that is open and locked by this copy.
pub struct Kept {
    file: Appended,
    /// What an earlier run has left.
    pub earlier: Option<Journal>,
    /// The head, until it is written with the first sections: a copy that ends before that writes no journal.
    pending: Mutex<Option<String>>,
    is_empty: bool,
}

/// When the head of a journal is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenBegun {
    /// Before anything is copied: it says that what is at the destination is this copy's, and may be overwritten.
    AtOnce,
    /// With the first sections that are recorded. A destination without a journal is made again.
    WithSections,
}

impl Kept {
    /// Opens it, or makes it.
    ///
    /// # Errors
    /// When it is something else, or another copy uses it.
    pub fn open(path: &Path, starts_over: bool) -> anyhow::Result<Kept> {
        let place = path.display();
        let opened = Appended::open(path, MAX_BYTES)
            .with_context(|| format!("cannot open the journal {place}"))?;
        let Some((file, bytes)) = opened else {
            return Err(Refused(format!(
                "another copy is running to the same destination: it uses the journal {place}"
            ))
            .into());
        };
        let earlier = if bytes.is_empty() {
            None
        } else {
            match parse(&bytes) {
                Err(NotAJournal::Unfinished) => None,
                parsed => Some(parsed.with_context(|| {
                    format!(
                        "cannot resume with {place}; choose another file with --journal, or remove it to start over"
                    )
                })?),
            }
        };
        Ok(Kept {
            file,
            earlier: earlier.filter(|_| !starts_over),
            pending: Mutex::default(),
            is_empty: bytes.is_empty(),
        })
    }

    /// Forgets the earlier run, durably, before the file is made again that its records are about.
    ///
    /// # Errors
    /// If the journal cannot be truncated durably.
    pub fn forget(&mut self) -> std::io::Result<()> {
        self.earlier = None;
        if !self.is_empty {
            self.file.begin(b"")?;
            self.is_empty = true;
        }
        Ok(())
    }

    /// Goes on where the earlier run ended, or begins.
    ///
    /// # Errors
    /// When the earlier run copied something else, or the journal cannot be written.
    pub fn begin(&self, head: &Head, ledger: &Ledger, when: WhenBegun) -> anyhow::Result<()> {
        let place = self.file.path().display();
        let cannot = || format!("cannot write the journal {place}");
        let Some(earlier) = &self.earlier else {
            let head = head.encode();
            match when {
                WhenBegun::AtOnce => self.file.begin(head.as_bytes()).with_context(cannot)?,
                WhenBegun::WithSections => {
                    self.file.reserve(RESERVED_BYTES);
                    *self.pending() = Some(head);
                }
            }
            return Ok(());
        };
        if let Err((what, was, is)) = earlier.head.is_of(head) {
            anyhow::bail!(
                "cannot resume the copy recorded in {place}: its {what} is not what it was\n  \
                 it was: {was}\n  it is:  {is}\n  to start over, give --restart"
            );
        }
        self.file.cut(earlier.length as u64).with_context(cannot)?;
        for (section, digest) in &earlier.done {
            ledger.is_done_already(*section, *digest);
        }
        Ok(())
    }

    fn pending(&self) -> MutexGuard<'_, Option<String>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes it: the copy is whole.
    pub fn end(self) {
        // What stays is about a copy whose destination is not there any more under its old name.
        let _ = self.file.remove();
    }
}

/// For the head and a few thousand sections.
const RESERVED_BYTES: u64 = 64 << 10;

impl Keeper for Kept {
    fn has_begun(&self) -> bool {
        self.pending().is_none()
    }

    fn keep(&self, sections: &[(usize, u64)]) -> Result<(), CopyError> {
        if sections.is_empty() {
            return Ok(());
        }
        let lines = sections.iter().map(|(number, digest)| record(*number, *digest));
        let lines: String = lines.collect();
        let mut pending = self.pending();
        let written = match &*pending {
            Some(head) => self.file.begin((head.clone() + &lines).as_bytes()),
            None => self.file.append(lines.as_bytes()),
        };
        if written.is_ok() {
            *pending = None;
        }
        written.map_err(|error| {
            CopyError::Trouble(format!(
                "cannot write the journal {}: {error}; make room there, then give the same command again: it goes on",
                self.file.path().display()
            ))
        })
    }
}
