//! The two shapes of a capture, a directory and a tar, as one: named contents and links in memory.
//!
//! Names are checked here once, so that later code need not think of `..`.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use super::LIMITS;
use super::manifest::{FILE_NAME, FILES};
use crate::files::document;

/// Of an archive, packed or not: headers and padding come on top of the contents.
const MAX_ARCHIVE_BYTES: u64 = LIMITS.total_bytes + 2048 * LIMITS.entries as u64;

/// What is in a capture: names relative to it, with `/` between components.
#[derive(Debug, Default)]
pub(crate) struct Bundle {
    pub(crate) contents: BTreeMap<String, Vec<u8>>,
    pub(crate) links: BTreeMap<String, String>,
    pub(crate) directories: Vec<String>,
    total_bytes: u64,
}

impl Bundle {
    /// Reads a directory, subdirectories included; symbolic links are noted, never followed.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub(crate) fn of_directory(path: &Path) -> Result<Self, String> {
        let mut bundle = Bundle::default();
        bundle.add_directory(path, "")?;
        Ok(bundle)
    }

    fn add_directory(&mut self, directory: &Path, prefix: &str) -> Result<(), String> {
        let place = |name: &str, error: std::io::Error| format!("cannot read {name}: {error}");
        for entry in std::fs::read_dir(directory).map_err(|error| place(prefix, error))? {
            let entry = entry.map_err(|error| place(prefix, error))?;
            let name = join(prefix, &entry.file_name().to_string_lossy());
            let kind = entry.file_type().map_err(|error| place(&name, error))?;
            if kind.is_symlink() {
                let target =
                    std::fs::read_link(entry.path()).map_err(|error| place(&name, error))?;
                self.add_link(name, target.to_string_lossy().into_owned())?;
            } else if kind.is_dir() {
                self.add_present(name.clone())?;
                self.add_directory(&entry.path(), &name)?;
            } else if kind.is_file() {
                let file = document::open(&entry.path()).map_err(|error| place(&name, error))?;
                self.add_contents(name, file)?;
            } else {
                return Err(format!("{name} is neither a file, a directory nor a link"));
            }
        }
        Ok(())
    }

    /// Reads a tar, unpacked by gzip where it begins as gzip does.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub(crate) fn of_archive(mut source: impl Read) -> Result<Self, String> {
        let mut magic = [0_u8; 2];
        let mut filled = 0;
        while filled < magic.len() {
            match source.read(&mut magic[filled..]) {
                Ok(0) => return Err("it is empty or cut off at the start".to_string()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("cannot read it: {error}")),
            }
        }
        let source = magic.as_slice().chain(source).take(MAX_ARCHIVE_BYTES);
        if magic == [0x1f, 0x8b] {
            Self::of_tar(flate2::read::MultiGzDecoder::new(source))
        } else {
            Self::of_tar(source)
        }
    }

    fn of_tar(source: impl Read) -> Result<Self, String> {
        let mut archive = tar::Archive::new(source.take(MAX_ARCHIVE_BYTES));
        let mut bundle = Bundle::default();
        let mut last = None;
        for entry in archive.entries().map_err(|_| not_a_tar(&last))? {
            // The library's words for a bad header repeat what is in it, whatever that is.
            let entry = entry.map_err(|_| not_a_tar(&last))?;
            last = Some(String::from_utf8_lossy(&entry.path_bytes()).into_owned());
            bundle.add_tar_entry(entry)?;
        }
        bundle.without_top_directory()
    }

    fn add_tar_entry<R: Read>(&mut self, entry: tar::Entry<'_, R>) -> Result<(), String> {
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let kind = entry.header().entry_type();
        let name = clean_name(&path)?;
        match kind {
            tar::EntryType::Directory if name.is_empty() => Ok(()),
            tar::EntryType::Directory => self.add_present(name),
            tar::EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default();
                self.add_link(name, String::from_utf8_lossy(&target).into_owned())
            }
            tar::EntryType::XGlobalHeader => Ok(()),
            tar::EntryType::Regular | tar::EntryType::Continuous => self.add_contents(name, entry),
            other => {
                Err(format!("the entry {path} is of a kind that captures do not have ({other:?})"))
            }
        }
    }

    /// `tar cf x.tar mycapture` puts everything below one directory; takes that away.
    fn without_top_directory(mut self) -> Result<Self, String> {
        if self.contents.contains_key(FILE_NAME) {
            return Ok(self);
        }
        let top = self
            .contents
            .keys()
            .find_map(|name| name.strip_suffix(FILE_NAME))
            .filter(|top| top.matches('/').count() == 1)
            .map(str::to_string);
        let Some(top) = top else {
            return Ok(self);
        };
        let below = |name: String| name.strip_prefix(&top).map(str::to_string);
        self.contents = self
            .contents
            .into_iter()
            .filter_map(|(name, bytes)| Some((below(name)?, bytes)))
            .collect();
        self.links = self
            .links
            .into_iter()
            .filter_map(|(name, target)| Some((below(name)?, target)))
            .collect();
        self.directories = self.directories.into_iter().filter_map(below).collect();
        Ok(self)
    }

    fn add_contents(&mut self, name: String, source: impl Read) -> Result<(), String> {
        self.check(&name)?;
        let mut bytes = Vec::new();
        source
            .take(LIMITS.file_bytes + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("cannot read {name}: {error}"))?;
        if bytes.len() as u64 > LIMITS.file_bytes {
            return Err(format!("{name} is larger than {} bytes", LIMITS.file_bytes));
        }
        self.total_bytes += bytes.len() as u64;
        if self.total_bytes > LIMITS.total_bytes {
            return Err(format!("its files together are larger than {} bytes", LIMITS.total_bytes));
        }
        // As tar does it: of two entries of one name the later holds.
        self.contents.insert(name, bytes);
        Ok(())
    }

    fn add_link(&mut self, name: String, target: String) -> Result<(), String> {
        self.check(&name)?;
        self.check_length(&target)?;
        self.links.insert(name, target);
        Ok(())
    }

    fn add_present(&mut self, name: String) -> Result<(), String> {
        self.check(&name)?;
        self.directories.push(name);
        Ok(())
    }

    fn check(&self, name: &str) -> Result<(), String> {
        self.check_length(name)?;
        if name.is_empty() {
            return Err("an entry has no name".to_string());
        }
        let entries = self.contents.len() + self.links.len() + self.directories.len();
        if entries >= LIMITS.entries {
            return Err(format!("it has more than {} entries", LIMITS.entries));
        }
        Ok(())
    }

    fn check_length(&self, path: &str) -> Result<(), String> {
        if path.len() > LIMITS.path_bytes {
            return Err(format!("a path in it is longer than {} bytes", LIMITS.path_bytes));
        }
        Ok(())
    }

    /// The contents below `files/`, by their path on the captured machine.
    pub(crate) fn recorded_files(&mut self) -> BTreeMap<String, Vec<u8>> {
        std::mem::take(&mut self.contents)
            .into_iter()
            .filter_map(|(name, bytes)| Some((recorded_path(&name)?, bytes)))
            .collect()
    }

    /// The links below `files/`, by their path on the captured machine. Relative targets stay
    /// relative to the link, absolute ones are paths of that machine.
    pub(crate) fn recorded_links(&mut self) -> BTreeMap<String, String> {
        std::mem::take(&mut self.links)
            .into_iter()
            .filter_map(|(name, target)| Some((recorded_path(&name)?, target)))
            .collect()
    }

    /// The directories below `files/`, by their path on the captured machine.
    pub(crate) fn recorded_directories(&self) -> Vec<String> {
        self.directories.iter().filter_map(|name| recorded_path(name)).collect()
    }
}

/// What is wrong with an archive that cannot be read on after an entry.
fn not_a_tar(last: &Option<String>) -> String {
    match last {
        None => "it is not a tar, or one that is damaged at its start".to_string(),
        Some(name) => format!("the tar is damaged or cut off after its entry {name:?}"),
    }
}

fn recorded_path(name: &str) -> Option<String> {
    name.strip_prefix(FILES).filter(|rest| rest.starts_with('/')).map(str::to_string)
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_string() } else { format!("{prefix}/{name}") }
}

/// The name without `./`; one that climbs out of the capture is refused.
fn clean_name(path: &str) -> Result<String, String> {
    let mut parts: Vec<String> = Vec::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(part) => {
                if part.as_bytes().contains(&0) {
                    return Err("an entry's name has a NUL in it".to_string());
                }
                parts.push(part.to_string_lossy().into_owned());
            }
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(format!("the entry '{path}' points out of the capture"));
            }
        }
    }
    Ok(parts.join("/"))
}
