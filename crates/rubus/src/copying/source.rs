//! What is copied.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rubus_change::guard::{self, TargetFacts};
use rubus_host::Live;
use rubus_host::blockdev::{NodeKind, Pinned};
use rubus_host::image::{Image, ImageError};
use rubus_nbd::connect::Connection;
use rubus_nbd::copy::End;

use super::{export, mark_of};
use crate::target_name::TargetName;

/// A source that is open.
pub struct Source {
    /// Its bytes.
    pub end: End<Connection>,
    /// What tells it from everything else that could have its name.
    pub mark: String,
    /// What has to be known of it.
    pub remarks: Vec<String>,
}

/// Opens it for reading. The server of an export is waited for so long.
///
/// # Errors
/// In words.
pub fn open(name: &TargetName, patience: Duration) -> anyhow::Result<Source> {
    match name {
        TargetName::Nbd(address) => {
            let export = export(address, patience)?;
            Ok(Source {
                mark: mark_of(&export.name, &export.offer),
                end: End::Export(export),
                remarks: Vec::new(),
            })
        }
        TargetName::Ram(_) => anyhow::bail!(
            "memory is nothing to be copied; put ./ before a file whose name begins with ram:"
        ),
        TargetName::Path(path) => image(path),
    }
}

fn image(path: &Path) -> anyhow::Result<Source> {
    let name = path.display().to_string();
    let is_device = matches!(
        Pinned::new(path).map(|node| node.kind()),
        Ok(NodeKind::Block(_))
    );
    let mut remarks = Vec::new();
    let image = if is_device {
        let facts = guard::look(&Live::new(), path);
        if matches!(&facts, TargetFacts::Device(device) if !device.uses.is_empty()) {
            remarks.push(format!(
                "{name} was in use while it was copied: what was written to it meanwhile may be there by half"
            ));
        }
        let reader = guard::read_only(path).map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
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
    let whole = std::fs::canonicalize(path).with_context(|| format!("cannot find {name}"))?;
    let mark = match is_device {
        true => format!("device {} of {} bytes", whole.display(), image.size_bytes()),
        false => format!(
            "file {} {} of {} bytes, written {}",
            whole.display(),
            image.mark(false)?,
            image.size_bytes(),
            image.written_at()?
        ),
    };
    Ok(Source {
        end: End::Image {
            image: Arc::new(image),
            name,
        },
        mark,
        remarks,
    })
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
