//! The boot partition as the firmware finds it: names, small texts, kernels and initial RAM filesystems.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rubus_boot::chain::{ChainFacts, Encoding, Fault, UNTRIED_SET_STATE, paths};
use rubus_boot::config_txt::ConfigTxt;
use rubus_boot::initramfs::InitramfsError;
use rubus_boot::proof::Kernel;
use rubus_boot::{initramfs, kernel_file};
use rubus_host::capture::{FILE_IS_THERE, TEXT_IS_THERE};
use rubus_host::{Files, ReadError};

/// Texts that firmware reads, wherever `config.txt` says nothing else.
const TEXTS: [&str; 5] =
    ["config.txt", "cmdline.txt", "autoboot.txt", "tryboot.txt", UNTRIED_SET_STATE];
/// What later boards of a Raspberry Pi 5 need.
const DECIDING_OVERLAY: &str = "overlays/bcm2712d0.dtbo";
/// The largest text that is read.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// More than any kernel takes.
const MAX_KERNEL_BYTES: usize = 128 << 20;
/// More than any initial RAM filesystem takes.
const MAX_INITRAMFS_BYTES: usize = 256 << 20;
/// The settings and what they include: the largest number of files that are read.
const MAX_FOLLOWED: usize = 32;

/// The files of a boot partition below a directory.
pub(super) struct BootFiles<'a> {
    files: &'a dyn Files,
    top: PathBuf,
    /// The spelling of each path, by its small letters.
    spelled: BTreeMap<String, String>,
}

impl<'a> BootFiles<'a> {
    /// # Errors
    /// Why the directory cannot be read.
    pub(super) fn at(files: &'a dyn Files, top: &Path) -> Result<BootFiles<'a>, ReadError> {
        let mut found = BootFiles { files, top: top.into(), spelled: BTreeMap::new() };
        found.add_directory("")?;
        Ok(found)
    }

    fn add_directory(&mut self, directory: &str) -> Result<(), ReadError> {
        let spelled = self.spelling(directory.trim_end_matches('/'));
        for name in self.files.list(&self.top.join(&spelled))? {
            let path = if spelled.is_empty() { name } else { format!("{spelled}/{name}") };
            self.spelled.insert(path.to_ascii_lowercase(), path);
        }
        Ok(())
    }

    /// Of a directory's overlays, the one that decides a start; the others are not looked at.
    fn spell_overlay(&mut self, directory: &str) {
        let path = format!("{directory}{DECIDING_OVERLAY}");
        if self.files.read_prefix(&self.place(&path), 1).is_ok() {
            self.spelled.insert(path.to_ascii_lowercase(), path);
        }
    }

    fn spelling(&self, path: &str) -> String {
        let folded = path.trim_start_matches('/').to_ascii_lowercase();
        self.spelled.get(&folded).cloned().unwrap_or_else(|| path.trim_start_matches('/').into())
    }

    fn place(&self, path: &str) -> PathBuf {
        self.top.join(self.spelling(path))
    }

    /// Puts names and texts into the facts, with all that the settings name.
    pub(super) fn texts_into(&mut self, facts: &mut ChainFacts) {
        let mut todo: Vec<String> = TEXTS.iter().map(|name| (*name).to_string()).collect();
        let mut known: BTreeSet<String> = todo.iter().cloned().collect();
        let mut read = 0;
        self.spell_overlay("");
        while let Some(name) = todo.pop() {
            read += 1;
            if read > MAX_FOLLOWED {
                break;
            }
            if let Some(directory) = name.strip_suffix('/') {
                // A directory that is not there has no files.
                let _ = self.add_directory(directory);
                self.spell_overlay(&name);
                continue;
            }
            let Some(text) = self.text_into(&name, facts) else { continue };
            // Command lines name nothing; whatever else is a text may be settings.
            let companions = ConfigTxt::parse(text).companions().into_iter();
            let is_settings = !name.to_ascii_lowercase().contains("cmdline");
            let fresh = companions.filter(|one| is_settings && known.insert(one.clone()));
            todo.extend(fresh);
        }
        for path in self.spelled.values() {
            if facts.partition.size_bytes(path).is_none() {
                facts.partition.add(path, self.size_class(path));
            }
        }
    }

    fn text_into(&self, name: &str, facts: &mut ChainFacts) -> Option<String> {
        let bytes = self.files.read_prefix(&self.place(name), MAX_TEXT_BYTES + 1).ok()?;
        if bytes.len() > MAX_TEXT_BYTES {
            facts.encodings.insert(name.into(), Encoding::TooLarge);
        }
        let (text, encoding) = Encoding::read(&bytes[..bytes.len().min(MAX_TEXT_BYTES)]);
        facts.partition.put(name, &text);
        if let Some(encoding) = encoding {
            facts.encodings.insert(name.into(), encoding);
        }
        Some(text)
    }

    /// 1 for a file that holds something or cannot be read, 0 for an empty one: more is not asked of most.
    fn size_class(&self, path: &str) -> u64 {
        match self.files.read_prefix(&self.top.join(path), 1) {
            Ok(bytes) => bytes.len() as u64,
            Err(_) => 1,
        }
    }

    /// Looks into the kernels and initial RAM filesystems that may be loaded.
    pub(super) fn images_into(&self, facts: &mut ChainFacts) {
        for path in paths(facts) {
            self.kernel_into(&path.kernel, facts);
            for name in &path.initramfs {
                if facts.images.initramfs.contains_key(name) {
                    continue;
                }
                let bytes = self.files.read_prefix(&self.place(name), MAX_INITRAMFS_BYTES);
                let Some(bytes) = bytes.ok().filter(|bytes| is_filled(bytes)) else { continue };
                let listed = initramfs::list(bytes.as_slice());
                if listed.as_ref().is_err_and(InitramfsError::is_as_none) {
                    facts.images.void.insert(name.clone());
                }
                let listed = listed.map_err(|why| why.to_string());
                facts.images.initramfs.insert(name.clone(), listed);
            }
        }
    }

    fn kernel_into(&self, name: &str, facts: &mut ChainFacts) {
        let is_known = facts.images.kernels.contains_key(name)
            || facts.loaders.contains_key(name)
            || facts.faulty_kernels.contains_key(name);
        if is_known {
            return;
        }
        let bytes = self.files.read_prefix(&self.place(name), MAX_KERNEL_BYTES);
        let Some(bytes) = bytes.ok().filter(|bytes| is_filled(bytes)) else { return };
        if kernel_file::is_cut(&bytes) {
            facts.faulty_kernels.insert(name.into(), Fault::Cut);
        } else if let Some(release) = kernel_file::release(&bytes) {
            let is_64_bit = kernel_file::is_64_bit(&bytes);
            let kernel = Kernel { release: Some(release), is_64_bit, ..Kernel::default() };
            facts.images.kernels.insert(name.into(), kernel);
        } else if let Some(loader) = kernel_file::loader(&bytes) {
            facts.loaders.insert(name.into(), loader);
        } else {
            facts.faulty_kernels.insert(name.into(), Fault::NoKernel);
        }
    }
}

/// Whether it is what a file holds: a capture may have no more of it than that it is there.
fn is_filled(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes != FILE_IS_THERE && bytes != TEXT_IS_THERE
}
