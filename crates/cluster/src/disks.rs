//! What disks give: rates and operations, as measured by Rubus or assumed for their kind.

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::basis::Basis;
use serde::{Deserialize, Serialize};

/// What kind of disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Media {
    /// A SATA SSD for consumers, without power-loss protection
    #[default]
    Ssd,
    /// An NVMe SSD for consumers, without power-loss protection
    Nvme,
    /// An SSD with power-loss protection
    SsdPlp,
    /// A disk that spins
    Hdd,
}

impl Media {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Media::Ssd => "SATA SSD",
            Media::Nvme => "NVMe SSD",
            Media::SsdPlp => "SSD with power-loss protection",
            Media::Hdd => "hard disk",
        }
    }

    /// Ceph's device class.
    pub fn class(self) -> &'static str {
        match self {
            Media::Hdd => "hdd",
            Media::Ssd | Media::Nvme | Media::SsdPlp => "ssd",
        }
    }

    /// Unrecoverable read errors per bit read: JESD218 allows a client SSD 1e-15 and an enterprise SSD 1e-16; data sheets of desktop
    /// hard disks say 1e-14.
    pub fn unreadable_per_bit(self) -> f64 {
        match self {
            Media::Ssd | Media::Nvme => 1e-15,
            Media::SsdPlp => 1e-16,
            Media::Hdd => 1e-14,
        }
    }
}

/// What a disk gives where it is attached.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// Sequential read, bytes per second.
    pub read_bytes_per_second: Estimate,
    /// Sequential write, bytes per second; the low end is beyond an SSD's cache.
    pub write_bytes_per_second: Estimate,
    /// Random 4 KiB reads per second, as many in flight as help.
    pub read_iops: Estimate,
    /// Random 4 KiB writes per second, as many in flight as help.
    pub write_iops: Estimate,
    /// 4 KiB writes made durable one at a time (write and flush) per second.
    pub commits_per_second: Estimate,
    /// How they are known.
    pub basis: Basis,
    /// From where, in words.
    pub source: String,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disk {
    /// Its size, bytes.
    pub bytes: u64,
    /// Its kind.
    pub media: Media,
    /// What it gives.
    pub figures: Figures,
}

impl Disk {
    /// A disk without measurements. The ranges are wide on purpose: consumer SSDs differ tenfold in how fast they
    /// flush.
    pub fn assumed(bytes: u64, media: Media) -> Disk {
        let e = |(value, low, high): (f64, f64, f64)| Estimate::new(value, low, high);
        let (read, write, read_iops, write_iops, commits) = match media {
            Media::Ssd => (
                (450e6, 350e6, 540e6),
                (350e6, 80e6, 500e6),
                (20e3, 8e3, 60e3),
                (15e3, 5e3, 50e3),
                (700.0, 150.0, 3000.0),
            ),
            Media::Nvme => (
                (1.5e9, 0.8e9, 3e9),
                (0.9e9, 0.15e9, 2e9),
                (120e3, 40e3, 400e3),
                (60e3, 15e3, 250e3),
                (1500.0, 300.0, 8000.0),
            ),
            Media::SsdPlp => (
                (500e6, 400e6, 550e6),
                (420e6, 300e6, 520e6),
                (40e3, 15e3, 90e3),
                (25e3, 10e3, 60e3),
                (10e3, 4e3, 25e3),
            ),
            Media::Hdd => (
                (150e6, 80e6, 220e6),
                (140e6, 70e6, 210e6),
                (120.0, 70.0, 200.0),
                (150.0, 70.0, 300.0),
                (50.0, 25.0, 100.0),
            ),
        };
        Disk {
            bytes,
            media,
            figures: Figures {
                read_bytes_per_second: e(read),
                write_bytes_per_second: e(write),
                read_iops: e(read_iops),
                write_iops: e(write_iops),
                commits_per_second: e(commits),
                basis: Basis::Assumed,
                source: format!("typical of a {}, not measured", media.name()),
            },
        }
    }
}
