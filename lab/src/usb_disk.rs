//! A USB disk, as it is bought.

use serde::{Deserialize, Serialize};

use crate::board::Throttle;
use crate::image::USB_BYTES;

/// A USB disk of a kit, as it is bought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsbDisk {
    /// Size; for a disk as it is sold always [`USB_BYTES`].
    pub bytes: u64,
    /// Serial number that the disk reports.
    pub serial: String,
    /// What is on it at first.
    pub content: Content,
    /// The controller that it is plugged into, from 0 on; only `pc` has a second one.
    pub bus: usize,
    /// Whether its bridge can do UAS; else it has one command at a time.
    #[serde(default)]
    pub has_uas: bool,
    /// Its limits at every boot.
    #[serde(skip)]
    pub limits: Option<Throttle>,
}

/// What is on a new disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// Nothing: every byte is zero.
    Blank,
    /// One FAT32 partition.
    AsSold,
}

impl UsbDisk {
    /// The disk that every board has: 4 GiB with one FAT32 partition, on the first controller.
    #[must_use]
    pub fn as_sold() -> Self {
        Self {
            bytes: USB_BYTES,
            serial: serial(0),
            content: Content::AsSold,
            bus: 0,
            has_uas: false,
            limits: None,
        }
    }

    /// A blank disk on the first controller, with the serial number of the disk with this number.
    #[must_use]
    pub fn blank(number: usize, bytes: u64) -> Self {
        Self {
            bytes,
            serial: serial(number),
            content: Content::Blank,
            bus: 0,
            has_uas: false,
            limits: None,
        }
    }

    /// The same on another controller.
    #[must_use]
    pub fn on_bus(mut self, bus: usize) -> Self {
        self.bus = bus;
        self
    }

    /// The same behind a bridge that can do UAS; only `pc` has such a one.
    #[must_use]
    pub fn with_uas(mut self) -> Self {
        self.has_uas = true;
        self
    }

    /// The same with a limit.
    #[must_use]
    pub fn limited(mut self, limits: Throttle) -> Self {
        self.limits = Some(limits);
        self
    }
}

/// Serial numbers in the manner of a maker of USB sticks; each disk has its own.
fn serial(number: usize) -> String {
    format!("4C53000123091411{:04}", 6022 + number)
}
