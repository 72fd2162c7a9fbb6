//! How fast a processor compresses.

/// How one thread compresses.
#[derive(Clone, Debug, PartialEq)]
pub struct CompressionSpeed {
    /// As btrfs names it: "zstd:3", "lzo", "zlib:3".
    pub method: String,
    /// Bytes of the original per second of one core.
    pub compress_bytes_per_second: f64,
    /// Bytes of the original per second of one core, back.
    pub expand_bytes_per_second: f64,
    /// Original size by size on the disk, in pieces of 128 KiB rounded up to 4 KiB: 2 is half. The kernel's own is
    /// 5 to 13 % less.
    pub ratio: f64,
}
