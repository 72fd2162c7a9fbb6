//! Where a copy goes: an export, a device past the guard, or a file that gets its name when it is whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rubus_host::block::blockdev::{NodeKind, Pinned};
use rubus_host::block::image::{Image, ImageError};
use rubus_host::files::kept_file;
use rubus_host::files::own_files;
use rubus_nbd::connect::Connection;
use rubus_nbd::wire::TransmissionFlags;
use rubus_vocabulary::refused::Refused;

use super::kept_journal::Kept;
use super::{export, mark_of};
use crate::copy::{End, Export, is_all_zero};
use crate::guard::Guard;

/// What the name of a file ends with until it is whole.
const PARTIAL: &str = ".partial";
/// And its journal's.
const JOURNAL: &str = ".journal";

/// What the user wants of a copy.
#[derive(Clone, Debug)]
pub struct CopyRequest {
    /// Replace a file that is there.
    pub overwrite: bool,
    /// What may be lost, by address or serial number.
    pub losses: Vec<String>,
    pub journal: Option<PathBuf>,
    /// Begin again, whatever the journal says.
    pub starts_over: bool,
    pub skip_unreadable: bool,
    /// Read back what was written.
    pub verify: bool,
    pub connections: usize,
    pub depth: usize,
    /// How long a server that does not answer is waited for.
    pub patience: Duration,
}

/// A destination that is open.
pub struct Destination {
    /// The open file, device or export.
    pub end: End<Connection>,
    /// What tells it from everything else that could have its name.
    pub mark: String,
    /// It reads as zeros all over.
    pub is_zero: bool,
    /// The journal, if there is to be one.
    pub journal: Option<Kept>,
    /// The file that is being made, and what it will be.
    pub names: Option<(PathBuf, PathBuf)>,
}

/// Opens a file or a block device for writing `bytes` bytes.
///
/// # Errors
/// If it cannot be opened or is neither; [`Refused`] when data could be lost.
pub fn of_path(
    path: &Path,
    bytes: u64,
    arguments: &CopyRequest,
    guard: &dyn Guard,
) -> anyhow::Result<Destination> {
    match Pinned::new(path).map(|node| node.kind()) {
        Ok(NodeKind::Block(_)) => device(path, arguments, guard),
        Ok(NodeKind::Regular) | Err(_) => file(path, bytes, arguments, guard),
        Ok(_) => anyhow::bail!(
            "cannot copy to {}: it is neither a file nor a block device",
            path.display()
        ),
    }
}

fn kept(arguments: &CopyRequest) -> anyhow::Result<Option<Kept>> {
    let journal = arguments.journal.as_deref();
    journal.map(|path| Kept::open(path, arguments.starts_over)).transpose()
}

/// Opens an export for writing.
///
/// # Errors
/// In words; [`Refused`] when data could be lost.
pub fn of_export(address: &str, arguments: &CopyRequest) -> anyhow::Result<Destination> {
    let journal = kept(arguments)?;
    let export = export(address, arguments.patience)?;
    anyhow::ensure!(
        !export.can(TransmissionFlags::READ_ONLY),
        "cannot copy to {address}: its server offers it for reading only; let the server allow writing"
    );
    let goes_on = journal.as_ref().is_some_and(|kept| kept.earlier.is_some());
    let is_zero = !goes_on && is_all_zero(&export)? == Some(true);
    if !goes_on && !is_zero {
        may_be_lost(address, &export, arguments)?;
    }
    Ok(Destination {
        mark: mark_of(&export.name, &export.offer),
        end: End::Export(export),
        is_zero,
        journal,
        names: None,
    })
}

fn may_be_lost(
    address: &str,
    export: &Export<Connection>,
    arguments: &CopyRequest,
) -> anyhow::Result<()> {
    let losses = &arguments.losses;
    if losses.iter().any(|name| name == address || *name == export.name) {
        return Ok(());
    }
    let knows = match export.offer.allocation {
        Some(_) => "it holds data, and all of it would be overwritten",
        None => "its server does not say whether it holds data, which would be overwritten",
    };
    Err(Refused(format!(
        "{address} was not touched: {knows}\n  \
         if it may be lost, give --i-will-lose-everything-on='{address}'"
    ))
    .into())
}

/// A block device, past the guard.
fn device(path: &Path, arguments: &CopyRequest, guard: &dyn Guard) -> anyhow::Result<Destination> {
    let journal = kept(arguments)?;
    let claimed = guard.claim(path, &arguments.losses).map_err(|not| {
        let refusal = not.refusal;
        Refused(match not.expected {
            None => refusal,
            Some(expected) => {
                format!("{refusal}\n  to overwrite it, give --i-will-lose-everything-on={expected}")
            }
        })
    })?;
    let image = Image::of_claimed(claimed);
    let whole = own_files::real_path(path)?;
    Ok(Destination {
        mark: format!("device {} of {} bytes", whole.display(), image.size_bytes()),
        end: End::Image { image: Arc::new(image), name: path.display().to_string() },
        is_zero: false,
        journal,
        names: None,
    })
}

fn file(
    path: &Path,
    bytes: u64,
    arguments: &CopyRequest,
    guard: &dyn Guard,
) -> anyhow::Result<Destination> {
    own_files::must_be_writable(path).map_err(anyhow::Error::msg)?;
    // What a link leads to is replaced, and not the link.
    let path = own_files::real_path(path).unwrap_or_else(|_| path.to_path_buf());
    if path.exists() {
        may_be_replaced(&path, arguments, guard)?;
    }
    let partial = with_ending(&path, PARTIAL);
    let beside = with_ending(&partial, JOURNAL);
    let journal = arguments.journal.as_deref().unwrap_or(&beside);
    let mut journal = Kept::open(journal, arguments.starts_over)?;
    let cannot = || format!("cannot make {}", partial.display());
    // Without its file a journal is about nothing, and without its journal a file.
    let is_there = partial.exists();
    if !is_there || journal.earlier.is_none() {
        if is_there {
            drop(locked(&partial)?);
        }
        journal.forget().with_context(cannot)?;
        kept_file::remove(&partial).with_context(cannot)?;
    }
    kept_file::make(&partial, bytes).with_context(cannot)?;
    let image = locked(&partial)?;
    Ok(Destination {
        mark: format!("file {} {} of {bytes} bytes", partial.display(), image.mark(false)?),
        end: End::Image { image: Arc::new(image), name: partial.display().to_string() },
        is_zero: journal.earlier.is_none(),
        journal: Some(journal),
        names: Some((partial, path)),
    })
}

/// Opens a file under an exclusive lock.
fn locked(path: &Path) -> anyhow::Result<Image> {
    Image::open(path, true).map_err(|error| match error {
        ImageError::Locked => Refused(format!(
            "{} was not touched: another program has it open and locked",
            path.display()
        ))
        .into(),
        error => anyhow::Error::from(error).context(format!("cannot open {}", path.display())),
    })
}

fn may_be_replaced(path: &Path, arguments: &CopyRequest, guard: &dyn Guard) -> anyhow::Result<()> {
    if !arguments.overwrite {
        return Err(Refused(format!(
            "{} was not touched: it exists\n  to replace it when the copy is whole, give --overwrite",
            path.display()
        ))
        .into());
    }
    // A mount of it would keep using the old file, which has lost its name: everything written there is
    // lost.
    guard.file_unused(path).map_err(Refused)?;
    drop(locked(path)?);
    Ok(())
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
