//! One line of a table of mounts (fstab(5)).

use serde::{Deserialize, Serialize};

/// One line that mounts something, escapes undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// What: "PARTUUID=8a676486-02", "/dev/sda1", "tmpfs".
    pub source: String,
    /// Where: "/", "/boot/firmware"; "none" or "swap" for a swap area.
    pub target: String,
    /// "ext4", "swap", "auto".
    pub filesystem: String,
    /// With commas between them; "defaults" for none.
    pub options: String,
    /// Whether dump(8) saves it.
    pub dump: u32,
    /// In which round fsck(8) looks at it, 0 for never.
    pub pass: u32,
}

impl Entry {
    /// A line with the usual last columns: no dump, no check.
    pub fn new(source: &str, target: &str, filesystem: &str, options: &str) -> Self {
        Entry {
            source: source.into(),
            target: target.into(),
            filesystem: filesystem.into(),
            options: options.into(),
            dump: 0,
            pass: 0,
        }
    }

    /// The same, checked in round `pass`.
    pub fn checked_in(mut self, pass: u32) -> Self {
        self.pass = pass;
        self
    }

    /// Whether an option is among those of the line.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.split(',').any(|option| option == name)
    }

    /// The value of an option ("subvol" → "@").
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut options = self.options.split(',').rev();
        options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether it is a swap area.
    pub fn is_swap(&self) -> bool {
        self.filesystem == "swap"
    }
}
