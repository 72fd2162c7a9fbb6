//! Writing a capture: a tar, or a directory.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::manifest::{FILE_NAME, FILES, Manifest};
use super::redact::Redactor;
use super::{CaptureError, file_rules, passwords, secrets};
use crate::simulated::recorder::{Record, Recorder};

/// What to do with what identifies this one machine: serial numbers, hardware addresses, UUIDs of
/// filesystems and partitions, host name, machine id.
///
/// Names of servers, shares and users in tables of mounts, and addresses anywhere, are replaced too. Names that many machines
/// have ("raspberrypi") and serial numbers of zeros stay. A serial number that is a plain word is replaced only where serial
/// numbers stand: elsewhere it is a word. Of command lines and configuration files only known parameters with values of the
/// known form pass. Where identities are kept, values of parameters that are called passwords or keys are blotted out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identities {
    /// Replace each by a pseudonym, the same everywhere in the capture.
    Replace,
    /// Keep them as read.
    Keep,
}

/// What was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Path of the capture.
    pub path: PathBuf,
    /// Files in it, the manifest included.
    pub files: usize,
    /// Bytes in them.
    pub bytes: u64,
    /// Different identities that were looked for and replaced.
    pub replaced: usize,
}

/// Saves what was recorded: as a directory when `path` ends with `/` or is an empty directory,
/// else as a tar, packed with gzip if the name ends with `.gz` or `.tgz`. Nothing is overwritten;
/// when it fails, an incomplete file is removed.
///
/// `label` says how it came to be, `recorded_at` when (RFC 3339).
///
/// # Errors
/// When there is something at the path already, or it cannot be written.
pub fn save(
    recorder: &Recorder<'_>,
    path: &Path,
    label: &str,
    recorded_at: &str,
    identities: Identities,
) -> Result<Saved, CaptureError> {
    let mut record = recorder.record();
    let (named, replaced) = match identities {
        Identities::Keep => {
            passwords::blot_out(&mut record);
            ("as read", 0)
        }
        Identities::Replace => {
            let names = file_rules::let_through(&mut record);
            let redactor = Redactor::new(secrets::find(recorder.files(), &record, &names));
            redactor.redact(&mut record);
            ("replaced by pseudonyms", redactor.count())
        }
    };
    let contents = contents(&record, label, recorded_at, named)?;
    if wants_directory(path) {
        write_directory(path, &contents)?;
    } else {
        write_file(path, &contents)?;
    }
    Ok(Saved {
        path: path.to_path_buf(),
        files: contents.len(),
        bytes: contents.iter().map(|(_, bytes)| bytes.len() as u64).sum(),
        replaced,
    })
}

/// Names in the capture and what they hold, the manifest first.
fn contents(
    record: &Record,
    label: &str,
    recorded_at: &str,
    identities: &str,
) -> Result<Vec<(String, Vec<u8>)>, CaptureError> {
    let manifest = Manifest::of(record, label, recorded_at, identities);
    let mut text = serde_json::to_vec_pretty(&manifest).map_err(|error| CaptureError::Io {
        doing: "cannot write",
        path: PathBuf::from(FILE_NAME),
        error: error.into(),
    })?;
    text.push(b'\n');
    let mut contents = vec![(FILE_NAME.to_string(), text)];
    for (path, file) in &record.files {
        contents.push((format!("{FILES}{path}"), file.bytes.clone()));
    }
    Ok(contents)
}

fn wants_directory(path: &Path) -> bool {
    path.as_os_str().to_string_lossy().ends_with('/') || path.is_dir()
}

fn cannot_write(path: &Path) -> impl FnOnce(std::io::Error) -> CaptureError + use<> {
    let path = path.to_path_buf();
    |error| CaptureError::Io { doing: "cannot write", path, error }
}

fn write_directory(path: &Path, contents: &[(String, Vec<u8>)]) -> Result<(), CaptureError> {
    let is_new = !path.exists();
    std::fs::create_dir_all(path).map_err(cannot_write(path))?;
    let mut present = std::fs::read_dir(path).map_err(cannot_write(path))?;
    if present.next().is_some() {
        return Err(CaptureError::Exists(path.to_path_buf()));
    }
    let written = write_into_empty(path, contents);
    if written.is_err() {
        // All that is in it was written here. What cannot be removed, the error is told anyway.
        let _ = std::fs::remove_dir_all(path.join(FILES));
        let _ = std::fs::remove_file(path.join(FILE_NAME));
        if is_new {
            let _ = std::fs::remove_dir(path);
        }
    }
    written
}

fn write_into_empty(path: &Path, contents: &[(String, Vec<u8>)]) -> Result<(), CaptureError> {
    for (name, bytes) in contents {
        let file = path.join(name);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent).map_err(cannot_write(parent))?;
        }
        // Never through what others put there meanwhile.
        let new = std::fs::OpenOptions::new().write(true).create_new(true).open(&file);
        new.and_then(|mut new| new.write_all(bytes)).map_err(cannot_write(&file))?;
    }
    Ok(())
}

fn write_file(path: &Path, contents: &[(String, Vec<u8>)]) -> Result<(), CaptureError> {
    let file =
        std::fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
            match error.kind() {
                std::io::ErrorKind::AlreadyExists => CaptureError::Exists(path.to_path_buf()),
                _ => cannot_write(path)(error),
            }
        })?;
    let name = path.as_os_str().to_string_lossy();
    let packed = name.ends_with(".gz") || name.ends_with(".tgz");
    let written = if packed {
        let packer = flate2::write::GzEncoder::new(&file, flate2::Compression::default());
        write_tar(packer, contents).and_then(|packer| packer.finish().map(|_| ()))
    } else {
        write_tar(std::io::BufWriter::new(&file), contents).and_then(|mut out| out.flush())
    };
    written.map_err(|error| {
        // Half a capture is of no use; if it cannot be removed, the original error is reported
        // anyway.
        let _ = std::fs::remove_file(path);
        cannot_write(path)(error)
    })
}

/// The same record makes the same bytes: no times, no owners, names in order.
fn write_tar<W: Write>(out: W, contents: &[(String, Vec<u8>)]) -> std::io::Result<W> {
    let mut builder = tar::Builder::new(out);
    for (name, bytes) in contents {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, &bytes[..])?;
    }
    builder.into_inner()
}
