//! What is done with clones that no server has open: listing, resetting, throwing away, merging into an image.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rubus_host::files::clone_file::{CloneFile, Lock, names_in, remove};

use super::fleet::{ClientName, ENDING, FleetError, place_of, random, write_untouched};
use super::format::{Header, Kind};
use super::golden::GoldenFile;
use super::open::{OpenError, Surroundings, compare, memory_name, open, own_bytes, read_header};
use super::store::{Memory, SharedMemory};
use crate::server::disk::Disk;

/// A clone in a directory.
#[derive(Debug)]
pub struct Listed {
    /// Whose it is.
    pub name: ClientName,
    /// How it stands.
    pub state: CloneState,
    /// What its header says, and how many bytes it has of its own as far as its map says; nothing where it cannot be
    /// read.
    pub contents: Option<Contents>,
    /// How much of the filesystem it takes, bytes; what it shares with others is counted here, too.
    pub taken_bytes: u64,
}

/// What is in a clone.
#[derive(Debug)]
pub struct Contents {
    /// How many times it was reset.
    pub generation: u64,
    /// Size of the disk.
    pub size_bytes: u64,
    /// How it holds the disk.
    pub kind: Kind,
    /// How many bytes were written, in whole blocks; nothing where the filesystem shares.
    pub own_bytes: Option<u64>,
    /// The golden image.
    pub golden: PathBuf,
}

/// How a clone stands.
#[derive(Debug, PartialEq, Eq)]
pub enum CloneState {
    /// Its server closed it.
    Closed,
    /// A server or a command has it open.
    Open,
    /// Its server was killed; the next one finds out what is missing, if anything is.
    Left,
    /// It cannot be used as it is, in words.
    Unusable(String),
}

/// The clones in a directory, by name.
///
/// # Errors
/// When the directory cannot be read.
pub fn list(directory: &Path) -> io::Result<Vec<Listed>> {
    let mut found = Vec::new();
    for file in names_in(directory)? {
        let name = file.to_str().and_then(|file| file.strip_suffix(ENDING));
        let Some(Ok(name)) = name.map(ClientName::asked) else {
            continue;
        };
        match look_at(directory, name.clone()) {
            Ok(listed) => found.push(listed),
            // The clone was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => found.push(Listed {
                name,
                state: CloneState::Unusable(error.to_string()),
                contents: None,
                taken_bytes: 0,
            }),
        }
    }
    Ok(found)
}

fn look_at(directory: &Path, name: ClientName) -> io::Result<Listed> {
    let path = name.path_in(directory);
    let file = CloneFile::read_only(&path)?;
    let taken_bytes = file.stamp()?.taken_bytes;
    let is_open = matches!(
        CloneFile::open(&path, Lock::Alone),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock
    );
    let unusable = |why: String| Listed {
        name: name.clone(),
        state: CloneState::Unusable(why),
        contents: None,
        taken_bytes,
    };
    let header = match read_header(&file) {
        Ok(found) => found.header,
        Err(why) => return Ok(unusable(why.to_string())),
    };
    let own_bytes = match own_bytes(&file, &header) {
        Ok(bytes) => bytes,
        // A page that is being written may be seen in its middle.
        Err(_) if is_open => None,
        Err(why) => return Ok(unusable(why.to_string())),
    };
    let golden = golden_path(&header);
    let state = match (is_open, header.in_use) {
        (true, _) => CloneState::Open,
        (false, true) => CloneState::Left,
        (false, false) => CloneState::Closed,
    };
    let state = match golden_fits(&header, &golden) {
        Err(why) if state != CloneState::Open => CloneState::Unusable(why),
        _ => state,
    };
    Ok(Listed {
        state,
        contents: Some(Contents {
            generation: header.generation,
            size_bytes: header.golden.size_bytes,
            kind: header.kind,
            own_bytes,
            golden,
        }),
        name,
        taken_bytes,
    })
}

fn golden_path(header: &Header) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&header.golden_path))
}

fn golden_fits(header: &Header, path: &Path) -> Result<(), String> {
    if header.kind == Kind::Shared {
        return Ok(());
    }
    let golden = GoldenFile::open(path)
        .map_err(|error| format!("cannot read its golden image {}: {error}", path.display()))?;
    compare(&header.golden, golden.id())
}

/// Opens a clone that no other program has open.
fn alone(directory: &Path, name: &ClientName) -> Result<(PathBuf, CloneFile), FleetError> {
    let path = name.path_in(directory);
    match CloneFile::open(&path, Lock::Alone) {
        Ok(file) => Ok((path, file)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(FleetError::InUse(path)),
        Err(error) => Err(FleetError::Open { path, why: error.into() }),
    }
}

fn golden_of(
    path: &Path,
    header: &Header,
    golden: Option<&Path>,
) -> Result<GoldenFile, FleetError> {
    let golden = golden.map_or_else(|| golden_path(header), Path::to_path_buf);
    GoldenFile::open(&golden).map_err(|error| FleetError::Open {
        path: path.into(),
        why: OpenError::GoldenChanged(format!(
            "its golden image {} cannot be read ({error}); say where it is now with --golden",
            golden.display()
        )),
    })
}

/// Makes a clone what the golden image is now, under a new generation; gives that.
///
/// # Errors
/// [`FleetError`]; the clone is as it was then.
pub fn reset(
    directory: &Path,
    name: &ClientName,
    golden: Option<&Path>,
) -> Result<u64, FleetError> {
    let (path, file) = alone(directory, name)?;
    let cannot = |why: OpenError| FleetError::Open { path: path.clone(), why };
    let header = read_header(&file).map_err(cannot)?.header;
    let golden = golden_of(&path, &header, golden)?;
    let generation = header.generation + 1;
    let replace = || {
        let begun = CloneFile::begin(&path)?;
        write_untouched(begun.file(), &golden, header.clone, generation, random()?)?;
        begun.replace()
    };
    replace().map_err(|why| FleetError::Make { path: path.clone(), why })?;
    SharedMemory.forget(&memory_name(header.clone, header.epoch));
    Ok(generation)
}

/// Removes a clone.
///
/// # Errors
/// If the clone is in use or cannot be removed.
pub fn throw_away(directory: &Path, name: &ClientName) -> Result<(), FleetError> {
    let (path, file) = alone(directory, name)?;
    // Even one that is damaged.
    let header = read_header(&file).ok().map(|found| found.header);
    remove(&path).map_err(|error| FleetError::Open { path, why: error.into() })?;
    if let Some(header) = header {
        SharedMemory.forget(&memory_name(header.clone, header.epoch));
    }
    Ok(())
}

/// Pieces in which a disk is read.
const PIECE_BYTES: u64 = 1 << 20;

/// Writes the disk that a client sees into a new image, with holes where it has them; `progress` hears how many bytes
/// of the disk have been gone through.
///
/// # Errors
/// [`FleetError`]; there is no such image then.
pub fn merge(
    directory: &Path,
    name: &ClientName,
    golden: Option<&Path>,
    to: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<(), FleetError> {
    let (path, file) = alone(directory, name)?;
    let cannot = |why: OpenError| FleetError::Open { path: path.clone(), why };
    let header = read_header(&file).map_err(cannot)?.header;
    let golden = golden_of(&path, &header, golden)?;
    let id = golden.id().clone();
    let around = Surroundings {
        golden: Arc::new(golden),
        golden_id: &id,
        memory: Arc::new(SharedMemory),
        place: place_of(&file, &path),
        random: &random,
    };
    let clone = open(file, &around).map_err(cannot)?;
    let copied = copy(&clone, to, progress);
    // The clone is as it was, whatever came of the image.
    clone.close().map_err(|error| cannot(error.into()))?;
    copied.map_err(|why| FleetError::Make { path: to.into(), why })
}

fn copy(clone: &impl Disk, to: &Path, progress: &mut dyn FnMut(u64)) -> io::Result<()> {
    let begun = CloneFile::begin(to)?;
    let size_bytes = clone.size_bytes();
    begun.file().set_length(size_bytes)?;
    let mut memory = vec![0; PIECE_BYTES as usize];
    let mut at = 0;
    while at < size_bytes {
        for extent in clone.extents(at, size_bytes - at, false)? {
            let end = at + extent.length;
            while !extent.is_zero && at < end {
                let bytes = (end - at).min(PIECE_BYTES);
                let piece = &mut memory[..bytes as usize];
                clone.read(at, piece)?;
                if piece.iter().any(|&byte| byte != 0) {
                    begun.file().write_at(at, &mut [io::IoSlice::new(piece)])?;
                }
                at += bytes;
                progress(at);
            }
            at = end;
            progress(at);
        }
    }
    begun.name()?;
    Ok(())
}
