//! Reading a capture: a recorded or hand-built machine that answers questions.

use std::path::{Path, PathBuf};

use super::CaptureError;
use super::bundle::Bundle;
use super::manifest::{FILE_NAME, FORMAT, Heading, Manifest, VERSION};
use crate::files::document;
use crate::files::{Files, ReadError, Space};
use crate::simulated::recorder::Record;
use crate::simulated::tree::Tree;

const REMEDY: &str = "Save it again with `rubus survey --save FILE`, or give another file";
const REMEDY_DIRECTORY: &str = "It is one file of a capture: give the directory that it is in";
const REMEDY_BY_HAND: &str = "Correct its manifest.json, or save the capture again";

/// A machine out of a capture.
#[derive(Debug)]
pub struct Captured {
    tree: Tree,
    path: PathBuf,
    label: String,
    recorded_at: String,
}

impl Captured {
    /// Opens a capture: a directory, a tar, or a tar packed with gzip. All of it is read at once;
    /// the file is not needed afterwards.
    ///
    /// # Errors
    /// When it cannot be read, is no capture, is damaged or too large, or is newer than this
    /// program. The text says what to do.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let unreadable = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => CaptureError::Absent,
            _ => CaptureError::Io { doing: "cannot read", path: path.to_path_buf(), error },
        };
        let bundle = if std::fs::metadata(path).map_err(unreadable)?.is_dir() {
            // Before all of a home directory is read.
            if !path.join(FILE_NAME).exists() {
                return Err(broken(path, format!("it has no {FILE_NAME}"), REMEDY));
            }
            Bundle::of_directory(path)
        } else {
            Bundle::of_archive(document::open(path).map_err(unreadable)?)
        };
        let remedy = if path.file_name().is_some_and(|name| name == FILE_NAME) {
            REMEDY_DIRECTORY
        } else {
            REMEDY
        };
        Self::of_bundle(path, bundle.map_err(|what| broken(path, what, remedy))?)
    }

    /// A capture from the bytes of a tar archive; `path` is only its name in messages.
    ///
    /// # Errors
    /// As [`Captured::open`].
    pub fn from_archive(path: &Path, bytes: &[u8]) -> Result<Self, CaptureError> {
        let bundle = Bundle::of_archive(bytes).map_err(|what| broken(path, what, REMEDY))?;
        Self::of_bundle(path, bundle)
    }

    fn of_bundle(path: &Path, mut bundle: Bundle) -> Result<Self, CaptureError> {
        let manifest = bundle
            .contents
            .remove(FILE_NAME)
            .ok_or_else(|| broken(path, format!("it has no {FILE_NAME}"), REMEDY))?;
        let manifest = parse_manifest(path, &manifest)?;
        let (label, recorded_at) = (manifest.label.clone(), manifest.recorded_at.clone());
        let missing = manifest.missing();
        let directories = bundle.recorded_directories();
        let links = bundle.recorded_links();
        let record: Record = manifest
            .into_record(bundle.recorded_files(), links)
            .map_err(|what| broken(path, what, REMEDY_BY_HAND))?;
        let mut tree = record.into_tree(missing);
        for directory in directories {
            tree.add_present(Path::new(&directory), None);
        }
        Ok(Captured { tree, path: path.to_path_buf(), label, recorded_at })
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it came to be, in its own words.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// When it was recorded, RFC 3339; empty for one built by hand without a date.
    pub fn recorded_at(&self) -> &str {
        &self.recorded_at
    }
}

fn parse_manifest(path: &Path, bytes: &[u8]) -> Result<Manifest, CaptureError> {
    let damaged = |error: serde_json::Error| {
        broken(path, format!("its {FILE_NAME}: {error}"), REMEDY_BY_HAND)
    };
    let heading: Heading = serde_json::from_slice(bytes).map_err(damaged)?;
    if heading.format != FORMAT {
        let what = format!("its {FILE_NAME} is of the format '{}'", heading.format);
        return Err(broken(path, what, REMEDY));
    }
    if heading.version > VERSION {
        return Err(CaptureError::Newer {
            path: path.to_path_buf(),
            found: heading.version,
            known: VERSION,
            saved_by: match heading.rubus_version {
                version if version.is_empty() => "it does not say which".to_string(),
                version => version,
            },
        });
    }
    serde_json::from_slice(bytes).map_err(damaged)
}

fn broken(path: &Path, what: String, remedy: &'static str) -> CaptureError {
    CaptureError::Broken { path: path.to_path_buf(), what, remedy }
}

impl Files for Captured {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        self.tree.read_prefix(path, limit)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        self.tree.list(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        self.tree.real_path(path)
    }

    fn space(&self, path: &Path) -> Result<Space, ReadError> {
        self.tree.space(path)
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, ReadError> {
        self.tree.ask(program, arguments)
    }

    fn mode(&self, path: &Path) -> Result<u32, ReadError> {
        self.tree.mode(path)
    }

    fn keeps_modes(&self, path: &Path) -> bool {
        self.tree.keeps_modes(path)
    }

    fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
        self.tree.link(path)
    }

    fn firmware_word(&self, tag: u32) -> Result<u32, ReadError> {
        self.tree.firmware_word(tag)
    }
}
