//! What is known of attached devices, for other programs and later commands: a file for each in `/run/rubus/attached`,
//! written by its watcher and gone with it.

use std::path::Path;

use anyhow::Context;
use rubus_host::process::mlocked::{KeptDirectory, is_there};
use serde::{Deserialize, Serialize};

use super::AttachmentState;

/// Where the files are. It does not outlive a restart, as the devices do not.
const DIRECTORY: &str = "/run/rubus/attached";

/// An attached device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// `/dev/nbd0`.
    pub device: String,
    /// Number of the device.
    pub index: u32,
    /// Address of the export.
    pub address: String,
    /// The name by which the driver knows it.
    pub backend: String,
    /// Size of the device.
    pub size_bytes: u64,
    /// It cannot be written.
    pub read_only: bool,
    /// Connections that there are to be.
    pub connections: usize,
    /// Connections that work.
    pub alive: usize,
    /// How often a connection was replaced.
    pub replaced: u32,
    /// Writes may be unflushed, and would be lost if the server's machine were restarted now.
    pub unflushed: bool,
    /// Who the server says that it is.
    pub identity: Option<String>,
    /// How long requests wait for a server that is gone.
    pub dead_timeout_s: u32,
    /// When it was attached, RFC 3339.
    pub since: String,
    /// Process number of the watcher.
    pub watcher: u32,
    /// What stands in the way, while something does.
    pub trouble: Option<String>,
}

impl Record {
    /// Takes over how things stand now.
    pub fn update(&mut self, state: &AttachmentState) {
        self.alive = state.alive;
        self.replaced = state.replaced;
        self.unflushed = state.unflushed;
        self.identity = state.appearance.identity.map(|identity| identity.to_string());
        self.trouble = state.trouble.clone();
    }

    /// One line about it.
    pub fn line(&self) -> String {
        let size = rubus_vocabulary::units::bytes_si(self.size_bytes);
        let state = match (&self.trouble, is_there(self.watcher)) {
            (_, false) => "NOT watched: it will not survive a restart of the server".to_owned(),
            (Some(trouble), true) => format!("waits: {trouble}"),
            (None, true) => match self.replaced {
                0 => "connected".to_owned(),
                1 => "connected, once again".to_owned(),
                n => format!("connected, {n} times again"),
            },
        };
        format!("{}  {}  {size}  {state}\n", self.device, self.address)
    }
}

#[derive(Debug)]
pub struct Records {
    directory: KeptDirectory,
}

impl Records {
    /// The directory, made where it is missing.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open() -> anyhow::Result<Records> {
        let directory = KeptDirectory::make(Path::new(DIRECTORY))
            .with_context(|| format!("cannot make {DIRECTORY}"))?;
        Ok(Records { directory })
    }

    /// All devices that are attached, by number.
    pub fn all() -> Vec<Record> {
        let Ok(directory) = KeptDirectory::open(Path::new(DIRECTORY)) else {
            return Vec::new();
        };
        let names = directory.names().unwrap_or_default();
        let names = names.iter().filter_map(|name| name.to_str());
        let mut records: Vec<Record> = names
            .filter(|name| name.ends_with(".json"))
            .filter_map(|name| serde_json::from_str(&directory.read(name).ok()?).ok())
            .collect();
        records.sort_by_key(|record| record.index);
        records
    }

    /// Writes one. Nothing depends on it but what people see, so that a failure is passed over.
    pub fn write(&self, record: &Record) {
        if let Ok(text) = serde_json::to_string_pretty(record) {
            let _ = self.directory.replace(&name(record.index), &(text + "\n"));
        }
    }

    pub fn remove(&self, index: u32) {
        let _ = self.directory.remove(&name(index));
    }

    /// Whether there is one.
    pub fn has(&self, index: u32) -> bool {
        self.directory.read(&name(index)).is_ok()
    }
}

fn name(index: u32) -> String {
    format!("nbd{index}.json")
}
