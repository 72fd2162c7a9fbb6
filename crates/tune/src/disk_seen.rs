//! A disk as it is seen in `/sys`: whether the one that has a name now is the one that had it before.

use std::path::{Path, PathBuf};

use rubus_host::Files;
use serde::{Deserialize, Serialize};

/// What tells one disk from another that took its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSeen {
    /// Kernel name.
    pub name: String,
    /// Device number.
    pub number: String,
    /// Number of the disk within this boot, where the kernel counts them (Linux 5.15).
    pub sequence: Option<String>,
    /// World-wide name, card identification or serial number, if it has one.
    pub identity: Option<String>,
    /// Size in sectors of 512 bytes.
    pub sectors: Option<String>,
}

/// A file below `/sys/block/NAME` that identifies a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityFile {
    /// Whose attribute it is.
    pub of: AttributeOf,
    /// Name of the attribute.
    pub attribute: &'static str,
    /// Whether a udev rule may match it. The serial number of a device may be that of the bridge above it, too.
    pub is_for_rules: bool,
}

/// Whose attribute a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeOf {
    /// The disk's own.
    Disk,
    /// That of the device which the disk is on.
    Device,
}

/// All of them, the best first.
pub const IDENTITY_FILES: [IdentityFile; 5] = [
    IdentityFile { of: AttributeOf::Disk, attribute: "wwid", is_for_rules: true },
    IdentityFile { of: AttributeOf::Device, attribute: "wwid", is_for_rules: true },
    IdentityFile { of: AttributeOf::Device, attribute: "cid", is_for_rules: true },
    IdentityFile { of: AttributeOf::Device, attribute: "serial", is_for_rules: false },
    IdentityFile { of: AttributeOf::Disk, attribute: "serial", is_for_rules: true },
];

impl IdentityFile {
    /// Below the directory of the disk.
    pub fn path(self) -> PathBuf {
        match self.of {
            AttributeOf::Disk => self.attribute.into(),
            AttributeOf::Device => Path::new("device").join(self.attribute),
        }
    }
}

impl DiskSeen {
    /// The disk that has this kernel name now.
    pub fn of(name: &str, files: &dyn Files) -> Option<DiskSeen> {
        let directory = Path::new("/sys/block").join(name);
        let read = |file: &str| files.text(&directory.join(file)).ok();
        let identity = |file: &IdentityFile| {
            let text = files.text(&directory.join(file.path())).ok()?;
            (!text.trim().is_empty()).then_some(text)
        };
        Some(DiskSeen {
            name: name.into(),
            number: read("dev")?,
            sequence: read("diskseq"),
            identity: IDENTITY_FILES.iter().find_map(identity),
            sectors: read("size"),
        })
    }

    /// Whether the name still belongs to this disk. Where the kernel counts disks, its number says so alone: a disk may be made
    /// larger meanwhile.
    pub fn is_there(&self, files: &dyn Files) -> bool {
        DiskSeen::of(&self.name, files).is_some_and(|now| match self.sequence {
            Some(_) => now.number == self.number && now.sequence == self.sequence,
            None => now == *self,
        })
    }
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;

    fn disk(sequence: &str) -> FakeFiles {
        FakeFiles::new()
            .file("/sys/block/sda/dev", "8:0\n")
            .file("/sys/block/sda/size", "1000\n")
            .file("/sys/block/sda/device/wwid", "naa.5\n")
            .file("/sys/block/sda/diskseq", sequence)
    }

    #[test]
    fn another_disk_of_the_same_name_is_another_disk() {
        let seen = DiskSeen::of("sda", &disk("9")).unwrap();
        assert_eq!(seen.identity.as_deref(), Some("naa.5"));
        assert!(seen.is_there(&disk("9")));
        assert!(!seen.is_there(&disk("10")), "it was unplugged and plugged in again");
        assert!(!seen.is_there(&FakeFiles::new()));
    }
}
