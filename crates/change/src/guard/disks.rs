//! All disks of the machine with what tells one from another, without opening any.

use std::path::{Path, PathBuf};

use rubus_host::Files;
use rubus_vocabulary::machine::BlockKind;

use super::identity;
use super::sysfs::{Sys, cannot_read, node_path};

/// A disk, or what the kernel treats as one, as the kernel describes it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The kernel's name.
    pub name: String,
    /// Path of its node in `/dev`.
    pub path: PathBuf,
    /// What kind of device it is.
    pub kind: BlockKind,
    /// Its size in bytes; 0 without a medium.
    pub size_bytes: u64,
    /// Vendor and model.
    pub model: Option<String>,
    /// Its serial number, if it says one that is worth the name.
    pub serial: Option<String>,
    /// Its world-wide name.
    pub wwn: Option<String>,
    /// The kernel's running number of it.
    pub diskseq: Option<u64>,
    /// The kernel's names of its partitions, with where each begins and its size, in bytes.
    pub partitions: Vec<(String, u64, u64)>,
    /// What stands on it or on its partitions: arrays, mappings.
    pub holders: Vec<String>,
}

/// All disks of the machine.
///
/// # Errors
/// A sentence when the kernel's list cannot be read.
pub fn all(files: &dyn Files) -> Result<Vec<Disk>, String> {
    let directory = Path::new("/sys/block");
    let names = files.list(directory).map_err(|why| cannot_read(directory, &why))?;
    let sys = Sys::new(files);
    // One that goes away while it is looked at is none.
    Ok(names.iter().filter_map(|name| disk(&sys, name)).collect())
}

fn disk(sys: &Sys<'_>, name: &str) -> Option<Disk> {
    let node = sys.by_name(name).ok()?;
    let number = |file: &str| -> Option<u64> {
        let text = sys.files.text(&node.directory.join(file)).ok()?;
        text.trim().parse().ok()
    };
    let text = |file: &str| {
        let text = sys.files.text(&node.directory.join(file)).ok()?;
        Some(text.trim().to_string()).filter(|text| !text.is_empty())
    };
    let identity = identity::read(sys, &node);
    let spans = sys.partition_spans(&node).unwrap_or_default();
    let mut holders = sys.holders(&node).unwrap_or_default();
    for span in &spans {
        let partition = sys.by_name(&span.name).ok();
        holders.extend(partition.and_then(|node| sys.holders(&node).ok()).unwrap_or_default());
    }
    Some(Disk {
        name: node.name.clone(),
        path: node_path(&node.name).into(),
        kind: node.kind(),
        size_bytes: number("size").unwrap_or(0).saturating_mul(512),
        model: identity.model,
        serial: identity.serial,
        wwn: text("wwid").or_else(|| text("device/wwid")),
        diskseq: number("diskseq"),
        partitions: spans
            .into_iter()
            .map(|span| (span.name, span.start_bytes, span.size_bytes))
            .collect(),
        holders,
    })
}
