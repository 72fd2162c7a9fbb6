//! What the sections of the page are called.

use super::Subject;

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
