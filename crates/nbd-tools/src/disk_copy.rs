//! What is said about the copy of a disk.

use serde::{Deserialize, Serialize};

/// How the copy of a disk went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskCopy {
    /// From where.
    pub source: String,
    /// To where.
    pub destination: String,
    /// All that was copied, with its holes.
    pub size_bytes: u64,
    /// Size of the destination, which may be larger; what is behind the copy stays as it was.
    pub destination_bytes: u64,
    /// What was written as data; the rest are zeros.
    pub data_bytes: u64,
    /// What an earlier run had done.
    pub resumed_bytes: u64,
    /// Connections to each server, or threads.
    pub connections: u32,
    /// How long copying took, with the flush at its end; seconds.
    pub copy_s: f64,
    /// How long reading back took; absent when nothing was read back.
    pub verify_s: Option<f64>,
    /// Places at the destination that are not what was copied: from which byte to which.
    pub different: Vec<(u64, u64)>,
    /// Places of the source that could not be read, and are zeros at the destination: from which byte to which.
    pub unreadable: Vec<(u64, u64)>,
    /// Whether all of it is on stable storage.
    pub is_durable: bool,
    /// What has to be known of it besides.
    pub remarks: Vec<String>,
    /// Something happened for which the copy may not be the source.
    pub is_doubtful: bool,
}

impl DiskCopy {
    /// Whether the destination is what the source was.
    pub fn is_good(&self) -> bool {
        self.different.is_empty() && self.unreadable.is_empty() && !self.is_doubtful
    }

    /// How much of the source could not be read, in bytes.
    pub fn unreadable_bytes(&self) -> u64 {
        self.unreadable.iter().map(|(from, to)| to - from).sum()
    }
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskCopyProgress {
    /// Reading back what was written.
    pub is_verifying: bool,
    /// Bytes that are done, holes too.
    pub done_bytes: u64,
    /// Size of the disk, bytes.
    pub size_bytes: u64,
    /// Bytes that were done before this run.
    pub before_bytes: u64,
    /// Since this pass began, seconds.
    pub elapsed_s: f64,
}

impl DiskCopyProgress {
    /// Bytes per second of this run; nothing at its beginning.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let done = self.done_bytes.saturating_sub(self.before_bytes) as f64;
        (self.elapsed_s >= 0.5 && done > 0.0).then(|| done / self.elapsed_s)
    }

    /// How long the rest takes at that rate, seconds.
    pub fn left_s(&self) -> Option<f64> {
        let left = self.size_bytes.saturating_sub(self.done_bytes) as f64;
        Some(left / self.bytes_per_second()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_this_run() {
        let progress = DiskCopyProgress {
            is_verifying: false,
            done_bytes: 700,
            size_bytes: 1000,
            before_bytes: 500,
            elapsed_s: 2.0,
        };
        assert_eq!(progress.bytes_per_second(), Some(100.0));
        assert_eq!(progress.left_s(), Some(3.0));
        let at_first = DiskCopyProgress { done_bytes: 500, ..progress };
        assert_eq!(at_first.left_s(), None);
    }
}
