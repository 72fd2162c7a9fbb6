//! What the tables of the page are called and marked with: `page` writes them, and `reread` finds them again.

use super::Subject;

/// Stands in the last column of a case with which something was chosen.
pub(super) const CHOSEN: &str = "chosen";
/// Stands behind the share of the time in which programs waited, when that was too much to the end.
pub(super) const DISTURBED: &str = " !";

pub(super) fn title(subject: Subject) -> &'static str {
    match subject {
        Subject::Sizes => "Sizes and depths of one device",
        Subject::Stripes => "Stripes, on ports of their own and on one",
        Subject::Md => "RAID-0 by md on an emulated board",
        Subject::Commits => "Commits, by one writer and by several",
        Subject::Btrfs => "Compression by btrfs",
        Subject::Compressing => "Compression by btrfs that nothing but the processors limits",
        Subject::Network => "Network disks",
        Subject::Cipher => "A cipher in the path",
        Subject::Decoding => "Servers that decipher or decompress",
        Subject::Kernel => "Devices and layers of the kernel on an emulated board",
        Subject::Buses => "Behind USB bridges and NVMe",
        Subject::Swap => "Swap",
    }
}
