//! What is copied.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rubus_host::block::blockdev::{NodeKind, Pinned};
use rubus_host::block::image::{Image, ImageError};
use rubus_host::files::own_files;
use rubus_nbd::connect::Connection;

use super::{export, mark_of};
use crate::copy::End;
use crate::guard::Guard;

/// A source that is open.
pub struct Source {
    /// The open file, device or export.
    pub end: End<Connection>,
    /// What tells it from everything else that could have its name.
    pub mark: String,
    /// What has to be known of it.
    pub remarks: Vec<String>,
}

/// Opens an export for reading. `patience` is the timeout for each answer of its server.
///
/// # Errors
/// If the address is invalid, or the connection or the handshake fails.
pub fn of_export(address: &str, patience: Duration) -> anyhow::Result<Source> {
    let export = export(address, patience)?;
    Ok(Source {
        mark: mark_of(&export.name, &export.offer),
        end: End::Export(export),
        remarks: Vec::new(),
    })
}

/// Opens a file or a block device for reading.
///
/// # Errors
/// If it cannot be opened, or another program has it locked for writing.
pub fn of_path(path: &Path, guard: &dyn Guard) -> anyhow::Result<Source> {
    let name = path.display().to_string();
    let is_device = matches!(Pinned::new(path).map(|node| node.kind()), Ok(NodeKind::Block(_)));
    let mut remarks = Vec::new();
    let image = if is_device {
        if guard.is_in_use(path) {
            remarks.push(format!(
                "{name} was in use while it was copied: what was written to it meanwhile may be there by half"
            ));
        }
        let reader = guard.read_only(path).map_err(anyhow::Error::msg)?;
        Image::of_reader(reader)
    } else {
        Image::open(path, false).map_err(|error| match error {
            ImageError::Locked => anyhow::anyhow!(
                "cannot copy {name}: another program has it open and locked for writing; stop that program, or copy \
                 from the server that serves it"
            ),
            ImageError::NotAFile => anyhow::anyhow!(
                "cannot copy {name}: it is neither a file nor a block device; `rubus copy` copies directories"
            ),
            error => anyhow::Error::from(error).context(format!("cannot copy {name}")),
        })?
    };
    let whole = own_files::real_path(path).with_context(|| format!("cannot find {name}"))?;
    let mark = if is_device {
        format!("device {} of {} bytes", whole.display(), image.size_bytes())
    } else {
        format!(
            "file {} {} of {} bytes, written {}",
            whole.display(),
            image.mark(false)?,
            image.size_bytes(),
            image.written_at()?
        )
    };
    Ok(Source { end: End::Image { image: Arc::new(image), name }, mark, remarks })
}

impl Source {
    /// When a file was written last; nothing for what does not tell.
    pub fn written_at(&self) -> Option<String> {
        match &self.end {
            End::Image { image, .. } if !image.is_device() => image.written_at().ok(),
            _ => None,
        }
    }
}
