//! The programs of this machine that could be copied to another.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rubus_host::files::document;
use rubus_remote::binary::{self, Candidate, Origin};
use rubus_remote::elf;

use super::way::Remote;

pub(super) const OWN: &str = "/proc/self/exe";

/// Names of programs for all machines that are known; what does not exist is passed over.
const MACHINES: [&str; 6] = ["aarch64", "armv7l", "armv6l", "x86_64", "i686", "riscv64"];

/// The programs here that could be copied.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    all: Vec<(Candidate, u64)>,
    /// Where ours lies, and those for other machines beside it.
    pub(super) beside: PathBuf,
}

impl Candidates {
    /// Looks for them: the one that the user named; else our own and those beside it.
    ///
    /// # Errors
    /// When the named one cannot be read.
    pub fn gather(remote: &Remote) -> anyhow::Result<Self> {
        let mut candidates = Candidates::default();
        if remote.remote_binary.is_some() {
            return Ok(candidates);
        }
        if let Some(path) = &remote.binary {
            candidates.add(path, path, Origin::Named)?;
            return Ok(candidates);
        }
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        candidates.add(Path::new(OWN), &own, Origin::Own)?;
        candidates.beside = own.parent().map(Path::to_path_buf).unwrap_or_default();
        // Beside it, and where a package would put what is for other machines.
        let directories = [Some(candidates.beside.clone()), libraries(&candidates.beside)];
        for directory in directories.into_iter().flatten() {
            let names = MACHINES.iter().flat_map(|machine| binary::file_names(machine));
            let mut paths: Vec<_> = names.map(|name| directory.join(name)).collect();
            paths.sort();
            paths.dedup();
            for path in paths.iter().filter(|path| path.is_file()) {
                candidates.add(path, path, Origin::Beside)?;
            }
        }
        Ok(candidates)
    }

    fn add(&mut self, readable: &Path, shown: &Path, origin: Origin) -> anyhow::Result<()> {
        let file = document::open_regular(readable)
            .with_context(|| format!("cannot read {}", shown.display()))?;
        let bytes = file.metadata().map(|data| data.len());
        let bytes = bytes.with_context(|| format!("cannot read {}", shown.display()))?;
        let mut head = Vec::new();
        file.take(elf::HEAD_BYTES as u64)
            .read_to_end(&mut head)
            .with_context(|| format!("cannot read {}", shown.display()))?;
        let candidate = Candidate {
            path: shown.display().to_string(),
            origin,
            elf: elf::parse(&head).map_err(str::to_string),
        };
        self.all.push((candidate, bytes));
        Ok(())
    }

    /// The length of the longest.
    pub fn max_bytes(&self) -> u64 {
        self.all.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0)
    }

    pub(super) fn list(&self) -> Vec<Candidate> {
        self.all.iter().map(|(candidate, _)| candidate.clone()).collect()
    }
}

/// `/usr/lib/rubus` for a program in `/usr/bin`.
fn libraries(beside: &Path) -> Option<PathBuf> {
    Some(beside.parent()?.join("lib/rubus"))
}

/// A program that needs a loader also needs that machine's C library to be as new as this one's.
pub(super) fn loader_hint(candidate: &Candidate) -> String {
    let loader = candidate.elf.as_ref().ok().and_then(|elf| elf.interpreter.as_deref());
    loader.map_or_else(String::new, |loader| {
        format!(
            " (it is not static: it needs {loader} there and C libraries as new as the ones it was built \
             with)"
        )
    })
}
